"""The name of a repository: from its git remote, else from the task, else from its folder."""

import glob
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import unquote

from msgspec import Struct

from contextgraph.errors import ReadError, SettingsError
from contextgraph.model import instance_id_in, repo_of
from contextgraph.system.intake import content, leaves, opened
from contextgraph.text import mixes_alphabets, regex

# A URL, ``host:owner/name`` as ssh takes it (a host may be an alias), or a path on a named host. A
# server of one's own may have repositories without owners.
_REMOTE = regex(
    r"(?:[\w+]+://(?:[^@/?#\\\s]+@)?(?P<url>[\w.-]+)(?::(?P<port>\d+))?/"
    r"|(?:[^@/?#\\:\s]+@)?(?P<ssh>[\w.-]{2,}):(?:\d+/)?/?(?!/)"
    r"|(?P<bare>[\w.-]+\.\w+)/(?=[^/\s]+/))(?P<path>[^/\s]+(?:/[^/\s]+)*)"
)
_LOCAL = "local"  # the owner in the name of a folder that has no remote
_GITHUB = ("github.com", "www.github.com", "ssh.github.com")
_AZURE, _AZURE_HOSTS = "dev.azure.com", regex(r"(?:ssh\.)?dev\.azure\.com|.+\.visualstudio\.com")
_OTHER_PORT = "altssh."  # of GitLab and Bitbucket, for ssh through port 443
_PORTS = ("80", "443")
_SSH_SETTINGS, _MOST_INCLUDED = ".ssh/config", 4
_SSH_SETTING = regex(r"\s*(?P<key>[A-Za-z]+)(?:\s*=\s*|\s+)(?P<value>[^#\s].*?)\s*$")
_ALIAS = regex(r"(?<=\.(?:com|org|net))-[\w-]+$")
# Working trees that clients make for their sessions, and remove: of Claude Code below the root of
# the repository, of Visual Studio Code beside it, of others below a folder of their own, where one
# folder is named after it.
_MADE_TREE = regex(
    r"(?P<root>.*[^/\\])(?:[/\\]\.(?:claude|gemini)[/\\]|[/\\]?\.)worktrees[/\\][^/\\]+.*"
    r"|.*[/\\]\.codex[/\\]worktrees[/\\][^/\\]+[/\\](?P<codex>[^/\\]+).*"
    r"|.*[/\\](?:\.(?:cursor|t3|superset)[/\\]worktrees|\.claude-worktrees|conductor[/\\]workspaces)"
    r"[/\\](?P<cursor>[^/\\]+)[/\\].*"
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
_GIT_SECONDS = 60.0
_GIT_BYTES = 1 << 26
_GIT_FILE_BYTES = 1 << 22
_GIT_FILE = regex(r"gitdir: (?P<path>[^\n]+)")
_REMOTE_SECTION = regex(r'\s*\[\s*remote\s*[". ](?P<name>[^"\]]+)"?\s*\]')
_REMOTE_URL = regex(r"\s*url\s*=\s*(?P<url>\S+)\s*$")
_WORKING_TREE = regex(r"^\s*worktree\s*=\s*(?P<path>.+?)\s*$", re.MULTILINE)
_SHA256_CHARS = 64
_NO_ADDRESS = "contextgraph@localhost"
_NOT_IN_NAMES = regex(r"[<>\x00-\x1f]+")
_COMMIT = regex(rf"[0-9a-f]{{40}}|[0-9a-f]{{{_SHA256_CHARS}}}")
# Of what git reads beside objects, nothing is of the repository, the user or the machine.
_CONFIG = (
    "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tbigFileThreshold = 8m\n"
    "\tquotePath = off\n"
)
_SHA256_CONFIG = "[extensions]\n\tobjectFormat = sha256\n"
_INHERITED = ("PATH", "SYSTEMROOT", "TMPDIR")
_NOTHING_ELSE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",  # a remote may be a program
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def repository_name(
    folder: str | None, *, task: str = "", instance_id: str = "", remote: str = ""
) -> str:
    """``owner/name`` of the repository that a run worked in; empty where nothing names it.

    Git precedes text: the remote of *folder* counts if that is a git working tree on this machine,
    then the URL *remote* that the log gives; then what *instance_id* or *task* name; then the
    folder's own name, as ``local/name``. All working trees of one repository have one name.
    """
    is_here = folder is not None and PurePath(folder).is_absolute()
    named = _remote_of(checkout(folder)) if folder and is_here else ""
    named = named or remote_name(remote) or repo_of(instance_id)
    return named or repo_in(task) or local_name(folder)


def remote_name(url: str, *, with_host: bool = False) -> str:
    """``owner/name`` of a git remote's URL; empty for a path or anything else.

    The host is left out of GitHub's names, as in instance ids, unless *with_host* or where a folder
    without a remote has that name. Names of other hosts have it, and all owners. One of a single
    label ends in the dot of the root where no owner follows: it is not taken for an owner.
    Another port of http is another server: it is part of the host, which ssh has one of.
    A name that mixes alphabets has its letters in ASCII, as in host names.
    The three forms of a URL that Azure DevOps has for one repository give one name. A host of ssh
    may be an alias, of this user's settings or such as github.com-work.
    """
    match = _REMOTE.fullmatch(url.strip().rstrip("/").removesuffix(".git"))
    if not match:
        return ""
    host = match["url"] or match["ssh"] or match["bare"]
    if match["ssh"] or "ssh" in url.partition("://")[0]:
        host = _host_named(host, str(Path.home())) or host
    host = _ALIAS.sub("", host).removeprefix(_OTHER_PORT)
    if match["port"] not in (None, *_PORTS) and "ssh" not in url.partition("://")[0]:
        host = f"{host}_{match['port']}"  # no name of a host has this character
    host, *owners, name = host, *unquote(match["path"]).split("/")
    if not f"{host}{owners}{name}".isascii():
        host, *owners, name = map(_unmixed, (host, *owners, name))
    if not owners:
        return f"{host.casefold()}{'' if '.' in host else '.'}/{name}"
    if owners[0] == "scm" and len(owners) > 1:  # Bitbucket Server, over http alone
        owners = owners[1:]
    is_azure = _AZURE_HOSTS.fullmatch(host.casefold())
    if is_azure and ("_git" in owners or owners[0] == "v3"):
        before = [owner for owner in owners if owner not in ("_git", "v3")]
        in_host = not host.casefold().endswith((_AZURE, "vs-ssh.visualstudio.com"))
        organisation = host.partition(".")[0] if in_host else next(iter(before), "")
        is_named_as_project = not before or (before[-1:] == before[:1] and not in_host)
        host, owners = _AZURE, [organisation, name if is_named_as_project else before[-1]]
    elif host.casefold() in _GITHUB:
        is_short = not with_host and owners[-1].casefold() != _LOCAL
        return "/".join((_GITHUB[0], owners[-1], name)[is_short:])
    return "/".join((host.casefold(), *owners, name))


def _unmixed(label: str) -> str:
    """Return *label* in letters of ASCII where it mixes alphabets, to look like another."""
    return f"xn--{label.encode('punycode').decode()}" if mixes_alphabets(label) else label


@lru_cache(maxsize=256)
def _host_named(alias: str, home: str) -> str:
    """The host that *alias* stands for in the settings of ssh below *home*; empty if for none.

    The first that names one counts, as for ssh. What they make dependent on programs is left out:
    none is run.
    """
    is_meant, hosts = True, list[str]()
    for key, value in _ssh_settings(os.path.join(home, _SSH_SETTINGS), _MOST_INCLUDED):
        if key in ("host", "match"):
            patterns = value.split() if key == "host" else []
            refused = any(fnmatch(alias, name[1:]) for name in patterns if name[0] == "!")
            is_meant = not refused and any(fnmatch(alias, name) for name in patterns)
        elif key == "hostname" and is_meant:
            hosts.append(value.replace("%h", alias))
    return hosts[0] if hosts else ""


def _ssh_settings(path: str, depth: int) -> Iterator[tuple[str, str]]:
    """The keys, in lower case, and values of a file of settings, and of those that it includes."""
    for line in _text_of(path).splitlines():
        setting = _SSH_SETTING.match(line)
        if not setting:
            continue
        key, value = setting["key"].lower(), setting["value"].strip('"')
        if key != "include":
            yield key, value
        elif depth:
            for name in value.split():
                folder = os.path.dirname(path)
                for file in sorted(glob.glob(os.path.join(folder, os.path.expanduser(name)))):
                    yield from _ssh_settings(file, depth - 1)


def repo_in(task: str) -> str:
    """Return the repository that *task* names: ``repo: owner/name``, or a cloned folder."""
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
    """Return the instance in a line ``instance_id: …`` of *task*; empty without one."""
    named = _NAMED_INSTANCE.search(task[:_HEAD])
    return (instance_id_in(named[1]) or named[1]) if named else ""


def local_name(folder: str | None) -> str:
    """``local/name`` of *folder*, of the main working tree where it is one of several."""
    if not folder:
        return ""
    folder = checkout(folder)
    root = _main_folder(folder) if PurePath(folder).is_absolute() else ""
    name = PurePath(root or folder.replace("\\", "/")).name
    return f"{_LOCAL}/{name}" if name and name not in (".", "..") else ""


def checkout(folder: str) -> str:
    """Return the folder of the repository that the working tree *folder* was made of by a client.

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


class GitFolder(Struct, frozen=True):
    """A git repository on this machine, read as data: no program that it configures is run.

    *root* is the top of its working tree, *git* the folder of this tree, *common* the one that all
    working trees share.
    """

    root: str
    git: str
    common: str

    @classmethod
    def around(cls, folder: str) -> "GitFolder | None":
        """Return the repository whose working tree holds *folder*; None where there is none.

        A bare repository is none: a folder of a checkout may be one.
        """
        if not os.path.isdir(folder):
            return None
        root = os.path.abspath(folder)
        while not (found := cls._at(root)):
            above = os.path.dirname(root)
            if above == root:
                return None
            root = above
        return found

    @classmethod
    def _at(cls, root: str) -> "GitFolder | None":
        git = os.path.join(root, ".git")
        if os.path.isfile(git):  # of a linked working tree or a submodule
            named = _GIT_FILE.match(_text_of(git))
            git = os.path.normpath(os.path.join(root, named["path"])) if named else ""
        shared = _text_of(os.path.join(git, "commondir")).strip() if git else ""
        common = os.path.normpath(os.path.join(git, shared))
        is_there = git and os.path.isdir(os.path.join(common, "objects"))
        return cls(root, git, common) if is_there and _text_of(f"{git}/HEAD") else None

    @property
    def is_own(self) -> bool:
        """True where its folder says that it is of this tree, as git writes it.

        What another program checked out may hold a file, or a link, that leads to any repository.
        """
        place = os.path.join(self.root, ".git")
        if os.path.isdir(place):
            return not os.path.islink(place)
        if back := _text_of(f"{self.git}/gitdir").strip():  # of a linked working tree
            return os.path.realpath(os.path.join(self.git, back)) == os.path.realpath(place)
        tree = _WORKING_TREE.search(_text_of(f"{self.git}/config"))  # of a submodule
        path = tree["path"].strip('"') if tree else ""
        return os.path.realpath(os.path.join(self.git, path)) == os.path.realpath(self.root)

    @property
    def shared(self) -> str:
        """The folder that all working trees of the repository share; its top where none does."""
        return os.path.realpath(self.common) if self.is_own else self.root

    def remote(self) -> str:
        """Return the URL of the remote "origin", else of the first; empty without one."""
        urls, name = dict[str, str](), ""
        if not self.is_own:
            return ""
        for line in _text_of(f"{self.common}/config").splitlines():
            if line.lstrip().startswith("["):
                section = _REMOTE_SECTION.match(line)
                name = section["name"] if section else ""
            elif name and (match := _REMOTE_URL.match(line)):
                urls.setdefault(name, match["url"].strip('"'))
        return urls.get("origin") or next(iter(urls.values()), "")

    def head(self) -> str:
        """Return the id of the commit that is checked out; empty where it cannot be read."""
        content = _text_of(f"{self.git}/HEAD").strip()
        name = content.removeprefix("ref: ")
        if name == content:
            return name if _COMMIT.fullmatch(name) else ""
        if ".." in name or not name.startswith("refs/"):
            return ""
        loose = _text_of(f"{self.common}/{name}").strip()
        if _COMMIT.fullmatch(loose):
            return loose
        packed = (
            line.split(" ", 1) for line in _text_of(f"{self.common}/packed-refs").splitlines()
        )
        found = next((line[0] for line in packed if line[1:] == [name]), "")
        return found if _COMMIT.fullmatch(found) else ""

    def commit(
        self, files: Mapping[str, str], message: str, author: tuple[str, str], branch: str = ""
    ) -> str:
        """Commit *files*, path -> content, on *branch*; return its id.

        Empty where git fails, or would write outside the repository.

        On what is checked out where the branch is new, or none is given: then nothing leads to the
        commit. Working tree and index stay as they are. *author* is a name and an address.
        """
        named, parent = f"refs/heads/{branch or 'proposed'}", ""
        # A folder that came with its `.git` may have links in it.
        if any(
            leaves(os.path.join(self.common, place), self.common) for place in ("objects", named)
        ):
            return ""
        if branch:
            parent = self.output("rev-parse", "--verify", named, refs=True).strip()
        parent = parent or self.head()
        name, address = (_NOT_IN_NAMES.sub(" ", part).strip() for part in author)
        by = f"{name} <{address}> {int(time.time())} +0000"
        lines = [f"commit {named}", "mark :1", f"author {by}", f"committer {by}"]
        lines += [f"data {len(message.encode())}", message, *([f"from {parent}"] if parent else [])]
        for path, text in files.items():
            quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines += [f'M 100644 inline "{quoted}"', f"data {len(text.encode())}", text]
        stream = "\n".join((*lines, "get-mark :1", ""))
        command = ("fast-import", "--quiet")
        return self.output(*command, given=stream, refs=bool(branch)).strip()

    def commit_of(self, name: str) -> str:
        """Return the id of the commit that *name* (a branch, tag or id) stands for; or empty."""
        if name.startswith("HEAD"):
            name = f"{self.head()}{name.removeprefix('HEAD')}"
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return self.output(*asked, refs=True).strip() if name else ""

    def diff(self, base: str, *, staged: bool = False) -> str:
        """Return what is not as in the commit *base*: in the working tree, or what is *staged*.

        A unified diff without renames; submodules and files that git does not know are
        left out.
        """
        head = self.head()
        start = self.output("merge-base", base, head).strip() or base
        asked = ["diff-index", "-p", "--no-renames", "--no-ext-diff"]
        # Of a submodule git would run the programs that its own settings name.
        asked += ["--no-textconv", "--ignore-submodules=all", *(["--cached"] if staged else [])]
        return self.output(*asked, start, "--", tree=True)

    def tracked(self) -> tuple[str, ...]:
        """Return the paths of the files that are in the index; none where it cannot be read."""
        try:
            listed = self.output("ls-files", "-z", tree=True)
        except ReadError:
            return ()
        return tuple(filter(None, listed.split("\0")))

    def _index(self) -> str:
        """The index of the next commit: a hook of `git commit -a` is given one of its own."""
        given = os.path.join(self.root, os.environ.get("GIT_INDEX_FILE", ""))
        is_own = os.path.isfile(given) and not leaves(given, self.git)
        return given if is_own else "index"

    def _copy_index(self, place: str) -> bool:
        """Copy the index, if there is one, to the folder *place*; False where it cannot be read."""
        shared = [name for name in os.listdir(self.git) if name.startswith("sharedindex.")]
        for name, path in (("index", self._index()), *((one, one) for one in shared)):
            copy = Path(place, name)
            try:
                with opened(os.path.join(self.git, path)) as file:
                    copy.write_bytes(file.read())
                    # By the time of the index git knows which files it has to read again.
                    times = os.fstat(file.fileno())
            except FileNotFoundError:
                continue
            except OSError:  # a pipe, or not for this user: without it all files would be gone
                return False
            os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
        return True

    def output(self, *command: str, given: str = "", refs: bool = False, tree: bool = False) -> str:
        """Return what git prints of these objects; empty where it fails, or is past its budget.

        Of a *tree* that raises `ReadError`: nothing would look like no change.

        It runs in an empty repository of its own that has the objects of this one, its *refs*, and
        its index and working *tree*, where these are asked for, without the configuration,
        attributes, hooks and remotes of this repository, the user or the machine. *given* is its
        standard input.
        """
        import subprocess  # slow to load
        from tempfile import TemporaryDirectory
        from threading import Timer

        is_sha256 = len(self.head()) == _SHA256_CHARS
        files = {
            "HEAD": "ref: refs/heads/none\n",
            "config": _CONFIG + (_SHA256_CONFIG if is_sha256 else ""),
            "shallow": _text_of(f"{self.common}/shallow"),
            "given": given,
            "packed-refs": _text_of(f"{self.common}/packed-refs") if refs else "",
        }
        with TemporaryDirectory(prefix="contextgraph-git-") as own:
            if refs:
                place = os.path.join(self.common, "refs")
                if leaves(place, self.common) or os.path.lexists(f"{self.common}/reftable"):
                    return ""
                os.symlink(place, os.path.join(own, "refs"), target_is_directory=True)
            else:
                os.mkdir(os.path.join(own, "refs"))
            if tree and not self._copy_index(own):
                return ""
            for name, text in files.items():
                if text or name == "given":
                    Path(own, name).write_text(text, encoding="utf-8")
            environment = {
                **{name: os.environ[name] for name in _INHERITED if name in os.environ},
                **_NOTHING_ELSE,
                # An empty or relative folder would be in the working tree.
                "PATH": os.pathsep.join(filter(os.path.isabs, os.get_exec_path())),
                "HOME": own,
                "GIT_DIR": own,
                "GIT_OBJECT_DIRECTORY": os.path.join(self.common, "objects"),
                **({"GIT_WORK_TREE": self.root} if tree else {}),
            }
            try:
                with (
                    open(os.path.join(own, "given"), "rb") as source,
                    subprocess.Popen(
                        ["git", *command],
                        cwd=self.root if tree else own,
                        env=environment,
                        stdin=source,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                    ) as process,
                ):
                    assert process.stdout is not None
                    timer = Timer(_GIT_SECONDS, process.kill)
                    timer.start()
                    try:
                        printed = process.stdout.read(_GIT_BYTES + 1)
                    finally:
                        timer.cancel()
                        process.kill()
            except OSError:
                return ""
        is_whole = process.returncode == 0 and len(printed) <= _GIT_BYTES
        if tree and not is_whole:
            reason = f"git {command[0]} failed, took {_GIT_SECONDS:.0f} s or printed too much"
            raise ReadError(self.root, "", reason)
        return printed.decode("utf-8", "replace") if is_whole else ""


class Author(NamedTuple):
    """The *name* and the *address* of who commits; *is_set*: git was given the name."""

    name: str
    address: str
    is_set: bool


def identity() -> Author:
    """Return the user as the settings of git say; without a name there, the user's account.

    Raises `SettingsError` where that has no name, either.
    """
    import subprocess

    found = list[str]()
    for part in ("name", "email"):
        asked = ("git", "config", "--global", "--get", f"user.{part}")
        try:
            done = subprocess.run(asked, cwd=os.sep, capture_output=True, text=True, check=False)
        except OSError:
            break
        given = os.environ.get(f"GIT_AUTHOR_{part.upper()}", "")
        found.append(given or done.stdout.strip())
    name, address = (*found, "", "")[:2]
    return Author(name or _account(), address or _NO_ADDRESS, bool(name))


def _account() -> str:
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError) as error:  # a user id alone, as in a container
        remedy = "git config --global user.name NAME sets one"
        raise SettingsError(f"this account has no name; {remedy}") from error


def _text_of(path: str) -> str:
    """The text of a file of git; empty where there is none that can be read."""
    try:
        return content(path, _GIT_FILE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=1024)
def _remote_of(folder: str) -> str:
    """``owner/name`` of the remote of the repository around *folder*."""
    found = GitFolder.around(folder)
    return remote_name(found.remote()) if found else ""


@lru_cache(maxsize=1024)
def _main_folder(folder: str) -> str:
    """The folder that holds the ``.git`` which all working trees share; empty if there is none."""
    found = GitFolder.around(folder)
    if not found:
        return ""
    if not found.is_own:
        return found.root
    path = PurePath(found.common)
    return str(path.parent if path.name == ".git" else path.with_suffix(""))
