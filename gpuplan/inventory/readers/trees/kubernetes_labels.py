"""What labels say of a node's GPUs: NVIDIA's GPU feature discovery, and those of clouds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.catalog.clouds import load_cloud
from gpuplan.catalog.market import load_market
from gpuplan.diagnostics import Diagnostic, Related, Severity, note
from gpuplan.frozen import record
from gpuplan.inventory.facts import Subject
from gpuplan.inventory.names import gpu_types
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
ACCELERATOR = "cloud.google.com/gke-accelerator"
PRODUCTS = (
    PRODUCT_LABEL,
    "amd.com/gpu.product-name",
    ACCELERATOR,
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
)
INSTANCES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
COUNTS = ("nvidia.com/gpu.count", "karpenter.k8s.aws/instance-gpu-count")
MEMORIES = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory")  # MiB
RESOURCES = (GPU_RESOURCE, "amd.com/gpu")
SHARED = (
    "nvidia.com/gpu.sharing-strategy",
    "cloud.google.com/gke-gpu-sharing-strategy",
    "cloud.google.com/gke-gpu-partition-size",
)


@record
class Machine:
    """What the catalogue says of a node's instance type: its GPU's identifier and their number,
    each where the label stands."""

    product: Word
    gpus: Word


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


@record
class Node:
    """A node called `name`, by its labels and what it can give out."""

    name: str
    labels: Json
    capacity: Json

    def label(self, names: Iterable[str]) -> Word | None:
        """The first of these labels that says something."""
        return next((w for name in names if (w := self.labels.text(name)) and w.text), None)

    def given(self) -> Word | None:
        """How many whole GPUs, or shares of them, it gives out."""
        words = (self.capacity.text(name) for name in RESOURCES)
        return next((w for w in words if w and whole(w.text)), None)


def _machine(node: Node) -> Machine | None:
    word = node.label(INSTANCES)
    listed = load_market().instance(word.text) if word else None
    if word is None or listed is None or not listed[1].gpus:
        return None
    product = Word(text=listed[1].gpu, place=word.place)
    return Machine(product=product, gpus=Word(text=str(listed[1].gpus), place=word.place))


def _product(node: Node, machine: Machine | None) -> Word | None:
    """What a label names, where the catalogue knows it; else what the instance type or Google's
    accelerator has: a cloud's word for its GPUs may be that of several."""
    product = node.label(PRODUCTS)
    if product and gpu_types([node_product(product.text).product]):
        return product
    return machine.product if machine else _accelerated(node) or product


def _accelerated(node: Node) -> Word | None:
    """The one GPU of all machines with the node's accelerator."""
    word, cloud = node.labels.text(ACCELERATOR), load_cloud("gcp")
    if word is None or cloud is None:
        return None
    machines = (m for m in load_market().instances() if m.provider == "gcp")
    known = {m.gpu for m in machines if cloud.accelerator(m.name) == word.text}
    return Word(text=known.pop(), place=word.place) if len(known) == 1 else None


def gpus(gathering: Gathering, node: Node) -> None:
    """Facts of the node's one product: how many GPUs, their memory, whether MIG is on."""
    machine = _machine(node)
    product = _product(node, machine)
    if product is None:
        _nameless(gathering, node)
        return
    named = node_product(product.text)
    subject = "product", named.product
    virtual = node.labels.text("nvidia.com/vgpu.present")
    if virtual and virtual.text == "true":
        gathering.problems.append(parts_counted(node.name, "virtual GPUs of a guest", virtual))
        return
    if named.cut:
        gathering.problems.append(parts_counted(node.name, "MIG devices", product))
        gathering.add(subject, "mig", "on", product.place)
        return
    shared = named.shared or any((w := node.label([n])) and w.text != "none" for n in SHARED)
    stated = node.label(COUNTS) or (machine.gpus if machine else None)
    _count(gathering, node, subject, stated, shared=shared)
    _memory(gathering, node, subject)
    _mig(gathering, node, subject, stated)


