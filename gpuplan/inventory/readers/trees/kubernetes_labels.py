"""What labels say of a node's GPUs: NVIDIA's GPU feature discovery, and those of clouds."""

from __future__ import annotations

from gpuplan.diagnostics import Diagnostic, Related, Severity, note
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.jsonread import Json
from gpuplan.inventory.readers.words import Word, whole
from gpuplan.plan.partitions import (
    GPU_RESOURCE,
    MIG_CONFIG_LABEL,
    PRODUCT_LABEL,
    PartitionName,
    counted_profile,
    node_product,
)

TOOL = "kubectl"
MIB = 1 << 20
MOST_MIB = 1 << 22  # 4 TiB
MOST_DEVICES = 7  # of one GPU
# Labels with a product, and with the number of physical GPUs. Sources: k8s-device-plugin,
# docs/gpu-feature-discovery; GKE, EKS and Karpenter documentation of node labels.
PRODUCTS = (
    PRODUCT_LABEL,
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
)
COUNTS = ("nvidia.com/gpu.count", "karpenter.k8s.aws/instance-gpu-count")
MEMORIES = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory")  # MiB
RESOURCES = (GPU_RESOURCE, "amd.com/gpu")
SHARED = (
    "nvidia.com/gpu.sharing-strategy",
    "cloud.google.com/gke-gpu-sharing-strategy",
    "cloud.google.com/gke-gpu-partition-size",
)


def parts_counted(node: str, fact: str, word: Word) -> Diagnostic:
    return note(
        "GP063",
        f"{node} counts {fact}, not GPUs: how many GPUs it has is not told",
        word.place,
        help="add the node's `nvidia-smi -q -x`",
    )


def spread_unknown(node: str, word: Word) -> Diagnostic:
    return note(
        "GP063",
        f"{node} counts MIG devices of all its GPUs: which GPU has which is not told",
        word.place,
        help="add the node's `nvidia-smi mig -lgi`",
    )


def capacity_differs(node: str, label: Word, capacity: Word, expected: int) -> Diagnostic:
    return Diagnostic(
        rule="GP064",
        severity=Severity.WARNING,
        message=f"{node} has {label.text} GPUs by its label and can give out {capacity.text}, "
        f"where {expected} are expected",
        origin=capacity.place,
        label="the label is used: it counts GPUs",
        help="a GPU may be unhealthy, or shared without a label that says so",
        related=(Related("the label", label.place),),
    )


def gpus(gathering: Gathering, node: str, labels: Json, capacity: Json) -> None:
    """Facts of the node's one product: how many GPUs, their memory, whether MIG is on."""
    product = next((w for name in PRODUCTS if (w := labels.text(name)) and w.text), None)
    if product is None:
        _nameless(gathering, node, capacity)
        return
    named = node_product(product.text)
    subject = "product", named.product
    virtual = labels.text("nvidia.com/vgpu.present")
    if virtual and virtual.text == "true":
        gathering.problems.append(parts_counted(node, "virtual GPUs of a guest", virtual))
        return
    if named.cut:
        gathering.problems.append(parts_counted(node, "MIG devices", product))
        gathering.add(subject, "mig", "on", product.place)
        return
    _count(gathering, node, subject, labels, capacity, shared=named.shared)
    _memory(gathering, node, subject, labels)
    _mig(gathering, node, subject, labels)


def _nameless(gathering: Gathering, node: str, capacity: Json) -> None:
    for resource in RESOURCES:
        word = capacity.text(resource)
        if word and whole(word.text):
            expected = "known: no label names its product"
            remedy = "install GPU feature discovery, or add the node's `nvidia-smi -q -x`"
            gathering.not_understood(f"the {resource} of {node}", word, expected, remedy)


def _count(
    gathering: Gathering,
    node: str,
    subject: tuple[str, str],
    labels: Json,
    capacity: Json,
    *,
    shared: bool,
) -> None:
    """Physical GPUs: the label's, else what the node gives out, by the replicas of each."""
    label = next((w for name in COUNTS if (w := labels.text(name))), None)
    given = next((w for name in RESOURCES if (w := capacity.text(name)) and whole(w.text)), None)
    word = labels.text("nvidia.com/gpu.replicas")
    replicas = whole(word.text) or 1 if word else 1
    if label is None:
        shared = shared or any((w := labels.text(n)) and w.text != "none" for n in SHARED)
        total = whole(given.text) or 0 if given else 0
        if given and (total % replicas or (shared and replicas == 1)):
            gathering.problems.append(parts_counted(node, "shares of GPUs", given))
        elif given:
            gathering.add(subject, "gpus", total // replicas, given.place)
        return
    count = whole(label.text)
    if count is None:
        gathering.not_understood(f"the number of GPUs of {node}", label, "a number")
        return
    gathering.add(subject, "gpus", count, label.place)
    expected = count * replicas
    if given and whole(given.text) != expected and not _profiles(labels):
        gathering.problems.append(capacity_differs(node, label, given, expected))


def _memory(gathering: Gathering, node: str, subject: tuple[str, str], labels: Json) -> None:
    word = next((w for name in MEMORIES if (w := labels.text(name))), None)
    size = whole(word.text) if word else None
    size = size if size is None or size <= MOST_MIB else None  # some wrote bytes
    if word and size is None:
        gathering.not_understood(f"the GPU memory of {node}", word, "a number of MiB")
    if word and size:
        gathering.add(subject, "memory_bytes", size * MIB, word.place)


def _profiles(labels: Json) -> list[tuple[PartitionName, Word]]:
    """MIG profiles of which the node has devices, with their numbers."""
    counted = ((counted_profile(name), labels.text(name)) for name in labels.members)
    devices = [(p, word) for p, word in counted if p and word and whole(word.text)]
    return sorted(devices, key=lambda pair: pair[0])


def _mig(gathering: Gathering, node: str, subject: tuple[str, str], labels: Json) -> None:
    """On where there are MIG devices, off where the last configuration switched all off."""
    profiles = _profiles(labels)
    config, state = (labels.text(MIG_CONFIG_LABEL + end) for end in ("", ".state"))
    applied = config.text if config and state and state.text == "success" else ""
    if profiles:
        place = profiles[0][1].place
        gathering.add(subject, "mig", "on", place)
        each = _of_each_gpu(profiles, labels) if applied.startswith("all-") else ()
        if each:
            gathering.add(subject, "mig_profiles", each, place)
        else:
            gathering.problems.append(spread_unknown(node, profiles[0][1]))
    elif config and applied == "all-disabled":
        gathering.add(subject, "mig", "off", config.place)


def _of_each_gpu(
    profiles: list[tuple[PartitionName, Word]], labels: Json
) -> tuple[PartitionName, ...]:
    """The profiles of one GPU where a configuration of the name `all-…` made all GPUs alike."""
    word = next((w for name in COUNTS if (w := labels.text(name))), None)
    gpus = whole(word.text) if word else None
    counts = [(profile, whole(w.text) or 0) for profile, w in profiles]
    if not gpus or any(count % gpus or count // gpus > MOST_DEVICES for _, count in counts):
        return ()
    return tuple(profile for profile, count in counts for _ in range(count // gpus))
