"""Programs for clusters that clouds manage: their types, their resources, the names that they use.

The SDK's arguments are texts: what values a cloud has is held against its own models.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.backends.pulumi.clouds.aws import generate_names, karpenter, nodeconfig, pools
from gpuplan.catalog.clouds import load_cloud
from gpuplan.catalog.market import load_market
from gpuplan.kubernetes.nodes import rdma_devices, selector
from gpuplan.plan.outside.cloud import NetworkCards
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
EXAMPLE = (ROOT / "examples" / "eks.yaml").read_text(encoding="utf-8")
NAMES: dict[str, list[str]] = json.loads(generate_names.NAMES.read_text(encoding="utf-8"))
ADDONS = ("vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent", "aws-ebs-csi-driver")
SETTINGS = {
    "cluster": {
        "administrators": '["arn:aws:iam::123456789012:role/operators"]',
    },
    "pools": {"clusterStack": "own/eks-cluster/dev"},
}
SERVICE = """\
apiVersion: gpuplan.dev/v1
name: small
platform:
  target: eks
  region: us-east-1
  nodes: [NODE]
  cluster: {CLUSTER}
workloads:
- name: chat
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 200}
"""
ZONES = "zones: [us-east-1a, us-east-1b]"


def service(node: str = "g6e.2xlarge", cluster: str = ZONES) -> str:
    return SERVICE.replace("NODE", node).replace("CLUSTER", cluster)


BLOCK = (
    f"{ZONES}, reservations: [{{node: p5.48xlarge, id: cr-0123456789abcdef0, kind: block,"
    " zone: us-east-1b}]"
)
RESERVED = BLOCK.replace("kind: block", "kind: on-demand, placement_group: trainers")
NOTEBOOKS = service("p4d.24xlarge").partition("workloads:")[0] + (
    "workloads:\n- {name: desks, task: notebook, notebook: {users: 10, gpu_memory: 9 GiB}}\n"
)
MANIFESTS = {
    "example": EXAMPLE,
    "fixed": service(),
    "adopted": service(cluster=f"existing: shared, {ZONES}"),
    "block": service("p5.48xlarge", BLOCK),
    "reserved": EXAMPLE.replace("p4d.24xlarge", "p5.48xlarge").replace(
        "    scaling: autoscaler\n", f"    {RESERVED.partition(', ')[2].partition(', ')[2]}\n"
    ),
    "cut": NOTEBOOKS,
    "karpenter": EXAMPLE.replace("scaling: autoscaler", "scaling: karpenter"),
}
every_stack = pytest.mark.parametrize("name", MANIFESTS)


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return compiled_all(tmp_path_factory, "aws", MANIFESTS)


def need_aws() -> None:
    need("aws", ("pulumi-aws", "botocore"))


def node_config(stack: Path, group: str) -> dict[str, Any]:
    """What nodeadm reads: the one part of the MIME message, as YAML."""
    text = (stack / "cloud" / "pools" / "nodes" / f"{group}.txt").read_text(encoding="utf-8")
    (part,) = message_from_string(text).get_payload()
    assert part.get_content_type() == "application/node.eks.aws"
    tree: dict[str, Any] = YAML(typ="safe", pure=True).load(part.get_payload())
    return tree["spec"]


# --- how the programs read ---------------------------------------------------------------------


@every_stack
def test_the_layout_is_the_formatters(stacks: Mapping[str, Path], name: str) -> None:
    check_layout(stacks[name])


def test_text_of_a_person_stays_data(tmp_path: Path) -> None:
    quoted = json.dumps(HOSTILE, ensure_ascii=False)
    stack = compiled(
        tmp_path, service().replace("name: small", f"name: small\ndescription: {quoted}")
    )
    for path in programs(stack):
        ast.parse(path.read_text(encoding="utf-8"))
        assert HOSTILE not in path.read_text(encoding="utf-8")
    project = (stack / "cloud" / "pools" / "Pulumi.yaml").read_text(encoding="utf-8")
    assert YAML(typ="safe", pure=True).load(project)["description"] == HOSTILE


# --- names that AWS has ------------------------------------------------------------------------


@every_stack
def test_every_value_is_one_that_aws_enumerates(stacks: Mapping[str, Path], name: str) -> None:
    check_values(stacks[name], NAMES, 5)


def test_every_machine_of_the_catalogue_is_one_of_ec2() -> None:
    rented = {m.name for m in load_market().instances() if m.provider == "aws"}
    assert rented <= set(NAMES["instance_types"])


@pytest.mark.aws
def test_the_names_are_those_of_the_pinned_models() -> None:
    need_aws()
    assert json.loads(generate_names.generate()) == NAMES


def test_efa_interfaces_are_those_that_the_catalogue_counts() -> None:
    facts = load_cloud("aws")
    assert facts is not None
    machines = [m for m in load_market().instances() if m.provider == "aws" and m.rdma]
    unlisted = {m.name for m in machines if m.name not in facts.interfaces}
    assert {name.partition(".")[0] for name in unlisted} == {"g7"}, "newer than the list of cards"
    for machine in (m for m in machines if m.name not in unlisted):
        cards = facts.interfaces[machine.name]
        devices = cards.cards - (cards.first == "interface")
        assert machine.rdma is not None
        assert devices == machine.rdma.interfaces, machine.name


# --- versions of what AWS installs ---------------------------------------------------------------


@pytest.mark.aws
def test_addons_and_image_are_pinned_where_a_source_states_them(stacks: Mapping[str, Path]) -> None:
    """The settings' own defaults, so that a first `pulumi up` needs neither."""
    need_aws()
    facts = load_cloud("aws")
    assert facts is not None
    (release,) = (r for r in facts.releases if r.version == "1.35")
    assert release.addons
    assert release.image
    made = found_in(stacks["example"], "cluster").resources
    versions = {
        r.inputs["addonName"]: r.inputs["addonVersion"]
        for r in made
        if r.type == "aws:eks/addon:Addon"
    }
    assert versions == dict(release.addons.versions)
    groups = found_in(stacks["example"], "pools").resources
    images = {r.inputs["releaseVersion"] for r in groups if "nodeGroup" in r.type}
    assert images == {release.image.release}
    text = (stacks["example"] / "README.md").read_text(encoding="utf-8")
    assert f"with driver {release.image.driver} (" in text


