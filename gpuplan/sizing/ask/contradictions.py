"""What a workload says that cannot all be true."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.parts import Secret
from gpuplan.manifest.v1 import Workload
from gpuplan.models.model import Diffusion, Model, Transformer
from gpuplan.sizing.ask import fields as f
from gpuplan.sizing.ask.fields import Kind
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.ask.messages import contradiction, missing_field
from gpuplan.sizing.ask.precision import precision_problem
from gpuplan.source import Origin
from gpuplan.units import format_quantity

Written = dict[str, Given]  # by path
# Second is at least first.
ORDERED = (
    (f.MEAN_RATE, f.PEAK_RATE),
    (f.INPUT_MEAN, f.INPUT_P95),
    (f.OUTPUT_MEAN, f.OUTPUT_P95),
    (f.IMAGE_MEAN, f.IMAGE_P95),
)
LENGTHS = (f.TRAINING_TOKENS, f.EPOCHS, f.STEPS)
TRAINING_PRECISIONS = ("bf16", "fp16", "fp8")
DAY_SECONDS = 86400
DRAFT_MODELS = ("eagle", "eagle3", "draft_model")  # methods that load one


def contradictions(
    workload: Workload, kind: Kind, model: Model | None, written: Written, at: Origin
) -> Iterator[Diagnostic]:
    yield from _order(written, at)
    yield from _context(model, written, at)
    yield from _secrets(workload, at)
    yield from _serving(workload, written, at)
    if (idle := written.get(f.IDLE.path)) and idle.value >= DAY_SECONDS:
        yield contradiction(
            f"idle for {format_quantity(idle.value, 's')} of each day",
            at.child("load", "idle"),
            "a day has 24 h",
            "write the idle hours of one day, for example '10 h'",
        )
    if kind in ("serving", "batch") and isinstance(model, Transformer) and workload.precision:
        yield from precision_problem(model, workload.precision, at)
    if kind == "training":
        yield from _training(workload, model, written, at)


def _order(written: Written, at: Origin) -> Iterator[Diagnostic]:
    for mean, tail in ORDERED:
        low, high = written.get(mean.path), written.get(tail.path)
        if low and high and high.value < low.value:
            parent, _, name = tail.path.rpartition(".")
            yield contradiction(
                f"'{name}' is below the mean",
                at.child(*tail.parts),
                f"{high.value:g} < {low.value:g}",
                f"raise it, or leave it out of '{parent}'",
            )


def _context(model: Model | None, written: Written, at: Origin) -> Iterator[Diagnostic]:
    if not isinstance(model, Transformer):
        return
    longest = sum(
        max((n.value for field in pair if (n := written.get(field.path))), default=0.0)
        for pair in ((f.INPUT_MEAN, f.INPUT_P95), (f.OUTPUT_MEAN, f.OUTPUT_P95))
    )
    lengths = (
        (["load"], longest),
        *((field.parts, written.get(field.path)) for field in (f.SEQUENCE_LENGTH, f.MAX_MODEL_LEN)),
    )
    for path, length in lengths:
        tokens = 0 if length is None else float(length)
        if tokens > model.context_length:
            yield contradiction(
                f"{tokens:,.0f} tokens are more than {model.identifier} can take",
                at.child(*path),
                f"its context is {model.context_length:,} tokens",
                "shorten them, or choose a model with a longer context",
            )
    limit = written.get(f.MAX_MODEL_LEN.path)
    if limit and limit.value < longest:
        yield contradiction(
            f"'max_model_len' {limit.value:,.0f} cuts off the load's longest requests",
            at.child("overrides", "max_model_len"),
            f"input and output reach {longest:,.0f} tokens",
            "raise it, or lower the load's 95th percentiles",
        )


def _serving(workload: Workload, written: Written, at: Origin) -> Iterator[Diagnostic]:
    load = workload.load
    if load and load.requests_per_second and load.concurrency:
        yield contradiction(
            "'requests_per_second' and 'concurrency' both say how much arrives",
            at.child("load", "concurrency"),
            "an open and a closed loop",
            "keep requests_per_second, or the users of a closed loop",
        )
    accepted = written.get(f.ACCEPTED_TOKENS.path)
    drafted = written.get(f.DRAFT_TOKENS.path)
    if accepted and drafted and accepted.value > drafted.value + 1:
        yield contradiction(
            f"{accepted.value:g} tokens of a step are accepted, {drafted.value:g} are drafted",
            at.child("speculative", "accepted_tokens"),
            f"a step yields {drafted.value + 1:g} at most: all drafts and one more",
            "raise draft_tokens, or lower accepted_tokens",
        )
    yield from _draft_model(workload, at.child("speculative"))
    if workload.disaggregation:
        yield contradiction(
            f"disaggregation '{workload.disaggregation}' is not planned",
            at.child("disaggregation"),
            "no backend writes a model as a pool for prefill and a pool for decode",
            "remove it: every replica then does both; `gpuplan capacity --split` compares them",
        )


def _draft_model(workload: Workload, at: Origin) -> Iterator[Diagnostic]:
    drafts = workload.speculative
    if drafts is None or (drafts.method is None and drafts.model is None):
        return
    needed = drafts.method in DRAFT_MODELS
    if needed and drafts.model is None:
        yield contradiction(
            f"method '{drafts.method}' needs a draft model",
            at.child("method"),
            "no 'model' beside it",
            "name it, for example `model: organisation/draft`",
        )
    if not needed and drafts.model is not None:
        yield contradiction(
            f"method '{drafts.method}' has no draft model"
            if drafts.method
            else "a draft model without the method that uses it",
            at.child("model"),
            f"methods with one are {', '.join(DRAFT_MODELS)}",
            "name the method, or remove the model",
        )


def _secrets(workload: Workload, at: Origin) -> Iterator[Diagnostic]:
    for name, secret in sorted(workload.secrets.items()):
        if not _well_formed(secret):
            yield contradiction(
                f"secret '{name}' needs one place to come from",
                at.child("secrets", name),
                "write 'config', or 'secret' with its 'key'",
                "for example `{config: hfToken}` or `{secret: hf, key: token}`",
            )


def _well_formed(secret: Secret) -> bool:
    if secret.config is not None:
        return secret.secret is None and secret.key is None
    return secret.secret is not None


def _training(
    workload: Workload, model: Model | None, written: Written, at: Origin
) -> Iterator[Diagnostic]:
    lengths = [field for field in LENGTHS if field.path in written]
    where = at.child("training")
    if isinstance(model, Diffusion):
        yield contradiction(
            f"training of an image model ({model.identifier}) is not sized",
            at.child("model"),
            "language models only",
            "choose a language model",
        )
    if not lengths and workload.training:
        yield missing_field("training.steps", "training", where, "write tokens, epochs or steps")
    for extra in lengths[1:]:
        yield contradiction(
            f"'{lengths[0].path}' and '{extra.path}' both say how long the run is",
            at.child(*extra.parts),
            "two lengths",
            "keep one of tokens, epochs and steps",
        )
    if lengths == [f.EPOCHS] and f.DATASET_TOKENS.path not in written:
        parent = at.child("dataset") if workload.dataset else at
        yield missing_field(
            "dataset.tokens", "training", parent, "the tokens of one epoch, for example 2e9"
        )
    if workload.task == "training" and workload.training and workload.training.lora:
        yield contradiction(
            "an adapter is fine-tuning",
            at.child("training", "lora"),
            "task is 'training'",
            "write `task: finetuning`",
        )
    if workload.precision and workload.precision not in TRAINING_PRECISIONS:
        yield contradiction(
            f"'{workload.precision}' is not a training precision",
            at.child("precision"),
            f"use {', '.join(TRAINING_PRECISIONS)}",
            "for QLoRA write `lora: {rank: 16, quantized: true}` and leave precision out",
        )
