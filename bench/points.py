"""Public measurements as cases that the engine can predict.

A row that the engine cannot express (another parallel layout, another model family) is left out and
counted. Lengths of rows noted "range-ratio 0.8" have a mean of 0.9 of the nominal one.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from models import transformer

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu
from gpuplan.models.load import bundled
from gpuplan.models.model import Model, Transformer
from gpuplan.sizing.api import GpuOffer
from gpuplan.sizing.devices import whole
from gpuplan.sizing.formula import Quantity
from gpuplan.sizing.scopes import decode_scope, formats, prefill_scope, serving_scope, shape
from gpuplan.sizing.sheet import floats
from gpuplan.sizing.steps import step

GPUS = {
    "A100-SXM-80GB": "a100-sxm-80gb",
    "A100-SXM-40GB": "a100-sxm-40gb",
    "H100-SXM-80GB": "h100-sxm-80gb",
    "H200-SXM-141GB": "h200-sxm-141gb",
    "B200-SXM-180GB": "b200-sxm-180gb",
    "B300-SXM-270GB": "b300-sxm-288gb",
    "GB200": "gb200-186gb",
    "GB300": "gb300-288gb",
    "L40S-48GB": "l40s",
    "RTX-PRO-6000-96GB": "rtx-pro-6000-server",
    "H100-NVL-94GB": "h100-nvl-94gb",
    "H100-PCIe-80GB": "h100-pcie-80gb",
    "H200-NVL-141GB": "h200-nvl-141gb",
    "NVIDIA L4": "l4",
}
ENGINES = {"trtllm": "tensorrt-llm", "vllm": "vllm", "sglang": "sglang"}
PRECISIONS = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "fp4": "nvfp4", "nvfp4": "nvfp4"}
SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
PRECISIONS |= {"int4": "int4", "mxfp4": "mxfp4"}


@dataclass(slots=True)
class Case:
    """A measured value and what it was measured on."""

    metric: str
    value: float
    model: Model
    gpu: Gpu
    engine: str
    precision: str
    row: dict[str, str]
    group: str

    def number(self, column: str, default: float = 0.0) -> float:
        return float(self.row[column] or default)

    @property
    def cell(self) -> str:
        return f"{self.model.identifier}|{self.gpu.identifier}|{self.engine}|{self.precision}"


def read(path: Path) -> tuple[list[Case], Counter[str]]:
    """Cases of confidence A or B, and what was left out, by reason."""
    cases, left = [], Counter[str]()
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            case = _case(row)
            if isinstance(case, Case):
                cases.append(case)
            else:
                left[case] += 1
    return cases, left


def _case(row: dict[str, str]) -> Case | str:
    if row["confidence"] not in ("A", "B"):
        return "confidence C"
    model = bundled(SDXL) if row["model"] == "stable-diffusion-xl" else transformer(row["model"])
    if model is None:
        return "model not described"
    gpu = load_catalog().gpu(GPUS.get(row["gpu"].rstrip("?"), ""))
    if gpu is None:
        return "GPU not in the catalogue"
    engine = row["engine"].split()[0]
    return Case(
        metric=row["metric"],
        value=float(row["value"]),
        model=model,
        gpu=gpu,
        engine=ENGINES.get(engine, row["engine"]),
        precision=PRECISIONS.get(row["precision"], row["precision"]),
        row=row,
        group=row["split_group"],
    )


@dataclass(slots=True)
class Served:
    """A served point: its decode step and its prefill, evaluated."""

    case: Case
    decode: dict[str, float]
    prefill: dict[str, float]
    concurrency: float
    output: float
    measured: bool


def served(cases: Iterable[Case], metrics: tuple[str, ...]) -> list[Served]:
    """The cases of closed-loop serving with tensor parallelism inside a node."""
    found = []
    for case in cases:
        whole_layout = case.number("dp", 1) <= 1 and case.number("ep", 1) <= 1
        known = case.engine in ENGINES.values() and case.precision in PRECISIONS.values()
        known &= "batch-1 first-token" not in case.row["notes"]  # no server, engines of 2023
        if case.metric in metrics and known and whole_layout and case.number("tp", 1) <= 8:
            found.append(_served(case))
    return found


def _served(case: Case) -> Served:
    assert isinstance(case.model, Transformer)
    ratio = 0.9 if "range-ratio 0.8" in case.row["notes"] else 1.0
    prompt, output = case.number("input_len") * ratio, case.number("output_len") * ratio
    moe, gpus = case.model.experts is not None, int(case.number("tp", 1))
    precision = "mxfp4" if case.model.identifier.startswith("gpt-oss") else case.precision
    cache = "auto" if case.precision in ("bf16", "int4") else "fp8"
    layout = formats(case.model, precision, cache)
    device = whole(GpuOffer(gpu=case.gpu, gpus_per_node=8))
    scope, measured = serving_scope(case.model, device, case.engine, layout, gpus)
    for name, value in (
        ("sequences", case.number("batch", 1)),
        ("prompt", prompt),
        ("context", prompt + output / 2),
        ("input_mean", prompt),
        ("input_p95", prompt),
    ):
        scope[name] = Quantity(value, "1", "measurement")
    latent = case.model.latent is not None
    base = shape(latent=latent, moe=moe, partition=False)(floats(scope))
    kind = {"moe": moe, "parallel": gpus > 1, "windowed": case.model.sliding_layers > 0}
    decode = step("decode", **kind)(decode_scope(base))
    prefill = step("prefill", **kind)(prefill_scope(base, "prompt", 1.0))
    return Served(case, decode, prefill, case.number("batch", 1), output, measured)
