"""The readers, each of one tool's output."""

from __future__ import annotations

from gpuplan.inventory.facts import Reader
from gpuplan.inventory.readers import (
    cmdline,
    dcgm,
    device_links,
    hwloc,
    ibstat,
    iommu_groups,
    kubernetes_nodes,
    lsblk,
    lscpu,
    lspci,
    lspci_machine,
    lspci_tree,
    meminfo,
    nccl,
    numactl,
    nvidia_csv,
    nvidia_fault,
    nvidia_list,
    nvidia_mig,
    nvidia_text,
    nvidia_xml,
    nvlink,
    topo,
    virtual_functions,
)

XML: tuple[Reader, ...] = (
    hwloc.READER,
    nccl.READER,
    nvidia_xml.READER,
)
JSON: tuple[Reader, ...] = (
    kubernetes_nodes.READER,
    lsblk.READER,
    lscpu.READER,
)
LINES: tuple[Reader, ...] = (
    cmdline.READER,
    dcgm.READER,
    device_links.READER,
    ibstat.READER,
    iommu_groups.READER,
    lspci.READER,
    lspci_machine.READER,
    lspci_tree.READER,
    meminfo.READER,
    numactl.READER,
    nvidia_csv.READER,
    nvidia_fault.READER,
    nvidia_list.READER,
    nvidia_mig.READER,
    nvidia_text.READER,
    nvlink.READER,
    topo.READER,
    virtual_functions.READER,
)
READERS = (*XML, *JSON, *LINES)


def likely(text: str) -> tuple[Reader, ...]:
    """The readers that may know a text. One that is XML or JSON from end to end is no other tool's:
    looking through hundreds of kilobytes for each of them takes longer than reading it."""
    start, end = text.lstrip()[:1], text.rstrip()[-1:]
    if (start, end) == ("<", ">"):
        return XML
    return JSON if (start, end) in {("{", "}"), ("[", "]")} else READERS
