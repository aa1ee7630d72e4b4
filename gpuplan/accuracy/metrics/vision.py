"""Vision points: timm's benchmark of inference and training, images per second."""

from __future__ import annotations

import math
import re

from gpuplan.accuracy.data import vision as fitted
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.protocols.vision import INFERENCE, TRAINING, vision_scope
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.images.networks import Profile, VisionNetwork
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Term
from gpuplan.sizing.evidence.intervals import estimate

# Structures whose sizes differ more than their dimensions tell.
UNEVEN = ("resnet", "depthwise", "swin-v2")
SHAPE = (("width", 0.7), ("pixels", 0.7))
SIZE = (("macs", 1.0), ("intensity", 0.7), ("pixels", 1.0))
REACHES = (
    (("network",), True),
    (("structure", "variant", "run"), True),
    (("structure", "run"), True),
    (("structure",), False),
    ((), False),
)
INFERENCE_PRIOR = Prior(
    quantity="vision_inference",
    terms=(
        Term(amplitude=0.020, same=("structure", "run")),
        Term(amplitude=0.029, same=("structure", "variant", "run")),
        Term(amplitude=0.02, same=("network",)),
        Term(amplitude=0.050, same=("uneven",)),
        Term(amplitude=0.013, same=("structure", "patch", "run")),
        Term(amplitude=0.033, same=("structure", "run"), scales=SHAPE),
        Term(amplitude=0.023, same=("structure", "variant"), scales=SIZE),
    ),
    noise=0.010,
    reaches=REACHES,
)
TRAINING_PRIOR = Prior(
    quantity="vision_training",
    terms=(
        Term(amplitude=0.05, same=("structure",)),
        Term(amplitude=0.03, same=("structure", "variant")),
        Term(amplitude=0.03, same=("network",)),
        Term(amplitude=0.05, same=("structure",), scales=SIZE),
    ),
    noise=0.02,
    reaches=REACHES,
)
PRIORS = {prior.quantity: prior for prior in (INFERENCE_PRIOR, TRAINING_PRIOR)}


def images_per_second(case: Case) -> Reckoned | Estimate | str:
    """Of one GPU, at the largest batch that fits."""
    network = case.model
    if not isinstance(network, VisionNetwork):
        return "images of another model than a vision network of timm"
    kind = case.row.get("kind", "")
    if kind not in ("training", "inference"):
        return "the column 'kind' says neither 'training' nor 'inference'"
    training = kind == "training"
    size = re.match(r"(\d+)px", case.row["seq_len" if training else "input_len"])
    if size is None:
        return "the size of the images is not given"
    if case.number("n_gpus", 1) != 1:
        return "vision networks are planned on one GPU"
    profile, mode = network.at(int(size[1])), _mode(case)
    scope, measured = vision_scope(network, profile, case.gpu, mode)
    if training:
        scope |= fitted.TRAINING | {"batch": max(case.number("batch", 64), 1.0)}
    found = (TRAINING if training else INFERENCE)(scope)
    rate, best = 1 / found["image_seconds"], 1 / found["least_seconds"]
    if not (network.original and measured):
        return estimate(rate, fitted.UNSEEN_FACTORS, "extrapolated")
    return Reckoned(
        value=rate,
        quantity="vision_training" if training else "vision_inference",
        features=features(network, profile, f"{case.gpu.identifier} {mode}"),
        best=best,
        sense="rate",
    )


def _mode(case: Case) -> str:
    """ "eager 2.9": how the network runs, and the release of PyTorch."""
    release = re.search(r"pt(\d+\.\d+)", case.row["engine"])
    how = "compiled" if "compile" in case.row["precision"] else "eager"
    return f"{how} {release[1]}" if release else how


def features(network: VisionNetwork, profile: Profile, run: str) -> dict[str, str | float]:
    size = math.log2(network.parameters)
    own = f"{network.identifier} {profile.pixels}"
    return {
        "model": network.identifier,
        "gpu": run.split(maxsplit=1)[0],
        "structure": network.structure,
        "variant": network.variant,
        "network": f"{network.structure} {network.width} {network.patch} {round(4 * size)}",
        "patch": str(network.patch),
        "uneven": own if network.structure in UNEVEN else "",
        "run": run,
        "width": math.log2(network.width) if network.width else size / 2 - 4,
        "pixels": math.log2(profile.pixels),
        "macs": math.log2(profile.macs),
        "intensity": math.log2(profile.macs / profile.activations),
    }
