"""The clients. ``Client`` blocks, ``AsyncClient`` awaits. Both have the same methods."""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import anyio
import httpx

from ._flow import Failure, Flow, Flows, Reply, Settings, Sleep
from ._http import BlockingHttp, Http
from ._stream import Event, close, follow, next_of
from .decision import Cost, Decision, Held, Intent, held_of, raise_unless_allowed
from .errors import ConfigError, Pending, WritError
from .receipt import Receipt

if TYPE_CHECKING:
    from ._api import Approval, Authorization, Credential, Session

P = ParamSpec("P")
T = TypeVar("T")

#: The decision under which a guarded function runs. It is None outside a guarded function.
current: ContextVar[Decision | None] = ContextVar("writ_current", default=None)


class _Common:
    def __init__(
        self,
        url: str = "",
        api_key: str = "",
        policy_id: str = "",
        agent_id: str = "",
        *,
        timeout: float = 2.0,
        keys: str | bytes | None = None,
    ) -> None:
        self._flows = Flows(Settings(url, api_key, policy_id, agent_id, timeout, keys))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._flows.settings.url!r})"

    def _intent_of(
        self,
        call: Callable[[Any], Any],
        action_type: Any,
        resource: Any,
        cost: Any,
        metadata: Any,
        key: Any,
        issued_at: Any,
    ) -> Intent:
        own = call(key)
        if own is not None and (not isinstance(own, str) or not own):
            raise ConfigError("key= is not a text, or it is empty")
        return Intent(
            call(action_type),
            call(resource),
            call(cost),
            call(metadata) or {},
            issued_at=call(issued_at) or "",
            key=own or "",
        )


