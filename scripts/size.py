"""Files, lines and functions of each package, and the longest files.

.venv/bin/python -m scripts.size
"""

import ast
from collections import defaultdict
from pathlib import Path
from statistics import median

PACKAGE = Path(__file__).parents[1] / "contextgraph"
LONGEST = 10


def main() -> None:
    lines: dict[str, dict[str, int]] = defaultdict(dict)
    functions: dict[str, list[int]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        package, _, below = name.partition("/")
        text = path.read_text(encoding="utf-8")
        defined = [
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for row in (package if below else "modules outside packages", "all"):
            lines[row][name] = len(text.splitlines())
            functions[row] += defined
    print("| package | files | lines | functions | median of their lines |\n|---|---|---|---|---|")
    for row in sorted(lines, key=lambda row: (row == "all", row)):
        middle = median(functions[row] or [0])
        counts = (len(lines[row]), sum(lines[row].values()), len(functions[row]))
        print(f"| {row} | {' | '.join(f'{count:,}' for count in counts)} | {middle:g} |")
    print(f"\nThe {LONGEST} longest:")
    for name, count in sorted(lines["all"].items(), key=lambda item: -item[1])[:LONGEST]:
        print(f"  {count:,} {name}")


if __name__ == "__main__":
    main()
