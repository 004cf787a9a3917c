"""FileReading: reads files of one port into the draft of its next sample.

The raw bytes are compared before anything is parsed: most files have not moved.
"""

from collections import Counter
from collections.abc import Sequence
from os import pread

from flapd.core.fabric.parse import UnreadableError
from flapd.sources.files import reason_of
from flapd.sources.port_file import LONGEST_VALUE_BYTES, REREGISTERED, PortFile
from flapd.sources.sample_draft import SampleDraft


class FileReading:
    """Used from one thread at a time."""

    def __init__(self, draft: SampleDraft) -> None:
        self.began_ns = 0
        """When the present sweep began."""
        self.failures: Counter[str] = Counter()
        """Reads that failed so far, by reason."""
        self._draft = draft

    def read(self, files: Sequence[PortFile]) -> None:
        """Nearly all of what the sampler does is this loop."""
        read = pread
        for file in files:
            try:
                raw = read(file.fd, LONGEST_VALUE_BYTES, 0)
            except OSError as error:
                self._not_read(file, error)
            else:
                if raw != file.raw:
                    self.moved(file, raw)

    def moved(self, file: PortFile, raw: bytes) -> None:
        """It holds something else than before."""
        try:
            values = file.parse(raw)
        except UnreadableError as error:
            self._failed(file, str(error), "not understood")
            return
        file.gave(raw)
        self._draft.know(values)

    def _not_read(self, file: PortFile, error: OSError) -> None:
        """It is not open, or fails."""
        if file.fd < 0:
            if file.must_wait(self.began_ns) or self._is_untold(file):
                return
            try:
                raw = file.read()
            except OSError as on_opening:
                error = on_opening
            else:
                self.moved(file, raw)
                return
        self._failed(file, reason_of(error), reason_of(error))

    def _is_untold(self, file: PortFile) -> bool:
        """A new registration is told before what is read after it."""
        return self._draft.must_tell(file.name, REREGISTERED)

    def _failed(self, file: PortFile, error: str, reason: str) -> None:
        self.failures[reason] += 1
        is_news = file.error != error
        file.failed(error, self.began_ns)
        if is_news:
            self._draft.lose(file.value_names, error)
