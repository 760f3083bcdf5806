"""No attack of a hostile clone, a web page or a single contributor succeeds."""

from pathlib import Path

import pytest

from benchmarks.attacks import ATTACKS, HONEST, STATE, Attack, honest_memory, shown_to_others


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.who} {attack.name}")
def test_no_attack_succeeds(tmp_path: Path, attack: Attack) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    assert not attack.succeeds(folder)


def test_honest_advice_is_shown_where_nobody_attacks() -> None:
    with honest_memory() as memory:
        assert HONEST in shown_to_others(memory, STATE)
