"""`scripts/lint-cypher`: what the gate on Cypher catches."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server import ENVIRONMENT

SCRIPT = Path(__file__).parents[2] / "scripts" / "lint-cypher"

NOT_INSTALLED = 77


def lint(*files: Path) -> subprocess.CompletedProcess[str]:
    """Run the linter; skip the test where it cannot be installed, but not in CI."""
    done = subprocess.run(
        [SCRIPT, *files], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if done.returncode == NOT_INSTALLED and not ENVIRONMENT.get("CI"):
        pytest.skip(done.stderr.strip())
    return done


def test_what_is_broken_or_deprecated_is_named_with_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.cypher"
    broken.write_text(
        "// About the file.\n\n"
        "// name: in_order\nMATCH (n:Run {id: $id}) RETURN n.name AS name\n\n"
        "// name: unfinished\nMATCH (n:Run RETURN n\n\n"
        "// name: deprecated\nMATCH (n:Run)\nRETURN id(n) AS id\n\n"
        "// name: undefined\nMATCH (n:Run) RETURN m\n\n"
        "// name: not_on_an_ordinary_server\nRETURN apoc.text.join(['a'], ',') AS a\n\n"
        "// name: only_on_current_servers\nCYPHER 25 MATCH (n:Run)\n"
        "SEARCH n IN (VECTOR INDEX runs FOR $vector LIMIT 3) SCORE AS score\nRETURN n, score\n"
    )
    result = lint(broken)
    assert result.returncode == 1
    lines = [line.removeprefix(f"{broken}:") for line in result.stdout.splitlines()]
    assert {line.partition(":")[0] for line in lines} == {"7", "11", "14", "17"}
    assert any(line.startswith("11: Function id is deprecated") for line in lines)


def test_what_is_in_order_is_passed_over_in_silence(tmp_path: Path) -> None:
    good = tmp_path / "good.cypher"
    good.write_text("// Runs\nMATCH (t:Trajectory) RETURN t.name AS run LIMIT 25;\n")
    for _ in range(2):  # the second time from the cache
        result = lint(good)
        assert (result.returncode, result.stdout) == (0, "")


def test_without_npm_the_reason_is_one_line_and_the_exit_code_says_not_installed(
    tmp_path: Path,
) -> None:
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    done = subprocess.run(
        [SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (NOT_INSTALLED, "Cypher lint: node is not installed\n")
