"""SampleDraft: what a port's next sample will say, which is what differs from the last one told."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from flapd.model.observation import READ_CARRIER, Sample


class Sweep(msgspec.Struct, frozen=True):
    """One reading of one tier: everything in it was read between these moments."""

    before_ns: int
    after_ns: int
    reads: int


class SampleDraft:
    """Of one port; used from one thread at a time."""

    def __init__(self, key: str, of_link: Collection[str]) -> None:
        """`of_link` are the values that tell of the link."""
        self.values: dict[str, int] = {}
        """Present value of everything that can be read."""
        self.has_link_news = True
        """Something that was not told yet is of the link, or is an error."""
        self._key = key
        self._of_link = frozenset(of_link)
        self._values: dict[str, int] = {}
        self._errors: dict[str, str] = {}
        self._reads = 0
        self._since_ns: int | None = None

    def know(self, values: Mapping[str, int]) -> None:
        """These were read."""
        for name, value in values.items():
            if self.values.get(name) != value:
                self.values[name] = self._values[name] = value
                self._errors.pop(name, None)
                self.has_link_news |= name in self._of_link

    def lose(self, names: Iterable[str], error: str) -> None:
        """These cannot be read any more, which is news."""
        self.has_link_news = True
        for name in names:
            self.values.pop(name, None)
            self._values.pop(name, None)
            self._errors[name] = error

    def lose_all(self, prefix: str, error: str) -> None:
        """Those of this directory that are known."""
        if known := [name for name in self.values if name.startswith(prefix)]:
            self.lose(known, error)

    def must_tell(self, name: str, error: str) -> bool:
        """It was lost by this error, and nobody was told."""
        return self._errors.get(name) == error

    def sample(self, sweep: Sweep) -> Sample:
        """What this sweep and those before it that could not be sent have to tell.

        Whether the carrier fits its counts is true of one sweep alone.
        """
        self._reads = sweep.reads | (self._reads & ~READ_CARRIER)
        if self._since_ns is None:
            self._since_ns = sweep.before_ns
        return Sample(
            key=self._key,
            before_ns=self._since_ns,
            after_ns=sweep.after_ns,
            reads=self._reads,
            values=self._values,
            errors=self._errors,
        )

    def sent(self) -> None:
        """The last sample has arrived: from now on only what differs from it is told."""
        self._values, self._errors = {}, {}
        self._reads, self._since_ns = 0, None
        self.has_link_news = False
