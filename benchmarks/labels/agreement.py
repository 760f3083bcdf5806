"""How far two readers of the same runs agree: ``python -m benchmarks.labels.agreement``.

The second one labelled a part of the held sets of agents without seeing the labels of the first.
"""

import json

from benchmarks.labels.load import LABELS, SETS, Label, read_labels

_BORDER = 2


def main() -> None:
    """Print the agreement on loops and on recoveries."""
    file = LABELS / "agents" / "second_reader.jsonl"
    second = [json.loads(line) for line in file.read_text().splitlines()]
    loops = [
        (_first(label, "loops")["has_loop"], label["has_loop"])
        for label in second
        if "has_loop" in label
    ]
    both = sum(first and again for first, again in loops)
    f1 = 2 * both / sum(first + again for first, again in loops)
    same = sum(first == again for first, again in loops)
    print(f"loops: {same} of {len(loops)} runs read the same, F1 {f1:.3f}")
    ends = [label for label in second if "has_loop" not in label]
    near = sum(_is_near(_first(label, "recoveries"), label) for label in ends)
    print(f"recoveries: {near} of {len(ends)} ends within {_BORDER} steps")


def _first(second: Label, kind: str) -> Label:
    """Labels of the first reader for the same run, and for the same error of it."""
    key = ("run", "error_step") if kind == "recoveries" else ("run",)
    labels = read_labels(SETS[second["set"]] / f"{kind}.jsonl")
    return next(label for label in labels if all(label[name] == second[name] for name in key))


def _is_near(first: Label, second: Label) -> bool:
    first_step, second_step = first["recovered_step"], second["recovered_step"]
    if first_step is None or second_step is None:
        return first_step is second_step
    return bool(abs(first_step - second_step) <= _BORDER)


if __name__ == "__main__":
    main()
