"""The guest's 64-bit window for device memory, which must hold the GPUs' BARs.

OVMF gives an eighth of the address space that the CPU has, at most 46 bits of it, and more only
when `opt/ovmf/X-PciMmio64Mb` asks; the window starts at a multiple of its size above the memory. A
bridge's range is a multiple of its biggest BAR, so a GPU's big BAR and its small ones take two.
Sources: edk2 OvmfPkg/Library/PlatformInitLib/MemDetect.c (`PlatformDynamicMmioWindow`); NVIDIA's
vGPU documentation asks for the same (256 GiB for an H100 with a BAR of 128 GiB).
"""

from __future__ import annotations

from gpuplan.backends.libvirt.pci import groups
from gpuplan.plan.model import VirtualMachine, record
from gpuplan.units import GIB, MIB

FIRMWARE_BITS = 46
LOW_MEMORY_BYTES = 2 * GIB  # q35 maps the memory from 2 GiB up above 4 GiB
OTHER_DEVICES_BYTES = GIB  # all that is not a GPU's big BAR


@record
class Window:
    """`needed_bytes` of window; `asked_bytes` where the firmware's own does not suffice; `fits`
    says whether the address space has it."""

    needed_bytes: int
    asked_bytes: int | None
    fits: bool

    @property
    def megabytes(self) -> int | None:
        return None if self.asked_bytes is None else self.asked_bytes // MIB


def window(machine: VirtualMachine) -> Window:
    """The window for `machine`. Without known address bits it asks for what is needed."""
    bars = sum(_group_bytes([d.bar_bytes for d in g]) for g in groups(machine.devices))
    needed = bars + OTHER_DEVICES_BYTES if bars else 0
    bits = machine.physical_address_bits
    usable = min(bits or FIRMWARE_BITS, FIRMWARE_BITS)
    if needed == 0 or (bits is not None and needed <= 2 ** (usable - 3)):
        return Window(needed_bytes=needed, asked_bytes=None, fits=True)
    size = 1 << (needed - 1).bit_length()
    top = machine.memory_bytes + LOW_MEMORY_BYTES
    start = -(-top // size) * size
    return Window(needed_bytes=needed, asked_bytes=size, fits=start + size <= 2**usable)


def _group_bytes(bars: list[int | None]) -> int:
    """What a bridge takes: all BARs and something small, rounded up to the biggest."""
    big = [b for b in bars if b]
    return 0 if not big else (sum(big) // max(big) + 1) * max(big)
