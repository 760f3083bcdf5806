"""``contextgraph stats``, ``friction``, ``explain`` and ``log``: what is in the memory, and why."""

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from contextgraph.agents.hook import headlines
from contextgraph.agents.hook_files import HookFiles
from contextgraph.cli.commands import Common, common_options, described, flag, option, time_option
from contextgraph.cli.output import emit, print_command, print_table, print_text, warn
from contextgraph.errors import MemoryNotFoundError
from contextgraph.model.values import replace
from contextgraph.service.records import advice_record, record_of, stats_record
from contextgraph.text import mask_secrets, masked_name, number_of, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contextgraph.console.shown import Switch
    from contextgraph.learning.statistics import Friction, MemoryStats
    from contextgraph.model import (
        AdviceFigures,
        Effect,
        Facets,
        FailurePattern,
        Json,
        MistakePattern,
    )

_FOLLOWERS_SHOWN, _RARE = 3, 0.01
_FACT_WIDTH = 600
_ERROR_WIDTH = 120
_COSTLY = 4
_CONDITIONS = 4
_WHY = "Why runs fail, and what solved ones did"
_LEFT_OPEN = "Errors that a third of their tasks or more left open, and what cleared them"


@common_options()
def stats(
    common: Common,
    *,
    top: Annotated[int, described(metavar="N", min=1, help="Rows in each table.")] = 15,
    repo: Annotated[
        str,
        option(
            "OWNER/REPO",
            "Failures, mistakes and people in this repository; with --json, all else is of the "
            "whole memory.",
        ),
    ] = "",
    situation: Annotated[
        str,
        option(
            "WORDS",
            "Failures in a phase, in a type of task, at a file, or in tasks about some words.",
        ),
    ] = "",
    details: Annotated[bool, flag("All counts, and error sequences.")] = False,
    people: Annotated[bool, flag("Count what people wrote, stopped and refused.")] = False,
    plot: Annotated[
        Path | None,
        option(
            "FOLDER", "Draw errors, transitions and outcomes over time into it.", file_okay=False
        ),
    ] = None,
) -> None:
    """Show what costs most, what is known, and how runs fail.

    \b
    Example:
      contextgraph stats --top 5
      contextgraph stats --repo owner/repo --situation testing
      contextgraph stats --plot pictures/
      contextgraph stats --people
    """
    from contextgraph.learning.statistics import draw_statistics

    address = common.settings().address
    repo, situation = masked_name(repo), mask_secrets(situation)
    with common.open(read_only=True) as memory:
        stats = memory.stats.get_counts(repo)
        mistakes = memory.stats.get_common_mistakes(situation, repo)
        interventions = memory.stats.get_interventions(repo) if people else None
        drawn = draw_statistics(memory.stats, plot) if plot else []
        frictions = memory.stats.get_friction("", _COSTLY)
        sessions = memory.session_facets()
    if common.as_json:
        more = {"plots": [str(file) for file in drawn], "people": interventions}
        emit({"store": address, **stats_record(stats, mistakes, sessions, **more)})
        return
    print(f"Memory: {address}")
    if interventions:
        counted = [
            (f"{interventions.messages:,}", "messages of people after a step"),
            (f"{interventions.interrupted:,}", "steps that they interrupted"),
            (f"{interventions.denied:,}", "tool calls that they denied"),
        ]
        of_all = number_of(interventions.total, "run")
        title = f"People, in {interventions.runs:,} of {of_all}, with sub-agents"
        print_table(title, ("count", "what"), counted, numeric=("count",))
    elif repo or situation:
        scope = " ".join(filter(None, (repo and f"in {repo}", situation and f"at {situation!r}")))
        _show_mistakes(scope, mistakes, () if situation else stats.failure_patterns, top)
    elif details:
        _show_stats(stats, top)
    else:
        _show_summary(stats, sessions, frictions)
    if stats.withholding.withheld and not (interventions or repo or situation):
        print(f"Effect of advice at errors: {_effect_text(stats.withholding)}")
    for file in drawn:
        print(f"drawn: {file}")


