"""A memory of real runs gives the same advice from a server as from a file."""

from pathlib import Path
from uuid import uuid4

import networkx as nx
import pytest

from benchmarks.corpus import EXAMPLES
from benchmarks.store_agreement import agreement, learn, opened, same_lines, some_states
from contextgraph.readers import read
from tests.server import Neo4jServer


def same_graph(one: "nx.MultiDiGraph[str]", other: "nx.MultiDiGraph[str]") -> bool:
    return bool(nx.utils.graphs_equal(one, other))


def test_a_graph_and_a_file_give_the_same_advice(tmp_path: Path) -> None:
    runs = list(read(EXAMPLES))[::2]
    with (
        opened(str(tmp_path / "memory.db"), "default") as file,
        opened("networkx:", "default") as graph,
    ):
        learn(file, runs)
        learn(graph, runs)
        found = agreement(file, graph, some_states(runs, 6, seed=1))
        for repo in {raw.repo for raw in runs}:
            assert file.playbook(repo) == graph.playbook(repo)
        for memory in (file, graph):
            memory.notes.remember("The cache is cleared by hand.", repo=runs[0].repo)
        assert same_graph(graph.graph(), file.graph())
    assert found.same_answers == found.states
    assert found.full_text_recall == found.vector_recall == found.same_order == 1.0


def test_a_server_and_a_file_give_the_same_advice(
    neo4j_server: Neo4jServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    user, password = neo4j_server.auth
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_USER", user)
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_PASSWORD", password)
    runs = list(read(EXAMPLES))[::2]
    both = (str(tmp_path / "memory.db"), "default"), (neo4j_server.uri, uuid4().hex)
    with opened(*both[0]) as file, opened(*both[1]) as server:
        learn(file, runs)
        learn(server, runs)
        found = agreement(file, server, some_states(runs, 6, seed=1))
        same = same_lines(tmp_path, some_states(runs, 12, seed=2), *both)
        for repo in {raw.repo for raw in runs}:
            task = next(raw.task for raw in runs if raw.repo == repo)
            assert file.playbook(repo, task) == server.playbook(repo, task)
            assert file.how(repo, "pytest tests/") == server.how(repo, "pytest tests/")

        assert file.store.vectors.active_space() is not None

    assert same == 12
    assert found.same_answers == found.states
    assert found.full_text_recall == found.vector_recall == found.same_order == 1.0
