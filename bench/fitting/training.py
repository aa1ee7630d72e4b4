"""Public training points → gpuplan/sizing/data/training_speed.py: the constants of a step.

    python -m bench.fitting.training TRAINING_CSV… [--check]

Each cell (framework, GPU, model, precision) weighs less the more points it has. `--check` fits anew
without each model, and without each source, and prints the errors on it. Needs numpy and scipy.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.fitting.fit import DATE, by_cell, each_left_out, fit, rounded, summary, table, write
from gpuplan.accuracy.metrics import steps
from gpuplan.accuracy.metrics.rates import STEPS, unit_seconds
from gpuplan.accuracy.metrics.steps import Step
from gpuplan.accuracy.points.points import LAYOUT, LOAD, Case, Point, read_points
from gpuplan.frozen import record
from gpuplan.sizing.data.training_speed import CONSTANTS
from gpuplan.sizing.physics.training.speed import Traits, factors, traits

SETTING = ("model", "gpu", "engine", "precision", *LAYOUT, *(n for n in LOAD if n != "unit"))
SCALE = 0.08  # errors beyond it count linearly
FLOPS = "model_tflops_per_gpu"  # counts where a row has no tokens a second beside it
METRICS = (
    FLOPS,
    "tokens_per_s_per_gpu",
    "tokens_per_s",
    "step_time",
    "samples_per_s_per_gpu",
    "reported_throughput",
)
# Start and width (of the logarithm) of each constant, and what it is.
START: dict[str, tuple[float, float, str]] = {
    "compute.ampere.bf16": (0.90, 0.15, "large products, fraction of the dense peak"),
    "compute.ada.bf16": (0.62, 0.15, ""),
    "compute.ada.fp8": (0.49, 0.15, ""),
    "compute.hopper.bf16": (0.80, 0.15, ""),
    "compute.hopper.fp8": (0.75, 0.15, ""),
    "compute.blackwell.bf16": (0.65, 0.15, ""),
    "compute.blackwell.fp8": (0.60, 0.15, ""),
    "compute.blackwell.mxfp8": (0.60, 0.15, ""),
    "compute.blackwell.nvfp4": (0.50, 0.15, ""),
    "compute.cdna3.bf16": (0.53, 0.15, ""),
    "compute.cdna3.fp8": (0.53, 0.15, ""),
    "compute.cdna4.bf16": (0.53, 0.15, ""),
    "compute.cdna4.fp8": (0.53, 0.15, ""),
    "attention.ampere": (0.65, 0.25, "attention, fraction of the bf16 peak"),
    "attention.ada": (0.40, 0.25, ""),
    "attention.hopper": (0.40, 0.25, ""),
    "attention.blackwell": (0.50, 0.1, ""),
    "attention.cdna3": (0.36, 0.25, ""),
    "attention.cdna4": (0.36, 0.25, ""),
    "attention.early.blackwell": (0.86, 0.05, "of Blackwell's before cuDNN 9.17, times"),
    "operands.ampere": (1.9, 0.2, "traffic of operands, times their size"),
    "operands.ada": (2.0, 0.2, ""),
    "operands.hopper": (2.0, 0.2, ""),
    "operands.blackwell": (2.0, 0.2, ""),
    "operands.cdna3": (2.5, 0.2, ""),
    "operands.cdna4": (2.5, 0.2, ""),
    "cast": (1.08, 0.1, "more of it where they are quantized to 8 bits"),
    "cast.nvfp4": (1.2, 0.3, ""),
    "expert": (0.37, 0.3, "products of experts, times the rate of large ones"),
    "expert.bf16": (0.37, 0.3, "and in bf16"),
    "elementwise": (170.0, 0.3, "bytes a token, layer and hidden unit"),
    "elementwise_mixture": (1.5, 0.3, "times"),
    "routing": (1.0, 0.5, "traffic of routed tokens, times their operands"),
    "logits": (24.0, 0.4, "bytes a token and entry of the vocabulary"),
    "adapters": (2.5, 0.5, "traffic of adapters, times the operands of the products"),
    "streams": (2.7, 0.2, "element-wise traffic for each doubling of residual streams"),
    "mamba": (24.0, 0.3, "bytes a token and inner unit"),
    "tensor": (0.7, 0.3, "exposed part of tensor parallelism's traffic"),
    "context": (18000.0, 0.5, "bytes a token, layer and further rank"),
    "dispatch": (0.7, 0.4, "exposed part of expert parallelism's traffic inside a domain"),
    "remote": (0.7, 0.4, "and between domains"),
    "remote.plain": (2.4, 0.3, "and without a dispatcher that sends once a node"),
    "hop": (0.76e-3, 0.5, "seconds a micro-batch and virtual stage"),
    "last": (1.0, 0.2, "part of the output layer for which other stages wait"),
    "bubble": (0.97, 0.1, "part of the ideal pipeline bubble"),
    "gradients": (0.3, 0.5, "exposed part of the exchange of gradients"),
    "hidden": (0.6, 0.15, "part of a step behind which ZeRO-3's exchange hides"),
    "update": (1.5, 0.3, "the optimizer's traffic, times its states"),
    "step": (7.7e-3, 0.7, "seconds a step"),
    "scale": (4.6e-3, 0.7, "seconds a step for each doubling of GPUs beyond 8"),
    "capability.10.3.nvfp4": (0.75, 0.1, "of nvfp4's higher peak on B300 and GB300"),
    "capability.10.3": (1.2, 0.1, "B300 and GB300 over B200"),
    "superchip.blackwell": (1.1, 0.1, "GB200 and GB300 over B200"),
    "gpu.mi325x-256gb": (1.2, 0.15, "siblings with more power, over the others of a generation"),
    "gpu.mi355x-288gb": (1.1, 0.1, ""),
    "mlperf": (1.03, 0.05, "factors on a step"),
    "mlperf_late.blackwell": (1.10, 0.05, ""),
    "trainer": (1.11, 0.1, ""),
    "trainer_adapter": (1.2, 0.1, ""),
    "trainer_parallel": (1.8, 0.2, ""),
    "adapter": (1.01, 0.05, ""),
    "foundry_attention": (0.49, 0.2, "on the rate of attention in Triton, 2023"),
    "mlperf_early": (1.005, 0.004, "a tenth of a round before 5.0"),
    "torchtune": (1.0, 0.1, ""),
    "torchtitan": (1.1, 0.15, ""),
    "torchtitan.fp8": (1.1, 0.1, "and where it scales to 8 bits dynamically"),
    "eager": (1.15, 0.1, "without a compiler"),
    "power": (0.4, 0.3, "exponent of the part of its power that a GPU may draw"),
    "release": (1.01, 0.01, "faster with each release"),
    "release_mixture": (1.03, 0.02, ""),
    "graphs.blackwell": (1.25, 0.1, "faster with grouped kernels and graphs (26.06)"),
    "host.lora": (3.8e-3, 0.2, "seconds of the host a layer and micro-batch"),
    "host.qlora": (4.5e-3, 0.2, ""),
    "host.full": (10e-3, 0.3, ""),
    "host.experts": (6e-3, 0.5, "of layers with experts"),
    "host.experts.superchip.blackwell": (3e-3, 0.5, ""),
    "host.graphs": (0.6, 0.4, "times, with graphs"),
    "dequantize": (8.9e-12, 0.3, "seconds a weight and pass"),
}
PRIORS = {name: (start, width) for name, (start, width, _) in START.items()}


@record
class Row:
    """A point, the traits that decide its constants, its step and what that takes, in seconds."""

    traits: Traits
    step: Step
    seconds: float
    cell: str
    model: str
    kind: str
    source: str


class Rows:
    """Rows with the same sheet are evaluated together, as arrays."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.seconds = np.array([r.seconds for r in rows])
        self.weight = 1.5 * by_cell([r.cell for r in rows], 0.5)
        groups: dict[int, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            groups[id(row.step.run.time)].append(place)
        self.groups = []
        for places in groups.values():
            scopes = [rows[i].step.values for i in places]
            names = set.intersection(*map(set, scopes))
            columns = {n: np.array([scope[n] for scope in scopes]) for n in names}
            self.groups.append((rows[places[0]].step.run.time, np.array(places), columns))
        self.traits = sorted({r.traits for r in rows}, key=repr)
        number = {t: n for n, t in enumerate(self.traits)}
        self.number = np.array([number[r.traits] for r in rows])

    def predicted(self, constants: Mapping[str, float]) -> np.ndarray:
        """Seconds of a step by the formulas alone."""
        each = [factors(t, constants) for t in self.traits]
        columns = {name: np.array([f[name] for f in each]) for name in each[0]}
        seconds = np.zeros(len(self.rows))
        for sheet, places, inputs in self.groups:
            chosen = {name: column[self.number[places]] for name, column in columns.items()}
            seconds[places] = sheet.over(inputs | chosen)["modelled_step_seconds"]
        return seconds


def rows(points: Sequence[Point]) -> list[Row]:
    measured = []
    counted = {_setting(p.case) for p in points if p.metric != FLOPS and isinstance(p.case, Case)}
    for point in points:
        case = point.case
        if point.metric not in METRICS or point.confidence == "C" or not isinstance(case, Case):
            continue
        if point.metric == FLOPS and _setting(case) in counted:
            continue
        step = steps.step(case)
        if isinstance(step, str):
            continue
        where = step.run.step_features(step.setting.micro)
        one = unit_seconds(case, step)
        measured.append(
            Row(
                traits=_traits(step),
                step=step,
                seconds=one * point.value if point.metric in STEPS else one / point.value,
                cell="|".join(str(where[n]) for n in ("framework", "gpu", "model", "precision")),
                model=str(where["model"]),
                kind=f"{where['framework']} {where['family']}",
                source=point.source.partition("@")[0],
            )
        )
    return measured


def _setting(case: Case) -> tuple[str, ...]:
    return tuple(value for name, value in sorted(case.row.items()) if name in SETTING)


def _traits(step: Step) -> Traits:
    subject, method = step.run.prepared.subject, step.run.prepared.method
    return traits(
        subject.model,
        subject.gpu,
        method.precision,
        subject.framework,
        adapter=method.adapter,
        quantized=method.quantized,
        many=step.setting.division.gpus > 1,
        release=subject.release,
        power=step.setting.power,
        eager=step.setting.eager,
    )


def fitted(
    data: Rows, of: np.ndarray, start: Mapping[str, float] | None = None
) -> dict[str, float]:
    def errors(constants: dict[str, float]) -> np.ndarray:
        return np.log(data.predicted(constants) / data.seconds)[of]

    weights = data.weight[of]
    return fit(PRIORS, errors, scale=SCALE, weights=weights, starts=(start or {},), most=15)


def report(data: Rows, errors: np.ndarray) -> None:
    kinds = np.array([r.kind for r in data.rows])
    for kind in sorted(set(kinds)):
        print(f"  {kind:26} {summary(errors[kinds == kind])}")


def left_out(data: Rows, keys: Sequence[str], constants: Mapping[str, float]) -> np.ndarray:
    """Errors on the rows of each key, fitted without them."""
    errors = np.zeros(len(data.rows))
    for out in each_left_out(np.array(keys)):
        unseen = fitted(data, ~out, constants)
        errors[out] = np.log(data.predicted(unseen) / data.seconds)[out]
    return errors


def main(paths: Sequence[str], check: bool) -> None:
    for name, (start, _) in PRIORS.items():
        CONSTANTS.setdefault(name, start)
    data = Rows(rows(read_points([Path(path) for path in paths])))
    constants = fitted(data, np.ones(len(data.rows), bool))
    print(f"{len(data.rows)} points")
    report(data, np.log(data.predicted(constants) / data.seconds))
    if check:
        print("each model left out")
        report(data, left_out(data, [r.model for r in data.rows], constants))
        print("each source left out")
        report(data, left_out(data, [r.source for r in data.rows], constants))
    about = """Constants of the training step

Fractions of peaks, exposed parts, overheads in seconds; a comment holds until the next.
"""
    source = f"fitted on {len(data.rows)} public training points ({DATE})"
    comments = {name: meaning for name, (_, _, meaning) in START.items()}
    lines = table("CONSTANTS: dict[str, float]", rounded(constants), comments)
    write("sizing/data/training_speed.py", about, (f"SOURCE = {source!r}", *lines))


if __name__ == "__main__":
    main([a for a in sys.argv[1:] if a != "--check"], "--check" in sys.argv)
