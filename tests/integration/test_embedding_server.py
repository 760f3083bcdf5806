"""Failures of an embedding API over real HTTP, and how the embedder handles them."""

import gzip
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from contextgraph.errors import EmbeddingError
from contextgraph.inference.api import EmbeddingCosts, RemoteEmbedder, VectorCache, remote_model
from contextgraph.model import Vector
from contextgraph.model.values import replace
from contextgraph.system.remote import BACKGROUND, BATCH, Budget, Endpoint, RetryPolicy, UsageLog
from tests.model_server import (
    DIMENSIONS,
    KEY,
    Handler,
    Reply,
    Server,
    dripping,
    error,
    hashed,
    serving,
    silent,
    truncated,
)

Fault = Callable[[int, Handler], Reply | None]
QUICK = RetryPolicy(timeout=0.3, retries=1, total=3)
TEXTS = [f"the cache of part {number} is stale" for number in range(5)]
PRICE = 0.5


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def embedder(
    server: Server, folder: Path | None = None, policy: RetryPolicy = QUICK
) -> RemoteEmbedder:
    """An embedder on *server* with its cache in *folder*."""
    costs = EmbeddingCosts(
        VectorCache(folder / "vectors.db" if folder else None),
        UsageLog(folder / "spent.db" if folder else None, "memory.db"),
        Budget(),
    )
    endpoint = Endpoint(server.url, KEY)
    server.clients.append(endpoint)
    return RemoteEmbedder(remote_model(f"hashed@{DIMENSIONS}", PRICE), endpoint, costs, policy)


def expected(texts: list[str]) -> tuple[Vector, ...]:
    return tuple(Vector.of(f"openai/hashed@{DIMENSIONS}", hashed(text)) for text in texts)


def first(count: int, reply: Reply) -> Callable[[int, Handler], Reply | None]:
    """A fault: *reply* to the first *count* requests."""
    return lambda number, handler: reply if number < count else None


def always(reply: Reply) -> Callable[[int, Handler], Reply | None]:
    return lambda number, handler: reply


def test_texts_come_back_as_vectors_in_their_order(server: Server) -> None:
    found = embedder(server).embed([*TEXTS, " ", TEXTS[0]])
    assert found.vectors == (*expected(TEXTS), None, *expected(TEXTS[:1]))
    assert server.texts == TEXTS
    assert found.usage.requests == 1
    assert found.usage.cost == pytest.approx(found.usage.tokens * PRICE / 1e6)


def test_dimensions_are_requested_only_of_models_that_support_it(server: Server) -> None:
    server.embed = lambda text: hashed(text, 512)
    made = embedder(server)
    model = remote_model("text-embedding-3-small@512")
    small = RemoteEmbedder(model, made.endpoint, made.costs, QUICK)
    assert small.embed(TEXTS[:1]).vectors[0]
    server.embed = hashed
    embedder(server).embed(TEXTS[:1])
    assert [body.get("dimensions") for body in server.requests] == [512, None]


def test_cached_texts_are_not_sent_again(server: Server, tmp_path: Path) -> None:
    before = embedder(server, tmp_path).embed(TEXTS)
    after = embedder(server, tmp_path).embed([*TEXTS, "one more"])
    assert after.vectors[:5] == before.vectors
    assert server.texts == [*TEXTS, "one more"]
    assert all(text.encode() not in (tmp_path / "vectors.db").read_bytes() for text in TEXTS)


def test_usage_is_logged(server: Server, tmp_path: Path) -> None:
    remote = embedder(server, tmp_path)
    usage = remote.embed(TEXTS).usage + remote.embed(["one more"]).usage
    assert remote.costs.usage_log.totals() == {remote.space: usage}
    assert UsageLog(tmp_path / "spent.db", "another.db").totals() == {}


def test_many_texts_go_in_several_requests_at_a_time(server: Server) -> None:
    server.fault = lambda number, handler: time.sleep(0.1)
    texts = [f"text {number} " * 60 for number in range(1_000)]
    found = embedder(server, policy=BACKGROUND).embed(texts)
    assert found.vectors[::250] == expected(texts[::250])
    assert max(len(body["input"]) for body in server.requests) <= 256
    assert found.usage.requests == len(server.requests) > 3
    assert 1 < server.most_at_once <= 4


def test_a_text_that_is_too_long_is_cut_and_counted(server: Server) -> None:
    found = embedder(server, policy=BACKGROUND).embed(["word " * 20_000, "short"])
    assert found.usage.cut == 1
    assert len(server.texts[0]) < 20_000
    assert server.texts[1] == "short"


