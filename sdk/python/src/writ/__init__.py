"""Ask a writ server whether an agent's action may proceed, before the action happens.

    client = writ.Client()  # WRIT_URL, WRIT_API_KEY, WRIT_POLICY_ID, WRIT_AGENT_ID
    client.require(writ.Intent("payment.refund", "https://api.example/refunds"))
    # the action runs here

``require`` returns for an allow alone. ``evaluate`` also returns decisions that are not allowed; they are
false. Every failure raises. A server decides an intent once, so the client may safely repeat a request: it
sends the same bytes at most three times and gives up after ``timeout`` in all. Redirects are not followed.
"""

from typing import TYPE_CHECKING

from ._flow import traceparent
from ._stream import Event
from .client import AsyncClient, Client, current
from .decision import Cost, Decision, Denied, Held, Intent
from .errors import (
    AlreadyRedeemed,
    AnswerError,
    ConfigError,
    ExpiredReceipt,
    FieldError,
    NoDecision,
    Pending,
    Problem,
    WritError,
)
from .provenance import Provenance
from .receipt import BadSignature, Expired, Keys, Malformed, Receipt, ReceiptError, UnknownKey
from .webhook import BadWebhook, verify_webhook

if TYPE_CHECKING:  # what the server sends, for annotations
    from ._api import Approval as Approval
    from ._api import Authorization as Authorization
    from ._api import Credential as Credential
    from ._api import Session as Session

__all__ = [
    "AlreadyRedeemed",
    "AnswerError",
    "AsyncClient",
    "BadSignature",
    "BadWebhook",
    "Client",
    "ConfigError",
    "Cost",
    "Decision",
    "Denied",
    "Event",
    "Expired",
    "ExpiredReceipt",
    "FieldError",
    "Held",
    "Intent",
    "Keys",
    "Malformed",
    "NoDecision",
    "Pending",
    "Problem",
    "Provenance",
    "Receipt",
    "ReceiptError",
    "UnknownKey",
    "WritError",
    "current",
    "traceparent",
    "verify_webhook",
]
