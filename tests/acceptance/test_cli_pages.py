"""``contextgraph pages`` and ``entities``."""

from pathlib import Path

import pytest

from tests.acceptance.command_line import contextgraph


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


def test_a_page_is_stored_listed_found_and_removed(store: Path) -> None:
    at = ("--store", store)
    given = ("--title", "Payments", "--reference", "ledger", "--tag", "Stripe")
    for _ in range(2):
        result = contextgraph("pages", "put", "payments", *given, *at, stdin=b"retried for days")
        assert result.out == "payments: stored\n"
    (page,) = contextgraph("pages", "list", *at, "--json").records
    assert (page["id"], page["references"], page["tags"]) == ("payments", ["ledger"], ["stripe"])
    (found,) = contextgraph("pages", "search", "retry", *at, "--json").records
    assert (found["id"], found["content"], found["score"]) == ("payments", "retried for days", 1)
    assert contextgraph("pages", "get", "payments", *at).out == "# Payments\n\nretried for days\n"
    assert contextgraph("pages", "remove", "payments", *at, "--json").records == [{"removed": True}]
    again = contextgraph("pages", "get", "payments", *at)
    assert (again.code, "no page 'payments'" in again.err) == (1, True)


def test_entities_are_added_linked_and_removed(store: Path) -> None:
    at = ("--store", store)
    for name in ("Cart", "PriceRule"):
        contextgraph("entities", "add", name, "--type", "class", *at)
    contextgraph("entities", "link", "Cart", "depends_on", "PriceRule", "--weight", "0.9", *at)
    (found,) = contextgraph("entities", "related", "pricerule", *at, "--json").records
    assert (found["name"], found["distance"], found["score"]) == ("Cart", 1, 0.5)
    (named,) = contextgraph("entities", "find", "what is a car", *at, "--json").records
    assert named["name"] == "Cart"
    removed = contextgraph("entities", "link", "Cart", "depends_on", "PriceRule", "--remove", *at)
    assert removed.out == "relation 'Cart depends_on PriceRule' removed\n"
    assert not contextgraph("entities", "related", "Cart", *at, "--json").records
    assert contextgraph("entities", "tags", "price", *at, "--json").records == [
        {"price": 1, "price-rule": 1}
    ]
    assert contextgraph("entities", "remove", "Cart", *at).out == "entity 'Cart' removed\n"
    again = contextgraph("entities", "remove", "Cart", *at)
    assert (again.code, "no entity 'Cart' in the memory" in again.err) == (1, True)
