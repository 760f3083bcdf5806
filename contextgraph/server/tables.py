"""The tables of the pages: what the memory holds, in HTML."""

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from contextgraph.memory import AgentMemory
from contextgraph.model import (
    Evidence,
    Exposure,
    MemoryCounts,
    Note,
    RecoveryCandidate,
    Relation,
    RepositoryPlaybook,
    Trajectory,
)
from contextgraph.page import shown
from contextgraph.retrieval import playbook_lines
from contextgraph.server.drawings import graph_address, numbers, share_bar, table, tiles
from contextgraph.text import number_of, one_line
from contextgraph.trace import describe_remedy

_COMMANDS, _ERRORS, _REPOSITORIES, _RELATIONS = 8, 12, 200, 500


def memory_tiles(counts: MemoryCounts) -> str:
    """How much the memory holds."""
    return tiles(
        [
            ("runs", f"{counts.nodes['Trajectory']:,}"),
            ("repositories", f"{counts.repositories:,}"),
            ("kinds of error", f"{counts.nodes['ErrorPattern']:,}"),
            ("recoveries", f"{counts.edges['RECOVERED']:,}"),
            ("methodologies", f"{counts.nodes.get('Methodology', 0):,}"),
        ]
    )


def error_table(memory: AgentMemory) -> str:
    """The most frequent types of error, and which one follows each in the same run."""
    frequency = memory.stats.get_error_frequency()
    following = memory.stats.get_error_transitions()
    most = max(frequency.values(), default=0)
    rows = []
    for error, count in [*frequency.items()][:_ERRORS]:
        nexts = [*following.get(error, {}).items()][:3]
        then = ", ".join(f"{shown(name)} ({share:.0%})" for name, share in nexts)
        rows.append((shown(error), f"{count:,}", share_bar(count, most), then))
    columns = ("type", *numbers("times"), "", "the next error of the same run")
    return table("Errors", columns, rows)


def friction_table(memory: AgentMemory, repo: str) -> str:
    """Errors that several tasks met, of *repo* or ("") of all repositories."""
    rows = (
        (
            f'<a href="{graph_address(one.error_id)}">{shown(one.error)}</a>',
            f"{one.tasks}",
            f"{one.cleared}",
            "" if one.steps_lost is None else f"{one.steps_lost:.0f}",
            "<br>".join(shown(remedy.text) for remedy in one.remedies),
        )
        for one in memory.stats.get_friction(repo)
    )
    columns = ("error", *numbers("tasks", "cleared", "steps lost"), "what cleared it")
    none = "No error was met in two tasks."
    return table("What keeps failing", columns, rows, none)


def effect_table(memory: AgentMemory) -> str:
    """How often errors were cleared after advice was shown, and after it was withheld."""
    found = [*memory.store.exposures.all()]
    groups = (
        ("shown", [one for one in found if not one.is_withheld]),
        ("withheld by chance, to compare", [one for one in found if one.is_withheld]),
    )
    rows = (_effect_row(name, exposures) for name, exposures in groups if exposures)
    columns = ("advice", *numbers("times", "outcome known", "helped", "share"), "")
    return table("Effect of advice", columns, rows, "No advice was shown yet.")


def _effect_row(name: str, exposures: list[Exposure]) -> tuple[str, ...]:
    known = [one.helped for one in exposures if one.helped is not None]
    share = f"{sum(known) / len(known):.0%}" if known else ""
    bar = share_bar(sum(known), len(known)) if known else ""
    return name, f"{len(exposures)}", f"{len(known)}", f"{sum(known)}", share, bar


def repository_table(memory: AgentMemory) -> str:
    """The repositories with most runs."""
    runs = memory.store.runs
    repos = ((len(runs.ids(repo)), repo) for repo in repositories(memory)[:_REPOSITORIES])
    most = sorted(repos, key=lambda one: (-one[0], one[1]))[:_ERRORS]
    rows = ((repository_link(repo), f"{count:,}") for count, repo in most)
    return table("Repositories with most runs", ("repository", *numbers("runs")), rows)


def repositories(memory: AgentMemory) -> Sequence[str]:
    """All repositories of the memory, in lower case."""
    return memory.store.admin.unconsolidated(0).repos