def test_versions_that_no_source_states_are_asked_for(tmp_path: Path) -> None:
    older = service().replace("  nodes:", "  versions: {kubernetes: '1.34'}\n  nodes:")
    stack = compiled(tmp_path, older)
    tree = YAML(typ="safe", pure=True).load(
        (stack / "cloud" / "cluster" / "Pulumi.yaml").read_text(encoding="utf-8")
    )
    assert "default" not in tree["config"]["addonVersions"]
    readme = (stack / "README.md").read_text(encoding="utf-8")
    assert "addonVersions.$name" in readme.partition("Its nodes:")[0]


# --- what they register ------------------------------------------------------------------------


def found_in(stack: Path, part: str) -> Any:
    need_aws()
    given = SETTINGS[part] | ({"context": "eks"} if part == "pools" else {})
    return registered(stack, part, given)


@pytest.mark.aws
@pytest.mark.parametrize(
    ("name", "part"),
    [(n, p) for n in MANIFESTS for p in SETTINGS if (n, p) != ("adopted", "cluster")],
)
def test_the_program_registers_what_is_listed(
    stacks: Mapping[str, Path], name: str, part: str
) -> None:
    check_listed(found_in(stacks[name], part), stacks[name] / "cloud" / part)


@pytest.mark.aws
def test_the_nodes_of_a_fine_tune_talk_over_efa_in_one_zone(stacks: Mapping[str, Path]) -> None:
    found = {(r.type, r.name): r.inputs for r in found_in(stacks["example"], "pools").resources}
    template = found["aws:ec2/launchTemplate:LaunchTemplate", "a100-sxm-40gb-x8"]
    cards = template["networkInterfaces"]
    shape = [(c["networkCardIndex"], c["deviceIndex"], c["interfaceType"]) for c in cards]
    assert shape == [(0, 0, "efa"), (1, 1, "efa-only"), (2, 1, "efa-only"), (3, 1, "efa-only")]
    assert "vpcSecurityGroupIds" not in template
    assert template["metadataOptions"] == {"httpTokens": "required", "httpPutResponseHopLimit": 1}
    group = found["aws:eks/nodeGroup:NodeGroup", "a100-sxm-40gb-x8"]
    assert len(group["subnetIds"]) == 1
    assert group["instanceTypes"] == ["p4d.24xlarge"]
    (planned,) = (
        p for p in read_plan(stacks["example"]).node_pools if p.name == "a100-sxm-40gb-x8"
    )
    nodes = planned.node_count
    assert nodes > 1
    assert group["scalingConfig"] == {"minSize": 0, "desiredSize": 0, "maxSize": nodes}
    assert group["taints"] == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    ]
    plain = found["aws:ec2/launchTemplate:LaunchTemplate", "l40s-x1"]
    assert "networkInterfaces" not in plain


