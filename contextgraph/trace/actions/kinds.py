"""The kinds of action, and which programs are of which kind."""

from enum import StrEnum


class ActionKind(StrEnum):
    """What an action is for."""

    EDIT = "edit"
    CREATE = "create"
    VIEW = "view"
    SEARCH = "search"
    LIST = "list"
    RUN = "run"
    TEST = "test"
    INSTALL = "install"
    DELETE = "delete"
    VCS = "vcs"
    SUBMIT = "submit"
    THINK = "think"
    OTHER = "other"


KIND_OF_PROGRAM = {
    program: kind
    for kind, programs in {
        ActionKind.EDIT: "edit patch apply_patch ed",
        ActionKind.CREATE: "create touch mkdir cp mv ln install tee",
        ActionKind.VIEW: (
            "open goto scroll_up scroll_down cat head tail less more nl view bat wc file stat od "
            "diff cmp hexdump strings jq column cut sort uniq sed awk"
        ),
        ActionKind.SEARCH: "search_dir search_file find_file grep egrep fgrep rg ag ack find which",
        ActionKind.LIST: "ls tree pwd dir du df",
        ActionKind.RUN: (
            "python node deno bash sh zsh ruby perl php java ts-node tsx Rscript julia cmake "
            "tsc gcc g++ cc clang javac mypy pylint flake8 ruff black isort eslint curl wget"
        ),
        ActionKind.TEST: (
            "pytest py.test tox nox nosetests nose2 unittest trial jest vitest mocha ctest phpunit "
            "rspec stestr zope-testrunner"
        ),
        ActionKind.INSTALL: "pip pip3 apt apt-get conda mamba brew easy_install apk yum dnf",
        ActionKind.DELETE: "rm rmdir unlink",
        ActionKind.VCS: "git hg svn",
        ActionKind.SUBMIT: "submit finish exit_forfeit",
        ActionKind.THINK: "think",
    }.items()
    for program in programs.split()
}

CHANGING = frozenset({ActionKind.EDIT, ActionKind.CREATE, ActionKind.DELETE})

# Of the commands of one line, the one that most deserves to be called what the line is for.
PRECEDENCE = (
    ActionKind.SUBMIT,
    ActionKind.TEST,
    ActionKind.RUN,
    ActionKind.EDIT,
    ActionKind.INSTALL,
    ActionKind.CREATE,
    ActionKind.DELETE,
    ActionKind.VCS,
    ActionKind.SEARCH,
    ActionKind.VIEW,
    ActionKind.LIST,
    ActionKind.THINK,
    ActionKind.OTHER,
)
