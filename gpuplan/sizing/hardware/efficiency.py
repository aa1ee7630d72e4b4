"""Measured kernel efficiencies of a GPU: its own where measured, else those of its stand-in.

A kernel is five or seven numbers (`KERNEL`). They are fractions of the GPU's own peaks, so those of
a stand-in apply to another GPU, compute by what both reach in large matrix products; what is
predicted with them counts as extrapolated.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

from gpuplan.catalog.model import Fact, Gpu
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.measured import NotMeasured, gate_of, lacking, taken
from gpuplan.sizing.hardware.reached import reached
from gpuplan.vendors import VENDORS

Row = tuple[float, ...]
Kernel = dict[str, Quantity]

# A kernel's numbers, in the order of the rows of `data/kernels.json`; experts have all seven.
KERNEL = ("launch", "read", "small", "compute", "norm", "spread", "tile")

SOURCE = "tables of aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0, 2026-08-21)"
ENGINES = ("vllm", "sglang", "tensorrt-llm")

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
# Least compute capability, of GPUs that have one. Source: vLLM, quantization and hardware.
_CAPABILITY = {
    "bf16": 8.0,
    "fp16": 7.0,
    "fp8": 8.9,
    "int8": 7.5,
    "int4": 7.5,
    "nvfp4": 10.0,
    "mxfp4": 8.0,
}


# Least compute capability from which engines run weights as they are stored and compute in bf16:
# fp8 on Ampere is W8A16 there. Source: vLLM, docs/features/quantization/fp8.md, FP8 Marlin.
WIDENED = {("vllm", "fp8"): 8.0}
# The oldest GPUs of an engine's release. Source: TensorRT-LLM 1.2, docs/source/features/
# quantization.md and supported-hardware.md, whose oldest are Ampere.
OLDEST = {"tensorrt-llm": 8.0}


# GeForce GPUs reach no other GPU's memory: what they exchange goes through the host's, at a share
# of what a card's slot carries. The two sources are far apart: alone RTX 4090 on hosts that nobody
# describes reach 0.1 of it, pairs of RTX 50 0.4. Older cards are taken as these: nobody measured.
WITHOUT_PEERS = "geforce"
_STAGED = (
    "constant: fitted on 21 public points of 2 to 8 RTX 4090, IOG-Foundation, vLLM 0.8.5, and 14 of"
    " two RTX 5060 Ti, 5070 Ti and 5090, hholtmann/llm-consumer-gpu-benchmark, vLLM 0.12.0, each"
    " source as much (2026-11-27)"
)
STAGED_LAUNCH = Quantity(7e-5, "s", _STAGED)
STAGED_SHARE = 0.2


# The GPU whose all-reduces were measured over nodes that NVLink joins, 8 and 16 GPUs of trays of 4,
# and the bytes per second of its link.
OVER_NODES = ("gb300-288gb", 9e11)


@cache
def _tables() -> dict[tuple[str, str, str, str], Row]:
    path = Path(__file__).parents[1] / "data" / "kernels.json"
    rows = json.loads(path.read_text("utf-8"))["rows"]
    return {(kind, gpu, engine, name): tuple(row) for kind, gpu, engine, name, *row in rows}


@cache
def _measured_gpus() -> frozenset[str]:
    return frozenset(gpu for _, gpu, _, _ in _tables())


def measured_on(gpu: Gpu) -> str | None:
    """The GPU whose kernels are taken for those of `gpu`."""
    return taken(gpu, "kernels", _measured_gpus())


def unmeasured(gpu: Gpu) -> tuple[Shortfall, ...]:
    """The gate that a GPU fails for which no measured kernels stand."""
    return () if measured_on(gpu) else lacking("kernels")


def kernel(kind: str, gpu: Gpu, engine: str, dtype: str) -> Kernel:
    """The numbers of the kernel `kind` on `gpu`, by name. The engine's own table first, then the
    other engines', then the tables of the nearest GPU that has one. Raises `NotMeasured`."""
    first = measured_on(gpu)
    if first is None:
        raise NotMeasured(gpu, "kernels")
    engines = (engine, *(e for e in ENGINES if e != engine), "")
    for source in (first, *(s.identifier for s in gpu.kernels_as)):
        for name in _NEAREST.get(dtype, (dtype,)):
            for e in engines:
                row = _tables().get((kind, source, e, name))
                if row is not None:
                    subject = f"{kind.replace('_', ' ')} {name} on {source}"
                    return _kernel(row, subject, gpu, first)
    raise NotMeasured(gpu, "kernels")


