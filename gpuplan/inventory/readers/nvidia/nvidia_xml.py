"""`nvidia-smi -q -x`: document types v9 to v13, also with other text around the XML."""

from __future__ import annotations

from gpuplan.inventory.facts import Reader, Reading, Subject
from gpuplan.inventory.readers.gather import HOST, Gathering
from gpuplan.inventory.readers.nvidia.nvidia_fields import (
    add_count,
    add_gpu,
    add_identities,
    lookup,
)
from gpuplan.inventory.readers.words import absent, pci_address, size_bytes
from gpuplan.inventory.readers.xmlread import Element, Root, mentions, read
from gpuplan.source import Place, SourceDocument

TOOL = "nvidia-smi -q -x"
ROOT = "nvidia_smi_log"
_PATHS: dict[str, tuple[str, ...]] = {
    "product": ("product_name",),
    "uuid": ("uuid",),
    "address": ("pci/pci_bus_id",),
    "pci_id": ("pci/pci_device_id",),
    "memory_bytes": ("fb_memory_usage/total", "memory_usage/total"),
    "bar_bytes": ("bar1_memory_usage/total",),
    "mig": ("mig_mode/current_mig",),
    "module_id": ("platformInfo/module_id", "module_id", "gpu_module_id"),
    "watts": (
        "gpu_power_readings/current_power_limit",
        "power_readings/enforced_power_limit",
        "power_readings/current_power_limit",
        "power_readings/power_limit",
    ),
    "pcie_generation": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",),
    "pcie_width": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
    "fabric": ("fabric/state",),
    "virtualization": ("gpu_virtualization_mode/virtualization_mode",),
}
_NO_CLUSTER = "00000000-0000-0000-0000-000000000000"


def _recognises(text: str) -> bool:
    return mentions(text, ROOT)


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    return tuple(_reading(document, tree) for tree in read(document, ROOT, TOOL))


def _reading(document: SourceDocument, tree: Root) -> Reading:
    gathering = Gathering(TOOL, document.name, problems=list(tree.problems))
    if tree.root is None:
        return gathering.reading()
    driver = tree.root.value("driver_version")
    if driver and not absent(driver.text):
        gathering.add(HOST, "driver_version", driver.text, driver.place)
    listed = [
        gpu for element in tree.root.all("gpu") if (gpu := _gpu(gathering, element)) is not None
    ]
    add_identities(gathering, [subject for subject, _ in listed])
    if not tree.problems:
        add_count(gathering, tree.root.value("attached_gpus"), listed)
    return gathering.reading()


def _gpu(gathering: Gathering, element: Element) -> tuple[Subject, Place] | None:
    word = element.attribute("id") or element.value("pci/pci_bus_id")
    address = pci_address(word.text) if word else None
    if word is None or address is None:
        at = word or element.word()
        gathering.not_understood("the address of a GPU", at, "a PCI address")
        return None
    subject = "gpu", address
    if subject in gathering.subjects:
        expected = "another GPU's: it is listed twice"
        gathering.not_understood("the address of a GPU", word, expected)
        return None
    gathering.add(subject, "address", address, word.place)
    words = lookup(element, _PATHS)
    if element.closed:
        add_gpu(gathering, subject, words, word.place)
    else:  # what it lacks, the tree has reported
        said = {name: value for name, value in words.items() if value is not None}
        add_gpu(gathering, subject, said, word.place)
    _fabric(gathering, subject, element)
    _mig_devices(gathering, subject, element)
    return subject, word.place


def _fabric(gathering: Gathering, subject: Subject, element: Element) -> None:
    """A domain of NVLink that is larger than the host has a cluster's UUID."""
    cluster, clique = element.value("fabric/clusterUuid"), element.value("fabric/cliqueId")
    if cluster is None or clique is None or absent(cluster.text) or absent(clique.text):
        return
    if cluster.text != _NO_CLUSTER:
        value = f"{cluster.text}/{clique.text}"
        gathering.add(subject, "fabric_clique", value, cluster.place)


def _mig_devices(gathering: Gathering, subject: Subject, element: Element) -> None:
    """The sizes of MIG devices: their profiles are not in this output."""
    devices = element.find("mig_devices")
    if devices is None or not devices.closed or not devices.all("mig_device"):
        return
    sizes = []
    for device in devices.all("mig_device"):
        own = device.value("fb_memory_usage/total")
        word = own or device.value("shared_fb_memory_usage/total") or device.word()
        size = size_bytes(word.text)
        if size is None:
            fact = f"the memory of a MIG device of GPU {subject[1]}"
            gathering.not_understood(fact, word, "a size in MiB")
            return
        sizes.append(size)
    gathering.add(subject, "mig_memory_bytes", tuple(sizes), devices.place)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
