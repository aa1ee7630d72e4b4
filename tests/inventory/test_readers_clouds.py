"""Nodes of clouds: what instance types, capacities and `kubectl describe` say of their GPUs."""

from __future__ import annotations

import pytest

from gpuplan.inventory.facts import Reading
from gpuplan.inventory.readers.registry import likely
from gpuplan.inventory.readers.trees import kubernetes_describe
from gpuplan.source import SourceDocument
from tests.inventory.test_readers_trees import node, of, one

TYPE, GKE = "node.kubernetes.io/instance-type", "cloud.google.com/gke-accelerator"
# `kubectl describe nodes`, in the tool's form.
DESCRIBED = """\
Name:               gke-gpu-pool-1
Roles:              <none>
Labels:             beta.kubernetes.io/arch=amd64
                    cloud.google.com/gke-accelerator=nvidia-h200-141gb
                    node.kubernetes.io/instance-type=a3-ultragpu-8g
                    topology.kubernetes.io/zone=us-central1-a
Annotations:        container.googleapis.com/instance_id: 123
CreationTimestamp:  Mon, 05 Jan 2026 10:00:00 +0000
Taints:             nvidia.com/gpu=present:NoSchedule
                    other=:NoExecute
Unschedulable:      false
Conditions:
  Type             Status  Reason   Message
  ----             ------  ------   -------
  Ready            True    KubeletReady  ok
Addresses:
  InternalIP:  10.0.0.1
Capacity:
  cpu:                224
  ephemeral-storage:  95335888Ki
  hugepages-1Gi:      0
  memory:             3019898Mi
  nvidia.com/gpu:     8
  pods:               110
Allocatable:
  cpu:                223430m
  memory:             2900000Mi
  nvidia.com/gpu:     8
System Info:
  Machine ID:                 abc
  Kernel Version:             6.6.72
  Operating System:           linux
  Architecture:               amd64
  Kubelet Version:            v1.32.4-gke.1
ProviderID:                   gce://p/us-central1-a/x
Non-terminated Pods:          (1 in total)
  Namespace                   Name    CPU Requests
  ---------                   ----    ------------
  kube-system                 a       100m (0%)
Allocated resources:
  Resource           Requests   Limits
  cpu                1 (0%)     0 (0%)
Events:              <none>


Name:               n2
Labels:             nvidia.com/gpu.product=NVIDIA-L4
                    nvidia.com/gpu.count=2
Taints:             <none>
Capacity:
  cpu:                24
  memory:             98Gi
  nvidia.com/gpu:     2
System Info:
  Architecture:               amd64
  Kubelet Version:            v1.32.4
"""


@pytest.mark.parametrize(
    ("machine", "accelerator", "gpu", "count"),
    [
        ("a2-highgpu-8g", "nvidia-tesla-a100", "a100-sxm-40gb", 8),
        ("a2-ultragpu-1g", "nvidia-a100-80gb", "a100-sxm-80gb", 1),
        ("a3-highgpu-8g", "nvidia-h100-80gb", "h100-sxm-80gb", 8),
        ("a3-ultragpu-8g", "nvidia-h200-141gb", "h200-sxm-141gb", 8),
        ("g4-standard-48", "nvidia-rtx-pro-6000", "rtx-pro-6000-server", 1),
        ("p5.48xlarge", "", "h100-sxm-80gb", 8),
        ("Standard_ND96isr_H100_v5", "nvidia", "h100-sxm-80gb", 8),
    ],
)
def test_an_instance_type_says_which_gpus_and_how_many(
    machine: str, accelerator: str, gpu: str, count: int
) -> None:
    labels = {TYPE: machine} | ({GKE: accelerator} if accelerator else {})
    reading = one(node(labels, {"nvidia.com/gpu": str(count)}))
    assert of(reading, "product", gpu) == {"gpus": count}
    assert not reading.problems


@pytest.mark.parametrize(
    ("accelerator", "gpu"),
    [
        ("nvidia-tesla-a100", "a100-sxm-40gb"),
        ("nvidia-a100-80gb", "a100-sxm-80gb"),
        ("nvidia-h100-80gb", "h100-sxm-80gb"),
        ("nvidia-h200-141gb", "h200-sxm-141gb"),
        ("nvidia-rtx-pro-6000", "rtx-pro-6000-server"),
        ("nvidia-tesla-v100", "nvidia-tesla-v100"),
    ],
)
def test_an_accelerator_alone_says_which_gpu(accelerator: str, gpu: str) -> None:
    """Where all machines that Google gives it to have one; else nothing is made up."""
    reading = one(node({GKE: accelerator}, {"nvidia.com/gpu": "4"}))
    assert of(reading, "product", gpu)["gpus"] == 4


def test_a_node_that_gives_out_fewer_than_its_instance_type_has_is_told() -> None:
    reading = one(node({TYPE: "p5.48xlarge"}, {"nvidia.com/gpu": "7"}))
    assert [p.rule for p in reading.problems] == ["GP064"]


def test_shares_of_an_instance_type_s_gpus_are_no_gpus() -> None:
    labels = {TYPE: "g2-standard-24", GKE: "nvidia-l4"}
    labels["cloud.google.com/gke-gpu-sharing-strategy"] = "time-sharing"
    reading = one(node(labels, {"nvidia.com/gpu": "8"}))
    assert of(reading, "product", "nvidia-l4") == {"gpus": 2}
    assert not reading.problems


def test_parts_that_only_the_capacity_names_are_mig() -> None:
    parts = {"nvidia.com/mig-1g.10gb": "56", "nvidia.com/gpu": "0"}
    reading = one(node({TYPE: "p5.48xlarge"}, parts))
    assert of(reading, "product", "h100-sxm-80gb") == {"gpus": 8, "mig": "on"}
    nameless = one(node({}, parts))
    assert [p.rule for p in nameless.problems] == ["GP063"]


def described(text: str) -> list[Reading]:
    document = SourceDocument("nodes.txt", text)
    assert [r for r in likely(text) if r.recognises(text)] == [kubernetes_describe.READER]
    return [*kubernetes_describe.READER.read(document)]


def test_described_nodes_say_what_their_json_does() -> None:
    first, second = described("$ kubectl describe nodes\n" + DESCRIBED + "$ exit\n")
    assert (first.host, second.host) == ("gke-gpu-pool-1", "n2")
    assert of(first, "product", "h200-sxm-141gb") == {"gpus": 8}
    assert of(second, "product", "NVIDIA-L4") == {"gpus": 2}
    host = of(first, "host", "")
    assert host["memory_bytes"] == 3_019_898 << 20
    assert host["cpu_count"] == 224
    assert host["kubelet_version"] == "v1.32.4-gke.1"
    assert host["taints"] == ("nvidia.com/gpu=present:NoSchedule", "other=:NoExecute")
    assert not first.problems


@pytest.mark.parametrize("lines", range(3, 60, 4))
def test_a_description_that_is_cut_makes_nothing_up(lines: int) -> None:
    whole = {
        (r.host, *f.subject, f.attribute): f.value for r in described(DESCRIBED) for f in r.facts
    }
    cut = "\n".join(DESCRIBED.split("\n")[:lines])
    if not kubernetes_describe.READER.recognises(cut):
        return
    for reading in kubernetes_describe.READER.read(SourceDocument("nodes.txt", cut)):
        for fact in reading.facts:
            assert whole[reading.host, *fact.subject, fact.attribute] == fact.value
