"""Programs for AKS: their types, their resources, the names that they use.

The SDK takes any text for a value: which ones AKS has is held against its own models.
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

import jsonschema
import pytest
from ruamel.yaml import YAML

from gpuplan.backends import helm
from gpuplan.backends.helm import gpu_operator
from gpuplan.backends.pulumi.clouds.azure import cluster, generate_names, pools
from gpuplan.catalog.clouds import load_cloud
from gpuplan.catalog.market import load_market
from gpuplan.cli.main import main
from gpuplan.kubernetes.addons import charts, network_operator
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.nodes import selector
from gpuplan.plan.model import Plan
from gpuplan.render import commented
from tests.backends.test_helm_values import defaults, leaves
from tests.support.clouds import (
    check_layout,
    check_listed,
    check_values,
    compiled,
    compiled_all,
    compiled_each,
    need,
    programs,
    refused,
    registered,
    values,
)
from tests.support.plans import read_plan
from tests.support.require import require
from tests.support.samples import HOSTILE

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples" / "aks.yaml").read_text(encoding="utf-8")
NAMES: dict[str, Any] = json.loads(generate_names.NAMES.read_text(encoding="utf-8"))
SETTINGS = {
    "cluster": {"administrators": '["00000000-0000-0000-0000-000000000001"]'},
    "pools": {"clusterStack": "own/aks-cluster/dev"},
}
SERVICE = """\
apiVersion: gpuplan.dev/v1
name: small
platform:
  target: aks
  region: eastus
  nodes: [NODE]
  cluster: {CLUSTER}
workloads:
- name: chat
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 200}
"""
ZONES = 'zones: ["1", "2"]'


def service(node: str = "Standard_NC24ads_A100_v4", cluster: str = ZONES) -> str:
    return SERVICE.replace("NODE", node).replace("CLUSTER", cluster)


HELD = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/gpus/providers/"
    "Microsoft.Compute/capacityReservationGroups/trainers"
)
RESERVED = (
    f"{ZONES}, reservations: [{{node: Standard_NC24ads_A100_v4, id: {HELD}, kind: on-demand,"
    ' zone: "2"}]'
)


def notebooks(users: int, gibibytes: int, cluster: str = ZONES) -> str:
    return service("Standard_ND96asr_v4", cluster).partition("workloads:")[0] + (
        f"workloads:\n- {{name: desks, task: notebook, notebook: {{users: {users},"
        f" gpu_memory: {gibibytes} GiB}}}}\n"
    )


def two_sizes(cluster: str) -> str:
    """Parts of two sizes, which share the GPUs of a node."""
    more = "- {name: labs, task: notebook, notebook: {users: 3, gpu_memory: 4 GiB}}\n"
    return notebooks(10, 9, cluster) + more


MANIFESTS = {
    "example": EXAMPLE,
    "fixed": service(),
    "regional": service(cluster="scaling: autoscaler"),
    "adopted": service(cluster=f"existing: shared, {ZONES}"),
    "reserved": service(cluster=RESERVED),
    "cut": two_sizes(ZONES),
    "by-azure": notebooks(56, 4, f"{ZONES}, driver: provider"),
    "cut-scaled": two_sizes(f"{ZONES}, scaling: autoscaler"),
}
every_stack = pytest.mark.parametrize("name", MANIFESTS)


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return compiled_all(tmp_path_factory, "azure", MANIFESTS)


def need_azure() -> None:
    need("azure", ("pulumi-azure-native", "azure-mgmt-containerservice"))


def found(stacks: Mapping[str, Path], name: str, part: str) -> Any:
    need_azure()
    return registered(stacks[name], part, SETTINGS[part])


def pools_of(stacks: Mapping[str, Path], name: str) -> dict[str, Any]:
    return {r.name: r.inputs for r in found(stacks, name, "pools").resources if not r.is_stack}


def on_spare_capacity(plan: Plan) -> Plan:
    """The catalogue has no spot prices of Azure's machines yet, so that no manifest leads there."""
    assert plan.cloud is not None
    key = "kubernetes.azure.com/scalesetpriority"
    groups = tuple(replace(g, capacity="spot", taints=(key,)) for g in plan.cloud.groups)
    return replace(plan, cloud=replace(plan.cloud, groups=groups))


def operator_values(stack: Path) -> dict[str, Any]:
    path = stack / "helm" / "10-gpu-operator" / "values.yaml"
    tree: dict[str, Any] = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return tree


