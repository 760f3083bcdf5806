"""Each message has one owner: what copies of sessions give up, keep and count."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contextgraph import AgentMemory, LearnReceipt, RawTrajectory, Step
from contextgraph.errors import NotFoundError, SettingsError
from contextgraph.model import Action, LearnStatus, Outcome, PassageScope
from contextgraph.model.values import replace
from tests.builders import run

MONDAY = datetime(2026, 10, 5, 9, tzinfo=UTC)
ERROR = "Error: Cannot find module 'wickparser'"
RULE = "Never use npm here, always use pnpm"
# A request, an error and its remedy.
BEGUN = ("make the wick tests pass", ("npx vitest run", ERROR), ("pnpm add wickparser", "done"))
WHOLE = (*BEGUN, ("npx vitest run", "14 passed"), RULE, ("git status", "nothing to commit"))
AGENT = "claude-code"


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as memory:
        yield memory


def session(
    name: str, *turns: str | tuple[str, str], day: int = 0, agent: str = AGENT, thought: str = ""
) -> RawTrajectory:
    """The session *name*: its request, then commands with their outputs, and what people said."""
    steps, begun = list[Step](), MONDAY + timedelta(days=day)
    for turn in turns[1:]:
        time = begun + timedelta(minutes=len(steps) + 1)
        if isinstance(turn, str):
            steps[-1] = replace(steps[-1], user_message=turn, messaged_at=time)
        else:
            command, output = turn
            action = Action("Bash", command)
            steps.append(Step(len(steps), thought, action, output, timestamp=time))
    return RawTrajectory(
        "claude-code", name, "dana/lantern", str(turns[0]), tuple(steps), agent, session=name,
        started_at=begun,
    )  # fmt: skip


def run_of(memory: AgentMemory, receipt: LearnReceipt) -> RawTrajectory:
    run = memory.store.runs.raw(receipt.trajectory_id)
    assert run is not None
    return run


def commands(run: RawTrajectory) -> list[str]:
    return [step.action.text for step in run.steps]


def tasks(memory: AgentMemory) -> int:
    """How many independent tasks the remedy for ERROR is known from."""
    return memory.query(ERROR, repo="dana/lantern").error_solutions[0].why.instances


def said(memory: AgentMemory) -> dict[str, tuple[int, str]]:
    """Rule -> the number of sessions in which it was said, and where first."""
    found = memory.lessons.of()
    return {one.text: (one.sessions, one.evidence[0].session) for one in found}


FORK = (
    *WHOLE[:-1],
    ("ls docs", "guide.md"),
    "Add an entry to the changelog for every change",
    ("ls", ""),
)


def test_a_fork_is_learned_from_where_it_leaves_its_owner(memory: AgentMemory) -> None:
    memory.learn(session("first", *WHOLE))
    receipt = memory.learn(session("fork", *FORK, day=1))
    assert (receipt.status, receipt.copied, receipt.corrected) == (LearnStatus.CREATED, 3, ())
    own = run_of(memory, receipt)
    assert (own.task, commands(own)) == (RULE, ["ls docs", "ls"])
    assert [step.index for step in own.steps] == [0, 1]
    assert own.started_at == MONDAY + timedelta(days=1, minutes=4)
    assert tasks(memory) == 1
    assert said(memory)[RULE] == (1, "first")
    assert memory.learn(session("fork", *FORK, day=1)).status is LearnStatus.UNCHANGED


def test_an_owner_that_is_learned_later_takes_what_is_its_own(memory: AgentMemory) -> None:
    before = memory.learn(session("fork", *FORK, day=1))
    receipt = memory.learn(session("first", *WHOLE))
    assert receipt.corrected == (before.trajectory_id,)
    assert commands(run_of(memory, receipt)) == commands(session("first", *WHOLE))
    fork = memory.learn(session("fork", *FORK, day=1))
    assert (fork.status, commands(run_of(memory, fork))) == (
        LearnStatus.UNCHANGED,
        ["ls docs", "ls"],
    )
    assert tasks(memory) == 1
    assert said(memory)[RULE] == (1, "first")


@pytest.mark.parametrize("days", [(0, 1), (1, 0)])
def test_a_copy_that_adds_nothing_is_not_stored(memory: AgentMemory, days: tuple[int, int]) -> None:
    first, again = (session(f"s{day}", *WHOLE, day=day) for day in days)
    memory.learn(first)
    memory.learn(again)
    owner = "s0"
    (id_,) = memory.store.runs.ids()
    run = memory.store.runs.raw(id_)
    assert run is not None
    assert run.session == owner
    for raw in (first, again):
        receipt = memory.learn(raw)
        assert (receipt.status, receipt.trajectory_id) == (LearnStatus.UNCHANGED, id_)
    assert said(memory) == {RULE: (1, owner)}


def test_copies_in_one_batch_count_once(memory: AgentMemory) -> None:
    raws = [session(f"s{day}", *WHOLE, day=day) for day in range(5)]
    assert [receipt.copied for receipt in memory.learn(raws)] == [0, 4, 4, 4, 4]
    assert tasks(memory) == 1


def test_sessions_that_begin_alike_are_no_copies_where_results_differ(memory: AgentMemory) -> None:
    for day in range(3):
        begun = (BEGUN[0], ("npx vitest run", f"{ERROR}\nin {day}.2 s"), *WHOLE[2:])
        assert memory.learn(session(f"s{day}", *begun, day=day)).copied == 0
    assert tasks(memory) == 3


def test_sessions_that_begin_alike_are_no_copies_where_thoughts_differ(memory: AgentMemory) -> None:
    for day in range(3):
        raw = session(f"s{day}", *WHOLE, day=day, thought=f"Attempt {day}")
        assert memory.learn(raw).copied == 0
    assert tasks(memory) == 3


def test_a_request_and_a_command_in_common_are_no_copy(memory: AgentMemory) -> None:
    for day in range(2):
        memory.learn(
            session(f"s{day}", *BEGUN[:2], (f"pnpm add wickparser@{day}", "done"), day=day)
        )
    assert len(memory.store.runs.ids()) == 2


@pytest.mark.parametrize(("first", "second", "copied"), [("a1", "a1", 1), ("a1", "b2", 0)])
def test_a_session_whose_first_message_has_the_id_of_another_is_a_copy(
    memory: AgentMemory, first: str, second: str, copied: int
) -> None:
    begun = BEGUN[:2]
    memory.learn(replace(session("s1", *begun, ("ls", "a")), opening_id=first))
    other = replace(session("s2", *begun, ("ls src", "b"), day=1), opening_id=second)
    assert memory.learn(other).copied == copied


@pytest.mark.parametrize(("microseconds", "copied"), [(123_000, 1), (0, 0)])
def test_the_same_command_at_the_same_moment_is_a_copy(
    memory: AgentMemory, microseconds: int, copied: int
) -> None:
    def learned(name: str, *turns: str | tuple[str, str]) -> LearnReceipt:
        raw, moment = session(name, *turns), timedelta(microseconds=microseconds)
        steps = (replace(step, timestamp=(step.timestamp or MONDAY) + moment) for step in raw.steps)
        return memory.learn(replace(raw, steps=tuple(steps)))

    learned("s1", *BEGUN[:2], ("ls", "a"))
    assert learned("s2", *BEGUN[:2], ("ls src", "b")).copied == copied


@pytest.mark.parametrize(("microseconds", "times"), [(123_000, 1), (0, 2)])
def test_a_rule_of_two_tasks_is_said_once_at_one_moment_and_twice_in_one_second(
    memory: AgentMemory, microseconds: int, times: int
) -> None:
    moment = timedelta(microseconds=microseconds)
    for name, task in (("s1", "make the wick tests pass"), ("s2", "mend the parser of flames")):
        raw = session(name, task, *WHOLE[1:])
        steps = (
            replace(
                step,
                timestamp=(step.timestamp or MONDAY) + moment,
                messaged_at=step.messaged_at and step.messaged_at + moment,
            )
            for step in raw.steps
        )
        memory.learn(replace(raw, steps=tuple(steps)))
    assert said(memory)[RULE][0] == times


def test_one_long_reply_in_common_is_a_copy(memory: AgentMemory) -> None:
    reply = ("cat <<EOF\n" + "a line that nobody types twice\n" * 9 + "EOF", "done")
    memory.learn(session("first", BEGUN[0], reply, ("ls", "a")))
    assert memory.learn(session("fork", BEGUN[0], reply, ("ls src", "b"), day=1)).copied == 1


def test_runs_without_a_session_are_independent(memory: AgentMemory) -> None:
    for day in range(2):
        raw = replace(session(f"acme__shop-{day}", *WHOLE, day=day), session="")
        assert memory.learn(raw).copied == 0
    assert tasks(memory) == 2


def test_other_agents_that_keep_no_thoughts_repeat_a_session(memory: AgentMemory) -> None:
    memory.learn(session("first", *WHOLE, thought="I look at the tests"))
    receipt = memory.learn(session("imported", *FORK, day=1, agent="codex"))
    assert commands(run_of(memory, receipt)) == ["ls docs", "ls"]


def test_a_sub_agent_owns_nothing_of_its_parent(memory: AgentMemory) -> None:
    memory.learn(session("side", *WHOLE[:-1], ("ls", ""), agent=f"{AGENT}/subagent"))
    memory.learn(session("main", *WHOLE, day=1))
    assert said(memory) == {RULE: (1, "main")}
    assert tasks(memory) == 1


def test_another_source_takes_nothing_from_the_owner_of_the_memory(memory: AgentMemory) -> None:
    mine = memory.learn(session("mine", *WHOLE, day=1))
    theirs = memory.learn(session("theirs", *WHOLE), source="stranger")
    assert theirs.trajectory_id == mine.trajectory_id
    assert (
        memory.store.runs.trajectories([mine.trajectory_id])[mine.trajectory_id].contributor == ""
    )


def test_a_copy_goes_on(memory: AgentMemory) -> None:
    memory.learn(session("first", *WHOLE))
    memory.learn(session("fork", *FORK[:-1], day=1))
    longer = memory.learn(session("fork", *FORK, ("pwd", "/lantern"), day=1))
    assert longer.status is LearnStatus.UPDATED
    assert commands(run_of(memory, longer)) == ["ls docs", "ls", "pwd"]
    assert len(memory.store.runs.ids()) == 2


def test_a_fork_of_a_fork_gives_up_what_both_own(memory: AgentMemory) -> None:
    second = (*FORK, ("make docs", "built"))
    third = (*FORK, ("make site", "built"))
    for name, turns, day in (("c", third, 2), ("a", WHOLE, 0), ("b", second, 1)):
        memory.learn(session(name, *turns, day=day))
    runs = [memory.store.runs.raw(id_) for id_ in memory.store.runs.ids()]
    own = {run.session: commands(run)[-2:] for run in runs if run}
    assert own == {
        "a": ["npx vitest run", "git status"],
        "b": ["ls", "make docs"],
        "c": ["make site"],
    }


def test_what_is_forgotten_with_its_owner_does_not_come_back(memory: AgentMemory) -> None:
    first = memory.learn(session("first", *WHOLE))
    fork = memory.learn(session("fork", *FORK, day=1))
    memory.forget([first.trajectory_id])
    again = memory.learn(session("fork", *FORK, day=1))
    assert (again.status, again.trajectory_id) == (LearnStatus.UNCHANGED, fork.trajectory_id)
    assert RULE not in said(memory)


def test_a_review_stays_with_the_lesson_that_moves_to_its_owner(memory: AgentMemory) -> None:
    memory.learn(session("fork", *FORK, day=1))
    (lesson,) = (one for one in memory.lessons.of() if one.text == RULE)
    memory.lessons.accept([lesson.id], "dana")
    memory.learn(session("first", *WHOLE))
    (moved,) = (one for one in memory.lessons.of() if one.text == RULE)
    assert [one.session for one in moved.evidence] == ["first"]
    assert "accepted by dana" in moved.history[-1]


def test_a_search_finds_what_a_fork_repeats_where_it_was_said(memory: AgentMemory) -> None:
    first = memory.learn(session("first", *WHOLE))
    fork = memory.learn(session("fork", *FORK, day=1))
    for receipt, words in ((first, {WHOLE[0], RULE}), (fork, {FORK[-2]})):
        passages = memory.store.passages.newest(PassageScope(runs=(receipt.trajectory_id,)), 100)
        assert {one.text for one in passages if not one.by_agent} == words


def test_an_outcome_of_a_copy_is_its_own(memory: AgentMemory) -> None:
    memory.learn(session("first", *WHOLE))
    fork = replace(session("fork", *FORK, day=1), outcome=Outcome.SOLVED)
    receipt = memory.learn(fork)
    assert receipt.outcome is Outcome.SOLVED
    assert len(memory.store.runs.ids()) == 2


def test_rebuilding_changes_no_owner(memory: AgentMemory) -> None:
    memory.learn(session("first", *WHOLE))
    memory.learn(session("fork", *FORK, day=1))
    before = [*memory.store.runs.ids()]
    assert len([*memory.rebuild()]) == 2
    assert [*memory.store.runs.ids()] == before
    assert memory.learn(session("fork", *FORK, day=1)).status is LearnStatus.UNCHANGED


def answered(name: str, request: str, reply: str, day: int) -> RawTrajectory:
    """A conversation of its own, in which a person answers *reply*."""
    return session(name, request, ("ls", name), reply, ("pwd", name), day=day)


def test_the_same_short_words_in_another_conversation_are_said_again(memory: AgentMemory) -> None:
    memory.learn(answered("one", "look at the parser", RULE, 0))
    memory.learn(answered("two", "look at the docs", RULE, 1))
    assert said(memory) == {RULE: (2, "one")}


def test_a_long_message_that_is_pasted_into_several_conversations_counts_once(
    memory: AgentMemory,
) -> None:
    message = f"{RULE}. The module reads a file line by line, " + "and writes each, " * 12 + "done."
    for day, request in enumerate(["look at the parser", "look at the docs", "add a page"]):
        memory.learn(answered(f"s{day}", request, message, day))
    assert said(memory)[f"{RULE}."] == (1, "s0")
    memory.learn(answered("typed", "bump the version", RULE, 3))
    assert sum(sessions for sessions, _ in said(memory).values()) > 1


def checkout_with_remote(folder: Path, name: str) -> None:
    for words in (["init", "-q"], ["remote", "add", "origin", f"git@github.com:{name}.git"]):
        subprocess.run(["git", "-C", folder, *words], check=True)


def of_repository(name: str, repo: str, *, day: int = 0, folder: str = "") -> RawTrajectory:
    begun = (f"task {name}", *WHOLE[1:])
    return replace(session(name, *begun, day=day), repo=repo, folder=folder)


def test_names_of_one_repository_are_joined_and_told_apart_again(memory: AgentMemory) -> None:
    memory.learn(of_repository("one", "local/lantern"))
    memory.notes.remember("Lantern needs a lid", repo="local/lantern")
    memory.learn(of_repository("two", "dana/lantern", day=1))
    before = dict(memory.store.runs.repositories(9))

    assert memory.join_repository("local/Lantern", "dana/lantern") == 1

    assert dict(memory.store.runs.repositories(9)) == {"dana/lantern": 2}
    for name in ("local/lantern", "dana/lantern"):
        assert memory.query(ERROR, repo=name).error_solutions[0].why.instances == 2
        assert memory.playbook(name).runs == 2
        assert [one.note.content for one in memory.notes.recall("lid", repo="dana/lantern")]
    memory.learn(of_repository("three", "local/lantern", day=2))
    assert dict(memory.store.runs.repositories(9)) == {"dana/lantern": 3}
    (rule,) = memory.lessons.of("dana/lantern")
    assert memory.lessons.of("local/lantern") == (rule,)
    assert rule.sessions == 3
    memory.lessons.accept([rule.id], "dana")

    assert memory.split_repository("local/lantern") == 2

    assert dict(memory.store.runs.repositories(9)) == {**before, "local/lantern": 2}
    assert not memory.notes.recall("lid", repo="dana/lantern")
    for name, sessions in (("dana/lantern", 1), ("local/lantern", 2)):
        (rule,) = memory.lessons.of(name)
        assert rule.sessions == sessions
        assert rule.history[-1].endswith("accepted by dana")
    with pytest.raises(NotFoundError):
        memory.split_repository("local/lantern")
    with pytest.raises(SettingsError):
        memory.join_repository("dana/lantern", "dana/Lantern")


def test_a_run_in_which_nobody_spoke_has_no_lessons_after_its_repository_is_joined(
    memory: AgentMemory,
) -> None:
    met = [("tree", "bash: line 1: tree: command not found", 127)]
    memory.learn(run(met, repo="local/lantern", task="Never call `tree`, it is not there"))
    memory.join_repository("local/lantern", "dana/lantern")
    memory.split_repository("local/lantern")
    assert not memory.lessons.of("local/lantern")


def run_before_the_remote(memory: AgentMemory, tmp_path: Path) -> str:
    """Return a folder that got its remote after a run in it was learned."""
    here = tmp_path / "lantern"
    here.mkdir()
    memory.learn(of_repository("one", "local/lantern", folder=str(here)))
    checkout_with_remote(here, "dana/lantern")
    return str(here)


def test_a_folder_that_has_a_remote_by_now_takes_its_earlier_runs_along(
    memory: AgentMemory, tmp_path: Path
) -> None:
    here = run_before_the_remote(memory, tmp_path)
    memory.learn(of_repository("two", "dana/lantern", day=1, folder=here))
    assert dict(memory.store.runs.repositories(9)) == {"dana/lantern": 2}


def test_a_folder_takes_its_runs_along_where_nobody_waits_for_the_end_of_learning(
    memory: AgentMemory, tmp_path: Path
) -> None:
    here = run_before_the_remote(memory, tmp_path)
    receipts = memory.learn_many([of_repository("two", "dana/lantern", day=1, folder=here)])
    for _ in receipts:  # as the command does, which counts its runs
        break
    assert dict(memory.store.runs.repositories(9)) == {"dana/lantern": 2}


def test_another_folder_of_the_same_name_is_not_joined(memory: AgentMemory, tmp_path: Path) -> None:
    here = str(tmp_path / "lantern")
    Path(here).mkdir()
    checkout_with_remote(Path(here), "dana/lantern")
    memory.learn(of_repository("one", "local/lantern", folder="/srv/lantern"))
    memory.learn(of_repository("two", "dana/lantern", day=1, folder=here))
    assert dict(memory.store.runs.repositories(9)) == {"dana/lantern": 1, "local/lantern": 1}
