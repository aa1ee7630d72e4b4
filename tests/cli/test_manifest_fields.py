"""Every field of a manifest: described, with examples that are accepted, known by other words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from ruamel.yaml import YAML

from gpuplan.manifest.load import load_text
from gpuplan.manifest.page import page
from gpuplan.manifest.synonyms import SYNONYMS, VALUES
from gpuplan.manifest.v1 import Manifest
from gpuplan.report.terminal import render_diagnostics
from gpuplan.schemas import schema
from gpuplan.targets import TARGETS, implemented
from tests.house.test_fields import fields, kinds

ROOT = Path(__file__).parents[2]
GOOD = """\
apiVersion: gpuplan.dev/v1
name: chat
platform: {target: kubernetes}
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 8, input_tokens: 100, output_tokens: 100}
"""


def mappings(kind: Any = Manifest) -> Iterator[type[BaseModel]]:
    """The classes that a manifest is made of."""
    yield kind
    for info in kind.model_fields.values():
        for inner in entries(info.annotation):
            yield from mappings(inner)


def entries(annotation: Any) -> Iterator[type[BaseModel]]:
    for kind in kinds(annotation):
        if fields(kind):
            yield kind
        for argument in getattr(kind, "__args__", ()):
            yield from entries(argument)


CLASSES = list(dict.fromkeys(mappings()))
FIELDS = [
    pytest.param(kind, info.alias or name, info, id=f"{kind.__name__}.{info.alias or name}")
    for kind in CLASSES
    for name, info in kind.model_fields.items()
]


def test_no_property_of_the_schema_lacks_its_meaning_or_an_example() -> None:
    tree = schema("manifest")
    properties = [
        (f"{name}.{field}", about)
        for name, part in [("", tree), *tree["$defs"].items()]
        for field, about in part.get("properties", {}).items()
    ]
    assert len(properties) == len(FIELDS) > 120
    assert [name for name, about in properties if len(about.get("description", "")) < 6] == []
    assert [name for name, about in properties if not about.get("examples")] == []


@pytest.mark.parametrize(("kind", "name", "info"), FIELDS)
def test_each_example_is_accepted(kind: type[BaseModel], name: str, info: FieldInfo) -> None:
    needed = {
        field.alias or own: (field.examples or [None])[0]
        for own, field in kind.model_fields.items()
        if field.is_required()
    }
    for example in info.examples or ():
        TypeAdapter(kind).validate_python({**needed, name: example})


def test_the_page_shows_every_field_with_an_example_that_reads_as_it() -> None:
    rows = re.findall(r"^\| (?:\*\*)?`(\w+)`(?:\*\*)? \|.*\| ([^|]+) \|$", "\n".join(page()), re.M)
    assert len(rows) == len(FIELDS)
    known: list[dict[str, Any]] = [
        {info.alias or name: example}
        for kind in CLASSES
        for name, info in kind.model_fields.items()
        for example in info.examples or ()
    ]
    for name, cell in rows:
        for text in re.findall(r"`([^`]+)`", cell):
            read = YAML(typ="safe").load(text)
            assert list(read) == [name]
            assert read in known, text


def test_the_page_is_the_one_that_is_checked_in() -> None:
    assert (ROOT / "docs/manifest.md").read_text("utf-8") == "\n".join(page())


def test_an_editor_completes_gpus_models_and_engines_and_marks_targets() -> None:
    defs = schema("manifest")["$defs"]
    gpus = defs["Platform"]["properties"]["gpus"]["anyOf"][0]["items"]["enum"]
    assert {"h100-sxm-80gb", "l40s"} <= set(gpus)
    assert "mi300x-192gb" in gpus
    assert "rx-7900-xtx-24gb" not in gpus, "known for predictions only"
    assert "h100-sxm-80gb" in defs["Overrides"]["properties"]["gpu"]["anyOf"][0]["enum"]
    assert "l40s" in defs["Platform"]["properties"]["prices"]["propertyNames"]["enum"]
    model = defs["Workload"]["properties"]["model"]["anyOf"]
    assert any("openai/gpt-oss-120b" in part.get("examples", ()) for part in model)
    engine = defs["Workload"]["properties"]["engine"]["anyOf"]
    assert any("sglang" in part.get("examples", ()) for part in engine)
    targets = {
        c["const"]: c["description"] for c in defs["Platform"]["properties"]["target"]["oneOf"]
    }
    assert list(targets) == list(TARGETS)
    planned = {name for name, text in targets.items() if "--plan-only" in text}
    assert planned == set(TARGETS) - set(implemented())


def test_another_word_for_a_field_is_told_where_it_stands() -> None:
    for path, words in SYNONYMS.items():
        parent, _, name = path.replace("workloads.", "").rpartition(".")
        for word in words.split():
            (problem,) = load_text(f"{GOOD}  {word}: 1\n", "m.yaml").problems
            assert f"{parent}.{name}".lstrip(".") in problem.label or name in problem.label, word
    for word, field in (("ttft", "time_to_first_token"), ("itl", "time_per_output_token")):
        (problem,) = load_text(f"{GOOD}  slo: {{{word}: 1 s}}\n", "m.yaml").problems
        assert problem.label == f"did you mean '{field}'?"
    for word in ("inputTokens", "input-tokens"):
        (problem,) = load_text(GOOD.replace("load: {", f"load: {{{word}: 4, "), "m.yaml").problems
        assert problem.label == "did you mean 'input_tokens'?"


def test_another_word_for_a_value_is_told() -> None:
    for value, words in VALUES.items():
        field = "precision" if value in ("bf16", "fp16", "fp8", "int4") else "task"
        for word in words.split():
            text = GOOD.replace("task: inference", f"task: {word}")
            if field == "precision":
                text = f"{GOOD}  precision: {word}\n"
            (problem,) = load_text(text, "m.yaml").problems
            assert problem.label == f"did you mean '{value}'?", word
    (problem,) = load_text(GOOD.replace("task: inference", "task: Fine-Tuning"), "m.yaml").problems
    assert problem.label == "did you mean 'finetuning'?"


# Other words for one field, and the name of another one elsewhere.
OF_OTHER_PLACES = {"gpus", "kind", "latency", "method", "namespace", "rate", "type"}


def test_no_other_word_is_a_field_at_the_same_place() -> None:
    known = {name for kind in CLASSES for name in fields(kind)}
    words = {word for words in SYNONYMS.values() for word in words.split()}
    assert sorted(known & words - OF_OTHER_PLACES) == []


def test_an_unknown_isolation_is_answered_with_what_each_means() -> None:
    reading = load_text(f"{GOOD}  tenancy: {{isolation: pod}}\n", "m.yaml")
    text = " ".join(render_diagnostics(reading.problems, reading.sources).split())
    for meaning in ("shared: anyone", "only its own team is on its GPUs", "virtual machines"):
        assert meaning in text