def recovery_table(found: Iterable[RecoveryCandidate]) -> str:
    """Errors with their remedies and runs."""
    rows = (
        (
            shown(one_line(one.message, 160)),
            shown(describe_remedy(one.actions)),
            run_link(one.trajectory_id, one.instance_id),
        )
        for one in found
    )
    return table("Errors, and what cleared them", ("error", "what cleared it", "run"), rows)


def relation_table(relations: Sequence[Relation]) -> str:
    """The relations of a node."""
    rows = (
        (
            f'<span class="whole">{"to" if one.outgoing else "from"}</span>',
            f'<span class="whole">{shown(one.type)}</span>',
            f'<a href="{graph_address(one.id)}">{shown(one.name)}</a>',
            shown(", ".join(f"{name} {value}" for name, value in one.properties.items())),
        )
        for one in relations[:_RELATIONS]
    )
    count = number_of(len(relations), "relation")
    title = count if len(relations) <= _RELATIONS else f"The first of {count}"
    return table(title, ("direction", "type", "node", "properties"), rows)


def evidence_text(one: Evidence) -> str:
    """How often advice was shown and tried, and what followed."""
    return (
        f"shown {one.shown} times, tried {one.tried}, cleared the error {one.cleared} times; "
        f"of {one.runs} runs that met it {one.runs_cleared} cleared it; trust {one.trust:.2f}"
        f"{f'; {one.by_hand} by hand' if one.by_hand else ''}"
    )


def playbook_parts(found: RepositoryPlaybook) -> Iterator[str]:
    """What the runs of a repository agree on, with its files, commands and tests."""
    lines = "".join(f"<li>{shown(line.text)}</li>" for line in playbook_lines(found))
    yield "<h2>Playbook</h2>" + (f"<ul>{lines}</ul>" if lines else "<p>Nothing agrees yet.</p>")
    files = (
        (shown(one.path), f"{one.changed}", f"{one.opened}", shown(", ".join(one.symbols)))
        for one in found.files
    )
    columns = ("file", *numbers("tasks that changed it", "opened it"), "functions and classes")
    yield table("Files", columns, files)
    commands = (
        (f"<code>{shown(one.line)}</code>", f"{one.worked} of {one.tried}", shown(one.error_type))
        for records in (found.tests, found.scripts, found.setup)
        for one in records[:_COMMANDS]
    )
    yield table("Commands", ("command", *numbers("worked in"), "why it did not"), commands)
    if found.failing_tests:
        tests = ((shown(one.name), f"{one.tasks}") for one in found.failing_tests)
        yield table("Tests that fail anyway", ("test", *numbers("tasks")), tests)


def run_table(title: str, runs: Iterable[Trajectory]) -> str:
    """Runs, as links to their timelines."""
    rows = (
        (
            run_link(one.id, one.instance_id),
            shown(one_line(one.task, 100)),
            repository_link(one.repo),
            shown(one.agent),
            f"{one.outcome}",
            f"{one.total_steps}",
            f"{one.seen_at:%Y-%m-%d}",
        )
        for one in runs
    )
    columns = ("instance", "task", "repository", "agent", "outcome", *numbers("steps"), "when")
    return table(title, columns, rows)


def note_table(title: str, found: Iterable[Note]) -> str:
    """Notes with their sources."""
    rows = (
        (
            shown(one.content),
            repository_link(one.repo) if one.repo else "any",
            shown(one.source),
            f"{one.credibility:.2f}",
            f"{one.confirmed}",
            f"{one.created_at:%Y-%m-%d}",
        )
        for one in found
    )
    columns = ("note", "repository", "source", *numbers("credibility", "confirmed"), "when")
    return table(title, columns, rows)


def run_link(run: str, instance: str) -> str:
    """A link to the timeline of a run."""
    return f'<a href="/pages/runs/{quote(run)}">{shown(instance or run)}</a>'


def repository_link(repo: str) -> str:
    """A link to the page of a repository."""
    return f'<a href="/pages/repositories?repo={quote(repo, safe="")}">{shown(repo)}</a>'
