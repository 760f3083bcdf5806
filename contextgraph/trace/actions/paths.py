"""Paths as one run shows them, made relative to the repository."""

import posixpath
import re
from functools import lru_cache

_FILE_NAME = re.compile(r"[\w@+=.-]*[\w-]\.[A-Za-z][\w]{0,9}(?:::\S+)?")
_NO_PATH = re.compile(r"[*?|^\\ \n]")
_SYSTEM = frozenset({"home", "Users", "tmp", "usr", "root", "opt", "var", "etc", "private", "mnt"})
_NESTED = frozenset({"workspace", "workspaces"})


def looks_like_path(word: str) -> bool:
    """True for a word that names a file or directory rather than an option or a pattern."""
    if not word or word[0] in "-$+%=@" or len(word) > 300 or _NO_PATH.search(word):
        return False
    return "/" in word or _FILE_NAME.fullmatch(word) is not None


# A run names the same few files again and again.
@lru_cache(maxsize=4096)
def repository_path(path: str, cwd: str | None) -> str:
    """*path* relative to the repository that *cwd* is in; unchanged where that cannot be told."""
    full = path if path.startswith("/") or not cwd else posixpath.join(cwd, path)
    full = posixpath.normpath(full)
    if not full.startswith("/"):
        return full
    root = _root(full, cwd)
    return full[len(root) + 1 :] if full.startswith(root + "/") else full


def _root(full: str, cwd: str | None) -> str:
    """The directory that is taken for the repository's own."""
    parts = full.split("/")
    if parts[1] in _SYSTEM:
        return posixpath.normpath(cwd) if cwd and cwd.count("/") > 1 else full
    depth = 3 if parts[1] in _NESTED else 2
    return "/".join(parts[:depth])
