"""The summarizer without a model: the same group gives the same words."""

from contextgraph.model import CommonRemedy, MethodologyGroup, Summary
from contextgraph.text import clip

MADE_BY = "template/1"
_MESSAGE_CHARS = 200


class TemplateSummarizer:
    """Words a group by templates: where, which error, and what was done, with counts."""

    name = MADE_BY

    def summarise(self, group: MethodologyGroup) -> Summary:
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
    if len(group.remedies) == 1:
        return _said(group.remedies[0], group.cleared)
    numbered = enumerate(group.remedies, start=1)
    return " ".join(f"({number}) {_said(remedy, group.cleared)}" for number, remedy in numbered)


def _said(remedy: CommonRemedy, cleared: int) -> str:
    steps = "1 step" if round(remedy.steps, 1) == 1 else f"{remedy.steps:.1f} steps"
    return f"{remedy.text} ({remedy.runs} of {cleared} runs that got over it; {steps})."
