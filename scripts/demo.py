"""One agent on planted bugs: it fails without a memory, and passes with one of earlier runs.

No model and no network: the agent of examples/closed_loop.py tries candidates in a fixed order, and
advice may only reorder them. Commands really run, in temporary folders. With the name of a file, a
picture of the first two runs is written to it: scripts/demo docs/pictures/demo.svg
"""

import re
import sys
import time
from itertools import islice
from pathlib import Path

from rich.console import Console

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import closed_loop  # noqa: E402  (its folder is not a package)

from contextgraph import AgentMemory, MemoryContext, Step  # noqa: E402
from contextgraph.readers import read  # noqa: E402
from contextgraph.text import one_line  # noqa: E402

# So many steps an agent has; without the memory the bugs take six and seven.
STEPS = 5
BUGS = ("reader of gauge files renamed", "event of two words")
WIDTH = 84


class Demo:
    """Shows runs of the agent on *console*."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.heard = ""

    def show(self, title: str, task: closed_loop.Task, memory: AgentMemory) -> None:
        """Run the agent on *task* with *memory*, and print its steps."""
        self.heard = ""
        self.say(f"\n{title}", "bold")
        steps = closed_loop.solve(task, memory, STEPS + 1, self.watch, self.hear)
        if steps <= STEPS:
            self.say(f"  solved in {steps} steps", "bold green")
        else:
            self.say(f"  not solved in {STEPS} steps", "bold red")

    def watch(self, step: Step) -> None:
        """Print a step: its command, and the last line that it printed."""
        if step.index >= STEPS:
            return
        self.say(f"  {step.index + 1}  $ {one_line(step.action.text, WIDTH)}")
        lines = (step.observation or "").strip().splitlines() or ["no error"]
        mark, style = ("✗", "red") if step.exit_code else ("✓", "green")
        self.say(f"     {mark} {one_line(lines[-1], WIDTH)}", style)

    def hear(self, context: MemoryContext) -> None:
        """Print what the memory advises, when that is new."""
        for remedy in islice(context.ranked, 1):
            if remedy.description != self.heard:
                self.heard = remedy.description
                self.say(f"     ContextGraph: {one_line(remedy.description, WIDTH)}", "cyan")

    def say(self, text: str, style: str = "") -> None:
        """Print a line."""
        self.console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def main(picture: str = "") -> None:
    """Show three runs: without a memory, with it, and with it on another bug."""
    demo = Demo(Console(record=bool(picture), width=100 if picture else None))
    known = {task.name: task for task in closed_loop.tasks()}
    bug, other = (known[name] for name in BUGS)
    with AgentMemory.open(":memory:") as empty, AgentMemory.open(":memory:") as memory:
        demo.show("1. An agent without a memory", bug, empty)
        began = time.monotonic()
        runs = read(*sorted((EXAMPLES / "trajectories").glob("*.traj.json")))
        learned = sum(1 for _ in memory.learn_many(runs))
        seconds = f"{time.monotonic() - began:.0f} s"
        demo.say(f"\n   ContextGraph learns {learned} recorded runs of earlier tasks ({seconds})")
        demo.show("2. The same agent and bug, with this memory", bug, memory)
        if picture:
            drawn = demo.console.export_svg(title="scripts/demo")
            # Without the fonts that a reader would load from elsewhere.
            Path(picture).write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))
            return
        demo.show(f"3. Another bug, with this memory: {other.name}", other, memory)
    demo.say("\nAll ten bugs: python examples/closed_loop.py. Your histories: contextgraph setup")


if __name__ == "__main__":
    main(*sys.argv[1:])
