"""A person's mistakes: each gets one good message at its own line, all of them at once."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from gpuplan.manifest.load import Reading, load_manifests, load_text
from gpuplan.manifest.text import MOST_VALUES
from gpuplan.models.load import known_names
from gpuplan.report.terminal import render_diagnostics
from gpuplan.resolve.messages import unknown_model
from gpuplan.schemas import schema
from gpuplan.source import Origin
from tests.support.work import calls

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
GOOD = """\
apiVersion: gpuplan.dev/v1
name: chat
platform: {target: kubernetes}
workloads:
- name: assistant
  task: inference
  model: some/model
  load: {requests_per_second: 8, input_tokens: 100, output_tokens: 100}
"""


def read(text: str) -> Reading:
    return load_text(text, "m.yaml")


def lines(reading: Reading) -> list[int]:
    places = (reading.sources.locate(p.origin) for p in reading.problems)
    return [found[1].line for found in places if found]


def test_the_shortest_manifest_is_valid() -> None:
    reading = read(GOOD)
    assert reading.problems == []
    rate = reading.manifests[0].manifest.workloads[0].load
    assert rate is not None
    assert rate.requests_per_second is not None
    assert rate.requests_per_second.mean == 8


def test_five_mistakes_get_five_messages_each_at_its_own_line() -> None:
    broken = (
        GOOD.replace("name: chat", "name: Chat")
        .replace("target: kubernetes", "target: kubernetess")
        .replace("task: inference", "tasks: inference")
        .replace("requests_per_second: 8", 'requests_per_second: "8"')
        + "  slo: {time_per_output_token: 40}\n"
    )
    reading = read(broken)
    messages = {p.message for p in reading.problems}
    assert "'Chat' is not a valid 'name'" in messages
    assert "'kubernetess' is not a value of 'target'" in messages
    assert "unknown field 'tasks'" in messages
    assert "missing field 'task'" not in messages, "it is the misspelt one"
    assert any("40 ms" in m for m in messages)
    assert sorted(set(lines(reading))) == [2, 3, 6, 8, 9]
    text = render_diagnostics(reading.problems, reading.sources)
    assert "did you mean 'kubernetes'?" in text
    assert "did you mean 'task'?" in text
    assert text.count("-->") == len(reading.problems) == 5


def test_a_field_in_the_wrong_mapping_is_told_its_own() -> None:
    reading = read(GOOD + "  sequence_length: 4096\n  slo: {team: red}\n")
    assert {p.message: p.label for p in reading.problems} == {
        "unknown field 'sequence_length'": "this is a field of 'training'",
        "unknown field 'team'": "this is a field of 'tenancy'",
    }


def test_the_caret_stands_under_the_value() -> None:
    reading = read(GOOD.replace("kubernetes}", "kubernetess}"))
    shown = render_diagnostics(reading.problems, reading.sources).splitlines()
    at = shown.index("3 | platform: {target: kubernetess}")
    assert shown[at + 1].index("^") == shown[at].index("kubernetess")
    assert "^" * len("kubernetess") in shown[at + 1]
    assert " --> m.yaml:3:20" in shown


def test_a_long_line_is_shown_around_its_mark() -> None:
    line = "platform: {gpus: [" + "l4, " * 200 + "l4], target: kubernetess}"
    reading = read(GOOD.replace("platform: {target: kubernetes}", line))
    shown = render_diagnostics(reading.problems, reading.sources)
    excerpt = next(t for t in shown.splitlines() if t.startswith("3 | "))
    mark = shown.splitlines()[shown.splitlines().index(excerpt) + 1]
    assert len(excerpt) < 180
    assert mark[excerpt.index("kubernetess") :].startswith("^" * len("kubernetess"))


def test_a_wide_character_before_the_caret_keeps_it_in_place() -> None:
    reading = read(GOOD + "  description: {漢: 1}\n")
    shown = render_diagnostics(reading.problems, reading.sources)
    assert "'description' must be a text" in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\n", "not valid YAML"),
        ("a: 1\na: 2\n", "duplicate key 'a'"),
        ("a: !!python/object:os.system x\n", "has no meaning here"),
        ("a: &x [*x]\n", "this alias refers to itself"),
        ("", "holds no document"),
        ("{[1]: 2}\n", "a key must be a plain text"),
        ("[" * 3000, "nested too deeply"),
        (f"a: {'[' * 101}1{']' * 101}\n", "nested too deeply"),
        (f"a: {'9' * 5000}\n", "too many digits"),
    ],
)
def test_broken_yaml_is_one_message(text: str, message: str) -> None:
    reading = read(text)
    assert reading.manifests == []
    assert sum(message in p.message for p in reading.problems) == 1


def test_a_key_without_a_value_is_shown_at_the_key() -> None:
    reading = read("apiVersion: gpuplan.dev/v1\nname:\n\n# later\nworkloads:\nplatform: {}\n")
    shown = render_diagnostics(reading.problems, reading.sources)
    assert "2 | name:\n  | ^^^^ found nothing" in shown
    assert "5 | workloads:\n  | ^^^^^^^^^ found nothing" in shown


def test_an_alias_bomb_is_refused() -> None:
    layers = "\n".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 9))
    reading = read(f"l0: &l0 [x, x]\n{layers}\n")
    assert [p.rule for p in reading.problems] == ["GP002"]


def test_a_duplicate_key_shows_both_places() -> None:
    reading = read("name: a\nname: b\n")
    text = render_diagnostics(reading.problems, reading.sources)
    assert "first defined here" in text
    assert ":1:1" in text
    assert ":2:1" in text


def test_yaml_1_2_rules() -> None:
    reading = read(GOOD.replace("name: assistant", "name: 'no'").replace("some/model", "off"))
    assert reading.problems == []
    assert reading.manifests[0].manifest.workloads[0].model.name == "off"  # type: ignore[union-attr]


def test_several_documents_and_files_are_several_stacks(tmp_path: Path) -> None:
    one, two = tmp_path / "a.yaml", tmp_path / "b.yaml"
    one.write_text(GOOD + "---\n" + GOOD.replace("name: chat", "name: other"))
    two.write_text(GOOD)
    reading = load_manifests([one, two])
    assert [m.manifest.name for m in reading.manifests] == ["chat", "other", "chat"]
    assert [p.message for p in reading.problems] == ["two stacks are called 'chat'"]


def test_a_problem_in_the_second_document_is_shown_at_its_line() -> None:
    reading = read(GOOD + "---\n" + GOOD.replace("name: chat", "name: 7"))
    assert lines(reading) == [11]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    reading = load_manifests([tmp_path / "none.yaml", binary])
    assert [p.rule for p in reading.problems] == ["GP009", "GP009"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_the_schema_accepts_the_examples_as_an_editor_would(path: Path) -> None:
    data = YAML(typ="safe", pure=True).load(path.read_text())
    for names in (True, False):
        jsonschema.Draft202012Validator(schema("manifest", names=names)).validate(data)


def test_the_schema_that_is_printed_knows_the_names_of_this_catalogue() -> None:
    """That of `docs/` leaves them open: it is for catalogues of all versions."""
    data = YAML(typ="safe", pure=True).load(GOOD)
    data["platform"] = {"target": "kubernetes", "gpus": ["h100-sxm-80g"]}
    jsonschema.Draft202012Validator(schema("manifest", names=False)).validate(data)
    with pytest.raises(jsonschema.ValidationError, match="h100-sxm-80g"):
        jsonschema.Draft202012Validator(schema("manifest")).validate(data)


def test_the_schema_refuses_an_unknown_field() -> None:
    data = YAML(typ="safe", pure=True).load(GOOD.replace("name: chat", "nam: chat"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema("manifest")).validate(data)


def messages(reading: Reading) -> list[str]:
    return [p.message for p in reading.problems]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("slo: {time_to_first_token: 1e400 s}", "'1e400 s' is too large to be meant"),
        ("slo: {time_to_first_token: 1e999999999 s}", "'1e999999999 s' is too large to be meant"),
        ("slo: {time_per_output_token: 0 ms}", "'time_per_output_token' must be more than 0"),
        ("checkpoint: {interval: 0 s}", "'interval' must be more than 0"),
        ("notebook: {users: 1, gpu_memory: 0 GiB}", "'gpu_memory' must be more than 0"),
        ("overrides: {host_memory_per_gpu: 0 GiB}", "'host_memory_per_gpu' must be more than 0"),
        ("overrides: {model_storage: 0 GiB}", "'model_storage' must be more than 0"),
        (f"overrides: {{replicas: {'9' * 320}}}", "'replicas' must be at most 1,000,000,000"),
        ("training: {tokens: 1e300}", "'tokens' must be at most 1e+18"),
        (f"load: {{images: {{mean: {'9' * 320}x1, steps: 1}}}}", "for example '1024x1024'"),
        ("engine: ''", "'engine' must not be empty"),
        ("engine: {name: ''}", "'name' must not be empty"),
        ("renamed_from: [X_Y]", "'X_Y' is not a valid entry of 'renamed_from'"),
        ("command: [5]", "an entry of 'command' must be a text"),
        ("environment: {1A: x}", "'1A' is not a valid key of 'environment'"),
        ("growth: x", "'growth' must be a number, or {factor, horizon}"),
        ("model: 5", "'model' must be a text, or {name, path, config, revision}"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(written: str, message: str) -> None:
    field = written.partition(":")[0]
    text = "".join(t for t in GOOD.splitlines(keepends=True) if not t.startswith(f"  {field}:"))
    (told,) = messages(read(f"{text}  {written}\n"))
    assert told.endswith(message)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ('storage: {class: "a b/Ü"}', "'a b/Ü' is not a valid 'class'"),
        ("versions: {gpu-operator: ''}", "'gpu-operator' must not be empty"),
        ("budget: $1e99999999999999999999/month", "is too large to be meant"),
    ],
)
def test_a_platform_that_cannot_be_meant_is_refused(written: str, message: str) -> None:
    (told,) = messages(read(GOOD.replace("kubernetes}", f"kubernetes, {written}}}")))
    assert message in told


def test_no_time_without_requests_is_allowed() -> None:
    assert messages(read(GOOD.replace("load: {", "load: {idle: 0 s, "))) == []


def test_another_name_of_a_target_is_understood() -> None:
    (problem,) = read(GOOD.replace("target: kubernetes", "target: k8s")).problems
    assert problem.label == "did you mean 'kubernetes'?"
    assert problem.help.startswith("kubernetes or libvirt")


def test_a_character_written_as_two_escapes_is_one() -> None:
    reading = read(GOOD + '  description: "\\ud83d\\ude00"\n')
    assert reading.manifests[0].manifest.workloads[0].description == "😀"


def test_half_a_character_is_refused_at_its_place() -> None:
    reading = read(GOOD + '  description: "\\ud83d"\n')
    assert messages(reading) == ["half of a surrogate pair is no character"]
    assert lines(reading) == [9]


def test_a_control_character_is_shown_at_its_place() -> None:
    reading = read(GOOD.replace("some/model", "some\x07model"))
    assert "U+0007" in messages(reading)[0]
    assert " --> m.yaml:7:14" in render_diagnostics(reading.problems, reading.sources)


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\nb: M\xfcnchen\n")
    (problem,) = load_manifests([path]).problems
    assert problem.message.endswith("byte 0xfc in line 2 is not UTF-8")
    assert problem.help == "save the file as UTF-8"


def test_a_document_of_more_values_than_are_read_is_refused_unread() -> None:
    text = GOOD + "".join(f"key_{n}: 1\n" for n in range(MOST_VALUES))
    (problem,) = read(text).problems
    assert problem.message == "m.yaml has some 60,017 values, and 60,000 are read at most"
    assert calls(lambda: read(text)) < 200_000


@pytest.mark.parametrize("unit", ["[", "{", "- ", "? ", "a: ", '"a":', "1,", "k: 1\n", "-\n"])
def test_no_text_has_more_values_than_are_counted(unit: str) -> None:
    (problem,) = read("x: [" + unit * (MOST_VALUES + 1)).problems
    assert "60,000 are read at most" in problem.message


def test_thousands_of_mistakes_are_a_hundred_messages() -> None:
    reading = read(GOOD + "".join(f"key_{n}: 1\n" for n in range(20_000)))
    *shown, rest = reading.problems
    assert {p.rule for p in shown} == {"GP003"}
    assert (len(shown), rest.message) == (100, "m.yaml has 19,900 more problems")


def test_a_name_of_any_length_is_looked_up_at_once() -> None:
    (problem,) = read(GOOD + "nam" * 300 + ": 1\n").problems
    assert problem.rule == "GP003"


def test_a_file_that_never_ends_is_no_document() -> None:
    endless = Path("/dev/zero")
    if not endless.exists():
        pytest.skip("no /dev/zero")
    (problem,) = load_manifests([endless]).problems
    assert problem.message == "cannot read /dev/zero: it is larger than 64 MiB"


def test_a_file_without_a_document_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing yet\n", encoding="utf-8")
    reading = load_manifests([path])
    shown = render_diagnostics(reading.problems, reading.sources)
    assert "empty.yaml holds no document" in shown
    assert f"{path}:1:1" in shown


def test_the_remedy_of_a_price_can_be_written_between_braces() -> None:
    """Where a comma would end the value: it is shown in quotes."""
    manifest = GOOD.replace("target: kubernetes", "target: kubernetes, budget: $20,000/month")
    helps = " ".join(p.help for p in read(manifest).problems)
    assert 'budget: "$20,000/month"' in helps
    corrected = manifest.replace("$20,000/month", '"$20,000/month"')
    assert read(corrected).problems == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Llama-3.3-70B", "'meta-llama/Llama-3.3-70B-Instruct'"),
        ("llama 3.1 8b", "'meta-llama/Llama-3.1-8B' or 'meta-llama/Llama-3.1-8B-Instruct'"),
        ("Qwen/Qwen3-8B-Instruct", "'Qwen/Qwen3-8B'"),
    ],
)
def test_a_part_of_a_models_name_finds_it(written: str, meant: str) -> None:
    problem = unknown_model(written, known_names(), Origin("m.yaml", ()))
    assert problem.label == f"did you mean {meant}?"


def test_a_price_that_a_comma_cuts_is_told_to_be_quoted() -> None:
    text = GOOD.replace("{target: kubernetes}", "{target: kubernetes, budget: $5,000/month}")
    (cut,) = (p for p in read(text).problems if p.rule == "GP003")
    assert cut.label == "inside { } a comma ends a value"
    assert cut.help == 'write `budget: "$5,000/month"`, in quotes'
