"""Client: one question to an agent, by http.client alone."""

import http.client
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from urllib.parse import urlencode

import msgspec

from flapd.cli.answers import ErrorAnswer, ErrorBody
from flapd.cli.target import TIMEOUT_SECONDS, CertificateError, Target
from flapd.cli.within import SlowError, within
from flapd.model.errors import CouldNotFindOutError, FlapdError

LARGEST_BYTES = 64 << 20
WITHIN_SECONDS = 10.0
"""An answer is whole by then, however many pieces it comes in."""

_PIECE_BYTES = 64 << 10
_LONGEST_LINE_BYTES = 1 << 20
_NO_ANSWER = (OSError, http.client.HTTPException, SlowError)


class NoAgentError(CouldNotFindOutError):
    """Nobody answers at any of the places tried."""


class RefusedError(FlapdError):
    """The agent says that the question was wrong."""


class NotServedError(CouldNotFindOutError):
    """There is nothing at this path: another place or another version of flapd may have it."""


class UnavailableError(CouldNotFindOutError):
    """The agent cannot answer this now, and says why."""


def ask(
    targets: Sequence[Target],
    path: str,
    parameters: Mapping[str, str | int] | None = None,
    method: str = "GET",
    body: bytes | None = None,
) -> bytes:
    """The body of the first answer that there is; `body` is JSON that goes with the question.

    FlapdError where the question was wrong, CouldNotFindOutError where it has no answer,
    NoAgentError where nobody is there.
    """
    missed = []
    asked = _with_query(path, parameters)
    for target in targets:
        try:
            return within(WITHIN_SECONDS, partial(_answer, target, method, asked, body))
        except _NO_ANSWER as error:
            missed.append(f"{target} ({_reason(error)})")
    raise _nobody(missed)


def download(
    target: Target, path: str, parameters: Mapping[str, str | int]
) -> tuple[Mapping[str, str], Iterator[bytes]]:
    """Headers, and a body of any length in pieces; raises as `ask` does."""
    try:
        connection, response = _exchange(target, "GET", _with_query(path, parameters))
    except _NO_ANSWER as error:
        raise _nobody([f"{target} ({_reason(error)})"]) from None
    return dict(response.headers.items()), _pieces(target, connection, response)


def follow(targets: Sequence[Target], path: str, quiet_seconds: float) -> Iterator[bytes]:
    """Lines of an answer without end, as they come, the first "" as soon as there is an answer.

    Raises as `ask` does, also where nothing came for `quiet_seconds`.
    """
    missed = []
    for target in targets:
        try:
            connection, response = _exchange(target, "GET", path, quiet_seconds=quiet_seconds)
        except _NO_ANSWER as error:
            missed.append(f"{target} ({_reason(error)})")
            continue
        with closing(connection), response:
            yield b""
            yield from _lines(target, response)
        return
    raise _nobody(missed)


def _lines(target: Target, response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while line := response.readline(_LONGEST_LINE_BYTES):
            yield line
    except _NO_ANSWER as error:
        raise _nobody([f"{target} ({_reason(error)})"]) from None


def _pieces(
    target: Target, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
) -> Iterator[bytes]:
    try:
        while piece := response.read(_PIECE_BYTES):
            yield piece
    except _NO_ANSWER as error:
        raise _nobody([f"{target} ({_reason(error)})"]) from None
    finally:
        response.close()
        connection.close()


def _nobody(missed: Sequence[str]) -> NoAgentError:
    return NoAgentError(
        f"no agent answers: tried {' and '.join(missed)}; is `flapd run` or its service running?"
    )


def _with_query(path: str, parameters: Mapping[str, str | int] | None) -> str:
    return f"{path}?{urlencode(parameters)}" if parameters else path


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_SECONDS:g} s"
    if isinstance(error, (CertificateError, SlowError)):
        return str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, PermissionError):
        return "you may not use it: root and members of the group flapd may"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "not an answer of HTTP"


def _exchange(
    target: Target,
    method: str,
    path: str,
    body: bytes | None = None,
    quiet_seconds: float = TIMEOUT_SECONDS,
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """A success whose body is still to be read."""
    with ExitStack() as on_failure:
        connection = on_failure.enter_context(closing(target.connection()))
        connection.timeout = quiet_seconds
        connection.request(method, target.prefix() + path, body, target.headers())
        response = on_failure.enter_context(connection.getresponse())
        if response.status != http.client.OK:
            raise _refusal(target, response.status, response.read(LARGEST_BYTES))
        on_failure.pop_all()
    return connection, response


def _answer(target: Target, method: str, path: str, body: bytes | None) -> bytes:
    connection, response = _exchange(target, method, path, body)
    with closing(connection), response:
        answer = response.read(LARGEST_BYTES + 1)
    if len(answer) > LARGEST_BYTES:
        raise CouldNotFindOutError(f"{target} answers with more than 64 MiB; ask for less")
    return answer


def _refusal(target: Target, status: int, body: bytes) -> FlapdError:
    try:
        error = msgspec.json.decode(body, type=ErrorAnswer).error
    except (msgspec.MsgspecError, RecursionError):
        return CouldNotFindOutError(f"{target} answers {status}, not as flapd does")
    if error.code == "bad_parameter" or (error.code == "not_found" and error.parameter):
        return RefusedError(_of_option(error))
    return _REFUSALS.get(error.code, CouldNotFindOutError)(error.message)


def _of_option(error: ErrorBody) -> str:
    """The sentence, about the option by which the parameter was given."""
    right = error.message.removeprefix(f"{error.parameter}: ")
    if right == error.message or error.parameter is None:
        return error.message
    option = _OPTIONS.get(error.parameter, error.parameter.replace("_", "-"))
    return f"--{option}: {right}"


_OPTIONS = {"for_seconds": "for"}
_REFUSALS = {"not_found": NotServedError, "unavailable": UnavailableError}
