"""Data sets of Hugging Face as they are given to `learn`, in an environment with that library."""

import subprocess
from pathlib import Path

from tests.server import ENVIRONMENT

LEARN = """
from contextgraph import AgentMemory
from datasets import Dataset, DatasetDict

turns = [{"role": "user", "text": "ISSUE:\\nx"}, {"role": "ai", "text": "```\\nls\\n```"}]
rows = [
    {"instance_id": f"teapot__kettle-{number}", "target": True, "trajectory": turns}
    for number in range(6)
]
splits = DatasetDict(train=Dataset.from_list(rows[2:5]), test=Dataset.from_list(rows[5:]))
splits.save_to_disk("saved")
with AgentMemory.open(":memory:") as memory:
    for given in (Dataset.from_list(rows[:2]), splits, "saved", {**rows[0]}):
        print(*(receipt.status for receipt in memory.learn(given)))
"""


def test_data_sets_splits_and_saved_ones_are_learned(mini_swe_agent: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [mini_swe_agent, "-c", LEARN],
        env={**ENVIRONMENT, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    created, unchanged = "created", "unchanged"
    assert [line.split() for line in done.stdout.splitlines()] == [
        [created] * 2,
        [created] * 4,
        [unchanged] * 4,
        [unchanged],
    ]
