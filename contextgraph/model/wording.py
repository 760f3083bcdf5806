"""What a language model is asked to put into words, and what it says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from contextgraph.model.methodology import MethodologyGroup
from contextgraph.model.practice import PracticeGroup
from contextgraph.model.usage import Usage

Group: TypeAlias = MethodologyGroup | PracticeGroup
"""What several runs have in common, with an error or without one."""

Said_co = TypeVar("Said_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Words:
    """A group in a model's words: when it applies, how to go about it, and when not to, or ""."""

    situation: str
    strategy: str
    not_when: str


@dataclass(frozen=True, slots=True)
class RunWords:
    """A run in a model's words: what it did, and what happened in fragments, by their ids."""

    summary: str
    descriptions: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Wording(Generic[Said_co]):
    """What asking took, and what came of it; without *words*, the *reason* why none were usable."""

    words: Said_co | None
    reason: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class WordingPlan:
    """What consolidating would ask a model, and what that takes, about.

    *editor* is the model and the version of its prompt, empty where none is configured; *prompts*
    are the texts it would be sent about methodologies. *reteller* is who would tell *runs* again,
    empty where that was not chosen; *run_prompt* is the text about the first of them.
    """

    editor: str
    prompts: tuple[str, ...]
    usage: Usage
    reteller: str = ""
    runs: int = 0
    run_prompt: str = ""