@pytest.mark.aws
def test_rights_come_before_the_cluster_and_tokens_alone_reach_metadata(
    stacks: Mapping[str, Path],
) -> None:
    resources = found_in(stacks["fixed"], "cluster").resources
    (cluster,) = (r for r in resources if r.type == "aws:eks/cluster:Cluster")
    rights = {u.rpartition("::")[2] for u in cluster.dependencies}
    assert "cluster-AmazonEKSClusterPolicy" in rights
    assert cluster.protect
    access = cluster.inputs["accessConfig"]
    assert access["authenticationMode"] == "API"
    assert access["bootstrapClusterCreatorAdminPermissions"] is False
    for template in (r for r in resources if r.type == "aws:ec2/launchTemplate:LaunchTemplate"):
        assert template.inputs["metadataOptions"]["httpTokens"] == "required"
    nodes = {r.name for r in resources if r.name.startswith("nodes-")}
    assert nodes == {"nodes-AmazonEKSWorkerNodePolicy", "nodes-AmazonEC2ContainerRegistryPullOnly"}


def test_the_first_card_of_b300_has_no_efa(stacks: Mapping[str, Path]) -> None:
    facts = load_cloud("aws")
    assert facts is not None
    fact = facts.interfaces["p6-b300.48xlarge"]
    cards = NetworkCards(cards=fact.cards, first=fact.first, source=fact.source)
    assert cards.devices == 16
    plan = read_plan(stacks["example"])
    assert plan.cloud is not None
    groups = tuple(replace(g, network_cards=cards) for g in plan.cloud.groups)
    cloud = replace(plan.cloud, groups=groups)
    assert 'interfaces(17, "interface")' in pools.program(plan, cloud)
    own = replace(plan, cloud=cloud)
    pool = next(p for p in plan.node_pools if p.gpus_per_node == 8)
    assert [rdma_devices(own, pool, gpus) for gpus in (1, 4, 8)] == [2, 8, 16]


def test_an_empty_group_says_what_its_pods_look_for(stacks: Mapping[str, Path]) -> None:
    """What feature discovery and plugins add later, a pod of the plan asks for now."""
    stack = stacks["example"]
    text = (stack / "cloud" / "pools" / "groups.py").read_text(encoding="utf-8")
    given = [ast.literal_eval(n) for n in ast.walk(ast.parse(text)) if is_hint(n)]
    plan = read_plan(stack)
    for pool in plan.node_pools:
        (tags,) = (t for t in given if t[f"{HINT}/label/gpuplan.dev/pool"] == pool.name)
        for key, value in selector(plan, pool).items():
            if key != "node.kubernetes.io/instance-type":  # the autoscaler knows it by itself
                assert tags[f"{HINT}/label/{key}"] == value
        assert tags[f"{HINT}/resources/nvidia.com/gpu"] == str(pool.gpus_per_node)
        assert tags[f"{HINT}/taint/nvidia.com/gpu"] == "present:NoSchedule"
        assert int(tags[f"{HINT}/resources/ephemeral-storage"].removesuffix("G")) >= 300
    devices = [t.get(f"{HINT}/resources/vpc.amazonaws.com/efa") for t in given]
    assert sorted(filter(None, devices)) == ["4"]


HINT = "k8s.io/cluster-autoscaler/node-template"


def is_hint(node: ast.AST) -> bool:
    keys = node.keys if isinstance(node, ast.Dict) else ()
    return any(isinstance(k, ast.Constant) and str(k.value).startswith(HINT) for k in keys)


def test_a_block_names_its_machine_in_the_template_alone(stacks: Mapping[str, Path]) -> None:
    stack = stacks["block"]
    assert values(stack, "market_type") == ["capacity-block"]
    assert values(stack, "capacity_type") == ["CAPACITY_BLOCK"]
    assert values(stack, "capacity_reservation_id") == ["cr-0123456789abcdef0"]
    assert values(stack, "instance_type") == ["p5.48xlarge"]
    text = (stack / "cloud" / "pools" / "groups.py").read_text(encoding="utf-8")
    assert "instance_types" not in text
    assert 'subnet_ids=[subnet("us-east-1b")]' in text


@pytest.mark.parametrize(("capacity", "type_"), [("spot", "SPOT"), ("on-demand", "ON_DEMAND")])
def test_capacity_is_asked_for_as_planned(
    capacity: Any, type_: str, stacks: Mapping[str, Path]
) -> None:
    """The catalogue has no prices of spare capacity of AWS, so no manifest leads there yet."""
    plan = read_plan(stacks["fixed"])
    assert plan.cloud is not None
    (group,) = plan.cloud.groups
    cloud = replace(plan.cloud, groups=(replace(group, capacity=capacity),))
    assert f'capacity_type="{type_}"' in pools.program(plan, cloud)
    assert f'"values": ["{capacity}"]' in " ".join(karpenter.program(plan, cloud).split())


