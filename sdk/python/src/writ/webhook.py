"""Verifies webhooks with the library of Standard Webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from .errors import WritError


class BadWebhook(WritError):
    """A webhook that the server did not send, or that is too old."""


def verify_webhook(secret: str, headers: Mapping[str, str], body: str | bytes) -> Any:
    """Returns the event of a webhook, or raises. ``secret`` is that of the webhook, ``whsec_…``."""
    try:
        return Webhook(secret).verify(body, dict(headers))
    except (WebhookVerificationError, ValueError) as e:
        raise BadWebhook(f"the webhook does not verify: {e}") from e
