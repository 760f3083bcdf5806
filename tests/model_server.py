"""A server on loopback with three routes of OpenAI's API, which fails on demand.

Its vectors are of hashed words; its chat answers are made of the facts that it was sent.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import orjson

from contextgraph.system.remote import Endpoint
from contextgraph.text import count_tokens, words

KEY = "sk-test-0123456789abcdefghijklmnopqrstuv"
DIMENSIONS = 32
MODEL = f"openai/hashed@{DIMENSIONS}"

Body = Mapping[str, Any]
Reply = tuple[int, dict[str, str], bytes]


def hashed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A vector of *text*: each word adds the direction that its hash gives."""
    vector = np.full(dimensions, 1e-3)
    for word in words(text):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
        vector += np.random.default_rng(seed).normal(size=dimensions)
    numbers: list[float] = vector.tolist()
    return numbers


@dataclass
class Server:
    """The requests that the server received, and how it fails.

    *fault* is called with the number of each request (from 0) and may return a reply to send
    instead of the proper one; a reply of status 0 was sent by *fault* itself. *models* are those
    it lists, None where it has no such route. *clients* are closed with it.
    """

    url: str = ""
    key: str | None = KEY
    fault: "Callable[[int, Handler], Reply | None]" = lambda number, handler: None
    embed: Callable[[str], Sequence[float]] = hashed
    models: Sequence[str] | None = ()
    clients: list[Endpoint] = field(default_factory=list)
    requests: list[Body] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    most_at_once: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def texts(self) -> list[str]:
        """All texts that were sent, in order."""
        return [text for body in self.requests for text in body.get("input", ())]

    @property
    def chats(self) -> list[Body]:
        """The requests to the chat route, in order."""
        return [body for body in self.requests if "messages" in body]

    @contextmanager
    def counting(self, body: Body) -> Iterator[int]:
        """Record *body*; yields the number of the request."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.at.append(time.monotonic())
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            yield number
        finally:
            with self._lock:
                self._now -= 1


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    state: Server

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body: Body = orjson.loads(self.rfile.read(length))
        with self.state.counting(body) as number:
            reply = self.state.fault(number, self) or self._reply(body)
            if reply[0]:
                self.send(*reply)

    def do_GET(self) -> None:
        """The route that lists the models."""
        if self._refused():
            self.send(*error(401, f"Incorrect API key provided: {self.headers['Authorization']}"))
        elif self.path != "/v1/models" or self.state.models is None:
            self.send(*error(404, f"no route {self.path}"))
        else:
            rows = [{"object": "model", "id": name} for name in self.state.models]
            self.send(200, {}, orjson.dumps({"object": "list", "data": rows}))

    def _refused(self) -> bool:
        return self.state.key is not None and (
            self.headers["Authorization"] != f"Bearer {self.state.key}"
        )

    def send(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Send a whole reply."""
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _reply(self, body: Body) -> Reply:
        route = ROUTES.get(self.path)
        if route is None:
            return error(404, f"no route {self.path}")
        if self._refused():
            return error(401, f"Incorrect API key provided: {self.headers['Authorization']}")
        return 200, {}, orjson.dumps(route(self.state, body))

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  (its own name)
        """Log nothing."""


def embeddings(state: Server, body: Body) -> dict[str, Any]:
    """The embeddings route; answers in reverse order, as a server may."""
    given = body["input"]
    texts = [given] if isinstance(given, str) else given
    rows = [
        {"object": "embedding", "index": index, "embedding": list(state.embed(text))}
        for index, text in enumerate(texts)
    ]
    tokens = sum(map(count_tokens, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": rows[::-1], "model": body["model"], "usage": usage}


def facts_in(body: Body) -> dict[str, Any]:
    """The facts in the first user message of *body*."""
    # Without a message of the system the prompt stands before them.
    content = body["messages"][:2][-1]["content"]
    facts: dict[str, Any] = orjson.loads(content[content.rfind("\n\n{") + 1 :])
    return facts


def advice(facts: Mapping[str, Any]) -> dict[str, Any]:
    """An answer made of *facts*."""
    remedies = facts["remedies"]
    error = facts.get("error")
    where = facts.get("repository") or "any repository"
    return {
        "situation": f"When {error['type'] if error else facts['phase']} comes up in {where}.",
        "strategy": " Otherwise, ".join(f"first {remedy}." for remedy in remedies),
        "not_when": "Not without a need." if len(remedies) > 1 else "",
    }


def chat(state: Server, body: Body) -> dict[str, Any]:
    """The chat route."""
    return chat_reply(body, orjson.dumps(advice(facts_in(body))).decode())


def chat_reply(body: Body, content: str | None) -> dict[str, Any]:
    """A reply to *body* with *content* as the answer of the model."""
    sent = sum(count_tokens(message["content"]) for message in body["messages"])
    answered = count_tokens(content or "")
    message = {"role": "assistant", "content": content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": sent, "completion_tokens": answered},
    }


ROUTES: dict[str, Callable[[Server, Body], dict[str, Any]]] = {
    "/v1/embeddings": embeddings,
    "/v1/chat/completions": chat,
}


def error(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    """A reply that refuses, as OpenAI words it; *headers* with _ for -."""
    content = {"error": {"message": message, "type": "error", "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, orjson.dumps(content)


@contextmanager
def serving(**given: Any) -> Iterator[Server]:
    """A server for the block, as *given* (see `Server`)."""
    state = Server(**given)
    handler = type("_Handler", (Handler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            for client in state.clients:
                client.close()
            server.shutdown()
            thread.join()


def silent(number: int, handler: Handler) -> Reply | None:
    time.sleep(1)
    return 0, {}, b""


def truncated(number: int, handler: Handler) -> Reply | None:
    handler.send(200, {"Content-Length": "5000"}, b"{")
    handler.close_connection = True
    return 0, {}, b""


def dripping(number: int, handler: Handler) -> Reply | None:
    handler.send(200, {"Content-Length": "5000"}, b"{")
    return _drip(handler, b" ")


def dripping_headers(number: int, handler: Handler) -> Reply | None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    return _drip(handler, b"X-Wait: a\r\n")


def _drip(handler: Handler, part: bytes) -> Reply:
    for _ in range(30):
        time.sleep(0.1)
        try:
            handler.wfile.write(part)
        except OSError:  # the client has gone
            break
    handler.close_connection = True
    return 0, {}, b""


def closed(number: int, handler: Handler) -> Reply | None:
    handler.connection.close()
    handler.close_connection = True
    return 0, {}, b""


def garbled(number: int, handler: Handler) -> Reply | None:
    handler.wfile.write(b"\x16\x03\x01 no answer in HTTP\r\n\r\n")
    handler.close_connection = True
    return 0, {}, b""