@pytest.mark.parametrize(
    ("machine", "image"),
    [("g5g.16xlarge", "AL2023_ARM_64_NVIDIA"), ("p5.48xlarge", "AL2023_x86_64_NVIDIA")],
)
def test_a_machine_has_the_image_of_its_processor(
    machine: str, image: str, stacks: Mapping[str, Path]
) -> None:
    plan = read_plan(stacks["fixed"])
    assert plan.cloud is not None
    groups = tuple(replace(g, node_type=machine) for g in plan.cloud.groups)
    assert f'ami_type="{image}"' in pools.program(plan, replace(plan.cloud, groups=groups))


def test_names_of_node_groups_are_short_enough(stacks: Mapping[str, Path]) -> None:
    plan = read_plan(stacks["fixed"])
    assert plan.cloud is not None
    name = len(plan.cloud.groups[0].name)
    for length, problems in ((62 - name, 0), (63 - name, 1)):
        found = [*pools.problems(replace(plan, name="s" * length), plan.cloud)]
        assert len(found) == problems


def test_reserved_machines_stand_in_the_group_that_they_were_reserved_with(
    stacks: Mapping[str, Path],
) -> None:
    stack = stacks["reserved"]
    assert values(stack, "capacity_reservation_id") == ["cr-0123456789abcdef0"]
    assert values(stack, "group_name") == ["trainers"]
    assert values(stack, "strategy") == []


def test_a_pool_that_is_cut_in_several_ways_is_as_many_groups(stacks: Mapping[str, Path]) -> None:
    plan = YAML(typ="safe", pure=True).load(
        (stacks["cut"] / "plan.yaml").read_text(encoding="utf-8")
    )
    layouts = [(p["name"], n) for p in plan["node_pools"] for n, _ in enumerate(p["layouts"])]
    groups = plan["cloud"]["groups"]
    assert [(g["pool"], g.get("layout")) for g in groups if "layout" in g] == layouts
    assert sum(g["count"] for g in groups) == sum(p["node_count"] for p in plan["node_pools"])
    text = (stacks["cut"] / "cloud" / "pools" / "groups.py").read_text(encoding="utf-8")
    assert text.count('"nvidia.com/mig.config": "gpuplan-') == len(layouts)
    operator = (stacks["cut"] / "helm" / "10-gpu-operator" / "values.yaml").read_text("utf-8")
    values_ = YAML(typ="safe", pure=True).load(operator)
    assert values_["driver"] == values_["toolkit"] == {"enabled": False}
    assert values_["migManager"]["env"] == [{"name": "WITH_REBOOT", "value": "true"}]


@pytest.mark.aws
def test_karpenter_starts_the_planned_machines_alone(stacks: Mapping[str, Path]) -> None:
    """It would take one large machine for pods that two small ones hold for less."""
    plan = read_plan(stacks["karpenter"])
    assert plan.cloud is not None
    found = {(r.type, r.name): r.inputs for r in found_in(stacks["karpenter"], "pools").resources}
    for group in plan.cloud.groups:
        pool = next(p for p in plan.node_pools if p.name == group.pool)
        spec = found["kubernetes:karpenter.sh/v1:NodePool", group.name]["spec"]
        inner = spec["template"]["spec"]
        given = {r["key"]: r["values"] for r in inner["requirements"]}
        assert given["node.kubernetes.io/instance-type"] == [pool.node_type]
        assert given["topology.kubernetes.io/zone"] == list(group.zones)
        assert spec["limits"]["nvidia.com/gpu"] == str(pool.node_count * pool.gpus_per_node)
        labels = spec["template"]["metadata"]["labels"] | {
            "node.kubernetes.io/instance-type": pool.node_type
        }
        assert selector(plan, pool).items() <= labels.items()
        node_class = found["kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", group.name]
        assert node_class["metadata"]["name"] == inner["nodeClassRef"]["name"]
        assert node_class["spec"]["amiSelectorTerms"] == [{"alias": "al2023@v20260714"}]


# --- how nodes are set up ----------------------------------------------------------------------