class Client(_Common):
    """Calls a writ server. It is safe for concurrent use by threads.

    Settings that are empty are read from WRIT_URL, WRIT_API_KEY, WRIT_POLICY_ID and WRIT_AGENT_ID.
    ``timeout`` bounds a call with all its repetitions, in seconds. ``keys`` is the JWKS of the keys that
    the caller trusts: with it, an evaluation is an ``AnswerError`` if its receipt does not verify, or if the receipt of
    an allow is not of the very intent that was sent. ``verify`` alone asks the server for its keys. ``stream`` sends
    evaluations on one connection, which does not wait for their answers (a WebSocket, as docs/intent-stream.md has it).
    Calls and their results stay the same, but ``traceparent`` has no effect on them.
    """

    def __init__(
        self,
        url: str = "",
        api_key: str = "",
        policy_id: str = "",
        agent_id: str = "",
        *,
        timeout: float = 2.0,
        keys: str | bytes | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        stream: bool = False,
    ) -> None:
        super().__init__(url, api_key, policy_id, agent_id, timeout=timeout, keys=keys)
        self._http = BlockingHttp(transport, stream)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, flow: Flow[T]) -> T:
        reply: Reply | Failure | None = None
        try:
            while True:
                step = flow.send(reply)
                if isinstance(step, Sleep):
                    time.sleep(step.seconds)
                    reply = None
                else:
                    reply = self._http.send(step)
        except StopIteration as end:
            result: T = end.value
            return result

    def evaluate(self, intent: Intent) -> Decision:
        """Returns the decision about an intent. A deny and a hold are decisions that are false.

        If there is no decision, it raises: the action must not run.
        """
        return self._run(self._flows.evaluate(intent))

    def require(self, intent: Intent) -> Decision:
        """Returns an allow alone. Raises ``Denied``, ``Held`` or the reason why there is no decision."""
        return raise_unless_allowed(self.evaluate(intent), self)

    def evaluate_all(self, intents: Sequence[Intent], *, together: bool = False) -> list[Decision | WritError]:
        """Decides at most 100 intents of one policy in one request, in their order.

        With ``together`` all are allowed or none is. What could not be decided is an error in the list.
        """
        return self._run(self._flows.evaluate_all(intents, together))

    def guard(
        self,
        *,
        action_type: str | Callable[..., str],
        resource: str | Callable[..., str],
        cost: Cost | Callable[..., Cost | None] | None = None,
        metadata: Mapping[str, str] | Callable[..., Mapping[str, str]] | None = None,
        key: str | Callable[..., str] | None = None,
        issued_at: str | Callable[..., str] | None = None,
        wait: float | None = None,
    ) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Returns a decorator: the function runs only if its intent is allowed, and its outcome is recorded.

        Each argument is a value, or a function of the call's arguments. ``key`` makes the intent's id from
        the caller's own, so that a caller that crashed and calls again gets the same decision: see
        ``current``. Without it a repetition is a new intent. With ``wait`` a held action waits for its verdict
        for that many seconds, and runs once it is approved; ``Held`` is raised if there is no verdict by then.
        """

        def decorate(act: Callable[P, T]) -> Callable[P, T]:
            if inspect.iscoroutinefunction(act) or inspect.isgeneratorfunction(act):
                raise ConfigError("guard of a Client takes a plain function: AsyncClient takes async def")

            @wraps(act)
            def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
                def call(of: Any) -> Any:
                    return of(*args, **kwargs) if callable(of) else of

                intent = self._intent_of(call, action_type, resource, cost, metadata, key, issued_at)
                decision = self._require_or_wait(intent, wait)
                token, outcome = current.set(decision), "failed"
                try:
                    result = act(*args, **kwargs)
                    outcome = "executed"
                    return result
                finally:
                    current.reset(token)
                    try:
                        self._record(decision, outcome)
                    except WritError:
                        pass  # it hides neither the result nor the error

            return guarded

        return decorate

    def _require_or_wait(self, intent: Intent, wait: float | None) -> Decision:
        try:
            return self.require(intent)
        except Held as held:
            if wait is None:
                raise
            try:
                return self.wait(held, wait)
            except Pending:
                raise held from None

    def _record(self, decision: Decision, outcome: str) -> None:
        cost = decision.intent.cost if outcome == "executed" else None
        if cost is None:
            self.record(decision.id, outcome)
        else:
            self.record(decision.id, outcome, cost.amount_minor, cost.currency)

    def record(
        self,
        decision_id: str,
        outcome: str,
        amount_minor: int | None = None,
        currency: str = "",
        external_ref: str = "",
    ) -> None:
        """Records what became of an action: executed, failed or skipped. The scope is actions:record."""
        self._run(self._flows.record(decision_id, outcome, amount_minor, currency, external_ref))

    def resume(self, held: str) -> Held:
        """Reads what ``Held.to_json`` wrote, in another process."""
        return held_of(held, self)

    def approval(self, approval_id: str, wait: float = 0) -> Approval:
        """Returns an approval. If it is pending, the server answers after ``wait`` seconds at the latest."""
        return cast("Approval", self._run(self._flows.approval(approval_id, wait)))

    def wait(self, held: Held, timeout: float) -> Decision:
        """Waits for the verdict, for at most ``timeout`` seconds, and redeems the approval.

        Returns the allow. Raises ``Denied``, ``Pending``, ``AlreadyRedeemed``, or ``Held`` if something new
        wants an approval.
        """
        return raise_unless_allowed(self._run(self._flows.wait(held, timeout)), self)

    def redeem(self, held: Held) -> Decision:
        """Sends the held intent again with its approval. One approval runs one action."""
        return raise_unless_allowed(self._run(self._flows.redeem(held)), self)

    def decide_approval(self, approval_id: str, verdict: str, comment: str = "") -> Approval:
        """Decides a held action: approved, rejected or revoked. The scope is approvals:decide."""
        body = {"status": verdict, **({"comment": comment} if comment else {})}
        return cast("Approval", self._run(self._flows.set_status("approval", approval_id, body)))

    def open_session(self, ttl: int, **narrowed: Any) -> Session:
        """Opens a session for ``ttl`` seconds, with members that narrow it. The scope is sessions:write."""
        return cast("Session", self._run(self._flows.open_session(ttl, narrowed)))

    def close_session(self, session_id: str) -> None:
        """Closes a session for good."""
        self._run(self._flows.set_status("session", session_id, {"status": "closed"}))

    def set_agent_status(self, agent_id: str, status: str) -> None:
        """Throws the kill switch of an agent ("disabled") or releases it ("active").

        It is in force when the call returns. The scope is agents:write.
        """
        self._run(self._flows.set_status("agent", agent_id, {"status": status}))

    def set_organization_status(self, status: str) -> None:
        """Stops everything that the organization's agents ask ("stopped") or ends the stop ("active").

        It is in force when the call returns. The scope is agents:write, for all agents.
        """
        self._run(self._flows.set_organization_status(status))

    def credential(self) -> Credential:
        """Returns what the client's own API key may do."""
        return cast("Credential", self._run(self._flows.json("GET", "/v1/credential", repeats=True)))

    def history(self, **filters: str) -> Iterator[Authorization]:
        """Yields rows of the history, the newest first. Filters are those of GET /v1/authorizations."""
        query = dict(filters)
        while True:
            rows, cursor = self._run(self._flows.history_page(query))
            yield from rows
            if not cursor:
                return
            query["cursor"] = cursor

    def stream(self, last_event_id: str = "", **filters: str) -> Iterator[Event]:
        """Yields the rows of the history as they are decided. Filters are those of GET /v1/authorizations.

        With the ``id`` of an event it goes on after that event, otherwise it begins now. It connects again by itself,
        without a gap. It raises after a refusal, or after three failures in a row. The scope is history:read.
        """
        events = follow(self._flows, self._http.start().client, filters, last_event_id)
        try:
            while (event := self._http.run(next_of(events))) is not None:
                yield event
        finally:
            self._http.run(close(events))

    def verify(self, receipt: Receipt) -> None:
        """Verifies the signature of a receipt with the server's keys, which are fetched once and for an unknown kid.

        It does not say which intent the receipt is of: ``keys`` of a client does.
        """
        self._run(self._flows.verify(receipt))


