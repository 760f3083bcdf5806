"""How far shown advice is trusted, and how sure a lift over the base rate is."""

from math import sqrt

# An item is trusted fully until shown otherwise: as if it had helped this often already.
PRIOR_SUCCESSES = 2
QUARANTINE_BELOW = 0.3

# One-sided 95 %.
Z = 1.645


def trust(helped: float, failed: float) -> float:
    """How far advice is trusted that was shown, and then *helped* or *failed*: 0 to 1.

    Laplace's rule of succession with a prior of successes only, so that silence costs nothing.
    """
    return (helped + PRIOR_SUCCESSES) / (helped + failed + PRIOR_SUCCESSES)


def quarantined(helped: float, failed: float) -> bool:
    """True where advice measurably harms and is not to be shown."""
    return trust(helped, failed) < QUARANTINE_BELOW


def wilson(successes: float, trials: float, z: float = Z) -> tuple[float, float]:
    """The interval in which the true share lies, 0 to 1, by the score method (Wilson 1927).

    With p = successes / trials: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n); nothing is
    known without trials. The default *z* leaves 5 % below the lower bound.
    """
    if trials <= 0:
        return 0.0, 1.0
    share = successes / trials
    middle = share + z * z / (2 * trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def lift_lower_bound(
    successes: float,
    trials: float,
    base_successes: float,
    base_trials: float,
    z: float = Z,
) -> float:
    """The lower bound of how much more often it goes well with than without, -1 to 1.

    Newcombe's hybrid score interval for a difference of shares (1998, method 10):
    d - √((p₁ - l₁)² + (u₂ - p₂)²), with Wilson's l₁ and u₂. Where nothing is known without, that
    may go as well as any: l₁ - 1.
    """
    low, _ = wilson(successes, trials, z)
    _, high = wilson(base_successes, base_trials, z)
    if trials <= 0 or base_trials <= 0:
        return low - high
    share, base = successes / trials, base_successes / base_trials
    return share - base - sqrt((share - low) ** 2 + (high - base) ** 2)


def confidence(successes: float, trials: float, base_successes: float, base_trials: float) -> float:
    """How sure it is that advice lifts the base rate, and by how much at least: 0 to 1."""
    return max(0.0, lift_lower_bound(successes, trials, base_successes, base_trials))
