"""What early exploration shows of a repository."""

from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.steps import StepTrace

SUMMARY_CHARS = 600
_EARLY_STEPS = 8
_ENTRIES = 40
_LINES = 6


class RepositorySummary:
    """A short text on the repository, from its first listing and its README."""

    def __init__(self) -> None:
        self._entries = ""
        self._readme = ""

    def push(self, step: StepTrace) -> None:
        """Take the next step in."""
        if step.index >= _EARLY_STEPS or not step.succeeded:
            return
        shown = step.step.observation or ""
        if step.reading.kind is ActionKind.LIST and not self._entries:
            self._entries = _entries(shown)
        elif step.reading.kind is ActionKind.VIEW and not self._readme and _is_readme(step):
            self._readme = _opening(shown)

    @property
    def text(self) -> str:
        """At most 600 characters; empty as long as nothing was looked at."""
        told = [part for part in (self._readme, self._entries) if part]
        return "\n".join(told)[:SUMMARY_CHARS]


def _is_readme(step: StepTrace) -> bool:
    return any("readme" in target.lower() for target in step.reading.targets)


def _entries(listing: str) -> str:
    lines = [line.split()[-1] for line in listing.splitlines() if line.strip()]
    names = [name for name in lines if name not in (".", "..") and not name.isdecimal()]
    return f"files: {', '.join(names[:_ENTRIES])}"[: SUMMARY_CHARS // 2] if names else ""


def _opening(view: str) -> str:
    """The first lines of a README that say something, without line numbers and badges."""
    lines = (line.partition(":")[2] if line[:1].isdecimal() else line for line in view.splitlines())
    bare = (line.strip().strip("#=-*").strip() for line in lines)
    told = [line for line in bare if line and line[0] not in "[(<!.|" and "://" not in line]
    return f"README: {' '.join(told[:_LINES])}"[: SUMMARY_CHARS // 2] if told else ""
