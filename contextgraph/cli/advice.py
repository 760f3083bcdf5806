"""An answer of the memory, for people."""

from collections.abc import Iterable, Iterator

from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from contextgraph.cli.output import one_line, plain, screen
from contextgraph.model import (
    ErrorSolution,
    FailureWarning,
    MemoryContext,
    Outcome,
    ScopeLevel,
    SimilarCase,
    Suggestion,
    Why,
    repo_of,
)
from contextgraph.text import number_of

ACTION_WIDTH = 160
TEXT_WIDTH = 600
NAMED_RUNS = 3
OUTCOMES = {Outcome.SOLVED: "solved", Outcome.FAILED: "not solved", Outcome.UNKNOWN: "unknown"}


def show_context(context: MemoryContext) -> None:
    """Print the answer, each item with its why; one line where nothing is known."""
    console = screen()
    if not context:
        console.print("nothing useful known")
        return
    for title, solutions in context.solutions_by_title.items():
        _panel(console, title, map(_solution, solutions))
    _panel(console, "What has worked", map(_suggestion, context.suggestions))
    _panel(console, "Similar runs", map(_case, context.similar_cases))
    _panel(console, "What often goes wrong", map(_warning, context.warnings))
    console.print(f"context {context.id}", style="dim")


def _panel(console: Console, title: str, items: Iterable[list[Text]]) -> None:
    blocks = list(_numbered(items))
    if blocks:
        console.print(Panel(Group(*blocks), title=title, title_align="left", border_style="cyan"))


def _numbered(items: Iterable[list[Text]]) -> Iterator[Text | Padding]:
    for number, (head, *rest) in enumerate(items, start=1):
        yield Text.assemble((f"{number}. ", "bold"), head)
        for line in rest:
            yield Padding(line, (0, 0, 0, 3))


def _solution(item: ErrorSolution) -> list[Text]:
    kind = " (a workaround)" if item.workaround else ""
    head = Text.assemble(
        (plain(item.error_type), "bold red"),
        f"{kind} in ",
        _run(item.repo, item.instance_id),
    )
    said = Text(one_line(item.description, TEXT_WIDTH))
    actions = [
        Text(f"$ {one_line(action, ACTION_WIDTH)}", style="green") for action in item.actions
    ]
    return [head, said, *actions, _why(item.why, item.score)]


def _suggestion(item: Suggestion) -> list[Text]:
    head = Text(one_line(item.situation, TEXT_WIDTH), style="bold")
    said = Text(one_line(item.strategy, TEXT_WIDTH))
    trust = Text(f"confidence {item.confidence:.2f}, {item.status}", style="dim")
    return [head, said, trust, _why(item.why, item.score)]


def _case(item: SimilarCase) -> list[Text]:
    run = _run(item.repo, item.instance_id)
    head = Text.assemble((run, "bold"), f", outcome {OUTCOMES[item.outcome]}")
    said = Text(one_line(item.told, TEXT_WIDTH))
    fragments = [
        Text(
            f"steps {fragment.start}-{fragment.end}, {fragment.fragment_type.replace('_', ' ')}:"
            f" {one_line(item.told_of(fragment), ACTION_WIDTH)}",
            style="green",
        )
        for fragment in item.fragments
    ]
    return [head, said, *fragments, _why(item.why, item.score)]


def _warning(item: FailureWarning) -> list[Text]:
    return [Text(one_line(item.text, TEXT_WIDTH), style="yellow"), _why(item.why)]


def _run(repo: str, instance_id: str) -> str:
    named_by_id = not repo or repo_of(instance_id) == repo
    return plain(instance_id if named_by_id else f"{repo}, {instance_id}")


def _why(why: Why, score: float | None = None) -> Text:
    reasons = ["this repository" if why.scope is ScopeLevel.REPO else "any repository"]
    if why.signature_level:
        reasons.append(f"same {why.signature_level}")
    reasons.append(number_of(why.support, "run"))
    reasons += [f"{hit.channel} #{hit.rank} ({hit.score:.2f})" for hit in why.channels]
    if score is not None:
        reasons.append(f"score {score:.2f}")
    if why.trajectories:
        reasons.append(f"seen in {', '.join(why.trajectories[:NAMED_RUNS])}")
    return Text(plain(f"why: {'; '.join(reasons)}"), style="dim")
