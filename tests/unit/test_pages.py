"""Pages and entities: index, search, references, relations, tags."""

from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from contextgraph import AgentMemory
from contextgraph.errors import AlreadyExistsError, InvalidNoteError, NotFoundError
from contextgraph.knowledge import Entity, Page

SHOP = "acme/shop"


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as memory:
        yield memory


def test_a_page_is_added_updated_and_removed_with_the_index(memory: AgentMemory) -> None:
    pages = memory.pages
    pages.add_page(Page("payments", "Payments", "stripe", "Webhooks are retried.", ("Stripe",)))
    with pytest.raises(AlreadyExistsError, match="'payments' already"):
        pages.add_page(Page("payments", "Payments"))
    first = pages.get_page("payments")
    assert (first.tags, first.content) == (("stripe",), "Webhooks are retried.")
    pages.update_page(Page("payments", "Payments", "adyen", "Key sk-live", repo=SHOP))
    (entry,) = pages.get_index()
    assert (entry.id, entry.summary, entry.content, entry.repo) == ("payments", "adyen", "", SHOP)
    assert pages.get_index("no/where") == ()
    assert (pages.remove_page("payments"), pages.remove_page("payments")) == (True, False)
    assert pages.get_index() == ()
    for missing in (pages.get_page, lambda id_: pages.update_page(Page(id_, "Payments"))):
        with pytest.raises(NotFoundError, match="no page 'payments'"):
            missing("payments")


def test_pages_that_cannot_be_are_refused(memory: AgentMemory) -> None:
    with pytest.raises(InvalidNoteError, match="needs an id and a title"):
        memory.pages.add_page(Page("payments", " "))
    with pytest.raises(InvalidNoteError, match="100,000 characters, not 100,001"):
        memory.pages.add_page(Page("payments", "Payments", content="x" * 100_001))


def test_a_page_is_found_by_its_title_first_and_in_its_repository(memory: AgentMemory) -> None:
    pages = memory.pages
    pages.add_page(Page("ledger", "Ledger", content="entries, refunds and fees", repo=SHOP))
    pages.add_page(Page("refunds", "Refunds", content="how money goes back", repo=SHOP))
    pages.add_page(Page("elsewhere", "Refunds", "refunds", "refunds", repo="acme/bank"))
    found = pages.search("refund", repo=SHOP)
    assert [one.page.id for one in found] == ["refunds", "ledger", "elsewhere"]
    assert found[0].score == 1 > found[1].score
    assert [one.page.id for one in pages.search("refund", limit=1)] == ["elsewhere"]
    assert pages.search("kubernetes") == ()


def test_notes_and_pages_are_recalled_together_or_apart(memory: AgentMemory) -> None:
    memory.pages.add_page(Page("refunds", "Refunds"))
    memory.notes.remember("refunds take three days")
    assert {one.note.kind for one in memory.notes.recall("refunds")} == {"note", "page"}
    (note,) = memory.notes.recall("refunds", strategy="notes")
    assert note.note.kind == "note"
    assert len(memory.pages.search("refunds")) == 1
    assert len(memory.notes.of()) == 1


def test_references_are_followed_to_a_depth(memory: AgentMemory) -> None:
    for id_, *references in (("a", "b", "gone"), ("b", "c", "a"), ("c",)):
        memory.pages.add_page(Page(id_, id_.upper(), references=tuple(references)))
    assert memory.pages.references("a") == {"b": 1}
    assert memory.pages.references("a", depth=3) == {"b": 1, "c": 2}


def test_entities_are_found_by_name_tag_and_type(memory: AgentMemory) -> None:
    entities = memory.entities
    entities.add_entity(Entity("StateGraph", "class", "holds the state"))
    entities.add_entity(Entity("LangGraph", "library", tags=("Graphs", "agent")))
    assert entities.get_entity("stategraph").tags == ("state", "graph", "state-graph")
    with pytest.raises(AlreadyExistsError, match="'STATEGRAPH' already"):
        entities.add_entity(Entity("STATEGRAPH"))
    for question in ("what is a StateGra", "every class", "state"):
        assert [one.name for one in entities.find_by_keywords(question)] == ["StateGraph"]
    assert entities.find_tags("Graph") == {"graph": 2}
    assert entities.set_entity_tags("LangGraph", [f"tag{chr(97 + n)}" for n in range(10)])[-1] == (
        "tagh"
    )
    assert entities.find_tags("agent") == {}


