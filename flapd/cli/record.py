"""`flapd record`: this node's observations into a file."""

import time
from contextlib import suppress
from pathlib import Path
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
    with _new(into) as file:
        try:
            _begin(target, into, span)
            note(f"recording into {into} for {span}; Ctrl-C ends it early")
            _follow(target, file)
        except KeyboardInterrupt:
            ask([target], RECORDING_PATH, method="DELETE")
            _follow(target, file)
        except OSError as error:
            ask([target], RECORDING_PATH, method="DELETE")
            raise FlapdError(f"{into} cannot be written: {error.strerror}") from error
        _tell(into, file.tell(), as_json)
    return 0


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


def _follow(target: Target, file: BinaryIO) -> None:
    """Until the recording is over and nothing of it is left to fetch."""
    while True:
        before = file.tell()
        try:
            headers, pieces = download(target, RECORDING_PATH, {"offset": before})
            file.writelines(pieces)
        except NoAgentError:
            _wait_for_agent(target)
        except RefusedError:
            # A killed agent cuts off what it had half written, and we may have that already.
            file.seek(0)
            file.truncate()
        else:
            if file.tell() == before and headers.get(RECORDING_ACTIVE) != "1":
                return
            time.sleep(_LOOK_EVERY_SECONDS)


def _wait_for_agent(target: Target) -> None:
    note("the agent is away; its recording goes on when it is back")
    while True:
        time.sleep(_LOOK_EVERY_SECONDS)
        with suppress(NoAgentError):
            ask([target], RECORDING_PATH)
            return
