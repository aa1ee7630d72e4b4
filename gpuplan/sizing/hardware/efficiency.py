"""Measured kernel efficiencies of a GPU: its own where measured, else its nearest relative's.

A kernel is five or seven numbers (`KERNEL`). They are fractions of the GPU's own
peaks, so a relative's apply to another GPU, compute by what both reach in large matrix products;
what is predicted with them counts as extrapolated.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from gpuplan.catalog.model import Fact, Gpu
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.reached import reached

Row = tuple[float, ...]
Kernel = dict[str, Quantity]

# A kernel's numbers, in the order of the rows of `data/kernels.json`; experts have all seven.
KERNEL = ("launch", "read", "small", "compute", "norm", "spread", "tile")

SOURCE = "tables of aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0, 2026-08-21)"
ENGINES = ("vllm", "sglang", "tensorrt-llm")

_RELATIVES = {
    "hopper": "h100-sxm-80gb",
    "ada": "l40s",
    "ampere": "a100-sxm-80gb",
    "turing": "a100-sxm-80gb",
    "volta": "a100-sxm-80gb",
    "cdna3": "h200-sxm-141gb",
    "cdna4": "b200-sxm-180gb",
    "rdna3": "l40s",
}
# Where a GPU's tables lack a kernel.
_STANDINS = ("h100-sxm-80gb", "b200-sxm-180gb")
# Number formats to fall back on, nearest first, where a table lacks the one that is asked for.
_NEAREST = {
    "bf16": ("bf16",),
    "fp16": ("bf16",),
    "fp8": ("fp8", "fp8-block", "bf16"),
    "fp8-block": ("fp8-block", "fp8", "bf16"),
    "int8": ("fp8", "bf16"),
    "int4": ("int4", "bf16"),
    "nvfp4": ("nvfp4", "mxfp4", "fp8", "bf16"),
    "mxfp4": ("mxfp4", "int4", "bf16"),
}
# Least compute capability of NVIDIA GPUs. Source: vLLM's table of quantization and hardware.
_CAPABILITY = {
    "bf16": 8.0,
    "fp16": 7.0,
    "fp8": 8.9,
    "int8": 7.5,
    "int4": 7.5,
    "nvfp4": 10.0,
    "mxfp4": 8.0,
}


@cache
def _tables() -> dict[tuple[str, str, str, str], Row]:
    path = files("gpuplan.sizing") / "data" / "kernels.json"
    rows = json.loads(path.read_text("utf-8"))["rows"]
    return {(kind, gpu, engine, name): tuple(row) for kind, gpu, engine, name, *row in rows}


@cache
def _measured_gpus() -> frozenset[str]:
    return frozenset(gpu for _, gpu, _, _ in _tables())


def relative(gpu: Gpu) -> str:
    """The measured GPU whose efficiencies stand for `gpu`."""
    if gpu.identifier in _measured_gpus():
        return gpu.identifier
    if gpu.architecture == "blackwell":
        pcie = (gpu.compute_capability or "").startswith("12")
        return "rtx-pro-6000-server" if pcie else "b200-sxm-180gb"
    return _RELATIVES.get(gpu.architecture, "h100-sxm-80gb")


def kernel(kind: str, gpu: Gpu, engine: str, dtype: str) -> Kernel:
    """The numbers of the kernel `kind` on `gpu`, by name. The engine's own table first, then the
    other engines', then the tables of the nearest GPU that has one."""
    engines = (engine, *(e for e in ENGINES if e != engine), "")
    for source in (relative(gpu), *_STANDINS):
        for name in _NEAREST[dtype]:
            for e in engines:
                row = _tables().get((kind, source, e, name))
                if row is not None:
                    return _kernel(row, f"{kind.replace('_', ' ')} {name} on {source}", gpu)
    raise KeyError((kind, gpu.identifier, engine, dtype))


_UNITS = {"launch": "s", "small": "B"}