# --- how the programs read ---------------------------------------------------------------------


@every_stack
def test_the_layout_is_the_formatters(stacks: Mapping[str, Path], name: str) -> None:
    check_layout(stacks[name])


def test_text_of_a_person_stays_data(tmp_path: Path) -> None:
    quoted = json.dumps(HOSTILE, ensure_ascii=False)
    text = service().replace("name: small", f"name: small\ndescription: {quoted}")
    for path in programs(compiled(tmp_path, text)):
        ast.parse(path.read_text(encoding="utf-8"))
        assert HOSTILE not in path.read_text(encoding="utf-8")


# --- names that Azure has ----------------------------------------------------------------------


@every_stack
def test_every_value_is_one_that_azure_enumerates(stacks: Mapping[str, Path], name: str) -> None:
    check_values(stacks[name], NAMES["values"], 8)


@pytest.mark.azure
def test_the_names_are_those_of_the_pinned_models() -> None:
    need_azure()
    assert json.loads(generate_names.generate()) == NAMES


def test_nothing_is_set_that_azure_has_no_field_for(stacks: Mapping[str, Path]) -> None:
    tree = ast.parse((stacks["example"] / "cloud" / "pools" / "pools.py").read_text("utf-8"))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]

    def given(function: str) -> set[str]:
        own = (n for n in calls if ast.unparse(n.func).endswith(f".{function}"))
        return {k.arg or "" for n in own for k in n.keywords}

    of_the_call = {"agent_pool_name", "resource_name_", "resource_group_name", "opts"}
    pool = given("AgentPool") - of_the_call
    assert pool
    assert pool <= set(NAMES["fields"]["ManagedClusterAgentPoolProfileProperties"])
    assert given("KubeletConfigArgs") <= set(NAMES["fields"]["KubeletConfig"])


def test_what_aks_cannot_set_is_said_because_it_has_no_field() -> None:
    """The notes about memory, huge pages and drives hold as long as AKS's models have none."""
    words = " ".join(name for names in NAMES["fields"].values() for name in names)
    for absent in ("memory_manager", "reserved_memory", "huge_pages", "hugepages", "raid"):
        assert absent not in words.replace("transparent_huge_page", "")


def test_every_machine_of_the_catalogue_counts_towards_a_family() -> None:
    facts = load_cloud("azure")
    assert facts is not None
    rented = {m.name for m in load_market().instances() if m.provider == "azure"}
    counted = [name for q in facts.quotas for name in q.families]
    assert rented <= set(counted)
    assert len(counted) == len(set(counted))
    begun = [a for a in counted for b in counted if a != b and a.startswith(b)]
    assert not begun, "the beginning of one is another one, which would count both"


# --- what they register ------------------------------------------------------------------------


@pytest.mark.azure
@pytest.mark.parametrize(
    ("name", "part"),
    [(n, p) for n in MANIFESTS for p in SETTINGS if (n, p) != ("adopted", "cluster")],
)
def test_the_program_registers_what_is_listed(
    stacks: Mapping[str, Path], name: str, part: str
) -> None:
    check_listed(found(stacks, name, part), stacks[name] / "cloud" / part)


@pytest.mark.azure
def test_a_new_cluster_is_private_and_lets_people_in_by_entra_alone(
    stacks: Mapping[str, Path],
) -> None:
    resources = {r.type: r for r in found(stacks, "fixed", "cluster").resources}
    made = resources["azure-native:containerservice:ManagedCluster"]
    access = made.inputs["apiServerAccessProfile"]
    assert access["enablePrivateCluster"] is True
    assert access["disableRunCommand"] is True
    assert made.inputs["disableLocalAccounts"] is True
    assert made.inputs["aadProfile"]["enableAzureRBAC"] is True
    assert made.inputs["securityProfile"]["workloadIdentity"]["enabled"] is True
    assert made.inputs["oidcIssuerProfile"]["enabled"] is True
    assert made.protect
    (system,) = made.inputs["agentPoolProfiles"]
    assert (system["mode"], system["availabilityZones"]) == ("System", ["1", "2"])
    assert made.ignore_changes == ("agentPoolProfiles",)
    subnet = resources["azure-native:network:Subnet"]
    assert subnet.inputs["defaultOutboundAccess"] is False