class AsyncClient(_Common):
    """``Client`` for asyncio and trio. Its methods are those of ``Client``."""

    def __init__(
        self,
        url: str = "",
        api_key: str = "",
        policy_id: str = "",
        agent_id: str = "",
        *,
        timeout: float = 2.0,
        keys: str | bytes | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        stream: bool = False,
    ) -> None:
        super().__init__(url, api_key, policy_id, agent_id, timeout=timeout, keys=keys)
        self._http = Http(transport, stream)

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, flow: Flow[T]) -> T:
        reply: Reply | Failure | None = None
        try:
            while True:
                step = flow.send(reply)
                if isinstance(step, Sleep):
                    await anyio.sleep(step.seconds)
                    reply = None
                else:
                    reply = await self._http.send(step)
        except StopIteration as end:
            result: T = end.value
            return result

    async def evaluate(self, intent: Intent) -> Decision:
        """See ``Client.evaluate``."""
        return await self._run(self._flows.evaluate(intent))

    async def require(self, intent: Intent) -> Decision:
        """See ``Client.require``."""
        return raise_unless_allowed(await self.evaluate(intent), self)

    async def evaluate_all(
        self, intents: Sequence[Intent], *, together: bool = False
    ) -> list[Decision | WritError]:
        """See ``Client.evaluate_all``."""
        return await self._run(self._flows.evaluate_all(intents, together))

    def guard(
        self,
        *,
        action_type: str | Callable[..., str],
        resource: str | Callable[..., str],
        cost: Cost | Callable[..., Cost | None] | None = None,
        metadata: Mapping[str, str] | Callable[..., Mapping[str, str]] | None = None,
        key: str | Callable[..., str] | None = None,
        issued_at: str | Callable[..., str] | None = None,
        wait: float | None = None,
    ) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
        """See ``Client.guard``. The function is an ``async def``."""

        def decorate(act: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
            if not inspect.iscoroutinefunction(act):
                raise ConfigError("guard of an AsyncClient takes an async def: Client takes a plain function")

            @wraps(act)
            async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
                def call(of: Any) -> Any:
                    return of(*args, **kwargs) if callable(of) else of

                intent = self._intent_of(call, action_type, resource, cost, metadata, key, issued_at)
                decision = await self._require_or_wait(intent, wait)
                token, outcome = current.set(decision), "failed"
                try:
                    result = await act(*args, **kwargs)
                    outcome = "executed"
                    return result
                finally:
                    current.reset(token)
                    with anyio.CancelScope(shield=True):
                        try:
                            await self._record(decision, outcome)
                        except WritError:
                            pass  # it hides neither the result nor the error

            return guarded

        return decorate

    async def _require_or_wait(self, intent: Intent, wait: float | None) -> Decision:
        try:
            return await self.require(intent)
        except Held as held:
            if wait is None:
                raise
            try:
                return await self.wait(held, wait)
            except Pending:
                raise held from None

    async def _record(self, decision: Decision, outcome: str) -> None:
        cost = decision.intent.cost if outcome == "executed" else None
        if cost is None:
            await self.record(decision.id, outcome)
        else:
            await self.record(decision.id, outcome, cost.amount_minor, cost.currency)

    async def record(
        self,
        decision_id: str,
        outcome: str,
        amount_minor: int | None = None,
        currency: str = "",
        external_ref: str = "",
    ) -> None:
        """See ``Client.record``."""
        await self._run(self._flows.record(decision_id, outcome, amount_minor, currency, external_ref))

    def resume(self, held: str) -> Held:
        """See ``Client.resume``."""
        return held_of(held, self)

    async def approval(self, approval_id: str, wait: float = 0) -> Approval:
        """See ``Client.approval``."""
        return cast("Approval", await self._run(self._flows.approval(approval_id, wait)))

    async def wait(self, held: Held, timeout: float) -> Decision:
        """See ``Client.wait``."""
        return raise_unless_allowed(await self._run(self._flows.wait(held, timeout)), self)

    async def redeem(self, held: Held) -> Decision:
        """See ``Client.redeem``."""
        return raise_unless_allowed(await self._run(self._flows.redeem(held)), self)

    async def decide_approval(self, approval_id: str, verdict: str, comment: str = "") -> Approval:
        """See ``Client.decide_approval``."""
        body = {"status": verdict, **({"comment": comment} if comment else {})}
        return cast("Approval", await self._run(self._flows.set_status("approval", approval_id, body)))

    async def open_session(self, ttl: int, **narrowed: Any) -> Session:
        """See ``Client.open_session``."""
        return cast("Session", await self._run(self._flows.open_session(ttl, narrowed)))

    async def close_session(self, session_id: str) -> None:
        """See ``Client.close_session``."""
        await self._run(self._flows.set_status("session", session_id, {"status": "closed"}))

    async def set_agent_status(self, agent_id: str, status: str) -> None:
        """See ``Client.set_agent_status``."""
        await self._run(self._flows.set_status("agent", agent_id, {"status": status}))

    async def set_organization_status(self, status: str) -> None:
        """See ``Client.set_organization_status``."""
        await self._run(self._flows.set_organization_status(status))

    async def credential(self) -> Credential:
        """See ``Client.credential``."""
        return cast("Credential", await self._run(self._flows.json("GET", "/v1/credential", repeats=True)))

    async def history(self, **filters: str) -> AsyncIterator[Authorization]:
        """See ``Client.history``."""
        query = dict(filters)
        while True:
            rows, cursor = await self._run(self._flows.history_page(query))
            for row in rows:
                yield row
            if not cursor:
                return
            query["cursor"] = cursor

    def stream(self, last_event_id: str = "", **filters: str) -> AsyncGenerator[Event, None]:
        """See ``Client.stream``."""
        return follow(self._flows, self._http.client, filters, last_event_id)

    async def verify(self, receipt: Receipt) -> None:
        """See ``Client.verify``."""
        await self._run(self._flows.verify(receipt))

