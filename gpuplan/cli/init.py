"""`gpuplan init`: a first manifest, from answers or from flags, valid as written."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.asking.questions import CHOICES, QUESTIONS, ask, path_of, unknown
from gpuplan.cli.common import report_problems, say, write_text
from gpuplan.targets import TARGETS, implemented

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.manifest.load import Reading

ON_HOSTS = " or ".join(name for name in implemented() if TARGETS[name].needs_inventory)
EPILOG = f"""\
examples:
  gpuplan init -o chat.yaml
  gpuplan init --model ./config.json --model-name example-org/model \\
               --task finetuning -o tune.yaml
  gpuplan init --model meta-llama/Llama-3.1-8B-Instruct --target kubernetes \\
               --task inference --requests-per-second 4 -o chat.yaml

On a terminal each answer is checked as it is given; Ctrl-D takes the proposals
for the rest. The schema that editors complete from is written beside the file.
What must be described by hand is said: with --target {ON_HOSTS},
the hosts. An example of them is written as inventory.yaml beside the manifest,
unless that exists.
"""


INVENTORY = "inventory.yaml"
SCHEMA = "manifest.schema.json"
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][0-9]+)?")  # to YAML too; any other text is quoted


def configure(parser: argparse.ArgumentParser) -> None:
    for question in QUESTIONS:
        parser.add_argument(f"--{question.flag.replace('_', '-')}", help=question.text)
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: print)")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")


def run(options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import error

    if options.output and options.output.exists() and not options.force:
        exists = error("GP009", f"{options.output} exists", help="choose another, or --force")
        return report_problems([exists])
    given = answers(options)
    if wrong := [
        unknown(field, given[field]) for field in CHOICES if given[field] not in CHOICES[field]
    ]:
        return report_problems(wrong)
    if problem := misnamed(options, given):
        return report_problems([problem])
    text = manifest(given, options.output.parent if options.output else Path())
    reading = checked(text, options.output or Path("manifest.yaml"))
    if reading.problems:
        return report_problems(reading.problems, reading.sources)
    if problem := write_text(text, str(options.output or "")) or _schema(options.output):
        return report_problems([problem])
    if TARGETS[given["target"]].needs_inventory:
        return _hosts(options.output)
    if options.output:
        say(f"wrote {options.output}            next: gpuplan compile {options.output} -o stacks")
    return 0


def checked(text: str, path: Path) -> Reading:
    """What `text` is read as, with the names and files in it looked up."""
    from gpuplan.catalog.load import load_catalog
    from gpuplan.manifest.load import load_text
    from gpuplan.resolve.run import find_demands

    reading = load_text(text, str(path))
    for document in reading.sources.documents.values():
        document.path += " (not written)"
    for loaded in reading.manifests:
        reading.problems += find_demands(loaded, load_catalog())[1]
    return reading


def _schema(output: Path | None) -> Diagnostic | None:
    """Write what the manifest's first line names, unless it is there; what prevented that."""
    import json

    from gpuplan.schemas import schema

    if output is None or (path := output.with_name(SCHEMA)).exists():
        return None
    return write_text(
        json.dumps(schema("manifest"), indent=2, ensure_ascii=False) + "\n", str(path)
    )


def _hosts(output: Path | None) -> int:
    """Say that the hosts are to be described, and write an example to start from."""
    from gpuplan.cli.asking.example import inventory

    if output is None:
        print("inventory.yaml must describe the hosts: gpuplan schema inventory", file=sys.stderr)
        return 0
    path = output.with_name(INVENTORY)
    if not path.exists():
        if problem := write_text(inventory(), str(path)):
            return report_problems([problem])
        say(f"wrote {path}   an example: describe your own hosts in it first")
    say(f"wrote {output}            then: gpuplan compile {output} -o stacks")
    return 0


def misnamed(options: argparse.Namespace, given: dict[str, str]) -> Diagnostic | None:
    """A config.json without the name that it needs, or a name where there is no config.json."""
    from gpuplan.diagnostics import error

    if given.get("model_name") == "":
        return error(
            "GP004",
            f"{given['model']} does not say what the engine must load",
            help="add --model-name ORGANISATION/MODEL",
        )
    if options.model_name and "model_name" not in given:
        return error(
            "GP007",
            "--model-name is given without a config.json that it names",
            help="name a bundled model by --model alone",
        )
    return None


