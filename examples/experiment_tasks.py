"""Make tasks for `contextgraph call experiment_run` whose answer stands only in earlier runs.

In three seeded repositories every printout carries the stamp of an office, which an environment
variable names. The code holds only a digest of it. Tasks to learn have a document that says which
office it is; of the tasks to judge by, most do not. So an agent can solve them only if something
says what was found out before. One judged task of each repository has the document: there,
advice can only save steps. Needs git and a Unix shell.

    python examples/experiment_tasks.py FOLDER       # writes FOLDER/tasks.jsonl and workspaces
"""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from closed_loop import OWNERS

from seeded.scenario import Scenario, Seed
from seeded.testbed import Testbed

STAMP = '''"""The stamp of the office that issues a printout."""

import hashlib
import os


def stamp():
    """Return the stamp; the office is named by an environment variable."""
    office = os.environ.get("{variable}", "")
    digest = hashlib.sha256(office.encode()).hexdigest()
    if not digest.startswith("{known}"):
        raise LookupError("{variable} does not name the office of this installation")
    return f"[{{digest[8:16]}}]"
'''
DOCUMENT = "# This installation\n\nPrintouts are issued by the office {variable}={office}.\n"


@dataclass(frozen=True, slots=True)
class Office:
    """The office of a repository: where its stamp is printed, and *commands* that print it."""

    repository: str
    office: str
    package: str
    printed: str
    commands: tuple[str, ...]

    @property
    def variable(self) -> str:
        """The environment variable that names the office."""
        return f"{self.repository.upper()}_OFFICE"

    @property
    def digest(self) -> str:
        """The name that the code knows, and the stamp."""
        return sha256(self.office.encode()).hexdigest()


OFFICES = (
    Office(
        "tidewatch",
        "quay-desk-31",
        "src/tidewatch",
        "summary(readings, code)",
        ("PYTHONPATH=src python3 -m tidewatch.cli data/kelby.csv KLB",) * 5,
    ),
    Office(
        "recipebox",
        "kitchen-east-8",
        "recipebox",
        'f"{recipe.title} (serves {recipe.servings})"',
        tuple(
            f"python3 -m recipebox.cli scale samples/pancakes.txt {servings}"
            for servings in (2, 3, 6, 8, 12)
        ),
    ),
    Office(
        "parcelkit",
        "counter-north-5",
        "lib/parcelkit",
        'f"{price(Parcel(float(first)), second):.2f} EUR"',
        tuple(
            f"PYTHONPATH=lib python3 -m parcelkit.cli price {weight} north"
            for weight in (1, 2, 3, 4, 5)
        ),
    ),
)
# Of the commands of each repository: how its task is used, and whether the document is there.
USES = (("learn", True), ("learn", True), ("judge", True), ("judge", False), ("judge", False))


def main(folder: Path) -> None:
    """Write the tasks and their workspaces to *folder*."""
    rows = [row for office in OFFICES for row in made(office, folder)]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "tasks.jsonl").write_text(lines, encoding="utf-8")
    print(f"{folder / 'tasks.jsonl'}: {len(rows)} tasks")


def made(office: Office, folder: Path) -> Iterator[dict[str, Any]]:
    """The tasks of one repository; their workspaces are written."""
    uses = zip(office.commands, USES, strict=True)
    for number, (command, (split, is_documented)) in enumerate(uses, start=70):
        repo = f"{OWNERS[office.repository]}/{office.repository}"
        instance = f"{repo.replace('/', '__')}-{number}"
        workspace = folder / "workspaces" / instance / office.repository
        plant(office, instance, workspace, is_documented=is_documented)
        yield {
            "instance_id": instance,
            "repo": repo,
            "task": f"Write what `{command}` prints to the file printout-{number}.txt.",
            "workspace": str(workspace.relative_to(folder)),
            "check": f"grep -qF '[{office.digest[8:16]}]' printout-{number}.txt",
            "split": split,
        }


def plant(office: Office, instance: str, workspace: Path, *, is_documented: bool) -> None:
    """Make *workspace* a git repository whose command line prints the stamp."""
    cli, name = f"{office.package}/cli.py", office.package.rpartition("/")[2]
    seeds = (
        Seed(cli, f"print({office.printed})", f"print({office.printed}, stamp())"),
        Seed(cli, "import sys\n", f"import sys\n\nfrom {name}.stamp import stamp\n"),
    )
    with TemporaryDirectory() as root:
        testbed = Testbed(Path(root))
        testbed.prepare()
        planted = testbed.plant(Scenario(instance, "", "", seeds, "", ()))
        stamp = STAMP.format(variable=office.variable, known=office.digest[:8])
        (planted / office.package / "stamp.py").write_text(stamp, encoding="utf-8")
        if is_documented:
            text = DOCUMENT.format(variable=office.variable, office=office.office)
            (planted / "INSTALLATION.md").write_text(text, encoding="utf-8")
        testbed.run("git add . && git commit -q --amend --no-edit", planted)
        workspace.parent.mkdir(parents=True)
        shutil.move(planted, workspace)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
