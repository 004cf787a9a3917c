"""`flapd record`: this node's observations into a file."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO

import msgspec

from flapd.cli.client import NoAgentError, RefusedError, ask, download
from flapd.cli.output import note, print_json
from flapd.cli.target import Target
from flapd.model.errors import FlapdError
from flapd.serve.items import RECORDING_ACTIVE, RECORDING_PATH

_LOOK_EVERY_SECONDS = 0.5


def record(target: Target, into: Path, span: str, as_json: bool) -> int:
    """The exit status; Ctrl-C ends it early, and what was recorded is kept."""
    with _new(into) as file, _ctrl_c() as ctrl_c:
        try:
            _begin(target, into, span)
            note(f"recording into {into} for {span}; Ctrl-C ends it early")
            _follow(target, file, ctrl_c)
        except OSError as error:
            ask([target], RECORDING_PATH, method="DELETE")
            raise FlapdError(f"{into} cannot be written: {error.strerror}") from error
        _tell(into, file.tell(), as_json)
    return 0


class CtrlC:
    """It breaks off nothing halfway; pressed a second time it does."""

    is_pressed = False

    def press(self, _number: int, _frame: FrameType | None) -> None:
        self.is_pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _ctrl_c() -> Iterator[CtrlC]:
    ctrl_c = CtrlC()
    before = signal.signal(signal.SIGINT, ctrl_c.press)
    try:
        yield ctrl_c
    finally:
        signal.signal(signal.SIGINT, before)


def _tell(into: Path, recorded_bytes: int, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.json.encode({"path": str(into), "bytes": recorded_bytes}))
    else:
        note(f"{recorded_bytes} bytes recorded")


def _begin(target: Target, into: Path, span: str) -> None:
    try:
        ask([target], RECORDING_PATH, {"for": span}, "POST")
    except FlapdError:
        into.unlink()
        raise


def _new(path: Path) -> BinaryIO:
    try:
        return path.open("xb")
    except FileExistsError:
        raise FlapdError(f"{path} is there already; name a file that is not") from None
    except OSError as error:
        raise FlapdError(f"{path} cannot be written: {error.strerror}") from None


def _follow(target: Target, file: BinaryIO, ctrl_c: CtrlC) -> None:
    """Until the recording is over and nothing of it is left to fetch."""
    while True:
        if ctrl_c.is_pressed:
            ask([target], RECORDING_PATH, method="DELETE")
            ctrl_c.is_pressed = False
        before = file.tell()
        try:
            headers, pieces = download(target, RECORDING_PATH, {"offset": before})
            file.writelines(pieces)
        except NoAgentError:
            _wait_for_agent(target, ctrl_c)
        except RefusedError:
            # A killed agent cuts off what it had half written, and we may have that already.
            file.seek(0)
            file.truncate()
        else:
            if file.tell() == before and headers.get(RECORDING_ACTIVE) != "1":
                return
            time.sleep(_LOOK_EVERY_SECONDS)


def _wait_for_agent(target: Target, ctrl_c: CtrlC) -> None:
    note("the agent is away; its recording goes on when it is back")
    while not ctrl_c.is_pressed:
        time.sleep(_LOOK_EVERY_SECONDS)
        with suppress(NoAgentError):
            ask([target], RECORDING_PATH)
            return
