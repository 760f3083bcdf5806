"""The kinds of action, and the kind of each program and tool."""

from enum import StrEnum


class ActionKind(StrEnum):
    """Kinds of action."""

    reads: bool
    searches: bool
    is_passive: bool
    writes: bool
    changes_files: bool
    runs: bool

    def __init__(self, name: str) -> None:
        self.reads = name in ("view", "search", "list")
        self.searches = name in ("search", "list")
        # Leaves everything as it is, and needs nothing to succeed.
        self.is_passive = self.reads or name == "think"
        self.writes = name in ("edit", "create")
        self.changes_files = self.writes or name == "delete"
        self.runs = name in ("run", "test")

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
            "rspec stestr zope-testrunner runtests.py runtests.sh run_tests.py run_tests.sh"
        ),
        ActionKind.INSTALL: "pip pip3 apt apt-get conda mamba brew easy_install apk yum dnf",
        ActionKind.DELETE: "rm rmdir unlink",
        ActionKind.VCS: "git hg svn",
        ActionKind.SUBMIT: "submit finish exit_forfeit",
        ActionKind.THINK: "think",
    }.items()
    for program in programs.split()
}

# The tools of agents, by name in lower case: shells, whose command is read as a shell line,
# editors with a subcommand, and all others by the kind of what they do.
SHELL_TOOLS = frozenset(
    {"", "bash", "execute_bash", "run", "shell", "terminal", "sh", "exec", "local_shell"}
    | {"execute_command", "run_command", "run_terminal_cmd", "exec_command", "run_bash"}
    | {"sweagent", "swe-agent", "command", "container.exec", "shell_command", "run_commands"}
    | {"run_shell_command", "run_terminal_command", "run_in_terminal", "developer__shell"}
)
EDITOR_TOOLS = frozenset(
    {"str_replace_editor", "str_replace_based_edit_tool", "file_editor", "edit_anthropic"}
    | {"developer__text_editor", "text_editor"}
)
KIND_OF_EDITOR_COMMAND = {
    "view": ActionKind.VIEW,
    "create": ActionKind.CREATE,
    "write": ActionKind.CREATE,
    "str_replace": ActionKind.EDIT,
    "insert": ActionKind.EDIT,
    "undo_edit": ActionKind.EDIT,
}
KIND_OF_TOOL = {
    tool: kind
    for kind, tools in {
        ActionKind.EDIT: (
            "edit multiedit multi_edit notebookedit edit_notebook apply_patch edit_file replace "
            "patch write_patch repair apply_diff replace_in_file search_and_replace insert_content "
            "strreplace search_replace stringreplace requestcodechange applychange editcode editor"
        ),
        ActionKind.CREATE: (
            "write write_file create create_file write_to_file createfile insertlines appendstring"
        ),
        ActionKind.VIEW: (
            "read read_file read_files read_many_files view open view_image notebookread "
            "bashoutput viewcode view_code requestmorecontext requestcode"
        ),
        ActionKind.SEARCH: (
            "grep glob search search_files search_file_content grep_search file_search "
            "codebase_search list_code_definition_names semanticsearch findclass findfunction "
            "findcodesnippet searchcode identifycode search_class search_class_in_file "
            "search_method search_method_in_file search_method_in_class search_code "
            "search_code_in_file websearch web_search google_web_search locate_files "
            "locate_code locate_edits"
        ),
        ActionKind.LIST: "ls list_dir list_directory list_files list",
        ActionKind.RUN: "run_ipython execute_ipython_cell ipython python",
        ActionKind.TEST: "runtests run_tests",
        ActionKind.DELETE: "delete delete_file",
        ActionKind.THINK: (
            "think todowrite todo_write task_tracker update_plan write_todos update_todo_list "
            "exitplanmode plantocode"
        ),
        ActionKind.SUBMIT: "finish submit attempt_completion finished",
    }.items()
    for tool in tools.split()
}

# Of the commands of one line, the first of these kinds is what the line is for.
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
