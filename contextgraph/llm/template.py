"""Summaries by template: the same group gives the same words."""

from contextgraph.model import (
    CommonRemedy,
    MethodologyGroup,
    Summary,
)
from contextgraph.text import clip, number_of

MADE_BY = "template/1"
_MESSAGE_CHARS = 200


class TemplateSummarizer:
    """Words a group by templates: where, which error, and what was done, with counts."""

    name = MADE_BY

    def summarize(self, group: MethodologyGroup) -> Summary:
        """The group in words; never fails."""
        return Summary(_situation(group), _strategy(group), MADE_BY)


def _situation(group: MethodologyGroup) -> str:
    where = f"in {group.repo}, when" if group.repo else "when"
    task = f" in a {group.task_type.replace('_', ' ')} task" if group.task_type else ""
    return f"{where} `{_error(group)}`{task}"


def _error(group: MethodologyGroup) -> str:
    """The error as it shows, with placeholders for what varies."""
    message = group.error.template
    if group.keyword:
        message = group.clearances[0].recovered.message
    line = clip(" ".join(message.split()), _MESSAGE_CHARS, at="end")
    kind = group.error.error_type
    if not line or line.startswith(kind) or line == kind:
        return line or kind
    return f"{kind}: {line}"


def _strategy(group: MethodologyGroup) -> str:
    """A sentence for each remedy, numbered where there are several."""
    sentences = [_remedy_sentence(remedy, group.cleared) for remedy in group.remedies]
    if len(sentences) == 1:
        return sentences[0]
    return " ".join(f"({number}) {sentence}" for number, sentence in enumerate(sentences, start=1))


def _remedy_sentence(remedy: CommonRemedy, cleared: int) -> str:
    steps = "1 step" if round(remedy.steps, 1) == 1 else f"{remedy.steps:.1f} steps"
    return f"{remedy.text} ({remedy.runs} of {number_of(cleared, 'run')} that cleared it; {steps})."