def _kernel(row: Row, what: str, gpu: Gpu) -> Kernel:
    *numbers, residual = row
    cited = f"constant: {what}: {SOURCE}, median residual {residual:.0%}"
    pairs = zip(KERNEL, numbers, strict=False)
    found = {name: Quantity(value, _UNITS.get(name, "1"), cited) for name, value in pairs}
    return found | {"compute": reached(found["compute"], gpu, relative(gpu))}


@cache
def _links(kind: str, source: str, engine: str) -> dict[int, Row]:
    """Measured collectives by number of GPUs."""
    wanted = (kind, source, engine)
    return {int(key[3]): row for key, row in _tables().items() if key[:3] == wanted}


def collective(kind: str, gpu: Gpu, engine: str, gpus: int) -> Kernel:
    """An "all_reduce" or a "gather" (all-gather and reduce-scatter) over `gpus` of a node: seconds
    to launch, bus rate in bytes per second, and the bytes that are small for it. A relative's rate
    is scaled by the link's."""
    source = relative(gpu)
    if gpu.nvlink_bytes_per_s is None and source not in ("l40s", "rtx-pro-6000-server"):
        source = "rtx-pro-6000-server" if gpu.pcie_bytes_per_s.value > 32e9 else "l40s"
    name = "" if kind == "gather" else engine if engine in ENGINES else "vllm"
    found = _links(kind, source, name)
    nearest = min(found, key=lambda n: (abs(n - gpus), n))
    launch, rate, small, residual = found[nearest]
    what = f"{kind.replace('_', '-')} over {nearest} {source}"
    cited = f"constant: {what}: {SOURCE}, median residual {residual:.0%}"
    link = (gpu.nvlink_bytes_per_s or gpu.pcie_bytes_per_s).value
    scale = 1.0 if source == gpu.identifier else min(1.0, link / LINKS[source])
    return {
        "launch": Quantity(launch, "s", cited),
        "rate": Quantity(rate * scale, "B/s", cited),
        "small": Quantity(small, "B", cited),
    }


def all_reduce(gpu: Gpu, engine: str, gpus: int) -> tuple[Quantity, Quantity]:
    """Seconds to launch an all-reduce, and its bus rate."""
    found = collective("all_reduce", gpu, engine, gpus)
    return found["launch"], found["rate"]


# Link rate of the GPUs whose all-reduce was measured, bytes/s one way. Source: the tables' own
# system descriptions.
LINKS = {
    "a100-sxm-80gb": 300e9,
    "h100-sxm-80gb": 450e9,
    "h200-sxm-141gb": 450e9,
    "b200-sxm-180gb": 900e9,
    "b300-sxm-288gb": 900e9,
    "gb200-186gb": 900e9,
    "gb300-288gb": 900e9,
    "l40s": 32e9,
    "rtx-pro-6000-server": 64e9,
}


def peak(gpu: Gpu, precision: str) -> Fact | None:
    """The dense peak of linear layers in `precision`; weight-only formats compute in bf16."""
    if precision in ("bf16", "fp16", "int4"):
        return gpu.peak_bf16
    if precision == "mxfp4":
        return gpu.peak_fp8 if gpu.peak_fp4 else gpu.peak_bf16
    return {"fp8": gpu.peak_fp8, "int8": gpu.peak_int8, "nvfp4": gpu.peak_fp4}[precision]


def unsupported(gpu: Gpu, precision: str) -> tuple[Shortfall, ...]:
    """The gate that a GPU fails which cannot compute in `precision`."""
    capability = float(gpu.compute_capability or 0) if gpu.vendor == "nvidia" else None
    needed = _CAPABILITY[precision]
    if capability is not None and capability < needed:
        resource, requested, capacity = f"compute capability for {precision}", needed, capability
    elif peak(gpu, precision) is None:
        resource, requested, capacity = f"known {precision} peak", 1.0, 0.0
    else:
        return ()
    return (
        Shortfall(resource=resource, requested=requested, used=0.0, capacity=capacity, unit="1"),
    )