def _show_summary(
    stats: "MemoryStats", sessions: "Facets", frictions: "Sequence[Friction]"
) -> None:
    """Print how sessions ended, and what costs most, in about ten lines."""
    from contextgraph.advising.failure import RUNS_READ

    outcomes = sessions.outcomes
    ended = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()) if count)
    of_all = number_of(stats.counts.repositories, "repository")
    guessed = " (guessed where no log says it)" if stats.counts.outcomes.get("unknown") else ""
    print(f"{number_of(sessions.total, 'session')} of {of_all}: {ended}{guessed}")
    if shown := [one for one in frictions if one.remedies and one.remedies[0].tasks > 1]:
        print_text(("What costs most, and what clears it", "bold"))
        _show_friction(shown)
    conditions = [one for one in stats.failure_patterns if one.explained]
    _show_patterns(_WHY, conditions[:_CONDITIONS])
    if conditions:
        known = sum(count for name, count in stats.counts.outcomes.items() if name != "unknown")
        sample = f"counted in a sample of {RUNS_READ} of them; " if known > RUNS_READ else ""
        print_text((f"{sample}differences of few runs may be chance", "dim"))
    print_text(("--details shows all counts and error sequences", "dim"))


def _show_stats(stats: "MemoryStats", top: int) -> None:
    """Print counts, errors, transitions and failure patterns, *top* rows of each."""
    print_table("In the memory", ("count", "what"), _count_rows(stats))
    frequent = list(stats.error_frequency.items())[:top]
    print_table(
        "Most frequent errors",
        ("fragments", "error", "usually followed by"),
        [(f"{count:,}", error, _followers(stats, error)) for error, count in frequent],
        numeric=("fragments",),
    )
    shown = stats.failure_patterns[:top]
    _show_patterns(_WHY, [one for one in shown if one.explained])
    _show_patterns(_LEFT_OPEN, [one for one in shown if not one.explained])
    usage = [
        (space, f"{used.requests:,}", f"{used.tokens:,}", f"${used.cost:.4f}")
        for space, used in stats.usage.items()
    ]
    columns = ("model", "requests", "tokens", "cost")
    print_table("Model usage from this machine", columns, usage, numeric=columns[1:])


def _effect_text(effect: "Effect") -> str:
    """Say how often errors were cleared with advice and without."""
    return (
        f"cleared {effect.shown_cleared} of {effect.shown} shown, {effect.withheld_cleared} of"
        f" {effect.withheld} withheld; difference {effect.difference:+.2f}"
        f" ({effect.low:+.2f} to {effect.high:+.2f})"
    )


def _show_mistakes(
    scope: str, mistakes: "Sequence[MistakePattern]", patterns: "Sequence[FailurePattern]", top: int
) -> None:
    """Print the errors that are common in *scope*, and the failure patterns there."""
    rows = [
        (f"{mistake.count:,}", f"{mistake.count - mistake.cleared:,}", mistake.description)
        for mistake in mistakes[:top]
    ]
    columns = ("tasks", "never cleared", "error")
    print_table(f"Common mistakes {scope}", columns, rows, numeric=columns[:2])
    _show_patterns(f"Failures {scope}, and what prevented them", patterns[:top])
    if not rows and not patterns:
        print_text((f"nothing known {scope}", "dim"))


def _show_patterns(title: str, patterns: "Iterable[FailurePattern]") -> None:
    for number, pattern in enumerate(patterns):
        if not number:
            print_text((title, "bold"))
        share = pattern.share_of_steps
        taken = f"; {share:.0%} of the steps of failed runs" if share is not None else ""
        what = one_line(pattern.what, _FACT_WIDTH)
        met = "" if pattern.explained else f"{number_of(pattern.runs, 'task')} "
        print_text(f"{met}{pattern.condition}: {what}{taken}")
        for prevented in pattern.prevention:
            print_text((one_line(prevented, _FACT_WIDTH), "green"), indent=4)


