"""Configurations of MLPerf Training's language models → gpuplan/accuracy/data/submissions.json.

    python -m bench.published.submissions CHECKOUTS

`CHECKOUTS` is a folder with clones (bare or not) of the results' repositories. Logs name neither
precision nor parallelism; the configuration that was run does. A submitter publishes several: a
system's README names its own, else it is the one that agrees with the log's GPUs, batch,
accumulation steps, learning rate and steps. Where none agrees, what others of the round ran on the
same GPU with as many GPUs a replica is taken, and the row says so; where they differ, nothing is.
"""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parents[2] / "gpuplan/accuracy/data/submissions.json"
# Round → commit of mlcommons/training_results_vROUND, and its date.
ROUNDS = {
    "4.0": ("6fe954378efe4a1a1bd665550b18ff8f26018def", "2024-06-11"),
    "4.1": ("b87b9e396f771345d4ef122ba33456304f15228d", "2024-12-11"),
    "5.0": ("0fdc28f013256aea84fa36fdaf1e0fa46094b18c", "2025-05-30"),
    "5.1": ("441d65f4445cd59687466533fd9f55399136e7a4", "2026-01-12"),
}
ABOUT = (
    "Configurations of language models in MLPerf Training, written by "
    "bench/published/submissions.py. A row: round, folder of the results, tensor, pipeline, "
    "virtual stages, context, precision, the configuration's file, what is assumed; the first two "
    "alone where none was published."
)
# Folders of benchmarks as results have them → a word of their configurations' folders.
BENCHMARKS = {
    "llama2_70b_lora": "llama2_70b",
    "llama31_405b": "405b",
    "llama31_8b": "8b",
    "llama3_8b": "8b",
}
# What tells GPUs apart in their names and in those of configurations, the longest first.
GPUS = ("gb300", "gb200", "b300", "b200", "h200", "h100", "mi300x", "mi325x", "mi350x", "mi355x")
NAMES = {
    "tensor": ("TENSOR_MODEL_PARALLEL", "TP"),
    "pipeline": ("PIPELINE_MODEL_PARALLEL", "PP"),
    "context": ("CONTEXT_PARALLEL", "CP"),
    "micro": ("MICRO_BATCH_SIZE", "MBS"),
    "share": ("MINIBS",),
}


@dataclass(frozen=True)
class Round:
    """A repository of results."""

    name: str
    folder: Path

    def git(self, *command: str) -> str:
        full = ("git", "-C", str(self.folder), *command)
        done = subprocess.run(full, check=False, capture_output=True, text=True, errors="replace")
        return done.stdout

    def text(self, path: str) -> str:
        """A file; empty where a partial clone lacks it."""
        return self.git("show", f"{ROUNDS[self.name][0]}:{path}")

    @cached_property
    def files(self) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", ROUNDS[self.name][0]).splitlines()

    @cached_property
    def paths(self) -> frozenset[str]:
        return frozenset(self.files)


@dataclass(frozen=True)
class Submission:
    """A system's results of a benchmark, as its log and its description have them."""

    round: str
    submitter: str
    system: str
    benchmark: str
    gpu: str
    gpus: int
    batch: float
    accumulation: float
    log: tuple[tuple[str, float], ...]

    @property
    def folder(self) -> str:
        return f"{self.submitter}/results/{self.system}/{self.benchmark}"

    @property
    def samples(self) -> float:
        """Of a micro-batch, over the GPUs of a replica."""
        return self.batch / (self.gpus * self.accumulation)


@dataclass(frozen=True)
class Config:
    """A published configuration; what it does not set is None."""

    path: str
    gpu: str
    gpus: int | None
    tensor: int
    pipeline: int
    virtual: int
    context: int
    micro: int
    share: float | None
    batch: float | None
    precision: str
    log: tuple[tuple[str, float], ...]

    @property
    def replica(self) -> int:
        return self.tensor * self.pipeline * self.context

    @property
    def division(self) -> tuple[int, int, int, int, str]:
        return self.tensor, self.pipeline, self.virtual, self.context, self.precision


