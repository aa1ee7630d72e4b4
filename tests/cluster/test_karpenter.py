"""Karpenter's objects of a stack on a real API server, by the definitions that it released."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.preview.running.run import preview
from gpuplan.simulate.kube import Refused
from tests.support.require import require
from tests.tools import crds
from tests.tools.kube import Kube, Object

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
