"""Pages in headless Chromium, and what axe-core finds wrong with them."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from contextgraph.console.page import TEMPLATES

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
    parent.next({wrong, rules: found.passes.length, keys: KEYS});
})"""
# The pages one after another, each in a frame of the size of a window.
_FRAMES = """<!DOCTYPE html><body><script>
const pages = PAGES, results = [], frame = document.createElement("iframe");
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


def in_a_browser(file: Path, target: str = "", *options: str) -> str:
    """The document that headless Chromium makes of the page *file*, at the link *target*."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        pytest.skip("pages in a browser: needs Chromium (`apt-get install chromium`)")
    headless = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={file.parent}/user",
    )
    command = [browser, *headless, *options, "--dump-dom", f"{file.as_uri()}{target}"]
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
    elements that are used with the keyboard, each with whether it shows its focus.
    """
    script = _AUDIT.replace("RULES", json.dumps(_RULES)).replace("KEYS", _KEYS)
    scripts = f"<script>{axe.read_text(encoding='utf-8')}</script><script>{script}</script></body>"
    tested = json.dumps([page.replace("</body>", scripts) for page in pages])
    file = folder / "audited.html"
    file.write_text(_FRAMES.replace("PAGES", tested.replace("</", "<\\/")), encoding="utf-8")
    document = in_a_browser(file, "", "--virtual-time-budget=600000")
    found = document.partition('<pre id="result">')[2].partition("</pre>")[0]
    results: list[dict[str, Any]] = json.loads(unescape(found))
    return results