def test_memory_is_aligned_where_numa_nodes_are_known(stacks: Mapping[str, Path]) -> None:
    """The kubelet does not start where reserved memory is not what it keeps and evicts for."""
    known = node_config(stacks["example"], "a100-sxm-40gb-x8")["kubelet"]["config"]
    kept = known["kubeReserved"]["memory"], known["evictionHard"]["memory.available"]
    total = sum(int(text.removesuffix("Mi")) for text in kept)
    reserved = sum(int(r["limits"]["memory"].removesuffix("Mi")) for r in known["reservedMemory"])
    assert (known["memoryManagerPolicy"], reserved) == ("Static", total)
    assert known["cpuManagerPolicy"] == "static"
    unknown = node_config(stacks["example"], "l40s-x1")
    assert "memoryManagerPolicy" not in unknown["kubelet"]["config"]
    assert unknown["instance"]["localStorage"]["strategy"] == "RAID0"


def test_reserved_cpus_are_those_that_the_catalogue_leaves_out() -> None:
    """Karpenter's table, from which allocatable CPUs are, follows nodeadm."""
    for machine in (m for m in load_market().instances() if m.provider == "aws"):
        if machine.vcpus and machine.allocatable_millicores:
            left = 1000 * machine.vcpus - machine.allocatable_millicores
            assert nodeconfig.reserved_millicores(machine.vcpus) == left, machine.name


# --- a cluster that is there -------------------------------------------------------------------

MOCKED = """
import json, pulumi, runpy, sys

class Cloud(pulumi.runtime.Mocks):
    def new_resource(self, args):
        sys.stdout.write(f"resource {args.typ} {args.name}\\n")
        return f"{args.name}-id", {**args.inputs, "arn": f"arn:{args.name}"}

    def call(self, args):
        sys.stdout.write(f"call {args.token} {json.dumps(args.args)}\\n")
        config = {"clusterSecurityGroupId": "sg-1", "vpcId": "vpc-1", "subnetIds": []}
        return {"name": args.args["name"], "vpcConfig": config}

pulumi.runtime.set_mocks(Cloud(), preview=False)
subnets = {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"}
pulumi.runtime.set_all_config({"project:subnetIds": json.dumps(subnets)})
sys.path.insert(0, ".")
import existing

@pulumi.runtime.test
def found():
    names = pulumi.Output.all(existing.security_group, existing.vpc_id, existing.cluster.name)
    return names.apply(lambda values: sys.stdout.write(f"found {values}\\n"))

found()
"""


@pytest.mark.aws
def test_an_existing_cluster_is_only_asked_for(stacks: Mapping[str, Path]) -> None:
    need_aws()
    folder = stacks["adopted"] / "cloud" / "cluster"
    done = subprocess.run(
        [sys.executable, "-c", MOCKED], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert 'call aws:eks/getCluster:getCluster {"name": "shared"}' in lines
    assert "found ['sg-1', 'vpc-1', 'shared']" in lines
    made = {line.split()[1] for line in lines if line.startswith("resource")}
    assert made == {"aws:iam/role:Role", "aws:iam/rolePolicyAttachment:RolePolicyAttachment"}


# --- what is refused ---------------------------------------------------------------------------


def refusals() -> Iterator[Any]:
    yield service(cluster="scaling: fixed"), "needs to know its zones"
    yield service(cluster="zones: [us-east-1a]"), "needs subnets in 2 zones or more"
    yield service(cluster="zones: [us-east-1a, us-west-2b]"), "'us-west-2b' is not in region"
    yield service().replace("  region: us-east-1\n", ""), "needs to know its region"
    fabric = "  fabric: {kind: infiniband, bandwidth_per_gpu: 50 Gb/s}\n  cluster"
    yield service().replace("  cluster", fabric), "have no infiniband"
    driver = '  versions: {driver: "580.126.20"}\n  cluster'
    yield service().replace("  cluster", driver), "the GPU driver that is in the image"
    yield NOTEBOOKS.replace(ZONES, f"{ZONES}, scaling: karpenter"), "Karpenter starts no node for"
    old = '  versions: {kubernetes: "1.32"}\n  cluster'
    yield service().replace("  cluster", old), "no source states how long Kubernetes 1.32"
    yield service("p5.48xlarge", BLOCK.replace("1b}", "1c}")), "is in us-east-1c, where"
    abroad = BLOCK.replace("zone: us-east-1b", "zone: us-west-2a")
    yield service("p5.48xlarge", abroad), "is in us-west-2a, which is not in region 'us-east-1'"
    many = NOTEBOOKS.replace("p4d.24xlarge", "p5.48xlarge").replace(ZONES, BLOCK)
    many = many.replace("users: 10, gpu_memory: 9 GiB", "users: 513, gpu_memory: 70 GiB")
    yield many, "has 65 nodes, and a Capacity Block at most 64"


@pytest.mark.parametrize(("text", "words"), [*refusals()], ids=range(11))
def test_what_a_cluster_cannot_be_is_said(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused(tmp_path, text, capsys)
