"""How many examples Hypothesis draws: quick, local, ci and nightly (``--hypothesis-profile``)."""

import os

from hypothesis import settings

# No deadlines: the time of a single example means little on a shared machine.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=2000, print_blob=True)
# 10,000 damaged inputs for each format; of use for tests/property/test_readers_damage.py only.
settings.register_profile("mutation", deadline=None, max_examples=10_000, print_blob=True)


def load_default_profile() -> None:
    """Load the profile of this environment: in CI the same examples are drawn every time."""
    settings.load_profile("ci" if os.environ.get("CI") else "local")


def examples(share: float) -> int:
    """A number of examples for a costly test: a *share* of those of the profile."""
    profile = settings.get_profile(settings.get_current_profile_name())
    return max(1, round(profile.max_examples * share))