def test_secrets_do_not_leave_the_machine(server: Server) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    embedder(server).embed([f"git clone https://{token}@host/repo failed"])
    assert token not in server.texts[0]


def test_a_401_stops_at_once_and_the_key_is_not_shown(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.key = "another"
    remote = embedder(server)
    for _ in range(3):
        with pytest.raises(
            EmbeddingError, match=r"key was refused .*check OPENAI_API_KEY"
        ) as caught:
            remote.embed(TEXTS)
        assert KEY not in str(caught.value)
    assert len(server.requests) == 1
    assert KEY not in caplog.text + repr(remote) + repr(remote.endpoint)


def test_an_account_without_credit_is_not_asked_again(server: Server) -> None:
    server.fault = always(error(429, "You exceeded your current quota", "insufficient_quota"))
    remote = embedder(server)
    with pytest.raises(EmbeddingError, match="no credit"):
        remote.embed(TEXTS)
    sent = len(server.requests)
    assert sent == 1 + QUICK.retries
    with pytest.raises(EmbeddingError, match="no credit"):
        remote.embed(TEXTS)
    assert len(server.requests) == sent


@pytest.mark.parametrize("headers", [{"Retry_After": "1"}, {"Retry_After_Ms": "1000"}])
def test_a_429_delays_the_next_request(server: Server, headers: dict[str, str]) -> None:
    server.fault = first(1, error(429, "slow down", **headers))
    assert embedder(server).embed(TEXTS).vectors == expected(TEXTS)
    assert server.at[1] - server.at[0] >= 1


def test_many_429_slow_down_and_lose_nothing(server: Server) -> None:
    server.fault = lambda number, handler: (
        error(429, "slow down", Retry_After_Ms="50") if number % 3 else None
    )
    texts = [f"text {number} " * 60 for number in range(400)]
    assert embedder(server, policy=BATCH).embed(texts).vectors[::50] == expected(texts[::50])
    assert len(server.requests) > 3


def test_a_429_that_does_not_end_is_given_up(server: Server) -> None:
    server.fault = always(error(429, "slow down", Retry_After="60"))
    with pytest.raises(EmbeddingError, match="no answer in time"):
        embedder(server).embed(TEXTS)
    assert len(server.requests) == 1


def test_a_429_for_longer_than_anyone_waits_is_given_up_at_once(server: Server) -> None:
    server.fault = always(error(429, "slow down", Retry_After="3600"))
    with pytest.raises(EmbeddingError, match="slow down"):
        embedder(server).embed(TEXTS)
    assert len(server.requests) == 1


def test_a_500_is_retried(server: Server) -> None:
    server.fault = first(1, error(500, "boom"))
    assert embedder(server).embed(TEXTS).vectors == expected(TEXTS)
    assert len(server.requests) == 2


def test_after_an_outage_the_next_call_fails_at_once(server: Server) -> None:
    server.fault = always(error(503, "overloaded"))
    remote = embedder(server)
    with pytest.raises(EmbeddingError, match="overloaded"):
        remote.embed(TEXTS)
    requests = len(server.requests)
    assert requests > 1
    with pytest.raises(EmbeddingError, match="overloaded"):
        remote.embed(TEXTS)
    assert len(server.requests) == requests


def test_a_longer_policy_may_still_try(server: Server) -> None:
    server.fault = always(error(503, "overloaded"))
    remote = embedder(server, policy=RetryPolicy(0.5, 0))
    with pytest.raises(EmbeddingError):
        remote.embed(TEXTS)
    server.fault = lambda number, handler: None
    longer = RemoteEmbedder(remote.model, remote.endpoint, remote.costs, QUICK)
    assert longer.embed(TEXTS).vectors == expected(TEXTS)
    assert remote.embed(TEXTS).vectors == expected(TEXTS)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_has_connections_of_its_own(server: Server) -> None:
    remote = embedder(server)
    remote.embed(TEXTS[:1])
    child = os.fork()
    if not child:
        found = remote.embed(TEXTS[1:2]).vectors
        remote.endpoint.close()
        os._exit(0 if found == expected(TEXTS[1:2]) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert remote.embed(TEXTS[2:3]).vectors == expected(TEXTS[2:3])


def test_a_missing_server_is_an_outage() -> None:
    with serving() as server:
        remote = embedder(server)
    with pytest.raises(EmbeddingError, match=rf"{server.url}: no connection"):
        remote.embed(TEXTS)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (silent, "no answer in time"),
        (dripping, "no answer in time"),
        (truncated, "no connection"),
        (always((200, {}, b'{"data": [{"embedding"')), "the answer is not JSON"),
        (always((200, {}, b"[]")), "holds no embeddings"),
        (always((200, {}, b'{"data": []}')), "5 texts were sent, 0 embeddings were returned"),
        (always((200, {"Content-Type": "text/html"}, b"<html>")), "the answer is not JSON"),
    ],
)
def test_an_unusable_answer_is_given_up(
    server: Server, fault: Callable[[int, Handler], Reply | None], reason: str
) -> None:
    server.fault = fault
    is_answered = not reason.startswith("no ")  # what is answered is not asked for again
    policy = QUICK if "in time" in reason else RetryPolicy(timeout=60, retries=1)
    with pytest.raises(EmbeddingError, match=reason):
        embedder(server, policy=policy).embed(TEXTS)
    assert len(server.requests) == (1 if is_answered else 2)
    server.fault = lambda number, handler: None
    assert embedder(server).embed(TEXTS).vectors == expected(TEXTS)


