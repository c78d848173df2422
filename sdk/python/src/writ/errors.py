"""The errors of the client. An action must not run after any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class WritError(Exception):
    """Any error of this package."""


class ConfigError(WritError):
    """A setting or a member of an intent is missing or cannot be right."""


class NoDecision(WritError):
    """There is no decision: no answer of a writ server came in time."""


class AnswerError(NoDecision):
    """An answer contradicts itself or is not the answer of a writ server."""


class ExpiredReceipt(NoDecision):
    """The receipt of an allow has expired. The decision must not be acted upon."""


class AlreadyRedeemed(WritError):
    """Another call has used the approval."""


class Pending(WritError):
    """Nobody has decided about a held action yet."""


@dataclass(frozen=True)
class FieldError:
    """Says why a member of a request was refused."""

    field: str
    message: str


class Problem(NoDecision):
    """An answer with another status than success (RFC 9457).

    ``code`` is stable and empty if the answer is no problem document. ``retryable`` says that the same
    request may be sent again. The client has repeated it already where that is safe.
    """

    def __init__(
        self,
        status: int,
        code: str = "",
        detail: str = "",
        *,
        retryable: bool = False,
        request_id: str = "",
        errors: tuple[FieldError, ...] = (),
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.retryable = retryable
        self.request_id = request_id
        self.errors = errors
        text = f"{code or f'status {status}'}: {detail}"
        super().__init__("; ".join([text, *(f"{e.field}: {e.message}" for e in errors)]))


#: The statuses after which the same request may succeed later.
_MAY_PASS = frozenset({408, 425, 429, 502, 503, 504})


def problem_of(status: int, body: Any, location: str) -> Problem:
    """Returns the problem that an answer is. ``body`` is its JSON, or None if it has none."""
    retryable = status in _MAY_PASS
    if not isinstance(body, dict) or not isinstance(body.get("code"), str) or not body["code"]:
        detail = "the answer is no problem document, so it may be that of a proxy"
        if 300 <= status < 400 and location:
            detail = f"the server redirects to {location[:200]!r}, where no API key is sent"
        return Problem(status, detail=detail, retryable=retryable)
    if isinstance(body.get("retryable"), bool):
        retryable = body["retryable"] and (status in _MAY_PASS or status == 500)
    errors = body.get("errors")
    return Problem(
        status,
        body["code"],
        str(body.get("detail", "")),
        retryable=retryable,
        request_id=str(body.get("request_id", "")),
        errors=tuple(
            FieldError(str(e.get("field", "")), str(e.get("message", "")))
            for e in (errors if isinstance(errors, list) else ())
            if isinstance(e, dict)
        ),
    )
