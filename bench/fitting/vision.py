"""Public points of timm → gpuplan/sizing/data/vision.py: constants and wide intervals.

    python -m bench.fitting.vision INFERENCE_CSV TRAINING_CSV

Each cell of a structure and a GPU weighs less the more points it has. Needs numpy and scipy.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.fitting.fit import DATE, Priors, by_cell, each_left_out, fit, summary, table, write
from gpuplan.accuracy.metrics.vision import _mode
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.catalog.load import load_catalog
from gpuplan.models.images.networks import VisionNetwork
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.physics.vision.network import INFERENCE, TRAINING, scores, vision_scope

ABOUT = """Constants of vision networks

Fitted to the public points of timm's benchmark (huggingface/pytorch-image-models,
Apache-2.0): images per second of inference on four GPUs, of training on one. Compute
shares are of the catalogue's dense peak at its stated clock, which cards exceed.
"""
KINDS = ("vit", "vit-rotary", "resnet", "depthwise", "convnext", "convnext-v2", "swin", "swin-v2")
SCALES = {  # start and prior width (of the logarithm)
    "structure_compute": ([0.65, 0.6, 0.6, 0.3, 0.7, 0.65, 0.65, 0.65], 0.15),
    "structure_traffic": ([2.9, 6.2, 5.1, 5.0, 4.1, 10.2, 6.1, 8.8], 0.5),
    "fused_traffic": ([0.76, 0.43, 0.64, 1.0, 0.82, 0.38, 0.62, 0.53], 0.5),
}
BLOCKS = {"QUICK_GELU": 0.5, "LAYER_SCALE": 0.2, "PARALLEL_BLOCKS": 0.4, "NO_CLASS_TOKEN": 0.3}
SCORES = {
    ("fused", False): 0.2,
    ("fused", True): 0.2,
    ("windowed", False): 8.0,
    ("windowed", True): 4.0,
}
SINGLE = {"NARROW_SLOWDOWN": 0.06, "LAUNCH_SECONDS": 3e-6, "STEM": 0.5, "STEM_OTHER": 0.5}
OF_GPU = {
    "gpu_compute": (1.5, 0.5),
    "gpu_traffic": (1.5, 0.3),
    "attention_compute": (0.7, 0.2),
}
SCALE = 0.06
TRAIN = {
    "train_matmul": (3.0, 0.2),
    "train_traffic": (2.5, 0.5),
    "train_score_traffic": (12.0, 0.5),
    "update_bytes": (30.0, 0.3),
}
Numbers = dict[str, Any]


class Points:
    """The inputs of the sheet as arrays, one element a point."""

    def __init__(self, points: Sequence[Point], kind: str) -> None:
        pairs = [(p, c) for p in points if (c := _case(p, kind)) is not None]
        self.points = [p for p, _ in pairs]
        cases = [c for _, c in pairs]
        networks = [c.model for c in cases if isinstance(c.model, VisionNetwork)]
        column = "seq_len" if kind == "training" else "input_len"
        sizes = [int(re.sub(r"\D", "", c.row[column])) for c in cases]
        self.runs = [(c.gpu.identifier, _mode(c)) for c in cases]
        rows = [
            vision_scope(n, n.at(s), c.gpu, mode)[0]
            for n, s, c, (_, mode) in zip(networks, sizes, cases, self.runs, strict=True)
        ]
        self.scope: Numbers = {name: np.array([r[name] for r in rows]) for name in rows[0]}
        self.scope["batch"] = np.array([c.number("batch", 64) for c in cases])
        self.log = np.log([p.value for p in self.points])
        self.structure = np.array([KINDS.index(n.structure) for n in networks])
        self.gpus = sorted({(g, m.split()[0]) for g, m in self.runs})
        self.gpu = np.array([self.gpus.index((g, m.split()[0])) for g, m in self.runs])
        self.compiled = np.array([m.startswith("compiled") for _, m in self.runs])
        self.scores = [(scores(n), bool(c)) for n, c in zip(networks, self.compiled, strict=True)]
        flags = [(n.quick_gelu, n.layer_scale, n.parallel_blocks, _bare(n)) for n in networks]
        self.flags = np.array(flags, float)
        new = np.array([m == "eager 2.9" for _, m in self.runs])
        self.flags[:, 3] *= new
        self.flags *= ~self.compiled[:, None]
        weight = by_cell(list(zip(self.structure, self.gpu, strict=True)), 0.5)
        self.weight = weight / np.mean(weight)


def _case(point: Point, kind: str) -> Case | None:
    case = point.case
    if point.metric != "images_per_s" or not isinstance(case, Case) or case.row["kind"] != kind:
        return None
    known = isinstance(case.model, VisionNetwork) and case.model.structure in KINDS
    return case if known and point.confidence in ("A", "B") else None


def _bare(network: VisionNetwork) -> bool:
    return network.structure == "vit" and not network.class_token


def priors(points: Points) -> Priors[Any]:
    """Start and width of each constant: of structures, of all networks, of GPUs."""
    shared = BLOCKS | SINGLE | SCORES
    return (
        {
            (name, kind): (value, width)
            for name, (values, width) in SCALES.items()
            for kind, value in zip(KINDS, values, strict=True)
        }
        | {name: (value, 0.8) for name, value in shared.items()}
        | {(name, gpu): prior for name, prior in OF_GPU.items() for gpu in points.gpus}
    )


def unpacked(constants: Mapping[Any, float], points: Points) -> Numbers:
    """Constants of structures and of GPUs as arrays."""
    numbers: Numbers = {name: constants[name] for name in (*BLOCKS, *SINGLE, *SCORES)}
    for name in SCALES:
        numbers[name] = np.array([constants[name, kind] for kind in KINDS])
    for name in OF_GPU:
        numbers[name] = np.array([constants[name, gpu] for gpu in points.gpus])
    return numbers


def log_rate(sheet: Sheet, numbers: Numbers, points: Points) -> Any:
    kinds, gpus = points.structure, points.gpu
    fused = np.where(points.compiled, numbers["fused_traffic"][kinds], 1.0)
    blocks = np.array([numbers[name] for name in BLOCKS])
    ampere = np.array(["3090" in g for g, _ in points.runs])
    scope = points.scope | {
        "structure_compute": numbers["structure_compute"][kinds],
        "structure_traffic": numbers["structure_traffic"][kinds] * fused,
        "block_traffic": 1 + points.flags @ blocks,
        "stem_compute": np.where(ampere, numbers["STEM"], numbers["STEM_OTHER"]),
        "narrow_slowdown": numbers["NARROW_SLOWDOWN"],
        "score_traffic": np.array([numbers[s] for s in points.scores]),
        "image_launch_seconds": numbers["LAUNCH_SECONDS"],
    }
    scope |= {name: numbers[name][gpus] for name in OF_GPU}
    return -np.log(sheet(scope | {k: v for k, v in numbers.items() if k in TRAIN})["image_seconds"])


def fitted(points: Points, of: np.ndarray, held: Priors[Any]) -> dict[Any, float]:
    def errors(constants: dict[Any, float]) -> np.ndarray:
        return (log_rate(INFERENCE, unpacked(constants, points), points) - points.log)[of]

    return fit(held, errors, scale=SCALE, weights=0.9 * points.weight[of])


def report(name: str, errors: np.ndarray) -> None:
    print(f"{name:28} {summary(errors)}")


def left_out(points: Points, held: Priors[Any]) -> list[np.ndarray]:
    """Errors where a GPU or a structure was never measured: means stand for its constants. The
    others stay near `held`."""
    every = []
    names = np.array([g for g, _ in points.runs])
    for of_gpu in each_left_out(names):
        gpu, numbers = names[of_gpu][0], unpacked(fitted(points, ~of_gpu, held), points)
        others, own = alike(points, gpu), [g == gpu for g, _ in points.gpus]
        for name in OF_GPU:
            numbers[name] = np.where(own, mean(numbers[name][others]), numbers[name])
        every.append((log_rate(INFERENCE, numbers, points) - points.log)[of_gpu])
        report(f"without {gpu}", every[-1])
    for place, kind in enumerate(KINDS):
        of_kind = points.structure == place
        numbers = unpacked(fitted(points, ~of_kind, held), points)
        for name in SCALES:
            numbers[name][place] = mean(np.delete(numbers[name], place))
        every.append((log_rate(INFERENCE, numbers, points) - points.log)[of_kind])
        report(f"without {kind}", every[-1])
    return every


def mean(values: Any) -> float:
    return float(np.exp(np.mean(np.log(values))))


def alike(points: Points, gpu: str) -> list[int]:
    """The places of other GPUs of its kind; of all others where there is none."""
    others = [n for n, (g, _) in enumerate(points.gpus) if g != gpu]
    mine = geforce(gpu)
    return [n for n in others if geforce(points.gpus[n][0]) == mine] or others


def geforce(name: str) -> bool:
    """GeForce cards come nearer to their peak: with fp32 sums it is half of what the units do."""
    gpu = load_catalog().gpu(name)
    assert gpu is not None
    return gpu.line == "geforce"


def trained(points: Points, numbers: Numbers) -> dict[str, float]:
    """Constants of training, on top of those of inference."""

    def errors(constants: dict[str, float]) -> np.ndarray:
        return log_rate(TRAINING, numbers | constants, points) - points.log

    constants = fit(TRAIN, errors, scale=SCALE, weights=0.9 * points.weight)
    report("training", errors(constants))
    return constants


def main() -> None:
    read = read_points([Path(p) for p in sys.argv[1:]])
    points, training = Points(read, "inference"), Points(read, "training")
    held = priors(points)
    constants = fitted(points, np.ones(len(points.log), bool), held)
    numbers = unpacked(constants, points)
    errors = log_rate(INFERENCE, numbers, points) - points.log
    report("inference", errors)
    for place, kind in enumerate(KINDS):
        report(kind, errors[points.structure == place])
    # Training is of one GPU, eager: its place among those of inference.
    training.gpu[:] = next(n for n, g in enumerate(points.gpus) if g in training.gpus)
    own = trained(training, numbers)
    near = {name: (constants[name], width) for name, (_, width) in held.items()}
    unseen = np.concatenate(left_out(points, near))
    write("sizing/data/vision.py", ABOUT, module(points, numbers, own, unseen))


def measured(points: Points, line: str, mode: str) -> list[tuple[str, str]]:
    """The runs that are nearest to a line of GPUs in a mode."""
    near = [r for r in points.gpus if geforce(r[0]) == (line == "geforce")]
    return [r for r in near if r[1] == mode] or near


def module(
    points: Points, numbers: Numbers, training: dict[str, float], unseen: np.ndarray
) -> Iterator[str]:
    structures = {
        kind: tuple(float(numbers[name][place]) for name in SCALES)
        for place, kind in enumerate(KINDS)
    }
    structures["other"] = tuple(mean(numbers[name]) for name in SCALES)
    by_gpu = {
        gpu: tuple(float(numbers[name][place]) for name in OF_GPU)
        for place, gpu in enumerate(points.gpus)
    }
    lines = {
        (line, mode): tuple(
            mean([by_gpu[gpu][place] for gpu in measured(points, line, mode)])
            for place in range(len(OF_GPU))
        )
        for line in ("geforce", "professional", "data-center")
        for mode in ("eager", "compiled")
    }
    low, high = np.exp(-np.quantile(unseen, (0.95, 0.05)))
    yield f'SOURCE = "fit of timm\'s benchmark, huggingface/pytorch-image-models ({DATE})"'
    yield "# Structure: part of the GPU's compute share, traffic of activations, and its part where"
    yield "# element-wise layers are fused by a compiler. Other structures: the geometric means."
    yield from table("STRUCTURES", structures)
    yield "# GPU and mode: compute share, traffic, compute share of fused attention."
    yield from table("GPUS", dict(sorted(by_gpu.items())))
    yield "# GPUs that were not measured, by line: data center GPUs sum in FP32 at full rate as"
    yield "# professional cards do."
    yield from table("LINES: dict[tuple[str | None, str], tuple[float, float, float]]", lines)
    yield "# Compute share of a patch embedding of 28 pixels or more."
    yield f'STEM = {{"rtx-3090-24gb": {numbers["STEM"]:.4g}}}'
    yield f"STEM_OTHER = {numbers['STEM_OTHER']:.4g}"
    yield f"NARROW_SLOWDOWN = {numbers['NARROW_SLOWDOWN']:.4g}"
    yield "# Traffic of attention scores, whether a compiler fuses."
    yield from table("SCORE_TRAFFIC", {key: numbers[key] for key in SCORES})
    yield f"LAUNCH_SECONDS = {numbers['LAUNCH_SECONDS']:.4g}"
    yield "# What blocks add to their traffic in eager mode; the last of PyTorch 2.9."
    yield from (f"{name} = {numbers[name]:.4g}" for name in BLOCKS)
    yield from table("TRAINING", training)
    yield "# 90 % of the errors on a GPU or a structure that was left out of the fit."
    yield f"UNSEEN_FACTORS = ({low:.4g}, {high:.4g})"


if __name__ == "__main__":
    main()
