"""Requests in a question, in English or Chinese: for a time, a reason, or whatever is new."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from contextgraph.text import iso_time, regex, stems

WHY = regex(
    r"^\W*(?:why\b|[^,.;:?]{0,30}\b(?:decid\w+|decisions?|agreed?|rules?)\b)", re.IGNORECASE
)
RECENT = regex(
    r"\b(?:recent(?:ly)?|lately|today|yesterday|last|newest|latest|new)\b", re.IGNORECASE
)
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
# A time that a question names, after a word that makes it one.
_TIME = regex(
    r"\b(?:(?P<day>today|yesterday)"
    r"|(?P<which>this|last|past|previous)\s+(?:(?P<count>\d+)\s+)?(?P<unit>day|week|month|year)s?"
    rf"|(?P<how>in|since|during|of|from|last)\s+(?P<month>{_MONTHS})(?:\s+(?P<year>20\d\d))?"
    r"|(?P<on>on|since|in)\s+(?P<date>20\d\d(?:-\d\d(?:-\d\d)?)?))\b",
    re.IGNORECASE,
)
_AGO = regex(r"(?P<count>\d{1,4})(?P<unit>[hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
# A contracted verb, of which a stem of its own would be left: "didn" of "didn't".
_CONTRACTED = regex(r"\b[^\W\d_]+n['’]t\b", re.IGNORECASE)
# How a question begins, up to what it is about.
_ASKS = regex(
    r"^(?P<asks>\W*(?:why|what|when|where|who|how|which)\b[^,.;:?]{0,20}?)\b(?:happen\w*|decid\w+"
    r"|decisions?|know\w*|agree[ds]?|sa(?:y|id)|discuss\w*|talk\w*|learn\w*|rules?)\b"
    r"(?:\s+(?:about|on|with|to|that|for|of)\b)?",
    re.IGNORECASE,
)


# Words by which a question in Chinese asks, and those of English in their place. A number is one of
# digits by then.
_DIGITS = {digit: str(number) for number, digit in enumerate("一二三四五六七八九十", start=1)}
_DIGITS |= {"两": "2", "十一": "11", "十二": "12"}
_NUMERAL = regex(r"(?:十[一二]|[一二两三四五六七八九十])(?=\s*个?\s*(?:天|日|周|星期|礼拜|月|年))")
_UNITS = {"天": "days", "日": "days", "周": "weeks", "星期": "weeks", "礼拜": "weeks"}
_UNITS |= {"月": "months", "年": "years"}
_CHINESE = regex(r"[\u4e00-\u9fff]")
_SPAN = regex(
    r"(?:过去|最近|近|前)(?:的)?\s*(\d+)\s*个?\s*(天|日|周|星期|礼拜|月|年)(?:内|里|来|以来)?"
)
_DATE = regex(
    r"(自|从)?\s*(20\d\d)\s*年(?:\s*(\d{1,2})\s*月(?:份)?(?:\s*(\d{1,2})\s*[日号])?)?(以来|起|之后)?"
)
_MONTH = regex(r"(自|从)?\s*(?<!\d)(1[0-2]|[1-9])\s*月份?(以来|起|之后)?")
_ENGLISH = (
    (regex(r"今天"), "today"),
    (regex(r"昨天"), "yesterday"),
    (regex(r"(?:上|过去)(?:一)?(?:个)?(?:周|星期|礼拜)"), "last week"),
    (regex(r"(?:本|这)(?:一)?(?:个)?(?:周|星期|礼拜)"), "this week"),
    (regex(r"上(?:一)?个?月"), "last month"),
    (regex(r"(?:本|这)(?:一)?个?月"), "this month"),
    (regex(r"去年"), "last year"),
    (regex(r"今年"), "this year"),
    (regex(r"最近|近来|近期|新近"), "recently"),
    (regex(r"什么时候|何时"), "when"),
    (regex(r"(?:都|又|曾)?(?:发生|出)了?(?:什么|哪些)(?:事情?|变化)?"), "what happened"),
    (regex(r"(?:都|又)?有(?:什么|哪些)(?:新|新的)?(?:变化|改动|进展|消息)"), "what changed"),
    (regex(r"(?:决定|约定|商定)了?(?:什么|哪些)"), "what decided"),
    (regex(r"(?:做|干|完成)了?(?:什么|哪些)(?:事情?)?"), "what done"),
    (regex(r"(?:改|修改|更改)了?(?:什么|哪些)"), "what changed"),
    (regex(r"(?:说|讨论|学到)了?(?:什么|哪些)"), "what said"),
    (regex(r"关于|有关"), "about"),
    (regex(r"我们|咱们|大家|[吗呢吧？。，]"), ""),
)
_REASON_ASKED = regex(r"为什么要?|为何|为啥|什么原因|怎么会")


def in_english(text: str) -> str:
    """Return *text* with the words by which it asks in English, where they are Chinese.

    What it is about stays: only the time, the reason, and what is asked for are replaced.
    """
    if not _CHINESE.search(text):
        return text
    text = _NUMERAL.sub(lambda found: _DIGITS[found[0]], text)
    text = _SPAN.sub(lambda found: f" last {found[1]} {_UNITS[found[2]]} ", text)
    text = _DATE.sub(_date_of, text)
    text = _MONTH.sub(_month_of, text)
    for pattern, english in _ENGLISH:
        text = pattern.sub(f" {english} ", text)
    why = "why " if _REASON_ASKED.search(text) else ""
    return why + _REASON_ASKED.sub(" ", text).strip()


def _date_of(found: re.Match[str]) -> str:
    parts = [found[2], *(f"{int(part):02}" for part in (found[3], found[4]) if part)]
    return f" {'since' if found[1] or found[5] else 'in'} {'-'.join(parts)} "


def _month_of(found: re.Match[str]) -> str:
    month = _MONTHS.split("|")[int(found[2]) - 1]
    return f" {'since' if found[1] or found[3] else 'in'} {month} "


class Period(NamedTuple):
    """A time *since* then and *until* then; None for no limit."""

    since: datetime | None = None
    until: datetime | None = None

    def has(self, time: datetime) -> bool:
        """Return whether *time* is in it."""
        is_late = self.since is None or self.since <= time
        return is_late and (self.until is None or time < self.until)

    def within(self, other: "Period") -> "Period":
        """Return the part of it that is in the *other* one, too."""
        since = [time for time in (self.since, other.since) if time]
        until = [time for time in (self.until, other.until) if time]
        return Period(max(since, default=None), min(until, default=None))

    def days(self) -> str:
        """Return its first day and its last: "2026-10-01 to 2026-10-31"."""
        if self.since is None:
            return ""
        first = f"{self.since:%Y-%m-%d}"
        if self.until is None:
            return f"since {first}"
        last = f"{self.until - timedelta.resolution:%Y-%m-%d}"
        return last if last == first else f"{first} to {last}"


ALWAYS = Period()


def period_in(text: str, now: datetime) -> tuple[str, Period]:
    """Return *text* without the first time that it names, and that time.

    The last week are the seven days before *now*, and so are other units that are counted or
    "past"; the last month and year are those of the calendar. A month without a year is the latest
    that began.
    """
    text = in_english(text)
    if not (match := _TIME.search(text)):
        return text, ALWAYS
    rest = f"{text[: match.start()]} {text[match.end() :]}"
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if match["day"]:
        is_over = match["day"].casefold() == "yesterday"
        since = midnight - timedelta(days=is_over)
        return rest, Period(since, midnight if is_over else None)
    if match["unit"]:
        which, unit = match["which"].casefold(), match["unit"].casefold()
        if unit in ("month", "year") and which != "past" and not match["count"]:
            return rest, _of_calendar(unit, midnight, is_this=which == "this")
        days = _DAYS[unit] * int(match["count"] or 1)
        return rest, Period(midnight - timedelta(days=days))
    if match["month"]:
        month = _MONTHS.split("|").index(match["month"].casefold()) + 1
        year = int(match["year"] or (now.year if month <= now.month else now.year - 1))
        parts, is_open = [year, month], match["how"].casefold() == "since"
    else:
        parts, is_open = [*map(int, match["date"].split("-"))], match["on"].casefold() == "since"
    try:
        year, month, day = (*parts, 1, 1)[:3]
        since = midnight.replace(year=year, month=month, day=day)
    except ValueError:  # such as the 31st of June
        return text, ALWAYS
    longest = timedelta(days=(0, 366, 31, 1)[len(parts)])
    until = since + longest
    if len(parts) == 2:
        until = until.replace(day=1) if until.month != since.month else until
    elif len(parts) == 1:
        until = since.replace(year=since.year + 1)
    return rest, Period(since, None if is_open else until)


def time_in(text: str, now: datetime) -> datetime:
    """Return the time that *text* is, in ISO 8601 (UTC without a zone), or names: last month, 7d.

    The latter is so long before *now*: hours, days or weeks. Raises `ValueError`.
    """
    if period := _AGO.fullmatch(text):
        return now - timedelta(hours=int(period["count"]) * _HOURS[period["unit"]])
    try:
        return iso_time(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        rest, named = period_in(text, now)
        if named.since and not rest.strip():
            return named.since
        raise ValueError(
            f"{text!r} is not a time such as yesterday, 2026-01-31 or 2026-01-31T12:00:00, "
            "nor a period such as 12h, 7d or 4w"
        ) from error


def _of_calendar(unit: str, midnight: datetime, *, is_this: bool) -> Period:
    """Return the month or year that *midnight* is in, or the one before."""
    by_month = unit == "month"
    begun = midnight.replace(day=1) if by_month else midnight.replace(day=1, month=1)
    if is_this:
        return Period(begun)
    last = begun - timedelta(days=1)
    return Period(last.replace(day=1) if by_month else last.replace(day=1, month=1), begun)


def without_asking(text: str) -> str:
    """Return *text* without how it asks: "when did we decide on the port" is about the port."""
    text = in_english(text)
    rest = _CONTRACTED.sub(" ", _ASKS.sub(r"\g<asks> ", text))
    return rest if stems(rest) else text


def asks_what_is_known(text: str) -> bool:
    """Return whether *text* is a question about what was said or decided."""
    return bool(_ASKS.match(in_english(text)))


@lru_cache(1)
def anything() -> frozenset[str]:
    """Return the stems of a question that asks for news about anything."""
    return frozenset(
        stems(
            "recent recently lately today yesterday last newest latest new news happened changed"
            " changes time times day days week weeks session sessions decided decisions notes done"
            " learned said discussed talked worked since about anything"
            " everything project repository"
        )
    )


def asks_for_anything(text: str, period: Period = ALWAYS) -> bool:
    """Return whether *text* asks for what is new, or was in a *period*, and not about what.

    "Who are we" asks about what it has no word for.
    """
    asked = stems(in_english(text))
    is_open = bool(asked) or period != ALWAYS or not text.strip()
    return is_open and anything().issuperset(asked)
