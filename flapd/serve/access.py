"""Gate: who may read what belongs to jobs."""

import base64
import binascii
import hmac
from pathlib import Path

from aiohttp import hdrs, web

from flapd.serve.credentials import TokenFile
from flapd.serve.errors import ApiError
from flapd.serve.settings import HttpSettings

CHALLENGES = ('Bearer realm="flapd"', 'Basic realm="flapd", charset="UTF-8"')
"""Of a 401: a browser asks for a password on the second."""


class Gate:
    """What lies behind one listener, and for whom."""

    def __init__(self, settings: HttpSettings, *, local: bool) -> None:
        """`local`: who may use the Unix socket may read everything."""
        self._is_open = local or settings.open
        self._token_file = TokenFile(Path(settings.token_file)) if settings.token_file else None

    def admits(self, request: web.Request) -> bool:
        """Whether who asks may see jobs; ApiError where the token shown is not the right one."""
        if self._is_open or _has_certificate(request):
            return True
        shown = _shown_token(request.headers.get(hdrs.AUTHORIZATION, ""))
        if shown is None or self._token_file is None:
            return False
        token = self._token_file.token()
        if token is None or not hmac.compare_digest(shown, token):
            raise ApiError("unauthorized", "the token shown is not the one in http.token_file")
        return True

    def refusal(self) -> ApiError:
        ways = "" if self._token_file is not None else "; no http.token_file is set"
        return ApiError(
            "unauthorized",
            "this belongs to jobs: show the token of http.token_file or a client certificate of "
            f"http.client_ca, or set http.open{ways}",
        )


def _has_certificate(request: web.Request) -> bool:
    """TLS has verified it, or there would be no request."""
    transport = request.transport
    return transport is not None and bool(transport.get_extra_info("peercert"))


def _shown_token(authorization: str) -> bytes | None:
    """Of `Bearer`, or the password of `Basic`; None where neither is shown."""
    scheme, _, credentials = authorization.partition(" ")
    raw = credentials.strip().encode(errors="surrogateescape")
    if scheme.lower() == "bearer":
        return raw
    if scheme.lower() != "basic":
        return None
    try:
        _user, _, password = base64.b64decode(raw, validate=True).partition(b":")
    except binascii.Error:
        return b""
    return password
