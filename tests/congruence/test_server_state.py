"""A memory on a Neo4j server, used through two connections, answers as a file does."""

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.congruence.pairs import on_a_server
from tests.memories import Memories
from tests.profiles import examples

# Every step is a hundred round trips: few sequences, and none is shortened.
FEW = settings(
    max_examples=examples(0.04),
    stateful_step_count=8,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


@pytest.mark.usefixtures("neo4j_server")
def test_a_server_and_a_file_stay_equal(request: pytest.FixtureRequest) -> None:
    class OnAServer(Memories):
        def __init__(self) -> None:
            super().__init__(on_a_server(request, connections=2))

    run_state_machine_as_test(OnAServer, settings=FEW)
