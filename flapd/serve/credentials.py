"""Credentials: the files that say who may read, and those that make TLS; read again on change."""

import ssl
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import structlog

from flapd.model.errors import FlapdError
from flapd.serve.settings import HttpSettings
from flapd.serve.token_file import read_token

_log = structlog.get_logger()

_Stamp = tuple[int, int, int]


class CredentialFault(NamedTuple):
    """One thing wrong with a setting of `http`: which, as it is, and what would be right."""

    key: str
    value: str
    right: str

    def __str__(self) -> str:
        return f'http.{self.key} = "{self.value}": {self.right}'


def credential_faults(settings: HttpSettings) -> Iterator[CredentialFault]:
    """What keeps the files that `settings` name from being used, as they are now."""
    if settings.token_file:
        try:
            read_token(Path(settings.token_file))
        except FlapdError as error:
            yield CredentialFault("token_file", settings.token_file, str(error))
    if settings.tls_key and not settings.tls_cert:
        yield CredentialFault("tls_key", settings.tls_key, "needs http.tls_cert beside it")
    if settings.client_ca and not settings.tls_cert:
        yield CredentialFault("client_ca", settings.client_ca, "needs http.tls_cert beside it")
    if settings.tls_cert:
        yield from _tls_faults(settings)


def _tls_faults(settings: HttpSettings) -> Iterator[CredentialFault]:
    files = {
        "tls_cert": settings.tls_cert,
        "tls_key": settings.tls_key,
        "client_ca": settings.client_ca,
    }
    unreadable = [
        CredentialFault(key, path, why)
        for key, path in files.items()
        if path and (why := _unreadable(path)) is not None
    ]
    yield from unreadable
    if not unreadable:
        try:
            tls_context(settings)
        except UnusableFileError as error:
            yield CredentialFault(error.key, files[error.key], str(error))


def _unreadable(path: str) -> str | None:
    try:
        with Path(path).open("rb"):
            return None
    except OSError as error:
        return f"cannot be read: {error.strerror}"


class UnusableFileError(FlapdError):
    """The file of this key is not what it should be."""

    def __init__(self, key: str, right: str, error: OSError) -> None:
        why = getattr(error, "reason", None) or error.strerror
        super().__init__(f"{right} would be right ({why})")
        self.key = key


def tls_context(settings: HttpSettings) -> ssl.SSLContext:
    """TLS 1.2 or later; a client may show a certificate, and one that is not valid is refused.

    UnusableFileError where a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # With a password given, a key that needs one is an error and no question to a terminal.
        context.load_cert_chain(settings.tls_cert, settings.tls_key or None, password="")
    except OSError as error:
        right = "a PEM certificate with its chain, and its unencrypted key in http.tls_key or there"
        raise UnusableFileError("tls_cert", right, error) from error
    if settings.client_ca:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(settings.client_ca)
        except OSError as error:
            right = "PEM certificates of those who certify clients"
            raise UnusableFileError("client_ca", right, error) from error
    return context


class TokenFile:
    """The token in a file, as it is now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: _Stamp | None = None
        self._token: bytes | None = None

    def token(self) -> bytes | None:
        """None where the file has none now: then nobody has the right one."""
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._token = self._read()
            self._stamp = stamp
        return self._token

    def _read(self) -> bytes | None:
        try:
            token = read_token(self._path)
        except FlapdError as error:
            _log.error("token_file_unusable", path=str(self._path), error=str(error))
            return None
        if _is_readable_by_all(self._path):
            _log.warning("token_file_readable_by_all", path=str(self._path))
        return token


class Certificates:
    """The TLS context of files that are renewed while the agent runs."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._paths = [
            Path(path) for path in (settings.tls_cert, settings.tls_key, settings.client_ca) if path
        ]
        self._stamps = self._now()

    def context(self) -> ssl.SSLContext | None:
        """None where no certificate is set; FlapdError where it cannot be used."""
        return tls_context(self._settings) if self._paths else None

    def renewed(self) -> ssl.SSLContext | None:
        """A context of what the files hold now; None where nothing changed that can be used."""
        stamps = self._now()
        if stamps == self._stamps:
            return None
        self._stamps = stamps
        try:
            context = self.context()
        except FlapdError as error:
            _log.error("tls_files_unusable", cert=self._settings.tls_cert, error=str(error))
            return None
        _log.info("tls_files_renewed", cert=self._settings.tls_cert)
        return context

    def _now(self) -> list[_Stamp | None]:
        return [_stamp(path) for path in self._paths]


def _is_readable_by_all(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
