"""Public points of SDXL and diffusion transformers → constants of gpuplan/sizing/data/images.py and
gpuplan/accuracy/data/images.py.

    python -m bench.fitting.diffusion INFERENCE_CSV

Prints them, with the errors: parts of the peak of SDXL by GPU (medians), and least squares on the
log error of the few points of transformers, held by the priors below. Needs numpy and scipy.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from bench.fitting.fit import fit, rounded
from gpuplan.accuracy.metrics import images, video
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.sizing.data import images as measured

# Start (the published or measured value) and prior width of its logarithm.
SCALARS: dict[Any, tuple[float, float]] = {
    "DENOISER_START_SECONDS": (0.2, 0.7),
    "PIXEL_DECODE_SECONDS": (5e-7, 0.3),
    "PIXEL_DECODE_FLOP": (8e7, 0.3),
    "RING_STEP_SECONDS": (5e-5, 0.5),  # by `video`, of several GPUs
}
SHARES = {
    ("DENOISER_MATMUL", "hopper"): (0.72, 0.1),
    ("DENOISER_MATMUL", "h20-96gb"): (0.85, 0.1),
    ("DENOISER_ATTENTION", "hopper"): (0.36, 0.05),
    ("DENOISER_ATTENTION", "h20-96gb"): (0.60, 0.2),
}
NOISE = 0.03


def put(constants: dict[Any, float]) -> None:
    for name in SCALARS:
        setattr(measured if hasattr(measured, name) else video, name, constants[name])
    for name, key in SHARES:
        getattr(measured, name)[key] = constants[name, key]


def denoisers(points: list[Point]) -> None:
    cases = [
        (p, p.case)
        for p in points
        if p.metric in ("image_latency", "video_latency") and isinstance(p.case, Case)
    ]

    def errors(constants: dict[Any, float]) -> np.ndarray:
        put(constants)
        answers = [(p, video.latency(c)) for p, c in cases]
        return np.log([a.value / p.value for p, a in answers if isinstance(a, Reckoned)])

    constants = fit(SCALARS | SHARES, errors, scale=NOISE, soft=False)
    for name, value in rounded(constants).items():
        print(name, value)
    for (point, _), error in zip(cases, errors(constants), strict=True):
        print(f"  {point.identifier} {point.value:8} {np.exp(error) - 1:+.1%}")


def unets(points: list[Point]) -> None:
    parts: dict[tuple[str, str], list[float]] = defaultdict(list)
    for point in points:
        predictor = {
            "mlperf_offline_samples_per_s": images.samples,
            "mlperf_server_samples_per_s": images.samples,
        }.get(point.metric)
        if predictor is None or not isinstance(point.case, Case):
            continue
        answer = predictor(point.case)
        if isinstance(answer, Reckoned):
            names = ("scenario", "release", "power", "engine")
            scenario = " ".join(str(answer.features[name]) for name in names)
            gpu, ratio = str(answer.features["gpu"]), point.value / answer.value
            parts[gpu, scenario].append(ratio)
            parts[gpu, f"{scenario} part"].append(ratio * measured.UNET_LOW.get(gpu, 0.0))
    for (gpu, scenario), ratios in sorted(parts.items()):
        print(f"{gpu:24} {scenario:40} n={len(ratios):3} {np.median(ratios):.3f}")


def main() -> None:
    points = read_points([Path(sys.argv[1])])
    unets(points)
    denoisers(points)


if __name__ == "__main__":
    main()
