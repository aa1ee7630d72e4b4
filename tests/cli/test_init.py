"""`gpuplan init` on a terminal: each answer is checked as it is given, and none is lost."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from gpuplan.cli.asking.questions import QUESTIONS, fault
from gpuplan.cli.main import main

ROOT = Path(__file__).parents[2]


def typed(folder: Path, *lines: str, end: bytes = b"\x04") -> str:
    """What a terminal shows of `gpuplan init -o m.yaml` with these answers, and then `end`."""
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "gpuplan", "init", "-o", "m.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb"}
    with subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, cwd=folder, env=environment
    ) as process:
        os.close(inner)
        os.write(outer, "".join(f"{line}\n" for line in lines).encode() + end)
        shown = b""
        while True:
            try:
                part = os.read(outer, 65536)
            except OSError:  # the program has closed its end
                break
            if not part:
                break
            shown += part
    os.close(outer)
    assert process.returncode == 0, shown.decode()
    return shown.decode().replace("\r\n", "\n")


def manifest(folder: Path) -> dict[str, object]:
    tree: dict[str, object] = YAML(typ="safe").load(folder / "m.yaml")
    return tree


def test_a_wrong_answer_is_asked_again_and_ctrl_d_keeps_the_others(tmp_path: Path) -> None:
    shown = typed(tmp_path, "My Stack", "mine", "kubernets", "kubernetes")
    assert "'My Stack': Lower-case letters" in shown
    assert "did you mean 'kubernetes'?" in shown
    assert "what you answered is kept" in shown
    assert manifest(tmp_path)["name"] == "mine"
    assert main(["compile", str(tmp_path / "m.yaml"), "-o", str(tmp_path / "stacks")]) == 0


def test_every_answer_is_taken_as_it_was_given(tmp_path: Path) -> None:
    lines = ("", "", "inference", "Qwen/Qwen3-8B", "7.5", "none", "800", "200")
    shown = typed(tmp_path, *lines, end=b"")
    assert "'none'" in shown
    (workload,) = manifest(tmp_path)["workloads"]  # type: ignore[misc]
    assert workload["load"] == {
        "requests_per_second": 7.5,
        "input_tokens": 800,
        "output_tokens": 200,
    }


WRONG = {
    "name": "Chat 1",
    "target": "vsphere",
    "task": "infer",
    "model": "no/such",
    "model_name": "",
    "requests_per_second": "0",
    "input_tokens": "many",
    "output_tokens": "-3",
    "image_size": "large",
    "steps": "2.5",
    "tokens": "1e99",
    "users": "0",
    "gpu_memory": "10",
}


@pytest.mark.parametrize("flag", WRONG)
def test_each_question_knows_a_wrong_answer(flag: str) -> None:
    proposal = next(q.proposal for q in QUESTIONS if q.flag == flag)
    assert flag == "model_name" or fault(flag, proposal) == ""
    assert fault(flag, WRONG[flag])
    assert set(WRONG) == {q.flag for q in QUESTIONS}


def test_the_first_line_names_a_schema_that_is_there_and_holds(tmp_path: Path) -> None:
    assert main(["init", "-o", str(tmp_path / "m.yaml")]) == 0
    first, *_ = (tmp_path / "m.yaml").read_text("utf-8").splitlines()
    lead, _, name = first.partition("$schema=")
    assert lead == "# yaml-language-server: "
    schema = json.loads((tmp_path / name).read_text("utf-8"))
    jsonschema.validate(manifest(tmp_path), schema)
    (tmp_path / name).write_text("mine", "utf-8")
    assert main(["init", "--force", "-o", str(tmp_path / "m.yaml")]) == 0
    assert (tmp_path / name).read_text("utf-8") == "mine"


def test_numbers_are_written_as_people_write_them(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    answers = ["--task", "training", "--model", "Qwen/Qwen3-8B", "--tokens", "2e9"]
    assert main(["init", *answers, "-o", str(path)]) == 0
    assert YAML(typ="safe", pure=True).load(path)["workloads"][0]["training"]["tokens"] == 2e9
    assert fault("tokens", "2e9") == ""
    assert "did you mean 'meta-llama/Llama-3.3-70B-Instruct'?" in fault("model", "Llama-3.3-70B")