@pytest.mark.azure
def test_a_named_address_opens_the_api_server_to_it_alone(stacks: Mapping[str, Path]) -> None:
    need_azure()
    given = SETTINGS["cluster"] | {"publicAccessCidrs": '["203.0.113.7/32"]'}
    resources = registered(stacks["fixed"], "cluster", given).resources
    (made,) = (r for r in resources if r.type.endswith(":ManagedCluster"))
    access = made.inputs["apiServerAccessProfile"]
    assert access == {"authorizedIPRanges": ["203.0.113.7/32"], "disableRunCommand": True}


@pytest.mark.azure
def test_pools_have_what_their_pods_look_for(stacks: Mapping[str, Path]) -> None:
    plan, made = read_plan(stacks["example"]), pools_of(stacks, "example")
    assert plan.cloud is not None
    for group in plan.cloud.groups:
        pool = next(p for p in plan.node_pools if p.name == group.pool)
        given = made[group.name]
        assert given["vmSize"] == pool.node_type
        labels = given["nodeLabels"] | {"node.kubernetes.io/instance-type": pool.node_type}
        assert selector(plan, pool).items() <= labels.items()
        assert given["nodeTaints"] == ["nvidia.com/gpu=present:NoSchedule"]
        assert given["kubeletConfig"] == {
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "best-effort",
        }
        assert given["enableNodePublicIP"] is False


@pytest.mark.azure
def test_an_empty_pool_is_filled_where_the_autoscaler_knows_what_pods_ask_for(
    stacks: Mapping[str, Path],
) -> None:
    """Of an empty pool it knows whole GPUs: a pool with RDMA devices keeps a node, one that is cut
    its size."""
    made = pools_of(stacks, "example")
    ranges = {n: (p["count"], p.get("minCount"), p.get("maxCount")) for n, p in made.items()}
    (rdma,) = (p for p in read_plan(stacks["example"]).node_pools if p.name == "a100-sxm-40gb-x8")
    most = (1, 1, rdma.node_count)
    assert ranges == {"a100-pcie-80gb-x1": (0, 0, 1), "a100-sxm-40gb-x8": most}
    assert rdma.node_count > 1
    plan = read_plan(stacks["cut-scaled"])
    for pool in pools_of(stacks, "cut-scaled").values():
        assert pool["enableAutoScaling"] is False
    assert sum(p["count"] for p in pools_of(stacks, "cut-scaled").values()) == sum(
        p.node_count for p in plan.node_pools
    )


@pytest.mark.azure
def test_a_reservation_is_taken_by_an_identity_that_may(stacks: Mapping[str, Path]) -> None:
    (pool,) = pools_of(stacks, "reserved").values()
    assert pool["capacityReservationGroupID"] == HELD
    assert pool["availabilityZones"] == ["2"]
    resources = found(stacks, "reserved", "cluster").resources
    scopes = [r.inputs["scope"] for r in resources if r.name == "reservation-0"]
    assert scopes == [HELD.partition("/providers/")[0]]


def test_a_region_without_zones_has_none(stacks: Mapping[str, Path]) -> None:
    text = (stacks["regional"] / "cloud" / "pools" / "pools.py").read_text("utf-8")
    assert "availability_zones" not in text
    assert "in no zone of its own" in text


# --- the driver, and who cuts ------------------------------------------------------------------


def test_one_of_the_two_installs_driver_and_toolkit(stacks: Mapping[str, Path]) -> None:
    assert values(stacks["fixed"], "driver") == ["None"]
    own = operator_values(stacks["fixed"])
    assert "enabled" not in own.get("driver", {})
    assert "toolkit" not in own
    assert values(stacks["by-azure"], "driver") == ["Install"]
    theirs = operator_values(stacks["by-azure"])
    assert theirs["driver"] == theirs["toolkit"] == {"enabled": False}
    assert theirs["operator"]["runtimeClass"] == "nvidia-container-runtime"


def test_one_of_the_two_cuts_the_gpus(stacks: Mapping[str, Path]) -> None:
    assert values(stacks["by-azure"], "gpu_instance_profile") == ["MIG1g"]
    theirs = operator_values(stacks["by-azure"])
    assert theirs["mig"] == {"strategy": "mixed"}
    assert theirs["migManager"] == {"enabled": False}
    assert not list(stacks["by-azure"].rglob("mig-profiles.yaml"))
    assert values(stacks["cut"], "gpu_instance_profile") == []
    text = (stacks["cut"] / "cloud" / "pools" / "pools.py").read_text("utf-8")
    assert '"nvidia.com/mig.config": "gpuplan-' in text
    assert list(stacks["cut"].rglob("mig-profiles.yaml"))


