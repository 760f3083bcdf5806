"""What a language model is asked to put into words, and what it says."""

from dataclasses import dataclass
from typing import TypeAlias

from contextgraph.model.methodology import MethodologyGroup
from contextgraph.model.practice import PracticeGroup
from contextgraph.model.usage import Usage

Group: TypeAlias = MethodologyGroup | PracticeGroup
"""What several runs have in common, with an error or without one."""


@dataclass(frozen=True, slots=True)
class Words:
    """A group in a model's words: when it applies, how to go about it, and when not to, or ""."""

    situation: str
    strategy: str
    not_when: str


@dataclass(frozen=True, slots=True)
class Wording:
    """What asking took, and what came of it; without *words*, the *reason* why none were usable."""

    words: Words | None
    reason: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class WordingPlan:
    """What consolidating would ask a model: the texts it would be sent, and what it costs, about.

    *editor* is the model and the version of its prompt, empty where none is configured.
    """

    editor: str
    prompts: tuple[str, ...]
    usage: Usage