def _count_rows(stats: "MemoryStats") -> list[tuple[str, str]]:
    counts = stats.counts
    rows = [("repositories", counts.repositories)]
    rows += [(label, counts.nodes[label]) for label in sorted(counts.nodes)]
    rows += [
        (f"runs {outcome}, as their logs say", counts.outcomes[outcome])
        for outcome in sorted(counts.outcomes)
    ]
    changed = {
        change: count for change, count in counts.changes.items() if change != "unknown" and count
    }
    rows += [(f"runs whose change is {change}", count) for change, count in sorted(changed.items())]
    rows += [(f"notes of the kind {kind}", count) for kind, count in (stats.notes or {}).items()]
    statuses = sorted(counts.methodologies.items())
    rows += [(f"methodologies {status}", count) for status, count in statuses if count]
    rows += [(kind, counts.edges[kind]) for kind in sorted(counts.edges)]
    judged = stats.gate.errors if stats.gate else 0
    rows.append(("errors that the gate is fitted on", judged))
    return [(f"{count:,}", name) for name, count in rows]


def _followers(stats: "MemoryStats", error: str) -> str:
    following = stats.transitions.get(error, {})
    likely = sorted(following.items(), key=lambda item: (-item[1], item[0]))[:_FOLLOWERS_SHOWN]
    return ", ".join(f"{name} {share:.0%}" for name, share in likely if share >= _RARE)


def _show_friction(frictions: "Sequence[Friction]") -> None:
    for friction in frictions:
        tasks = number_of(friction.tasks, "task")
        lost = f" lost {number_of(round(friction.cost), 'step')}" if friction.cost else ""
        setup = "set-up: " if friction.is_setup else ""
        print_text(f"{tasks}{lost}: {setup}", (one_line(friction.error, _ERROR_WIDTH), "bold"))
        for remedy in friction.remedies[:1]:
            text = one_line(f"{remedy.text} ({remedy.agreement})", _FACT_WIDTH)
            print_text((text, "green"), indent=4)


DEFAULT_PERIOD = timedelta(days=7)
_SESSION_CHARS = 8


class _Given(Struct, frozen=True):
    """Advice that an agent was given: its *text*, where that is known, and its ids."""

    context: str
    at: datetime
    text: str = ""
    agent: str = ""
    repo: str = ""
    session: str = ""
    moment: str = ""
    advice: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    followed: bool | None = None
    cleared: bool | None = None
    steps_saved: float = 0.0
    switches: "tuple[Switch, ...]" = ()
    tokens: int = 0


Since = Annotated[datetime | None, time_option("Shown from then on: 12h, 7d, 4w or ISO.", "7d")]
Until = Annotated[datetime | None, time_option("Shown before then.", "now")]


@common_options()
def receipt(
    common: Common,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, described(metavar="N", min=1, help="The newest N answers.")] = 10,
    html: Annotated[
        Path | None,
        option(
            "FILE", "Write an HTML page with their texts instead; it works offline.", dir_okay=False
        ),
    ] = None,
) -> None:
    """Show what advice was given, and what became of it.

    What was followed and cleared is known once a session is learned. Steps saved are those that the
    error took earlier tasks (the median), less the one that follows the advice, wrong items and the
    time to read. Under each answer stand the commands that turn its lines off.

    \b
    Example:
      contextgraph receipt
      contextgraph receipt --since 2026-01-31 --limit 50
      contextgraph receipt --since 4w --html receipt.html
    """
    since = since or datetime.now(UTC) - DEFAULT_PERIOD
    failures = HookFiles(common.settings()).failed()
    given, figures = given_in(common, since, until)
    counts = advice_record(figures)
    items: list[Json] = [
        record_of(one, "switches", off=any(switch.is_off for switch in one.switches))
        for one in given[-limit:]
    ]
    record: dict[str, Json] = {**period_record(since, until), **counts, "items": items}
    record["failures"] = [*failures]
    if html:
        from contextgraph.console.page import write_page

        tiles = [(name.replace("_", " "), f"{count:,}", "") for name, count in counts.items()]
        write_page(html, "receipt.html", since=since, tiles=tiles, given=given[-limit:])
        common.exported(html)
        print(f"{html}: {number_of(len(given[-limit:]), 'answer')}")
    else:
        common.answer(record, partial(_show_receipt, given[-limit:], figures, since, until))
        if (more := len(given) - limit) > 0 and not common.as_json:
            print_text((f"{more} earlier: --limit {len(given)}", "dim"))
    if failures:
        warn(f"{number_of(len(failures), 'hook call')} failed, the last: {failures[-1]}")


