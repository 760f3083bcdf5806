"""How a path that was wrong was put right."""

import posixpath
from collections.abc import Iterator

from contextgraph.replay.moves import Move, MoveKind

# Agents name one file in several ways; its last parts are what they have in common.
_PARTS_COMPARED = 2


def path_moves(old: str, new: str, repo: str) -> Iterator[Move]:
    """The correction from *old* to *new*, and the path that was right, which is of one *repo*."""
    wrong, right = posixpath.normpath(old), posixpath.normpath(new)
    if wrong == right:
        return
    yield Move(MoveKind.PATH, _correction(wrong, right, repo))
    if right not in (".", "/"):
        yield right_path(right, repo)


def right_path(path: str, repo: str) -> Move:
    """That *path* is the right one in *repo*, whatever was tried before."""
    return Move(MoveKind.PATH, f"is {_in(repo, posixpath.normpath(path))}")


def _correction(wrong: str, right: str, repo: str) -> str:
    if right in (".", "/", "..") or wrong.startswith(f"{right}/"):
        return "up to a parent"
    if _without_doubled(wrong) == right:
        return "without the doubled directory"
    if right.startswith("/") and not wrong.startswith("/"):
        return "made absolute" if right.endswith(f"/{wrong}") else f"moved to {_in(repo, right)}"
    if right.endswith(f"/{wrong}"):
        return f"under {repo}:{right.removesuffix(f'/{wrong}')}"
    if wrong.endswith(f"/{right}"):
        return f"without {repo}:{wrong.removesuffix(f'/{right}')}"
    if posixpath.basename(wrong) == posixpath.basename(right):
        return f"moved to {_in(repo, right)}"
    return f"renamed to {_in(repo, right)}"


def _without_doubled(path: str) -> str:
    """*path* without the first directory that is named twice in a row."""
    parts = path.split("/")
    for index in range(1, len(parts)):
        if parts[index] and parts[index] == parts[index - 1]:
            return "/".join(parts[:index] + parts[index + 1 :])
    return ""


def _in(repo: str, path: str) -> str:
    return f"{repo}:{'/'.join(path.strip('/').split('/')[-_PARTS_COMPARED:])}"
