"""Listener: hears one voice of the kernel, and opens it again where it fails."""

import time
import traceback
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.files import reason_of

AGAIN_AFTER_NS = 10 * SECOND_NS
BREATH_NS = 20 * MILLISECOND_NS
"""A voice that never stops is heard in parts, with so long between them for all else."""


class Voice(Protocol):
    """A descriptor that is readable where there is something to hear."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


V = TypeVar("V", bound=Voice)


class Listener(Generic[V]):
    """Used from one thread; whatever the voice does, nothing is raised and nothing waits."""

    def __init__(
        self,
        open_voice: Callable[[], V],
        hear: Callable[[V], None],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Of both, an OSError says that it cannot be heard now."""
        self.trouble: str | None = None
        """Why nothing is heard; None while it is."""
        self._open_voice = open_voice
        self._hear = hear
        self._now_ns = now_ns
        self._voice: V | None = None
        self.again_ns = 0
        """When it is to be listened to next."""

    def fileno(self) -> int | None:
        """To be waited for; None while there is nothing to wait for."""
        if self._now_ns() < self.again_ns:
            return None
        if self._voice is None:
            self._try(self._open)
        return self._voice.fileno() if self._voice is not None else None

    def hear(self) -> None:
        """What there is."""
        voice = self._voice
        if voice is not None:
            self.again_ns = self._now_ns() + BREATH_NS
            self._try(lambda: self._hear(voice))

    def close(self) -> None:
        if self._voice is not None:
            self._voice.close()
            self._voice = None

    def _open(self) -> None:
        self._voice = self._open_voice()
        self.trouble = None

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError as error:
            self._fail(error.strerror or reason_of(error))
        except Exception as error:  # noqa: BLE001 - the one broad handler, that of a source
            traceback.print_exc()
            self._fail(f"it failed: {error!r}")

    def _fail(self, why: str) -> None:
        self.close()
        self.trouble = why
        self.again_ns = self._now_ns() + AGAIN_AFTER_NS