def test_wrong_dimensions_are_an_error_with_a_remedy(server: Server) -> None:
    server.embed = lambda text: hashed(text, 8)
    with pytest.raises(EmbeddingError, match="has 8 dimensions, not 32; write MODEL@8"):
        embedder(server).embed(TEXTS)
    assert len(server.requests) == 1


def test_unusable_vectors_are_refused(server: Server) -> None:
    server.embed = lambda text: [0.0] * DIMENSIONS
    with pytest.raises(EmbeddingError, match="an embedding is unusable"):
        embedder(server).embed(TEXTS)


def test_an_invalid_request_is_not_retried(server: Server) -> None:
    server.fault = always(error(400, "maximum context length is 512 tokens"))
    with pytest.raises(EmbeddingError, match="maximum context length"):
        embedder(server).embed(TEXTS)
    assert len(server.requests) == 3  # the texts, one of them, and it without an argument


def test_what_was_answered_before_a_failure_is_cached(server: Server, tmp_path: Path) -> None:
    texts = [f"text {number} " * 60 for number in range(1_000)]
    server.fault = lambda number, handler: error(404, "no") if number == 2 else None
    with pytest.raises(EmbeddingError):
        embedder(server, tmp_path, policy=BACKGROUND).embed(texts)
    cached = {text for n, body in enumerate(server.requests) if n != 2 for text in body["input"]}
    sent = len(server.texts)
    assert embedder(server, tmp_path, policy=BACKGROUND).embed(texts).vectors[0]
    assert cached.isdisjoint(server.texts[sent:])


def test_no_more_is_spent_than_the_budget(server: Server) -> None:
    remote = embedder(server)
    cost = remote.estimate(TEXTS).cost
    costs = replace(remote.costs, budget=Budget(2.5 * cost))
    capped = RemoteEmbedder(remote.model, remote.endpoint, costs, QUICK)
    assert capped.embed(TEXTS).usage.cost == pytest.approx(cost)
    assert capped.embed([text + "!" for text in TEXTS]).vectors
    with pytest.raises(EmbeddingError, match="pass the cap"):
        capped.embed([text + "?" for text in TEXTS])
    assert len(server.requests) == 2


def test_an_estimate_sends_nothing_and_uses_the_cache(server: Server, tmp_path: Path) -> None:
    remote = embedder(server, tmp_path)
    assert remote.estimate(TEXTS).tokens == remote.embed(TEXTS).usage.tokens
    requests = len(server.requests)
    assert remote.estimate(TEXTS).cost == 0
    assert len(server.requests) == requests


def test_without_a_working_cache_texts_are_embedded(server: Server, tmp_path: Path) -> None:
    (tmp_path / "vectors.db").write_bytes(b"not a database" * 100)
    assert embedder(server, tmp_path).embed(TEXTS).vectors == expected(TEXTS)


def test_texts_are_not_sent_on_to_another_server(server: Server) -> None:
    with serving() as other:
        server.fault = always((307, {"Location": f"{other.url}/embeddings"}, b""))
        with pytest.raises(EmbeddingError, match="which is another server"):
            embedder(server).embed(TEXTS)
        assert (len(server.requests), other.requests) == (1, [])


def test_a_redirection_within_the_server_is_followed(server: Server) -> None:
    server.fault = first(1, (307, {"Location": "/v1/embeddings"}, b""))
    assert embedder(server).embed(TEXTS).vectors == expected(TEXTS)


