"""The one place that decides whether an observation shows a failure, and which."""

import re

from contextgraph.model import Action, ErrorSignature, Family
from contextgraph.trace.actions import ActionReading

_LAST_LINE = re.compile(r"^([A-Z]\w*(?:Error|Exception)): (.*)$", re.MULTILINE)


def recognise(
    action: Action,
    observation: str | None,
    *,
    exit_code: int | None = None,
    is_error: bool | None = None,
    reading: ActionReading | None = None,
) -> ErrorSignature | None:
    """The failure that *observation* shows, None where the action went well."""
    if observation is None or exit_code == 0 or is_error is False:
        return None
    return signature_of(observation) if "Traceback" in observation else None


def signature_of(text: str) -> ErrorSignature | None:
    """The failure that a bare error *text* tells of."""
    found = _LAST_LINE.findall(text)
    if not found:
        return None
    error_type, message = found[-1]
    return ErrorSignature(Family.PYTHON_EXCEPTION, error_type, message, message)
