import os
from errno import ENOENT

import pytest

from flapd.sources.listener import AGAIN_AFTER_NS, BREATH_NS, Listener


class Pipe:
    """A voice that is a pipe."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.is_closed = False

    def fileno(self) -> int:
        return self.reading

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)
        self.is_closed = True


class Hearing:
    """A listener, its clock, and what becomes of what it does."""

    def __init__(self) -> None:
        self.now_ns = 1
        self.opened: list[Pipe] = []
        self.heard: list[bytes] = []
        self.refuses: Exception | None = None
        self.fails: Exception | None = None
        self.listener = Listener(self._open, self._hear, lambda: self.now_ns)

    def _open(self) -> Pipe:
        if self.refuses is not None:
            raise self.refuses
        self.opened.append(Pipe())
        return self.opened[-1]

    def _hear(self, pipe: Pipe) -> None:
        if self.fails is not None:
            raise self.fails
        self.heard.append(os.read(pipe.reading, 100))

    def say(self, what: bytes) -> None:
        os.write(self.opened[-1].writing, what)


def test_a_voice_is_opened_when_it_is_waited_for_and_heard_in_parts() -> None:
    hearing = Hearing()
    assert hearing.listener.fileno() == hearing.opened[0].reading
    hearing.say(b"one")

    hearing.listener.hear()

    assert hearing.heard == [b"one"]
    assert hearing.listener.fileno() is None
    hearing.now_ns += BREATH_NS
    assert hearing.listener.fileno() == hearing.opened[0].reading
    hearing.listener.close()


@pytest.mark.parametrize(
    ("failure", "trouble"),
    [
        (OSError(ENOENT, "there is none"), "there is none"),
        (ValueError("odd"), "it failed: ValueError('odd')"),
    ],
)
@pytest.mark.parametrize("when", ["refuses", "fails"])
def test_a_voice_that_fails_raises_nothing_and_is_opened_again_later(
    failure: Exception, trouble: str, when: str
) -> None:
    hearing = Hearing()
    setattr(hearing, when, failure)
    hearing.listener.fileno()

    hearing.listener.hear()

    assert trouble in (hearing.listener.trouble or "")
    assert all(pipe.is_closed for pipe in hearing.opened)
    hearing.now_ns += AGAIN_AFTER_NS - 1
    assert hearing.listener.fileno() is None
    hearing.refuses = hearing.fails = None
    hearing.now_ns += 1 + BREATH_NS
    assert hearing.listener.fileno() is not None
    assert hearing.listener.trouble is None
    hearing.listener.close()
