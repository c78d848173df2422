"""The client's logic without input and output.

A flow is a generator. It yields requests to send and pauses to make, and gets the replies. ``Client`` and
``AsyncClient`` run the same flows.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from .decision import Decision, Held, Intent, complete, decision_of, json_of, result_of
from .errors import AlreadyRedeemed, AnswerError, ConfigError, NoDecision, Pending, WritError, problem_of
from .receipt import Expired, Keys, Receipt, ReceiptError, version_of

if TYPE_CHECKING:
    from ._api import Authorization

T = TypeVar("T")

ATTEMPTS = 3
FIRST_PAUSE = 0.05
#: Bounds the bytes that are read of an answer.
MAX_ANSWER = 8 << 20
#: The longest wait that the server accepts, in seconds.
MAX_POLL = 60

#: The W3C traceparent of the requests that are sent in this context.
traceparent: ContextVar[str] = ContextVar("writ_traceparent", default="")


@dataclass(frozen=True)
class Send:
    """Asks for a request to be sent. ``end`` is a time of ``time.monotonic``."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    end: float


@dataclass(frozen=True)
class Sleep:
    """Asks for a pause."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    """An answer of the server, whole. ``headers`` has names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Failure:
    """Says that there is no answer. If ``sent``, the server may have got the request. ``final`` ends the repetitions."""

    text: str
    sent: bool
    final: bool = False


Flow = Generator[Send | Sleep, Reply | Failure | None, T]


@dataclass
class Answer:
    """A successful answer. ``replayed`` is true if an earlier call than this one was decided."""

    status: int
    body: bytes
    replayed: bool


@dataclass
class Settings:
    """The settings of a client. An empty text is replaced by an environment variable."""

    url: str = ""
    api_key: str = field(default="", repr=False)
    policy_id: str = ""
    agent_id: str = ""
    timeout: float = 2.0
    keys: str | bytes | None = None

    def __post_init__(self) -> None:
        self.url = (self.url or os.environ.get("WRIT_URL", "")).rstrip("/")
        self.api_key = self.api_key or os.environ.get("WRIT_API_KEY", "")
        self.policy_id = self.policy_id or os.environ.get("WRIT_POLICY_ID", "")
        self.agent_id = self.agent_id or os.environ.get("WRIT_AGENT_ID", "")
        if not self.url:
            raise ConfigError("the server is missing: set url or WRIT_URL, such as https://writ.example")
        try:
            at = urlsplit(self.url)
            good = at.scheme in ("http", "https") and bool(at.hostname)
        except ValueError:
            good = False
        if not good:
            raise ConfigError("the server's URL is not an http or https URL with a host: see url or WRIT_URL")
        if at.username is not None or at.query or at.fragment:
            raise ConfigError("the server's URL has a user, a query or a fragment: see url or WRIT_URL")
        if not self.api_key:
            raise ConfigError("the API key is missing: set api_key or WRIT_API_KEY")
        if any(not "!" <= c <= "~" for c in self.api_key):
            raise ConfigError("the API key has a character that no key has: see api_key or WRIT_API_KEY")


