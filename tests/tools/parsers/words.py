"""What the containers of a plan really start: their commands, run with stand-ins that print their
arguments, after what the kubelet puts into them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpuplan.engines.disaggregated import ROLES, replicas
from gpuplan.engines.launch import Launch, written
from gpuplan.engines.start import start
from gpuplan.kubernetes.lower import lower
from gpuplan.plan.model import Plan, Workload
from gpuplan.render.commented import Because, strip
from gpuplan.targets import TARGETS

ENGINES = ("vllm", "sglang", "axolotl", "vllm-omni")
PROGRAMS = ("vllm", "python3", "axolotl")
PRINT = f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps(sys.argv))\n"
# What each kind of set names the index of a pod by; a second pod is the second part of a whole.
INDICES = ("LWS_WORKER_INDEX", "JOB_COMPLETION_INDEX", "RANK")
LEADER = {"LWS_LEADER_ADDRESS": "127.0.0.1", "LWS_GROUP_SIZE": "2"}
REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


@dataclass(frozen=True)
class Start:
    """`words` begin with the name of the program. `index` is that of the node in a replica."""

    workload: Workload
    index: int
    words: tuple[str, ...]


def starts(plan: Plan) -> list[Start]:
    """Of all workloads whose engine is one of those and whose command is gpuplan's own."""
    own = {w.name: w for w in plan.workloads if not w.command and w.engine.name in ENGINES}
    clustered = "pulumi.kubernetes" in TARGETS[plan.target].backends
    found = _of_objects(plan, own) if clustered else _of_launches(plan, own)
    return list(found)


def _of_launches(plan: Plan, own: dict[str, Workload]) -> Iterator[Start]:
    """Targets without pods start the same launches in their own syntax."""
    for work in own.values():
        launch = start(work, first="127.0.0.1")
        for index in range(work.nodes_per_replica) if isinstance(launch, Launch) else ():
            given = launch.others if index and launch.others else launch.arguments
            texts = [written(a, str(index), first="127.0.0.1") for a in given]
            plain = [str(t.value) if isinstance(t, Because) else t for t in texts]
            yield Start(work, index, (*launch.command, *plain))


def _of_objects(plan: Plan, own: dict[str, Workload]) -> Iterator[Start]:
    roles = {
        f"{w.name}-{role}": replace(w, replicas=replicas(w, role))
        for w in own.values()
        if w.disaggregation
        for role in ROLES
    }
    for item in lower(plan).objects:
        for spec, index in _pods(strip(item.tree)[0]):
            work = (own | roles).get(item.key)
            if work is not None:
                yield Start(work, index, tuple(run(spec["containers"][0], index)))


def _pods(tree: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Specifications of pods, each with the index of one that has it."""
    if tree["kind"] == "LeaderWorkerSet":
        group = tree["spec"]["leaderWorkerTemplate"]
        yield group["leaderTemplate"]["spec"], 0
        yield group["workerTemplate"]["spec"], 1
    elif tree["kind"] in ("Deployment", "StatefulSet", "Job"):
        spec = tree["spec"]["template"]["spec"]
        whole = tree["spec"].get("completions") or 1
        yield from ((spec, index) for index in range(min(2, whole)))


def run(container: dict[str, Any], index: int) -> list[str]:
    """What a container's command starts in the end, shells and all."""
    given = {n: str(index) for n in INDICES} | LEADER
    own = {e["name"]: e["value"] for e in container.get("env") or () if "value" in e}
    variables = given | {n: expanded(v, given) for n, v in own.items()}
    told = [*(container.get("command") or ()), *(container.get("args") or ())]
    words = [expanded(word, variables) for word in told]
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            (Path(folder) / name).write_text(PRINT, encoding="utf-8")
            (Path(folder) / name).chmod(0o755)
        environment = variables | {"PATH": f"{folder}:/usr/bin:/bin"}
        done = subprocess.run(
            ["env", *words], env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    said: list[str] = json.loads(done.stdout)
    return [Path(said[0]).name, *said[1:]]


def expanded(text: str, variables: dict[str, str]) -> str:
    """As the kubelet does it: a name that there is, else the text as it is; `$$` is one."""

    def put(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return REFERENCE.sub(put, text)
