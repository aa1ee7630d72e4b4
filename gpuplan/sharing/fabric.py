"""NVSwitch boards: the sets of GPUs that a fabric manager gives to one guest."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpuplan.catalog.model import FabricPartition, Gpu


def fabric_partitions(gpu: Gpu, gpus_on_host: int) -> tuple[FabricPartition, ...]:
    """The partitions of a host's board; none where its GPUs are not behind NVSwitches: boards of
    fewer GPUs are linked directly."""
    board = gpu.fabric_board
    return board.partitions if board is not None and board.gpus == gpus_on_host else ()


def on_modules(
    board: Sequence[FabricPartition], modules: Collection[int | None]
) -> list[FabricPartition]:
    """The partitions of a board all of whose GPUs are among these modules of it."""
    return [p for p in board if all(m in modules for m in p.modules)]


def undescribed(gpu: Gpu) -> bool:
    """Whether NVSwitches join such GPUs in partitions that no source lists."""
    fabric = gpu.nvlink_fabric
    return fabric is not None and fabric.kind == "switch" and gpu.fabric_board is None
