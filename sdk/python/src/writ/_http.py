"""Sends the requests of flows."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio
import httpx

from ._flow import MAX_ANSWER, Failure, Reply, Send
from ._intents import Intents, check

T = TypeVar("T")


class Http:
    """Sends requests. A request ends at its deadline, however its answer drips."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None, stream: bool) -> None:
        if stream:
            check()
        self.client = httpx.AsyncClient(follow_redirects=False, transport=transport)
        self._intents = Intents(self.client) if stream else None

    async def close(self) -> None:
        if self._intents is not None:
            await self._intents.close()
        await self.client.aclose()

    async def send(self, send: Send) -> Reply | Failure:
        left = send.end - time.monotonic()
        if left <= 0:
            return Failure("the time is up", sent=False)
        if self._intents is not None and self._intents.takes(send):
            return await self._intents.send(send)
        body = bytearray()
        try:
            with anyio.fail_after(left):
                async with self.client.stream(
                    send.method, send.url, content=send.body, headers=send.headers, timeout=left
                ) as response:
                    async for chunk in response.aiter_raw():
                        body += chunk
                        if len(body) > MAX_ANSWER:
                            return Failure(f"the answer is longer than {MAX_ANSWER} bytes", sent=True, final=True)
                    headers = {k.lower(): v for k, v in response.headers.items()}
                    return Reply(response.status_code, headers, bytes(body))
        except TimeoutError:
            return Failure("the time is up", sent=True)
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as e:
            unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.InvalidURL)
            return Failure(f"there is no answer: {type(e).__name__}: {e}", sent=not isinstance(e, unsent))


class BlockingHttp:
    """Is Http for threads. An event loop of its own runs in a thread, because only it can end a read."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None, stream: bool) -> None:
        if stream:
            check()
        self._transport, self._stream = transport, stream
        self._lock = threading.Lock()
        self._pid = -1

    def send(self, send: Send) -> Reply | Failure:
        return self.run(self.start().send(send))

    def start(self) -> Http:
        """Returns what sends the requests in the loop."""
        with self._lock:
            if self._pid != os.getpid():  # the first request, or the first one after a fork
                self._pid = os.getpid()
                self._http = Http(self._transport, self._stream)
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="writ", daemon=True).start()
        return self._http

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the loop."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        with self._lock:
            if self._pid != os.getpid():
                return
            self.run(self._http.close())
            self.run(self._loop.shutdown_asyncgens())  # those of streams that were left
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._pid = -1
