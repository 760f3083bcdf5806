"""How many examples Hypothesis draws: quick, local, ci and nightly (``--hypothesis-profile``)."""

import os
from typing import Any

from hypothesis import HealthCheck, settings

# No deadlines and no check of speed: the time of an example means little on a shared machine.
EVER: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", **EVER, max_examples=25)
settings.register_profile("local", **EVER, max_examples=30)
settings.register_profile("ci", **EVER, max_examples=30, derandomize=True, print_blob=True)
settings.register_profile("nightly", **EVER, max_examples=2000, print_blob=True)
# 10,000 damaged inputs for each format; of use for tests/property/test_readers_damage.py only.
settings.register_profile("mutation", **EVER, max_examples=10_000, print_blob=True)


def load_default_profile() -> None:
    """Load the profile of this environment: in CI the same ones are always drawn."""
    settings.load_profile("ci" if os.environ.get("CI") else "local")


def examples(share: float) -> int:
    """A number of examples for a costly test: a *share* of those of the profile."""
    profile = settings.get_profile(settings.get_current_profile_name())
    return max(1, round(profile.max_examples * share))
