"""Draw docs/pictures/pages_*.png: the pages of the service with the runs of examples/.

Run it with the environment of the project, `.venv/bin/python scripts/page_pictures.py`; it needs
Chromium.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fastapi.testclient import TestClient

from contextgraph import AgentMemory
from contextgraph.config import Settings
from contextgraph.console.routes import add_pages
from contextgraph.readers import read
from contextgraph.service.app import create_app
from contextgraph.service.monitoring import log_to_stderr
from contextgraph.service.service import Limits

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"


def main() -> int:
    """Draw the pictures; 1 without Chromium."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        sys.stderr.write("page_pictures: Chromium is not installed\n")
        return 1
    log_to_stderr("warning")
    with TemporaryDirectory(prefix="contextgraph-pictures-") as folder:
        fill(f"{folder}/memory.db")
        app = add_pages(create_app(Settings(store=f"{folder}/memory.db"), None, Limits()))
        with TestClient(app, base_url="http://localhost") as client:
            overview = client.get("/pages").text
            (run, *_) = re.findall(r'href="(/pages/runs/trj_[^"]+)"', overview)
            reader = client.get(run).text
            graph = client.get(run.replace("/runs/", "/graph/")).text
            advice = client.get("/pages/advice").text
            style = client.get("/pages/static/console.css").text
        pages = {
            "memory": (overview, "light", (1100, 900)),
            "run": (reader, "dark", (1100, 760)),
            "advice": (advice, "light", (1100, 620)),
            "graph": (graph, "dark", (1100, 620)),
            "phone": (overview, "dark", (500, 900)),
        }
        linked = '<link rel="stylesheet" href="/pages/static/console.css">'
        for name, (page, theme, size) in pages.items():
            styled = page.replace(linked, f"<style>{style}</style>")
            themed = styled.replace("<html", f'<html data-theme="{theme}"', 1)
            draw(browser, Path(folder), name, themed, size)
    return 0


def fill(store: str) -> None:
    """Replay the runs of examples/ as live ones, each with the advice of those before it."""
    files = sorted((ROOT / "examples" / "trajectories").glob("*.traj.json"))
    with AgentMemory.open(store) as memory:
        for raw in (raw for file in files for raw in read(file)):
            with memory.live(
                repo=raw.repo, instance_id=raw.instance_id, task=raw.task, agent=raw.agent
            ) as live:
                live.start()
                for step in raw.steps:
                    live.observe(step.action, step.observation or "", exit_code=step.exit_code)
                live.finish(outcome=raw.outcome)
        memory.notes.remember("Tests need no network", repo="quillworks/recipebox")
        memory.consolidate()


def draw(browser: str, folder: Path, name: str, page: str, size: tuple[int, int]) -> None:
    """Draw a *page* in a window of this *size*."""
    file = folder / f"{name}.html"
    file.write_text(page, encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    window = (f"--user-data-dir={folder}/user", "--window-size={},{}".format(*size))
    picture = f"--screenshot={PICTURES / f'pages_{name}.png'}"
    command = [browser, *options, *window, picture, file.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    sys.exit(main())