class Flows:
    """Makes the flows of a client's methods."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._trusted = None if settings.keys is None else Keys.parse(settings.keys)
        self._keys: Keys | None = None
        self._organization = ""
        self._versions: dict[str, int] = {}  # of policies, as receipts had them

    def headers(self, body: bytes | None) -> dict[str, str]:
        """Returns the headers of a request."""
        headers = {
            "Authorization": f"Bearer {self.settings.api_key}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if body is not None:
            headers["Content-Type"] = "application/json"
        if at := traceparent.get():
            headers["Traceparent"] = at
        return headers

    def hide(self, text: str) -> str:
        """Takes the API key out of a text. A server or a proxy may have echoed it."""
        return text.replace(self.settings.api_key, "[API key]")

    def do(
        self, method: str, path: str, body: Any = None, *, repeats: bool = False, patience: float = 0
    ) -> Flow[Answer]:
        """Sends a request, and again where that is safe and may help. Returns the successful answer."""
        data = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        end = time.monotonic() + self.settings.timeout + patience
        sent, pause = False, FIRST_PAUSE
        for attempt in range(1, ATTEMPTS + 1):
            got = yield Send(method, self.settings.url + path, self.headers(data), data, end)
            after: float | None = 0.0
            error: WritError
            if isinstance(got, Reply):
                if got.status in (200, 201, 204):
                    replayed = got.headers.get("idempotent-replayed") == "true"
                    return Answer(got.status, got.body, replayed and not sent)
                error, after = self.problem(got)
                sent = True
            else:
                assert isinstance(got, Failure)
                error, sent = NoDecision(self.hide(got.text)), sent or got.sent
                after = None if got.final else 0.0
            if after is None or not repeats or attempt == ATTEMPTS:
                break
            wait = max(after, pause / 2 + random.random() * pause)
            if time.monotonic() + wait > end:
                break
            yield Sleep(wait)
            pause *= 2
        raise error

    def read(self, body: bytes) -> Any:
        """Reads the JSON of an answer, without the API key: a server may have echoed it, and errors are logged."""
        try:
            return self._hidden(json_of(body))
        except RecursionError as e:
            raise AnswerError("the answer is nested too deeply") from e

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self._hidden(v) for v in value]
        return {k: self._hidden(v) for k, v in value.items()} if isinstance(value, dict) else value

    def problem(self, reply: Reply) -> tuple[WritError, float | None]:
        """Returns the problem of a reply, and how long to wait before a repetition that may help."""
        try:
            body = self.read(self.hide(reply.body.decode("utf-8", "replace")).encode())
        except AnswerError:
            body = None
        problem = problem_of(reply.status, body, self.hide(reply.headers.get("location", "")))
        if not problem.retryable:
            return problem, None
        seconds = reply.headers.get("retry-after", "")
        return problem, min(float(seconds), 3600.0) if seconds.isascii() and seconds.isdigit() else 0.0

    def json(
        self, method: str, path: str, body: Any = None, *, repeats: bool = False, patience: float = 0
    ) -> Flow[dict[str, Any]]:
        """Is ``do`` for an answer that is a JSON object, or empty."""
        answer = yield from self.do(method, path, body, repeats=repeats, patience=patience)
        if answer.status == 204:
            return {}
        doc = self.read(answer.body)
        if not isinstance(doc, dict):
            raise AnswerError("the answer is not an object")
        return doc

    def evaluate(self, intent: Intent) -> Flow[Decision]:
        whole = complete(intent, self.settings.policy_id, self.settings.agent_id)
        return (yield from self.evaluate_whole(whole, ""))

    def evaluate_whole(self, intent: Intent, approval_id: str) -> Flow[Decision]:
        body: dict[str, Any] = {"policy_id": intent.policy_id, "intent": intent.to_json()}
        if intent.session_id:
            body["session_id"] = intent.session_id
        if approval_id:
            body["approval_id"] = approval_id
        answer = yield from self.do("POST", "/v1/policy/evaluate", body, repeats=True)
        if answer.status != 200:
            raise AnswerError(f"its status is {answer.status}")
        try:
            decision = decision_of(self.read(answer.body), intent, time.time(), answer.replayed)
        except WritError as e:
            raise type(e)(self.hide(str(e))) from None
        yield from self._trust(decision, approval_id)
        return decision

    def _trust(self, decision: Decision, approval_id: str) -> Flow[None]:
        """Raises unless a trusted key has signed the receipt, and the receipt of an allow is of the intent that was sent."""
        if self._trusted is None:
            return
        try:
            self._trusted.verify(decision.receipt)
        except Expired:
            pass  # an expired deny is a deny
        except ReceiptError as e:
            raise AnswerError(f"its receipt does not verify: {e}") from e
        if not decision.allowed:
            return
        intent = decision.intent.signed()
        payload = {
            "approval_id": approval_id.lower(),
            "audit_digest": decision.audit_digest,
            "organization_id": (yield from self._own_organization()),
            "reasons": decision.reasons,
        }
        policy = intent["policy_id"]
        version = version_of(decision.receipt, intent, payload, self._versions.get(policy, 1))
        if not version:
            raise AnswerError("its receipt is of another intent")
        self._versions[policy] = version

    def _own_organization(self) -> Flow[str]:
        """Returns the organization of the client's API key. It asks the server once."""
        if not self._organization:
            own = yield from self.json("GET", "/v1/credential", repeats=True)
            name = own.get("organization_id")
            if not isinstance(name, str) or not name:
                raise AnswerError("the credential has no organization")
            self._organization = name
        return self._organization

    def evaluate_all(self, intents: Sequence[Intent], together: bool) -> Flow[list[Decision | WritError]]:
        whole = [complete(i, self.settings.policy_id, self.settings.agent_id) for i in intents]
        if len({(i.policy_id, i.session_id) for i in whole}) != 1:
            raise ConfigError("a batch has at least one intent, and one policy and session for all")
        body: dict[str, Any] = {"policy_id": whole[0].policy_id, "mode": "all" if together else "each"}
        if whole[0].session_id:
            body["session_id"] = whole[0].session_id
        body["intents"] = [i.to_json() for i in whole]
        answer = yield from self.do("POST", "/v1/policy/evaluate/batch", body, repeats=True)
        doc = self.read(answer.body)
        results = doc.get("results") if isinstance(doc, dict) else None
        if answer.status != 200 or not isinstance(results, list) or len(results) != len(whole):
            raise AnswerError("it has not one result for each intent")
        out: list[Decision | WritError] = []
        for result, intent in zip(results, whole):
            got = result_of(result, intent, time.time())
            if isinstance(got, Decision):
                try:
                    yield from self._trust(got, "")
                except WritError as e:
                    got = e
            out.append(got)
        return out

    def approval(self, approval_id: str, wait: float) -> Flow[dict[str, Any]]:
        seconds = int(min(max(wait, 0), MAX_POLL))
        path = f"/v1/approvals/{quote(approval_id, safe='')}?wait={seconds}"
        doc = yield from self.json("GET", path, repeats=True, patience=seconds)
        if doc.get("approval_id") != approval_id or not isinstance(doc.get("status"), str):
            raise AnswerError("it is about another approval")
        return doc

    def verdict(self, approval_id: str, timeout: float) -> Flow[dict[str, Any]]:
        end = time.monotonic() + timeout
        while True:
            doc = yield from self.approval(approval_id, end - time.monotonic())
            if doc["status"] != "pending" or end - time.monotonic() < 1:
                return doc

    def wait(self, held: Held, timeout: float) -> Flow[Decision]:
        doc = yield from self.verdict(held.approval_id, timeout)
        if doc["status"] == "pending":
            raise Pending(f"approval {held.approval_id} is pending")
        return (yield from self.redeem(held))

    def redeem(self, held: Held) -> Flow[Decision]:
        decision = yield from self.evaluate_whole(held.intent, held.approval_id)
        if decision.id == held.approval_id:
            raise Pending(f"approval {held.approval_id} is pending")
        if decision.replayed and decision.allowed:
            raise AlreadyRedeemed(f"another call has used approval {held.approval_id}")
        return decision

    def record(
        self, decision_id: str, outcome: str, amount_minor: int | None, currency: str, external_ref: str
    ) -> Flow[None]:
        body: dict[str, Any] = {"decision_id": decision_id, "outcome": outcome}
        if amount_minor is not None:
            body["amount_minor"] = amount_minor
        if currency:
            body["currency"] = currency
        if external_ref:
            body["external_ref"] = external_ref
        yield from self.do("POST", "/v1/actions/record", body)

    def open_session(self, ttl: int, narrowed: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        own = {"policy_id": self.settings.policy_id, "agent_id": self.settings.agent_id}
        return (yield from self.json("POST", "/v1/sessions", {**own, **narrowed, "ttl": ttl}))

    def set_status(self, kind: str, name: str, status: Mapping[str, str]) -> Flow[dict[str, Any]]:
        path = {
            "session": f"/v1/sessions/{quote(name, safe='')}",
            "agent": f"/v1/agents/{quote(name, safe='')}/status",
            "approval": f"/v1/approvals/{quote(name, safe='')}",
        }[kind]
        return (yield from self.json("PATCH", path, status))

    def set_organization_status(self, status: str) -> Flow[None]:
        answer = yield from self.json("PATCH", "/v1/organization/status", {"status": status})
        if answer.get("status") != status:
            raise AnswerError(f"it does not say that the organization is {status}")

    def history_page(self, query: Mapping[str, str]) -> Flow[tuple[list[Authorization], str]]:
        doc = yield from self.json("GET", f"/v1/authorizations?{urlencode(query)}", repeats=True)
        rows, cursor = doc.get("data"), doc.get("next_cursor") or ""
        if not isinstance(rows, list) or not isinstance(cursor, str):
            raise AnswerError("it is no page of the history")
        return rows, cursor

    def verify(self, receipt: Receipt) -> Flow[None]:
        keys = self._keys
        if keys is None or receipt.kid not in keys:
            answer = yield from self.do("GET", "/.well-known/jwks.json", repeats=True)
            try:
                keys = Keys.parse(answer.body)
            except ReceiptError as e:
                raise AnswerError(str(e)) from e
            self._keys = keys
        keys.verify(receipt)

