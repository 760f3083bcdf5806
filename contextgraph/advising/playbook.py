"""The playbook of a repository, from the facts of its runs."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from posixpath import basename
from typing import TypeAlias, TypeVar

from contextgraph.advising.cases import OUTSIDE, KnownRun, known_runs, ranked_files
from contextgraph.advising.channels import harness, readable
from contextgraph.advising.gate import is_supported, shown_as
from contextgraph.advising.wording import is_fact_id
from contextgraph.errors import ContextGraphError
from contextgraph.model import (
    CLONE,
    TESTS,
    ActionKind,
    Cause,
    CommandHistory,
    CommandRecord,
    CommandUse,
    Environment,
    FailingTest,
    Loss,
    MachineFact,
    Note,
    NoteKind,
    NoteScope,
    RemedyKind,
    RemedyPattern,
    RepositoryPlaybook,
    RunFacts,
    RunLosses,
    Scope,
    Time,
    Trajectory,
    independent,
    vouches,
)
from contextgraph.model.values import checked, replace
from contextgraph.store.memory_store import Store, current_name
from contextgraph.text import TASK_CHARS, command_of, mask_secrets, masked_name, regex
from contextgraph.trace import (
    SCRIPT,
    MachineLesson,
    is_advice_id,
    is_hazardous_command,
    is_own_module,
    sets_own_variable,
    usual_environment,
)
from contextgraph.trace.actions import command_use
from contextgraph.trace.advice import wording_of
from contextgraph.trace.project import FOLDER_PATTERNS
from contextgraph.trace.shell import commands_in

# So many runs are looked at, solved ones first, then the newest.
RUNS = 32
FILES = 20
# The same of an agent, in any repository, for facts of its machine.
_MACHINE_RUNS = 160
# How many tasks show what is common, and the share of them that it has to be.
_ENOUGH_TASKS, _COMMON, _MOST = 3, 0.25, 0.4
# What is seen in vain needs fewer: it is no guess from what was done next.
_IN_VAIN, _FEW_TASKS = (Cause.LONG_FILE, Cause.KEPT_FOLDER), 2
# As so many tasks of a repository count those of all; what lines and their parts cost, in steps.
_FURTHER_TASKS, _LINE_COST, _PART_COST, _HABIT_COST = 3, 0.06, 0.01, 1.0
_PINNED = 20
# A path that leaves the working folder, and the name of a file.
ABOVE = regex(r"(?<![\w.~/-])(?:\.\./)+\w[\w.-]*\w(?:/[\w-][\w.-]*\w)*")
FILE = regex(r"\w\.[A-Za-z]\w{0,4}(?![\w./-])")
_ONE_PACKAGE = regex(r"\S.* install (?!-|\.)[\w.\[\]-]+")
_OTHER_FOLDER = regex(r"\s(?:-e|--editable)[ =](?!\.(?:\[|\s|$)|\w+\+)[^\s\[]+(\[|\s|$)")
_OPTIONS = regex(r" -(?!m ).*")
_PLACEHOLDER = regex(r"<(?:tests|script|code)>")

_Known: TypeAlias = tuple[Trajectory, RunFacts]
_Supplied = TypeVar("_Supplied", Trajectory, RunLosses)


def seen_by(store: Store, agent: str) -> Callable[[Trajectory], bool]:
    """Return whether a run is shown to *agent*: its own, those of no agent; all if it has none."""
    agent = harness(agent)
    if not agent or not _has_runs(store, agent):
        return lambda run: True
    return lambda run: harness(run.agent) in ("", agent)


def _has_runs(store: Store, agent: str) -> bool:
    return bool(store.runs.for_task(None, Scope(), 1, agent))


@checked
class Playbooks:
    """Makes playbooks of the facts of runs. *clock* gives the time."""

    def __init__(
        self, store: Store, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self._now = clock

    def of(
        self,
        repo: str,
        task: str = "",
        exclude_instances: frozenset[str] = frozenset(),
        as_of: Time | None = None,
        agent: str = "",
        environment: Environment | None = None,
    ) -> RepositoryPlaybook:
        """Return the playbook of *repo* for *agent*, its files ranked for *task*.

        Of runs of this agent alone, where the repository has some, and of them on *environment*, by
        default that of most: what holds on another machine is not shown.
        """
        repo = current_name(self._store.runs, masked_name(repo))
        known = self._known(repo, exclude_instances, as_of, agent)
        runs = self._on_usual(known, environment)
        notes, degraded = self._notes(repo, exclude_instances, as_of)
        package = _package(runs)
        return RepositoryPlaybook(
            repo=repo,
            runs=len(runs),
            tasks=len({run.instance_id for run in runs}),
            files=ranked_files(runs, task, FILES),
            tests=_records(runs, ActionKind.TEST),
            scripts=_records(runs, ActionKind.RUN),
            setup=tuple(
                record for record in _records(runs, ActionKind.INSTALL) if _is_setup(record, repo)
            ),
            failing_tests=_failing(runs),
            package=package[0],
            package_tasks=package[1],
            notes=notes,
            degraded=degraded,
            facts=tuple(
                fact
                for fact in self._facts(
                    repo, _of_kind(known, task), exclude_instances, as_of, agent, environment
                )
                if not (fact.cause is Cause.LAYOUT and _has_folder(runs, fact.fails))
            ),
            environment=environment or usual_environment(run.facts.environment for run in runs),
            places=tuple(_places(task, runs)),
            quarantined=tuple(
                verdict.advice
                for verdict in self._store.exposures.record([]).verdicts
                if verdict.is_quarantined and is_fact_id(verdict.advice)
            ),
        )

    def commands(self, repo: str) -> list[tuple[ActionKind, CommandRecord]]:
        """Return the commands of the root of *repo* that its tasks agree on, with their kind."""
        runs = self.runs(current_name(self._store.runs, masked_name(repo)), frozenset())
        return [
            (kind, record)
            for kind in (ActionKind.TEST, ActionKind.INSTALL, ActionKind.RUN, ActionKind.OTHER)
            for record in _records(runs, kind)
            if record.is_agreed
        ]

    def _facts(
        self,
        repo: str,
        known: Sequence[_Known],
        exclude_instances: frozenset[str],
        as_of: Time | None,
        agent: str,
        environment: Environment | None,
    ) -> tuple[MachineFact, ...]:
        """Return facts that cost *agent* most steps, the most costly first.

        They are counted over its runs in *repo*, among those *known*, and anywhere; none for an
        agent without a name. That a program fails elsewhere counts only where runs in *repo* use
        it, or few are known.
        """
        if not agent:
            return ()
        agent = harness(agent)
        hidden = frozenset(map(masked_name, exclude_instances))
        everywhere = Scope(None, hidden, as_of)
        far = self._trusted(self._store.runs.losses(everywhere, _MACHINE_RUNS, agent), repo)
        near: Sequence[RunLosses] = [
            RunLosses(run.instance_id, run.repo, of.losses, of.environment, run.contributor)
            for run, of in known
            if run.agent == agent
        ]
        if withdrawn := self._withdrawn():
            near, far = (
                [
                    replace(
                        run,
                        losses=tuple(one for one in run.losses if one.pattern not in withdrawn),
                    )
                    for run in runs
                ]
                for runs in (near, far)
            )
        near = _on(near, environment)
        if environment is None:
            # What is known of runs of the repository, and for the rest what most runs show.
            own, usual = (
                usual_environment(run.environment for run in some) for some in (near, far)
            )
            versions = {**dict(usual.versions), **dict(own.versions)}
            environment = Environment(own.system or usual.system, "", (*versions.items(),))
        far = _on(far, environment)
        if len({run.instance_id for run, _ in known}) >= _ENOUGH_TASKS:
            lines = {use.text for _, of in known for use in of.commands}
            used = {unversioned(one.program) for line in lines for one in commands_in(line)}
            far = [
                replace(
                    run,
                    losses=tuple(
                        one
                        for one in run.losses
                        if one.cause is not Cause.PROGRAM or unversioned(one.fails) in used
                    ),
                )
                for run in far
            ]
        return machine_facts(near, far)

    def history(
        self,
        repo: str,
        command: str,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: Time | None = None,
        agent: str = "",
        environment: Environment | None = None,
    ) -> CommandHistory:
        """Return the history of *command*, a shell line, in *repo*; its last command counts."""
        repo = current_name(self._store.runs, masked_name(repo))
        command = mask_secrets(command)
        runs = self.runs(repo, exclude_instances, as_of, agent, environment)
        uses = [(run, use) for run in runs for use in run.facts.commands]
        made = {path for run in runs for path in run.facts.created}
        # A script that is not known is one that the run has just made; a project may be installed
        # from its folder or from the one above.
        from_above = _OTHER_FOLDER.sub(r" -e .\1", command)
        # A record names a form, with placeholders.
        form = next((replace(use, text=command) for _, use in uses if use.form == command), None)
        lines = ((command, made), (command, command.split()), (from_above, made))
        for given in (form, *(command_use(line, created) for line, created in lines)):
            same = [(run, use) for run, use in uses if given and use.runner == given.runner]
            if given and same:
                exact = [(run, use) for run, use in same if use.text == given.text]
                return CommandHistory(
                    repo,
                    command,
                    len(runs),
                    form=_record(same, attrgetter("runner")),
                    first=_record(list(_first_of_each_run(same)), attrgetter("runner")),
                    exact=_record(exact, lambda use: use.text),
                    ways=_recorded(same, lambda use: (_as_typed(use), use.folder)),
                    others=tuple(_instead_of(given, runs)),
                )
        others = tuple(_instead_of(given, runs)) if given else ()
        return CommandHistory(repo, command, len(runs), others=others)

    def runs(
        self,
        repo: str,
        exclude_instances: frozenset[str],
        as_of: Time | None = None,
        agent: str = "",
        environment: Environment | None = None,
    ) -> list[KnownRun]:
        """Return the runs of *repo* to look at: those of *agent*, or all if it has none.

        They ran on *environment*, by default that of most runs.
        """
        known = self._known(repo, exclude_instances, as_of, agent)
        return self._on_usual(known, environment)

    def _known(
        self, repo: str, exclude_instances: frozenset[str], as_of: Time | None, agent: str
    ) -> list[_Known]:
        """The runs of *repo* to look at, on any machine, without those forgotten meanwhile."""
        if not repo:
            return []
        agent = harness(agent)
        hidden = frozenset(map(masked_name, exclude_instances))
        scope, of_agent = Scope(repo, hidden, as_of), agent or None
        trajectories = self._store.runs.for_task(None, scope, RUNS, of_agent)
        if agent:
            anyones = self._store.runs.for_task(None, scope, RUNS)
            is_new = not trajectories  # there: what others know of it is better than nothing
            # What no agent is named for may be of this one.
            trajectories = [*trajectories, *(one for one in anyones if is_new or not one.agent)]
        trusted = self._trusted(trajectories, repo)
        facts = self._store.runs.facts(run.id for run in trusted)
        return [(run, facts[run.id]) for run in trusted if run.id in facts]

    def _on_usual(self, runs: Sequence[_Known], environment: Environment | None) -> list[KnownRun]:
        """Those of *runs* on *environment*, by default that of most, without what was withdrawn."""
        known = known_runs(runs)
        usual = environment or usual_environment(run.facts.environment for run in known)
        known = [run for run in known if run.facts.environment.agrees(usual)]
        settings = [one.target for one in self._withdrawn() if one.kind is RemedyKind.SET_ENV]
        if not settings:
            return known
        set_so = re.compile("|".join(rf"\b{name.partition('=')[0]}=" for name in settings))
        return [
            replace(run, facts=replace(run.facts, commands=tuple(used)))
            for run in known
            for used in [[use for use in run.facts.commands if not set_so.search(use.text)]]
        ]

    def _withdrawn(self) -> frozenset[RemedyPattern]:
        """Return what the remedies do that were quarantined by hand: no line says it either."""
        return frozenset(
            pattern
            for verdict in self._store.exposures.record([]).verdicts
            if verdict.is_quarantined and is_advice_id(verdict.advice)
            for _, item in shown_as(self._store, verdict.advice)
            for pattern in item.patterns
        )

    def _trusted(self, runs: Sequence[_Supplied], repo: str) -> Sequence[_Supplied]:
        """*runs* that count for *repo*: without those of distrusted sources."""
        if not any(run.contributor for run in runs):
            return runs
        distrusted = self._store.exposures.record([]).distrusted
        return [
            run
            for run in runs
            if run.contributor not in distrusted and vouches(run.contributor, run.repo, repo)
        ]

    def content_hashes(
        self,
        repo: str = "",
        trajectories: Collection[str] = (),
        exclude_instances: frozenset[str] = frozenset(),
        as_of: Time | None = None,
    ) -> Mapping[str, Sequence[str]]:
        """Return git's hashes, maybe abbreviated, by path, of contents before and after runs.

        The runs are those of *repo* that are looked at, and *trajectories*.
        """
        named = current_name(self._store.runs, masked_name(repo))
        known = [run.facts for run in self.runs(named, exclude_instances, as_of)]
        known += self._store.runs.facts(trajectories).values()
        by_path: dict[str, set[str]] = {}
        for facts in known:
            for path, hashes in facts.content_hashes.items():
                by_path.setdefault(path, set()).update(hashes)
        return {path: sorted(hashes) for path, hashes in by_path.items()}

    def _notes(
        self, repo: str, exclude_instances: frozenset[str], as_of: Time | None
    ) -> tuple[tuple[Note, ...], str]:
        """The pinned notes of *repo* that every agent may see, and why there are none."""
        kinds = (NoteKind.NOTE, NoteKind.LESSON)
        scope = NoteScope((repo.casefold(),), kinds, pinned=True)
        try:
            pinned = self._store.notes.newest(scope, _PINNED) if repo else ()
        except ContextGraphError as error:
            return (), f"notes: {error}"
        valid = (note for note in pinned if as_of or note.is_valid(self._now()))
        return tuple(readable(valid, self._store, exclude_instances, as_of)), ""


def _of_kind(runs: Sequence[_Known], task: str) -> list[_Known]:
    """Return those of *runs* that a person began with the same command as *task*, or with none.

    Without a task it is not known with which: all, with the losses that they met after each
    command. That a file is too long matters where the task names it, and of files of a kind,
    which no task names, where many of the runs read one.
    """
    began = [(command_of(run.task), run, facts) for run, facts in runs]
    command = command_of(task)
    kinds = {command} if task else {kind for kind, _, _ in began}
    chosen = [one for one in began if one[0] in kinds]
    lost = {(kind, _lost(one)) for kind, _, facts in chosen for one in facts.losses}
    often = Counter(lesson for *_, facts in chosen for lesson in {*map(_lost, facts.losses)})
    met = {
        lesson
        for lesson, number in often.items()
        if all((kind, lesson) in lost for kind in kinds)
        and (
            lesson.cause is not Cause.LONG_FILE
            or (number >= _COMMON * len(chosen) if "*" in lesson.fails else _names(task, lesson))
        )
    }
    return [
        (run, replace(facts, losses=tuple(one for one in facts.losses if _lost(one) in met)))
        for _, run, facts in chosen
    ]


def unversioned(program: str) -> str:
    """Return the name of *program* without folder and version."""
    return basename(program).rstrip("0123456789.").lower()


def _names(task: str, lesson: MachineLesson) -> bool:
    """Return whether *task* names the file of *lesson*."""
    name = re.escape(basename(lesson.fails))
    return bool(re.search(rf"(?<![\w.-]){name}(?![\w-])", task))


def _on(runs: Sequence[RunLosses], environment: Environment | None) -> list[RunLosses]:
    """Select the *runs* on *environment*, by default on the most frequent one.

    What the machine of another person lacks, this one may have.
    """
    usual = environment or usual_environment(run.environment for run in runs)
    # Hundreds of runs are of a few machines.
    machines = {run.environment for run in runs}
    fitting = {one for one in machines if one.agrees(usual) and one.is_at_home(usual)}
    return [run for run in runs if run.environment in fitting]


def machine_facts(
    here: Sequence[RunLosses], anywhere: Sequence[RunLosses]
) -> tuple[MachineFact, ...]:
    """Choose facts that cost earlier runs most steps, as long as each costs more than its line.

    The cost is the mean of the runs *here* with the mean of *anywhere* as three more tasks, in
    which each repository has the same weight. Steps count only for the first fact that would have
    saved them.
    """
    near = _facts(here)
    lost_here, lost_anywhere = ([(run, _lost_by(run)) for run in some] for some in (here, anywhere))
    # What one repository alone shows may be its own.
    shown = {(run.repo, lesson) for run, lost in lost_anywhere for lesson in lost}
    places = Counter(lesson for _, lesson in shown)
    met = {lesson for _, lost in lost_here for lesson in lost}
    # Runs of this repository would have missed a folder that it lacks, too.
    is_known = len({run.instance_id for run in here}) >= _ENOUGH_TASKS
    far = {
        lesson: fact
        for lesson, fact in _facts(anywhere).items()
        if places[lesson] > 1
        and lesson.cause is not Cause.LONG_FILE
        and (lesson in met or not is_known or lesson.cause not in FOLDER_PATTERNS)
    }
    repositories = Counter(run.repo for run in anywhere)
    own = len({run.instance_id for run in here}) / _FURTHER_TASKS
    each = 1 / (own + 1) / max(1, len(repositories))
    lost = [(own / (own + 1) / len(here), steps) for _, steps in lost_here]
    lost += [(each / repositories[run.repo], steps) for run, steps in lost_anywhere]
    # Most runs lost nothing.
    lost = [(weight, steps) for weight, steps in lost if steps]
    known = near.keys() | far.keys()
    # What one project needs, another seldom does.
    packages = {lesson for lesson in far.keys() - near.keys() if lesson.cause is Cause.PACKAGE}
    known -= {one for one in packages if sum(w for w, steps in lost if one in steps) < _MOST}
    chosen: list[MachineFact] = []
    gains, changed = dict[MachineLesson, float](), known
    while known:
        gains |= {
            lesson: sum(weight * len(steps[lesson]) for weight, steps in lost if lesson in steps)
            for lesson in changed
        }
        best = max(known, key=lambda lesson: (gains[lesson] - _cost(lesson), lesson))
        if gains[best] <= _cost(best):
            break
        chosen.append(replace(near.get(best) or far[best], steps=gains[best]))
        known.remove(best)
        beside = set[MachineLesson]()
        for _, steps in lost:
            if saved := steps.pop(best, None):
                for left in steps.values():
                    left.difference_update(saved)
                beside |= steps.keys()
        changed = beside & known
    return tuple(chosen)


def _lost_by(run: RunLosses) -> dict[MachineLesson, set[int]]:
    """Return the steps of *run* that each lesson would have saved."""
    steps: dict[MachineLesson, set[int]] = {}
    for loss in run.losses:
        lesson = _lost(loss)
        steps.setdefault(lesson, set()).update(range(loss.error_step, loss.cleared_step))
    return steps


def _lost(loss: Loss) -> MachineLesson:
    """The lesson that would have saved *loss*."""
    return MachineLesson(loss.cause, loss.fails, loss.works)


def _cost(lesson: MachineLesson) -> float:
    """Return what the text costs, in steps; a package, or a reason, is a part of a line.

    What an agent does by habit is worth a word only where it costs a step in each run.
    """
    if lesson.cause is Cause.APART:
        return _HABIT_COST
    return _PART_COST if lesson.cause in (Cause.PACKAGE, Cause.EDIT) else _LINE_COST


def _enough(lesson: MachineLesson) -> int:
    return _FEW_TASKS if lesson.cause in _IN_VAIN else _ENOUGH_TASKS


def _facts(runs: Sequence[RunLosses]) -> dict[MachineLesson, MachineFact]:
    """Each lesson of *runs* that is met by enough tasks, and not by one source alone."""
    tasks: dict[MachineLesson, set[str]] = {}
    sources: dict[MachineLesson, set[str]] = {}
    patterns: dict[MachineLesson, dict[RemedyPattern, None]] = {}
    again: set[MachineLesson] = set()
    for run in runs:
        met = {_lost(loss) for loss in run.losses}
        # A package that two runs miss: the machine does not keep what is installed.
        again |= {one for one in met & tasks.keys() if one.cause is Cause.PACKAGE}
        for loss in run.losses:
            lesson = _lost(loss)
            tasks.setdefault(lesson, set()).add(run.instance_id)
            sources.setdefault(lesson, set()).add(run.contributor)
            if wording_of(loss.pattern.target) or loss.cause is not Cause.EDIT:
                patterns.setdefault(lesson, {})[loss.pattern] = None
    among = len({run.instance_id for run in runs})
    several = any(run.contributor for run in runs)
    return {
        lesson: MachineFact(*lesson, len(met), among, 0.0, tuple(patterns.get(lesson, ())))
        for lesson, met in tasks.items()
        if (len(met) >= _COMMON * among if lesson in again else len(met) >= _enough(lesson))
        and is_supported(sources[lesson], several_sources=several)
    }


def _places(task: str, runs: Sequence[KnownRun]) -> Iterator[tuple[str, str]]:
    """Yield paths of *task* above the working folder, each with where most *runs* found it."""
    for named in dict.fromkeys(match[0] for match in ABOVE.finditer(task[:TASK_CHARS])):
        wanted = f"/{named.replace('../', '')}/"
        met = Counter[str]()
        for run in runs:
            found = set[str]()
            for path in (*run.facts.opened, *run.facts.listed, *run.facts.edited):
                at = f"/{path.lstrip('/')}/".find(wanted)
                place = path[: at + len(wanted) - 1 - (not path.startswith("/"))]
                # A project may have a folder of the same name as one beside it.
                found |= {place} if at >= 0 and "/" in place else set()
            met.update(found)
        if met:
            yield named, min(met, key=lambda place: (-met[place], len(place), place))


def _has_folder(runs: Sequence[KnownRun], folder: str) -> bool:
    """Return whether any of *runs* shows a file in this *folder* of the repository."""
    return any(
        path.startswith(f"{folder}/")
        for run in runs
        for paths in (run.changed, run.facts.opened, run.facts.listed)
        for path in paths
    )


_Use: TypeAlias = tuple[KnownRun, CommandUse]


def _is_setup(record: CommandRecord, repo: str) -> bool:
    """Return whether what is known of an installation helps others: that it never worked does.

    A release of the project itself hides the checkout, other versions know other variables, and a
    shell that is in the checkout already has no such folder.
    """
    if any(is_own_module(word, repo) for word in record.command.split()):
        return False
    # The rare way, which tasks took where the usual one had failed.
    is_way_out = record.is_news and record.worked >= _ENOUGH_TASKS
    in_folder = _OTHER_FOLDER.search(record.command)
    return not (record.worked and (in_folder or sets_own_variable(record.line))) or is_way_out


def _package(runs: Sequence[KnownRun]) -> tuple[str, int]:
    """The folder below which most tasks changed files, and how many did."""
    folders: dict[str, set[str]] = {}
    for run in runs:
        for file in run.changed:
            parts = file.split("/")[:-1]
            depth = 2 if parts[:1] in (["src"], ["lib"]) else 1
            if len(parts) >= depth:
                folders.setdefault("/".join(parts[:depth]), set()).add(run.instance_id)
    counted = sorted(
        ((len(did), folder) for folder, did in folders.items()),
        key=lambda entry: (-entry[0], entry[1]),
    )
    return (counted[0][1], counted[0][0]) if counted else ("", 0)


def _records(runs: Sequence[KnownRun], kind: ActionKind) -> tuple[CommandRecord, ...]:
    """Return by form the outcomes of commands of this *kind*, most that worked first."""
    uses = [
        (run, use)
        for run in runs
        for use in run.facts.commands
        if use.kind is kind and not use.folder.startswith(OUTSIDE)
        # The form is all that a record says.
        if not is_hazardous_command(_PLACEHOLDER.sub("name.py", use.form))
    ]
    forms = {use.form for _, use in uses}
    ran = {_program(use) for _, use in uses if use.ran}
    with_tests = {_program(use) for _, use in uses if use.form.endswith(TESTS)}

    def key(use: CommandUse) -> tuple[str, str]:
        if kind is ActionKind.TEST and (program := _program(use)) not in ran:
            # No options made it run.
            return f"{program} {TESTS}" if program in with_tests else program, use.folder
        chosen = f"{use.runner} {TESTS}"
        return chosen if chosen in forms else use.form, use.folder

    return _recorded(uses, key)


def _program(use: CommandUse) -> str:
    """The program of *use*, without options."""
    return _OPTIONS.sub("", use.runner)


def _as_typed(use: CommandUse) -> str:
    """The command of *use*, but for the names of scripts, which runs invent."""
    return use.form if use.form.endswith(SCRIPT) else use.text


def _first_of_each_run(uses: Sequence[_Use]) -> Iterator[_Use]:
    """The first of the *uses* of each run; those of one run stand together."""
    last: KnownRun | None = None
    for run, use in uses:
        if run is not last:
            yield run, use
        last = run


def _record(uses: Sequence[_Use], command: Callable[[CommandUse], str]) -> CommandRecord | None:
    """One record of all *uses*, which are of one *command*, in any folder."""
    return next(iter(_recorded(uses, lambda use: (command(use), ""))), None)


def _instead_of(given: CommandUse, runs: Sequence[KnownRun]) -> Iterator[CommandRecord]:
    """Other ways to run tests or a script, or to install the same, that mostly worked."""
    if given.kind is ActionKind.INSTALL:
        wanted = _installed(given.text)
        for record in _records(runs, ActionKind.INSTALL):
            is_other = record.is_agreed and record.command not in (given.form, given.text)
            if is_other and not wanted.isdisjoint(_installed(record.command)):
                yield record
    if given.kind is ActionKind.TEST or given.form.endswith(SCRIPT):
        ran = [
            record
            for record in _records(runs, given.kind)
            if record.worked
            and record.command.removesuffix(f" {TESTS}") != given.runner
            and record.command.endswith(SCRIPT) == given.form.endswith(SCRIPT)
        ]
        agreed = [record for record in ran if record.is_agreed]
        # Of one task where no two agree: before a command that never runs it is better than none.
        yield from agreed or ran[:1]
        yield from _made_to_run(given, runs)


def _made_to_run(given: CommandUse, runs: Sequence[KnownRun]) -> Iterator[CommandRecord]:
    """Yield the package that was installed where *given* ran only afterwards."""
    tried: set[str] = set()
    installed: dict[str, dict[str, set[str]]] = {}
    for run in runs:
        uses = run.facts.commands
        places = [place for place, use in enumerate(uses) if use.runner == given.runner]
        ran = next((place for place in places if uses[place].ran), None)
        if not places or ran == places[0]:
            continue
        tried.add(run.instance_id)
        between = uses[places[0] : ran] if ran is not None else ()
        for use in between:
            if use.kind is ActionKind.INSTALL and use.ran and _ONE_PACKAGE.fullmatch(use.form):
                installer, _, package = use.form.rpartition(" ")
                packages = installed.setdefault(installer, {})
                packages.setdefault(package, set()).add(run.instance_id)
    for installer, packages in installed.items():
        most = max(map(len, packages.values()))
        often = {package for package, tasks in packages.items() if 2 * len(tasks) >= most}
        if most >= max(2, _COMMON * len(tried)):
            yield CommandRecord(f"{installer} {' '.join(sorted(often))}", "", most, len(tried))


def _installed(command: str) -> frozenset[str]:
    """The packages that an installation names, without versions; ``.`` is the project."""
    words = command.partition(" install ")[2].split()
    return frozenset(re.split(r"[\[=<>~!]", word)[0] for word in words if word[:1] not in "-'\"")


def _recorded(
    uses: Iterable[_Use], key: Callable[[CommandUse], tuple[str, str]]
) -> tuple[CommandRecord, ...]:
    """One record for each *key*, a command and a folder, of *uses*."""
    by_key: dict[tuple[str, str], list[_Use]] = {}
    for run, use in uses:
        by_key.setdefault(key(use), []).append((run, use))
    several = any(run.source for same in by_key.values() for run, _ in same)
    records = (
        _counted(command, folder, same, several_sources=several)
        for (command, folder), same in by_key.items()
    )
    return tuple(
        sorted(
            records,
            key=lambda record: (
                record.source is not None,
                *(record.source or "", -record.worked, -record.tried),
                *(record.folder, record.command),
            ),
        )
    )


def _is_clone(source: str) -> bool:
    return source.startswith(CLONE)


def _counted(
    command: str, folder: str, uses: Sequence[_Use], *, several_sources: bool
) -> CommandRecord:
    ran = {(run.source, run.instance_id) for run, use in uses if use.ran}
    failed = {(run.source, run.instance_id) for run, _ in uses} - ran
    if several_sources and independent(dict(failed)) == 1 < independent(dict(ran)):
        # One source alone says that what others ran does not run.
        uses = [(run, use) for run, use in uses if (run.source, run.instance_id) not in failed]
    only = {run.source for run, use in uses if use.ran == bool(ran)}
    tried = {run.instance_id for run, _ in uses}
    unprompted = {run.instance_id for run, use in uses if not use.prompted}
    failed_so = Counter(use.error_type for _, use in uses if not use.ran)
    return CommandRecord(
        command,
        folder,
        worked=len({run.instance_id for run, use in uses if use.ran}),
        tried=len(tried),
        error_type=min(failed_so, key=lambda name: (-failed_so[name], name), default=""),
        prompted=len(tried - unprompted),
        source=min(only, key=_is_clone) if several_sources and independent(only) == 1 else None,
    )


def _failing(runs: Sequence[KnownRun]) -> tuple[FailingTest, ...]:
    failed: dict[str, set[str]] = {}
    for run in runs:
        for name in run.facts.failing:
            failed.setdefault(name, set()).add(run.instance_id)
    tests = (FailingTest(name, len(tasks)) for name, tasks in failed.items() if len(tasks) > 1)
    return tuple(sorted(tests, key=lambda test: (-test.tasks, test.name)))
