"""Placeholders: general terms for names and paths of one project."""

import posixpath
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import chain, product

from contextgraph.text import quoted_names

UNDEFINED_NAME = "<the undefined name>"
ATTRIBUTE = "<the attribute>"
MISSING_MODULE = "<the missing module>"
PARENT_FOLDER = "<parent folder>"
REPOSITORY_ROOT = "<repository root>"
CURRENT_FOLDER = "<current folder>"
ANOTHER_PATH = "<another path>"
ELSEWHERE = "<same name elsewhere>"
ABSOLUTE = "<path from the root>"
RELATIVE = "<path without the leading slash>"
WITHOUT_REPOSITORY = "<path without the name of the repository>"
WITHOUT_DOUBLED = "<path without the doubled folder>"
WITHOUT_FOLDER = "<path without its leading folder>"
WITH_FOLDER = "<path with its folder>"
FILE = "<file>"
NO_FILE_NAME = "<no file name>"
ITS_ARGUMENT = "<its argument>"
IN_ENVIRONMENT = "environment variable"

_PATH = "<the path>"
_SYSTEM = frozenset({"home", "tmp", "usr", "root", "opt", "var", "etc", "mnt"})
_ROLES = {
    "F821": (UNDEFINED_NAME,),
    "F822": (UNDEFINED_NAME,),
    "NameError": (UNDEFINED_NAME,),
    "UnboundLocalError": ("<the variable>",),
    "ImportError": ("<the name>", "<the package>"),
    "AttributeError": ("<the class>", ATTRIBUTE),
    "KeyError": ("<the key>",),
    "TypeError": ("<the argument>",),
    "FileNotFoundError": (_PATH,),
}
_MISSING_MODULE = "No module named"
_PATH_ERRORS = re.compile(r"not found$|No such file|can't open")
GENERIC_ROLES = ("<the name>", "<the other name>", "<the third name>")

SCRIPT_THAT_WAS_RUN = "<the script that was run>"
FILE_AT_FAULT = "<the file at fault>"
A_TEST = "<a test>"
ANOTHER_FILE = "<another file>"


class Construct(StrEnum):
    """What of the code an edit is about; CODE: no name of the error."""

    IMPORT = "import"
    DEFINITION = "definition"
    ASSIGNMENT = "assignment"
    USE = "use"
    CODE = "code"

    @property
    def binds(self) -> bool:
        """True for what gives a name its value."""
        return self in (Construct.IMPORT, Construct.DEFINITION, Construct.ASSIGNMENT)


class ImportPath(StrEnum):
    """The path by which a name is now imported; ANY: the path did not change."""

    ANY = ""
    RELATIVE = "by a relative path"
    ABSOLUTE = "by an absolute path"
    SUBMODULE = "from <a module of the package>"
    PARENT = "from the package above"
    OTHER = "from another module"


@dataclass(frozen=True, slots=True)
class Edited:
    """A *construct* of the *name*, or in the file, that has this placeholder.

    *target* stands for it in a `RemedyPattern`; `edited` is the inverse.
    """

    construct: Construct
    name: str
    path: ImportPath = ImportPath.ANY

    @property
    def target(self) -> str:
        preposition = "in" if self.construct is Construct.CODE else "of"
        return f"{self.construct} {preposition} {self.name} {self.path}".rstrip()


_NAMES = {*chain.from_iterable(_ROLES.values()), MISSING_MODULE, *GENERIC_ROLES}
_OF_NAMES = (Construct.DEFINITION, Construct.ASSIGNMENT, Construct.USE)
_FILES = (SCRIPT_THAT_WAS_RUN, FILE_AT_FAULT, A_TEST, ANOTHER_FILE)
_EDITED = {
    edit.target: edit
    for edit in (
        *(Edited(construct, name) for construct, name in product(_OF_NAMES, _NAMES)),
        *(Edited(Construct.IMPORT, name, path) for name, path in product(_NAMES, ImportPath)),
        *(Edited(Construct.CODE, file) for file in _FILES),
    )
}


def edited(target: str) -> Edited | None:
    """What a pattern with this *target* edits; None where it names no construct."""
    return _EDITED.get(target)


