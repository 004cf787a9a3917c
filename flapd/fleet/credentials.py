"""Credentials: what a node shows to a NATS server, and what it asks of one, as files hold it."""

import re
import ssl
from pathlib import Path
from typing import NamedTuple

from flapd.fleet.settings import FleetSettings
from flapd.model.errors import FlapdError

_JWT = "-----BEGIN NATS USER JWT-----"
_SEED = re.compile(r"^(SU[A-Z2-7]{56})\s*$", re.MULTILINE)
"""Of a user's Ed25519 key: 58 characters of base32 (https://github.com/nats-io/nkeys)."""


class Credentials(NamedTuple):
    """At most one of them; neither: the server must take anybody."""

    jwt_file: str | None = None
    seed: str | None = None


def read_credentials(path: str) -> Credentials:
    """FlapdError where the file cannot be read or holds neither kind."""
    if not path:
        return Credentials()
    try:
        text = Path(path).read_text(errors="replace")
    except OSError as error:
        raise FlapdError(f"fleet.credentials: {path} cannot be read: {error.strerror}") from error
    if _JWT in text:
        return Credentials(jwt_file=path)
    seed = _SEED.search(text)
    if seed is None:
        raise FlapdError(
            f"fleet.credentials: {path} holds neither NATS credentials ({_JWT}) "
            "nor the seed of a user's nkey (SU...)"
        )
    return Credentials(seed=seed[1])


def tls_context(settings: FleetSettings) -> ssl.SSLContext:
    """Trusts what the system trusts, or `tls_ca` alone; FlapdError where that is of no use."""
    try:
        return ssl.create_default_context(cafile=settings.tls_ca or None)
    except OSError as error:  # ssl.SSLError is one
        why = error.strerror or "it holds no PEM certificates"
        raise FlapdError(f"fleet.tls_ca: {settings.tls_ca} cannot be used: {why}") from error


def check_files(settings: FleetSettings) -> None:
    """FlapdError where a file that is named is of no use now; each is read anew to connect."""
    read_credentials(settings.credentials)
    tls_context(settings)
