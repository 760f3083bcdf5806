"""``python -m benchmarks.search QUESTIONS LOGS…``: is the right session found, and how far down.

QUESTIONS is a JSON list of objects with a `question`, the sessions that answer it (`gold`, names of
instances), a `kind` and a `part`. Beside the product stand BM25 over turns, with ``--embedder
local`` also their embedding, and both fused by rank. Not learned from are the questions: they are
to be written from the sessions alone, and those of one ``--part`` looked at once.
"""

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from contextgraph import AgentMemory
from contextgraph.inference.local import local_embedder
from contextgraph.knowledge.ranking import reciprocal_rank_fusion
from contextgraph.text import overlap, rarity, stems

_NEAR = (1, 5)
_FUSED = 1_000


class Turns:
    """The turns of the sessions of a memory: texts of people and agents, each whole and once."""

    def __init__(self, memory: AgentMemory) -> None:
        said: dict[str, str] = {}
        for run in memory.store.runs.ids():
            raw = memory.store.runs.raw(run)
            assert raw
            texts = [
                raw.task,
                *(text for step in raw.steps for text in (step.thought, step.user_message)),
            ]
            for text in filter(None, texts):
                said.setdefault(text, raw.instance_id)
        self.texts, self.sessions = [*said], [*said.values()]
        self._counts = [Counter(stems(text)) for text in self.texts]
        self._having = Counter(word for counts in self._counts for word in counts)
        self._vectors: Any = None

    def by_words(self, question: str) -> list[int]:
        """Return the turns by BM25, best first."""
        weights = {word: rarity(self._having[word], len(self.texts)) for word in stems(question)}
        scores = [overlap(weights, counts) for counts in self._counts]
        return sorted(filter(scores.__getitem__, range(len(scores))), key=lambda at: -scores[at])

    def by_meaning(self, question: str) -> list[int]:
        """Return the turns by the cosine of their embeddings, best first."""
        embedder = local_embedder("")
        if self._vectors is None:
            made = embedder.embed(self.texts).vectors
            self._vectors = np.stack([one.numbers() if one else np.zeros(384) for one in made])
        (asked,) = embedder.embed([question]).vectors
        return np.argsort(-(self._vectors @ asked.numbers())).tolist() if asked else []

    def by_both(self, question: str) -> list[int]:
        """Return the turns by both, fused by rank."""
        rankings = {"words": self.by_words(question), "meaning": self.by_meaning(question)}
        return [*reciprocal_rank_fusion({name: one[:_FUSED] for name, one in rankings.items()})]

    def sessions_of(self, ranked: Sequence[int]) -> list[str]:
        """Return the sessions of *ranked* turns, each once."""
        return [*dict.fromkeys(self.sessions[at] for at in ranked)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("questions", type=Path)
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--part", default="dev")
    parser.add_argument("--embedder", default="tfidf", help="tfidf or local")
    options = parser.parse_args()
    asked = [
        one for one in json.loads(options.questions.read_text()) if one["part"] == options.part
    ]
    with (
        TemporaryDirectory() as folder,
        AgentMemory.open(f"{folder}/memory.db", embedder=options.embedder) as memory,
    ):
        began = time.process_time()
        for logs in options.logs:
            memory.learn(logs)
        print(f"{time.process_time() - began:.1f} s to learn", end=", ")
        began = time.process_time()
        passages = memory.embed()
        print(f"{passages} passages embedded in {time.process_time() - began:.1f} s of CPU")
        turns = Turns(memory)
        methods: dict[str, Callable[[str], list[str]]] = {
            "contextgraph": lambda question: [
                *dict.fromkeys(one.session for one in memory.search(question) if one.run)
            ],
            "BM25 over turns": lambda question: turns.sessions_of(turns.by_words(question)),
        }
        if options.embedder != "tfidf":
            methods |= {
                "embedding over turns": lambda asked: turns.sessions_of(turns.by_meaning(asked)),
                "both, by rank": lambda asked: turns.sessions_of(turns.by_both(asked)),
            }
        for name, method in methods.items():
            print(_line(name, asked, method))


def _line(name: str, asked: Sequence[Mapping[str, Any]], method: Callable[[str], list[str]]) -> str:
    hits: defaultdict[str, list[tuple[bool, ...]]] = defaultdict(list)
    began = time.process_time()
    for one in asked:
        found, gold = method(one["question"]), {*one["gold"]}
        hits[one["kind"]].append(tuple(bool(gold & {*found[:near]}) for near in _NEAR))
    seconds = (time.process_time() - began) / len(asked)
    every = [hit for own in hits.values() for hit in own]
    shares = "  ".join(
        f"@{near} {np.mean([hit[at] for hit in every]):.3f}" for at, near in enumerate(_NEAR)
    )
    kinds = ", ".join(
        f"{kind} {sum(hit[0] for hit in own)}/{sum(hit[1] for hit in own)} of {len(own)}"
        for kind, own in sorted(hits.items())
    )
    return f"{name:<22} {shares}  {1000 * seconds:.0f} ms  ({kinds})"


if __name__ == "__main__":
    main()
