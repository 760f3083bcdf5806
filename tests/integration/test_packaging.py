"""Wheel, source distribution, licences, image and systemd unit."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import metadata
from pathlib import Path

import pytest

from tests.environments import python_of
from tests.line import refusing_port
from tests.served import serving
from tests.server import ENVIRONMENT, Neo4jServer

ROOT = Path(__file__).parents[2]
PROGRAM = """
import contextgraph
from pathlib import Path
from contextgraph.store.neo4j.schema import Schema
from contextgraph.store.tables import TABLES
package = Path(contextgraph.__file__).parent
print(package / "cypher" if (package / "cypher").is_dir() else package.parent / "cypher")
print(len(Schema(TABLES).indexes))
"""
# One process builds the distributions.
of_one_process = pytest.mark.xdist_group("packaging")


@of_one_process
def test_a_wheel_holds_the_cypher_and_the_prompts(distributions: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)

    lines = cypher_in(cwd=installed)

    assert lines[0] == str(installed / "contextgraph" / "cypher")
    assert lines[1:] == cypher_in(cwd=ROOT)[1:]
    in_the_clone = {path.relative_to(ROOT) for path in (ROOT / "cypher").rglob("*.*")}
    in_the_wheel = {
        path.relative_to(installed / "contextgraph") for path in Path(lines[0]).rglob("*.*")
    }
    assert in_the_wheel == in_the_clone
    prompts = Path("contextgraph", "inference", "prompts")
    names = {path.name for path in (ROOT / prompts).iterdir()}
    assert names == {path.name for path in (installed / prompts).iterdir()}
    assert names


def cypher_in(cwd: Path) -> list[str]:
    """The folder in which a process started in *cwd* finds Cypher, and how many files."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=cwd, capture_output=True, check=True)
    return done.stdout.decode().splitlines()


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    build = "from hatchling.build import *; build_wheel({0!r}); build_sdist({0!r})"
    subprocess.run(
        [sys.executable, "-c", build.format(str(folder))],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return folder


@of_one_process
def test_hooks_that_uvx_installed_say_so_once_its_cache_is_gone(
    uv: Path, distributions: Path, tmp_path: Path
) -> None:
    (wheel,) = distributions.glob("*.whl")
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    environment = {
        **ENVIRONMENT,
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }

    def run(*command: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=environment, input=given, capture_output=True, text=True, check=False
        )

    start: list[str | Path] = [uv.with_name("uvx"), "--python", sys.executable, "--from", wheel]
    done = run(*start, "contextgraph-memory", "setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert "uv tool install contextgraph-memory" in done.stderr
    hooks = json.loads((home / ".claude/settings.json").read_text())["hooks"]
    (hook,) = hooks["SessionStart"][0]["hooks"]
    event = json.dumps({"hook_event_name": "SessionStart", "cwd": str(tmp_path)})
    assert (
        "program of ContextGraph is gone"
        not in run("sh", "-c", hook["command"], given=event).stdout
    )
    assert run(uv, "cache", "clean").returncode == 0
    ended = run("sh", "-c", hook["command"], given=event)
    assert "contextgraph setup" in json.loads(ended.stdout)["systemMessage"]
    assert ended.returncode == 0


@of_one_process
def test_wheel_and_source_distribution_are_complete_and_small(distributions: Path) -> None:
    (wheel,), (source,) = distributions.glob("*.whl"), distributions.glob("*.tar.gz")

    with zipfile.ZipFile(wheel) as archive:
        packed = {one.filename: one for one in archive.infolist()}
        (place,) = (name for name in packed if name.endswith("/METADATA"))
        described = archive.read(place).decode()
    with tarfile.open(source) as archive_of_source:
        sources = {name.partition("/")[2] for name in archive_of_source.getnames()}
    # Relative links lead nowhere on an index.
    assert re.findall(r"\]\((?!https?:)", described) == []
    assert "**The long-term memory of coding agents" in described
    tool = packed["contextgraph/agents/swe_agent_tools/bin/query_memory"]
    assert tool.external_attr >> 16 & 0o111
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "contextgraph").rglob("*.py")}
    assert modules | {"contextgraph/py.typed"} <= packed.keys()
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.*")}
    assert modules | pages | {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff"} <= sources
    # As docs/install.md states them.
    assert wheel.stat().st_size < 1_500_000
    assert source.stat().st_size < 5_000_000


# The oldest and the newest Python; the wheel that a source distribution becomes is the same.
@of_one_process
@pytest.mark.parametrize(("kind", "version"), [("*.whl", "3.11"), ("*.tar.gz", "3.13")])
def test_uvx_runs_what_was_built_without_the_clone(
    kind: str, version: str, uv: Path, distributions: Path, tmp_path: Path
) -> None:
    """In an environment of its own, with what a package index has."""
    (built,) = distributions.glob(kind)
    log = ROOT / "examples" / "trajectories" / "quillworks__recipebox-22.traj.json"
    python = python_of(version)

    def uvx(*command: str | Path) -> str:
        done = subprocess.run(
            [uv, "tool", "run", "--quiet", "--python", python, "--from", built, *command],
            cwd=tmp_path,
            env=ENVIRONMENT | {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    assert uvx("contextgraph-memory", "--version").startswith("contextgraph ")
    learned = uvx("contextgraph-memory", "learn", log, "--store", "memory.db", "--json")
    assert json.loads(learned.splitlines()[-1])["summary"]["created"] == 1
    assert "quillworks/recipebox" in uvx("contextgraph", "runs", "--store", "memory.db", "--json")


@pytest.mark.parametrize("lock", ["runtime", "server"])
def test_no_dependency_is_under_the_gpl(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    # What is for another system or version is not installed here.
    names = re.findall(r"^([\w.-]+)==[^;\n]+$", text, re.MULTILINE)
    licences = {name: licence_of(name) for name in names}

    assert len(licences) > 20
    assert [name for name, licence in licences.items() if not licence] == []
    assert {
        name: text for name, text in licences.items() if re.search("GPL|General Public", text)
    } == {}


def licence_of(name: str) -> str:
    """Return the licence in the metadata of an installed package; not its whole text."""
    known = metadata(name)
    classifiers = [one for one in known.get_all("Classifier") or () if one.startswith("License ::")]
    short = [one for one in known.get_all("License") or () if len(one) < 100]
    return " ".join([*(known.get_all("License-Expression") or ()), *short, *classifiers])


def test_the_image_is_built_from_files_that_it_is_sent() -> None:
    """All that `.dockerignore` does not name again is left out of what a build can copy."""
    ignored, *sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [line.split()[1:-1] for line in re.findall(r"^COPY (?!--from).*", text, re.MULTILINE)]

    assert ignored == "*"
    assert {f"!{path}" for paths in copied for path in paths} == {
        line for line in sent if line.startswith("!")
    }


def test_the_health_check_of_the_image_recognises_a_running_service(tmp_path: Path) -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    command = json.loads(text.partition("HEALTHCHECK")[2].partition("CMD")[2].partition("\n")[0])
    assert command[0] == "python3"

    def healthy(port: str) -> bool:
        check = [sys.executable, *(part.replace("8642", port) for part in command[1:])]
        return not subprocess.run(check, check=False, stderr=subprocess.DEVNULL).returncode

    with serving(tmp_path / "memory.db") as process:
        assert healthy(str(process.client.base_url.port))
    with refusing_port() as closed:
        assert not healthy(str(closed))


def test_the_systemd_unit_is_valid(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed: contextgraph.service is not verified")
    text = (ROOT / "contextgraph.service").read_text(encoding="utf-8")
    assert "ExecStart=/usr/local/bin/contextgraph serve\n" in text
    unit = tmp_path / "contextgraph.service"
    unit.write_text(text.replace("/usr/local/bin/contextgraph", sys.executable))

    done = subprocess.run(
        ["systemd-analyze", "verify", unit], check=False, capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")


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
    with refusing_port() as closed:
        assert not healthy(closed)
