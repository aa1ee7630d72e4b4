"""The command line as people and scripts use it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.document import reference
from gpuplan.cli.main import VERBS, main
from gpuplan.manifest.load import load_text
from gpuplan.plan.read import read_tree
from gpuplan.sizing.evidence.formula import evaluate
from tests.support.plans import read_plan

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
ASSISTANT = ROOT / "examples" / "assistant-70b.yaml"
MISTAKES = ROOT / "docs" / "mistakes.yaml"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stacks")
    assert main(["compile", str(ASSISTANT), "-o", str(folder)]) == 0
    return folder / "assistant-70b"


def test_compile_answers_first_then_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(ASSISTANT), "-o", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    plan = read_plan(tmp_path / "assistant-70b")
    work = plan.workloads[0]
    order = [
        work.name,
        f"{work.gpu_count} × {work.gpu}",
        "memory",
        "expected",
        "instead of",
        "wrote",
    ]
    places = [printed.index(text) for text in order]
    assert places == sorted(places)
    assert max(len(line) for line in printed.splitlines() if not line.startswith("wrote")) <= 100


def test_five_mistakes_are_five_messages_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(MISTAKES), "-o", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("error[") == 5
    for place in (":2:7", ":3:39", ":7:10", ":8:72", ":9:58"):
        assert f"mistakes.yaml{place}" in shown.err
    assert shown.err.rstrip().endswith("5 errors")
    assert not (tmp_path / "out").exists()


def test_one_bad_manifest_of_several_writes_nothing(tmp_path: Path) -> None:
    assert main(["compile", str(ASSISTANT), str(MISTAKES), "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_problems_as_json_have_file_line_and_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(MISTAKES), "--json"]) == 2
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert {(p["code"], p["line"]) for p in problems} >= {("GP006", 3), ("GP005", 2)}
    assert all(p["file"].endswith("mistakes.yaml") and p["message"] for p in problems)


def test_check_says_which_stack_is_stale(stack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compile", str(ASSISTANT), "-o", str(stack.parent), "--check"]
    assert main(arguments) == 0
    lock = stack / "gpuplan.lock"
    before = lock.read_text()
    try:
        lock.write_text(before + "x: 1\n")
        assert main(arguments) == 1
        assert "gpuplan.lock" in capsys.readouterr().out
        assert lock.read_text() == before + "x: 1\n"
    finally:
        lock.write_text(before)


def test_compile_fails_on_findings_from_where_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A budget that is exceeded is an error of the policies."""
    text = ASSISTANT.read_text().replace("inventory: inv", f"inventory: {ASSISTANT.parent}/inv")
    manifest = tmp_path / "dear.yaml"
    manifest.write_text(text.replace("$45,000/month", "$1,000/month"))
    arguments = ["compile", str(manifest), "-o", str(tmp_path / "out")]
    assert main([*arguments, "--check", "--fail-on", "error", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert "error" in {p["severity"] for p in shown["problems"]}
    assert main(arguments) == 0
    assert "error[GP" in capsys.readouterr().err
    assert main([*arguments, "--fail-on", "error"]) == 1
    manifest.write_text(text)
    assert main([*arguments, "--fail-on", "error"]) == 0


def test_explain_leads_from_a_number_to_the_manifest(
    stack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(stack), "concurrency"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("assistant.concurrency = ")
    assert "manifest: workloads.assistant.load.requests_per_second.peak" in shown
    assert "formula: " in shown


def test_explain_names_the_defaults(stack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(stack), "slo.confidence"]) == 0
    assert "default: slo.confidence" in capsys.readouterr().out


def test_explain_of_an_unknown_number_suggests_one(
    stack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(stack), "weights_byte"]) == 2
    assert "did you mean 'weights_bytes'?" in capsys.readouterr().err


def test_explain_lists_a_group_with_its_values(
    stack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(stack), "decode"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert all(line.startswith("assistant.decode.") for line in lines)


def test_explain_says_what_would_flip_the_choice(
    stack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(stack)]) == 0
    shown = capsys.readouterr().out
    assert "instead of" in shown
    assert "× l40s: mean time per output token" in shown
    assert "would fit with slo.time_per_output_token" in shown


def test_explain_needs_no_slow_library(stack: Path) -> None:
    code = (
        "import sys; from gpuplan.cli.main import main; main(['explain', sys.argv[1]]);"
        "print([m for m in ('pydantic', 'ruamel.yaml', 'jinja2', 'pulumi') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(stack)], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("manifest", EXAMPLES, ids=lambda p: p.stem)
def test_every_number_of_an_example_is_what_its_formula_gives(manifest: Path) -> None:
    text = manifest.read_text()
    loaded = load_text(text, manifest.name).manifests[0].manifest
    regions = loaded.platform.regions
    names = sorted(
        p.name for p in (ROOT / "stacks").glob(f"{loaded.name}-*" if regions else loaded.name)
    )
    assert names
    for name in names:
        is_what_its_formulas_give(read_tree(ROOT / "stacks" / name))


def is_what_its_formulas_give(tree: dict[str, Any]) -> None:
    values = {e["quantity"]: e["value"] for e in tree["evidence"]}
    derived = [e for e in tree["evidence"] if e["formula"]]
    assert derived
    for entry in derived:
        inputs = {i["name"]: i["value"] for i in entry["inputs"]}
        assert evaluate(entry["formula"], inputs) == entry["value"], entry["quantity"]
        for item in entry["inputs"]:
            if item["source"].startswith("quantity:"):
                assert values[item["source"].removeprefix("quantity:")] == item["value"]


@pytest.mark.parametrize("task", ["inference", "training", "finetuning", "notebook"])
def test_init_writes_a_manifest_that_compiles(task: str, tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    assert main(["init", "--task", task, "-o", str(manifest)]) == 0
    assert main(["compile", str(manifest), "-o", str(tmp_path / "stacks")]) == 0


@pytest.mark.parametrize("task", ["inference", "training", "finetuning", "notebook"])
def test_init_for_hypervisors_writes_an_example_of_the_hosts(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest, inventory = tmp_path / "m.yaml", tmp_path / "inventory.yaml"
    arguments = ["init", "--task", task, "--target", "libvirt", "-o", str(manifest)]
    assert main(arguments) == 0
    assert "describe your own hosts" in capsys.readouterr().out
    assert inventory.read_text().startswith("# An example, not your hosts")
    assert main(["compile", str(manifest), "-o", str(tmp_path / "stacks")]) == 0
    inventory.write_text("mine")
    assert main([*arguments, "--force"]) == 0
    assert inventory.read_text() == "mine"


def test_init_asks_of_an_image_model_what_images_need(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    assert main(["init", "--model", "black-forest-labs/FLUX.1-dev", "-o", str(manifest)]) == 0
    assert "images:" in manifest.read_text()
    assert "tokens" not in manifest.read_text()
    assert main(["compile", str(manifest), "-o", str(tmp_path / "stacks")]) == 0


@pytest.mark.parametrize("named", [True, False], ids=["its own name", "a name beside it"])
def test_init_takes_a_config_json(
    named: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        **({"_name_or_path": "me/small"} if named else {}),
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "manifests").mkdir()
    manifest = tmp_path / "manifests" / "m.yaml"
    monkeypatch.chdir(tmp_path)
    arguments = ["init", "--model", "./config.json", "-o", "manifests/m.yaml"]
    if not named:
        assert main(arguments) == 2
        assert "--model-name ORGANISATION/MODEL" in capsys.readouterr().err
        assert not manifest.exists()
        arguments += ["--model-name", "me/small"]
    assert main(arguments) == 0
    assert main(["compile", str(manifest), "-o", str(tmp_path / "stacks")]) == 0
    model = read_plan(tmp_path / "stacks" / "first").workloads[0].model
    assert model is not None
    assert model.identifier == "me/small"
    assert 1.2e9 < model.parameters < 1.3e9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "batch"], "no first manifest for task 'batch'"),
        (["--target", "libvrt"], "did you mean 'libvirt'?"),
        (["-o", "no-such-folder/chat.yaml"], "cannot write no-such-folder/chat.yaml"),
        (["--model", "nope.json"], "cannot read 'nope.json': no such file"),
        (["--model", "foo/bar"], "unknown model 'foo/bar'"),
        (["--model", "meta-llama/Lama-3.1-8B"], "did you mean 'meta-llama/Llama-3.1-8B' or"),
        (["--model-name", "me/small"], "--model-name is given without a config.json"),
    ],
)
def test_init_says_what_it_cannot_do(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_init_never_replaces_a_file_unasked(tmp_path: Path) -> None:
    manifest = tmp_path / "m.yaml"
    manifest.write_text("mine")
    assert main(["init", "-o", str(manifest)]) == 2
    assert manifest.read_text() == "mine"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(verb in script for verb in VERBS)
    assert "--against" in script or "-l against" in script


def test_bash_completes_an_option() -> None:
    script = (
        "source <(python -m gpuplan completion bash); COMP_WORDS=(gpuplan compile --forc);"
        "COMP_CWORD=2; _gpuplan; echo ${COMPREPLY[@]}"
    ).replace("python", sys.executable)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--force"]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_that_teaches(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert f"usage: gpuplan {verb}" in shown
    assert "gpuplan " in shown.partition("options:")[2], "an example of use"


def test_the_reference_has_every_option() -> None:
    page = "\n".join(reference())
    assert "| `--against STACK` |" in page
    assert "| `--fail-on {error,warning,info}` |" in page


def test_a_closed_pipe_is_no_error() -> None:
    script = f"{sys.executable} -m gpuplan schema plan | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_catalog_shows_where_a_fact_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", "l40s"]) == 0
    shown = capsys.readouterr().out
    assert "864 GB/s" in shown
    assert "gpus/l40s.yaml memory_bandwidth" in shown
    assert main(["catalog", "show", "l4os"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_catalog_says_how_old_prices_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "list", "prices", "h100-sxm", "--as-of", "2026-07-30"]) == 0
    shown = capsys.readouterr().out
    assert "2026-07-20 (10 d old)" in shown


def test_an_edit_in_one_stack_keeps_all_of_them_from_being_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stacks"
    chat = ROOT / "examples" / "chat.yaml"
    assert main(["compile", str(chat), "-o", str(folder)]) == 0
    (folder / "chat" / "cluster.py").write_text("# mine\n")
    assert main(["compile", str(ASSISTANT), str(chat), "-o", str(folder)]) == 2
    assert "edited by hand: cluster.py" in capsys.readouterr().err
    assert [p.name for p in folder.iterdir()] == ["chat"]


def test_check_writes_a_file_and_answers_too(
    stack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    main(["check", str(stack), "--output", f"json={file}", "--json"])
    assert json.loads(capsys.readouterr().out) == json.loads(file.read_text())


def test_catalog_shows_every_kind_that_it_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", "dgx-h100"]) == 0
    assert "h100-sxm-80gb" in capsys.readouterr().out
    assert main(["catalog", "show", "dgx-h10"]) == 2
    assert "did you mean 'dgx-h100'?" in capsys.readouterr().err


def test_an_answer_that_cannot_be_written_is_one_line() -> None:
    code = "from gpuplan.cli.main import main; import sys; sys.exit(main(['schema', 'plan']))"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "error: cannot write the answer: no space left on device\n"
