"""The secret scan of the repository."""

from pathlib import Path
from random import Random

from scripts.audit_repository import secrets, tracked_files
from tests.planted import KINDS


def test_no_tracked_file_holds_a_secret() -> None:
    assert [*secrets(tracked_files())] == []


def test_a_secret_is_named_by_its_place_and_kind(tmp_path: Path) -> None:
    text, secret = KINDS["github token"](Random(1))
    path = tmp_path / "settings.py"
    path.write_text(f"import os\n\n{text}\n")
    (found,) = secrets([path])
    assert found == f"{path}:3: github-token"
    assert secret not in found
