"""What a stack's own files say, before any program runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.diagnostics import Diagnostic
from gpuplan.preview.messages import PreviewFailed
from gpuplan.preview.stack import StackProgram, read_program
from tests.preview.programs import PROJECT, write

DECLARED = (
    PROJECT
    + """\
config:
  token: {type: string, secret: true}
  replicas: {type: integer, default: 3}
  debug: {type: boolean, default: false}
  hosts: {type: object, default: {a: "10.0.0.1"}}
  shop:color: red
"""
)


def read(folder: Path, **overrides: str) -> StackProgram:
    return read_program(folder, "dev", overrides)


def problems(folder: Path, stack: str = "dev") -> tuple[Diagnostic, ...]:
    with pytest.raises(PreviewFailed) as caught:
        read_program(folder, stack, {})
    return caught.value.diagnostics


def test_defaults_apply_and_a_secret_gets_a_placeholder(tmp_path: Path) -> None:
    program = read(write(tmp_path, "", project=DECLARED))
    assert program.config == {
        "shop:color": "red",
        "shop:debug": "false",
        "shop:hosts": '{"a":"10.0.0.1"}',
        "shop:replicas": "3",
        "shop:token": "[secret]",
    }
    assert program.secret_keys == ("shop:token",)
    assert program.placeholders == ("shop:token",)


def test_the_stack_file_wins_and_the_caller_wins_over_it(tmp_path: Path) -> None:
    write(tmp_path, "", project=DECLARED, settings="config:\n  shop:replicas: 5\n  debug: true\n")
    program = read(tmp_path, debug="false", token="given")
    assert program.config["shop:replicas"] == "5"
    assert program.config["shop:debug"] == "false"
    assert program.config["shop:token"] == "given"
    assert program.secret_keys == ("shop:token",)
    assert program.placeholders == ()


def test_a_setting_that_the_program_has_not_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, "", project=DECLARED)
    with pytest.raises(PreviewFailed) as caught:
        read(folder, replicsa="5", colour="red", color="blue")
    assert [(p.message, p.help) for p in caught.value.diagnostics] == [
        ("the program has no setting 'replicsa'", "did you mean 'replicas'?"),
        ("the program has no setting 'colour'", "did you mean 'color'?"),
    ]
    assert (
        read_program(folder, "dev", {"colour": "red"}, strict=False).config["shop:colour"] == "red"
    )


def test_encrypted_values_stay_closed(tmp_path: Path) -> None:
    settings = """\
encryptionsalt: v1:abc
config:
  shop:token: {secure: v1:xyz}
  shop:hosts: {a: {secure: v1:uvw}, b: plain}
"""
    program = read(write(tmp_path, "", project=DECLARED, settings=settings))
    assert program.config["shop:token"] == "[secret]"
    assert program.config["shop:hosts"] == '{"a":"[secret]","b":"plain"}'
    assert program.placeholders == ("shop:hosts", "shop:token")


def test_all_missing_values_are_named_at_once(tmp_path: Path) -> None:
    project = PROJECT + "config:\n  b: {type: string}\n  a: {type: string}\n  c: {secret: true}\n"
    [problem] = problems(write(tmp_path, "", project=project))
    assert problem.message == "stack 'dev' is missing configuration values 'a' and 'b'"


def test_values_of_other_packages_are_not_required(tmp_path: Path) -> None:
    project = PROJECT + "config:\n  aws:region: {type: string}\n"
    assert read(write(tmp_path, "", project=project)).config == {}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("shop:replicas: many", "configuration 'shop:replicas' must be of type 'integer'"),
        ("shop:debug: maybe", "configuration 'shop:debug' must be of type 'boolean'"),
        ("shop:hosts: text", "configuration 'shop:hosts' must be of type 'object'"),
        (
            "shop:token: hunter2",
            "configuration 'shop:token' is a secret, and stands here in plain text",
        ),
    ],
)
def test_a_wrong_value_is_shown_at_its_line(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, "", project=DECLARED, settings=f"config:\n  shop:color: blue\n  {line}\n")
    with pytest.raises(PreviewFailed) as caught:
        read(tmp_path)
    [problem] = caught.value.diagnostics
    assert problem.message == message
    place = caught.value.sources.locate(problem.origin)
    assert place is not None
    assert (place[0].name, place[1].line) == ("Pulumi.dev.yaml", 3)


def test_all_wrong_values_are_reported_together(tmp_path: Path) -> None:
    write(tmp_path, "", project=DECLARED, settings="config: {replicas: many, debug: maybe}\n")
    assert len(problems(tmp_path)) == 2


@pytest.mark.parametrize(
    ("project", "message"),
    [
        ("name: shop\nruntime: nodejs\n", "the program's runtime is 'nodejs'"),
        ("name: shop\nruntime: {name: go}\n", "the program's runtime is 'go'"),
        ("runtime: python\n", "Pulumi.yaml names no project"),
        ("name: shop\nruntime: python\nconfig: 3\n", "config must be a mapping"),
        ("name: [\n", "not valid YAML"),
        ("", "Pulumi.yaml names no project"),
    ],
)
def test_a_broken_project_is_refused(tmp_path: Path, project: str, message: str) -> None:
    [problem] = problems(write(tmp_path, "", project=project))
    assert problem.message.startswith(message)


def test_a_folder_without_a_program_says_what_to_do(tmp_path: Path) -> None:
    [problem] = problems(tmp_path)
    assert "holds no Pulumi program" in problem.message
    assert "`gpuplan compile` writes one" in (problem.help or "")
    write(tmp_path, "")
    (tmp_path / "__main__.py").unlink()
    assert "no __main__.py" in problems(tmp_path)[0].message


@pytest.mark.parametrize("name", ["slurm", "box"])
def test_a_stack_that_is_applied_without_pulumi_is_not_sent_to_be_compiled_again(name: str) -> None:
    [problem] = problems(Path(__file__).parents[2] / "stacks" / name)
    assert problem.message == (
        f"{name} holds no Pulumi program: stacks of its target are applied without one"
    )
    assert "README.md" in (problem.help or "")
    assert "compile" not in (problem.help or "")


def test_an_unknown_stack_names_those_there_are(tmp_path: Path) -> None:
    write(tmp_path, "", settings="config: {}\n")
    [problem] = problems(tmp_path, stack="def")
    assert problem.message == "there is no Pulumi.def.yaml here"
    assert problem.help == "did you mean 'dev'?"
    assert problems(tmp_path, stack="production")[0].help == "choose one of dev"
