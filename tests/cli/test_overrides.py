"""Overrides: each has the name by which `explain` knows its number; what it replaced is said."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.parts import Overrides
from gpuplan.pipeline import compile_files
from gpuplan.plan.model import Workload
from gpuplan.report.summary import summary
from gpuplan.sizing.ask.fields import FIELDS, Kind
from tests.cli.test_fields_matter import WORK, document

KINDS: dict[Kind, dict[str, Any]] = {
    "serving": WORK["serving"],
    "batch": WORK["batch"],
    "pooling service": WORK["pooling service"],
    "pooling batch": {
        "task": "batch",
        "model": {"name": "BAAI/bge-m3"},
        "pooling": "embed",
        "load": {"requests": 1000000, "input_tokens": 400},
    },
    "speech service": WORK["speech service"],
    "speech batch": {
        "task": "batch",
        "model": "openai/whisper-large-v3",
        "command": ["python", "-m", "transcribe"],
        "load": {"requests": 20000, "audio": "30 s"},
    },
    "image service": WORK["image service"],
    "image batch": {
        "task": "batch",
        "model": "black-forest-labs/FLUX.1-dev",
        "command": ["python", "-m", "render"],
        "load": {"requests": 100000, "images": {"mean": "768x768", "steps": 20}},
    },
    "video service": WORK["video service"],
    "video batch": WORK["video service"]
    | {
        "task": "batch",
        "load": {"requests": 20000, "videos": WORK["video service"]["load"]["videos"]},
    },
    "vision service": WORK["vision service"],
    "vision batch": {
        "task": "batch",
        "model": "facebook/dinov2-large",
        "command": ["python", "-m", "embed"],
        "load": {"requests": 90000000, "images": "640x480"},
    },
    "vision training": WORK["vision training"]
    | {"dataset": WORK["vision training"]["dataset"] | {"size": "150 GB"}},
    "training": WORK["training"] | {"dataset": {"size": "2 GB"}},
    "notebook": WORK["notebook"],
}
NAMES = list(Overrides.model_fields)


def written(folder: Path, kind: Kind, **overrides: Any) -> Path:
    path = folder / "m.yaml"
    work = KINDS[kind] | ({"overrides": overrides} if overrides else {})
    path.write_text(json.dumps(document(work)), encoding="utf-8")
    return path


def planned(folder: Path, kind: Kind, **overrides: Any) -> tuple[Workload, str]:
    """The workload, and the answer on one line."""
    result = compile_files([written(folder, kind, **overrides)])
    assert result.stacks, [p.message for p in result.problems]
    plan = result.stacks[0].plan
    return plan.workloads[0], " ".join(summary(plan).split())


def refusal(folder: Path, kind: Kind, **overrides: Any) -> Diagnostic:
    result = compile_files([written(folder, kind, **overrides)])
    assert not result.stacks
    (problem,) = (p for p in result.problems if p.severity.name == "ERROR")
    return problem


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def made(kind: Kind) -> Path:
        folder = tmp_path_factory.mktemp("stacks")
        assert main(["compile", str(written(folder, kind)), "-o", str(folder)]) == 0
        return folder / "stack"

    return made


def test_the_sizing_reads_every_override() -> None:
    assert {f"overrides.{name}" for name in NAMES} == {
        path for path in FIELDS if path.startswith("overrides.")
    }


@pytest.mark.parametrize("name", [n for n in NAMES if n != "accepted_misses"])  # replaces none
def test_an_override_is_called_as_the_quantity_that_it_replaces(
    name: str, stack: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in FIELDS[f"overrides.{name}"].kinds:
        folder = stack(kind)
        capsys.readouterr()
        assert main(["explain", str(folder), name]) == 0, kind
        shown = capsys.readouterr().out
        assert shown.startswith((f"work.{name} = ", f"work.{name}_bytes = ")), (kind, shown)


VALUES: dict[str, tuple[Any, str]] = {
    "gpu": ("l40s", "gpu l40s (sized "),
    "replicas": (9, "replicas 9 (sized "),
    "tensor_parallel_size": (2, "tensor_parallel_size 2 (sized 1)"),
    "pipeline_parallel_size": (2, "pipeline_parallel_size 2 (sized 1)"),
    "max_num_seqs": (32, "max_num_seqs 32 (sized "),
    "max_num_batched_tokens": (1024, "max_num_batched_tokens 1,024 (sized "),
    "kv_cache_dtype": ("fp8", "kv_cache_dtype fp8 (sized auto)"),
    "host_memory_per_gpu": ("100 GiB", "host_memory_per_gpu 100 GiB (sized "),
    "scratch": ("200 GiB", "scratch 200 GiB (sized 50 GiB)"),
}


@pytest.mark.parametrize("name", VALUES)
def test_the_answer_says_what_was_replaced(name: str, tmp_path: Path) -> None:
    value, said = VALUES[name]
    work, shown = planned(tmp_path, "serving", **{name: value})
    assert f"overridden {said}" in shown
    (override,) = work.overrides
    assert override.origin is not None
    assert str(override.origin).endswith(f"workloads[0].overrides.{name}")


def test_what_is_sized_is_what_is_chosen_without_the_override(tmp_path: Path) -> None:
    free, _ = planned(tmp_path, "serving")
    forced, _ = planned(tmp_path, "serving", max_num_seqs=32, max_num_batched_tokens=1024)
    assert free.serving is not None
    assert {o.quantity: o.derived for o in forced.overrides} == {
        "work.max_num_seqs": free.serving.max_num_seqs,
        "work.max_num_batched_tokens": free.serving.max_num_batched_tokens,
    }


def test_the_readme_and_explain_mark_an_override(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, "serving", scratch="200 GiB")
    assert main(["compile", str(path), "-o", str(tmp_path)]) == 0
    readme = (tmp_path / "stack/README.md").read_text("utf-8")
    assert "overridden: scratch 200 GiB (sized 50 GiB)" in readme
    capsys.readouterr()
    assert main(["explain", str(tmp_path / "stack"), "scratch"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "work.scratch_bytes = 50 GiB" in shown
    assert "replaced by 200 GiB" in shown
    assert main(["explain", str(tmp_path / "stack"), "gpu"]) == 0
    assert "choice: " in capsys.readouterr().out


@pytest.mark.parametrize("name", [n for n in NAMES if FIELDS[f"overrides.{n}"].unit == "1"])
def test_none_of_something_is_refused_where_it_stands(name: str, tmp_path: Path) -> None:
    kind = FIELDS[f"overrides.{name}"].kinds[0]
    problem = refusal(tmp_path, kind, **{name: 0})
    assert f"'{name}' must be" in problem.message
    assert str(problem.origin).endswith(f"overrides.{name}")


@pytest.mark.parametrize(
    ("kind", "overrides", "why"),
    [
        ("serving", {"pipeline_parallel_size": 3}, "3 stages do not divide 32 layers"),
        ("serving", {"pipeline_parallel_size": 16}, "gpus_per_node"),
        ("serving", {"pipeline_parallel_size": 2, "partition": "1g.20gb"}, "gpus_per_partition"),
        ("training", {"pipeline_parallel_size": 2}, "is not used by a training workload"),
        ("serving", {"max_num_batched_tokens": 4}, "each of "),
        ("batch", {"max_num_seqs": 64, "max_num_batched_tokens": 32}, "each of 64 requests"),
        ("training", {"dataset_storage": "1 GiB"}, "must lie there"),
    ],
)
def test_an_override_that_contradicts_is_refused_where_it_stands(
    kind: Kind, overrides: dict[str, Any], why: str, tmp_path: Path
) -> None:
    problem = refusal(tmp_path, kind, **overrides)
    assert why in f"{problem.message} {problem.label}".replace(" GPUs a partition", "")
    assert any(str(problem.origin).endswith(f"overrides.{name}") for name in overrides)


def test_a_dataset_volume_needs_a_dataset(tmp_path: Path) -> None:
    work = WORK["training"] | {"overrides": {"dataset_storage": "1 TiB"}}
    (tmp_path / "m.yaml").write_text(json.dumps(document(work)), encoding="utf-8")
    result = compile_files([tmp_path / "m.yaml"])
    assert any("'dataset.size' says what lies there" in p.message for p in result.problems)
    larger, _ = planned(tmp_path, "training", dataset_storage="1 TiB")
    assert {v.purpose: v.size_bytes for v in larger.volumes}["dataset"] == 2**40


def test_stages_hold_the_layers_between_them(tmp_path: Path) -> None:
    """Half of the weights lie on each GPU, the engine is told so, and the rate is of both."""
    one, _ = planned(tmp_path, "serving", gpu="l40s", replicas=9)
    two, shown = planned(tmp_path, "serving", gpu="l40s", replicas=9, pipeline_parallel_size=2)
    assert "pipeline parallel 2, 9 replicas" in shown
    assert (two.gpu_count, two.gpus_per_node) == (18, 2)
    assert two.memory.weights_bytes == pytest.approx(one.memory.weights_bytes / 2, rel=0.1)
    result = compile_files([tmp_path / "m.yaml"])
    texts = "".join(f.text for f in result.stacks[0].files)
    assert "--pipeline-parallel-size=2" in texts
    assert "--tensor-parallel-size=1" in texts

    def rate(work: Workload) -> float:
        return next(m.estimate.value for m in work.metrics if m.name == "requests_per_second")

    assert rate(two) > 1.2 * rate(one)


def test_replicas_are_those_of_the_layout_that_is_taken_without(tmp_path: Path) -> None:
    free, _ = planned(tmp_path, "serving")
    forced, shown = planned(tmp_path, "serving", replicas=40, max_num_seqs=4)
    assert f"(sized {free.replicas})" in shown
    said = {o.quantity: o.derived for o in forced.overrides}
    assert said["work.replicas"] == free.replicas
