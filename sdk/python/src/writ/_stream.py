"""Follows the stream of decisions (server-sent events)."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

import anyio
import httpx

from ._flow import ATTEMPTS, MAX_ANSWER, Flows, Reply
from .decision import json_of
from .errors import AnswerError, NoDecision, WritError

if TYPE_CHECKING:
    from ._api import Authorization

#: How long a stream may be silent, in seconds. The server sends something every 15.
SILENCE = 30.0
FIRST_PAUSE = 0.25


@dataclass(frozen=True)
class Event:
    """An event of a stream: a row of the history, or a number of rows that were skipped."""

    #: Resumes the stream after this event.
    id: str
    #: A row of the history. It is None if rows were skipped.
    row: Authorization | None = None
    #: ``count`` rows were not sent. GET /v1/authorizations has them from ``from``.
    skipped: dict[str, Any] | None = None


class _Cut(Exception):
    """The connection ended. ``after`` is how long the server asks to wait."""

    def __init__(self, error: WritError, after: float = 0) -> None:
        self.error, self.after = error, after


async def follow(
    flows: Flows, client: httpx.AsyncClient, filters: Mapping[str, str], last_event_id: str
) -> AsyncGenerator[Event, None]:
    """Yields the events of a stream, and connects again where it was cut."""
    at, failures, pause = last_event_id, 0, FIRST_PAUSE
    while True:
        try:
            async with aclosing(_connection(flows, client, filters, at)) as events:
                async for event in events:
                    if event.id:
                        at, failures, pause = event.id, 0, FIRST_PAUSE
                    if event.row is not None or event.skipped is not None:
                        yield event
        except _Cut as cut:
            failures += 1
            if failures == ATTEMPTS:
                raise cut.error from None
            await anyio.sleep(max(cut.after, pause / 2 + random.random() * pause))
            pause *= 2


async def _connection(
    flows: Flows, client: httpx.AsyncClient, filters: Mapping[str, str], at: str
) -> AsyncGenerator[Event, None]:
    url = f"{flows.settings.url}/v1/authorizations/stream?{urlencode(filters)}"
    headers = {**flows.headers(None), "Accept": "text/event-stream", **({"Last-Event-ID": at} if at else {})}
    try:
        async with client.stream("GET", url, headers=headers, timeout=SILENCE) as response:
            if response.status_code != 200:
                body = (await response.aread())[:MAX_ANSWER]
                found = {k.lower(): v for k, v in response.headers.items()}
                problem, after = flows.problem(Reply(response.status_code, found, body))
                if after is None:
                    raise problem
                raise _Cut(problem, after)
            if response.headers.get("content-type", "").partition(";")[0].strip() != "text/event-stream":
                raise AnswerError("it is no stream of events")
            lines: list[str] = []
            rest = b""
            async for chunk in response.aiter_raw():
                *whole, rest = (rest + chunk).split(b"\n")
                if len(rest) > MAX_ANSWER:
                    raise AnswerError("an event is too long")
                for line in whole:
                    text = line.decode("utf-8", "replace").removesuffix("\r")
                    if text:
                        lines.append(text)
                        continue
                    yield _event(lines)
                    lines = []
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, TimeoutError) as e:
        raise _Cut(NoDecision(flows.hide(f"the stream was cut: {type(e).__name__}: {e}"))) from None
    raise _Cut(NoDecision("the stream was cut"))


def _event(lines: list[str]) -> Event:
    """Reads a message. One that the client does not know has neither a row nor skipped rows."""
    members: dict[str, list[str]] = {"id": [], "event": [], "data": []}
    for line in lines:
        name, _, value = line.partition(":")
        members.get(name, []).append(value.removeprefix(" "))
    own, kind = (members["id"] or [""])[-1], (members["event"] or ["message"])[-1]
    if not members["data"] or kind not in ("message", "skipped"):
        return Event(own)
    doc = json_of("\n".join(members["data"]).encode())
    if not isinstance(doc, dict):
        raise AnswerError("the data of an event is no object")
    return Event(own, skipped=doc) if kind == "skipped" else Event(own, row=cast("Authorization", doc))


async def next_of(events: AsyncGenerator[Event, None]) -> Event | None:
    """Returns the next event, or None after the last one."""
    return await anext(events, None)


async def close(events: AsyncGenerator[Event, None]) -> None:
    """Closes the connection of a stream."""
    await events.aclose()
