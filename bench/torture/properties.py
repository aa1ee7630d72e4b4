"""Random manifests: what must hold of their answers, and what parsers of the backends' files say.

A property that does not hold is counted and shown, with the manifest's number; the same seed and
number give the same manifest.
"""

from __future__ import annotations

import ast
import copy
import json
import random
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from bench.torture.readers import ROOT
from gpuplan.catalog.load import load_catalog
from gpuplan.errors import Rejected
from gpuplan.manifest.load import Loaded, load_text
from gpuplan.pipeline import Compiled, compile_manifest
from gpuplan.render import yaml
from gpuplan.render.tree import FileTree

GPUS = ("l4", "l40s", "a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb")
MODELS = (
    "meta-llama/Llama-3.2-1B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-30B-A3B",
)
HYPERVISORS = {"inventory": str(ROOT / "examples" / "inventories" / "hypervisors.yaml")}
Tree = dict[str, Any]


def manifest(number: int, seed: int) -> Tree:
    """A service, a run or notebooks, on nodes that are bought or on hypervisors."""
    chance = random.Random(seed * 1_000_003 + number)
    kinds = (_service, _service, _service, _tuning, _notebooks)
    work = chance.choice(kinds)(chance)
    guests = work["task"] == "inference" and chance.random() < 0.2
    platform = (
        {"target": "libvirt", **HYPERVISORS}
        if guests
        else {"target": "kubernetes", "gpus": sorted(chance.sample(GPUS, chance.randint(1, 3)))}
    )
    work["name"] = chance.choice(("chat", "a", "work-2", "on", "null"))
    return {
        "apiVersion": "gpuplan.dev/v1",
        "name": chance.choice(("shop", "no", "stack-1")),
        "platform": platform,
        "workloads": [work],
    }


def _service(chance: random.Random) -> Tree:
    mean = chance.choice((1, 4, 20))
    return {
        "task": "inference",
        "model": chance.choice(MODELS),
        "precision": chance.choice(("bf16", "fp8")),
        "load": {
            "requests_per_second": {"mean": mean, "peak": mean * chance.choice((1, 2))},
            "input_tokens": chance.choice((200, 1200, 6000)),
            "output_tokens": chance.choice((50, 300)),
        },
        "slo": {
            "time_to_first_token": f"{chance.choice((500, 2000, 8000))} ms",
            "time_per_output_token": f"{chance.choice((30, 60, 150))} ms",
        },
        "environment": {"GREETING": chance.choice(("hello", "$(X) {{ y }}", "a'b\"c\\", "é: #"))},
    }


def _tuning(chance: random.Random) -> Tree:
    return {
        "task": "finetuning",
        "model": chance.choice(MODELS[:2]),
        "precision": "bf16",
        "training": {
            "sequence_length": chance.choice((1024, 4096)),
            "global_batch": chance.choice((16, 64)),
            "tokens": chance.choice((1e7, 1e9)),
        },
        "slo": {"finish_within": f"{chance.choice((1, 7))} d"},
    }


def _notebooks(chance: random.Random) -> Tree:
    memory = f"{chance.choice((5, 9, 20))} GiB"
    return {"task": "notebook", "notebook": {"users": chance.randint(1, 30), "gpu_memory": memory}}


def more_load(tree: Tree) -> Tree | None:
    work = tree["workloads"][0]
    if "load" in work:
        work["load"]["requests_per_second"] = {
            k: 2 * v for k, v in work["load"]["requests_per_second"].items()
        }
    elif "training" in work:
        work["training"]["tokens"] *= 2
    else:
        work["notebook"]["users"] *= 2
    return tree


def tighter_objective(tree: Tree) -> Tree | None:
    slo = tree["workloads"][0].get("slo", {})
    for name, text in slo.items():
        number, unit = text.split()
        slo[name] = f"{int(number) / 2:g} {unit}"
    return tree if slo else None


def fewer_gpus(tree: Tree) -> Tree | None:
    """Fewer GPU types to choose from."""
    gpus = tree["platform"].get("gpus", [])
    tree["platform"]["gpus"] = gpus[:1]
    return tree if len(gpus) > 1 else None


HARDER: dict[str, Callable[[Tree], Tree | None]] = {
    "more load is never cheaper": more_load,
    "a tighter objective is never cheaper": tighter_objective,
    "fewer GPU types are never cheaper": fewer_gpus,
}
SAME = "the same manifest gives the same bytes"
PARSED = "every file is read by its own parser"


def tried(number: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often each property could be asked of a manifest, and those that did not hold."""
    asked: Counter[str] = Counter({"manifests": 1})
    tree = manifest(number, seed)
    first = compiled(tree)
    if first is None:
        return asked, []
    asked["compiled"] += 1
    wrong = []
    again = compiled(tree)
    asked[SAME] += 1
    if again is None or again.files != first.files:
        wrong.append(SAME)
    asked[PARSED] += 1
    wrong += [f"{PARSED}: {fault}" for fault in faults(first.files)]
    for name, change in HARDER.items():
        harder = change(copy.deepcopy(tree))
        answer = compiled(harder) if harder else None
        if answer is not None:
            asked[name] += 1
            if _cost(answer) < _cost(first):
                wrong.append(name)
    return asked, wrong


def compiled(tree: Tree) -> Compiled | None:
    """None where the manifest is refused. Any exception but that is a mistake of ours."""
    reading = load_text(yaml.dumps(tree), "manifest.yaml")
    if not reading.manifests:
        return None
    loaded = Loaded(reading.manifests[0].manifest, "manifest.yaml", ROOT)
    try:
        return compile_manifest(loaded, reading.sources, load_catalog())
    except Rejected:
        return None


def _cost(answer: Compiled) -> float:
    """US dollars of the runs that end, or else an hour: faster nodes cost more of the one for less
    of the other. GPUs where they are owned and have no price."""
    cost = answer.plan.cost
    return float(
        cost.usd_of_runs or cost.usd_per_hour or sum(w.gpu_count for w in answer.plan.workloads)
    )


def faults(files: FileTree) -> Iterator[str]:
    """What parsers say of each file, and of a stack's own record of files."""
    for file in files:
        try:
            _parsed(file.path, file.text)
        except Exception as problem:  # noqa: BLE001 - each parser has exceptions of its own
            yield f"{file.path}: {type(problem).__name__}"
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            path = Path(folder) / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8", newline="")
        yield from _programs(Path(folder))


def _parsed(path: str, text: str) -> None:
    suffix = path.rpartition(".")[2]
    if suffix == "py":
        ast.parse(text)
    elif suffix == "yaml":
        list(YAML(typ="safe", pure=True).load_all(text))
    elif suffix == "json":
        json.loads(text)
    elif suffix == "xml":
        ET.fromstring(text)


PROGRAMS = {  # which of them are there is said in the results
    "sha256sum": ("checksums.txt", ("sha256sum", "--quiet", "-c", "checksums.txt")),
    "virt-xml-validate": ("*.xml", ("virt-xml-validate",)),
    "bash": ("*.sh", ("bash", "-n")),
}


def programs() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name)]


def _programs(folder: Path) -> Iterator[str]:
    for name in programs():
        pattern, command = PROGRAMS[name]
        for path in sorted(folder.rglob(pattern)):
            if name == "virt-xml-validate" and "<domain" not in path.read_text(encoding="utf-8"):
                continue
            words = command if name == "sha256sum" else (*command, str(path))
            done = subprocess.run(words, cwd=folder, capture_output=True, check=False)
            if done.returncode:
                yield f"{path.name}: {name}"
