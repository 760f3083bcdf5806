"""Arithmetic of trust."""

# An item is trusted fully until shown otherwise: as if it had helped this often already.
PRIOR_SUCCESSES = 2
QUARANTINE_BELOW = 0.3


def trust(helped: int, failed: int) -> float:
    """How far advice is trusted that was shown, and then *helped* or *failed*: 0 to 1.

    Laplace's rule of succession with a prior of successes only, so that silence costs nothing.
    """
    return (helped + PRIOR_SUCCESSES) / (helped + failed + PRIOR_SUCCESSES)


def quarantined(helped: int, failed: int) -> bool:
    """True where advice measurably harms and is not to be shown."""
    return trust(helped, failed) < QUARANTINE_BELOW
