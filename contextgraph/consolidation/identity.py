"""Ids of methodologies: what they are about, never how they are worded."""

from hashlib import blake2b

from contextgraph.model import TaskType


def methodology_id(
    error_id: str, keyword: str, task_type: TaskType | None, repo: str | None
) -> str:
    """The id of the methodology for an error (narrowed by *keyword*), type of task and scope."""
    parts = (error_id, keyword, task_type or "", "" if repo is None else f"repo:{repo}")
    encoded = b"\x1f".join(part.encode("utf-8", "surrogatepass") for part in parts)
    return f"mth_{blake2b(encoded, digest_size=12).hexdigest()}"
