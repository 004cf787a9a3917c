"""ApiError: an answer that says what was wrong with the question."""

from http import HTTPStatus
from typing import Literal

import msgspec

from flapd.model.errors import FlapdError

Code = Literal[
    "bad_parameter", "unauthorized", "not_found", "method_not_allowed", "too_many", "unavailable"
]

STATUS: dict[Code, HTTPStatus] = {
    "bad_parameter": HTTPStatus.BAD_REQUEST,
    "unauthorized": HTTPStatus.UNAUTHORIZED,
    "not_found": HTTPStatus.NOT_FOUND,
    "method_not_allowed": HTTPStatus.METHOD_NOT_ALLOWED,
    "too_many": HTTPStatus.TOO_MANY_REQUESTS,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
}


class ErrorBody(msgspec.Struct, frozen=True):
    code: str
    message: str
    parameter: str | None


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The one form of every answer that is an error."""

    error: ErrorBody
    reasons: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Only of /readyz."""


class ApiError(FlapdError):
    """Ends a request with this code; `parameter` names what was wrong in the question."""

    def __init__(self, code: Code, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.parameter = parameter


def error_body(code: Code, message: str, parameter: str | None = None) -> bytes:
    return msgspec.json.encode(ErrorAnswer(ErrorBody(code, message, parameter)))
