"""The full-screen search: words and filters above, what was found, and a preview below."""

import curses
from collections.abc import Callable, Sequence
from textwrap import wrap

from msgspec import Struct

from contextgraph.cli.output import fail
from contextgraph.model import Facets, Found
from contextgraph.text import neutral, one_line

_ALL = ""
_ESCAPE_MILLISECONDS = 50
_HELP = "Enter: search, then open · ↑ ↓: choose · Tab: repository · Shift+Tab: agent · Esc: leave"
_BACKSPACE = (curses.KEY_BACKSPACE, "\b", "\x7f")
_LEAVE, _ENTER = ("\x1b", "\x03", "\x04"), ("\n", "\r", curses.KEY_ENTER)

Groups = Sequence[Sequence[Found]]
Search = Callable[[str, str, str], Groups]
"""Returns the hits, those of one session together, for words, a repository and an agent."""


def chosen(search: Search, facets: Facets, repo: str = _ALL, agent: str = _ALL) -> Found | None:
    """Let a person search on the whole terminal; return what they chose, None for nothing.

    The filters are the repositories and agents in *facets*, at first *repo* and *agent*.
    """
    repos = dict.fromkeys((repo, _ALL, *facets.repos))
    agents = dict.fromkeys((agent, _ALL, *facets.agents))
    screen = _Screen(search, [*repos], [*agents])
    try:
        curses.set_escdelay(_ESCAPE_MILLISECONDS)
        return curses.wrapper(screen.run)
    except curses.error as error:
        fail(f"this terminal has no full screen ({error}); give words: contextgraph search WORDS")
    except KeyboardInterrupt:
        return None


class _Screen(Struct):
    """What stands on the screen; *searched* are the words and filters that *groups* answer."""

    search: Search
    repos: Sequence[str]
    agents: Sequence[str]
    words: str = ""
    repo: int = 0
    agent: int = 0
    place: int = 0
    groups: Groups = ()
    searched: tuple[str, str, str] | None = None

    def run(self, window: curses.window) -> Found | None:
        """Take keys until something is chosen, or the person leaves."""
        while True:
            self._draw(window)
            key = window.get_wch()
            if key in _LEAVE:
                return None
            if key in _ENTER and self.searched == self._asked and self.groups:
                return self.groups[self.place][0]
            self._take(key)

    @property
    def _asked(self) -> tuple[str, str, str]:
        return self.words.strip(), self.repos[self.repo], self.agents[self.agent]

    def _take(self, key: str | int) -> None:
        if key in _ENTER:
            self._find()
        elif key in _BACKSPACE:
            self.words = self.words[:-1]
        elif key in (curses.KEY_UP, curses.KEY_DOWN):
            step = 1 if key == curses.KEY_DOWN else -1
            self.place = max(0, min(len(self.groups) - 1, self.place + step))
        elif key == "\t":
            self.repo = (self.repo + 1) % len(self.repos)
            self._find()
        elif key == curses.KEY_BTAB:
            self.agent = (self.agent + 1) % len(self.agents)
            self._find()
        elif isinstance(key, str) and key.isprintable():
            self.words += key

    def _find(self) -> None:
        if self.words.strip():
            self.groups, self.place, self.searched = self.search(*self._asked), 0, self._asked

    def _draw(self, window: curses.window) -> None:
        window.erase()
        height, width = window.getmaxyx()
        _, repo, agent = self._asked
        listed = max(1, (height - 4) // 2)
        top = max(0, self.place - listed + 1)
        rows: list[tuple[str, int]] = [
            (_HELP, curses.A_DIM),
            (f"repository: {repo or 'all'} · agent: {agent or 'all'}", curses.A_DIM),
        ]
        for number, hits in enumerate(self.groups[top : top + listed], start=top):
            mark = curses.A_REVERSE if number == self.place else curses.A_NORMAL
            rows.append((_title(hits[0]), mark))
        if self.searched == self._asked and not self.groups:
            rows.append(("nothing is known about it", curses.A_NORMAL))
        if self.groups:
            rows.append(("─" * (width - 1), curses.A_DIM))
            for hit in self.groups[self.place]:
                lines = wrap(neutral(hit.text), max(1, width - 1))
                rows += [(line, curses.A_NORMAL) for line in lines]
        for y, (text, mark) in enumerate(rows[: height - 1], start=1):
            window.addnstr(y, 0, one_line(text, width - 1), width - 1, mark)
        window.addnstr(0, 0, f"Search: {self.words}"[-(width - 1) :], width - 1, curses.A_BOLD)
        window.refresh()


def _title(hit: Found) -> str:
    title = hit.title or hit.text
    return neutral(f"{hit.time:%Y-%m-%d} {hit.kind} {hit.repo} · {title}")
