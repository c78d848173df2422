"""Sends evaluations on a stream of intents (a WebSocket). docs/intent-stream.md has the protocol."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import httpx

from ._flow import MAX_ANSWER, Failure, Reply, Send
from .decision import json_of
from .errors import AnswerError, ConfigError

if TYPE_CHECKING:
    from websockets.client import ClientProtocol

EVALUATE = "/v1/policy/evaluate"
PROTOCOL = "writ.v1"
#: Bounds what is sent on a stream. A longer intent is a request of its own, so 64 intents never exceed the bytes that
#: a stream may have on its way.
MAX_LINE = 64 << 10
#: How long a stream may be unused, in seconds. The next call opens another.
MAX_IDLE = 60.0
#: Bounds a write, in seconds. A server that takes nothing for so long has lost the connection.
MAX_WRITE = 10.0


class _Cut(Exception):
    """The stream ended before it had an answer. If ``sent``, the server may have got the intent."""

    def __init__(self, text: str, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


def check() -> None:
    """Raises unless the package websockets is there. It is an extra."""
    try:
        import websockets.client  # noqa: F401
    except ImportError:
        raise ConfigError("stream=True needs the package websockets: pip install 'writ[stream]'") from None


class Intents:
    """Sends evaluations on one connection. The first call opens it, and the first one after its end opens another."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._stream: _Stream | None = None
        self._opening = anyio.Lock()

    def takes(self, send: Send) -> bool:
        """Reports whether a request goes on the stream."""
        path = send.url.partition("?")[0]
        return send.method == "POST" and path.endswith(EVALUATE) and send.body is not None and len(send.body) <= MAX_LINE

    async def send(self, send: Send) -> Reply | Failure:
        assert send.body is not None
        stream, heard = None, 0
        try:
            with anyio.fail_after(send.end - time.monotonic()):
                async with self._opening:
                    if self._stream is None or not await self._stream.usable():
                        if self._stream is not None:
                            await self._stream.close(unless_used=True)
                        opened = await self._open(send)
                        if isinstance(opened, Reply):
                            return opened
                        self._stream = opened
                    stream, heard = self._stream, self._stream.heard
                return await stream.ask(send.body)
        except TimeoutError:
            if stream is not None and stream.heard == heard:
                stream.over = "no answer came in time"  # the connection may be dead
            return Failure("the time is up", sent=stream is not None)
        except _Cut as e:
            return Failure(f"the stream of intents was cut: {e}", sent=e.sent)
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as e:
            return Failure(f"there is no stream of intents: {type(e).__name__}: {e}", sent=False)

    async def _open(self, send: Send) -> _Stream | Reply:
        """Opens a stream. A ``Reply`` is the refusal of the server."""
        from websockets.client import ClientProtocol
        from websockets.datastructures import Headers
        from websockets.http11 import Response
        from websockets.typing import Subprotocol
        from websockets.uri import parse_uri

        url = f"{send.url}/stream"
        protocol = ClientProtocol(
            parse_uri("ws" + url.removeprefix("http")), subprotocols=[Subprotocol(PROTOCOL)], max_size=MAX_ANSWER
        )
        upgrade = protocol.connect()
        headers = {k: v for k, v in upgrade.headers.raw_items() if k.lower() not in ("host", "user-agent")}
        headers["Authorization"] = send.headers["Authorization"]
        protocol.send_request(upgrade)
        protocol.data_to_send()  # httpx sends it
        request = self._client.build_request("GET", url, headers=headers, timeout=send.end - time.monotonic())
        response = await self._client.send(request, stream=True)
        try:
            if response.status_code != 101:
                body = (await response.aread())[:MAX_ANSWER]
                if response.status_code < 300:
                    raise _Cut("the server opens none", sent=False)
                return Reply(response.status_code, {k.lower(): v for k, v in response.headers.items()}, body)
            answer = Response(101, "Switching Protocols", Headers(response.headers.multi_items()))
            protocol.receive_data(answer.serialize())
            protocol.events_received()
            if protocol.handshake_exc is not None or protocol.subprotocol != PROTOCOL:
                raise _Cut("the server opens none", sent=False)
            stream = _Stream(response, protocol)
            await stream.wait(lambda: stream.window > 0)
            if stream.over:
                raise _Cut(stream.over, sent=False)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await response.aclose()
            raise
        return stream

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.close()