def _nameless(gathering: Gathering, node: Node) -> None:
    for resource in (*RESOURCES, *(n for n in node.capacity.members if _profile(n))):
        word = node.capacity.text(resource)
        if word and whole(word.text):
            expected = "known: no label names its product"
            remedy = "install GPU feature discovery, or add the node's `nvidia-smi -q -x`"
            gathering.not_understood(f"the {resource} of {node.name}", word, expected, remedy)


def _count(
    gathering: Gathering, node: Node, subject: Subject, stated: Word | None, *, shared: bool
) -> None:
    """Physical GPUs: those `stated` by a label or an instance type, else what the node gives out,
    by the replicas of each."""
    given = node.given()
    word = node.labels.text("nvidia.com/gpu.replicas")
    replicas = whole(word.text) or 1 if word else 1
    if stated is None:
        total = whole(given.text) or 0 if given else 0
        if given and (total % replicas or (shared and replicas == 1)):
            gathering.problems.append(parts_counted(node.name, "shares of GPUs", given))
        elif given:
            gathering.add(subject, "gpus", total // replicas, given.place)
        return
    count = whole(stated.text)
    if count is None:
        gathering.not_understood(f"the number of GPUs of {node.name}", stated, "a number")
        return
    gathering.add(subject, "gpus", count, stated.place)
    expected = count * replicas
    known = not shared or replicas > 1  # how many share one
    if given and known and whole(given.text) != expected and not any(_profiles(node)):
        gathering.problems.append(capacity_differs(node.name, stated, given, expected))


def _memory(gathering: Gathering, node: Node, subject: Subject) -> None:
    word = node.label(MEMORIES)
    size = whole(word.text) if word else None
    size = size if size is None or size <= MOST_MIB else None  # some wrote bytes
    if word and size is None:
        gathering.not_understood(f"the GPU memory of {node.name}", word, "a number of MiB")
    if word and size:
        gathering.add(subject, "memory_bytes", size * MIB, word.place)


def _profile(resource: str) -> PartitionName | None:
    """The profile of a resource like `nvidia.com/mig-1g.10gb`."""
    return counted_profile(f"{resource}.count")


def _profiles(node: Node) -> Iterator[tuple[PartitionName, Word]]:
    """MIG profiles of which the node has devices, with their numbers: the labels', else those that
    it gives out."""
    for tree, of in ((node.labels, counted_profile), (node.capacity, _profile)):
        counted = ((of(name), tree.text(name)) for name in tree.members)
        devices = [(p, word) for p, word in counted if p and word and whole(word.text)]
        if devices:
            yield from sorted(devices, key=lambda pair: pair[0])
            return


def _mig(gathering: Gathering, node: Node, subject: Subject, stated: Word | None) -> None:
    """On where there are MIG devices, off where the last configuration switched all off."""
    profiles = [*_profiles(node)]
    config, state = (node.labels.text(MIG_CONFIG_LABEL + end) for end in ("", ".state"))
    applied = config.text if config and state and state.text == "success" else ""
    if profiles:
        place = profiles[0][1].place
        gathering.add(subject, "mig", "on", place)
        each = _of_each_gpu(profiles, stated) if applied.startswith("all-") else ()
        if each:
            gathering.add(subject, "mig_profiles", each, place)
        else:
            gathering.problems.append(spread_unknown(node.name, profiles[0][1]))
    elif config and applied == "all-disabled":
        gathering.add(subject, "mig", "off", config.place)


def _of_each_gpu(
    profiles: list[tuple[PartitionName, Word]], stated: Word | None
) -> tuple[PartitionName, ...]:
    """The profiles of one GPU where a configuration of the name `all-…` made all GPUs alike."""
    gpus = whole(stated.text) if stated else None
    counts = [(profile, whole(w.text) or 0) for profile, w in profiles]
    if not gpus or any(count % gpus or count // gpus > MOST_DEVICES for _, count in counts):
        return ()
    return tuple(profile for profile, count in counts for _ in range(count // gpus))
