"""What people read on a terminal: lines of 80 columns, with words whole."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.cli.main import VERBS, main
from gpuplan.render.text import COLUMNS, fitted, width

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(p.stem for p in (ROOT / "examples").glob("*.yaml"))
SERVED = ("assistant-70b", "chat", "deepseek-v3", "images", "lab", "notebooks")
AS_OF = "--as-of 2026-11-21"
TEAMS, INVENTORIES = "examples/requests/teams.yaml", "examples/inventories"
LISTS = ("gpus", "models", "nodes", "components", "engines", "nics", "storage", "purchase")
COMMANDS = (
    *(f"compile examples/{name}.yaml -o OUT" for name in EXAMPLES),
    *(f"explain stacks/{name}" for name in EXAMPLES),
    *(f"preview stacks/{name}" for name in EXAMPLES),
    *(f"check stacks/{name} {AS_OF}" for name in EXAMPLES),
    *(f"diff stacks/{name} stacks/chat {AS_OF}" for name in EXAMPLES),
    *(f"capacity examples/{name}.yaml" for name in SERVED),
    "capacity examples/assistant-70b.yaml --split",
    "capacity examples/chat.yaml --frontier",
    "capacity examples/chat.yaml --models",
    "explain stacks/assistant-70b kv_cache_bytes",
    "explain stacks/assistant-70b decode",
    "explain stacks/images request_latency",
    "explain stacks/finetune step_seconds",
    f"pack {TEAMS} examples/assistant-70b.yaml --inventory {INVENTORIES}/fleet.yaml",
    *(f"inventory show {INVENTORIES}/{n}.yaml" for n in ("fleet", "hypervisors", "rack-7")),
    *(f"catalog list {name}" for name in LISTS),
    *(f"catalog show {name}" for name in ("h100-sxm-80gb", "vllm", "dgx-h100", "gpu-operator")),
    "compile docs/mistakes.yaml",
    "compile docs/no-such.yaml",
    "explain stacks/chat no_such_quantity",
    "check stacks/none",
    "init",
    "--help",
    *(f"{verb} --help" for verb in VERBS),
)


def too_wide(text: str) -> list[str]:
    """Lines that are too long though they could be broken between words."""
    return [line for line in text.splitlines() if width(line) > COLUMNS and " " in line.strip()]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_answer_holds_80_columns(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")  # argparse asks
    with contextlib.suppress(SystemExit):  # of --help
        main(shlex.split(command.replace("OUT", str(tmp_path))))
    captured = capsys.readouterr()
    assert captured.out or captured.err
    assert too_wide(captured.out) + too_wide(captured.err) == []


MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: chat
platform: {target: kubernetes, gpus: [l4]}
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.3-70B-Instruct
  load: {requests_per_second: {mean: 8, peak: 20}, input_tokens: 1200, output_tokens: 300}
"""
MISTAKES: dict[str, Callable[[str], str]] = {
    "nothing fits": lambda text: text + "  slo: {time_per_output_token: 1 ms}\n",
    "an unknown field": lambda text: text + "  tp: 2\n",
    "an unknown isolation": lambda text: text + "  tenancy: {isolation: pod}\n",
    "an unknown target": lambda text: text.replace("kubernetes", "kubernetess"),
    "a long line": lambda text: text.replace("input_tokens", " " * 200 + "inputs"),
    "a long word": lambda text: text.replace("name: chat", f"name: {'x' * 120}"),
    "a long label": lambda text: text.replace("Instruct", "Instrukt"),
    "no such override": lambda text: text + "  overrides: {gpu: h100-sxm-80gb, replicas: 2}\n",
    "an override that does not fit": lambda text: text + "  overrides: {max_num_seqs: 4000}\n",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_80_columns(
    mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(MISTAKES[mistake](MANIFEST), encoding="utf-8")
    assert main(["compile", str(file), "-o", str(tmp_path)]) == 2
    told = capsys.readouterr().err.replace(str(file), "manifest.yaml")
    assert "manifest.yaml:" in told
    assert too_wide(told) == []


@given(st.text("abé漢-::,=|    ", max_size=400), st.integers(20, 100))
def test_a_text_keeps_its_words_and_its_width(text: str, columns: int) -> None:
    shown = fitted(text, columns)
    assert shown.split() == text.split()
    for line in shown.split("\n"):
        assert width(line) <= columns or " " not in line.strip() or line == text.rstrip(" ")


def test_what_follows_a_break_stands_below_its_label() -> None:
    text = "  memory      of 80 GiB: weights 34 GiB, KV cache 10 GiB, free 36 GiB"
    assert fitted(text, 50).split("\n") == [
        "  memory      of 80 GiB: weights 34 GiB, KV cache",
        "              10 GiB, free 36 GiB",
    ]
    assert fitted("error[GP010]: \033[1mno GPU type\033[0m fits", 24).split("\n") == [
        "error[GP010]: \033[1mno GPU",
        "  type\033[0m fits",
    ]


def test_a_group_stands_in_its_column_with_its_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(ROOT / "stacks" / "assistant-70b")]) == 0
    shown = capsys.readouterr().out.partition("quantities: ")[2].splitlines()[1:]
    assert any(line.lstrip().startswith("prefill (") or "  prefill (" in line for line in shown)
    assert [line for line in shown if line.strip() and len(line) - len(line.lstrip()) > 6] == []
