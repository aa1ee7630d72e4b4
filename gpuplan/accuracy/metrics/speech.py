"""Whisper in MLPerf Inference, offline: the planner's transcriber on each GPU, with many windows at
once."""

from __future__ import annotations

from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.model import Speech
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Field, Term
from gpuplan.sizing.data.speech import WINDOW_TOKENS
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import estimate, inverse
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.speech.transcriber import QUANTITY, Transcriber, features

_ROW = "the point's row"
_SHARE = Quantity(0.9, "1", "the engine's own default")
MOST = 256.0  # windows at once, where they fit
PRIOR = Prior(
    quantity=QUANTITY,
    terms=(
        Term(amplitude=0.25, same=("engine",)),
        Term(amplitude=0.15, same=("gpu",)),
        Term(amplitude=0.10, same=("run",)),
        Term(amplitude=0.10, same=("model",)),
    ),
    noise=0.03,
    reaches=((("run", "model"), True), (("engine",), False), ((), False)),
)
PRIORS = {PRIOR.quantity: PRIOR}


def samples(case: Case) -> Reckoned | str:
    """Windows per second of all GPUs."""
    model = case.model
    if not isinstance(model, Speech):
        return "no model of speech"
    engine = (case.row["engine"].split() or ["?"])[0].lower()
    tokens = case.number("output_len", WINDOW_TOKENS)
    one = Transcriber(
        model=model,
        device=whole(GpuOffer(gpu=case.gpu, gpus_per_node=1)),
        engine=engine,
        precision=case.precision,
        asked={
            "audio": Quantity(float(model.window_seconds), "s", _ROW),
            "output_mean": Quantity(tokens, "1", _ROW),
        },
        utilization=_SHARE,
        confidence=0.8,
        anchors=None,
    )
    count, gpus = _windows(one), case.number("n_gpus", 1)
    values, place = one.at(count), features(model, case.gpu.identifier, engine)

    def planned(field: Field) -> Estimate:
        near = one.near(field, place)
        factors, basis = near.interval
        return estimate(gpus / near.at(count)["window_seconds"], inverse(factors), basis)

    return Reckoned(
        value=gpus / (values["reading_seconds"] + values["writing_seconds"]),
        quantity=QUANTITY,
        features=place,
        best=gpus / values["window_least"],
        sense="rate",
        planned=planned,
    )


def _windows(one: Transcriber) -> float:
    """As many as fit, in powers of two."""
    count = MOST
    while count > 1 and (at := one.at(count))["used_bytes"] > at["usable_bytes"]:
        count /= 2
    return count
