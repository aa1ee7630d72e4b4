"""Programs for clusters on GKE: their types, their resources, the names that they use.

The SDK's arguments are texts: what values Google has is held against its own API descriptions.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuplan.backends.pulumi.clouds.google import cluster, generate_names, pools
from gpuplan.catalog.clouds import load_cloud
from gpuplan.catalog.market import load_market
from gpuplan.cli.main import main
from gpuplan.kubernetes.nodes import selector
from gpuplan.plan.outside.cloud import CapacityKind
from tests.support.clouds import (
    check_layout,
    check_listed,
    check_values,
    compiled,
    compiled_all,
    need,
    programs,
    refused,
    registered,
    values,
)
from tests.support.plans import read_plan
from tests.support.samples import HOSTILE

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples" / "gke.yaml").read_text(encoding="utf-8")
TREE: dict[str, Any] = json.loads(generate_names.NAMES.read_text(encoding="utf-8"))
NAMES = {k: v for k, v in TREE.items() if isinstance(v, list)}
PROJECT = {"gcp:project": "some-project"}
SETTINGS = {"cluster": PROJECT, "pools": PROJECT | {"clusterStack": "own/gke-cluster/dev"}}
HEAD = """\
apiVersion: gpuplan.dev/v1
name: small
platform:
  target: gke
  region: us-central1
  nodes: [NODE]
  cluster: {CLUSTER}
workloads:
"""
CHAT = """\
- name: chat
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 200}
"""
DESKS = "- {name: desks, task: notebook, notebook: {users: 14, gpu_memory: 4 GiB}}\n"
ZONES = "zones: [us-central1-a, us-central1-b]"


def manifest(node: str = "g2-standard-12", cluster: str = ZONES, work: str = CHAT) -> str:
    return HEAD.replace("NODE", node).replace("CLUSTER", cluster) + work


def waited(kind: str, node: str = "a3-highgpu-8g", longest: str = "3 d") -> str:
    return f"{ZONES}, provisioning: [{{node: {node}, kind: {kind}, longest: {longest}}}]"


QUEUE = "  queue: gpus\n  cluster"
RESERVED = (
    f"{ZONES}, reservations: [{{node: a3-highgpu-8g, id: own, kind: on-demand,"
    " zone: us-central1-b}]"
)
MANIFESTS = {
    "example": EXAMPLE,
    "fixed": manifest(),
    "adopted": manifest(cluster=f"existing: shared, {ZONES}"),
    "spot": manifest(work=CHAT + "  preemptible: true\n"),
    "flex": manifest("a3-highgpu-1g", waited("flex-start", "a3-highgpu-1g")),
    "queued": manifest("a3-highgpu-8g", waited("queued")).replace("  cluster", QUEUE),
    "reserved": manifest(
        "a3-highgpu-8g", RESERVED.replace("zone:", "placement_group: trio, zone:")
    ),
    "cut": manifest("a2-highgpu-1g", f"{ZONES}, scaling: autoscaler", DESKS),
    "raw": manifest("a3-highgpu-8g", f"{ZONES}, local_disks: block"),
}
every_stack = pytest.mark.parametrize("name", MANIFESTS)


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return compiled_all(tmp_path_factory, "google", MANIFESTS)


def need_google() -> None:
    need("gcp", ("pulumi-gcp", "google-api-python-client"))


def found_in(stack: Path, part: str) -> Any:
    need_google()
    return registered(stack, part, SETTINGS[part])


def node_pools(stack: Path) -> dict[str, dict[str, Any]]:
    found = found_in(stack, "pools").resources
    return {r.name: r.inputs for r in found if r.type == "gcp:container/nodePool:NodePool"}


# --- how the programs read ---------------------------------------------------------------------


@every_stack
def test_the_layout_is_the_formatters(stacks: Mapping[str, Path], name: str) -> None:
    check_layout(stacks[name])


def test_text_of_a_person_stays_data(tmp_path: Path) -> None:
    quoted = json.dumps(HOSTILE, ensure_ascii=False)
    stack = compiled(
        tmp_path, manifest().replace("name: small", f"name: small\ndescription: {quoted}", 1)
    )
    for path in programs(stack):
        ast.parse(path.read_text(encoding="utf-8"))
        assert HOSTILE not in path.read_text(encoding="utf-8")


# --- names that Google has ---------------------------------------------------------------------


@every_stack
def test_every_value_is_one_that_google_enumerates(stacks: Mapping[str, Path], name: str) -> None:
    check_values(stacks[name], NAMES, 4)
    accelerators = set(load_google().accelerators.values())
    assert set(values(stacks[name], "type")) <= accelerators | {"COMPACT"}


@every_stack
def test_every_field_of_a_node_pool_is_one_of_the_api(
    stacks: Mapping[str, Path], name: str
) -> None:
    """What the SDK calls otherwise, or is of the provider's own, is listed here."""
    fields = {field.lower() for fields in TREE["fields"].values() for field in fields}
    own = {"cluster", "location", "node_count", "opts"}
    aliases = {
        "node_locations": "locations",
        "node_config": "config",
        "guest_accelerators": "accelerators",
        "type": "accelerator_type",
        "count": "accelerator_count",
    }
    text = (stacks[name] / "cloud" / "pools" / "groups.py").read_text(encoding="utf-8")
    calls = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call))
    kinds = ("NodePool", "NodePoolNodeConfigArgs", "NodePoolNodeConfigGuestAcceleratorArgs")
    names = {
        k.arg
        for c in calls
        if ast.unparse(c.func).removeprefix("gcp.container.") in kinds
        for k in c.keywords
        if k.arg
    }
    assert len(names) > 15
    unknown = {n for n in names - own if aliases.get(n, n).replace("_", "") not in fields}
    assert unknown == set()


