"""Training throughput of measured points: tokens, samples, FLOP and steps in their own units.

One prediction for all of them, the seconds of the planner's step.
"""

from __future__ import annotations

from gpuplan.accuracy.metrics.flops import flop_per_token
from gpuplan.accuracy.metrics.steps import Step, step
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Field, Term
from gpuplan.sizing.evidence.formula import canonical

LOGGED = "reported_throughput"  # of all GPUs
STEPS = ("step_time", "train_step_time")
RATES = (
    "tokens_per_s_per_gpu",
    "tokens_per_s",
    "model_tflops_per_gpu",
    "samples_per_s_per_gpu",
    LOGGED,
)
METRICS = (*STEPS, *RATES)


def unit_seconds(case: Case, of: Step) -> float:
    """Seconds of a step that goes at one unit of the metric."""
    gpus = 1 if case.metric in ("tokens_per_s", LOGGED) else of.setting.division.gpus
    if case.metric in STEPS:
        return 1.0
    if case.metric == "model_tflops_per_gpu":
        each = flop_per_token(of.model, of.setting, case.row["engine"])
        return of.tokens * each / (1e12 * gpus)
    samples = case.metric in ("samples_per_s_per_gpu", LOGGED)
    return (of.setting.batch if samples else of.tokens) / gpus


def throughput(case: Case) -> Reckoned | str:
    """A language model's training speed, in the metric's unit."""
    of = step(case)
    if isinstance(of, str):
        return of
    one, rate = unit_seconds(case, of), case.metric not in STEPS

    def other(number: float) -> float:
        """Seconds of a step at a rate, the rate at those seconds."""
        return one / number if rate else number

    def planned(field: Field) -> Estimate:
        seconds = of.planned(field)
        if not rate:
            return seconds
        value, low, high = (other(s) for s in (seconds.value, seconds.high, seconds.low))
        return Estimate(
            value=canonical(value), low=canonical(low), high=canonical(high), basis=seconds.basis
        )

    return Reckoned(
        value=other(of.seconds),
        quantity=of.quantity,
        features=of.run.step_features(of.setting.micro),
        best=other(of.values["roofline_seconds"]),
        sense="rate" if rate else "time",
        anchored=other,
        planned=planned,
    )


AGED = ("age", 4.0)  # releases, of two months, after which software tells less of its hardware
_LOAD = (
    ("log_length", 2.0),
    ("log_micro", 1.0),
    ("age", 1.0),
    ("log_expert", 1.0),
)
_LAYOUT = (
    ("log_gpus", 3.0),
    ("log_length", 2.0),
    ("log_micro", 1.0),
    ("log_accumulation", 3.0),
    ("log_tensor", 1.0),
    ("log_pipeline", 1.0),
    ("log_context", 1.0),
    ("log_expert", 1.0),
    ("sharded", 0.7),
    ("age", 1.0),
)


def _terms(more: float = 1.0) -> tuple[Term, ...]:
    def term(amplitude: float, same: str, *scales: tuple[str, float]) -> Term:
        return Term(amplitude=amplitude * more, same=tuple(same.split()), scales=scales)

    sizes = (("log_hidden", 1.5), ("log_tokens", 2.0), ("log_length", 2.0))
    return (
        term(0.028, "framework model"),
        term(0.029, "framework gpu", AGED),
        term(0.032, "framework precision generation", AGED),
        term(0.039, "framework model generation", *_LOAD),
        term(0.069, "framework gpu family", *_LAYOUT, ("log_parameters", 2.0)),
        term(0.045, "framework method", *sizes),
    )


_REACHES = (
    (("framework", "model", "gpu", "precision", "method"), True),
    (("framework", "gpu", "recipe", "method"), True),
    (("framework", "model"), False),
    (("framework", "recipe"), False),
    (("framework",), False),
    ((), False),
)
# What a precision brings to a kind of model is not known before it was measured on one, and how a
# mixture runs not before the model was: constants fitted without it are off by 8 %, not by 5.
_UNTRIED = (
    Term(amplitude=0.12, same=("framework", "recipe")),
    Term(amplitude=0.04, same=("framework", "model")),
)
_KINDS = (("", _terms(), 0.044), ("_mixture", (*_terms(0.6), *_UNTRIED), 0.06))
PRIORS = {
    f"training_step{kind}": Prior(
        quantity=f"training_step{kind}",
        terms=terms,
        noise=noise,
        reaches=_REACHES,
        by="framework",
        unit="s",
    )
    for kind, terms, noise in _KINDS
}
