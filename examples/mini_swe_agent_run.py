"""mini-swe-agent's Python interface with a memory, which advises the agent and learns its run.

python examples/mini_swe_agent_run.py memory.db owner/repo "the issue" mini.yaml model.model_name=…

Needs mini-swe-agent 2. The last arguments are what its own command line takes as --config. The
agent works in the current folder.
"""

import sys

from minisweagent.agents.default import DefaultAgent
from minisweagent.config import get_config_from_spec
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models import get_model
from minisweagent.utils.serialize import recursive_merge

from contextgraph import AgentMemory
from contextgraph.agents.mini_swe_agent import AdvisedModel


def run(store: str, repo: str, task: str, specs: list[str]) -> None:
    """Work on *task* with advice from the memory at *store*, then learn the run."""
    config = recursive_merge(*map(get_config_from_spec, specs))
    instance = f"{repo}#{task}"
    with AgentMemory.open(store) as memory:
        live = memory.live(repo=repo, instance_id=instance, task=task, agent="mini-swe-agent")
        model = AdvisedModel(get_model(config=config["model"]))
        model.begin(live, instance)
        agent = DefaultAgent(model, LocalEnvironment(), **config["agent"])
        print(agent.run(task))


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
