"""Intents, decisions and what a decision raises."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from .errors import AnswerError, ConfigError, ExpiredReceipt, WritError
from .receipt import ALLOW, APPROVAL_REQUIRED, Malformed, Receipt, receipt_of, strict_json

if TYPE_CHECKING:
    from .client import AsyncClient, Client


@dataclass(frozen=True)
class Cost:
    """An amount in the smallest unit of a currency, such as cents."""

    amount_minor: int
    currency: str  # ISO 4217, such as EUR


@dataclass(frozen=True)
class Intent:
    """An action that an agent wants to take.

    ``intent_id`` is a UUID of the caller's own. The server decides an intent once: the same intent sent
    again has the same decision. The client fills in ``intent_id``, ``policy_id``, ``agent_id`` and
    ``issued_at`` where they are empty. ``key`` is the caller's own, such as an order's number: it makes the
    ``intent_id``, so a caller that crashed and asks again gets the same decision. A repetition must have the same
    ``issued_at``: without one it is of 1970. Metadata keys that begin with ``fact.`` are the statements of this
    program and not of the agent.
    """

    action_type: str
    resource: str
    cost: Cost | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    intent_id: str = ""
    policy_id: str = ""
    agent_id: str = ""
    issued_at: str = ""  # RFC 3339
    session_id: str = ""
    key: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the members that a request has in its intent, without the session."""
        members: dict[str, Any] = {
            "intent_id": self.intent_id,
            "policy_id": self.policy_id,
            "agent_id": self.agent_id,
            "action_type": self.action_type,
            "resource": self.resource,
        }
        if self.cost is not None:
            members["cost"] = asdict(self.cost)
        if self.metadata:
            members["metadata"] = dict(self.metadata)
        members["issued_at"] = self.issued_at
        return members

    def signed(self) -> dict[str, Any]:
        """Returns the members that a receipt is of, as the server has them."""
        members = {
            **self.to_json(),
            "intent_id": self.intent_id.lower(),
            "policy_id": self.policy_id.lower(),
        }
        if self.session_id:
            members["session_id"] = self.session_id.lower()
        return members


def complete(intent: Intent, policy_id: str, agent_id: str) -> Intent:
    """Fills in the members that the caller left out."""
    policy_id, agent_id = intent.policy_id or policy_id, intent.agent_id or agent_id
    made, at = str(uuid.uuid4()), datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
    if intent.key:
        made, at = keyed(policy_id, agent_id, intent.key), KEYED_AT
    whole = replace(
        intent,
        intent_id=intent.intent_id or made,
        policy_id=policy_id,
        agent_id=agent_id,
        issued_at=intent.issued_at or at,
    )
    if not whole.policy_id:
        raise ConfigError("the intent has no policy: set policy_id or WRIT_POLICY_ID")
    if not whole.agent_id:
        raise ConfigError("the intent has no agent: set agent_id or WRIT_AGENT_ID")
    if not whole.action_type or not whole.resource:
        raise ConfigError("the intent has no action type or no resource")
    return whole


#: The time of an intent with a key, unless the caller gives one.
KEYED_AT = "1970-01-01T00:00:00Z"

_KEYS = uuid.UUID("6f1d2a4e-9c1b-5d0e-8a57-3c6b2f7e9d10")


def keyed(policy_id: str, agent_id: str, key: str) -> str:
    """Returns the id of an intent that is made from a caller's own key."""
    return str(uuid.uuid5(_KEYS, json.dumps([policy_id, agent_id, key], ensure_ascii=False, separators=(",", ":"))))


@dataclass(frozen=True)
class Decision:
    """The decision about an intent. It is true if and only if the action may run."""

    intent: Intent  # as sent, with the members that the client filled in
    id: str
    outcome: str  # allow, deny or approval_required
    reasons: tuple[str, ...]  # a sentence each, behind its code
    receipt: Receipt
    replayed: bool = False  # the intent was decided before
    audit_digest: str = ""  # the digest of the decision's row of the history, if the server says it
    _allowed: bool = field(default=False, repr=False)

    @property
    def allowed(self) -> bool:
        """Whether the action may run."""
        return self._allowed

    def __bool__(self) -> bool:
        return self._allowed

    def explain(self) -> str:
        """Returns the outcome and the reasons in words."""
        return f"{self.outcome} (decision {self.id}): {'; '.join(self.reasons)}"


