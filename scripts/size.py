"""Lines of each package, and how many are in files that serve only what 0.1 did not have.

    .venv/bin/python -m scripts.size

prints the table in docs/measurements.md.
"""

from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "contextgraph"

# What was added after 0.1: the files, as patterns of paths, that serve nothing else.
ADDED = {
    "formats": """integrations/workers.py
        readers/chat.py readers/conversation.py readers/envelopes.py readers/exchange.py
        readers/histories.py readers/marked_text.py readers/openhands.py
        readers/pipelines.py""",
    "advice": """consolidation/gate.py model/playbook.py working_tree.py
        retrieval/evidence.py retrieval/files.py retrieval/freshness.py retrieval/names.py
        retrieval/playbook.py trace/project.py""",
    "agents": """cli/service.py client/* experiment/*
        integrations/* live.py mcp_server/* page.py server/* telemetry.py""",
    "trust": """governance/evidence.py processes.py retrieval/credit.py
        store/sqlite/checksums.py store/sqlite/health.py trace/hazards.py""",
    "notes": """cli/notes.py governance/conflict.py governance/forgetting.py
        governance/forgetting.py keyed/* knowledge/* llm/chat.py model/note.py
        retrieval/notes.py sessions/* store/*/notes.py store/vector_index.py""",
}


def main() -> None:
    # The first part that names a file has it.
    parts = {
        path: part
        for part, patterns in reversed(ADDED.items())
        for pattern in patterns.split()
        for path in _matching(pattern)
    }
    lines: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for path in sorted(PACKAGE.rglob("*.py")):
        package, _, below = path.relative_to(PACKAGE).as_posix().partition("/")
        count = len(path.read_text(encoding="utf-8").splitlines())
        for row in (package if below else "modules outside packages", "all"):
            lines[row]["files"] += 1
            lines[row]["lines"] += count
            lines[row][parts.get(path, "0.1")] += count
    columns = ("files", "lines", "0.1", *ADDED)
    print(f"| package | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for package, counts in sorted(lines.items(), key=lambda item: (item[0] == "all", item[0])):
        cells = (f"{counts[column]:,}" if counts[column] else "" for column in columns)
        print(f"| {package} | {' | '.join(cells)} |")


def _matching(pattern: str) -> list[Path]:
    paths = [path for path in PACKAGE.glob(pattern) if path.suffix == ".py"]
    if not paths:
        raise SystemExit(f"scripts/size.py: {pattern} matches no file")
    return paths


if __name__ == "__main__":
    main()
