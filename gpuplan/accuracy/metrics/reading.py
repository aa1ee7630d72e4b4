"""Models that read texts and write none: BERT of MLPerf Inference offline, embedding servers. The
planner's reader on each GPU, with its steps full."""

from __future__ import annotations

from gpuplan.accuracy.metrics.offline import language_model
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Field, Term
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import estimate, inverse
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.pooling.correction import QUANTITY, features
from gpuplan.sizing.physics.pooling.reader import Reader

_ROW = "the point's row"
_SHARE = Quantity(0.9, "1", "the engine's own default")
PRIOR = Prior(
    quantity=QUANTITY,
    terms=(
        Term(amplitude=0.25, same=("engine",)),
        Term(amplitude=0.05, same=("gpu",)),
        Term(amplitude=0.10, same=("form", "engine")),
        Term(amplitude=0.10, same=("width", "engine")),
        Term(amplitude=0.15, same=("run",)),
        Term(amplitude=0.20, same=("power",)),
        Term(amplitude=0.05, same=("model",)),
        Term(amplitude=0.15, same=("engine",), scales=(("input", 1.5),)),
    ),
    noise=0.03,
    reaches=(
        (("run", "model"), True),
        (("run",), True),
        (("engine",), False),
        ((), False),
    ),
)
PRIORS = {PRIOR.quantity: PRIOR}


def reads(case: Case) -> bool:
    """Whether the point is of a model that writes no text."""
    model = case.model
    return isinstance(model, Transformer) and model.role == "encoder"


def samples(case: Case) -> Reckoned | str:
    """Texts per second of all GPUs, offline."""
    if "server" in case.metric:
        return "the server scenario of an encoder is not predicted: its batching is not told"
    return _rate(case, 1 / max(case.number("input_len"), 1.0))


def tokens(case: Case) -> Reckoned | str:
    """Tokens per second that a server reads, on all GPUs."""
    return _rate(case, 1.0)


def _rate(case: Case, scale: float) -> Reckoned | str:
    model, length = language_model(case), case.number("input_len")
    if length <= 0:
        return "the mean length of the texts is not given"
    engine = (case.row["engine"].split() or ["?"])[0].lower()
    mean, most = Quantity(length, "1", _ROW), float(min(model.context_length, 16384))
    reader = Reader(
        model=model,
        device=whole(GpuOffer(gpu=case.gpu, gpus_per_node=1)),
        engine=engine,
        precision=case.precision,
        lengths={
            "texts": Quantity(max(case.number("batch", 1), 1.0), "1", _ROW),
            "input_mean": mean,
            "input_p95": mean,
            "max_model_len": Quantity(most, "1", _ROW),
        },
        utilization=_SHARE,
        confidence=0.8,
        anchors=None,
    )
    values, gpus = reader.at(), case.number("n_gpus", 1)
    read = scale * gpus * values["max_num_batched_tokens"]
    place = {**features(model, case.gpu, engine, case.precision, length), "power": _power(case)}

    def planned(field: Field) -> Estimate:
        near = reader.near(field, place)
        factors, basis = near.interval
        return estimate(read / near.at()["step_seconds"], inverse(factors), basis)

    return Reckoned(
        value=read / values["formula_seconds"],
        quantity=QUANTITY,
        features=place,
        best=read / values["roofline_seconds"],
        sense="rate",
        planned=planned,
    )


def _power(case: Case) -> str:
    return "saving" if "maxq" in case.row.get("locator", "").lower() else "full"
