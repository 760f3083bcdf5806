"""The name of a repository: from its git remote, else from the task, else from its folder."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath
from urllib.parse import unquote

from contextgraph.model import instance_id_in, repo_of
from contextgraph.text import regex

# A URL, ``host:owner/name`` as ssh takes it (a host may be an alias), or a path on a named host.
_REMOTE = regex(
    r"(?:\w+://(?:[^@/\s]+@)?[\w.-]+(?::\d+)?/|(?:[^@/:\s]+@)?[\w.-]{2,}:(?:\d+/)?/?(?!/)|[\w.-]+\.\w+/)"
    r"(?P<path>[^/\s]+(?:/[^/\s]+)+)"
)
# Working trees that clients make for their sessions, and remove: of Claude Code below the root of
# the repository, of others below a folder of their own, where one folder is named after it.
_MADE_TREE = regex(
    r"(?P<root>.+)[/\\]\.claude[/\\]worktrees[/\\][^/\\]+.*"
    r"|.*[/\\]\.codex[/\\]worktrees[/\\][^/\\]+[/\\](?P<codex>[^/\\]+).*"
    r"|.*[/\\]\.cursor[/\\]worktrees[/\\](?P<cursor>[^/\\]+)[/\\].*"
)
_HOME = regex(r"/root|/(?:home|Users)/[^/]+|[A-Za-z]:[/\\]Users[/\\][^/\\]+")
_NAMED_REPO = regex(r"^\s*[\"']?repo[\"']?\s*[:=]\s*[\"']?([\w.-]+/[\w.-]+)", re.MULTILINE)
_NAMED_INSTANCE = regex(
    r"^\s*[\"']?instance_id[\"']?\s*[:=]\s*[\"']?([\w.-]+__[\w.-]+)", re.MULTILINE
)
# A folder of its own, as evaluations clone into: /workspace/owner__name__1.0
_CLONE = regex(
    r"(?:^|(?<=\s))/(?:workspaces?/|repos?/)?(?P<clone>[A-Za-z0-9-]+__[\w.-]+?)(?=/|\s|$)",
    re.MULTILINE,
)
_VERSION = regex(r"__[v\d][\w.]*$")
_HEAD = 4000
_GIT_SECONDS = 5
# A folder of a checkout may be a bare repository whose configuration names programs to run.
_NO_PROGRAMS = ("-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=false")


def repository_name(
    folder: str | None, *, task: str = "", instance_id: str = "", remote: str = ""
) -> str:
    """``owner/name`` of the repository that a run worked in; empty where nothing names it.

    *remote* is the URL that the log gives; without it the remote of *folder* counts, if that is a
    git working tree on this machine; then what *instance_id* or *task* name; then the folder's own
    name, as ``local/name``. All working trees of one repository have one name.
    """
    named = remote_name(remote) or repo_of(instance_id)
    if not named and folder and PurePath(folder).is_absolute():
        named = _remote_of(checkout(folder))
    return named or repo_in(task) or local_name(folder)


def remote_name(url: str) -> str:
    """``owner/name`` of a git remote's URL; empty for a path or anything else.

    The three forms of a URL that Azure DevOps has for one repository give one name.
    """
    match = _REMOTE.fullmatch(url.strip().rstrip("/").removesuffix(".git"))
    if not match:
        return ""
    *owners, name = unquote(match["path"]).split("/")
    if "_git" in owners:
        before = [owner for owner in owners if owner != "_git"]
        is_named_as_project = before[-1:] == owners[:1] and "visualstudio" not in url
        return f"{name if is_named_as_project or not before else before[-1]}/{name}"
    return f"{owners[-1]}/{name}"


def repo_in(task: str) -> str:
    """The repository that *task* names, in a line ``repo: owner/name`` or as a cloned folder."""
    head = task[:_HEAD]
    if named := _NAMED_REPO.search(head):
        return named[1]
    if instance := instance_in(head):
        return repo_of(instance)
    if clone := _CLONE.search(head):
        owner, _, name = _VERSION.sub("", clone["clone"]).partition("__")
        return f"{owner}/{name}" if name else ""
    return ""


def instance_in(task: str) -> str:
    """The instance that *task* names in a line ``instance_id: …``; empty if there is none."""
    named = _NAMED_INSTANCE.search(task[:_HEAD])
    return (instance_id_in(named[1]) or named[1]) if named else ""


def local_name(folder: str | None) -> str:
    """``local/name`` of *folder*, of the main working tree where it is one of several."""
    if not folder:
        return ""
    folder = checkout(folder)
    root = _main_folder(folder) if PurePath(folder).is_absolute() else ""
    name = PurePath(root or folder.replace("\\", "/")).name
    return f"local/{name}" if name and name not in (".", "..") else ""


def checkout(folder: str) -> str:
    """The folder of the repository that the working tree *folder* was made of by a client.

    *folder* itself where it is there, or no client made it.
    """
    made = None if os.path.isdir(folder) else _MADE_TREE.fullmatch(folder)
    return (made["root"] or made["codex"] or made["cursor"]) if made else folder


def folder_worked_in(folder: str | None, visited: Sequence[str | None]) -> str | None:
    """*folder*, or the one below it that most steps were in, where it only holds repositories.

    *visited* are the folders of the steps. A home holds repositories, and so does a folder that is
    in no repository while the other is.
    """
    if not folder:
        return folder
    below = [path for path in visited if path and path.startswith(folder.rstrip("/") + "/")]
    counts = Counter(below)
    most = max(counts, key=lambda path: (counts[path], -len(path)), default="")
    if not most or 2 * len(below) < len([path for path in visited if path]):
        return folder
    if os.path.isdir(folder):
        return most if _main_folder(most) and not _main_folder(folder) else folder
    if not _HOME.fullmatch(folder):
        return folder
    return "/".join(most.split("/")[: len(folder.rstrip("/").split("/")) + 1])


@lru_cache(maxsize=1024)
def _remote_of(folder: str) -> str:
    """``owner/name`` of the remote "origin" of *folder*, else of its first remote."""
    urls = dict(
        line.split(" ", 1)
        for line in git_output(folder, "config", "--get-regexp", r"^remote\..*\.url$").splitlines()
    )
    ordered = sorted(urls, key=lambda name: name != "remote.origin.url")
    return next((name for key in ordered if (name := remote_name(urls[key]))), "")


@lru_cache(maxsize=1024)
def _main_folder(folder: str) -> str:
    """The folder that holds the ``.git`` which all working trees share; empty if there is none."""
    common = git_output(folder, "rev-parse", "--path-format=absolute", "--git-common-dir").strip()
    if not common:
        return ""
    path = PurePath(common)
    return str(path.parent if path.name == ".git" else path.with_suffix(""))


def git_output(folder: str, *command: str, seconds: float = _GIT_SECONDS) -> str:
    """Return what git prints about *folder*; empty without repository, folder or git.

    Empty as well if git fails or has not finished after so many *seconds*.
    """
    if not os.path.isdir(folder):  # `Path` raises for a name that is too long
        return ""
    import subprocess  # slow to load

    try:
        done = subprocess.run(  # the command is fixed, the folder one argument
            ["git", *_NO_PROGRAMS, "-C", folder, *command],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""
