"""Karpenter's objects of a stack on a real API server, by the definitions that it released."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.market import load_market
from gpuplan.cli.main import main
from gpuplan.preview.running.run import preview
from gpuplan.simulate.kube import Refused
from gpuplan.simulate.nodes import volumes
from tests.support.plans import read_plan
from tests.support.require import require
from tests.tools import crds
from tests.tools.engines import BIN, absent
from tests.tools.kube import Kube, Object
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.aws]

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "clusterStack": "own/eks-cluster/dev",
    "releaseVersion": "v20260801",
    "context": "eks",
}
# What another stack's outputs are, by the field that takes them.
OUTPUTS = {
    "role": "nodes-0123456",
    "subnetSelectorTerms": "subnet-0123456789abcdef0",
    "securityGroupSelectorTerms": "sg-0123456789abcdef0",
    "placementGroupSelector": "trainers",
}


def known(value: Any, field: str = "") -> Any:
    """`value` with an output in place of what a preview does not know."""
    if isinstance(value, dict):
        return {k: known(v, field or k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [known(v, field) for v in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return OUTPUTS[field]


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    try:
        version("pulumi-aws")
    except PackageNotFoundError:
        require("aws", "pulumi-aws is not installed: pip install --group clouds")
    folder = tmp_path_factory.mktemp("karpenter")
    text = (ROOT / "examples" / "eks.yaml").read_text(encoding="utf-8")
    text = text.replace("scaling: autoscaler", "scaling: karpenter")
    (folder / "m.yaml").write_text(text, encoding="utf-8")
    assert main(["compile", str(folder / "m.yaml"), "-o", str(folder / "out")]) == 0
    return list(made(folder / "out" / "eks" / "cloud" / "pools"))


def made(program: Path) -> Iterator[Object]:
    for resource in preview(program, config=SETTINGS, strict=False).resources:
        if resource.type.startswith("kubernetes:karpenter"):
            spec = {k: known(v, k) for k, v in resource.inputs["spec"].items()}
            yield Object({**resource.inputs, "spec": spec})


def test_karpenter_takes_its_pools(cluster: Kube, objects: list[Object]) -> None:
    crds.install(cluster, objects, ["1.14"])
    cluster.apply(objects)
    try:
        for kind, count in (("nodepools", 2), ("ec2nodeclasses", 2)):
            found = json.loads(cluster.kubectl("get", kind, "-o", "json"))["items"]
            assert len(found) == count
        (tune,) = (
            p
            for p in json.loads(cluster.kubectl("get", "nodepools", "-o", "json"))["items"]
            if p["metadata"]["name"] == "eks-a100-sxm-40gb-x8"
        )
        assert tune["spec"]["limits"] == {"cpu": "384", "nvidia.com/gpu": "32"}
    finally:
        cluster.sweep(list(reversed(objects)))


WRONG = {
    "a store that there is not": ("EC2NodeClass", ("instanceStorePolicy",), "RAID5"),
    "too many hops": ("EC2NodeClass", ("metadataOptions", "httpPutResponseHopLimit"), 99),
    "a policy that there is not": ("NodePool", ("disruption", "consolidationPolicy"), "Never"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_definitions_refuse_what_karpenter_has_not(
    name: str, cluster: Kube, objects: list[Object]
) -> None:
    """Else the test above could not fail."""
    crds.install(cluster, objects, ["1.14"])
    kind, path, value = WRONG[name]
    tree: Any = deepcopy(dict(next(o for o in objects if o.tree["kind"] == kind).tree))
    place = tree["spec"]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    with pytest.raises(Refused, match=path[-1]):
        cluster.apply([Object(tree)])


# --- what it starts ----------------------------------------------------------------------------

PROGRAM = "karpenter-kwok"
NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


def machines(zones: tuple[str, ...]) -> list[dict[str, Any]]:
    """Every machine of AWS in the catalogue with its price in the region, as the provider that
    plays nodes reads them."""
    market = load_market()
    found = []
    for machine in (m for m in market.instances() if m.provider == "aws" and m.gpus):
        prices = {r.region: r.usd_per_hour for r in market.rates(machine, "on-demand")}
        if (price := prices.get("us-east-1")) is None:
            continue
        resources = {
            "cpu": f"{machine.allocatable_millicores}m",
            "memory": str(machine.allocatable_memory_bytes),
            "ephemeral-storage": str(machine.nvme_bytes),
            "pods": "110",
            "nvidia.com/gpu": str(machine.gpus),
        }
        if machine.rdma:
            resources["vpc.amazonaws.com/efa"] = str(machine.rdma.interfaces)
        offerings = [
            {
                "Price": float(price),
                "Available": True,
                "Requirements": [
                    {"key": key, "operator": "In", "values": [value]}
                    for key, value in (
                        ("karpenter.sh/capacity-type", "on-demand"),
                        ("topology.kubernetes.io/zone", zone),
                    )
                ],
            }
            for zone in zones
        ]
        found.append(
            {
                "name": machine.name,
                "offerings": offerings,
                "architecture": "amd64",
                "operatingSystems": ["linux"],
                "resources": resources,
            }
        )
    return found


def played(pools: Iterator[Object]) -> Iterator[Object]:
    """The stack's pools for nodes that are played, and that go as soon as they are empty."""
    for pool in pools:
        tree: Any = deepcopy(dict(pool.tree))
        tree["spec"]["template"]["spec"]["nodeClassRef"] = NODE_CLASS
        tree["spec"]["disruption"] |= {"consolidateAfter": "1s", "budgets": [{"nodes": "100%"}]}
        yield Object(tree)


