"""Target: where an agent is asked: its Unix socket or a URL, with the token it may want."""

import http.client
import socket
import ssl
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from flapd.config import Config
from flapd.model.errors import FlapdError
from flapd.serve.settings import parse_listen
from flapd.serve.token_file import read_token

TIMEOUT_SECONDS = 5.0

_END_OF_PEM = "-----END CERTIFICATE-----"
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - turned into what can be asked


class CertificateError(OSError):
    """What the agent would show is not known, so nobody can be told from it."""


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
    certificate: str | None = None
    """A file with the very certificate that it must show; None = any that is good for its name."""

    def __str__(self) -> str:
        return self.url

    def connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host, port = str(parts.hostname), parts.port
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        context = None if self.certificate is None else _only(self.certificate)
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=context)

    def prefix(self) -> str:
        return urlsplit(self.url).path.rstrip("/")

    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


Target = SocketTarget | UrlTarget


def _only(certificate: str) -> ssl.SSLContext:
    """Trusts the first certificate in a file, whatever name it is for.

    No certificate is for a loopback address; who has the agent's key is the agent.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        # Alone: whom its issuers certify otherwise is somebody else.
        own, end, _ = Path(certificate).read_text(encoding="ascii").partition(_END_OF_PEM)
        context.load_verify_locations(cadata=own + end)
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or "no PEM"
        raise CertificateError(f"http.tls_cert {certificate} cannot be used: {why}") from None
    return context


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


def token_in(path: Path) -> str:
    """The token in a file; raises FlapdError where there is none."""
    try:
        return read_token(path).decode("ascii")
    except FlapdError as error:
        raise FlapdError(f"--token-file {path}: {error}") from None


def local_targets(config: Config, token: str | None = None) -> list[Target]:
    """The socket, then the loopback address of what the agent listens on, by TLS where it does."""
    targets: list[Target] = [SocketTarget(Path(config.paths.socket))]
    listen = parse_listen(config.http.listen)
    if listen is not None:
        host, port = listen
        written = f"[{host}]" if ":" in host else host
        address = f"{_LOOPBACK.get(host, written)}:{port}"
        certificate = config.http.tls_cert or None
        scheme = "http" if certificate is None else "https"
        targets.append(UrlTarget(f"{scheme}://{address}", token, certificate))
    return targets