def given_in(
    common: Common, since: datetime, until: datetime | None = None
) -> "tuple[list[_Given], AdviceFigures]":
    """Return what was shown from *since* to before *until*, oldest first, and its figures."""
    from contextgraph.agents.local_copy import shown_by_hooks
    from contextgraph.console.shown import switch_of, switched_off, texts_of
    from contextgraph.model import AdviceFigures, ShownTally

    given, figures = [], AdviceFigures()
    try:
        with common.open(read_only=True) as memory:
            known = {one.context_id: one for one in shown_by_hooks(common.settings())}
            known |= {one.context_id: one for one in memory.store.exposures.all()}
            exposures = [
                one
                for one in known.values()
                if not one.is_withheld
                and since <= one.shown_at
                and (until is None or one.shown_at < until)
            ]
            figures = memory.stats.get_figures(ShownTally.of(exposures))
            off = switched_off(memory.store, [item for one in exposures for item in one.items])
            texts = texts_of(memory.store, exposures)
            for exposure in exposures:
                by_advice = {item.advice: item for item in exposure.items}.values()
                switches = [switch_of(item, texts[item.id], off) for item in by_advice]
                one = _Given(
                    exposure.context_id,
                    exposure.shown_at,
                    exposure.text or "; ".join(texts[item.id] for item in exposure.items),
                    exposure.agent,
                    exposure.repo,
                    exposure.session,
                    exposure.moment,
                    advice=tuple(dict.fromkeys(item.advice for item in exposure.items)),
                    why=tuple(filter(None, (item.why for item in exposure.items))),
                    followed=any(item.helped is not None for item in exposure.items) or None,
                    cleared=exposure.helped,
                    switches=tuple(filter(None, switches)),
                )
                saved = memory.stats.get_figures(ShownTally.of([exposure])).saved
                given.append(replace(one, steps_saved=saved, tokens=exposure.tokens))
    except MemoryNotFoundError:
        pass
    return sorted(given, key=lambda one: one.at), figures


def period_record(since: datetime, until: datetime | None) -> "dict[str, Json]":
    """Return the JSON form of a period: *until* None is now."""
    return {"since": since.isoformat(), "until": until.isoformat() if until else None}


def show_figures(figures: "AdviceFigures", since: datetime, until: datetime | None) -> None:
    """Print the figures of what was shown in a period, in a sentence."""
    from contextgraph.cli.installation import connected
    from contextgraph.model import steps_text, waiting_text

    day = f"since {since:%Y-%m-%d %H:%M}" + (f" until {until:%Y-%m-%d %H:%M}" if until else "")
    if not figures.shown:
        names = connected() or connected(Path.cwd())
        then = (
            f"{', '.join(names)} will get it" if names else "`contextgraph setup` connects an agent"
        )
        print(f"no advice was given {day}; {then}")
        return
    counted = f"{figures.shown} shown, {figures.followed} followed, {figures.cleared} cleared"
    saved = f"saved {figures.saved_text}, at most {steps_text(figures.ceiling)}"
    if not figures.known:
        saved = waiting_text(figures)
    said = f"{counted}, {figures.tokens:,} tokens; {saved}"
    print_text((f"Advice {day}: {said}", "bold"))


def _show_receipt(
    given: "Sequence[_Given]",
    figures: "AdviceFigures",
    since: datetime,
    until: datetime | None,
) -> None:
    show_figures(figures, since, until)
    for one in reversed(given):
        fate = "cleared" if one.cleared else "followed" if one.followed else ""
        asked = one.agent or "asked for by query, MCP or a library"
        session = one.session[:_SESSION_CHARS]
        what = (f"{one.at:%m-%d %H:%M}", asked, session, one.moment, one.repo, fate)
        where = " · ".join(filter(None, what))
        print_text((where, "dim"))
        lines = headlines(one.text, len(one.advice))
        lines = lines or ["its text went with runs that were forgotten"]
        is_line_each = len(lines) == len(one.switches)
        words = lines if is_line_each else [switch.words for switch in one.switches]
        for line in lines:
            if line not in words:
                print_text(line, indent=2)
        for said, switch in zip(words, one.switches, strict=True):
            print_text(said if said in lines else (said, "dim"), indent=2)
            print_command("is off; on again:" if switch.is_off else "off:", switch.command)
