"""Ids of methodologies: what they are about, never how they are worded."""

from hashlib import blake2b

from contextgraph.model import Phase, TaskType


def methodology_id(
    error_id: str,
    keyword: str,
    task_type: TaskType | None,
    repo: str | None,
    phase: Phase | None = None,
) -> str:
    """The id of the methodology for an error (narrowed by *keyword*), type of task and scope.

    For what worked without an error, which has the empty *error_id*, of a *phase*.
    """
    scope = "" if repo is None else f"repo:{repo}"
    parts = (error_id, keyword, task_type or "", scope, *([phase] if phase else []))
    encoded = b"\x1f".join(part.encode("utf-8", "surrogatepass") for part in parts)
    return f"mth_{blake2b(encoded, digest_size=12).hexdigest()}"
