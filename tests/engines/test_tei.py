"""What TEI is told, held to the options of its own parser: a Rust program that no registry has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.catalog.load import load_catalog
from gpuplan.engines.arguments import tei
from gpuplan.plan.model import Workload
from gpuplan.render.commented import Because
from tests.support.plans import read_plan
from tests.tools.program import ROOT

FACTS: dict[str, Any] = YAML(typ="safe").load(
    (Path(__file__).parent / "tei.yaml").read_text("utf-8")
)
OPTIONS = FACTS["options"]


def faults(words: list[str]) -> Iterator[str]:
    """What the parser would refuse; each word is `--option=value` or `--option`."""
    names = [word.partition("=")[0].removeprefix("--") for word in words]
    yield from (
        f"{name} is there twice" for name in sorted({n for n in names if names.count(n) > 1})
    )
    if "model-id" not in names:
        yield "model-id is missing"
    for word, name in zip(words, names, strict=True):
        _, given, value = word.partition("=")
        if not _takes(name, bool(given), value):
            yield f"{word} is refused"


def _takes(name: str, given: bool, value: str) -> bool:
    if name in OPTIONS["none"]:
        return not given
    if name in OPTIONS["truth"]:
        return value in ("true", "false") or not given
    if name in ("dtype", "pooling"):
        return value in OPTIONS[name]
    if name in OPTIONS["count"]:
        return value.isdecimal() and int(value) < 2**64
    if name in OPTIONS["port"]:
        return value.isdecimal() and int(value) < 2**16
    return name in OPTIONS["text"] and given


def told(work: Workload) -> list[str]:
    found = (str(a.value) if isinstance(a, Because) else a for a in tei(work))
    return [str(a) for a in found]


def reranker() -> Workload:
    (work,) = (w for w in read_plan(ROOT / "stacks/search").workloads if w.engine.name == "tei")
    return work


def test_the_options_are_those_of_the_pinned_release() -> None:
    pin = load_catalog().engine("tei")
    assert pin is not None
    assert FACTS["source"]["release"] == f"v{pin.version}"


@pytest.mark.parametrize(("texts", "concurrency"), [(None, 1), (1, 7), (50, 900), (4096, 100_000)])
def test_tei_takes_what_it_is_told(texts: int | None, concurrency: int) -> None:
    work = reranker()
    assert work.serving is not None
    assert work.model is not None
    serving = replace(work.serving, texts=texts)
    model = replace(work.model, revision="953dc6f6f85a1b2dbfca4c34a2796e7dde08d41e")
    changed = replace(work, serving=serving, concurrency=concurrency, model=model)
    words = told(changed)
    assert list(faults(words)) == []
    assert f"--revision={model.revision}" in words


@pytest.mark.parametrize(
    "wrong",
    [
        "--dtype=bfloat16",
        "--max-model-len=4",
        "--port=70000",
        "--auto-truncate=no",
        "--json-output=1",
    ],
)
def test_what_the_parser_refuses_is_found(wrong: str) -> None:
    words = [w for w in told(reranker()) if w.partition("=")[0] != wrong.partition("=")[0]]
    assert list(faults([*words, wrong])) == [f"{wrong} is refused"]