def test_an_answer_is_not_read_beyond_its_limit(server: Server) -> None:
    def endless(number: int, handler: Handler) -> Reply | None:
        handler.send(200, {"Content-Length": str(1 << 40)}, b"")
        with suppress(OSError):  # the client closes the connection
            while True:
                handler.wfile.write(b" " * (1 << 20))
        handler.close_connection = True
        return 0, {}, b""

    server.fault = endless
    with pytest.raises(EmbeddingError, match="an answer of more than 64 MiB"):
        embedder(server, policy=BACKGROUND).embed(TEXTS)
    assert len(server.requests) == 1


def test_a_compressed_answer_is_refused(server: Server) -> None:
    server.fault = always((200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * (1 << 20))))
    with pytest.raises(EmbeddingError, match="a compressed answer"):
        embedder(server).embed(TEXTS)


def refusing(limit: Callable[[dict[str, Any]], bool], message: str, status: int = 400) -> Fault:
    """A fault: refuse the bodies that *limit* is true of."""

    def fault(number: int, handler: Handler) -> Reply | None:
        return error(status, message) if limit(dict(handler.state.requests[number])) else None

    return fault


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_server_that_takes_few_texts_is_sent_few(server: Server, status: int) -> None:
    server.fault = refusing(lambda body: len(body["input"]) > 10, "batch too large", status)
    many = [f"the cache of part {number} is stale" for number in range(70)]
    remote = embedder(server)
    assert remote.embed(many).vectors == expected(many)
    asked = len(server.requests)
    more = [f"{text} again" for text in many]
    assert remote.calibrated(0.5).embed(more).vectors == expected(more)
    sizes = [len(body["input"]) for body in server.requests[asked:]]
    assert max(sizes) <= 10
    assert sum(sizes) == len(more)


def test_a_server_that_takes_only_a_string_is_sent_one_text_at_a_time(server: Server) -> None:
    server.fault = refusing(lambda body: not isinstance(body["input"], str), "input: not a string")
    remote = embedder(server)
    assert remote.embed(TEXTS).vectors == expected(TEXTS)
    asked = len(server.requests)
    more = [f"{text} again" for text in TEXTS]
    assert remote.calibrated(0.5).embed(more).vectors == expected(more)
    assert [body["input"] for body in server.requests[asked:]] == more


def test_a_text_beyond_the_context_of_a_server_is_cut_once(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.fault = refusing(
        lambda body: any(len(text) > 2_000 for text in body["input"]), "exceeds the context", 500
    )
    long = " ".join(f"word{number}" for number in range(2_000))
    found = embedder(server, tmp_path).embed([*TEXTS, long])
    assert found.vectors[:-1] == expected(TEXTS)
    assert found.vectors[-1] is not None
    assert found.usage.cut == 1
    assert "texts are cut at about" in caplog.text
    asked = len(server.requests)
    assert embedder(server, tmp_path).embed([long]).vectors == found.vectors[-1:]
    assert len(server.requests) == asked


def test_a_server_that_does_not_know_an_argument_is_not_sent_it(server: Server) -> None:
    server.fault = refusing(
        lambda body: "encoding_format" in body, "Unrecognized request argument: encoding_format"
    )
    remote = embedder(server)
    assert remote.embed(TEXTS).vectors == expected(TEXTS)
    asked = len(server.requests)
    assert remote.embed(["another text"]).vectors == expected(["another text"])
    assert len(server.requests) == asked + 1


def test_rows_without_numbers_are_in_the_order_of_the_texts(server: Server) -> None:
    def fault(number: int, handler: Handler) -> Reply | None:
        rows = [{"embedding": hashed(text)} for text in server.requests[number]["input"]]
        return 200, {}, orjson.dumps({"data": rows})

    server.fault = fault
    assert embedder(server).embed(TEXTS).vectors == expected(TEXTS)


def test_loopback_is_asked_without_the_proxy_of_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert embedder(server).embed(TEXTS).vectors == expected(TEXTS)


def test_a_proxy_that_needs_socks_is_named_where_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    costs = EmbeddingCosts(VectorCache(None), UsageLog(None, "memory.db"), Budget())
    endpoint = Endpoint("http://models.example/v1", KEY)
    remote = RemoteEmbedder(remote_model(f"hashed@{DIMENSIONS}"), endpoint, costs, QUICK)
    with pytest.raises(EmbeddingError, match="needs SOCKS; install"):
        remote.embed(TEXTS)