def submissions(of: Round) -> Iterator[Submission]:
    folders: dict[tuple[str, str, str], list[str]] = {}
    for path in of.files:
        match = re.match(r"([^/]+)/results/([^/]+)/(llama[^/]+)/result_\d+\.txt$", path)
        if match and match[3] in BENCHMARKS:
            folders.setdefault((match[1], match[2], match[3]), []).append(path)
    for (submitter, system, benchmark), paths in sorted(folders.items()):
        text = next(filter(None, map(of.text, paths)), "")
        entries = re.findall(r'"key": "(\w+)", "value": ([\d.e+-]+),', text)
        log = {key: float(value) for key, value in entries}
        described = json.loads(of.text(f"{submitter}/systems/{system}.json") or "{}")
        if "global_batch_size" not in log or not described:
            print(f"{of.name} {submitter} {system}: no log or description")
            continue
        yield Submission(
            round=of.name,
            submitter=submitter,
            system=system,
            benchmark=benchmark,
            gpu=gpu_of(described["accelerator_model_name"]),
            gpus=int(described["number_of_nodes"]) * int(described["accelerators_per_node"]),
            batch=log["global_batch_size"],
            accumulation=log.get("gradient_accumulation_steps", 1.0),
            log=stated(
                rate=log.get("opt_base_learning_rate"),
                steps=log.get("opt_learning_rate_training_steps", log.get("max_steps")),
                warmup=log.get("opt_learning_rate_warmup_steps"),
            ),
        )


def stated(**values: float | None) -> tuple[tuple[str, float], ...]:
    return tuple((name, value) for name, value in values.items() if value is not None)


def gpu_of(name: str) -> str:
    return next((gpu for gpu in GPUS if gpu in name.lower()), "")


def configs(of: Round) -> Iterator[Config]:
    for path in of.files:
        name = path.rpartition("/")[2]
        if re.search(r"/benchmarks/llama.*/config[^/]*\.sh$", path) and not re.search(
            r"common|mounts", name
        ):
            yield config(of, path)


def config(of: Round, path: str) -> Config:
    name = path.rpartition("/")[2]
    shape = re.search(r"_(\d+)x(\d+)x", name)
    divided = re.search(r"x(\d+)xtp(\d+)pp(\d+)cp(\d+)", name)
    encoded = zip(("MINIBS", "TP", "PP", "CP"), divided.groups() if divided else (), strict=False)
    exports = dict(encoded) | dict(_exports(of, path, 0))

    def number(*names: str) -> float | None:
        text = next((exports[n] for n in names if n in exports), "")
        return float(text) if re.fullmatch(r"[\d.]+(e-?\d+)?", text) else None

    nodes = number("DGXNNODES") or (float(shape[1]) if shape else None)
    each = (float(shape[2]) if shape else None) or number("DGXNGPU") or 8.0
    sizes = {field: int(number(*names) or 1) for field, names in NAMES.items() if field != "share"}
    four = exports.get("FP4", "").lower() == "true" or "fp4" in name
    eight = exports.get("FP8", "").lower() == "true"
    return Config(
        path=path,
        gpu=gpu_of(name),
        gpus=int(nodes * each) if nodes else None,
        virtual=int(number("INTERLEAVED_PIPELINE") or 1) if sizes["pipeline"] > 1 else 1,
        share=number("MINIBS"),
        batch=number("GBS"),
        precision="nvfp4" if four else "fp8" if eight else "",
        log=stated(rate=number("LR"), steps=number("MAX_STEPS"), warmup=number("WARMUP_STEPS")),
        **sizes,
    )


