"""Where an agent stands when it asks the memory."""

from dataclasses import dataclass

from contextgraph.model.fragment import Phase


@dataclass(frozen=True, slots=True)
class State:
    """What an agent knows at one moment; every field may be left out.

    *current_error* is the text of the latest error that is not cleared; *last_outcome* the
    observation that *last_action* brought. *repo* is ``owner/repo``.
    """

    tools: tuple[str, ...] = ()
    repo: str = ""
    repo_summary: str = ""
    task_description: str = ""
    current_error: str = ""
    phase: Phase | None = None
    last_action: str = ""
    last_outcome: str = ""
    open_file: str = ""
    instance_id: str | None = None
