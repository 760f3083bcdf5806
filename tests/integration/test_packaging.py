"""What is installed from a wheel has all that runs from a clone."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TELL = """
from contextgraph.store.neo4j_store.migrations import migrations
from contextgraph.store.neo4j_store.queries import cypher_folder, queries
print(cypher_folder())
print(len(queries()), len(migrations()))
"""


def test_a_wheel_holds_the_cypher_and_the_prompts(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    installed = tmp_path / "installed"
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "wheel", *offline, "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([*pip, "install", *offline, "--target", installed, wheel], check=True)

    said = told(cwd=installed)

    assert said[0] == str(installed / "contextgraph" / "cypher")
    assert said[1:] == told(cwd=ROOT)[1:]
    in_the_clone = {path.relative_to(ROOT) for path in (ROOT / "cypher").rglob("*.*")}
    in_the_wheel = {
        path.relative_to(installed / "contextgraph") for path in Path(said[0]).rglob("*.*")
    }
    assert in_the_wheel == in_the_clone
    prompts = Path("contextgraph", "llm", "prompts")
    names = {path.name for path in (ROOT / prompts).iterdir()}
    assert names == {path.name for path in (installed / prompts).iterdir()}
    assert names


def told(cwd: Path) -> list[str]:
    """Where a process that begins in *cwd* finds Cypher, and how much of it."""
    done = subprocess.run([sys.executable, "-c", TELL], cwd=cwd, capture_output=True, check=True)
    return done.stdout.decode().splitlines()
