"""Vision points: timm's benchmark of inference and training, images per second."""

from __future__ import annotations

import re

from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.images.networks import Profile, VisionNetwork
from gpuplan.models.model import Vision
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors, Field, Term
from gpuplan.sizing.data import vision as fitted
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import estimate, inverse
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.vision.classifier import Classifier
from gpuplan.sizing.physics.vision.correction import QUANTITY, features
from gpuplan.sizing.physics.vision.network import TRAINING, vision_scope

_ROW = "the point's row"
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
    quantity=QUANTITY,
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
    least=1.35,  # of a GPU that nobody measured, networks that others did are no surer
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
    if not training:
        return _planned(case, network, profile, mode)
    scope, measured = vision_scope(network, profile, case.gpu, mode)
    batch = {"batch": max(case.number("batch", 64), 1.0)}
    times = TRAINING(scope | fitted.TRAINING | batch)
    rate, best = 1 / times["image_seconds"], 1 / times["least_seconds"]
    if not (network.original and measured):
        return estimate(rate, fitted.UNSEEN_FACTORS, "extrapolated")
    return Reckoned(
        value=rate,
        quantity="vision_training",
        features=features(network, profile, f"{case.gpu.identifier} {mode}"),
        best=best,
        sense="rate",
    )


def _planned(
    case: Case, network: VisionNetwork, profile: Profile, mode: str
) -> Reckoned | Estimate:
    """The planner's replica, its steps as large as timm's."""
    place = features(network, profile, f"{case.gpu.identifier} {mode}")
    replica = Classifier(
        model=Vision(
            identifier=network.identifier,
            revision=None,
            architecture="timm",
            network=network,
            pixels=profile.pixels,
            parameters=network.parameters,
            source=_ROW,
        ),
        device=whole(GpuOffer(gpu=case.gpu, gpus_per_node=1)),
        engine="timm",
        load={
            "images": Quantity(1.0, "1", _ROW),
            "pixels_mean": Quantity(float(profile.pixels**2), "1", _ROW),
        },
        utilization=Quantity(0.9, "1", _ROW),
        confidence=0.8,
        anchors=Anchors(),
        mode=mode,
    )
    batch = max(case.number("batch", 256), 1.0)

    def planned(field: Field) -> Estimate:
        near = replica.near(field, place)
        factors, basis = near.interval
        return estimate(1 / near.steps(batch)["gpu_image_seconds"], inverse(factors), basis)

    values = replica.steps(batch)
    if not replica.measured:
        factors, basis = replica.interval
        return estimate(1 / values["gpu_image_seconds"], inverse(factors), basis)
    return Reckoned(
        value=1 / values["image_seconds"],
        quantity=QUANTITY,
        features=place,
        best=1 / values["least_seconds"],
        sense="rate",
        planned=planned,
    )


def _mode(case: Case) -> str:
    """ "eager 2.9": how the network runs, and the release of PyTorch."""
    release = re.search(r"pt(\d+\.\d+)", case.row["engine"])
    how = "compiled" if "compile" in case.row["precision"] else "eager"
    return f"{how} {release[1]}" if release else how
