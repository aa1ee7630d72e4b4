"""`gpuplan init`: a first manifest, from answers or from flags, valid as written."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpuplan.cli.common import report_problems, write_text

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic

EPILOG = """\
examples:
  gpuplan init -o chat.yaml
  gpuplan init --model ./config.json --target libvirt --task finetuning -o tune.yaml
  gpuplan init --model meta-llama/Llama-3.1-8B-Instruct --target kubernetes --task inference \\
               --requests-per-second 4 -o chat.yaml
"""


class Question(NamedTuple):
    """One answer: its flag, what is asked, the proposal, and the tasks it is for."""

    flag: str
    text: str
    proposal: str
    tasks: tuple[str, ...] = ()


INFERENCE = ("inference",)
TRAINING = ("training", "finetuning")
CHOICES = {
    "target": ("kubernetes", "libvirt"),
    "task": ("inference", "training", "finetuning", "notebook"),
}
QUESTIONS = (
    Question("name", "name of the stack", "first"),
    Question("target", "where: kubernetes or libvirt", "kubernetes"),
    Question("task", f"what: {', '.join(CHOICES['task'])}", "inference"),
    Question(
        "model",
        "model: a bundled name, or the path of a config.json",
        "meta-llama/Llama-3.1-8B-Instruct",
        INFERENCE + TRAINING,
    ),
    Question("requests_per_second", "requests a second at peak", "4", INFERENCE),
    Question("input_tokens", "tokens a request brings", "1000", INFERENCE),
    Question("output_tokens", "tokens an answer has", "300", INFERENCE),
    Question("tokens", "tokens to train on", "100000000", TRAINING),
    Question("users", "people with a notebook", "8", ("notebook",)),
    Question("gpu_memory", "GPU memory each", "10 GiB", ("notebook",)),
)


def configure(parser: argparse.ArgumentParser) -> None:
    for question in QUESTIONS:
        parser.add_argument(f"--{question.flag.replace('_', '-')}", help=question.text)
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: print)")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")


def run(options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import error
    from gpuplan.manifest.load import load_text

    if options.output and options.output.exists() and not options.force:
        exists = error("GP009", f"{options.output} exists", help="choose another, or --force")
        return report_problems([exists])
    given = answers(options)
    if wrong := [
        unknown(field, given[field]) for field in CHOICES if given[field] not in CHOICES[field]
    ]:
        return report_problems(wrong)
    text = manifest(given)
    reading = load_text(text, str(options.output or "manifest.yaml"))
    if reading.problems:
        return report_problems(reading.problems, reading.sources)
    if problem := write_text(text, str(options.output or "")):
        return report_problems([problem])
    if options.output:
        print(f"wrote {options.output}            next: gpuplan compile {options.output} -o stacks")
    return 0


def unknown(field: str, value: str) -> Diagnostic:
    from gpuplan.diagnostics import did_you_mean, error

    hint, known = did_you_mean(value, CHOICES[field]), ", ".join(CHOICES[field])
    remedy = hint or f"choose one of {known}; the schema of a manifest has more"
    return error("GP005", f"no first manifest for {field} '{value}'", help=remedy)


def answers(options: argparse.Namespace) -> dict[str, str]:
    """Flags first; on a terminal the rest is asked, elsewhere the proposals stand."""
    given: dict[str, str] = {}
    for question in QUESTIONS:
        if question.tasks and given.get("task") not in question.tasks:
            continue
        value = getattr(options, question.flag)
        if value is None and sys.stdin.isatty() and sys.stdout.isatty():
            value = input(f"{question.text} [{question.proposal}]: ").strip()
        given[question.flag] = value or question.proposal
    return given


def manifest(given: dict[str, str]) -> str:
    """The manifest's text; answers are quoted, so any text stays data."""
    return "\n".join(_lines({k: _scalar(v) for k, v in given.items()}, given["task"])) + "\n"


def _scalar(text: str) -> str:
    from gpuplan.render import yaml

    return text if text.replace(".", "", 1).isdigit() else yaml.scalar(text)


def _lines(given: dict[str, str], task: str) -> Iterator[str]:
    yield "# `gpuplan schema manifest` gives the schema with which an editor completes this file."
    yield "apiVersion: gpuplan.dev/v1"
    yield f"name: {given['name']}"
    yield "platform:"
    yield f"  target: {given['target']}"
    if given["target"] == "libvirt":
        yield "  inventory: inventory.yaml   # the hosts: `gpuplan schema inventory`"
    else:
        yield "  # gpus: [h100-sxm-80gb, l40s]   # only these; see `gpuplan catalog list gpus`"
    yield "  # budget: $20,000/month"
    yield "workloads:"
    yield f"- name: {task}"
    yield f"  task: {given['task']}"
    if "model" in given:
        yield f"  model: {given['model']}"
    yield from _load(given, task)


def _load(given: dict[str, str], task: str) -> Iterator[str]:
    if task == "inference":
        yield "  load:"
        yield f"    requests_per_second: {given['requests_per_second']}"
        yield f"    input_tokens: {given['input_tokens']}"
        yield f"    output_tokens: {given['output_tokens']}"
        yield "  slo:"
        yield "    time_to_first_token: 1 s"
        yield "    time_per_output_token: 50 ms"
    elif task == "notebook":
        yield "  notebook:"
        yield f"    users: {given['users']}"
        yield f"    gpu_memory: {given['gpu_memory']}"
    else:
        yield "  training:"
        yield f"    tokens: {given['tokens']}"