def test_the_disk_lies_on_the_machine_where_its_drive_is_known_to_be_large_enough(
    stacks: Mapping[str, Path],
) -> None:
    plan = read_plan(stacks["example"])
    assert plan.cloud is not None
    facts = load_cloud("azure")
    assert facts is not None
    for group in plan.cloud.groups:
        known = facts.temporary_bytes[group.node_type]
        assert pools.ephemeral(plan, group) == (pools.disk_gib(plan, group) * 2**30 <= known)
        assert not pools.ephemeral(plan, replace(group, temporary_bytes=None))
    assert sorted(values(stacks["example"], "os_disk_type")) == ["Ephemeral", "Managed"]


@pytest.mark.parametrize(("scratch", "told"), [("33 GiB", False), ("34 GiB", True)])
def test_disks_that_are_too_small_for_all_who_are_planned_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scratch: str, told: bool
) -> None:
    """56 on a node, whose disk has 2,048 GiB with 150 for images."""
    asked = notebooks(56, 4).rstrip("}\n") + f"}}, overrides: {{scratch: {scratch}}}}}\n"
    stack = compiled(tmp_path, asked)
    assert values(stack, "os_disk_size_gb") == [min(150 + 56 * int(scratch[:2]), 2048)]
    said = " ".join(capsys.readouterr().err.split())
    assert ("its pods ask for 1.86 TiB of scratch" in said) == told
    assert ("have 1.85 TiB of room beside images: some pods will not start" in said) == told


# --- InfiniBand --------------------------------------------------------------------------------

SCHEMAS = ROOT.parent / "shared" / "data" / "schemas" / "nic-cluster-policy"


