"""Passages of what was said in a run."""

from datetime import UTC, datetime, timedelta

from contextgraph.model import Action, Passage, PassageKind, RawTrajectory, Step
from contextgraph.trace import PASSAGE, passages_of

AT = datetime(2026, 3, 1, tzinfo=UTC)


def said_in(*steps: Step, task: str = "Look here", agent: str = "claude-code") -> list[Passage]:
    run = RawTrajectory("generic", "a", "acme/shop", task, steps, agent=agent, started_at=AT)
    return passages_of(run, "trj_1", "acme/shop", AT)


def ran(index: int, thought: str, command: str = "make", said: str | None = None) -> Step:
    at = AT + timedelta(minutes=index)
    action = Action("bash" if command else "", command)
    return Step(index, thought, action, "ok", user_message=said, timestamp=at)


def test_every_turn_stands_by_itself_with_its_speaker_and_time() -> None:
    passages = said_in(ran(0, "I read the importer.", said="Keep it small."), ran(1, "Done.", ""))
    assert [(one.kind, one.speaker, one.step, one.text) for one in passages] == [
        (PassageKind.TASK, "user", -1, "Look here"),
        (PassageKind.THOUGHT, "agent", 0, "I read the importer."),
        (PassageKind.TURN, "user", 0, "Keep it small."),
        (PassageKind.REPLY, "agent", 1, "Done."),
    ]
    assert [one.said_at for one in passages] == [AT, AT, AT, AT + timedelta(minutes=1)]
    assert [one.id for one in passages][::3] == ["trj_1:0000", "trj_1:0003"]


def test_long_texts_are_cut_at_paragraphs_and_sentences_and_nothing_is_lost() -> None:
    sentences = [f"The importer reads row {number} of the ledger once." for number in range(30)]
    text = f"{' '.join(sentences)}\n\n{'x' * 500}{'y' * 1_000}\n\nThe end."
    parts = [one.text for one in said_in(ran(0, "", "", text)) if one.kind is PassageKind.TURN]
    assert max(map(len, parts)) <= PASSAGE
    assert all(part.endswith("once.") for part in parts[:3])
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_what_an_agent_wrote_between_two_turns_stands_together() -> None:
    steps = [ran(number, f"I look at file {number}.") for number in range(3)]
    (_, thoughts) = said_in(*steps)
    assert thoughts.text.splitlines()[::2] == [f"I look at file {number}." for number in range(3)]
    assert thoughts.step == 0


def test_the_message_of_a_commit_is_said() -> None:
    typed = "git commit -m \"$(cat <<'EOF'\nLock the queue\n\nRows were lost.\nEOF\n)\" && git push"
    passages = said_in(ran(0, "", "git add -A && git commit -m 'Round once'"), ran(1, "", typed))
    messages = [one.text for one in passages if one.kind is PassageKind.COMMIT]
    assert messages == ["Round once", "Lock the queue\n\nRows were lost."]


def test_what_a_sub_agent_was_asked_was_said_by_an_agent() -> None:
    (task,) = said_in(agent="claude-code/subagent")
    assert (task.kind, task.speaker) == (PassageKind.TASK, "agent")
