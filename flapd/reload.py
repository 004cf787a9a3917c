"""Reload: what of a configuration that is read again is put into force, and what waits."""

import msgspec

from flapd.config import Config

RELOADED = ("sampling", "ports")
"""Sections that SIGHUP puts into force in an agent; a change of any other needs a restart."""


class Reload(msgspec.Struct, frozen=True):
    """What became of the configuration that was read last."""

    ok: bool = True
    """False: it was refused, and the one before is in force."""
    restart_needed: tuple[str, ...] = ()
    """Sections of it that are not in force until the next start."""


def changed(now: Config, then: Config) -> list[str]:
    """Sections in which two configurations differ."""
    return [
        section
        for section in Config.__struct_fields__
        if getattr(now, section) != getattr(then, section)
    ]
