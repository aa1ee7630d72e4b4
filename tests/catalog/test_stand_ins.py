"""Measured GPUs that stand for others: declared, inherited, named, and never assumed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog import compile as compiler
from gpuplan.catalog.load import COMPILED, Catalog, load_catalog
from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.manifest.load import load_manifests
from gpuplan.pipeline import Compiled, compile_manifest
from gpuplan.plan.tree import load_evidence, load_tree
from gpuplan.report.explain import find, quantity
from gpuplan.sizing.hardware.efficiency import collective, kernel
from gpuplan.sizing.hardware.measured import NotMeasured

TREE = json.loads(COMPILED.read_text(encoding="utf-8"))
NEW = "example-96gb"
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: chat
platform:
  target: kubernetes
  gpus: [{gpus}]
  node: {{gpus: 8, cpu_cores: 96, memory: 1 TiB}}
workloads:
- name: work
  precision: bf16
"""
SERVED = """\
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 100}
"""
TRAINED = """\
  task: finetuning
  model: meta-llama/Llama-3.1-8B
  training: {sequence_length: 2048, global_batch: 16, steps: 100}
"""
DRAWN = """\
  task: inference
  model: black-forest-labs/FLUX.1-dev
  load: {requests_per_second: 0.05, images: {mean: 1024x1024, steps: 28}}
  slo: {request_latency: 60 s}
"""


def catalogue(**changes: Any) -> Catalog:
    """That of the repository with a GPU like the L40S, of an architecture that nobody measured."""
    tree = copy.deepcopy(TREE)
    entry = copy.deepcopy(tree["gpus"]["l40s"])
    entry["plain"] |= {"identifier": NEW, "architecture": "unheard-of", "product": "NVIDIA-Example"}
    entry |= {"stand_ins": {}, "achieved": None, "names": [], "pci": []} | changes
    tree["gpus"][NEW] = entry
    return Catalog(tree)


def card(catalog: Catalog, name: str) -> Gpu:
    gpu = catalog.gpu(name)
    assert gpu is not None
    return gpu


def compiled(folder: Path, text: str, catalog: Catalog) -> Compiled:
    path = folder / "m.yaml"
    path.write_text(text, encoding="utf-8")
    reading = load_manifests([path])
    assert [p.message for p in reading.problems] == []
    return compile_manifest(reading.manifests[0], reading.sources, catalog)


def refused(folder: Path, text: str, catalog: Catalog) -> Diagnostic:
    with pytest.raises(Rejected) as caught:
        compiled(folder, text, catalog)
    assert len(caught.value.diagnostics) == 1
    return caught.value.diagnostics[0]


@pytest.mark.parametrize(
    ("work", "measured"),
    [(SERVED, "kernels"), (TRAINED, "training runs"), (DRAWN, "image pipelines")],
)
def test_a_gpu_that_nothing_stands_for_is_refused_by_name(
    tmp_path: Path, work: str, measured: str
) -> None:
    found = refused(tmp_path, MANIFEST.format(gpus=NEW) + work, catalogue())
    assert (found.rule, found.message) == ("GP012", f"no measured {measured} stand for {NEW}")
    assert "`measured_as`" in found.help
    assert "work" in found.label


def test_beside_one_that_was_measured_it_is_only_left_out(tmp_path: Path) -> None:
    stack = compiled(tmp_path, MANIFEST.format(gpus=f"{NEW}, l40s") + SERVED, catalogue())
    (work,) = stack.plan.workloads
    assert work.gpu == "l40s"
    gates = {a.gpu: a.shortfalls[0] for a in work.alternatives if a.shortfalls}
    assert (gates[NEW].resource, gates[NEW].lack) == ("kernels", "unmeasured")


