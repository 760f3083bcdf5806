"""Each way in which an embedding API fails, over real HTTP, and what happens then."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contextgraph.embedding import Purse, VectorCache
from contextgraph.embedding.openai import RemoteEmbedder
from contextgraph.embedding.openai_models import remote_model
from contextgraph.errors import EmbeddingError
from contextgraph.remote import PATIENT, Budget, Endpoint, Ledger, Patience
from contextgraph.vectors import Vector
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

QUICK = Patience(timeout=0.3, outage=0.7, limited=3)
TEXTS = [f"the cache of part {number} is stale" for number in range(5)]
PRICE = 0.5


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def embedder(server: Server, folder: Path | None = None, **given: object) -> RemoteEmbedder:
    """An embedder on *server*; what it buys is kept in *folder*."""
    purse = Purse(
        VectorCache(folder / "vectors.db" if folder else None),
        Ledger(folder / "spent.db" if folder else None, "memory.db"),
        Budget(),
    )
    endpoint = Endpoint(server.url, KEY)
    server.clients.append(endpoint)
    made = RemoteEmbedder(remote_model(f"hashed@{DIMENSIONS}", PRICE), endpoint, purse, QUICK)
    return replace(made, **given)  # type: ignore[arg-type]  # fields of the embedder


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


def test_the_length_is_asked_of_models_that_can_shorten_only(server: Server) -> None:
    server.embed = lambda text: hashed(text, 512)
    small = replace(embedder(server), model=remote_model("text-embedding-3-small@512"))
    assert small.embed(TEXTS[:1]).vectors[0]
    server.embed = hashed
    embedder(server).embed(TEXTS[:1])
    assert [body.get("dimensions") for body in server.asked] == [512, None]


def test_what_was_bought_is_not_bought_again(server: Server, tmp_path: Path) -> None:
    before = embedder(server, tmp_path).embed(TEXTS)
    after = embedder(server, tmp_path).embed([*TEXTS, "one more"])
    assert after.vectors[:5] == before.vectors
    assert server.texts == [*TEXTS, "one more"]
    assert all(text.encode() not in (tmp_path / "vectors.db").read_bytes() for text in TEXTS)


def test_the_ledger_has_what_was_spent(server: Server, tmp_path: Path) -> None:
    mine = embedder(server, tmp_path)
    usage = mine.embed(TEXTS).usage + mine.embed(["one more"]).usage
    assert mine.purse.ledger.totals() == {mine.space: usage}
    assert Ledger(tmp_path / "spent.db", "another.db").totals() == {}


def test_many_texts_go_in_several_requests_at_a_time(server: Server) -> None:
    server.fault = lambda number, handler: time.sleep(0.1)
    texts = [f"text {number} " * 60 for number in range(1_000)]
    found = embedder(server, patience=PATIENT).embed(texts)
    assert found.vectors[::250] == expected(texts[::250])
    assert max(len(body["input"]) for body in server.asked) <= 256
    assert found.usage.requests == len(server.asked) > 3
    assert 1 < server.most_at_once <= 4


def test_a_text_that_is_too_long_is_cut_and_counted(server: Server) -> None:
    found = embedder(server, patience=PATIENT).embed(["word " * 20_000, "short"])
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
    mine = embedder(server)
    for _ in range(3):
        with pytest.raises(EmbeddingError, match=r"key was refused .*check OPENAI_API_KEY") as told:
            mine.embed(TEXTS)
        assert KEY not in str(told.value)
    assert len(server.asked) == 1
    assert KEY not in caplog.text + repr(mine) + repr(mine.endpoint)


def test_an_account_without_credit_is_not_asked_again(server: Server) -> None:
    server.fault = always(error(429, "You exceeded your current quota", "insufficient_quota"))
    with pytest.raises(EmbeddingError, match="no credit"):
        embedder(server).embed(TEXTS)
    assert len(server.asked) == 1


@pytest.mark.parametrize("headers", [{"Retry_After": "1"}, {"Retry_After_Ms": "1000"}])
def test_a_429_is_obeyed(server: Server, headers: dict[str, str]) -> None:
    server.fault = first(1, error(429, "slow down", **headers))
    assert embedder(server).embed(TEXTS).vectors == expected(TEXTS)
    assert server.at[1] - server.at[0] >= 1


def test_a_storm_of_429_slows_down_and_loses_nothing(server: Server) -> None:
    server.fault = lambda number, handler: (
        error(429, "slow down", Retry_After_Ms="50") if number % 3 else None
    )
    texts = [f"text {number} " * 60 for number in range(1_000)]
    mine = embedder(server, patience=Patience(5, 5, 30))
    assert mine.embed(texts).vectors[::100] == expected(texts[::100])


def test_a_429_that_does_not_end_is_given_up(server: Server) -> None:
    server.fault = always(error(429, "slow down", Retry_After="60"))
    with pytest.raises(EmbeddingError, match="slow down"):
        embedder(server).embed(TEXTS)
    assert len(server.asked) == 1


def test_a_500_is_tried_again(server: Server) -> None:
    server.fault = first(1, error(500, "boom"))
    assert embedder(server).embed(TEXTS).vectors == expected(TEXTS)
    assert len(server.asked) == 2


def test_an_outage_is_given_up_and_then_nobody_waits(server: Server) -> None:
    server.fault = always(error(503, "overloaded"))
    mine = embedder(server)
    with pytest.raises(EmbeddingError, match="overloaded"):
        mine.embed(TEXTS)
    asked, begun = len(server.asked), time.monotonic()
    assert asked > 1
    with pytest.raises(EmbeddingError, match="overloaded"):
        mine.embed(TEXTS)
    assert (len(server.asked), time.monotonic() - begun < 0.2) == (asked, True)


def test_who_has_more_patience_is_not_kept_from_trying(server: Server) -> None:
    server.fault = always(error(503, "overloaded"))
    mine = embedder(server, patience=Patience(0.5, 0, 0))
    with pytest.raises(EmbeddingError):
        mine.embed(TEXTS)
    server.fault = lambda number, handler: None
    assert replace(mine, patience=QUICK).embed(TEXTS).vectors == expected(TEXTS)
    assert mine.embed(TEXTS).vectors == expected(TEXTS)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_has_connections_of_its_own(server: Server) -> None:
    mine = embedder(server)
    mine.embed(TEXTS[:1])
    child = os.fork()
    if not child:
        found = mine.embed(TEXTS[1:2]).vectors
        mine.endpoint.close()
        os._exit(0 if found == expected(TEXTS[1:2]) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert mine.embed(TEXTS[2:3]).vectors == expected(TEXTS[2:3])


def test_a_server_that_is_not_there_is_an_outage() -> None:
    with serving() as server:
        mine = embedder(server)
    with pytest.raises(EmbeddingError, match=rf"{server.url}: no connection"):
        mine.embed(TEXTS)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (silent, "no answer in time"),
        (dripping, "no answer in time"),
        (truncated, "no connection"),
        (always((200, {}, b'{"data": [{"embedding"')), "the answer is no JSON"),
        (always((200, {}, b"[]")), "no embeddings in it"),
        (always((200, {}, b'{"data": []}')), "5 texts were sent, and 0 embeddings came back"),
        (always((200, {"Content-Type": "text/html"}, b"<html>")), "the answer is no JSON"),
    ],
)
def test_an_answer_that_is_none_is_asked_for_again_and_given_up(
    server: Server, fault: Callable[[int, Handler], Reply | None], reason: str
) -> None:
    server.fault = fault
    begun = time.monotonic()
    with pytest.raises(EmbeddingError, match=reason):
        embedder(server).embed(TEXTS)
    assert len(server.asked) > 1
    assert time.monotonic() - begun < 5
    server.fault = lambda number, handler: None
    assert embedder(server).embed(TEXTS).vectors == expected(TEXTS)


def test_a_wrong_dimension_is_said_with_the_remedy(server: Server) -> None:
    server.embed = lambda text: hashed(text, 8)
    with pytest.raises(EmbeddingError, match="gives 8 numbers, not 32; name it MODEL@8"):
        embedder(server).embed(TEXTS)
    assert len(server.asked) == 1


def test_numbers_that_are_none_are_refused(server: Server) -> None:
    server.embed = lambda text: [0.0] * DIMENSIONS
    with pytest.raises(EmbeddingError, match="an embedding is unusable"):
        embedder(server).embed(TEXTS)


def test_a_request_that_is_wrong_is_not_repeated(server: Server) -> None:
    server.fault = always(error(400, "maximum context length is 512 tokens"))
    with pytest.raises(EmbeddingError, match="maximum context length"):
        embedder(server).embed(TEXTS)
    assert len(server.asked) == 1


def test_what_was_answered_before_a_failure_is_kept(server: Server, tmp_path: Path) -> None:
    texts = [f"text {number} " * 60 for number in range(1_000)]
    server.fault = lambda number, handler: error(400, "no") if number == 2 else None
    with pytest.raises(EmbeddingError):
        embedder(server, tmp_path, patience=PATIENT).embed(texts)
    bought = {text for n, body in enumerate(server.asked) if n != 2 for text in body["input"]}
    asked = len(server.texts)
    assert embedder(server, tmp_path, patience=PATIENT).embed(texts).vectors[0]
    assert bought.isdisjoint(server.texts[asked:])


def test_no_more_is_spent_than_may_be(server: Server) -> None:
    mine = embedder(server)
    cost = mine.estimate(TEXTS).cost
    capped = replace(mine, purse=replace(mine.purse, budget=Budget(2.5 * cost)))
    assert capped.embed(TEXTS).usage.cost == pytest.approx(cost)
    assert capped.embed([text + "!" for text in TEXTS]).vectors
    with pytest.raises(EmbeddingError, match="pass the cap"):
        capped.embed([text + "?" for text in TEXTS])
    assert len(server.asked) == 2


def test_an_estimate_sends_nothing_and_knows_what_was_bought(
    server: Server, tmp_path: Path
) -> None:
    mine = embedder(server, tmp_path)
    assert mine.estimate(TEXTS).tokens == mine.embed(TEXTS).usage.tokens
    asked = len(server.asked)
    assert mine.estimate(TEXTS).cost == 0
    assert len(server.asked) == asked


def test_a_broken_cache_costs_money_and_nothing_else(server: Server, tmp_path: Path) -> None:
    (tmp_path / "vectors.db").write_bytes(b"no database" * 100)
    assert embedder(server, tmp_path).embed(TEXTS).vectors == expected(TEXTS)
