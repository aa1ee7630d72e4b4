"""What a workload says that cannot all be true."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Change, Diagnostic, did_you_mean
from gpuplan.manifest.parts import Secret
from gpuplan.manifest.v1 import Workload
from gpuplan.models.model import Diffusion, Model, Speech, Transformer, Vision
from gpuplan.plan.times import LIMITS, PLAIN, limited
from gpuplan.sizing.ask import fields as f
from gpuplan.sizing.ask.fields import Kind, ManifestField
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.ask.messages import contradiction, missing_field, unpredicted
from gpuplan.sizing.ask.pooling import pooling_problems
from gpuplan.sizing.ask.pools import pools_problems
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
    (f.VIDEO_MEAN, f.VIDEO_P95),
)
LENGTHS = (f.TRAINING_TOKENS, f.EPOCHS, f.STEPS)
FLOATING = ("bf16", "fp16")
TRAINING_PRECISIONS = ("bf16", "fp16", "fp8")
GROUPING = ("megatron-bridge",)  # engines that divide states inside groups of nodes
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
    yield from _accepted(workload, written, at)
    for mean, large in ((f.IMAGE_MEAN, f.IMAGE_P95), (f.VIDEO_MEAN, f.VIDEO_P95)):
        yield from _spread_sizes(written, mean, large, at)
    if kind in f.READ and isinstance(model, Transformer) and workload.precision:
        named = workload.engine.name if workload.engine else None
        yield from precision_problem(model, workload.precision, named, at)
    if kind in f.SPEECH:
        yield from _speech(workload, model, at)
    if kind in f.POOLING and isinstance(model, Transformer):
        yield from pooling_problems(workload, model, at)
    if isinstance(model, Vision):
        from gpuplan.sizing.ask.vision import vision_problems

        yield from vision_problems(workload, kind, model, at)
    if kind == "training":
        yield from _training(workload, model, written, at)


def _speech(workload: Workload, model: Model | None, at: Origin) -> Iterator[Diagnostic]:
    if isinstance(model, Speech) and workload.precision not in (None, *FLOATING):
        yield contradiction(
            f"no engine serves {model.identifier} in {workload.precision}",
            at.child("precision"),
            f"its weights are published in {model.checkpoint_precision}",
            "leave it out",
            Change(at.child("precision"), None),
        )


def _accepted(workload: Workload, written: Written, at: Origin) -> Iterator[Diagnostic]:
    """Misses that are accepted of objectives that are not there."""
    texts = workload.overrides
    for number, limit in enumerate(texts.accepted_misses or () if texts else ()):
        if not _stated(limit, written):
            single = (n for n in LIMITS if "." in n or n not in PLAIN)
            stated = [limit for limit in single if _stated(limit, written)]
            yield contradiction(
                f"a miss of '{limit}' is accepted, and it has no objective",
                at.child("overrides", "accepted_misses", number),
                "nothing to miss",
                f"remove it: objectives are {', '.join(stated)}"
                if stated
                else "remove it, or write it under `slo`",
                Change(at.child("overrides", "accepted_misses", number), None),
            )


def _stated(limit: str, written: Written) -> bool:
    paths = [f.OBJECTIVES[name].path for name in limited(limit)] or [f"slo.{limit}"]
    return any(path in written for path in paths)


def _spread_sizes(
    written: Written, of_mean: ManifestField, of_large: ManifestField, at: Origin
) -> Iterator[Diagnostic]:
    """Of sizes so far apart a tenth of the images would be more than all of them."""
    mean, large = written.get(of_mean.path), written.get(of_large.path)
    what = of_mean.parts[1]
    if mean is None or large is None:
        return
    from gpuplan.sizing.physics.images.sizes import MOST_SPREAD

    if large.value <= MOST_SPREAD * mean.value:
        return
    yield unpredicted(
        f"the time of {what} whose sizes are so far apart",
        at.child(*of_large.parts),
        f"{large.value / mean.value:.3g} times the pixels of the mean, at most {MOST_SPREAD:g}",
        f"write two workloads, one for the large {what}",
    )


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
                Change(at.child(*tail.parts), None),
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
            "leave it out, raise it, or lower the load's 95th percentiles",
            Change(at.child("overrides", "max_model_len"), None),
        )


def _serving(workload: Workload, written: Written, at: Origin) -> Iterator[Diagnostic]:
    load = workload.load
    if load and load.requests_per_second and load.concurrency:
        yield contradiction(
            "'requests_per_second' and 'concurrency' both say how much arrives",
            at.child("load", "concurrency"),
            "an open and a closed loop",
            "keep requests_per_second, or the users of a closed loop",
            Change(at.child("load", "concurrency"), None),
        )
    answer, limit = (
        written.get(f.OUTPUT_MEAN.path),
        written.get(f.OBJECTIVES["time_per_output_token"].path),
    )
    if answer and limit and answer.value <= 1:
        yield contradiction(
            "an answer of one token has no time per output token",
            at.child(*f.OBJECTIVES["time_per_output_token"].parts),
            "the time between two tokens of an answer",
            "limit time_to_first_token or request_latency instead",
        )
    accepted = written.get(f.ACCEPTED_TOKENS.path)
    drafted = written.get(f.DRAFT_TOKENS.path)
    if accepted and drafted and accepted.value > drafted.value + 1:
        yield contradiction(
            f"{accepted.value:g} tokens of a step are accepted, {drafted.value:g} are drafted",
            at.child("speculative", "accepted_tokens"),
            f"a step yields {drafted.value + 1:g} at most: all drafts and one more",
            f"lower accepted_tokens to {drafted.value + 1:g}, or raise draft_tokens",
            Change(at.child("speculative", "accepted_tokens"), drafted.value + 1),
        )
    yield from _draft_model(workload, at.child("speculative"))
    yield from pools_problems(workload, at)


def _draft_model(workload: Workload, at: Origin) -> Iterator[Diagnostic]:
    drafts = workload.speculative
    if drafts is not None and drafts.revision is not None and drafts.model is None:
        yield contradiction(
            "a revision of no draft model",
            at.child("revision"),
            "no 'model' beside it",
            "name the draft model, or remove the revision",
            Change(at.child("revision"), None),
        )
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

    for number, name in enumerate(workload.public_variables):
        if name not in workload.environment:
            yield contradiction(
                f"public variable '{name}' is no variable of 'environment'",
                at.child("public_variables", number),
                did_you_mean(name, tuple(workload.environment)),
                "remove it, or correct the name",
            )


def _well_formed(secret: Secret) -> bool:
    if secret.config is not None:
        return secret.secret is None and secret.key is None
    return secret.secret is not None


def _untrained(model: Model | None, at: Origin) -> Iterator[Diagnostic]:
    """Models whose training nothing predicts."""
    name = model.identifier if model else ""
    what = {Diffusion: f"an image model ({name})", Speech: f"a model of speech ({name})"}
    said = next((words for kind, words in what.items() if isinstance(model, kind)), None)
    if isinstance(model, Transformer) and model.pooling:
        said = f"a model that writes no text ({model.architecture})"
    if said:
        yield contradiction(
            f"training of {said} is not sized",
            at.child("model"),
            "language models only",
            "choose a language model",
        )


def _training(
    workload: Workload, model: Model | None, written: Written, at: Origin
) -> Iterator[Diagnostic]:
    lengths = [field for field in LENGTHS if field.path in written]
    where = at.child("training")
    yield from _untrained(model, at)
    if not lengths and workload.training:
        yield missing_field("training.steps", "training", where, "write tokens, epochs or steps")
    for extra in lengths[1:]:
        yield contradiction(
            f"'{lengths[0].path}' and '{extra.path}' both say how long the run is",
            at.child(*extra.parts),
            "two lengths",
            "keep one of tokens, epochs and steps",
            Change(at.child(*extra.parts), None),
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
            Change(at.child("task"), "finetuning"),
        )
    yield from _grouped(workload, at)
    if workload.precision and workload.precision not in TRAINING_PRECISIONS:
        yield contradiction(
            f"'{workload.precision}' is not a training precision",
            at.child("precision"),
            f"use {', '.join(TRAINING_PRECISIONS)}",
            "leave it out; for QLoRA write `lora: {rank: 16, quantized: true}`",
            Change(at.child("precision"), None),
        )


def _grouped(workload: Workload, at: Origin) -> Iterator[Diagnostic]:
    """Sharding in groups, of engines that divide nothing so."""
    named = workload.engine.name if workload.engine else None
    if workload.training and workload.training.sharding == "hsdp" and named not in GROUPING:
        yield contradiction(
            "sharding 'hsdp' is that of another engine",
            at.child("training", "sharding"),
            f"{named or 'the usual engine'} is started with DeepSpeed, whose stages are zero1 to"
            " zero3",
            f"write `engine: {GROUPING[0]}`, or leave it out",
            Change(at.child("engine"), GROUPING[0]),
            Change(at.child("training", "sharding"), None),
        )
