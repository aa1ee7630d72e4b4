"""Training points as steps: the run that a row describes, and its place among other points."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from gpuplan.accuracy.data.networks import NETWORKS
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.points.settings import Setting, setting
from gpuplan.catalog.model import Gpu
from gpuplan.models.identity import identity
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Fabric, record
from gpuplan.sizing.calibration.anchors import Features
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.measured import NotMeasured, fitted
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.training.run import Method, Prepared, Run, link, training_scope
from gpuplan.sizing.physics.training.speed import Traits, supported, traits

DEEPSEEK_V3 = "deepseek-ai/DeepSeek-V3"  # its bundled dimensions leave the module out
NODE = 8  # GPUs of a machine, which NVLink or PCIe joins, where the catalogue states no domain


@record
class Step:
    """A row's run, the numbers of its sheets, and its place."""

    model: Transformer
    setting: Setting
    run: Run
    values: dict[str, float]

    @property
    def rate(self) -> float:
        """Tokens per second and GPU."""
        return self.values["tokens_per_second"] / self.setting.division.gpus

    @property
    def best(self) -> float:
        """What the products allow at the dense peak."""
        values = self.values
        return self.rate * values["step_seconds"] / values["roofline_seconds"]


def step(case: Case) -> Step | str:
    """The step of a row, or why it cannot be expressed."""
    found = setting(case)
    if isinstance(found, str):
        return found
    assert isinstance(case.model, Transformer)
    run = prepared(case, found)
    return Step(model=case.model, setting=found, run=run, values=run.at(found.micro))


def traits_of(case: Case, found: Setting) -> Traits:
    """What decides the constants of a row."""
    assert isinstance(case.model, Transformer)
    return traits(
        case.model,
        case.gpu,
        found.precision,
        found.framework,
        adapter=found.method.adapter,
        quantized=found.method.quantized,
        many=found.division.gpus > 1,
        release=found.release,
    )


def prepared(case: Case, found: Setting) -> Run:
    model, division = case.model, found.division
    assert isinstance(model, Transformer)
    layers, heads = predicting(model, found)
    numbers = {
        "sequence_length": float(found.length),
        "global_batch": found.batch,
        "steps": 1.0,
        "prediction_layers": float(layers),
        "prediction_heads": float(heads),
    }
    base = _on_machines(
        Machines(
            model=model,
            gpu=case.gpu,
            framework=found.framework,
            precision=found.precision,
            method=found.method,
            release=found.release,
            gpus=division.gpus,
        )
    )
    more = {name: Quantity(value, "1", "measurement") for name, value in numbers.items()}
    return Run(base.given(more), division)


@record
class Machines:
    """What rows of one model on the same machines share."""

    model: Transformer
    gpu: Gpu
    framework: str
    precision: str
    method: Method
    release: float
    gpus: int


@cache
def _on_machines(of: Machines) -> Prepared:
    model, gpu, gpus = of.model, of.gpu, of.gpus
    fabric_of_gpus = gpu.nvlink_fabric
    domain = fabric_of_gpus.domain if fabric_of_gpus and fabric_of_gpus.domain else NODE
    used = supported(gpu, of.precision, mixture=model.experts is not None)
    how = replace(of.method, precision=used)
    device = whole(GpuOffer(gpu=gpu, gpus_per_node=domain))
    engine = "axolotl" if of.framework == "trainer" else of.framework
    scope, _ = training_scope(model, device, how, engine, many=gpus > 1, release=of.release)
    rate = fitted(gpu, "training", NETWORKS)
    if rate is None:
        raise NotMeasured(gpu, "training")
    fabric = Fabric(kind="infiniband", bytes_per_s_per_gpu=rate, resource=None)
    links = link(device, gpus, fabric)
    assert links is not None
    scope |= links | {
        "usable_fraction": constant(0.9, "1", "measurement"),
        "domain_gpus": constant(domain, "1", "GPUs joined by NVLink"),
        "network_rate": constant(rate, "B/s", "network of a GPU"),
    }
    return Prepared(model, how, scope)


def predicting(model: Transformer, found: Setting) -> tuple[int, int]:
    """Layers and heads for multi-token prediction, which Megatron-Bridge's recipes train, as their
    published FLOP a token tell. A module of Nemotron-H is two of its layers."""
    if found.framework != "megatron-bridge":
        return 0, 0
    modules = 1 if model.identifier == DEEPSEEK_V3 else model.mtp_layers
    return modules * (2 if model.mlp_free_layers else 1), modules


@cache
def _identity(model: Transformer) -> str:
    return identity(model)


def family(model: Transformer) -> str:
    if model.linear:
        return "hybrid"
    return "mixture" if model.experts else "dense"


def features(case: Case, found: Setting) -> Features:
    """Where a step stands among others."""
    model, division = case.model, found.division
    assert isinstance(model, Transformer)
    kind, gpus = family(model), division.gpus
    used = supported(case.gpu, found.precision, mixture=model.experts is not None)
    name = _identity(model)
    replaced = found.precision in ("nvfp4", "fp8", "mxfp8") and used != found.precision
    texts = {
        "framework": found.framework,
        "family": kind,
        "generation": case.gpu.architecture,
        "gpu": case.gpu.identifier,
        "precision": found.precision,
        "recipe": f"{kind} {found.precision}",
        "model": f"{name} in {found.precision}" if replaced else name,
        "method": _way(case, found),
        "release": f"{found.release:g}",
    }
    numbers = {
        "log_gpus": math.log2(gpus),
        "log_length": math.log2(found.length),
        "log_micro": math.log2(found.micro),
        "log_accumulation": math.log2(found.accumulation),
        "log_tensor": math.log2(division.tensor),
        "log_pipeline": math.log2(division.pipeline),
        "log_context": math.log2(division.context),
        "log_expert": math.log2(division.expert),
        "log_parameters": math.log2(model.parameters),
        "log_hidden": math.log2(model.hidden_size),
        "log_tokens": math.log2(found.micro * found.length),
        "sharded": float(division.sharding == "zero3"),
        "age": found.release,
    }
    return texts | numbers


def _way(case: Case, found: Setting) -> str:
    text = case.row["method"].lower()
    many = "many" if found.division.gpus > 1 else "one"
    if found.method.quantized:
        return f"qlora {many}"
    return f"{text} {many}" if found.framework == "trainer" else text.split()[0] if text else ""
