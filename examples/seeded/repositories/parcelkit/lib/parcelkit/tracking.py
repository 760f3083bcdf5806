"""Where a parcel is."""

from dataclasses import dataclass
from datetime import datetime

ORDER = ("created", "collected", "in transit", "delivered")


@dataclass(frozen=True)
class Event:
    time: datetime
    status: str


def parse_event(text):
    """Return the event of a line like "2031-05-04 10:30 collected"."""
    day, hour, status = text.split(maxsplit=2)
    return Event(datetime.fromisoformat(f"{day} {hour}"), status.strip())


def latest(events):
    """Return the newest event, or None."""
    return max(events, key=lambda event: event.time, default=None)


def status(events):
    """Return the status of the newest event ("created" without any)."""
    newest = latest(events)
    return newest.status if newest else "created"


def progress(events):
    """Return how far the parcel is, from 0.0 to 1.0."""
    return ORDER.index(status(events)) / (len(ORDER) - 1)
