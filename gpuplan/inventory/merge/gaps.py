"""What placement needs of a host and no tool said, each with the command that would say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.inventory.merge.cpu import Nodes
from gpuplan.inventory.merge.item import Item
from gpuplan.inventory.merge.messages import Gap
from gpuplan.inventory.words import CARD_USES, DRIVE_USES, UNKNOWN
from gpuplan.source import Place

# Field of the host: what it is called, what needs it, which command says it.
OF_HOST = (
    ("cpu_vendor", "the maker of the CPUs", "kernel parameters", "add `lscpu`"),
    (
        "physical_address_bits",
        "the physical address bits",
        "the guests' window for GPU memory",
        'add `lscpu`, which prints them under "Address sizes"',
    ),
    ("threads_per_core", "the threads of a core", "counting cores", "add `lscpu`"),
)
# Kinds of devices, and fields of theirs.
OF_DEVICES = (
    ("gpu", "type", "the product", "sizing", "add `nvidia-smi -q -x`, or `lspci -Dnn`"),
    ("gpu", "address", "the PCI address", "guests", "add `nvidia-smi -q -x`"),
    ("gpu", "numa_node", "the NUMA node", "placing work near", "add `nvidia-smi topo -m`"),
    (
        "gpu",
        "iommu_group",
        "the IOMMU group",
        "keeping a group in one guest",
        "add `find /sys/kernel/iommu_groups -type l`",
    ),
    (
        "gpu",
        "mig_instances",
        "the MIG instances",
        "knowing what is taken",
        "add `nvidia-smi mig -lgi`",
    ),
    ("nic", "type", "the product", "knowing what they can do", "add `lspci -Dnn`"),
    ("nic", "address", "the PCI address", "guests", "add `lstopo --of xml`"),
    ("nic", "numa_node", "the NUMA node", "placing work near", "add `lspci -D -vvv`"),
    ("nvme", "size", "the size", "scratch space", "add `lsblk -J -b`, or `lstopo --of xml`"),
    (
        "nvme",
        "in_use",
        "the host's use",
        "giving them to guests",
        f"add `{DRIVE_USES}` (`gpuplan inventory collect` runs it)",
    ),
    (
        "nic",
        "in_use",
        "the host's use",
        "giving their functions to guests",
        f"add `{CARD_USES}` and `ip -json -details address`",
    ),
    ("nvme", "numa_node", "the NUMA node", "placing work near", "add `lspci -D -vvv`"),
)
ATTRIBUTES = {"type": "product", "size": "size_bytes", "mig_instances": "mig_devices"}
NAMES = {"gpu": "GPU", "nic": "network card", "nvme": "drive"}


def gaps(
    name: str, host: Item, nodes: Nodes, devices: Sequence[Item], start: Place | None
) -> Iterator[Gap]:
    guest = "virtualization" in host.tree
    for field, fact, purpose, remedy in OF_HOST:
        needless = guest and field == "physical_address_bits"
        if field not in host.tree and not needless and not host.of.said.get(field):
            yield _gap(name, fact, purpose, remedy, start)
    yield from _of_nodes(name, host, nodes, start)
    if not any(item.of.kind == "gpu" for item in devices):
        remedy = "if it has any, add `nvidia-smi -q -x`, or `lspci`"
        yield _gap(name, "the GPUs", "sizing", remedy, start)
    for kind, field, fact, purpose, remedy in OF_DEVICES:
        without = [i for i in devices if i.of.kind == kind and _lacks(i, field, nodes)]
        if without and not (guest and field in ("iommu_group", "in_use")):
            count = sum(i.of.kind == kind for i in devices)
            yield _gap(
                name,
                f"{fact} of {_of(len(without), count, NAMES[kind])}",
                purpose,
                remedy,
                without[0].of.place() or start,
            )


def _gap(
    host: str, fact: str, purpose: str, remedy: str, at: Place | None, *, label: str = ""
) -> Gap:
    return Gap(host=host, fact=fact, purpose=purpose, remedy=remedy, at=at, label=label)


def _lacks(item: Item, field: str, nodes: Nodes) -> bool:
    if field == "numa_node" and len(nodes.items) < 2:
        return False
    if field == "mig_instances" and not _partitioned(item):
        return False
    attribute = ATTRIBUTES.get(field, field)
    if item.of.said.get(attribute) and item.value(attribute) is None:
        return False  # the tools contradict each other, which is said
    return bool(item.tree.get(field, UNKNOWN) == UNKNOWN)


def _partitioned(item: Item) -> bool:
    """A tool says that there are MIG instances, maybe not which."""
    return any(item.of.said.get(a) for a in ("mig_memory_bytes", "mig_devices"))


def _of(without: int, count: int, noun: str) -> str:
    if count == 1:
        return f"the {noun}"
    return f"{count} {noun}s" if without == count else f"{without} of {count} {noun}s"


def _of_nodes(name: str, host: Item, nodes: Nodes, start: Place | None) -> Iterator[Gap]:
    if not nodes.items and nodes.disputed:
        return
    if not nodes.items:
        remedy = "add `lscpu` and `numactl -H`, or `lstopo --of xml`"
        yield _gap(name, "the NUMA nodes", "pinning guests", remedy, start)
        if "memory" not in host.tree:
            yield _gap(name, "the memory", "placing work", "add `numactl -H`", start)
        return
    without = [i for i in nodes.items if "memory" not in i.tree]
    if without:
        empty = all(v == 0 for i in without for v in i.of.values("memory_bytes"))
        stated = all(i.of.values("memory_bytes") for i in without)
        label = "it has none of its own" if empty and stated else ""
        fact = f"the memory of {_of(len(without), len(nodes.items), 'NUMA node')}"
        yield _gap(name, fact, "huge pages", "add `numactl -H`", without[0].of.place(), label=label)
    alone = host.value("threads_per_core") == 1
    if not alone and any("siblings" not in i.tree for i in nodes.items):
        yield _gap(
            name,
            "which threads share a core",
            "giving guests whole cores",
            "add `lscpu -e`, or `lstopo --of xml`",
            nodes.items[0].of.place(),
            label="taken as split: first all first threads, then all second ones",
        )
    if len(nodes.items) > 1 and any("distances" not in i.tree for i in nodes.items):
        yield _gap(name, "the distances of NUMA nodes", "near memory", "add `numactl -H`", start)
