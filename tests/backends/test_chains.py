"""Workloads that wait for others and recur: what is refused at its line, what targets say."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from tests.backends.test_docker import read
from tests.support.boxes import PRODUCT, stack, text
from tests.support.chains import CHAIN, EVALUATE, PREPARE, TRAIN
from tests.support.require import require
from tests.support.samples import HOSTILE
from tests.support.slurms import CHAT, HEAD, INVENTORY, write
from tests.tools.gpubox import Box

L40S = """\
- names: [gpu-1, gpu-2]
  sockets: 2
  cpu_cores: 64
  memory: 768 GiB
  gpus: [{type: l40s, count: 4}]
"""
KUBERNETES = """\
apiVersion: gpuplan.dev/v1
name: chain
platform: {target: kubernetes, gpus: [l40s]}
workloads:
"""


def said(folder: Path, workloads: str, capsys: pytest.CaptureFixture[str]) -> str:
    path = write(folder, HEAD + workloads, INVENTORY + L40S)
    capsys.readouterr()
    assert main(["compile", str(path), "-o", str(folder / "stacks")]) == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("workloads", "message", "line"),
    [
        (PREPARE + "  after: [trian]\n" + TRAIN, "unknown workload 'trian'", "15:11"),
        (PREPARE + "  after: [prepare]\n", "'prepare' waits for 'prepare': itself", "15:11"),
        (PREPARE + "  after: [chat]\n" + CHAT, "'chat' is of task 'inference'", "15:11"),
        (PREPARE + "  after: [train, train]\n" + TRAIN, "'train' stands twice in 'after'", "15:18"),
        (
            PREPARE + "  after: [evaluate]\n" + TRAIN + "  after: [prepare]\n" + EVALUATE
            + "  after: [train]\n",
            "'prepare' waits for 'evaluate' waits for 'train' waits for 'prepare': none would",
            "15:11",
        ),
        (
            TRAIN + PREPARE + "  after: [train]\n  schedule: 0 3 * * *\n",
            "'prepare' has both a schedule and others to wait for",
            "24:13",
        ),
        (CHAT + "  schedule: 0 3 * * *\n", "'schedule' is not used by an inference", "12:3"),
    ],
)  # fmt: skip
def test_what_would_never_start_is_refused_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workloads: str, message: str, line: str
) -> None:
    text = said(tmp_path, workloads, capsys)
    assert message in text
    assert f"cluster.yaml:{line}" in text


@pytest.mark.parametrize(
    "schedule",
    [
        "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "* * * *",
        "* * * * * *", "*  * * * *", "5-1 * * * *", "*/0 * * * *", "a * * * *", "@daily",
        "* * * * * ; id", "1, * * * *", "%", "# * * * *", "'* * * * *'", HOSTILE, "",
    ],
)  # fmt: skip
def test_a_schedule_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schedule: str
) -> None:
    text = said(tmp_path, f"{PREPARE}  schedule: {json.dumps(schedule)}\n", capsys)
    assert "'schedule'" in text
    assert "cluster.yaml:15:13" in text


@pytest.mark.parametrize("name", ["a b", "a%b", "a#b", 'a"b', "a'b", "$(id)", "-x", ""])
def test_a_name_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text = said(tmp_path, f"{PREPARE}  after: [{json.dumps(name)}]\n", capsys)
    assert "'after'" in text
    assert "cluster.yaml:15:11" in text


def test_the_scripts_of_a_chain_have_no_remark_of_a_shell(tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        require("docker", "shellcheck is not installed (see tests/tools/docker-setup)")
    path = write(tmp_path, HEAD + CHAIN, INVENTORY + L40S)
    assert main(["compile", str(path), "-o", str(tmp_path / "stacks")]) == 0
    made = tmp_path / "stacks" / "cluster"
    words = ["shellcheck", "--exclude=SC2016,SC2317", made / "submit.sh", made / "scrontab.sh"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    readme = (made / "README.md").read_text("utf-8")
    assert "`evaluate` starts when `train` and `prepare` have ended well" in readme
    assert "- `prepare`: `30 2 * * 1-5`" in readme


def test_compose_runs_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks for the last one gets those before it."""
    chat = CHAT.replace("second: 25", "second: 2") + "  after: [train]\n  overrides: {gpu: l40s}\n"
    made = stack(tmp_path, text(CHAIN, chat, gpu="l40s"))
    shown = " ".join(capsys.readouterr().err.split())
    assert "'prepare': schedule has no effect on target 'docker'" in shown
    assert "chat: it does not wait for train" in shown
    product = "NVIDIA L40S"
    assert Box(tmp_path / "machine", 8, product, cores=32).assign(made).returncode == 0
    assert product != PRODUCT
    services = read(made, "evaluate")["services"]
    needs = {n: sorted(s.get("depends_on", {})) for n, s in services.items() if "deploy" in s}
    assert needs["evaluate-0"] == ["prepare-0", "train-0"]
    assert needs["train-0"] == ["prepare-0"]
    assert needs["chat-0"] == []
    done = services["train-0"]["depends_on"]["prepare-0"]["condition"]
    assert done == "service_completed_successfully"
    assert {"prepare-0"} == set(read(made, "prepare")["services"]) - {"chat-0"}


def test_a_cluster_of_kubernetes_says_that_it_orders_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.yaml").write_text(KUBERNETES + CHAIN, encoding="utf-8")
    assert main(["compile", str(tmp_path / "m.yaml"), "-o", str(tmp_path / "stacks")]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    assert "'train': after has no effect on target 'kubernetes'" in shown
    assert "'prepare': schedule has no effect on target 'kubernetes'" in shown