def halved(pool: Object) -> Object:
    """A pool that may have half of the planned machines."""
    tree: Any = deepcopy(dict(pool.tree))
    limits = tree["spec"]["limits"]
    tree["spec"]["limits"] = {name: str(int(amount) // 2) for name, amount in limits.items()}
    return Object(tree)


def started(cluster: Kube) -> Counter[str]:
    """Machines of the claims that Karpenter made, by type."""
    claims = json.loads(cluster.kubectl("get", "nodeclaims", "-o", "json"))["items"]
    name = "node.kubernetes.io/instance-type"
    return Counter(c["metadata"]["labels"].get(name, "not chosen") for c in claims)


def settled(cluster: Kube, wanted: Counter[str], seconds: float = 180) -> Counter[str]:
    deadline = time.monotonic() + seconds
    while (found := started(cluster)) != wanted and time.monotonic() < deadline:
        time.sleep(1)
    return found


def test_karpenter_starts_the_planned_machines_and_ends_them(
    full_cluster: Kube, objects: list[Object], tmp_path: Path
) -> None:
    if absent((PROGRAM,)):
        require("operators", f"{PROGRAM} not built: `make operators`")
    cluster, stack = full_cluster, ROOT / "stacks" / "eks"
    plan, work = read_plan(stack), objects_of(stack)
    assert plan.cloud is not None
    node_class = Object(
        {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": "default"},
        }
    )
    pools = [*played(o for o in objects if o.tree["kind"] == "NodePool")]
    crds.install(cluster, [node_class, *pools], ["1.14"])
    types = tmp_path / "types.json"
    types.write_text(json.dumps(machines(plan.cloud.zones)), encoding="utf-8")
    environment = os.environ | {
        "KUBECONFIG": str(cluster.plane.kubeconfig),
        "INSTANCE_TYPES_FILE_PATH": str(types),
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": "18080",
        "HEALTH_PROBE_PORT": "18081",
    }
    planned = Counter({p.node_type: p.node_count for p in plan.node_pools})
    with (tmp_path / "log").open("w", encoding="utf-8") as log:
        running = subprocess.Popen([str(BIN / PROGRAM)], env=environment, stdout=log, stderr=log)
        try:
            cluster.apply([node_class, *map(halved, pools), *volumes(work)])
            cluster.apply(work)
            half = Counter({name: count // 2 for name, count in planned.items()})
            assert settled(cluster, half) == half, (tmp_path / "log").read_text()[-3000:]
            time.sleep(15)  # for the other pods it finds nothing
            assert started(cluster) == half
            cluster.apply(pools)
            assert settled(cluster, planned) == planned
            cluster.sweep([o for o in reversed(work) if not o.is_patch])
            assert settled(cluster, Counter()) == Counter()
        finally:
            cluster.sweep([o for o in reversed(work) if not o.is_patch])
            cluster.sweep(list(reversed(pools)))
            running.terminate()
            running.wait(30)
            cluster.sweep([node_class, *volumes(work)])