def is_import(target: str) -> bool:
    """True for the *target* of a pattern that edits an import."""
    edit = edited(target)
    return edit is not None and edit.construct is Construct.IMPORT


@dataclass(frozen=True, slots=True)
class Names:
    """The names that an error message quotes, and the placeholder of each."""

    names: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def mask(self, text: str) -> str:
        """*text* with the names replaced by their placeholders, longest names first."""
        for name, role in sorted(self._pairs(), key=lambda pair: -len(pair[0])):
            text = re.sub(rf"(?<![\w<]){re.escape(name)}(?![\w>])", role, text)
        return text

    def fill(self, text: str) -> str:
        """*text* with the placeholders replaced by the names."""
        for name, role in self._pairs():
            text = text.replace(role, name)
        return text

    def role_of(self, name: str) -> str:
        """The placeholder of *name*, empty where the message does not quote it."""
        return next((role for known, role in self._pairs() if known == name), "")

    def _pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.roles, strict=True))


@lru_cache(4_096)
def names_in(error_type: str, message: str) -> Names:
    """The names in a *message* of an error of this type."""
    names = quoted_names(message)[: len(GENERIC_ROLES)]
    kind = error_type.split(maxsplit=1)[0] if error_type else ""
    known = (MISSING_MODULE,) if message.startswith(_MISSING_MODULE) else _ROLES.get(kind, ())
    if not known and _PATH_ERRORS.search(error_type):
        known = (_PATH,)
    return Names(names, (*known, *GENERIC_ROLES[len(known) :])[: len(names)])


def is_never_installed(module: str, attempt: str) -> bool:
    """True for a submodule, whose package was found, and for what an option of *attempt* names."""
    return "." in module or bool(re.search(rf"\s--[\w-]+[= ]{re.escape(module)}\b", attempt))


def is_own_module(module: str, repo: str, open_file: str = "") -> bool:
    """True for a module of the repository: it is called so, or a folder of the open file is."""
    name = module.partition(".")[0].casefold()
    owner = repo.casefold().rpartition("/")[2]
    folders = open_file.casefold().split("/")[:-1]
    return name in folders or name.replace("_", "-") == owner.replace("_", "-")


def path_placeholder(wrong: str, right: str, repo_name: str) -> str:
    """How the path *right* differs from the path *wrong* that it replaced."""
    old, new = wrong.strip("/"), right.strip("/")
    if right in (".", "./", "~"):
        return CURRENT_FOLDER
    if right in ("/", "..") or (new and old.startswith(f"{new}/")):
        return PARENT_FOLDER
    if _without_doubled(old) == new:
        return WITHOUT_DOUBLED
    if old == new and wrong.startswith("/"):
        return RELATIVE
    # Of a name alone the folder was not known, which is more than a leading slash.
    if old == new or (right.startswith("/") and "/" in old and new.endswith(f"/{old}")):
        return ABSOLUTE
    if new and old.endswith(f"/{new}"):
        head = old.removesuffix(new).strip("/")
        return WITHOUT_REPOSITORY if repo_name and head == repo_name else WITHOUT_FOLDER
    if old and new.endswith(f"/{old}"):
        return WITH_FOLDER
    same_name = posixpath.basename(old) == posixpath.basename(new)
    return ELSEWHERE if same_name else ANOTHER_PATH


def folder_placeholder(was: str, now: str) -> str:
    """Where the folder *now* lies, in which a command ran that had failed in *was*."""
    if now.count("/") == 1 < len(now) and now[1:] not in _SYSTEM:
        return REPOSITORY_ROOT
    if was.startswith(f"{now.rstrip('/')}/") or now == "..":
        return PARENT_FOLDER
    return "<subfolder>" if now.startswith(f"{was}/") else "<another folder>"


def _without_doubled(path: str) -> str:
    """*path* without the first folder that is named twice in a row; empty where none is."""
    parts = path.split("/")
    for index in range(1, len(parts)):
        if parts[index] and parts[index] == parts[index - 1]:
            return "/".join(parts[:index] + parts[index + 1 :])
    return ""
