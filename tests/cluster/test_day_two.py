"""What people change after the first day, each step applied to a real API server: it is taken
without a refusal, and the volumes with data are the same ones as before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.render import yaml
from tests.cluster.test_updates import bind, node_names, storage_class
from tests.support.changing_manifests import INVENTORY, MODELS, manifest, notebooks, serving
from tests.support.plans import read_plan
from tests.tools import crds
from tests.tools.kube import OWNER, Kube, Object, Refused, Tree
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

SMALL, LARGE = MODELS
# Beside the rack's nodes of H100: another kind, which a workload may move to.
OTHERS = """\
- names: [n5, n6]
  node_type: pcie-4x-l40s
  cpu_cores: 64
  memory: 768 GiB
  gpus:
  - {type: l40s, count: 4}
"""
NODE = {"apiVersion": "v1", "kind": "Node"}
Manifest = dict[str, Any]


@dataclass
class Site:
    """A cluster with the stack that is there, and everything to be swept from it."""

    cluster: Kube
    folder: Path
    objects: list[Object] = field(default_factory=list)
    made: list[Object] = field(default_factory=list)

    @property
    def stack(self) -> Path:
        return self.folder / "stacks" / "shop"

    def compile(self, tree: Manifest) -> int:
        path = self.folder / "shop.yaml"
        path.write_text(yaml.dumps(tree), encoding="utf-8")
        return main(["compile", str(path), "-o", str(self.stack.parent)])

    def apply(self) -> None:
        """What the compiled stack has, over what is there; then what it no longer has goes, as
        Pulumi's updates do it: all but the claims and namespaces that it retains."""
        objects = objects_of(self.stack)
        crds.install(self.cluster, objects, [c.version for c in read_plan(self.stack).components])
        self.cluster.apply(objects)
        self.made += [o for o in objects if not o.is_patch] + bind(self.cluster, objects)
        now = {(o.reference, o.manager) for o in objects}
        self.cluster.delete([o for o in self.objects if (o.reference, o.manager) not in now])
        self.objects = objects

    def held(self, kind: str) -> dict[str, Tree]:
        """The objects of a kind that the server holds of the stack, by namespace and name."""
        items = [o for o in self.objects if o.tree["kind"] == kind]
        found = self.cluster.read(items) if items else []
        return {f"{t['metadata'].get('namespace')}/{t['metadata']['name']}": t for t in found}

    def identities(self, kind: str) -> dict[str, str]:
        return {name: tree["metadata"]["uid"] for name, tree in self.held(kind).items()}

    def specs(self) -> list[tuple[object, object]]:
        """What is wanted of each object, and how often that has changed; the control plane goes on
        writing the rest."""
        trees = self.cluster.read(self.objects)
        return [(t["metadata"].get("generation"), t.get("spec", t.get("data"))) for t in trees]

    def sizes(self) -> dict[str, int]:
        claims = self.held("PersistentVolumeClaim")
        sizes = {n: t["spec"]["resources"]["requests"]["storage"] for n, t in claims.items()}
        return {name: int(size.removesuffix("Gi")) for name, size in sizes.items()}


@pytest.fixture
def site(cluster: Kube, tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "rack.yaml").write_text(INVENTORY + OTHERS, encoding="utf-8")
    more = [Object({**NODE, "metadata": {"name": name}}) for name in ("n5", "n6")]
    prepared = [*node_names(), *more, *(storage_class(n) for n in ("any", "fast"))]
    cluster.apply(prepared)
    place = Site(cluster, tmp_path)
    yield place
    cluster.sweep([*reversed(place.made), *prepared])


def chat(model: Any = SMALL, **more: Any) -> dict[str, Any]:
    work = serving("chat", model, 0.5, "a") | more
    work["tenancy"] = {"team": more.pop("team", "a"), "isolation": "gpu"}
    work.pop("team", None)
    return work


def replicas(count: int) -> dict[str, Any]:
    return {"overrides": {"replicas": count}}


