"""Manifests that nobody wrote, each whole on a real API server: `make generated MANIFESTS=200`.

Workloads of every kind come together as chance has it, on nodes that are bought, described or in an
inventory. Each has to compile or to be refused in words; what compiles is accepted with strict
validation, unchanged by a second apply, gone after its removal, and `gpuplan check` finds in it
nothing that is an error but what its policies are there to find.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.orders import manifest
from gpuplan.cli.main import main
from gpuplan.kubernetes import requirements
from gpuplan.kubernetes.lower import lower
from gpuplan.render import yaml
from gpuplan.simulate.nodes import nodes
from tests.support.plans import read_plan
from tests.tools import crds, schemas
from tests.tools.kube import Kube, Object, Tree, changed
from tests.tools.program import ROOT
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

MANIFESTS = int(os.environ.get("GPUPLAN_MANIFESTS", "6"))
FIRST = int(os.environ.get("GPUPLAN_FIRST", "0"))  # to go on where a long run has ended
SEED = int(os.environ.get("GPUPLAN_SEED", "12"))
CONTROLLERS = "deployment.kubernetes.io/revision"  # an annotation that comes some time after
LOAD = {"requests_per_second": 2, "input_tokens": 300, "output_tokens": 100}
OTHERS: tuple[dict[str, Any], ...] = (
    {
        "task": "inference",
        "model": "BAAI/bge-m3",
        "load": {"requests_per_second": 20, "input_tokens": 200},
    },
    {
        "task": "inference",
        "model": "black-forest-labs/FLUX.1-dev",
        "precision": "bf16",
        "load": {"requests_per_second": 0.05, "images": {"mean": "1024x1024", "steps": 28}},
    },
    {
        "task": "inference",
        "model": "openai/whisper-large-v3",
        "load": {"requests_per_second": 1, "audio": "50 s"},
    },
    {
        "task": "training",
        "model": "meta-llama/Llama-3.2-1B-Instruct",
        "precision": "bf16",
        "training": {"tokens": 1e9, "sequence_length": 4096, "global_batch": 64},
        "dataset": {"name": "example-org/corpus", "size": "8 GB"},
    },
)
ANSWERS = re.compile(r"error\[(GP\d+)\]")
WRITTEN = re.compile(r"GP00\d")  # about how a manifest is written


def tree(number: int) -> dict[str, Any]:
    """One of `bench.orders`, and with it now and then a workload of a kind that it has none of."""
    made = manifest(number, SEED)
    chance = random.Random(SEED * 1_000_033 + number)
    if chance.random() < 0.4:
        made["workloads"].append({"name": "other", **chance.choice(OTHERS)})
    for work in made["workloads"]:
        if work["name"] != "other" and work["task"] == "inference" and chance.random() < 0.2:
            work["engine"] = {"name": "sglang"}
        if work["task"] == "finetuning":
            work["dataset"] = {"name": "example-org/dialogues", "size": "8 GB"}
        if work["task"] in ("batch", "finetuning") and chance.random() < 0.3:
            work["schedule"] = chance.choice(("0 3 1 * *", "*/20 0-6 * * 1-5"))
    if "inventory" in made["platform"]:
        made["platform"]["inventory"] = str(ROOT / made["platform"]["inventory"])
    made["name"] = f"made-{number}"
    return made


def findings(stack: Path, capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    """Severities and rules by how often they are broken."""
    capsys.readouterr()
    code = main(["check", str(stack), "--json"])
    said = capsys.readouterr().out
    assert code in (0, 1), said
    return Counter(f"{f['severity']} {f['rule']}" for f in json.loads(said)["findings"])


def test_what_compiles_is_accepted_and_stays(
    cluster: Kube, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts, rules, refused = Counter[str](), Counter[str](), Counter[str]()
    for number in range(FIRST, MANIFESTS):
        path = tmp_path / f"{number}.yaml"
        path.write_text(yaml.dumps(tree(number)), encoding="utf-8")
        capsys.readouterr()
        code = main(["compile", str(path), "-o", str(tmp_path / "stacks")])
        said = capsys.readouterr().err
        if code:
            answers = set(ANSWERS.findall(said))
            assert answers, f"manifest {number} ends with {code}: {said}"
            assert not [a for a in answers if WRITTEN.fullmatch(a)], said
            refused.update(answers)
            continue
        stack = tmp_path / "stacks" / f"made-{number}"
        counts.update(stacks=1, objects=_lives(cluster, stack))
        rules += findings(stack, capsys)
    with capsys.disabled():
        print(f"\n{FIRST} to {MANIFESTS} of seed {SEED}: {dict(counts)}")
        print(f"refused: {dict(refused)}; found by check: {dict(rules)}")
    assert counts["stacks"] >= (MANIFESTS - FIRST) // 3
    assert [r for r in rules if r.startswith("error")] == []


def _lives(cluster: Kube, stack: Path) -> int:
    """How many objects a stack has, which came, stayed and went."""
    plan, objects = read_plan(stack), objects_of(stack)
    release = str(requirements.release(lower(plan).objects, plan.components))
    assert schemas.faults(objects, release) == [], stack.name
    crds.install(cluster, objects, [c.version for c in plan.components])
    site = nodes(plan)
    cluster.apply(site)
    before = cluster.inventory()
    try:
        cluster.apply(objects)
        first = asked(cluster, objects)
        cluster.apply(objects)
        assert changed(first, asked(cluster, objects)) == set(), stack.name
        cluster.sweep([o for o in reversed(objects) if not o.is_patch])
        left = cluster.inventory() - before
        assert not left, stack.name
    finally:
        cluster.sweep([*site, *(o for o in objects if not o.is_patch)])
    return len(objects)


def asked(cluster: Kube, objects: Sequence[Object]) -> dict[str, Tree]:
    """What is asked of the server, with the generation that counts its changes: a status and a
    Deployment's revision are its controllers', who come to it when they can."""
    found = {}
    for item, tree in zip(objects, cluster.read(objects), strict=True):
        metadata = dict(tree["metadata"])
        notes = {k: v for k, v in metadata.pop("annotations", {}).items() if k != CONTROLLERS}
        kept = {k: v for k, v in tree.items() if k != "status"}
        found[item.reference] = kept | {"metadata": metadata | {"annotations": notes}}
    return found