def test_a_declared_stand_in_is_what_explain_names(tmp_path: Path) -> None:
    stands = {"measured_as": ["l40s", "a test", ["kernels"]]}
    stack = compiled(tmp_path, MANIFEST.format(gpus=NEW) + SERVED, catalogue(stand_ins=stands))
    assert stack.plan.workloads[0].gpu == NEW
    metrics = {m.name: m.estimate for m in stack.plan.workloads[0].metrics}
    assert {e.basis for e in metrics.values() if e.low != e.high} == {"extrapolated"}
    texts = {f.path: f.text for f in stack.files}
    plan = load_tree(texts["plan.yaml"])
    plan["evidence"] = load_evidence(texts["evidence.yaml"])
    found = find(plan, "prefill.projection_seconds")
    assert not isinstance(found, Diagnostic), found.message
    assert "matmul bf16 on l40s" in quantity(plan, found[0])
    text = MANIFEST.format(gpus=NEW) + DRAWN
    assert refused(tmp_path, text, catalogue(stand_ins=stands)).rule == "GP012"


def test_kernels_are_scaled_by_what_both_achieve() -> None:
    stands = {"measured_as": ["l40s", "a test", ["kernels"]]}
    plain = kernel("matmul", card(catalogue(stand_ins=stands), NEW), "vllm", "bf16")
    half = [126 * 10**12, 362 * 10**12, next(iter(TREE["gpus"]["l40s"]["sources"]))]
    slow = kernel("matmul", card(catalogue(stand_ins=stands, achieved=half), NEW), "vllm", "bf16")
    assert slow["compute"].value == pytest.approx(plain["compute"].value / 2)
    assert f"gpus/{NEW}.yaml achieved_bf16" in slow["compute"].source


def test_what_a_stand_in_took_from_others_is_handed_on() -> None:
    catalog = load_catalog()
    gpu = card(catalog, "a100-pcie-40gb")
    assert [s.identifier for s in gpu.measured_as] == ["a100-pcie-80gb", "a100-sxm-80gb"]
    assert [s.identifier for s in gpu.kernels_as] == ["h100-sxm-80gb"]
    assert gpu.collectives_as is not None
    assert gpu.collectives_as.identifier == "l40s"
    rule = kernel("prefill_delta", gpu, "vllm", "bf16")["launch"].source
    assert "prefill delta bf16 on h100-sxm-80gb" in rule
    exchange = collective("all_reduce", gpu, "vllm", 2)
    assert "all-reduce over 2 l40s" in exchange["rate"].source


def test_no_gpu_stands_for_itself_and_one_that_has_no_other_is_not_predicted() -> None:
    catalog = load_catalog()
    for identifier in catalog.gpu_ids:
        assert identifier not in {s.identifier for s in card(catalog, identifier).stand_ins}
    with pytest.raises(NotMeasured, match=f"no measured kernels stand for {NEW}"):
        kernel("matmul", card(catalogue(), NEW), "vllm", "bf16")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("measured_as: {gpu: l41s, reason: x}", "measured_as: no such GPU 'l41s'"),
        ("measured_as: {gpu: l4, reason: x}", "gpus/l4.yaml: it stands in for itself"),
        ('measured_as: {gpu: l40s, reason: ""}', "at least 1 character"),
        ("measured_as: {gpu: l40s, reason: x, of: []}", "at least 1 item"),
        (
            "measured_as: {gpu: l40s, reason: x}\nkernels_as: {gpu: l40s, reason: x}",
            "kernels_as is for a GPU whose own kernels were measured",
        ),
    ],
)
def test_stand_ins_that_cannot_be_are_refused(tmp_path: Path, lines: str, words: str) -> None:
    for folder in ("gpus", "engines", "cuda", "components", "images"):
        (tmp_path / folder).mkdir()
        for source in sorted((compiler.DATA / folder).glob("*.yaml")):
            if folder != "gpus" or source.stem in ("l4", "l40s", "h100-sxm-80gb"):
                (tmp_path / folder / source.name).write_bytes(source.read_bytes())
    path = tmp_path / "gpus/l4.yaml"
    text = path.read_text(encoding="utf-8").splitlines()
    kept = [lines if line.startswith("measured_as:") else line for line in text]
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    with pytest.raises(compiler.Unsound) as caught:
        compiler.read(tmp_path)
    assert words in str(caught.value)
