"""Public points of SDXL and diffusion transformers → constants of gpuplan/sizing/data/images.py.

    PYTHONPATH=. python bench/diffusion.py INFERENCE_CSV

Prints them, with the errors: parts of the peak of SDXL by GPU (medians), and least squares on the
log error of the few points of transformers, held by the priors below. Needs numpy and scipy.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from gpuplan.accuracy.metrics import images, video
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.sizing.data import images as fitted

# Start (the published or measured value) and prior width of its logarithm.
SCALARS = {
    "DENOISER_START_SECONDS": (0.2, 0.7),
    "DECODE_SECONDS": (0.5, 0.3),
    "DECODE_FLOP": (8e13, 0.3),
    "RING_STEP_SECONDS": (5e-5, 0.5),
}
SHARES = {
    ("DENOISER_MATMUL", "hopper"): (0.72, 0.1),
    ("DENOISER_MATMUL", "h20-96gb"): (0.85, 0.1),
    ("DENOISER_ATTENTION", "hopper"): (0.36, 0.05),
    ("DENOISER_ATTENTION", "h20-96gb"): (0.60, 0.2),
}
NOISE = 0.03


def put(theta: Any) -> None:
    values = iter(np.exp(theta).tolist())
    for name in SCALARS:
        setattr(fitted, name, next(values))
    for table, key in SHARES:
        getattr(fitted, table)[key] = next(values)


def denoisers(points: list[Point]) -> None:
    found = [(p, p.case) for p in points if p.metric in ("image_latency", "video_latency")]
    cases = [(p, c) for p, c in found if isinstance(c, Case)]
    prior = [*SCALARS.values(), *SHARES.values()]
    start = np.log([value for value, _ in prior])

    def errors(theta: Any) -> Any:
        put(theta)
        answers = [(p, video.latency(c)) for p, c in cases]
        ratios = [a.value / p.value for p, a in answers if isinstance(a, Reckoned)]
        return np.log(ratios)

    def residuals(theta: Any) -> Any:
        held = (theta - start) / np.array([width for _, width in prior])
        return np.concatenate([errors(theta) / NOISE, held])

    theta = least_squares(residuals, start).x
    put(theta)
    for name, value in zip([*SCALARS, *SHARES], np.exp(theta), strict=True):
        print(name, float(f"{value:.4g}"))
    for (point, _), error in zip(cases, errors(theta), strict=True):
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
            told = answer.features
            scenario = f"{told['scenario']} {told['release']} {told['power']} {told['engine']}"
            known = fitted.UNET_LOW.get(str(told["gpu"]), 0.0)
            parts[str(told["gpu"]), scenario].append(point.value / answer.value)
            parts[str(told["gpu"]), f"{scenario} part"].append(point.value / answer.value * known)
    for (gpu, scenario), found in sorted(parts.items()):
        print(f"{gpu:24} {scenario:40} n={len(found):3} {np.median(found):.3f}")


def main() -> None:
    points = read_points([Path(sys.argv[1])])
    unets(points)
    denoisers(points)


if __name__ == "__main__":
    main()
