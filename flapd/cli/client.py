"""Client: one question to an agent, over its Unix socket or a URL, by http.client alone."""

import http.client
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec

from flapd.cli.answers import ErrorAnswer
from flapd.config import Config
from flapd.model.errors import CouldNotFindOutError, FlapdError
from flapd.serve.settings import parse_listen

TIMEOUT_SECONDS = 5.0
LARGEST_BYTES = 64 << 20
LONGEST_TOKEN_BYTES = 4096

_PIECE_BYTES = 64 << 10
_NO_ANSWER = (OSError, http.client.HTTPException)

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - turned into what can be asked


class NoAgentError(CouldNotFindOutError):
    """Nobody answers at any of the places tried."""


class RefusedError(FlapdError):
    """The agent says that the question was wrong."""


class NotServedError(CouldNotFindOutError):
    """There is nothing at this path: another place or another version of flapd may have it."""


class UnavailableError(CouldNotFindOutError):
    """The agent cannot answer this now, and says why."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("flapd", timeout=TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class SocketTarget(NamedTuple):
    """An agent on this node."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def connection(self) -> http.client.HTTPConnection:
        return _UnixConnection(self.path)

    def prefix(self) -> str:
        return ""

    def headers(self) -> dict[str, str]:
        return {}


class UrlTarget(NamedTuple):
    """An agent somewhere, and the token it may want."""

    url: str
    token: str | None = None

    def __str__(self) -> str:
        return self.url

    def connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        return kind(str(parts.hostname), parts.port, timeout=TIMEOUT_SECONDS)

    def prefix(self) -> str:
        return urlsplit(self.url).path.rstrip("/")

    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


Target = SocketTarget | UrlTarget


def url_target(url: str, token: str | None = None) -> UrlTarget:
    """Raises FlapdError where it is no http or https URL, or one with a password in it."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        usable = usable and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable():
        raise FlapdError(
            f"--url {_without_secret(url)}: a URL such as http://node17:19315 would be right"
        )
    return UrlTarget(url, token)


def _without_secret(url: str) -> str:
    return url.rpartition("@")[2] if "@" in url else url


def read_token(path: Path) -> str:
    """The token in a file; raises FlapdError where there is none."""
    try:
        token = path.read_bytes()[:LONGEST_TOKEN_BYTES].decode("ascii").strip()
    except OSError as error:
        raise FlapdError(f"--token-file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable():
        raise FlapdError(f"--token-file {path}: a file that holds one line, the token, is right")
    return token


def local_targets(config: Config, token: str | None = None) -> list[Target]:
    """The socket, then the loopback address of what the agent listens on."""
    targets: list[Target] = [SocketTarget(Path(config.paths.socket))]
    listen = parse_listen(config.http.listen)
    if listen is not None:
        host, port = listen
        written = f"[{host}]" if ":" in host else host
        targets.append(UrlTarget(f"http://{_LOOPBACK.get(host, written)}:{port}", token))
    return targets


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
    for target in targets:
        try:
            exchanged = _exchange(target, method, _with_query(path, parameters), body)
            return _whole(target, *exchanged)
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


def _pieces(
    target: Target, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
) -> Iterator[bytes]:
    try:
        while piece := response.read(_PIECE_BYTES):
            yield piece
    except _NO_ANSWER as error:
        raise _nobody([f"{target} ({_reason(error)})"]) from None
    finally:
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
    if isinstance(error, PermissionError):
        return "you may not use it: root and members of the group flapd may"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "not an answer of HTTP"


def _exchange(
    target: Target, method: str, path: str, body: bytes | None = None
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """A success whose body is still to be read."""
    with ExitStack() as on_failure:
        connection = on_failure.enter_context(closing(target.connection()))
        connection.request(method, target.prefix() + path, body, target.headers())
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise _refusal(target, response.status, response.read(LARGEST_BYTES))
        on_failure.pop_all()
    return connection, response


def _whole(
    target: Target, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
) -> bytes:
    with closing(connection):
        body = response.read(LARGEST_BYTES + 1)
    if len(body) > LARGEST_BYTES:
        raise CouldNotFindOutError(f"{target} answers with more than 64 MiB; ask for less")
    return body


def _refusal(target: Target, status: int, body: bytes) -> FlapdError:
    try:
        error = msgspec.json.decode(body, type=ErrorAnswer).error
    except msgspec.MsgspecError:
        return CouldNotFindOutError(f"{target} answers {status}, not as flapd does")
    if error.code == "bad_parameter" or (error.code == "not_found" and error.parameter):
        return RefusedError(error.message)
    return _REFUSALS.get(error.code, CouldNotFindOutError)(error.message)


_REFUSALS = {"not_found": NotServedError, "unavailable": UnavailableError}