CLAIM, SECOND = "shop-a/chat-models", "shop-a/chat-models-2"
DEPLOYMENT = "shop-a/chat"
BEFORE = manifest(chat())
SHARED = {"class": "fast", "shared": True}
# Name → the manifest before, after, claims that must be there afterwards, and whether the
# Deployment is the same object.
STEPS: dict[str, tuple[Manifest, Manifest, set[str], bool]] = {
    "replicas 1 to 5, one node a volume": (
        manifest(chat(**replicas(1))),
        manifest(chat(**replicas(5))),
        {CLAIM, SECOND},
        True,
    ),
    "replicas 1 to 5, many nodes a volume": (
        manifest(chat(**replicas(1)), **SHARED),
        manifest(chat(**replicas(5)), **SHARED),
        {CLAIM},
        True,
    ),
    "replicas 5 to 1": (
        manifest(chat(**replicas(5)), **SHARED),
        manifest(chat(**replicas(1)), **SHARED),
        {CLAIM},
        True,
    ),
    "a larger model, so a larger volume": (BEFORE, manifest(chat(LARGE)), {CLAIM}, True),
    "a smaller model, in the volume that is there": (manifest(chat(LARGE)), BEFORE, {CLAIM}, True),
    "another revision of the weights": (
        BEFORE,
        manifest(chat(model={"name": SMALL, "revision": "a" * 40})),
        {CLAIM},
        True,
    ),
    "another storage class": (BEFORE, manifest(chat(), **SHARED), {CLAIM, SECOND}, True),
    "another name, announced": (
        BEFORE,
        manifest(chat() | {"name": "talk", "renamed_from": ["chat"]}),
        {CLAIM},
        True,
    ),
    "another name": (
        BEFORE,
        manifest(chat() | {"name": "talk"}),
        {CLAIM, "shop-a/talk-models"},
        False,
    ),
    "another team": (
        BEFORE,
        manifest(chat(team="b")),
        {CLAIM, "shop-b/chat-models-2"},
        False,
    ),
    "another GPU": (
        BEFORE,
        manifest(chat()) | {"platform": manifest()["platform"] | {"gpus": ["l40s"]}},
        {CLAIM},
        True,
    ),
    "less in the stack": (
        manifest(chat(), chat(LARGE) | {"name": "other"}),
        BEFORE,
        {CLAIM, "shop-a/other-models"},
        True,
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_taken_and_keeps_the_data(site: Site, name: str) -> None:
    before, after, claims, same = STEPS[name]
    assert site.compile(deepcopy(before)) == 0
    site.apply()
    data, sizes = site.identities("PersistentVolumeClaim"), site.sizes()
    deployment = site.identities("Deployment")[DEPLOYMENT]
    assert site.compile(deepcopy(after)) == 0
    site.apply()
    now = site.identities("PersistentVolumeClaim")
    assert now.keys() == claims
    assert {name: now[name] for name in data} == data  # none was made anew
    assert all(site.sizes()[name] >= size for name, size in sizes.items())
    assert (site.identities("Deployment").get(DEPLOYMENT) == deployment) is same
    wanted = site.specs()
    site.cluster.apply(site.objects)
    assert site.specs() == wanted


def test_a_volume_grows_with_its_model(site: Site) -> None:
    site.compile(BEFORE)
    site.apply()
    small = site.sizes()[CLAIM]
    site.compile(manifest(chat(LARGE)))
    site.apply()
    large = site.sizes()[CLAIM]
    assert large > small
    site.compile(BEFORE)
    site.apply()
    assert site.sizes()[CLAIM] == large


def test_pods_go_to_the_nodes_of_their_gpu(site: Site) -> None:
    site.compile(BEFORE)
    site.apply()
    _, after, _, _ = STEPS["another GPU"]
    site.compile(after)
    site.apply()
    pod = site.held("Deployment")[DEPLOYMENT]["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["nvidia.com/gpu.product"] == "NVIDIA-L40S"
    nodes = [Object({**NODE, "metadata": {"name": name}}) for name in ("n1", "n5")]
    labels = [tree["metadata"].get("labels", {}) for tree in site.cluster.read(nodes)]
    assert [own.get("gpuplan.dev/stack") for own in labels] == [None, "shop"]


def test_what_the_server_would_refuse_is_refused_before_anything_is_written(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.compile(BEFORE)
    site.apply()
    there = (site.stack / "checksums.txt").read_bytes()
    after = manifest(notebooks("chat", 3, "a"))
    capsys.readouterr()
    assert site.compile(after) == 2
    said = capsys.readouterr().err
    assert "error[GP020]: Service chat is there and cannot change: spec.clusterIP" in said
    assert "= help: give the workload another name" in said
    assert (site.stack / "checksums.txt").read_bytes() == there
    fresh = site.folder / "fresh"
    assert main(["compile", str(site.folder / "shop.yaml"), "-o", str(fresh), "--fresh"]) == 0
    services = [o for o in objects_of(fresh / "shop") if o.tree["kind"] == "Service"]
    with pytest.raises(Refused, match="may not change once set"):
        site.cluster.apply(services)


def apply_as(site: Site, manager: str, objects: list[Object], *how: str) -> None:
    stream = "\n---\n".join(json.dumps(o.tree) for o in objects)
    given = ("apply", "--server-side", f"--field-manager={manager}", *how, "-f", "-")
    site.cluster.kubectl(*given, stdin=stream)


def test_what_a_lost_state_left_is_taken_over_with_its_data(site: Site) -> None:
    """As the README's "Adopt" does: the provider applies under a name of its own, without force."""
    site.compile(BEFORE)
    site.apply()
    own = [o for o in site.objects if not o.is_patch]
    data, wanted = site.identities("PersistentVolumeClaim"), site.specs()
    made = [o for o in own if o.tree["kind"] in ("Namespace", "PersistentVolumeClaim")]
    for item in made:
        with pytest.raises(Refused, match=r"AlreadyExists|exceeded quota"):
            site.cluster.kubectl("create", "-f", "-", stdin=json.dumps(item.tree))
    apply_as(site, "another-state", own)
    assert site.identities("PersistentVolumeClaim") == data
    assert site.specs() == wanted
    (claim,) = (deepcopy(o) for o in own if o.tree["kind"] == "PersistentVolumeClaim")
    claim.tree["spec"]["resources"]["requests"]["storage"] = "1Gi"
    with pytest.raises(Refused, match="conflict"):
        apply_as(site, "another-state", [claim])
    with pytest.raises(Refused, match="can not be less than"):
        apply_as(site, "another-state", [claim], "--force-conflicts")


def test_replicas_that_somebody_scaled_are_taken_back_on_purpose(site: Site) -> None:
    site.compile(manifest(chat(**replicas(1)), **SHARED))
    site.apply()
    site.cluster.kubectl("scale", "-n", "shop-a", "deployment/chat", "--replicas=3")
    site.compile(manifest(chat(**replicas(2)), **SHARED))
    assert "PULUMI_K8S_ENABLE_PATCH_FORCE=true" in (site.stack / "README.md").read_text("utf-8")
    with pytest.raises(Refused, match=r'conflict with "kubectl" .*: \.spec\.replicas'):
        site.apply()
    changed = [o for o in objects_of(site.stack) if o.tree["kind"] == "Deployment"]
    apply_as(site, OWNER, changed, "--force-conflicts")
    assert site.held("Deployment")[DEPLOYMENT]["spec"]["replicas"] == 2
