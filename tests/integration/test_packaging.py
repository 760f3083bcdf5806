"""A wheel has everything that a clone has."""

import subprocess
import sys
from pathlib import Path

from tests.line import free_port
from tests.server import Neo4jServer

ROOT = Path(__file__).parents[2]
PROGRAM = """
from contextgraph.store.neo4j.migrations import migrations
from contextgraph.store.neo4j.queries import cypher_folder, queries
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

    lines = cypher_in(cwd=installed)

    assert lines[0] == str(installed / "contextgraph" / "cypher")
    assert lines[1:] == cypher_in(cwd=ROOT)[1:]
    in_the_clone = {path.relative_to(ROOT) for path in (ROOT / "cypher").rglob("*.*")}
    in_the_wheel = {
        path.relative_to(installed / "contextgraph") for path in Path(lines[0]).rglob("*.*")
    }
    assert in_the_wheel == in_the_clone
    prompts = Path("contextgraph", "llm", "prompts")
    names = {path.name for path in (ROOT / prompts).iterdir()}
    assert names == {path.name for path in (installed / prompts).iterdir()}
    assert names


def cypher_in(cwd: Path) -> list[str]:
    """The folder in which a process started in *cwd* finds Cypher, and how many files."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=cwd, capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def test_the_health_check_of_compose_recognises_a_running_server(neo4j_server: Neo4jServer) -> None:
    """It is what the service of the command line waits for."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    folded = text.partition("test: >-\n")[2].partition("interval:")[0]
    check = " ".join(folded.split()).replace("$$", "$")

    def healthy(port: int) -> bool:
        command = check.replace("127.0.0.1/7687", f"127.0.0.1/{port}")
        assert command != check
        done = subprocess.run(["sh", "-c", command], check=False, stderr=subprocess.DEVNULL)
        return not done.returncode

    assert healthy(int(neo4j_server.uri.rpartition(":")[2]))
    assert not healthy(free_port())
