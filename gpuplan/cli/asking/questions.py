"""What `gpuplan init` asks, and what is wrong with an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuplan.cli.common import say
from gpuplan.targets import implemented

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic


class Question(NamedTuple):
    """One answer: its flag, what is asked, the proposal, and the kinds of workload it is for."""

    flag: str
    text: str
    proposal: str
    kinds: tuple[str, ...] = ()


INFERENCE = ("inference",)
IMAGES = ("images",)
TRAINING = ("training", "finetuning")
CHOICES = {
    "target": implemented(),
    "task": ("inference", "training", "finetuning", "notebook"),
}
QUESTIONS = (
    Question("name", "name of the stack", "first"),
    Question("target", f"where: {' or '.join(CHOICES['target'])}", CHOICES["target"][0]),
    Question("task", f"what: {', '.join(CHOICES['task'])}", "inference"),
    Question(
        "model",
        "model: a bundled name, or the path of a config.json",
        "meta-llama/Llama-3.1-8B-Instruct",
        INFERENCE + TRAINING,
    ),
    Question(
        "model_name",
        "what the engine loads the weights by: ORGANISATION/MODEL",
        "",
        INFERENCE + TRAINING,
    ),
    Question("requests_per_second", "requests a second at peak", "4", INFERENCE + IMAGES),
    Question("input_tokens", "tokens a request brings", "1000", INFERENCE),
    Question("output_tokens", "tokens an answer has", "300", INFERENCE),
    Question("image_size", "pixels of an image", "1024x1024", IMAGES),
    Question("steps", "denoising steps of an image", "28", IMAGES),
    Question("tokens", "tokens to train on", "100000000", TRAINING),
    Question("users", "people with a notebook", "8", ("notebook",)),
    Question("gpu_memory", "GPU memory each", "10 GiB", ("notebook",)),
)


def ask(question: Question) -> str | None:
    """An answer that can be used, or the proposal; None where the person ended the questions."""
    while True:
        try:
            value = input(f"{question.text} [{question.proposal}]: ").strip()
        except EOFError:
            say("\nwhat you answered is kept; the rest is as proposed")
            return None
        wrong = fault(question.flag, value or question.proposal)
        if not wrong:
            return value
        say(f"  {wrong}")


def fault(flag: str, value: str) -> str:
    """What is wrong with an answer, in a sentence; empty where nothing is."""
    from pydantic import TypeAdapter, ValidationError

    from gpuplan.manifest import base, quantities, traffic
    from gpuplan.models.load import known, known_names
    from gpuplan.resolve.messages import unknown_model
    from gpuplan.source import Origin

    if flag in CHOICES:
        remedy = unknown(flag, value).help
        return "" if value in CHOICES[flag] else f"'{value}' is none of them: {remedy}"
    if flag == "model":
        path = path_of(value)
        if path is not None:
            return "" if Path(path).is_file() else f"there is no file {path}"
        if known(value):
            return ""
        near = unknown_model(value, known_names(), Origin("")).label
        near = near or "`gpuplan catalog list models` shows all"
        return f"no bundled model is called '{value}': {near}"
    if flag == "model_name":
        return "" if value else "the engine needs a name, for example example-org/model"
    kinds: dict[str, Any] = {
        "name": base.Name,
        "image_size": traffic.ImageSize,
        "gpu_memory": quantities.Bytes,
        "requests_per_second": base.Positive,
        "tokens": base.Positive,
        "input_tokens": base.Positive,
        "output_tokens": base.Positive,
        "steps": base.Count,
        "users": base.Count,
    }
    try:
        TypeAdapter(kinds[flag]).validate_python(value)
    except ValidationError as problem:
        pattern = problem.errors()[0].get("ctx", {}).get("pattern", "")
        return f"'{value}': {base.RULES.get(pattern) or problem.errors()[0]['msg']}"
    return ""


def unknown(field: str, value: str) -> Diagnostic:
    from gpuplan.diagnostics import did_you_mean, error

    hint, known = did_you_mean(value, CHOICES[field]), ", ".join(CHOICES[field])
    remedy = hint or f"choose one of {known}; the schema of a manifest has more"
    return error("GP005", f"no first manifest for {field} '{value}'", help=remedy)


def path_of(model: str) -> str | None:
    """The path that `model` is, in a manifest too; None where it is a name."""
    from gpuplan.manifest.parts import ModelShorthand

    expanded = ModelShorthand("name", "string").expand(model)
    return expanded.get("path") if isinstance(expanded, dict) else None
