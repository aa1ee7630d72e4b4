"""A real API server takes what is compiled over the stack that is there, without a refusal."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.render import yaml
from gpuplan.simulate.nodes import volumes
from tests.support.changing_manifests import INVENTORY, random_manifest
from tests.support.plans import read_plan
from tests.tools import crds
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

STEPS = 8
PROVISIONER = "example.com/volumes"


def storage_class(name: str) -> Object:
    default = {"storageclass.kubernetes.io/is-default-class": "true"} if name == "any" else {}
    return Object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "annotations": default},
            "provisioner": PROVISIONER,
            "allowVolumeExpansion": True,
        }
    )


def node_names() -> list[Object]:
    """The rack's machines, before anything is planned on them."""
    return [
        Object({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}})
        for number in range(1, 5)
    ]


def bind(cluster: Kube, objects: list[Object]) -> list[Object]:
    """Volumes for the claims as the server holds them: only a bound claim can grow."""
    claims = [o for o in objects if o.tree["kind"] == "PersistentVolumeClaim"]
    held = [Object(tree) for tree in (cluster.read(claims) if claims else [])]
    unbound = [o for o in held if "volumeName" not in o.tree["spec"]]
    made = volumes(unbound)
    for volume in made:
        volume.tree["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": PROVISIONER}
    cluster.apply(made)
    for claim in unbound:
        metadata = claim.tree["metadata"]
        cluster.kubectl(
            "wait",
            "--for=jsonpath={.status.phase}=Bound",
            f"--timeout={PATIENCE_SECONDS}s",
            f"--namespace={metadata['namespace']}",
            f"pvc/{metadata['name']}",
        )
    return made


@pytest.mark.parametrize("seed", [11, 12])
def test_each_stack_is_applied_over_the_one_before(
    cluster: Kube, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(seed)
    (tmp_path / "rack.yaml").write_text(INVENTORY, encoding="utf-8")
    path, stack = tmp_path / "m.yaml", tmp_path / "stacks" / "shop"
    site = [*node_names(), *(storage_class(n) for n in ("any", "fast", "own"))]
    cluster.apply(site)
    there: dict[str, Object] = {}
    bound: list[Object] = []
    applied = 0
    try:
        for _ in range(STEPS):
            path.write_text(yaml.dumps(random_manifest(chance)), encoding="utf-8")
            code = main(["compile", str(path), "-o", str(stack.parent)])
            words = capsys.readouterr().err
            if code == 2:
                assert "error[GP020]" in words  # said before anything is written
                continue
            assert code == 0, words
            objects = objects_of(stack)
            crds.install(cluster, objects, [c.version for c in read_plan(stack).components])
            cluster.apply(objects)
            bound += bind(cluster, objects)
            now = {f"{o.reference} {o.manager}": o for o in objects}
            cluster.delete([o for reference, o in there.items() if reference not in now])
            there = now
            applied += 1
    finally:
        cluster.sweep([*(o for o in reversed(there.values()) if not o.is_patch), *site, *bound])
    assert applied > STEPS / 2
