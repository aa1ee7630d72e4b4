"""What a workload that reads texts says that cannot all be true, or that no engine does."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Change, Diagnostic
from gpuplan.manifest.v1 import Workload
from gpuplan.models.model import Transformer
from gpuplan.sizing.ask.messages import contradiction, unpredicted
from gpuplan.sizing.data.pooling import TEI_PRECISION, TEI_READS, TEI_SOURCE
from gpuplan.source import Origin


def pooling_problems(workload: Workload, model: Transformer, at: Origin) -> Iterator[Diagnostic]:
    wanted, own = workload.pooling, model.pooling
    where = at.child("pooling")
    if wanted and own and wanted != own:
        does = "gives vectors" if own == "embed" else "gives scores"
        yield contradiction(
            f"pooling '{wanted}' of a model that {does}: {model.architecture}",
            where,
            "its architecture decides",
            f"leave it out, or write `pooling: {own}`",
            Change(where, None),
        )
    if wanted == "score" and own is None:
        yield contradiction(
            f"a {model.architecture} has no layer that scores",
            where,
            "a reranker is a '…ForSequenceClassification'",
            "name one, for example BAAI/bge-reranker-v2-m3",
        )
    if model.experts or model.latent or model.linear or model.sparse:
        yield unpredicted(
            f"how fast {model.identifier} reads texts for vectors or scores",
            at.child("model"),
            "only models of plain attention and dense MLPs are",
            "choose a dense model",
        )
    if workload.engine and workload.engine.name == "tei":
        yield from _tei(workload, model, at)


def _tei(workload: Workload, model: Transformer, at: Origin) -> Iterator[Diagnostic]:
    if model.architecture not in TEI_READS:
        yield contradiction(
            f"engine 'tei' does not read a {model.architecture}",
            at.child("engine"),
            f"it reads {', '.join(sorted(TEI_READS))} ({TEI_SOURCE})",
            "leave 'engine' out to take vllm",
            Change(at.child("engine"), None),
        )
    if workload.precision not in (None, TEI_PRECISION):
        yield contradiction(
            f"engine 'tei' does not compute in {workload.precision}",
            at.child("precision"),
            "its --dtype takes float16 and float32",
            f"leave it out, or write `precision: {TEI_PRECISION}`",
            Change(at.child("precision"), None),
        )