def _exports(of: Round, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """What a script sets, with those that it reads where they are published too."""
    for line in of.text(path).splitlines():
        source = re.match(r"\s*(?:source|\.)\s+.*?([\w.-]+\.sh)", line)
        if source:
            folder = posixpath.dirname(path)
            beside = (f"{folder}/{source[1]}", f"{folder}/configs/{source[1]}")
            for script in [p for p in beside if p in of.paths and depth < 3][:1]:
                yield from _exports(of, script, depth + 1)
        elif match := re.match(r"\s*(?:export\s+|:\s*\"\$\{)(\w+):?=(.*)$", line):
            text = match[2].partition("#")[0].strip().rstrip('}"; ').strip('"')
            yield match[1], re.sub(r"^\$\{\w+:[-=]", "", text)


def named(of: Round, submission: Submission, known: Iterable[Config]) -> list[Config]:
    """The configuration that the README of the system names."""
    word = BENCHMARKS[submission.benchmark]
    for path in of.files:
        start = path.startswith(f"{submission.submitter}/benchmarks/llama") and word in path
        if start and path.endswith(f"README-{submission.system}.md"):
            scripts = re.findall(r"`benchmarks/(\S+\.sh)`", of.text(path))
            paths = {f"{submission.submitter}/benchmarks/{p}" for p in scripts}
            return [c for c in known if c.path in paths]
    return []


def agree(submission: Submission, config: Config) -> bool:
    """Whether nothing that both state differs."""
    ours, theirs = dict(submission.log), dict(config.log)
    same = all(abs(ours[k] - theirs[k]) <= 1e-9 for k in ours.keys() & theirs.keys())
    return same and _sized(submission, config)


def _sized(submission: Submission, config: Config) -> bool:
    """GPUs, batch and accumulation steps, and the kind of GPU where its name tells it."""
    ranks = submission.gpus / config.replica
    if config.gpus not in (None, submission.gpus) or config.gpu not in ("", submission.gpu):
        return False
    batch = config.batch or (ranks * config.share if config.share else None)
    if batch not in (None, submission.batch):
        return False
    return submission.accumulation * config.micro * ranks == submission.batch


def chosen(of: Round, submission: Submission, known: list[Config]) -> tuple[Config, str] | None:
    """The configuration, and what is assumed of it; "" where all is stated. None where nobody of
    the round says how a replica of this size was divided."""
    word = BENCHMARKS[submission.benchmark]
    kind = [c for c in known if word in c.path.split("/")[2] and _fits(word, c)]
    own = [c for c in kind if c.path.startswith(f"{submission.submitter}/")]
    agreeing = [c for c in own if agree(submission, c)]
    for candidates, assumed in (
        (named(of, submission, own), ""),
        ([c for c in agreeing if f"/{submission.system}" in c.path], ""),
        (agreeing, ""),
        ([c for c in own if _sized(submission, c)], "other steps or rate are published"),
        ([c for c in kind if _alike(submission, c) and _makers(c)], "as the GPU's maker ran it"),
        ([c for c in kind if _alike(submission, c)], "as others of the round ran it"),
    ):
        settled = settle(candidates)
        if settled:
            return settled[0], "; ".join(filter(None, (assumed, settled[1])))
    return None


def _fits(word: str, config: Config) -> bool:
    """Folders of one size hold configurations of the other."""
    name = config.path.rpartition("/")[2]
    return not (word == "8b" and config.pipeline > 1) and not (word == "405b" and "_8b" in name)


def _makers(config: Config) -> bool:
    return config.path.startswith(("NVIDIA/", "AMD/"))


def _alike(submission: Submission, config: Config) -> bool:
    """The same GPU, and as many of a micro-batch's samples a GPU."""
    same = config.gpu == submission.gpu
    return same and config.micro / config.replica == submission.samples


def settle(candidates: list[Config]) -> tuple[Config, str] | None:
    """The one division of all of them, and what is assumed of its precision."""
    if len({replace(c, precision="").division for c in candidates}) != 1:
        return None
    stated = sorted({c.precision for c in candidates} - {""})
    first = min(candidates, key=lambda c: (c.precision not in stated[-1:], c.path))
    if len(stated) == 1:
        return replace(first, precision=stated[0]), ""
    if stated:
        return first, "published in 8 and in 4 bits, of which the fewer are taken"
    return replace(first, precision="fp8"), "the precision is not published, fp8 is taken"


def rows(of: Round) -> Iterator[list[Any]]:
    known = list(configs(of))
    for submission in submissions(of):
        choice = chosen(of, submission, known)
        if choice is None:
            yield [of.name, submission.folder]
            continue
        config, assumed = choice
        size = [config.tensor, config.pipeline, config.virtual, config.context]
        yield [of.name, submission.folder, *size, config.precision, config.path, assumed]


def main(checkouts: Path) -> None:
    lines = []
    for name in ROUNDS:
        folders = (f"mlcommons+training_results_v{name}/repo", f"training_results_v{name}")
        folder = next(checkouts / f for f in folders if (checkouts / f).is_dir())
        lines += [json.dumps(row, ensure_ascii=False) for row in rows(Round(name, folder))]
    sources = {
        name: f"mlcommons/training_results_v{name}@{commit} ({date})"
        for name, (commit, date) in ROUNDS.items()
    }
    head = [f'"about": {json.dumps(ABOUT)}', f'"sources": {json.dumps(sources)}']
    table = '"rows": [\n' + ",\n".join(lines) + "\n]"
    OUTPUT.write_text("{\n" + ",\n".join([*head, table]) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