_UNITS = {"launch": "s", "small": "B"}


def _kernel(row: Row, subject: str, gpu: Gpu, measured: str) -> Kernel:
    *numbers, residual = row
    cited = f"constant: {subject}: {SOURCE}, median residual {residual:.0%}"
    pairs = zip(KERNEL, numbers, strict=False)
    kernel = {name: Quantity(value, _UNITS.get(name, "1"), cited) for name, value in pairs}
    return kernel | {"compute": reached(kernel["compute"], gpu, measured)}


@cache
def _links(kind: str, source: str, engine: str) -> dict[int, Row]:
    """Measured collectives by number of GPUs."""
    wanted = (kind, source, engine)
    return {int(key[3]): row for key, row in _tables().items() if key[:3] == wanted}


def collective(kind: str, gpu: Gpu, engine: str, gpus: int, *, nodes: bool = False) -> Kernel:
    """An "all_reduce" or a "gather" (all-gather and reduce-scatter) over `gpus` of a node: seconds
    to launch, bus rate in bytes per second, and the bytes that are small for it. A stand-in's rate
    is scaled by the link's. Of several `nodes` that NVLink joins, the all-reduce measured there:
    kernels of one node do not span two. Raises `NotMeasured`."""
    if gpu.line == WITHOUT_PEERS:
        return {
            "launch": STAGED_LAUNCH,
            "rate": Quantity(STAGED_SHARE * gpu.link_bytes_per_s.value, "B/s", _STAGED),
            "small": Quantity(1.0, "B", _STAGED),
        }
    source, link = OVER_NODES if nodes else _exchanges(gpu)
    name = "" if kind == "gather" else engine if engine in ENGINES else "vllm"
    by_gpus = _links(kind, source, name)
    nearest = min(by_gpus, key=lambda n: (abs(n - gpus), n))
    launch, rate, small, residual = by_gpus[nearest]
    subject = f"{kind.replace('_', '-')} over {nearest} {source}"
    cited = f"constant: {subject}: {SOURCE}, median residual {residual:.0%}"
    scale = min(1.0, gpu.link_bytes_per_s.value / link)
    return {
        "launch": Quantity(launch, "s", cited),
        "rate": Quantity(rate * scale, "B/s", cited),
        "small": Quantity(small, "B", cited),
    }


def _exchanges(gpu: Gpu) -> tuple[str, float]:
    """The GPU whose exchanges were measured, and the bytes per second of its link."""
    if gpu.identifier in _measured_gpus():
        return gpu.identifier, gpu.link_bytes_per_s.value
    declared = (gpu.collectives_as,) if gpu.collectives_as else gpu.measured_as
    for stand_in in declared:
        if stand_in.identifier in _measured_gpus():
            return stand_in.identifier, stand_in.link_bytes_per_s
    raise NotMeasured(gpu, "kernels")


def peak(gpu: Gpu, precision: str) -> Fact | None:
    """The dense peak of linear layers in `precision`; weight-only formats compute in bf16."""
    if precision in ("bf16", "fp16", "int4"):
        return gpu.peak_bf16
    if precision == "mxfp4":
        return gpu.peak_fp8 if gpu.peak_fp4 else gpu.peak_bf16
    return {"fp8": gpu.peak_fp8, "int8": gpu.peak_int8, "nvfp4": gpu.peak_fp4}[precision]


def unsupported(gpu: Gpu, precision: str, engine: str = "") -> tuple[Shortfall, ...]:
    """The gate that a GPU fails which cannot compute in `precision`, nor has an `engine` that
    widens its weights, or for which no engine has kernels."""
    maker = VENDORS.get(gpu.vendor)
    if maker and not maker.computes(precision, fp8=gpu.peak_fp8 is not None):
        return gate_of(f"{precision} kernels for {maker.title}'s {gpu.architecture}", "absent")
    capability = float(gpu.compute_capability) if gpu.compute_capability else None
    if capability is not None and capability < OLDEST.get(engine, 0.0):
        return _capability(engine, OLDEST[engine], capability)
    if capability is not None and capability >= WIDENED.get((engine, precision), math.inf):
        return ()
    needed = _CAPABILITY[precision]
    if capability is not None and capability < needed:
        return _capability(precision, needed, capability)
    return () if peak(gpu, precision) else gate_of(f"{precision} peak", "unknown")


def _capability(what: str, needed: float, capability: float) -> tuple[Shortfall, ...]:
    name = f"compute capability for {what}"
    return (Shortfall(resource=name, requested=needed, used=0.0, capacity=capability, unit="1"),)