def test_network_operator_brings_adapters_to_the_nodes_that_talk(
    stacks: Mapping[str, Path],
) -> None:
    plan = read_plan(stacks["example"])
    (chart,) = (c for c in charts.charts(plan) if c.component.name == charts.NETWORK_OPERATOR)
    (policy,) = charts.behind(plan, chart)
    spec = policy.tree["spec"]
    (term,) = spec["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    chosen = {e["key"]: e["values"] for e in term["matchExpressions"]}
    assert plan.cloud is not None
    talking = [g for g in plan.cloud.groups if g.together]
    assert chosen["gpuplan.dev/pool"] == [g.pool for g in talking]
    tolerated = {t["key"] for t in spec["tolerations"]}
    assert tolerated == {"nvidia.com/gpu"}
    plugin = json.loads(spec["sriovDevicePlugin"]["config"])
    (entry,) = plugin["resourceList"]
    assert f"{entry['resourcePrefix']}/{entry['resourceName']}" == "rdma/ib"
    values_ = (stacks["example"] / chart.folder / "values.yaml").read_text("utf-8")
    assert YAML(typ="safe", pure=True).load(values_) == {"nfd": {"enabled": False}}
    job = next(o for o in lower(plan).objects if o.kind == "Job")
    (engine,) = job.tree["spec"]["template"]["spec"]["containers"]
    assert engine["resources"]["limits"]["rdma/ib"] == "8"
    assert engine["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]


def test_its_plugins_configuration_is_one(stacks: Mapping[str, Path]) -> None:
    path = SCHEMAS / "sriov_network_device_plugin.json"
    if not path.is_file():
        require("crds", f"no schema at hand: {path}")
    plan = read_plan(stacks["example"])
    spec = network_operator.policy(plan, "26.4.1")["spec"]
    config = json.loads(spec["sriovDevicePlugin"]["config"].value)
    jsonschema.validate(config, json.loads(path.read_text(encoding="utf-8")))


def test_no_network_operator_without_infiniband(stacks: Mapping[str, Path]) -> None:
    assert not list(stacks["fixed"].glob("helm/*network*"))


def test_images_of_an_unknown_release_of_the_operator_are_not_made_up(
    stacks: Mapping[str, Path],
) -> None:
    plan = read_plan(stacks["example"])
    other = tuple(
        replace(c, version="27.1.0") if c.name == charts.NETWORK_OPERATOR else c
        for c in plan.components
    )
    found = replace(plan, components=other)
    assert [c.name for c in charts.unknown(found)] == [charts.NETWORK_OPERATOR]
    (said,) = helm.emit(found).diagnostics
    assert said.rule == "GP016"


# --- spare capacity ----------------------------------------------------------------------------


def test_pods_tolerate_what_azure_puts_on_spare_nodes(stacks: Mapping[str, Path]) -> None:
    plan = on_spare_capacity(read_plan(stacks["fixed"]))
    assert plan.cloud is not None
    text = pools.program(plan, plan.cloud)
    assert 'scale_set_priority="Spot"' in text
    assert 'scale_set_eviction_policy="Delete"' in text
    assert '"kubernetes.azure.com/scalesetpriority": "spot"' in text
    assert '"kubernetes.azure.com/scalesetpriority=spot:NoSchedule"' in text
    key = {"key": "kubernetes.azure.com/scalesetpriority", "operator": "Exists"}
    for o in lower(plan).objects:
        if o.kind in ("Deployment", "StatefulSet", "Job"):
            spec = o.tree["spec"]["template"]["spec"]
            assert {**key, "effect": "NoSchedule"} in spec["tolerations"]
    operator = gpu_operator.values(plan)
    assert {**key, "effect": "NoSchedule"} in operator["daemonsets"]["tolerations"].value
    worker = operator["node-feature-discovery"]["worker"]["tolerations"].value
    assert {**key, "effect": "NoSchedule"} in worker
    assert {t["key"] for t in worker} >= {"nvidia.com/gpu", "node-role.kubernetes.io/control-plane"}
    regular = read_plan(stacks["fixed"])
    assert "daemonsets" not in gpu_operator.values(regular)


def test_the_charts_have_what_they_are_given(stacks: Mapping[str, Path]) -> None:
    """A key that a chart does not have is dropped without a word."""
    there = {path for path, _ in leaves(defaults())}
    spot = commented.strip(gpu_operator.values(on_spare_capacity(read_plan(stacks["fixed"]))))[0]
    for tree in (spot, operator_values(stacks["by-azure"]), operator_values(stacks["cut"])):
        given = {path for path, _ in leaves(tree) if path[0] != "dcgmExporter"}
        assert given
        for path in given:
            assert any(p[: len(path)] == path[: len(p)] for p in there), path


# --- support -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("day", "severity"), [("2026-12-01", None), ("2027-03-15", "warning"), ("2027-06-02", "error")]
)
def test_the_end_of_support_is_found(
    day: str, severity: str | None, stacks: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest release of the catalogue, until the first day of the month that Azure states."""
    main(["check", str(stacks["fixed"]), "--as-of", day, "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    own = [f for f in findings if f["rule"] == "GP607"]
    assert [f["severity"] for f in own] == ([severity] if severity else [])


# --- names of pools ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stack", "name"),
    [("small", "h100-sxm-80gb-x8"), ("s" * 40, "4090-x1"), ("a", "b200-sxm-192gb-x8-whole")],
)
def test_azure_takes_the_name_of_a_pool(stack: str, name: str, stacks: Mapping[str, Path]) -> None:
    plan = replace(read_plan(stacks["fixed"]), name=stack)
    assert plan.cloud is not None
    group = replace(plan.cloud.groups[0], name=name)
    assert re.fullmatch(r"[a-z][a-z0-9]{0,11}", pools.pool_name(plan, group))


def test_pools_that_differ_behind_what_azure_reads_have_names_of_their_own(
    stacks: Mapping[str, Path],
) -> None:
    """`pool-h100` and `poolh100` differ in what AKS does not take; stacks may share a cluster."""
    plan = read_plan(stacks["fixed"])
    assert plan.cloud is not None
    groups = [
        replace(plan.cloud.groups[0], name=n) for n in ("pool-h100", "poolh100", "pool-h1-00")
    ]
    names = {pools.pool_name(replace(plan, name=s), g) for s in ("a", "b") for g in groups}
    assert len(names) == 6
    twice = replace(plan.cloud, groups=(groups[0], groups[0]))
    (problem,) = pools.problems(plan, twice)
    assert problem.rule == "GP018"


# --- a cluster that is there -------------------------------------------------------------------

MOCKED = """
import json, pulumi, runpy, sys

class Cloud(pulumi.runtime.Mocks):
    def new_resource(self, args):
        sys.stdout.write(f"resource {args.typ} {args.name}\\n")
        return f"{args.name}-id", args.inputs

    def call(self, args):
        sys.stdout.write(f"call {args.token} {json.dumps(args.args)}\\n")
        pools = [{"name": "system", "vnetSubnetID": sys.argv[1] or None}]
        return {"name": args.args["resourceName"], "agentPoolProfiles": pools}

pulumi.runtime.set_mocks(Cloud(), preview=False)
pulumi.runtime.set_all_config({"project:resourceGroup": "own"})
sys.path.insert(0, ".")
import existing

@pulumi.runtime.test
def found():
    names = pulumi.Output.all(existing.name, existing.resource_group, existing.subnet)
    return names.apply(lambda values: sys.stdout.write(f"found {values}\\n"))

found()
"""


@pytest.mark.azure
@pytest.mark.parametrize("subnet", ["/subscriptions/1/subnets/nodes", ""])
def test_an_existing_cluster_is_only_asked_for(stacks: Mapping[str, Path], subnet: str) -> None:
    need_azure()
    folder = stacks["adopted"] / "cloud" / "cluster"
    done = subprocess.run(
        [sys.executable, "-c", MOCKED, subnet],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("call")] == [
        "azure-native:containerservice:getManagedCluster"
    ]
    assert f"found ['shared', 'own', '{subnet}']" in lines
    assert not [line for line in lines if line.startswith("resource")]
    assert list(cluster.resources(read_plan(stacks["adopted"]).cloud)) == []  # type: ignore[arg-type]


# --- what is refused, and what is said -----------------------------------------------------------


def refusals() -> Iterator[Any]:
    yield service(cluster="zones: [us-east-1a]"), "is not how target 'aks' writes a zone"
    yield service().replace("  region: eastus\n", ""), "needs to know its region"
    fabric = "  fabric: {kind: efa, bandwidth_per_gpu: 50 Gb/s}\n  cluster"
    yield service().replace("  cluster", fabric), "have no efa"
    yield service(cluster=f"{ZONES}, scaling: karpenter"), "has no scaling 'karpenter'"
    yield (
        service(cluster=f"{ZONES}, driver: provider").replace(
            "  cluster", '  versions: {driver: "580.126.20"}\n  cluster'
        ),
        "takes the GPU driver that is in the image",
    )
    yield two_sizes(f"{ZONES}, driver: provider"), "cuts all GPUs of a pool by one profile"
    yield EXAMPLE.replace("scaling: autoscaler", "driver: provider"), "does not load nvidia-peermem"
    yield EXAMPLE.replace("Standard_ND96asr_v4", "Standard_NC96ads_A100_v4"), "has no InfiniBand"
    old = '  versions: {kubernetes: "1.32"}\n  cluster'
    yield service().replace("  cluster", old), "no source states how long Kubernetes 1.32"
    yield (
        service(cluster=RESERVED.replace(HELD, "trainers")),
        "is not how target 'aks' writes a res",
    )
    yield service(cluster=f"{ZONES}, existing: '-x'"), "existing"
    yield (
        service("Standard_NV36ads_A10_v5", f"{ZONES}, driver: operator"),
        "takes AKS's driver for graphics",
    )


@pytest.mark.parametrize(("text", "words"), [*refusals()], ids=range(12))
def test_what_a_cluster_cannot_be_is_said(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused(tmp_path, text, capsys)


def test_what_aks_cannot_express_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled(tmp_path, EXAMPLE.replace("scaling: autoscaler", "scaling: fixed"))
    said = " ".join(capsys.readouterr().err.split())
    assert "aligns CPUs and GPUs, and neither memory nor huge pages" in said
    assert "does not let a pool ask for one placement group" in said
    compiled_each(tmp_path, {"h100": service("Standard_ND96isr_H100_v5")})
    assert "NVMe drives of Standard_ND96isr_H100_v5 stay unused" in " ".join(
        capsys.readouterr().err.split()
    )
    compiled_each(tmp_path, {"a10": service("Standard_NC8ads_A10_v4").replace("eastus", "westus3")})
    said = " ".join(capsys.readouterr().err.split())
    assert "AKS installs the driver of all pools, and GPU operator none" in said
    assert values(tmp_path / "a10" / "out" / "small", "driver") == ["Install"]
    compiled_each(tmp_path, {"cut": MANIFESTS["cut-scaled"]})
    assert "is cut by MIG and keeps its size" in " ".join(capsys.readouterr().err.split())
