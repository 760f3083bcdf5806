"""A prompt never changes without a new version."""

from hashlib import sha256
from importlib.resources import files

from contextgraph.inference import chat, summarizer

# A changed prompt is a new file with the next number: add a line, change none.
KNOWN = {
    "check.v1.md": "942c3d5ea0172ed8",
    "judgement.v1.md": "94bab53d7812d3df",
    "reviews.v1.md": "81b005acfe448d25",
    "lessons.v3.md": "ecf252542fddee93",
    "methodology.v1.md": "2144f335ebe308db",
    "methodology.v2.md": "c6593e396158e7c3",
}


def test_a_prompt_never_changes_without_a_new_version() -> None:
    prompts = files("contextgraph.inference").joinpath("prompts").iterdir()
    assert {one.name: sha256(one.read_bytes()).hexdigest()[:16] for one in prompts} == KNOWN


def test_the_newest_prompt_is_used() -> None:
    for version in (chat.PROMPT_VERSION, summarizer.PROMPT_VERSION):
        kind = version.partition(".")[0]
        assert f"{version}.md" == max(name for name in KNOWN if name.startswith(kind))