def test_an_entity_gets_the_tags_of_the_pages_that_mention_it(memory: AgentMemory) -> None:
    memory.entities.add_entity(Entity("PriceRule", tags=("price",)))
    memory.pages.add_page(
        Page("prices", "Prices", tags=("Refunds",), mentions=("PriceRule", "Gone"))
    )
    memory.pages.update_page(Page("prices", "Prices", tags=("Sales",), mentions=("PriceRule",)))
    assert memory.entities.get_entity("PriceRule").tags == ("price", "refund", "sale")


def test_related_entities_are_found_in_both_directions(memory: AgentMemory) -> None:
    entities = memory.entities
    for name in ("PriceRule", "Cart", "Checkout", "Ada"):
        entities.add_entity(Entity(name))
    entities.add_relation("Cart", "PriceRule", "depends_on", 0.9)
    entities.add_relation("Checkout", "Cart", "depends_on")
    entities.add_relation("PriceRule", "Ada", "owned_by")
    memory.pages.add_page(Page("prices", "Prices", mentions=("PriceRule",)))

    def related(depth: int, *types: str) -> list[tuple[str, int]]:
        found = entities.get_related("pricerule", depth, *types)
        return [(one.entity.name, one.distance) for one in found]

    assert related(1) == [("Ada", 1), ("Cart", 1)]
    assert [one.pages for one in entities.get_related("Cart", 1, "depends_on")] == [
        (),
        ("prices",),
    ]
    assert related(2, "depends_on") == [("Cart", 1), ("Checkout", 2)]
    assert entities.get_related("Cart", 1)[0].score == 0.5
    # Ends where no relation goes on.
    assert entities.get_related("Cart", 10**9) == entities.get_related("Cart", 9)
    assert entities.remove_relation("Cart", "PriceRule", "depends_on")
    assert not entities.remove_relation("Cart", "PriceRule", "depends_on")
    assert related(2) == [("Ada", 1)]
    assert entities.remove_entity("Ada")
    assert related(2) == []
    with pytest.raises(NotFoundError, match="no entity 'Ada'") as caught:
        entities.add_relation("Cart", "Ada", "owned_by")
    assert caught.value.is_recoverable


def test_pages_and_entities_are_exported_and_imported(memory: AgentMemory, tmp_path: Path) -> None:
    memory.pages.add_page(Page("prices", "Prices", mentions=("PriceRule",)))
    memory.entities.add_entity(Entity("PriceRule"))
    memory.export(tmp_path / "memory.jsonl")
    with AgentMemory.open(str(tmp_path / "other.db")) as other:
        other.import_archive(tmp_path / "memory.jsonl", as_owner=True)
        assert other.pages.get_page("prices") == memory.pages.get_page("prices")
        assert other.entities.get_entity("PriceRule") == memory.entities.get_entity("PriceRule")


def test_an_exported_graph_has_notes_with_their_links(memory: AgentMemory, tmp_path: Path) -> None:
    memory.pages.add_page(Page("prices", "Prices", mentions=("PriceRule",)))
    memory.entities.add_entity(Entity("PriceRule"))
    old = memory.notes.remember("CI uses Python 3.11").id
    new = memory.notes.remember("CI uses Python 3.12", security="restricted").id
    memory.export_graph(tmp_path / "graph.graphml", "graphml")
    graph = nx.read_graphml(tmp_path / "graph.graphml", force_multigraph=True)
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph.nodes["page:prices"]["label"] == "Page"
    assert graph.nodes[new]["name"] == "[restricted]"
    assert graph.has_edge("page:prices", "entity:pricerule", "MENTIONS")
    assert graph.has_edge(new, old, "SUPERSEDES")
    assert memory.graph().nodes[new]["name"] == "[restricted]"


def test_a_note_is_explained_with_its_relations(memory: AgentMemory) -> None:
    first = memory.notes.remember("CI uses Python 3.11", repo=SHOP).id
    second = memory.notes.remember("CI uses Python 3.12", repo=SHOP).id
    memory.pages.add_page(Page("ci", "CI", references=("gone",), mentions=("Python",)))
    found = memory.explain(second)
    assert found is not None
    assert (found.label, found.name) == ("Note", "CI uses Python 3.12")
    assert [(one.type, one.outgoing, one.name) for one in found.relations] == [
        ("follows", True, "CI uses Python 3.11"),
        ("supersedes", True, "CI uses Python 3.11"),
    ]
    replaced = memory.explain(first)
    assert replaced is not None
    assert [(one.type, one.outgoing, one.id) for one in replaced.relations] == [
        ("follows", False, second),
        ("superseded_by", True, second),
        ("supersedes", False, second),
    ]
    page = memory.explain("page:ci")
    assert page is not None
    assert {one.id for one in page.relations} == {"page:gone", "entity:python"}
    assert memory.explain("note_unknown") is None
    assert memory.get_stats().notes == {"note": 1, "page": 1}
