"""``python -m benchmarks.liar --sessions FOLDER --by COMMAND``: a weak model as a liar.

COMMAND reads a request on standard input, as `contextgraph distil --by` runs it; a small model
invents quotes often. Exits with 1 where a lesson is kept whose quote is not in the turn it cites.
``--requests N`` bounds how many sessions are asked about, shortest first.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from benchmarks.corpus import sessions_of
from contextgraph.errors import RemoteError
from contextgraph.inference.answering import ProgramAnswerer
from contextgraph.inference.chat import prompt_text
from contextgraph.knowledge.distil import Request, UnusableError, checked, session_of
from contextgraph.learning.distilling import PROMPT


def main() -> None:
    """Print how many answers and lessons counted, and why others did not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.liar", description=__doc__)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--by", required=True)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=300.0, help="for each answer")
    options = parser.parse_args()
    runs = {run.instance_id: run for run in sessions_of(options.sessions)}
    sessions = [one for id_, run in runs.items() if (one := session_of(run, id_))]
    asked = [Request(one, 0, (), prompt_text(PROMPT)) for one in sessions]
    asked.sort(key=lambda request: len(request.text))
    ask = ProgramAnswerer(options.by, options.seconds)
    counts, reasons, invented = Counter[str](), Counter[str](), 0
    for request in asked[: options.requests]:
        counts["requests"] += 1
        try:
            found = checked(ask(request.text).text, request)
        except (RemoteError, UnusableError) as error:
            counts["without a list"] += 1
            print(f"{request.name}: {error}", file=sys.stderr)
            continue
        said = {turn.step: " ".join(turn.text.split()) for turn in request.turns}
        quotes = [one for lesson in found.kept for one in lesson.facts.evidence]
        invented += sum(one.quote not in said[one.step] for one in quotes)
        counts["kept"] += len(found.kept)
        counts["refused"] += len(found.refused)
        reasons.update(one.reason.partition(" '")[0] for one in found.refused)
        for lesson in found.kept:
            print(f"kept: {lesson.text}")
    print(dict(counts), dict(reasons.most_common()), f"{invented} invented quotes kept")
    sys.exit(invented > 0)


if __name__ == "__main__":
    main()