def load_google() -> Any:
    facts = load_cloud("gcp")
    assert facts is not None
    return facts


def test_every_quota_is_a_metric_of_compute_engine() -> None:
    assert {q.name for q in load_google().quotas} <= set(NAMES["quotas"])


def test_every_planned_machine_has_an_accelerator() -> None:
    rented = {m.name for m in load_market().instances() if m.provider == "gcp" and m.gpus}
    unknown = {n for n in rented if load_google().accelerator(n) is None}
    assert unknown == {"a3-edgegpu-8g", "a3-edgegpu-8g-nolssd"}, "not machines of GKE's table"


@pytest.mark.gcp
def test_the_names_are_those_of_the_pinned_descriptions() -> None:
    need_google()
    assert json.loads(generate_names.generate()) == TREE


# --- what they register ------------------------------------------------------------------------


@pytest.mark.gcp
@pytest.mark.parametrize(
    ("name", "part"),
    [(n, p) for n in MANIFESTS for p in SETTINGS if (n, p) != ("adopted", "cluster")],
)
def test_the_program_registers_what_is_listed(
    stacks: Mapping[str, Path], name: str, part: str
) -> None:
    check_listed(found_in(stacks[name], part), stacks[name] / "cloud" / part)


@pytest.mark.gcp
def test_nothing_of_a_cluster_is_public_and_no_node_has_rights(stacks: Mapping[str, Path]) -> None:
    resources = found_in(stacks["fixed"], "cluster").resources
    (made,) = (r for r in resources if r.type == "gcp:container/cluster:Cluster")
    assert made.protect
    given = made.inputs
    private = given["privateClusterConfig"]
    assert private == {"enablePrivateNodes": True, "enablePrivateEndpoint": True}
    assert given["datapathProvider"] == "ADVANCED_DATAPATH"
    assert given["workloadIdentityConfig"] == {"workloadPool": "some-project.svc.id.goog"}
    assert given["removeDefaultNodePool"] is True
    assert given["deletionProtection"] is True
    assert "DCGM" in given["monitoringConfig"]["enableComponents"]
    assert given["minMasterVersion"] == "1.35"
    rights = [r.inputs["role"] for r in resources if r.type == "gcp:projects/iAMMember:IAMMember"]
    assert rights == ["roles/container.defaultNodeServiceAccount"]
    (system,) = (r.inputs for r in resources if r.type == "gcp:container/nodePool:NodePool")
    assert system["nodeConfig"]["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}


@pytest.mark.gcp
@every_stack
def test_every_gpu_node_has_its_driver_its_taint_and_its_own_cpus(
    stacks: Mapping[str, Path], name: str
) -> None:
    plan = read_plan(stacks[name])
    assert plan.cloud is not None
    found = node_pools(stacks[name])
    for group in plan.cloud.groups:
        pool = next(p for p in plan.node_pools if p.name == group.pool)
        given = found[group.name]
        config = given["nodeConfig"]
        (gpu,) = config["guestAccelerators"]
        assert gpu["count"] == pool.gpus_per_node
        assert gpu["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "DEFAULT"}
        taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
        assert config["taints"] == [taint]
        assert config["kubeletConfig"]["cpuManagerPolicy"] == "static"
        assert config["shieldedInstanceConfig"]["enableSecureBoot"] is True
        assert given["networkConfig"]["enablePrivateNodes"] is True
        own = {k: v for k, v in selector(plan, pool).items() if k.startswith("gpuplan.dev/")}
        assert own.items() <= config["labels"].items()
        nodes = given.get("nodeCount", 0) * len(given["nodeLocations"])
        most = given.get("autoscaling", {}).get("totalMaxNodeCount", nodes)
        assert most == group.count
        drives = {"ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"} & config.keys()
        assert len(drives) == (1 if group.nvme_drives else 0)


@pytest.mark.gcp
def test_reserved_nodes_have_their_networks_and_pods_claim_the_cards(
    stacks: Mapping[str, Path],
) -> None:
    given = node_pools(stacks["example"])["h200-sxm-141gb-x8"]
    assert given["networkConfig"]["acceleratorNetworkProfile"] == "auto"
    assert given["nodeLocations"] == ["us-central1-b"]
    config = given["nodeConfig"]
    assert config["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["trainers"],
    }
    assert config["labels"]["cloud.google.com/gke-networking-dra-driver"] == "true"
    assert config["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 32}
    assert "placementPolicy" not in given, "machines stand as they were reserved"
    other = node_pools(stacks["example"])["l4-x1"]
    assert "acceleratorNetworkProfile" not in other["networkConfig"]


@pytest.mark.gcp
def test_a_placement_that_a_reservation_was_made_with_is_named(stacks: Mapping[str, Path]) -> None:
    (given,) = node_pools(stacks["reserved"]).values()
    assert given["placementPolicy"] == {"type": "COMPACT", "policyName": "trio"}


@pytest.mark.gcp
def test_capacity_is_asked_for_as_planned(stacks: Mapping[str, Path]) -> None:
    (spot,) = node_pools(stacks["spot"]).values()
    assert spot["nodeConfig"]["spot"] is True
    assert "flexStart" not in spot["nodeConfig"]
    (flex,) = node_pools(stacks["flex"]).values()
    assert flex["nodeConfig"]["flexStart"] is True
    assert flex["nodeConfig"]["maxRunDuration"] == "259200s"
    (queued,) = node_pools(stacks["queued"]).values()
    assert queued["queuedProvisioning"] == {"enabled": True}
    assert queued["nodeConfig"]["flexStart"] is True
    assert "placementPolicy" not in queued
    assert queued["nodeConfig"]["labels"]["cloud.google.com/gke-queued"] == "true"
    for given in (flex, queued):  # neither a fixed size, nor repaired, nor upgraded by surge
        assert given["autoscaling"]["totalMinNodeCount"] == given["initialNodeCount"] == 0
        assert "nodeCount" not in given
        assert given["management"]["autoRepair"] is False
        assert "upgradeSettings" not in given
    for given in (spot, flex, queued):
        affinity = given["nodeConfig"]["reservationAffinity"]
        assert affinity == {"consumeReservationType": "NO_RESERVATION"}


@pytest.mark.parametrize(("kind", "placed"), [("flex-start", ["COMPACT"]), ("queued", [])])
def test_machines_that_are_waited_for_stand_together_where_they_can(
    kind: str, placed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = EXAMPLE.replace("platform:", "platform:\n  queue: gpus").replace(
        "    reservations:\n    - {node: a3-ultragpu-8g, id: trainers, kind: on-demand,"
        " zone: us-central1-b}\n",
        f"    provisioning: [{{node: a3-ultragpu-8g, kind: {kind}, longest: 2 d}}]\n",
    )
    stack = compiled(tmp_path, text)
    assert [v for v in values(stack, "type") if v == "COMPACT"] == placed
    said = " ".join(capsys.readouterr().err.split())
    assert ("they may stand apart" in said) == (kind == "queued")


def test_pods_tolerate_the_taint_of_a_queue(stacks: Mapping[str, Path]) -> None:
    text = (stacks["queued"] / "workload.py").read_text(encoding="utf-8")
    assert (
        text.count('key="cloud.google.com/gke-queued"') == text.count('key="nvidia.com/gpu"') == 1
    )


@pytest.mark.gcp
def test_drives_are_left_to_whoever_mounts_them(stacks: Mapping[str, Path]) -> None:
    (given,) = node_pools(stacks["raw"]).values()
    assert given["nodeConfig"]["localNvmeSsdBlockConfig"] == {"localSsdCount": 16}
    assert given["nodeConfig"]["diskSizeGb"] > 150, "images and scratch are on the boot disk then"


@pytest.mark.parametrize("count", range(1, 8))
def test_a_fixed_pool_has_as_many_nodes_as_planned(count: int, tmp_path: Path) -> None:
    """GKE counts nodes a zone: three nodes are not one and a half in each of two."""
    work = CHAT + f"  overrides: {{replicas: {count}}}\n"
    stack = compiled(tmp_path, manifest(work=work))
    (size,), (zones,) = values(stack, "node_count"), values(stack, "node_locations")
    assert size * len(zones) == count
    assert len(zones) == (1 if count % 2 else 2)


@pytest.mark.gcp
def test_a_cut_pool_is_cut_by_gke_and_its_parts_are_gpus(stacks: Mapping[str, Path]) -> None:
    plan = read_plan(stacks["cut"])
    assert plan.cloud is not None
    found = node_pools(stacks["cut"])
    assert any(g.partition for g in plan.cloud.groups)
    for group in plan.cloud.groups:
        given = found[group.name]["nodeConfig"]
        (gpu,) = given["guestAccelerators"]
        assert gpu.get("gpuPartitionSize") == group.partition
        label = given["labels"]["gpuplan.dev/partition"]
        assert label == (group.partition or "none").replace("+", ".")
        assert "nvidia.com/mig.config" not in given["labels"]
    text = (stacks["cut"] / "workload.py").read_text(encoding="utf-8")
    assert "nvidia.com/mig" not in text
    assert '"gpuplan.dev/partition"' in text
    quota = (stacks["cut"] / "cluster.py").read_text(encoding="utf-8")
    assert re.search(r'"requests.nvidia.com/gpu": "14"', quota)


def test_gpus_that_nobody_has_are_cut_along(tmp_path: Path) -> None:
    """GKE cuts all GPUs of a node alike; a node of eight with two that are cut has six to spare."""
    plan = read_plan(compiled(tmp_path, manifest("a2-highgpu-8g", work=DESKS)))
    assert plan.cloud is not None
    cut = sum(len(g.gpus) for p in plan.node_pools for n in p.layouts for g in n.gpus)
    assert 0 < cut < sum(p.node_count * p.gpus_per_node for p in plan.node_pools)
    assert [g.partition for g in plan.cloud.groups] == ["1g.5gb"]


def test_the_disk_of_a_cut_node_holds_the_scratch_of_all_its_instances(
    stacks: Mapping[str, Path],
) -> None:
    """Pods ask for it, and wait where a node's disk is too small: a GPU has seven users, or one
    model."""
    (desks,) = read_plan(stacks["cut"]).workloads
    (cut,), (whole,) = (values(stacks[name], "disk_size_gb") for name in ("cut", "fixed"))
    assert (cut - whole) * 10**9 == pytest.approx(6 * desks.resources.scratch_bytes, abs=10**9)


def test_a_disk_has_room_for_the_work_of_its_own_pool_alone(
    stacks: Mapping[str, Path], tmp_path: Path
) -> None:
    other = CHAT.replace("chat", "talk") + "  overrides: {gpu: a100-sxm-40gb, scratch: 90 GB}\n"
    work = CHAT + "  overrides: {gpu: l4, scratch: 60 GB}\n" + other
    both = compiled(tmp_path, manifest("g2-standard-12, a2-highgpu-1g", work=work))
    less, more = sorted(values(both, "disk_size_gb"))
    (of_50_gib,) = values(stacks["fixed"], "disk_size_gb")
    assert less - of_50_gib < 10
    assert more - less == 30


def test_names_and_shared_volumes_have_what_serves_them(
    stacks: Mapping[str, Path], tmp_path: Path
) -> None:
    asked = "  network: {dns: cloud-dns}\n  cluster"
    stack = compiled(tmp_path, manifest().replace("  cluster", asked))
    assert values(stack, "cluster_dns") == ["CLOUD_DNS"]
    assert values(stacks["fixed"], "cluster_dns") == ["KUBE_DNS"]
    drivers = {name: set(values(stacks[name], "addons_config")[0]) for name in ("fixed", "example")}
    assert drivers["fixed"] == {"gce_persistent_disk_csi_driver_config"}
    assert "lustre_csi_driver_config" in drivers["example"]


def test_what_is_waited_for_is_said_to_be_priced_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled(tmp_path, manifest("a3-highgpu-8g", waited("flex-start")))
    assert "is flex-start and priced as on demand" in " ".join(capsys.readouterr().err.split())


def test_gke_serves_the_gpus_and_no_operator_does(stacks: Mapping[str, Path]) -> None:
    """It would count each GPU twice, and its labels are not there for pods to look for."""
    for stack in stacks.values():
        assert not (stack / "helm" / "10-gpu-operator").exists()
        assert "nvidia.com/gpu.product" not in (stack / "workload.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("day", "words", "status"),
    [
        ("2027-01-01", "no findings", 0),
        ("2027-03-01", "standard support of Kubernetes 1.35 ends on 2027-04-11", 0),
        ("2027-05-01", "standard support of Kubernetes 1.35 ended on 2027-04-11", 1),
    ],
)
def test_the_end_of_a_releases_support_is_found(
    day: str,
    words: str,
    status: int,
    stacks: Mapping[str, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", str(stacks["fixed"]), "--as-of", day]) == status
    assert words in " ".join(capsys.readouterr().out.split())


# --- names ---------------------------------------------------------------------------------------


def test_names_are_short_enough_and_no_two_are_one(stacks: Mapping[str, Path]) -> None:
    plan = read_plan(stacks["fixed"])
    assert plan.cloud is not None
    (group,) = plan.cloud.groups
    for length, problems in ((39 - len(group.name), 0), (40 - len(group.name), 1)):
        found = [*pools.problems(replace(plan, name="s" * length), plan.cloud)]
        assert len(found) == problems
    twice = replace(plan.cloud, groups=(group, group))
    assert [d.rule for d in pools.problems(plan, twice)] == ["GP018"]
    assert len([*cluster.problems(replace(plan, name="s" * 41), plan.cloud)]) == 1


def test_accounts_are_short_and_each_stacks_own(stacks: Mapping[str, Path]) -> None:
    plan = read_plan(stacks["fixed"])
    long = [replace(plan, name=f"a-name-that-goes-on-and-on-{n}") for n in "ab"]
    found = [cluster.account(p) for p in (plan, *long)]
    assert found[0] == "small-nodes"
    assert len(set(found)) == 3
    assert all(re.fullmatch(r"[a-z][-a-z0-9]{4,28}[a-z0-9]", name) for name in found)


@pytest.mark.parametrize(
    ("capacity", "names"),
    [
        ("on-demand", ["NVIDIA_L4_GPUS", "GPUS_ALL_REGIONS"]),
        ("spot", ["PREEMPTIBLE_NVIDIA_L4_GPUS", "GPUS_ALL_REGIONS"]),
    ],
)
def test_quotas_are_named_with_what_they_must_hold(
    capacity: CapacityKind, names: list[str], stacks: Mapping[str, Path]
) -> None:
    plan = read_plan(stacks["spot" if capacity == "spot" else "fixed"])
    assert plan.cloud is not None
    gpus = sum(p.node_count * p.gpus_per_node for p in plan.node_pools)
    assert [(q.name, q.amount, q.unit) for q in plan.cloud.quotas] == [
        (name, gpus, "GPUs") for name in names
    ]


def test_a_quota_without_a_known_name_is_said_as_that(stacks: Mapping[str, Path]) -> None:
    quotas = read_plan(stacks["example"]).cloud.quotas  # type: ignore[union-attr]
    assert [(q.name, q.families, q.amount) for q in quotas if q.name is None] == [
        (None, ("a3-ultragpu",), 32)
    ]
    text = (stacks["example"] / "README.md").read_text(encoding="utf-8")
    assert "32 GPUs of a3-ultragpu, on-demand: no source states the quota's name" in text


# --- a cluster that is there -------------------------------------------------------------------

MOCKED = """
import json, pulumi, sys

class Cloud(pulumi.runtime.Mocks):
    def new_resource(self, args):
        sys.stdout.write(f"resource {args.typ} {args.name}\\n")
        return f"{args.name}-id", {**args.inputs, "email": "nodes@some-project", "member": "m"}

    def call(self, args):
        sys.stdout.write(f"call {args.token} {json.dumps(args.args, sort_keys=True)}\\n")
        return {"name": args.args["name"]}

pulumi.runtime.set_mocks(Cloud(), preview=False)
pulumi.runtime.set_all_config({"gcp:project": "some-project"})
sys.path.insert(0, ".")
import existing

@pulumi.runtime.test
def found():
    names = pulumi.Output.all(existing.name, existing.identity.nodes.email)
    return names.apply(lambda values: sys.stdout.write(f"found {values}\\n"))

found()
"""


@pytest.mark.gcp
def test_an_existing_cluster_is_only_asked_for(stacks: Mapping[str, Path]) -> None:
    need_google()
    folder = stacks["adopted"] / "cloud" / "cluster"
    done = subprocess.run(
        [sys.executable, "-c", MOCKED], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    asked = '{"location": "us-central1", "name": "shared", "project": "some-project"}'
    assert f"call gcp:container/getCluster:getCluster {asked}" in lines
    assert "found ['shared', 'nodes@some-project']" in lines
    made = {line.split()[1] for line in lines if line.startswith("resource")}
    assert made == {"gcp:serviceaccount/account:Account", "gcp:projects/iAMMember:IAMMember"}


# --- what is refused ---------------------------------------------------------------------------


def refusals() -> Iterator[Any]:
    yield manifest(cluster="scaling: fixed"), "needs to know its zones"
    yield manifest(cluster="zones: [us-east1-b]"), "'us-east1-b' is not in region"
    yield manifest(cluster="zones: [us-east-1a]"), "'us-east-1a' is not how target 'gke' writes"
    yield manifest(cluster=f"{ZONES}, scaling: karpenter"), "has no scaling 'karpenter'"
    yield manifest(cluster=f"{ZONES}, existing: Shared_1"), "'Shared_1' is not how target 'gke'"
    fabric = "  fabric: {kind: efa, bandwidth_per_gpu: 50 Gb/s}\n  cluster"
    yield manifest().replace("  cluster", fabric), "have no efa"
    driver = '  versions: {driver: "580.126.20"}\n  cluster'
    yield manifest().replace("  cluster", driver), "the GPU driver that is in the image"
    old = '  versions: {kubernetes: "1.32"}\n  cluster'
    yield manifest().replace("  cluster", old), "no source states how long Kubernetes 1.32"
    block = RESERVED.replace("kind: on-demand", "kind: block")
    yield manifest("a3-highgpu-8g", block), "has no reservation 'block'"
    yield manifest("a3-highgpu-8g", RESERVED.replace("id: own", "id: Own")), "'Own' is not how"
    both = f"{RESERVED}, {waited('flex-start').partition(', p')[2].join(('p', ''))}"
    yield manifest("a3-highgpu-8g", both), "cannot be flex-start and reserved at once"
    spare = manifest(
        cluster=waited("flex-start", "g2-standard-12"), work=f"{CHAT}  preemptible: true\n"
    )
    yield spare, "cannot be flex-start and on spare capacity at once"
    yield manifest("a3-highgpu-8g", waited("flex-start", longest="8 d")), "stays 7 days at most"
    yield manifest("a3-highgpu-8g", waited("queued")), "and nobody makes one"
    yield manifest("a3-highgpu-1g"), "can be had as spot or flex-start alone"
    yield EXAMPLE.replace("a3-ultragpu-8g", "a3-highgpu-8g"), "has no RDMA that pods can claim"
    both_ways = manifest("a2-highgpu-8g", work=f"{DESKS}{CHAT}")
    yield both_ways, "the plan cuts some of a node otherwise"


@pytest.mark.parametrize(("text", "words"), [*refusals()], ids=range(17))
def test_what_a_cluster_cannot_be_is_said(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(tmp_path, text, capsys)
    assert words in said
    assert re.search(r"--> \S+m\.yaml:\d+:\d+", said), "at its line"
