"""Texts of the target syntaxes: nothing that is printed leaves its quotes."""

from __future__ import annotations

import ast
import shlex
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError, nodes
from ruamel.yaml import YAML

from gpuplan.render import commented, python, xml
from gpuplan.render.environments import Syntax, Verbatim, environment
from gpuplan.render.python import Call, Commented, Expression, Name
from gpuplan.resources import policy_root, template_root
from tests.support.samples import HOSTILE
from tests.support.toolbox import ruff

TEMPLATES = sorted(p.relative_to(template_root()) for p in template_root().rglob("*.j2"))

texts = st.one_of(st.just(HOSTILE), st.text(max_size=250))
data = st.recursive(
    st.one_of(
        texts,
        st.integers(),
        st.booleans(),
        st.none(),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def printed(syntax: Syntax, value: object) -> str:
    return environment(syntax).from_string("{{ value }}").render(value=value)


@given(data)
def test_python_data_reads_back(value: Expression) -> None:
    source = python.expression(value, lead="x = ")
    (assignment,) = ast.parse(source).body
    assert isinstance(assignment, ast.Assign)
    assert ast.literal_eval(assignment.value) == value


@given(texts)
def test_a_comment_stays_a_comment(text: str) -> None:
    assert not ast.parse(python.comment(text, indent=4) + "\n").body
    assert all(line.startswith("    #") for line in python.comment(text + "x", 4).splitlines())


def calls(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    names = st.sampled_from(["metadata", "spec", "a_rather_long_name_of_an_argument"])
    keywords = st.dictionaries(names, inner).map(lambda d: tuple(d.items()))
    return st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=30), inner, max_size=3),
        st.builds(Call, st.just("k8s.f"), st.lists(inner, max_size=2).map(tuple), keywords),
        st.builds(Commented, st.text("ab \n#", min_size=1), inner),
    )


@settings(max_examples=10)
@given(st.lists(st.recursive(texts | st.integers(), calls, max_leaves=15), max_size=30))
def test_the_layout_is_the_formatters(
    tmp_path_factory: pytest.TempPathFactory, trees: list
) -> None:
    path = tmp_path_factory.mktemp("layout") / "program.py"
    statements = [python.expression(Call("f", (t,)), lead=f"v{i} = ") for i, t in enumerate(trees)]
    path.write_text("".join(f"{s}\n" for s in statements) or "x = 1\n", encoding="utf-8")
    done = ruff("format", "--diff", path)
    assert done.returncode == 0, done.stdout


def test_names_are_references_only() -> None:
    assert Name("*addons.installed").text == "*addons.installed"
    for text in ("a b", "f()", "a;b", "1a", "a\n"):
        with pytest.raises(ValueError, match="not a Python reference"):
            Name(text)


def test_an_identifier_of_any_key() -> None:
    keys = ["tune-0", "10.0.0.1", "class", "h100-sxm-80gb"]
    names = [python.identifier(k) for k in keys]
    assert names == ["tune_0", "_10_0_0_1", "_class", "h100_sxm_80gb"]


def test_names_that_look_alike_become_different_variables() -> None:
    assert python.identifiers(["a.b", "a-b", "c"]) == ["a_b", "a_b_2", "c"]


@given(
    st.dictionaries(texts, data, max_size=4),
    st.lists(st.tuples(st.integers(0, 20), texts), max_size=6),
)
def test_commented_yaml_reads_back(tree: dict, notes: list) -> None:
    places = list(routes(tree))
    comments = {places[n % len(places)]: words for n, words in notes} if places else {}
    text = commented.dumps(tree, comments, "Title")
    assert YAML(typ="safe", pure=True).load(text) == tree


def routes(node: object, path: tuple = ()) -> Iterator[tuple]:
    children = node.items() if isinstance(node, dict) else enumerate(node)  # type: ignore[arg-type]
    for step, child in children:
        yield (*path, step)
        if isinstance(child, dict | list):
            yield from routes(child, (*path, step))


def test_comments_stand_above_what_they_explain() -> None:
    tree = {"a": [{"b": "x\n  y\n"}, 2], "c": {}}
    comments = {("a", 0, "b"): "why b", ("a", 1): "why two", ("c",): "why c"}
    assert commented.dumps(tree, comments, "Title") == (
        "# Title\na:\n  # why b\n  - b: |\n      x\n        y\n  # why two\n  - 2\n# why c\nc: {}\n"
    )


@given(texts)
def test_python_template(text: str) -> None:
    assert ast.literal_eval(printed("python", text)) == text


def test_xml_template() -> None:
    document = f"<a b='{printed('xml', HOSTILE)}'>{printed('xml', HOSTILE)}</a>"
    element = ET.fromstring(document)
    assert (element.get("b"), element.text) == (HOSTILE, HOSTILE)
    with pytest.raises(ValueError, match="XML cannot hold"):
        printed("xml", "\x07")


@given(texts)
def test_text_that_xml_cannot_hold_is_made_legal(text: str) -> None:
    assert ET.fromstring(f"<a>{printed('xml', xml.legal(text))}</a>").text == (
        xml.legal(text) or None
    )
    assert (xml.legal(text) == text) == (xml.illegal(text) == [])


def test_shell_template() -> None:
    line = f"printf %s {printed('shell', HOSTILE)}"
    assert shlex.split(line)[2] == HOSTILE
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == HOSTILE


@pytest.mark.parametrize("text", [HOSTILE, "a\nb", "a # b", " a", "a;b", 'say "x"', "a\\"])
def test_conf_template_refuses_what_the_syntax_cannot_hold(text: str) -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        printed("conf", text)


def test_yaml_template() -> None:
    text = environment("yaml").from_string("a: {{ a }}\nb: {{ b }}\n").render(a=HOSTILE, b="no")
    assert YAML(typ="safe", pure=True).load(text) == {"a": HOSTILE, "b": "no"}


@pytest.mark.parametrize("syntax", ["python", "xml", "conf", "shell", "yaml", "markdown", "text"])
def test_an_absent_value_is_an_error(syntax: Syntax) -> None:
    for source in ("{{ absent }}", "{{ value.absent }}"):
        with pytest.raises(UndefinedError):
            environment(syntax).from_string(source).render(value="x")


def test_verbatim_text_is_printed_as_it_is() -> None:
    assert printed("python", Verbatim("f(1)")) == "f(1)"


def test_a_cache_folder_out_of_reach_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gpuplan").write_text("a file where the cache folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    environment.cache_clear()
    try:
        assert environment("text").get_template(str(TEMPLATES[0])) is not None
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
        environment.cache_clear()
        environment("text").get_template(str(TEMPLATES[0]))
        assert [p for p in (tmp_path / "new").rglob("*") if p.is_file()]
    finally:
        environment.cache_clear()


ALLOWED = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Getattr,
    nodes.For,
    nodes.If,
    nodes.Not,
    nodes.And,
    nodes.Or,
    nodes.Tuple,
)


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_templates_only_loop_test_a_boolean_and_print(path: Path) -> None:
    tree = environment("text").parse((template_root() / path).read_text(encoding="utf-8"))
    refused = {type(n).__name__ for n in tree.find_all(nodes.Node) if not isinstance(n, ALLOWED)}
    assert not refused


def test_shipped_folders_are_found() -> None:
    assert template_root().is_dir()
    assert policy_root().is_dir()
