"""A session all of whose words have a marker, to be found in what keeps them."""

from pathlib import Path

from contextgraph import AgentMemory, State
from contextgraph.model import Action, RawTrajectory
from contextgraph.model.values import replace
from tests.builders import NO_MODULE, recovering_run

MARKER = "zqmarker"
REPO, SESSION, PERSON = "acme/secret", "session-of-ann", "ann"


def marked_run(number: int) -> RawTrajectory:
    """A part of the session that has the marker in what was asked, said, done, met and changed."""
    given = recovering_run(
        number + 100, repo=REPO, instance_id=f"{MARKER}-{number}", session=SESSION
    )
    error = NO_MODULE.replace("tariffs", f"{MARKER}mod")
    said = f"We decided: from now on always use {MARKER} for each build of the shop, never make."
    noted = f"\n{MARKER} in the output\nsrc/{MARKER}.py"
    steps = [
        replace(step, thought=f"{MARKER} thought", observation=f"{step.observation}{noted}")
        for step in given.steps
    ]
    steps[0] = replace(steps[0], user_message=said)
    steps[1] = replace(steps[1], observation=error)
    test = Action("bash", f"pytest tests/test_{MARKER}.py")
    steps.append(replace(steps[-1], index=3, action=test, observation="1 passed", exit_code=0))
    patch = f"--- a/src/{MARKER}.py\n+++ b/src/{MARKER}.py\n@@ -1 +1 @@\n-a\n+{MARKER}_b\n"
    task = f"{MARKER} prices are wrong {number}"
    return replace(given, task=task, steps=tuple(steps), patch=patch)


def remember_marked(memory: AgentMemory) -> list[str]:
    """Let *memory* learn the session among others, derive from it, and show it; its run ids."""
    ids = [memory.learn(marked_run(n), source=PERSON).trajectory_id for n in range(3)]
    for number in range(16):
        task = f"Totals {number} are wrong when a tariff of kind {number % 5} is missing"
        memory.learn(recovering_run(number, task=task))
    memory.consolidate()
    error = NO_MODULE.replace("tariffs", f"{MARKER}mod")
    for state in (
        State(repo=REPO, task_description=f"{MARKER} prices are wrong"),
        State(repo=REPO, current_error=error, last_action="python reproduce.py"),
    ):
        memory.render(memory.query(state))
    memory.note_exposures()
    return ids


def marked_files(folder: Path) -> list[str]:
    """Return the names of the files below *folder* that have the marker."""
    import zstandard

    found = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".zst":
            content = zstandard.ZstdDecompressor().stream_reader(content).read()
        if MARKER.encode() in content.lower():
            found.append(str(path.relative_to(folder)))
    return sorted(found)
