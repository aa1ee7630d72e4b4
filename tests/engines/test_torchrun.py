"""Runs meet: torchrun, as emitted, starts the processes of a run, which add up a number (gloo).

Of a run over nodes one process a node, where there is one for each GPU: all meet at one place, and
sixteen PyTorch at once are too much for a small machine. Each pod is a network namespace with the
host name, the search path and the names that its Job and its headless Service give it; the program
that would train is a stand-in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuplan.kubernetes.lower import lower
from gpuplan.plan.model import Workload
from gpuplan.render.commented import strip
from tests.support.plans import read_plan
from tests.support.require import require
from tests.tools import podnet
from tests.tools.parsers import install, places
from tests.tools.parsers.words import expanded
from tests.tools.program import ROOT

pytestmark = pytest.mark.parsers

PATIENCE_SECONDS = 240
TRAIN = """\
import torch
import torch.distributed as group
group.init_process_group("gloo")
number = torch.ones(1)
group.all_reduce(number)
if group.get_rank() == 0:
    print("ranks that met:", int(number), flush=True)
group.destroy_process_group()
"""


@pytest.fixture(autouse=True)
def ready() -> None:
    if missing := install.absent() or podnet.absent():
        require("parsers", missing)


def job(stack: str, name: str) -> tuple[Workload, dict[str, Any], bool]:
    """A run, its Job, and whether a Service gives its pods names."""
    plan = read_plan(ROOT / "stacks" / stack)
    (work,) = (w for w in plan.workloads if w.name == name)
    mine = {o.kind: strip(o.tree)[0] for o in lower(plan).objects if o.key == name}
    service = mine.get("Service", {}).get("spec", {})
    return work, mine["Job"], service.get("clusterIP") == "None"


def told(spec: dict[str, Any], index: int, script: Path) -> list[str]:
    """The container's words for torchrun, with another program to run. Axolotl passes on what
    stands behind `--` (`ask_axolotl.py`)."""
    container = spec["containers"][0]
    given = {"JOB_COMPLETION_INDEX": str(index)}
    words = [expanded(w, given) for w in (*container.get("command", ()), *container["args"])]
    after = words.index("--") if "--" in words else words.index("torchrun")
    flags = [w for w in words[after + 1 :] if w.startswith("--")]
    ours = [f for f in flags if not f.startswith(("--recipe", "--dataset", "--seq_length"))]
    if "--standalone" not in ours:
        ours = ["--nproc-per-node=1" if f.startswith("--nproc-per-node") else f for f in ours]
    return [str(places.folder() / "bin" / "torchrun"), *ours, str(script)]


def meet(
    stack: str, name: str, folder: Path, *, services: bool, seconds: int
) -> tuple[int, list[tuple[int | None, str]]]:
    work, item, named = job(stack, name)
    spec, namespace = item["spec"]["template"]["spec"], item["metadata"]["namespace"]
    script = folder / "train.py"
    script.write_text(TRAIN, encoding="utf-8")
    # An indexed Job's pods have these host names; without a subdomain no Service knows them.
    pods = {
        f"{item['metadata']['name']}-{n}": (spec.get("subdomain", "none"), namespace)
        for n in range(work.nodes_per_replica)
    }
    with podnet.network(pods, services=services and named) as there:
        started = [
            pod.start(told(spec, n, script), OMP_NUM_THREADS="1")
            for n, pod in enumerate(there.values())
        ]
        nodes = work.nodes_per_replica
        return nodes if nodes > 1 else work.gpus_per_node, podnet.finish(started, seconds)


@pytest.mark.parametrize(
    ("stack", "name"), [("finetune", "lora-70b"), ("mixtral", "pretrain"), ("tune-70b", "full-70b")]
)
def test_every_process_of_a_run_meets_the_others(stack: str, name: str, tmp_path: Path) -> None:
    ranks, ended = meet(stack, name, tmp_path, services=True, seconds=PATIENCE_SECONDS)
    alone = len(ended) == 1  # and then no Service names it: `named` is false
    assert alone == (not job(stack, name)[2])
    assert [code for code, _ in ended] == [0] * len(ended), ended[0][1][-2000:]
    assert f"ranks that met: {ranks}" in ended[0][1]


def test_without_its_service_a_run_over_nodes_does_not_begin(tmp_path: Path) -> None:
    """What the names are for."""
    _, ended = meet("mixtral", "pretrain", tmp_path, services=False, seconds=30)
    assert 0 not in [code for code, _ in ended]
    assert not [said for _, said in ended if "ranks that met" in said]