def answers(options: argparse.Namespace) -> dict[str, str]:
    """Flags first; on a terminal the rest is asked, elsewhere and after Ctrl-D the proposals
    stand."""
    given: dict[str, str] = {}
    asking = sys.stdin.isatty() and sys.stdout.isatty()
    for question in QUESTIONS:
        if question.kinds and kind(given) not in question.kinds:
            continue
        if question.flag == "model_name" and not takes_name(given["model"], options.model_name):
            continue
        value = getattr(options, question.flag)
        if value is None and asking:
            value = ask(question)
            asking = value is not None
        given[question.flag] = value or question.proposal
    return given


def kind(given: dict[str, str]) -> str:
    """The task, or `images` where the model makes them."""
    from gpuplan.models.load import bundled
    from gpuplan.models.model import Diffusion

    task = given.get("task", "")
    makes_images = isinstance(bundled(given.get("model", "")), Diffusion)
    return "images" if task == "inference" and makes_images else task


def takes_name(model: str, name: str | None) -> bool:
    """Whether `model` is a config.json, and one that does not say what the engine must load where
    no `name` is given."""
    from gpuplan.errors import Rejected
    from gpuplan.resolve.models import read_config
    from gpuplan.source import Origin

    path = path_of(model)
    if path is None or name:
        return path is not None
    try:
        return not read_config(path, Path(), Origin("")).get("_name_or_path")
    except Rejected:  # told when the manifest is checked
        return False


def manifest(given: dict[str, str], folder: Path) -> str:
    """The text of a manifest in `folder`; answers are quoted, so any text stays data."""
    path = path_of(given.get("model", ""))
    answers = dict(given)
    if path is not None:
        answers["path"] = path if Path(path).is_absolute() else os.path.relpath(path, folder)
    lines = _lines({k: _scalar(v) for k, v in answers.items()}, kind(given))
    return "\n".join([f"# yaml-language-server: $schema={SCHEMA}", *lines]) + "\n"


def _scalar(text: str) -> str:
    from gpuplan.render import yaml

    return text if NUMBER.fullmatch(text) else yaml.scalar(text)


def _lines(given: dict[str, str], made: str) -> Iterator[str]:
    task = given["task"]
    yield "apiVersion: gpuplan.dev/v1"
    yield f"name: {given['name']}"
    yield "platform:"
    yield f"  target: {given['target']}"
    if provider := TARGETS[given["target"]].provider:
        from gpuplan.catalog.shapes import largest_region

        region = largest_region(provider)
        zones = f"[{', '.join(TARGETS[given['target']].zones).format(region=region)}]"
        yield f"  region: {region}   # `gpuplan catalog list prices --provider {provider}`"
        yield f"  cluster: {{zones: {zones}}}   # those that have the machines"
    if TARGETS[given["target"]].needs_inventory:
        yield f"  inventory: {INVENTORY}   # describe the hosts there: `gpuplan schema inventory`"
    else:
        yield "  # gpus: [h100-sxm-80gb, l40s]   # only these; see `gpuplan catalog list gpus`"
    if TARGETS[given["target"]].lists_machines:
        yield "  slurm:   # your cluster's; `docs/slurm.md` says what they are"
        yield "    controller: slurm-01"
        yield "    storage: /lustre/gpuplan"
        yield "    containers: pyxis"
    yield "  # budget: $20,000/month"
    yield "workloads:"
    yield f"- name: {task}"
    yield f"  task: {task}"
    yield from _model(given)
    yield from _load(given, made)


def _model(given: dict[str, str]) -> Iterator[str]:
    if "path" in given:
        yield "  model:"
        if given.get("model_name"):
            yield f"    name: {given['model_name']}"
        yield f"    path: {given['path']}"
    elif "model" in given:
        yield f"  model: {given['model']}"


def _load(given: dict[str, str], made: str) -> Iterator[str]:
    if made == "images":
        yield "  load:"
        yield f"    requests_per_second: {given['requests_per_second']}"
        yield f"    images: {{mean: {given['image_size']}, steps: {given['steps']}}}"
        yield "  slo:"
        yield "    request_latency: 30 s"
    elif made == "inference":
        yield "  load:"
        yield f"    requests_per_second: {given['requests_per_second']}"
        yield f"    input_tokens: {given['input_tokens']}"
        yield f"    output_tokens: {given['output_tokens']}"
        yield "  slo:"
        yield "    time_to_first_token: 1 s"
        yield "    time_per_output_token: 50 ms"
    elif made == "notebook":
        yield "  notebook:"
        yield f"    users: {given['users']}"
        yield f"    gpu_memory: {given['gpu_memory']}"
    else:
        yield "  training:"
        yield f"    tokens: {given['tokens']}"
