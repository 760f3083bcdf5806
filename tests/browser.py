"""Pages in headless Chromium, what axe-core finds wrong with them, and a person who clicks."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from contextgraph.console.page import TEMPLATES

# Of a phone, a tablet, a laptop and a desk, in pixels.
WIDTHS = [390, 768, 1280, 1920]
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
# Each element that is used with the keyboard, with whether it takes the focus and shows it.
_KEYS = """[...document.querySelectorAll("a[href], button, summary, input:not([type=hidden])")]
    .filter(one => one.checkVisibility()).map(one => {
        one.focus();
        const shown = getComputedStyle(one).outlineStyle !== "none";
        return [one.outerHTML, document.activeElement === one && shown];
    })"""
_AUDIT = """axe.run(document, {runOnly: RULES}).then(found => {
    const wrong = found.violations.map(one => [one.id, one.nodes.map(node => node.html)]);
    const keys = KEYS;
    const overflowing = WIDTHS.filter(width => {
        parent.frame.width = width;
        return document.documentElement.scrollWidth > width;
    });
    parent.frame.width = 800;
    parent.next({wrong, rules: found.passes.length, keys, overflowing});
})"""
# The pages one after another, each in a frame of the size of a window.
_FRAMES = """<!DOCTYPE html><body><script>
const pages = PAGES, results = [];
var frame = document.createElement("iframe");
frame.width = 800;
frame.height = 600;
document.body.append(frame);
function next(result) {
    if (result) results.push(result);
    if (results.length < pages.length) return void (frame.srcdoc = pages[results.length]);
    const shown = document.createElement("pre");
    shown.id = "result";
    shown.textContent = JSON.stringify(results);
    document.body.replaceChildren(shown);
}
next();
</script></body>"""


def _headless(folder: Path) -> list[str]:
    """The command of a browser without a window, with its data in *folder*."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        pytest.skip("pages in a browser: needs Chromium (`apt-get install chromium`)")
    data = f"--user-data-dir={folder}/user"
    return [browser, "--headless", "--no-sandbox", "--disable-gpu", data]


def in_a_browser(file: Path, target: str = "", *options: str) -> str:
    """The document that headless Chromium makes of the page *file*, at the link *target*."""
    command = [*_headless(file.parent), *options, "--dump-dom", f"{file.as_uri()}{target}"]
    return subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.decode()


def stand_alone(page: str, theme: str = "light") -> str:
    """Return a page of the service as one that needs no service, light or dark."""
    style = (TEMPLATES / "console.css").read_text(encoding="utf-8")
    script = '<script src="/pages/static/console.js" defer></script>'
    linked = '<link rel="stylesheet" href="/pages/static/console.css">'
    assert script in page
    assert linked in page
    page = page.replace(script, "").replace(linked, f"<style>{style}</style>")
    return page.replace("<html", f'<html data-theme="{theme}"', 1)


def audit(pages: Sequence[str], axe: Path, folder: Path) -> list[dict[str, Any]]:
    """Return the findings of *axe* for each of *pages*, which `stand_alone` made.

    They are "wrong" elements by rule, the number of "rules" that passed, and the "keys": the
    elements that are used with the keyboard, each with whether it shows its focus. "overflowing"
    are the widths at which a page is wider than its window.
    """
    script = _AUDIT.replace("RULES", json.dumps(_RULES)).replace("KEYS", _KEYS)
    script = script.replace("WIDTHS", json.dumps(WIDTHS))
    scripts = f"<script>{axe.read_text(encoding='utf-8')}</script><script>{script}</script></body>"
    tested = json.dumps([page.replace("</body>", scripts) for page in pages])
    file = folder / "audited.html"
    file.write_text(_FRAMES.replace("PAGES", tested.replace("</", "<\\/")), encoding="utf-8")
    document = in_a_browser(file, "", "--virtual-time-budget=600000")
    found = document.partition('<pre id="result">')[2].partition("</pre>")[0]
    results: list[dict[str, Any]] = json.loads(unescape(found))
    return results


# The middle of the first visible element with this text that can be pressed.
_PLACE = """(() => {
    const all = document.querySelectorAll("a[href], button, summary");
    const one = [...all].find(one => one.checkVisibility() && one.innerText.trim() === TEXT);
    if (!one) return null;
    one.scrollIntoView({block: "center", behavior: "instant"});
    const box = one.getClientRects()[0];
    return [box.x + box.width / 2, box.y + box.height / 2, one.tagName];
})()"""


class Person:
    """A person at a browser, driven by its debugging protocol; *clicks* are counted."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._session, self.clicks = 0, "", 0
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._ask("Page.enable")

    def open(self, url: str) -> None:
        """Load the page at *url*; begin to count."""
        self._ask("Page.navigate", url=url)
        self._wait_for("Page.loadEventFired")
        self.clicks = 0

    def click(self, text: str) -> None:
        """Press the link, button or summary with this *text*, and wait for the page it leads to."""
        found = self.evaluate(_PLACE.replace("TEXT", json.dumps(text)))
        assert found, f"nothing to press is called {text!r} in: {self.text}"
        x, y, tag = found
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        if tag != "SUMMARY":
            self._wait_for("Page.loadEventFired")
        self.clicks += 1

    def search(self, words: str) -> None:
        """Type *words* into the search field, and press Enter, which counts as a click."""
        self.evaluate("document.querySelector('#search').focus()")
        self._ask("Input.insertText", text=words)
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                      windowsVirtualKeyCode=13)  # fmt: skip
        self._wait_for("Page.loadEventFired")
        self.clicks += 1

    @property
    def text(self) -> str:
        """What is seen of the page."""
        return str(self.evaluate("document.querySelector('main').innerText"))

    def evaluate(self, script: str) -> Any:
        """Return the value of *script* in the page."""
        answer = self._ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _ask(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        number = self._number
        command = {"id": number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        self._commands.write(json.dumps(command).encode() + b"\0")
        self._commands.flush()
        self._events = list[str]()
        while True:
            message = self._read()
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._events.append(message.get("method", ""))

    def _wait_for(self, event: str) -> None:
        """Wait for *event*, unless it came with the answer to the last command."""
        while event not in self._events:
            self._events.append(self._read().get("method", ""))

    def _read(self) -> Any:
        message = bytearray()
        while (one := self._answers.read(1)) != b"\0":
            assert one, "the browser has ended"
            message += one
        return json.loads(message)


@contextmanager
def person(folder: Path) -> Iterator[Person]:
    """A person at a browser with its data in *folder*."""
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()
    # The browser expects the ends of its pipes at the numbers 3 and 4.
    first, second = os.dup(read_commands), os.dup(write_answers)
    moved = f"os.dup2({first}, 3), os.dup2({second}, 4)"
    start = f"import os, sys; {moved}; os.execvp(sys.argv[1], sys.argv[1:])"
    command = [*_headless(folder), "--remote-debugging-pipe", "about:blank"]
    with subprocess.Popen(
        [sys.executable, "-c", start, *command],
        pass_fds=(first, second),
        stderr=subprocess.DEVNULL,
    ) as browser:
        for end in (read_commands, write_answers, first, second):
            os.close(end)
        with os.fdopen(write_commands, "wb") as commands, os.fdopen(read_answers, "rb") as answers:
            try:
                yield Person(commands, answers)
            finally:
                browser.kill()
