"""``python -m benchmarks.pages FOLDER``: past issues as pages, found for new ones; BM25 beside it.

Reads the folder that `contextgraph evaluate --related` reads (SWE-ContextBench; MIT).
"""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from contextgraph import AgentMemory
from contextgraph.evaluation.judging import read_related
from contextgraph.knowledge import Page
from contextgraph.model import RawTrajectory
from contextgraph.text import bm25, words

_KS = (1, 5, 10)


def main() -> None:
    """Measure and print hit@k: how often one of the first k is linked to the new issue."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("folder", type=Path)
    issues, queries = read_related(parser.parse_args().folder)
    past = [*issues]
    with AgentMemory.open(":memory:") as memory:
        for issue in past:
            title, _, content = issue.task.strip().partition("\n")
            page = Page(issue.instance_id, title or "-", content=content[:90_000], repo=issue.repo)
            memory.pages.add_page(page)

        def by_pages(query: RawTrajectory) -> list[str]:
            ranked = memory.pages.search(query.task, repo=query.repo, limit=_KS[-1] + 1)
            return [match.page.id for match in ranked]

        _show("pages", by_pages, queries)
    _show("BM25 in the repository, then elsewhere", _by_words(past), queries)


def _by_words(past: Sequence[RawTrajectory]) -> Callable[[RawTrajectory], list[str]]:
    texts = [Counter(words(issue.task)) for issue in past]

    def ranked(query: RawTrajectory) -> list[str]:
        scores = bm25([*dict.fromkeys(words(query.task))], texts)
        order = sorted(
            zip(past, scores, strict=True),
            key=lambda scored: (scored[0].repo.casefold() != query.repo.casefold(), -scored[1]),
        )
        return [issue.instance_id for issue, _ in order]

    return ranked


def _show(
    name: str,
    ranked: Callable[[RawTrajectory], list[str]],
    queries: Sequence[tuple[RawTrajectory, frozenset[str]]],
) -> None:
    hits = Counter[int]()
    for query, linked in queries:
        ids = [id_ for id_ in ranked(query) if id_ != query.instance_id]
        hits.update(k for k in _KS if not linked.isdisjoint(ids[:k]))
    figures = ", ".join(f"hit@{k} {hits[k] / len(queries):.3f}" for k in _KS)
    print(f"{name}: {figures}, {len(queries)} issues")


if __name__ == "__main__":
    main()
