"""The canonical form: every YAML reader agrees with ours, and writing is stable."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gpuplan.plan import serialize
from gpuplan.plan.model import Plan
from gpuplan.render import yaml
from tests.support.samples import HOSTILE, libvirt_plan, serving_plan, training_plan

KEYS = st.text(min_size=1, max_size=12)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    [HOSTILE, "no", "1e3", "- a", "a: b", "# c", "1.10", "0x1F", "~", " x", "12:30", "2026-01-01"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(st.dictionaries(KEYS, inner, min_size=1, max_size=4), max_size=3)
        | st.lists(SCALARS, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=5))
def test_every_reader_gets_back_what_was_written(tree: dict[str, object]) -> None:
    text = yaml.dumps(tree)  # type: ignore[arg-type]
    assert yaml.loads(text) == tree
    assert YAML(typ="safe", pure=True).load(text) == tree
    old = YAML(typ="safe", pure=True)
    old.version = (1, 1)
    assert old.load(text) == tree
    assert yaml.dumps(yaml.loads(text)) == text  # type: ignore[arg-type]


@pytest.mark.parametrize("plan", [serving_plan(), training_plan(), libvirt_plan()])
def test_a_plan_survives_its_files(plan: Plan) -> None:
    text, evidence = serialize.dump(plan), serialize.dump_evidence(plan)
    read = serialize.load(text, evidence=evidence)
    assert read == plan
    assert (serialize.dump(read), serialize.dump_evidence(read)) == (text, evidence)


def test_a_plan_that_an_editor_reformatted_is_the_same_plan() -> None:
    plan = serving_plan()
    texts = serialize.dump(plan), serialize.dump_evidence(plan)
    plain = [json.dumps(YAML(typ="safe", pure=True).load(t), indent=3) for t in texts]
    assert serialize.load(plain[0], evidence=plain[1]) == plan


def test_hostile_text_is_data_in_a_plan() -> None:
    plan = dataclasses.replace(serving_plan(), description=HOSTILE)
    assert serialize.load(serialize.dump(plan)).description == HOSTILE


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2\n", "a:\n", "a: [1\n", "a: 'x'\n", "? x\n", "a: &b 1\n", "  a: 1\n"]
)
def test_anything_else_is_refused_rather_than_misread(text: str) -> None:
    with pytest.raises(yaml.NotCanonical):
        yaml.loads(text)


@pytest.mark.parametrize("number", [5e-07, -1e22, 1e16, 1.5e300, 2.5e-05, 1e-300, 0.1, 123456.0])
def test_a_number_is_one_to_readers_of_yaml_1_1(number: float) -> None:
    text = yaml.scalar(number)
    assert re.fullmatch(r"-?[0-9]+|-?[0-9]+\.[0-9]*([eE][-+][0-9]+)?", text), "YAML 1.1, float"
    assert float(text) == json.loads(text) == number
