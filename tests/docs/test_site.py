"""The documentation site."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_is_built_without_a_warning_and_has_every_page(zensical: Path) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "site", zensical], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    site = ROOT / "build" / "site"
    assert (site / "index.html").is_file()
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert {name for name in pages if not (site / name / "index.html").is_file()} == set()
