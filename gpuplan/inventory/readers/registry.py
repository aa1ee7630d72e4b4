"""The readers, each of one tool's output."""

from __future__ import annotations

from gpuplan.inventory.facts import Reader
from gpuplan.inventory.readers.amd import amd_smi, rocm_smi
from gpuplan.inventory.readers.bus import (
    device_links,
    holders,
    ibstat,
    iommu_groups,
    lsblk,
    lspci,
    lspci_machine,
    lspci_tree,
    routes,
    virtual_functions,
)
from gpuplan.inventory.readers.cpu import cmdline, lscpu, meminfo, numactl
from gpuplan.inventory.readers.nvidia import (
    dcgm,
    nvidia_csv,
    nvidia_fault,
    nvidia_list,
    nvidia_mig,
    nvidia_text,
    nvidia_xml,
    nvlink,
    topo,
)
from gpuplan.inventory.readers.trees import hwloc, kubernetes_describe, kubernetes_nodes, nccl

XML: tuple[Reader, ...] = (
    hwloc.READER,
    nccl.READER,
    nvidia_xml.READER,
)
JSON: tuple[Reader, ...] = (
    amd_smi.READER,
    kubernetes_nodes.READER,
    lsblk.READER,
    lscpu.READER,
    *routes.READERS,
)
LINES: tuple[Reader, ...] = (
    cmdline.READER,
    dcgm.READER,
    device_links.READER,
    *holders.READERS,
    ibstat.READER,
    iommu_groups.READER,
    kubernetes_describe.READER,
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
    rocm_smi.READER,
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
