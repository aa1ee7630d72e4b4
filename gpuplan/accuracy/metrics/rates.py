"""Training throughput of measured points: tokens, samples, FLOP and steps in their own units."""

from __future__ import annotations

from gpuplan.accuracy.metrics import steps
from gpuplan.accuracy.metrics.flops import flop_per_token
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.points.settings import Setting
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.model import Transformer
from gpuplan.sizing.calibration.anchors import Term

LOGGED = "reported_throughput"  # of all GPUs
STEPS = ("step_time", "train_step_time")
QUANTITIES = {
    "tokens_per_s_per_gpu": "training_rate",
    "tokens_per_s": "training_rate",
    "model_tflops_per_gpu": "training_flops",
    "step_time": "training_step",
    "train_step_time": "training_step",
    "samples_per_s_per_gpu": "samples_rate",
    LOGGED: "samples_rate",
}


def per_gpu(case: Case, setting: Setting, value: float) -> float:
    """Tokens per second and GPU of a measured value."""
    gpus = setting.division.gpus
    if case.metric in STEPS:
        return setting.batch * setting.length / value / gpus
    if case.metric == "model_tflops_per_gpu":
        assert isinstance(case.model, Transformer)
        return value * 1e12 / flop_per_token(case.model, setting)
    if case.metric == "samples_per_s_per_gpu":
        return value * setting.length
    if case.metric == LOGGED:
        return value * setting.length / gpus
    return value / gpus if case.metric == "tokens_per_s" else value


def throughput(case: Case) -> Reckoned | str:
    """A language model's training speed, in the metric's unit."""
    found = steps.step(case)
    if isinstance(found, str):
        return found
    setting = found.setting
    one = per_gpu(case, setting, 1.0)  # tokens/s and GPU of one unit; of steps, times the value
    slow = case.metric in STEPS
    mixed = steps.family(found.model) != "dense"
    quantity = QUANTITIES[case.metric] + ("_mixture" if mixed else "")
    return Reckoned(
        value=one / found.rate if slow else found.rate / one,
        quantity=quantity,
        features=steps.features(case, setting),
        best=one / found.best if slow else found.best / one,
        sense="time" if slow else "rate",
    )


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
        term(0.029, "framework gpu"),
        term(0.032, "framework precision generation"),
        term(0.039, "framework model generation", *_LOAD),
        term(0.069, "framework gpu family", *_LAYOUT, ("log_parameters", 2.0)),
        term(0.045, "framework method", *sizes),
    )


_REACHES = (
    (("framework", "model", "gpu", "precision"), True),
    (("framework", "model"), True),
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
    name + kind: Prior(quantity=name + kind, terms=terms, noise=noise, reaches=_REACHES)
    for name in sorted(set(QUANTITIES.values()))
    for kind, terms, noise in _KINDS
}