class _Stream:
    """One connection. It is read by one of the calls that wait for an answer, so it needs no task of its own."""

    def __init__(self, response: httpx.Response, protocol: ClientProtocol) -> None:
        self._response, self._protocol = response, protocol
        self._io = response.extensions["network_stream"]
        self._refs = itertools.count(1)
        self._unanswered: set[str] = set()
        self._answers: dict[str, Reply | None] = {}  # of the calls that wait
        self._text = bytearray()
        self._reading = False
        self._writing = anyio.Lock()
        self._moved = anyio.Event()  # is set when a call has read
        self._used = time.monotonic()
        self.window = 0
        self.heard = 0  # how many answers came
        self.closing = False  # the server takes no more
        self.over = ""  # why no further answer comes

    async def usable(self) -> bool:
        """Reports whether the stream takes intents."""
        if not self._reading and not self.over and self._io.get_extra_info("is_readable"):
            with anyio.move_on_after(0.05):
                await self._read()  # the end of the connection, or a ping
        return not self.over and not self.closing and time.monotonic() - self._used < MAX_IDLE

    async def close(self, unless_used: bool = False) -> None:
        if unless_used and self._answers:
            return  # the last call closes it
        self.over = self.over or "it was closed"
        with anyio.CancelScope(shield=True):
            await self._response.aclose()

    async def ask(self, body: bytes) -> Reply:
        """Sends a line and returns its answer."""
        self._used = time.monotonic()
        ref = str(next(self._refs))
        self._answers[ref] = None
        try:
            await self.wait(lambda: len(self._unanswered) < self.window or self.closing)
            if self.over or self.closing:
                raise _Cut(self.over or "it ends", sent=False)
            self._unanswered.add(ref)
            self._protocol.send_text(b'{"ref":"%s",' % ref.encode() + body[1:])
            await self._flush()
            await self.wait(lambda: self._answers[ref] is not None)
            answer = self._answers[ref]
            if answer is None:
                raise _Cut(self.over, sent=True)
            return answer
        finally:
            del self._answers[ref]
            if not self._answers and (self.over or self.closing):
                await self.close()

    async def wait(self, done: Callable[[], bool]) -> None:
        """Waits until done, or until the stream is over. One of the calls that wait reads for all."""
        while not done() and not self.over:
            if self._reading:
                await self._moved.wait()
            else:
                await self._read()

    async def _read(self) -> None:
        self._reading = True
        try:
            data = await self._io.read(1 << 16)
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            for event in self._protocol.events_received():
                self._take(event)
            if not data or self._protocol.close_expected():
                self.over = self.over or "the connection ended"
            await self._flush()  # pongs, and the answer to a close frame
        except (AnswerError, RecursionError) as e:
            self.over = str(e) or "it is nested too deeply"
        except Exception as e:  # those of httpcore, which httpx does not translate here
            self.over = f"{type(e).__name__}: {e}"
        finally:
            self._reading = False
            self._moved.set()
            self._moved = anyio.Event()

    async def _flush(self) -> None:
        """Writes what is to be written. A write is not cancelled: half a frame would end the stream."""
        async with self._writing:
            data = b"".join(self._protocol.data_to_send())
            if not data or self.over:
                return
            try:
                with anyio.CancelScope(shield=True):
                    await self._io.write(data, timeout=MAX_WRITE)
            except Exception as e:
                self.over = f"{type(e).__name__}: {e}"

    def _take(self, frame: Any) -> None:
        """Takes a frame of the server."""
        from websockets.frames import Opcode

        if frame.opcode not in (Opcode.TEXT, Opcode.CONT):
            return
        self._text += frame.data
        if len(self._text) > MAX_ANSWER:
            raise AnswerError(f"an answer is longer than {MAX_ANSWER} bytes")
        if not frame.fin:
            return
        doc, self._text = json_of(bytes(self._text)), bytearray()
        if not isinstance(doc, dict):
            raise AnswerError("an answer is no object")
        if self.window == 0:
            window = doc.get("window")
            if type(window) is not int or window < 1:
                raise AnswerError("it is no stream of intents")
            self.window = window
        elif "closing" in doc:
            self.closing = True
        else:
            self._answer(doc)

    def _answer(self, doc: dict[str, Any]) -> None:
        ref = doc.pop("ref", None)
        if not isinstance(ref, str) or ref not in self._unanswered:
            raise AnswerError("an answer has a ref that was not sent")
        self._unanswered.remove(ref)
        self.heard += 1
        headers = {}
        for member, header in (("replayed", "idempotent-replayed"), ("retry_after", "retry-after"), ("expired", "")):
            value = doc.pop(member, None)
            if value is not None and header:
                headers[header] = str(value).lower()
        status = 200 if doc.get("ok") is True else doc.get("status")
        if type(status) is not int or not 200 <= status < 600:
            raise AnswerError("an answer has no status")
        if ref in self._answers:  # the call still waits
            body = json.dumps(doc, ensure_ascii=False, separators=(",", ":")).encode()
            self._answers[ref] = Reply(status, headers, body)
