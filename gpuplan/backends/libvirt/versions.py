"""The least versions of what a host runs, each with the reason and its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.plan.model import VirtualMachine, record


@record
class Requirement:
    """`version` or later of `program`; `command` prints the one that is there. `date` is that of
    the source, where it has one."""

    program: str
    version: str
    purpose: str
    command: str
    source: str
    date: str | None = None


LINUX = "uname -r"
LIBVIRT = "virsh --version"
ALWAYS = (
    Requirement(
        program="Linux",
        version="5.16",
        purpose="counts of huge pages by NUMA node on the kernel line",
        command=LINUX,
        source="Linux commit b5389086ad7b, hugepages=NODE:COUNT",
    ),
    Requirement(
        program="libvirt",
        version="8.7.0",
        purpose="the host's physical address bits in guests (maxphysaddr)",
        command=LIBVIRT,
        source="libvirt.org/formatdomain.html, maxphysaddr",
    ),
    Requirement(
        program="OVMF",
        version="2022.11",
        purpose="a window for GPUs' memory as large as the guest's address space allows",
        command="dpkg-query --show --showformat '${Version}' ovmf",
        source="edk2-stable202211, OvmfPkg PlatformDynamicMmioWindow",
    ),
)
VGPU_FUNCTIONS = (
    Requirement(
        program="Linux",
        version="6.8",
        purpose="vGPUs on virtual functions",
        command=LINUX,
        source="NVIDIA vGPU 17 user guide, vendor-specific VFIO framework; kubevirt #17642",
        date="2026-04-29",
    ),
    Requirement(
        program="libvirt",
        version="10.0.0",
        purpose="vGPUs on virtual functions, whose driver is not vfio-pci but a variant of it",
        command=LIBVIRT,
        source="libvirt commit 82e2fac29710, which binds to VFIO variant drivers",
    ),
)


def requirements(machines: Sequence[VirtualMachine]) -> Iterator[Requirement]:
    """What the host of `machines` needs: of each program the latest version."""
    functions = any(d.kind == "vgpu" and d.parent for m in machines for d in m.devices)
    stricter = {r.program: r for r in VGPU_FUNCTIONS if functions}
    for requirement in ALWAYS:
        yield stricter.get(requirement.program, requirement)
