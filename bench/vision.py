"""Public points of timm → gpuplan/accuracy/data/vision.py: constants and wide intervals.

    PYTHONPATH=. python bench/vision.py INFERENCE_CSV TRAINING_CSV

Least squares on the log error (soft L1 beyond 6 %) with prior widths; each cell of a structure and
a GPU weighs less the more points it has. Needs numpy and scipy.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from gpuplan.accuracy.metrics.vision import _mode
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.protocols.vision import INFERENCE, TRAINING, scores, vision_scope
from gpuplan.catalog.load import load_catalog
from gpuplan.models.images.vision import VisionNetwork
from gpuplan.sizing.evidence.sheet import Sheet

OUTPUT = Path(__file__).parent.parent / "gpuplan/accuracy/data/vision.py"
DATE = "2026-11-21"
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
SINGLE = {"NARROW_SLOWDOWN": 0.06, "LAUNCH_SECONDS": 3e-6, "STEM": 0.5}
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
        found = [(p, c) for p in points if (c := _case(p, kind)) is not None]
        self.points = [p for p, _ in found]
        cases = [c for _, c in found]
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
        cells = Counter(zip(self.structure, self.gpu, strict=True))
        weight = [1 / np.sqrt(cells[c]) for c in zip(self.structure, self.gpu, strict=True)]
        self.weight = np.array(weight) / np.mean(weight)


def _case(point: Point, kind: str) -> Case | None:
    case = point.case
    if point.metric != "images_per_s" or not isinstance(case, Case) or case.row["kind"] != kind:
        return None
    known = isinstance(case.model, VisionNetwork) and case.model.structure in KINDS
    return case if known and point.confidence in ("A", "B") else None


def _bare(network: VisionNetwork) -> bool:
    return network.structure == "vit" and not network.class_token


def start(points: Points) -> tuple[Any, Any]:
    gpus = len(points.gpus)
    values = [v for found, _ in SCALES.values() for v in found]
    widths = [w for found, w in SCALES.values() for _ in found]
    values += [*BLOCKS.values(), *SINGLE.values(), *SCORES.values()] + [1.5] * gpus + [1.5] * gpus
    values += [0.7] * gpus + [0.5]
    widths += (
        [0.8] * (len(BLOCKS) + len(SINGLE) + len(SCORES))
        + [0.5] * gpus
        + [0.3] * gpus
        + [0.2] * gpus
    )
    return np.log(values), np.array([*widths, 0.8])


def unpacked(theta: Any, points: Points) -> Numbers:
    numbers, left, size = {}, list(np.exp(theta)), len(points.gpus)
    for name in SCALES:
        numbers[name], left = np.array(left[: len(KINDS)]), left[len(KINDS) :]
    for name in (*BLOCKS, *SINGLE, *SCORES):
        numbers[name], left = left[0], left[1:]
    for name in ("gpu_compute", "gpu_traffic", "attention_compute"):
        numbers[name], left = np.array(left[:size]), left[size:]
    numbers["STEM_OTHER"] = left[0]
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
    for name in ("gpu_compute", "gpu_traffic", "attention_compute"):
        scope[name] = numbers[name][gpus]
    return -np.log(sheet(scope | {k: v for k, v in numbers.items() if k in TRAIN})["image_seconds"])


def fit(predicted: Callable[[Any], Any], points: Points, theta: Any, width: Any, keep: Any) -> Any:
    def residuals(now: Any) -> Any:
        error = ((points.log - predicted(now)) / 0.06)[keep]
        soft = np.sign(error) * np.sqrt(2 * (np.sqrt(1 + error**2) - 1))
        return np.concatenate([soft * points.weight[keep] * 0.9, (now - theta) / width])

    return least_squares(residuals, theta).x


def report(name: str, error: Any) -> None:
    size = np.abs(np.exp(error) - 1)
    print(
        f"{name:28} n={len(error):4} {np.median(size):6.1%} P90 {np.quantile(size, 0.9):6.1%} "
        f"bias {np.median(np.exp(error) - 1):+.1%}"
    )


def left_out(points: Points, theta: Any, width: Any) -> list[Any]:
    """Errors where a GPU or a structure was never measured: means stand for its constants."""
    errors = []
    names = np.array([g for g, _ in points.runs])
    for gpu in sorted(set(names)):
        numbers = unpacked(fit(_inference(points), points, theta, width, names != gpu), points)
        other = alike(points, gpu)
        for name in ("gpu_compute", "gpu_traffic", "attention_compute"):
            mean = np.exp(np.mean(np.log(numbers[name][other])))
            numbers[name] = np.where([g == gpu for g, _ in points.gpus], mean, numbers[name])
        error = (log_rate(INFERENCE, numbers, points) - points.log)[names == gpu]
        report(f"without {gpu}", error)
        errors.append(error)
    for place, kind in enumerate(KINDS):
        mine = points.structure == place
        numbers = unpacked(fit(_inference(points), points, theta, width, ~mine), points)
        for name in SCALES:
            numbers[name][place] = np.exp(np.mean(np.log(np.delete(numbers[name], place))))
        error = (log_rate(INFERENCE, numbers, points) - points.log)[mine]
        report(f"without {kind}", error)
        errors.append(error)
    return errors


def alike(points: Points, gpu: str) -> list[int]:
    """The places of other GPUs of its kind; of all others where there is none."""
    others = [n for n, (g, _) in enumerate(points.gpus) if g != gpu]
    mine = geforce(gpu)
    return [n for n in others if geforce(points.gpus[n][0]) == mine] or others


def geforce(gpu: str) -> bool:
    """GeForce cards come nearer to their peak: with fp32 sums it is half of what the units do."""
    found = load_catalog().gpu(gpu)
    assert found is not None
    return found.line == "geforce"


def _inference(points: Points) -> Callable[[Any], Any]:
    return lambda theta: log_rate(INFERENCE, unpacked(theta, points), points)


def trained(points: Points, numbers: Numbers) -> dict[str, float]:
    """Constants of training, on top of those of inference."""
    theta = np.log([value for value, _ in TRAIN.values()])
    width = np.array([w for _, w in TRAIN.values()])

    def predicted(now: Any) -> Any:
        return log_rate(TRAINING, numbers | dict(zip(TRAIN, np.exp(now), strict=True)), points)

    found = fit(predicted, points, theta, width, np.ones(len(points.log), bool))
    report("training", predicted(found) - points.log)
    return dict(zip(TRAIN, np.exp(found).tolist(), strict=True))


def main() -> None:
    read = read_points([Path(p) for p in sys.argv[1:]])
    points, training = Points(read, "inference"), Points(read, "training")
    theta, width = start(points)
    found = fit(_inference(points), points, theta, width, np.ones(len(points.log), bool))
    numbers = unpacked(found, points)
    error = log_rate(INFERENCE, numbers, points) - points.log
    report("inference", error)
    for place, kind in enumerate(KINDS):
        report(kind, error[points.structure == place])
    # Training is of one GPU, eager: its place among those of inference.
    training.gpu[:] = next(n for n, g in enumerate(points.gpus) if g in training.gpus)
    constants = trained(training, numbers)
    unseen = np.concatenate(left_out(points, found, width))
    OUTPUT.write_text(written(points, numbers, constants, unseen), encoding="utf-8")


def measured(points: Points, line: str, mode: str) -> list[tuple[str, str]]:
    """The runs that are nearest to a line of GPUs in a mode."""
    alike = [r for r in points.gpus if geforce(r[0]) == (line == "geforce")]
    return [r for r in alike if r[1] == mode] or alike


def written(points: Points, numbers: Numbers, training: dict[str, float], unseen: Any) -> str:
    def text(value: float) -> str:
        return f"{value:.4g}"

    def row(values: Sequence[float]) -> str:
        return "(" + ", ".join(map(text, values)) + ")"

    def mean(values: Sequence[float]) -> float:
        return float(np.exp(np.mean(np.log(values))))

    by_kind = [[numbers[name][place] for name in SCALES] for place in range(len(KINDS))]
    by_kind.append([mean(numbers[name]) for name in SCALES])
    names = ("gpu_compute", "gpu_traffic", "attention_compute")
    by_gpu = {g: [numbers[n][place] for n in names] for place, g in enumerate(points.gpus)}
    modes = {
        (line, mode): [mean([by_gpu[g][n] for g in measured(points, line, mode)]) for n in range(3)]
        for line in ("geforce", "professional", "data-center")
        for mode in ("eager", "compiled")
    }
    low, high = np.exp(-np.quantile(unseen, (0.95, 0.05)))
    lines = [
        '"""Constants of vision networks, written by bench/vision.py.',
        "",
        "Fitted to the public points of timm's benchmark (huggingface/pytorch-image-models,",
        "Apache-2.0): images per second of inference on four GPUs, of training on one. Compute",
        "shares are of the catalogue's dense peak at its stated clock, which cards exceed.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        f'SOURCE = "fit of timm\'s benchmark, huggingface/pytorch-image-models ({DATE})"',
        "# Structure: part of the GPU's compute share, traffic of activations, and its part where",
        "# element-wise layers are fused by a compiler. Other structures: the geometric means.",
        "STRUCTURES = {",
        *(f'    "{k}": {row(v)},' for k, v in zip((*KINDS, "other"), by_kind, strict=True)),
        "}",
        "# GPU and mode: compute share, traffic, compute share of fused attention.",
        "GPUS = {",
        *(f'    ("{g}", "{m}"): {row(v)},' for (g, m), v in sorted(by_gpu.items())),
        "}",
        "# GPUs that were not measured, by line: data center GPUs sum in FP32 at full rate as",
        "# professional cards do.",
        "LINES: dict[tuple[str | None, str], tuple[float, float, float]] = {",
        *(f'    ("{line}", "{mode}"): {row(v)},' for (line, mode), v in modes.items()),
        "}",
        "# Compute share of a patch embedding of 28 pixels or more.",
        f'STEM = {{"rtx-3090-24gb": {text(numbers["STEM"])}}}',
        f"STEM_OTHER = {text(numbers['STEM_OTHER'])}",
        f"NARROW_SLOWDOWN = {text(numbers['NARROW_SLOWDOWN'])}",
        "# Traffic of attention scores, whether a compiler fuses.",
        "SCORE_TRAFFIC = {",
        *(f'    ("{kind}", {fused}): {text(numbers[kind, fused])},' for kind, fused in SCORES),
        "}",
        f"LAUNCH_SECONDS = {text(numbers['LAUNCH_SECONDS'])}",
        "# What blocks add to their traffic in eager mode; the last of PyTorch 2.9.",
        *(f"{name} = {text(numbers[name])}" for name in BLOCKS),
        "TRAINING = {",
        *(f'    "{name}": {text(value)},' for name, value in training.items()),
        "}",
        "# 90 % of the errors on a GPU or a structure that was left out of the fit.",
        f"UNSEEN_FACTORS = ({text(low)}, {text(high)})",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