class Denied(WritError):
    """The action is denied."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        super().__init__(decision.explain())


class Held(WritError):
    """The action waits for an approval. Its id is ``approval_id``.

    ``to_json`` has what another process needs: see ``Client.resume``.
    """

    def __init__(
        self, approval_id: str, intent: Intent, reasons: tuple[str, ...], client: Client | AsyncClient
    ) -> None:
        self.approval_id = approval_id
        self.intent = intent
        self.reasons = reasons
        self._client = client
        super().__init__(f"approval {approval_id} is pending: {'; '.join(reasons)}")

    def to_json(self) -> str:
        """Returns the held action for another process."""
        intent = {**self.intent.to_json(), "session_id": self.intent.session_id}
        return json.dumps({"approval_id": self.approval_id, "intent": intent, "reasons": self.reasons})

    def wait(self, timeout: float) -> Decision:
        """Waits for the verdict, for at most ``timeout`` seconds, and redeems the approval.

        Returns the allow, or raises. It is of a ``Client``; ``wait_async`` is of an ``AsyncClient``.
        """
        from .client import Client

        if not isinstance(self._client, Client):
            raise ConfigError("this action is held by an AsyncClient: await wait_async")
        return self._client.wait(self, timeout)

    async def wait_async(self, timeout: float) -> Decision:
        """``wait`` of an ``AsyncClient``."""
        from .client import AsyncClient

        if not isinstance(self._client, AsyncClient):
            raise ConfigError("this action is held by a Client: call wait")
        return await self._client.wait(self, timeout)


def held_of(text: str, client: Client | AsyncClient) -> Held:
    """Reads what ``Held.to_json`` wrote."""
    try:
        doc = json.loads(text)
        intent = dict(doc["intent"])
        cost = intent.pop("cost", None)
        held = Held(
            str(doc["approval_id"]),
            Intent(**intent, cost=Cost(**cost) if cost else None),
            tuple(map(str, doc["reasons"])),
            client,
        )
    except (ValueError, TypeError, KeyError) as e:
        raise ConfigError("a held action has approval_id, intent and reasons, as to_json wrote them") from e
    if not held.approval_id or not held.intent.intent_id:
        raise ConfigError("a held action has an approval_id and an intent with its intent_id")
    return held


def decision_of(body: Any, intent: Intent, now: float, replayed: bool = False) -> Decision:
    """Reads the answer of an evaluation. The answer cannot claim more than its receipt."""
    names = {"ok", "approved", "decision", "reasons", "decision_id", "audit_digest", "receipt"}
    required = names - {"decision", "audit_digest"}
    if not isinstance(body, dict) or not required <= set(body) <= names:
        raise AnswerError("the answer has other members than that of an evaluation")
    try:
        receipt = receipt_of(body["receipt"])
    except Malformed as e:
        raise AnswerError(str(e)) from e
    reasons = body["reasons"]
    if not isinstance(reasons, list) or not all(isinstance(r, str) for r in reasons):
        raise AnswerError("reasons is not a list of texts")
    if not isinstance(body.get("audit_digest", ""), str):
        raise AnswerError("audit_digest is not a text")
    if body["ok"] is not True:
        raise AnswerError("ok is not true beside a receipt")
    if body["decision_id"] != receipt.decision_id:
        raise AnswerError("decision_id is not the receipt's")
    if body.get("decision", receipt.decision) != receipt.decision:
        raise AnswerError("decision is not the receipt's")
    if body["approved"] is not (receipt.decision == ALLOW):
        raise AnswerError("approved is not what the receipt says")
    allowed = receipt.decision == ALLOW
    if allowed and now >= receipt.exp:
        raise ExpiredReceipt(f"the receipt of decision {receipt.decision_id} has expired")
    return Decision(
        intent,
        receipt.decision_id,
        receipt.decision,
        tuple(reasons),
        receipt,
        replayed,
        body.get("audit_digest", ""),
        allowed,
    )


def raise_unless_allowed(decision: Decision, client: Client | AsyncClient) -> Decision:
    """Returns an allow. Raises for all else."""
    if decision:
        return decision
    if decision.outcome == APPROVAL_REQUIRED:
        raise Held(decision.id, decision.intent, decision.reasons, client)
    raise Denied(decision)


def result_of(body: Any, intent: Intent, now: float) -> Decision | WritError:
    """Reads a result of a batch."""
    from .errors import problem_of

    if isinstance(body, dict) and isinstance(body.get("code"), str):
        status = body.get("status")
        return problem_of(status if type(status) is int else 0, body, "")
    try:
        return decision_of(body, intent, now)
    except WritError as e:
        return e


def json_of(body: bytes) -> Any:
    """Reads the JSON of an answer."""
    try:
        return strict_json(body)
    except Malformed as e:
        raise AnswerError(str(e)) from e
