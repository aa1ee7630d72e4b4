"""Partitions of an NVSwitch board: the sets of GPUs that a fabric manager can give to one guest.

Default partitions and their numbers: NVIDIA Fabric Manager User Guide, "GPU Partitions" (HGX A100;
HGX H100, also H200, H800 and H20; HGX B200/B300). GPUs are numbered by module, which is not the
order of their PCI addresses.
"""

from __future__ import annotations

from gpuplan.catalog.model import Gpu
from gpuplan.plan.model import record

BOARD_GPUS = 8  # boards of four GPUs are linked directly and have no partitions


@record
class Partition:
    """`number` is what the fabric manager calls it; `modules` count from 1."""

    number: int
    modules: tuple[int, ...]


def _numbered(first: int, *groups: tuple[int, ...]) -> tuple[Partition, ...]:
    return tuple(Partition(number=first + i, modules=group) for i, group in enumerate(groups))


_BOARD = tuple(range(1, 9))
_HALVES = ((1, 2, 3, 4), (5, 6, 7, 8))
_NEIGHBOURS = ((1, 2), (3, 4), (5, 6), (7, 8))
_CROSSED = ((1, 3), (2, 4), (5, 7), (6, 8))
_SINGLES = tuple((module,) for module in _BOARD)

PARTITIONS = {
    "ampere": (
        *_numbered(1, _BOARD),
        *_numbered(7, *_HALVES),
        *_numbered(11, *_NEIGHBOURS),
        *_numbered(19, *_SINGLES),
    ),
    "hopper": _numbered(0, _BOARD, *_HALVES, *_CROSSED, *_SINGLES),
    "blackwell": _numbered(1, _BOARD, *_HALVES, *_NEIGHBOURS, *_SINGLES),
}


def partitions(gpu: Gpu, gpus_on_host: int) -> tuple[Partition, ...]:
    """The partitions of a host's board; none where its GPUs are not behind NVSwitches."""
    if not gpu.form_factor.casefold().startswith("sxm") or gpus_on_host != BOARD_GPUS:
        return ()
    family = gpu.architecture.casefold()
    return next((p for name, p in PARTITIONS.items() if family.startswith(name)), ())
