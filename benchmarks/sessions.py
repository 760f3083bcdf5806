"""``python -m benchmarks.sessions RUNS``: what of a run can be read in 2,000 tokens of its prompt.

At every fifth step of recorded runs: whether a rule, the first line of the task, the message of the
open error, the open file and the last changed file are in the section of a working memory, and in
the end of the log, its head and end, and its last three rounds.
"""

import argparse
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from contextgraph.agents.live import WorkingMemory
from contextgraph.model import Phase, RawTrajectory, State
from contextgraph.readers import read
from contextgraph.text import clip_tokens, count_tokens
from contextgraph.trace import StateTracker, StepReader, signature_of

TOKENS, EVERY = 2_000, 5
RULE = "never change the public API of this package"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--every", type=int, default=4, help="take one run of so many")
    options = parser.parse_args()
    questions: Counter[str] = Counter()
    held: Counter[tuple[str, str]] = Counter()
    largest = moments = steps = 0
    began = time.process_time()
    for raw in islice(read(options.runs), 0, None, options.every):
        steps += len(raw.steps)
        for wanted, texts in moments_of(raw):
            moments += 1
            largest = max(largest, count_tokens(texts["working memory"]))
            for what, text in wanted.items():
                questions[what] += 1
                held.update((what, where) for where, shown in texts.items() if text in shown)
    for what, count in questions.items():
        shares = {where: held[what, where] / count for where in _alternatives("", deque())}
        print(f"{what}: {count} times, working memory {held[what, 'working memory'] / count:.2f},")
        print("  " + ", ".join(f"{where} {share:.2f}" for where, share in shares.items()))
    print(f"{moments} moments, at most {largest} tokens")
    print(f"{1000 * (time.process_time() - began) / steps:.1f} ms of CPU a step, all methods")


def moments_of(raw: RawTrajectory) -> Iterator[tuple[Mapping[str, str], Mapping[str, str]]]:
    """(what is to be read, text by method) at every fifth step of *raw*."""
    title = (raw.task.strip().splitlines() or [""])[0]
    work = WorkingMemory(TOKENS)
    work.add_trigger("issue", raw.task, focus=title[:100])
    work.inject(RULE)
    reader, tracker = StepReader(), StateTracker(State(phase=Phase.UNDERSTANDING))
    log, rounds, changed = f"issue: {raw.task}\n{RULE}\n", deque[str](maxlen=3), ""
    for number, step in enumerate(raw.steps, start=1):
        read_step = reader.push(step)
        state = tracker.push(read_step)
        work.add_step(step)
        rounds.append(f"{step.thought}\n$ {step.action.text}\n{step.observation or ''}\n")
        log += rounds[-1]
        if read_step.succeeded and read_step.reading.changed:
            changed = read_step.reading.changed[-1]
        if number % EVERY == 0:
            error = signature_of(state.current_error)
            wanted = {
                "rule": RULE,
                "task": title[:80],
                "error": error.message[:80].partition("\n")[0] if error else "",
                "open file": Path(state.open_file).name,
                "changed file": Path(changed).name,
            }
            texts = {"working memory": work.to_prompt_section(), **_alternatives(log, rounds)}
            yield {what: text for what, text in wanted.items() if text}, texts


def _alternatives(log: str, rounds: deque[str]) -> dict[str, str]:
    return {
        "end of the log": clip_tokens(log[::-1], TOKENS, at="end")[::-1],
        "head and end": clip_tokens(log, TOKENS),
        "last three rounds": "".join(rounds),
    }


if __name__ == "__main__":
    main()
