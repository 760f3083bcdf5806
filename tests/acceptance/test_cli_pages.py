"""Pages and entities by ``contextgraph call``."""

from pathlib import Path

import pytest

from tests.acceptance.command_line import call


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


def test_a_page_is_stored_listed_found_and_removed(store: Path) -> None:
    content = store.with_name("payments.md")
    content.write_text("retried for days")
    for _ in range(2):
        (stored,) = call(
            "pages_put",
            store,
            page_id="payments",
            title="Payments",
            references=["ledger"],
            tags=["Stripe"],
            content=f"@{content}",
        ).records
        assert stored["id"] == "payments"
    (page,) = call("pages_list", store).records
    assert (page["id"], page["references"], page["tags"]) == ("payments", ["ledger"], ["stripe"])
    (found,) = call("pages_search", store, question="retry").records
    assert (found["id"], found["content"], found["score"]) == ("payments", "retried for days", 1)
    (read,) = call("pages_get", store, page_id="payments").records
    assert (read["title"], read["content"]) == ("Payments", "retried for days")
    assert call("pages_remove", store, page_id="payments").records == [{"removed": True}]
    assert call("pages_remove", store, page_id="payments").code == 1
    again = call("pages_get", store, page_id="payments")
    assert (again.code, "no page 'payments'" in again.err) == (1, True)


def test_entities_are_added_linked_and_removed(store: Path) -> None:
    for name in ("Cart", "PriceRule"):
        call("entities_add", store, name=name, entity_type="class")
    relation = {"source": "Cart", "relation": "depends_on", "target": "PriceRule"}
    assert call("entities_link", store, **relation, weight=0.9).records[0]["weight"] == 0.9
    (found,) = call("entities_related", store, name="pricerule").records
    assert (found["name"], found["distance"], found["score"]) == ("Cart", 1, 0.5)
    assert call("entities_get", store, name="Cart").records[0]["entity_type"] == "class"
    assert call("entities_get", store, name="Basket").code == 1
    (named,) = call("entities_find", store, question="what is a car").records
    assert named["name"] == "Cart"
    assert call("entities_unlink", store, **relation).records == [{"removed": True}]
    assert not call("entities_related", store, name="Cart").records
    tags = call("entities_tags", store, prefix="price").records
    assert tags == [{"price": 1, "price-rule": 1}]
    removed = [call("entities_remove", store, name="Cart") for _ in range(2)]
    assert [(one.records, one.code) for one in removed] == [
        ([{"removed": True}], 0),
        ([{"removed": False}], 1),
    ]
    for verb in ("add", "get"):
        (own,) = call(f"entities_{verb}", store, name="Cart", repo="acme/shop").records
        assert (own["repo"], own["entity_type"]) == ("acme/shop", "")
