"""``python -m benchmarks.faults``: many processes on one Neo4j server, which is killed twice.

A batch and a service lose nothing by it. With ``--times 20`` the server is stopped and killed so
often under a service and a process that learn all the time.

Starts a server with ``scripts/neo4j``, loopback only, and stops it at the end. Prints one JSON
object a line; exits with 1 where anything was lost or stored twice.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import httpx
import orjson

from benchmarks.corpus import EXAMPLES, renamed, runs
from benchmarks.service import JSON, serving
from contextgraph import AgentMemory
from contextgraph.errors import ContextGraphError
from contextgraph.model import RawTrajectory
from contextgraph.readers import to_record, write_jsonl
from contextgraph.trace import states_of

SCRIPT = Path(__file__).parents[1] / "scripts" / "neo4j"
NAME = "faults"
# About as long as an outage takes here, and then the seconds in which the process can learn.
_SECONDS_OF_OUTAGE, _SECONDS_BETWEEN = 32, 6


@dataclass(frozen=True, slots=True)
class Started:
    """A server that this process started."""

    uri: str
    user: str
    password: str
    pid: int

    def environment(self) -> dict[str, str]:
        """The credentials of a process."""
        return {
            **os.environ,
            "CONTEXTGRAPH_NEO4J_USER": self.user,
            "CONTEXTGRAPH_NEO4J_PASSWORD": self.password,
        }

    def memory(self, tenant: str) -> AgentMemory:
        """The memory of *tenant*."""
        auth = (self.user, self.password)
        return AgentMemory.open(self.uri, auth=auth, tenant=tenant)


def start() -> Started:
    """Start the server, or start it again with the data that it had."""
    record = json.loads(_script("start", "--json", "--name", NAME))
    return Started(record["uri"], record["user"], record["password"], record["pid"])


def kill(server: Started) -> None:
    """Kill the server with SIGKILL; its data stays."""
    os.kill(server.pid, signal.SIGKILL)
    _script("stop", "--keep", "--name", NAME)


@contextmanager
def server() -> Iterator[Started]:
    """A server that is stopped at the end."""
    try:
        yield start()
    finally:
        _script("stop", "--name", NAME)


def run_workers(
    started: Started, raws: Sequence[RawTrajectory], processes: int, seconds: float
) -> dict[str, object]:
    """*processes* that learn, query and consolidate one memory for *seconds*."""
    with TemporaryDirectory(prefix="contextgraph-faults-") as folder:
        path = Path(folder) / "runs.jsonl"
        with path.open("wb") as file:
            write_jsonl(renamed(raws, 40 * processes), file)
        begun = [_worker(started, path, seconds, seed) for seed in range(processes)]
        reports = [json.loads(process.communicate()[0]) for process in begun]
    done = Counter[str]()
    for report in reports:
        done.update(report["done"])
    acknowledged = {run for report in reports for run in report["acknowledged"]}
    with started.memory("workers") as memory:
        held = list(memory.store.runs.ids())
        well = all(check.ok for check in memory.health())
    return {
        "what": f"{processes} processes for {seconds:.0f} s",
        "done": dict(sorted(done.items())),
        "acknowledged": len(acknowledged),
        "held": len(held),
        "lost": len(acknowledged - set(held)),
        "twice": len(held) - len(set(held)),
        "errors": [error for report in reports for error in report["errors"]][:5],
        "well": well,
    }


def run_worker(uri: str, path: Path, seconds: float, seed: int) -> dict[str, object]:
    """The work of one process: it learns runs that others learn too, queries, consolidates."""
    chance = Random(seed)
    raws = runs(path)
    chance.shuffle(raws)
    states = [state for raw in raws[:20] for state in states_of(raw)]
    done, acknowledged, errors = Counter[str](), [], []
    until = time.monotonic() + seconds
    with AgentMemory.open(uri, tenant="workers") as memory:
        for raw in cycle(raws):
            if time.monotonic() > until:
                break
            try:
                receipt = memory.learn(raw)
                done[receipt.status] += 1
                acknowledged.append(receipt.trajectory_id)
                for state in chance.choices(states, k=3):
                    memory.query(state)
                    done["queries"] += 1
            except ContextGraphError as error:
                errors.append(str(error))
    return {"done": done, "acknowledged": sorted(set(acknowledged)), "errors": errors}


def outage(started: Started, raws: Sequence[RawTrajectory], count: int) -> dict[str, object]:
    """A batch during which the server is killed, and the same command after a restart."""
    with TemporaryDirectory(prefix="contextgraph-faults-") as folder:
        path = Path(folder) / "runs.jsonl"
        many = list(islice(renamed(raws, count), count))
        with path.open("wb") as file:
            write_jsonl(many, file)
        environment = {**started.environment(), "XDG_DATA_HOME": folder}
        learning = _learning(started, path, environment)
        assert learning.stdout is not None
        acknowledged = [json.loads(learning.stdout.readline()) for _ in range(count // 3)]
        kill(started)
        rest, stderr = learning.communicate()
        acknowledged += [json.loads(line) for line in rest.splitlines()]
        again = start()
        with again.memory("outage") as memory:
            held_before = set(memory.store.runs.ids())
        created = {r["trajectory_id"] for r in acknowledged if r.get("status") == "created"}
        second = _learning(again, path, environment)
        second.communicate()
        with again.memory("outage") as memory, AgentMemory.open(":memory:") as undisturbed:
            for raw in many:
                undisturbed.writer.write(raw)
            same = list(memory.store.runs.ids()) == list(undisturbed.store.runs.ids())
            nodes = memory.store.admin.counts().nodes
            same_counts = all(nodes[k] == v for k, v in _of_runs(undisturbed).items())
    return {
        "what": f"the server was killed after {count // 3} of {count} runs, and started again",
        "acknowledged_before": len(created),
        "lost": len(created - held_before),
        "exit_code": learning.returncode,
        "stderr": stderr.strip().splitlines(),
        "exit_code_again": second.returncode,
        "same_as_undisturbed": same and same_counts,
    }


def service_outage(
    started: Started, raws: Sequence[RawTrajectory], seconds: float
) -> dict[str, object]:
    """A service whose server is killed, and started again after *seconds*.

    A run and a query are sent to it each second meanwhile.
    """
    with TemporaryDirectory(prefix="contextgraph-faults-") as folder:
        environment = {**started.environment(), "XDG_DATA_HOME": folder}
        with (
            serving(started.uri, environment) as (url, _),
            httpx.Client(base_url=url, timeout=60) as client,
        ):
            more = renamed(raws, sys.maxsize)
            for _ in range(16):
                _send(client, "/v1/learn?wait=30", to_record(next(more)))
            kill(started)
            until, jobs, answers = time.monotonic() + seconds, [], Counter[str]()
            slowest = {"/v1/learn": 0.0, "/v1/query": 0.0}
            while time.monotonic() < until:
                for path, body in (
                    ("/v1/learn", to_record(next(more))),
                    ("/v1/query", {"state": {"repo": "acme/shop", "current_error": "KeyError: 2"}}),
                ):
                    sent = time.monotonic()
                    answer = _send(client, path, body)
                    slowest[path] = max(slowest[path], time.monotonic() - sent)
                    answers[f"{path} {answer.status_code}"] += 1
                    jobs += [answer.json()["job"]] if answer.status_code == 202 else []
                time.sleep(1)
            waiting = len([*Path(folder).rglob("*.jsonl")])
            start()
            restarted = time.monotonic()
            learned = [_learned(client, job) for job in jobs]
            took = time.monotonic() - restarted
            trajectories = client.get("/v1/stats").json()["counts"]["nodes"]["Trajectory"]
            return {
                "what": f"a service whose server was away for {seconds:.0f} s",
                "answers": answers,
                "slowest": {path: round(value, 2) for path, value in slowest.items()},
                "waited_in_files": waiting,
                "seconds_until_learned": round(took, 1),
                "left_in_files": len([*Path(folder).rglob("*.jsonl")]),
                "lost": len(jobs) - sum(learned),
                "runs": trajectories,
            }


def outages(started: Started, raws: Sequence[RawTrajectory], times: int) -> dict[str, object]:
    """A service and a process that learn while the server is stopped and killed in turns."""
    with TemporaryDirectory(prefix="contextgraph-faults-") as folder:
        path, many = Path(folder) / "runs.jsonl", renamed(raws, sys.maxsize)
        with path.open("wb") as file:
            write_jsonl(islice(renamed(raws, 2_000), 2_000), file)
        environment = {**started.environment(), "XDG_DATA_HOME": folder}
        worker = _worker(started, path, _SECONDS_OF_OUTAGE * times, seed=1)
        with (
            serving(started.uri, environment) as (url, _),
            httpx.Client(base_url=url, timeout=60) as client,
        ):
            jobs, answers = [], Counter[str]()
            for number in range(times):
                for _ in range(3):
                    jobs += _submitted(client, next(many), answers)
                if number % 2:
                    kill(started)
                else:
                    _script("stop", "--keep", "--name", NAME)
                for _ in range(3):
                    jobs += _submitted(client, next(many), answers)
                started = start()
                time.sleep(_SECONDS_BETWEEN)
            learned = [_learned(client, job) for job in jobs]
        report = json.loads(worker.communicate()[0])
    with started.memory("workers") as memory:
        held = {*memory.store.runs.ids()}
        well = all(check.ok for check in memory.health())
    return {
        "what": f"the server was stopped or killed {times} times",
        "answers": answers,
        "service_lost": len(jobs) - sum(learned),
        "process": report["done"],
        "process_errors": report["errors"][:2],
        "process_acknowledged": len(report["acknowledged"]),
        "process_lost": len({*report["acknowledged"]} - held),
        "lost": len(jobs) - sum(learned) + len({*report["acknowledged"]} - held),
        "well": well,
    }


def _submitted(client: httpx.Client, raw: RawTrajectory, answers: Counter[str]) -> list[str]:
    """The job that acknowledges *raw*; none where it is refused."""
    answer = _send(client, "/v1/learn", to_record(raw))
    answers[str(answer.status_code)] += 1
    return [answer.json()["job"]] if answer.status_code in (200, 202) else []


def _worker(started: Started, path: Path, seconds: float, seed: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "benchmarks.faults", "--worker", started.uri]
    return subprocess.Popen(
        [*command, "--data", str(path), "--seconds", str(seconds), "--seed", str(seed)],
        env=started.environment(),
        stdout=subprocess.PIPE,
    )


def _send(client: httpx.Client, path: str, body: object) -> httpx.Response:
    return client.post(path, content=orjson.dumps(body), headers=JSON)


def _learned(client: httpx.Client, job: str) -> int:
    """How many runs of *job* are in the memory when it is done."""
    while (record := client.get(f"/v1/learn/{job}?wait=30").json())["state"] != "done":
        pass
    return sum(run["status"] in {"created", "unchanged"} for run in record["runs"])


def _of_runs(memory: AgentMemory) -> dict[str, int]:
    nodes = memory.store.admin.counts().nodes
    return {kind: nodes[kind] for kind in ("Trajectory", "Fragment", "ErrorPattern")}


def _learning(started: Started, path: Path, environment: dict[str, str]) -> "subprocess.Popen[str]":
    command = [str(Path(sys.executable).parent / "contextgraph"), "learn", str(path), "--json"]
    return subprocess.Popen(
        [*command, "--store", started.uri, "--tenant", "outage"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _script(*arguments: str) -> str:
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"scripts/neo4j {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    """Do it and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--data", type=Path, default=EXAMPLES, help="trajectories to learn")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--runs", type=int, default=120, help="of the batch that is disturbed")
    parser.add_argument("--times", type=int, default=0, help="only stop and kill it so often")
    parser.add_argument("--worker", metavar="URI", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        uri, seed = options.worker, options.seed
        print(json.dumps(run_worker(uri, options.data, options.seconds, seed)))
        return
    raws = runs(options.data)
    with server() as started:
        if options.times:
            report = outages(started, raws, options.times)
            print(json.dumps(report))
            sys.exit(bool(report["lost"]))
        reports = [outage(started, raws, options.runs)]
        print(json.dumps(reports[-1]), flush=True)
        reports.append(run_workers(start(), raws, options.processes, options.seconds))
        print(json.dumps(reports[-1]), flush=True)
        reports.append(service_outage(start(), raws, options.seconds))
        print(json.dumps(reports[-1]), flush=True)
    sys.exit(any(report["lost"] or report.get("twice") for report in reports))


if __name__ == "__main__":
    main()
