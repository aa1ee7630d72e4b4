"""Podman's units, made into services by Podman's own generator and started by a real systemd."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.boxes import BATCH, CHAT, NOTEBOOKS, PRODUCT, TUNE, stack, text
from tests.support.require import require
from tests.support.samples import HOSTILE
from tests.tools import podman, quadlet
from tests.tools.gpubox import Box

pytestmark = pytest.mark.docker

WHOLE = 'a $HOME "quoted" # text'
ASKED = "  target: docker\n  quadlet: true\n"
AFTER = "  after: [tune]\n"
# Of the engine itself: what CDI gives is not what `podman exec` gives.
SHOW = """\
import json, os
words = open("/proc/1/environ").read().split(chr(0))
given = dict(word.split("=", 1) for word in words if word)
print(json.dumps([given, open(os.environ["HF_TOKEN_PATH"]).read()]))
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """The stack, with a machine's devices and processors in its .env."""
    if missing := quadlet.absent():
        require("docker", missing)
    note = json.dumps(HOSTILE.replace("\n", " "), ensure_ascii=False)
    chat = CHAT.replace(f"'{WHOLE}'", note)
    assert note in chat
    batch = BATCH.replace("2500000", "900000") + AFTER
    manifest = text(chat, NOTEBOOKS, TUNE, batch).replace("  target: docker\n", ASKED)
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name:
        made = stack(Path(name), manifest)
        machine = Box(Path(name) / "machine", 8, PRODUCT, cores=32)
        assert machine.assign(made).returncode == 0
        yield made


@pytest.fixture(scope="module")
def machine(folder: Path) -> Iterator[quadlet.Machine]:
    with quadlet.machine(folder, "box") as found:
        for line in (folder / "README.md").read_text("utf-8").splitlines():
            if "podman secret create" in line:  # as the README says, without sudo
                command = line.replace("sudo ", "").replace("VALUE", "'is secret'")
                found.run("sh", "-c", command)
        yield found


def test_podmans_generator_makes_a_service_of_each_unit(folder: Path) -> None:
    made = quadlet.generated(folder / "quadlet")
    services = {line.strip("-") for line in made.splitlines() if line.startswith("---")}
    kinds = {"container": "", "network": "-network", "volume": "-volume"}
    units = [p for p in (folder / "quadlet").iterdir() if p.suffix[1:] in kinds]
    assert services == {f"{p.stem}{kinds[p.suffix[1:]]}.service" for p in units}
    [start] = [w for w in made.splitlines() if "--name box-chat-0 " in w]
    for option in (
        "--device nvidia.com/gpu=${CHAT_0_GPU_0}",
        "--cpuset-cpus=${CHAT_0_CPUS}",
        "--cpuset-mems=${CHAT_0_MEMS}",
        "--memory=83886080k",
        "--shm-size 16777216k",
        "--ulimit memlock=-1:-1",
        "--cap-drop all",
        "--security-opt=no-new-privileges",
        "--health-on-failure kill",
        "--sdnotify=healthy",
        "--log-driver journald",
        "--stop-timeout 60",
    ):
        assert f" {option} " in start, option


def test_the_generator_refuses_what_is_no_unit(folder: Path, tmp_path: Path) -> None:
    units = tmp_path / "units"
    shutil.copytree(folder / "quadlet", units)
    unit = units / "box-chat-0.container"
    unit.write_text(unit.read_text("utf-8").replace("ShmSize=", "ShmSizes="), encoding="utf-8")
    with pytest.raises(AssertionError, match="ShmSizes"):
        quadlet.generated(units)


def test_memory_is_that_of_the_gpus_node(folder: Path) -> None:
    lines = (folder / ".env").read_text("utf-8").splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    assert found["CHAT_0_MEMS"], "a list of nodes"


def test_what_stays_starts_with_the_machine_and_is_healthy_then(machine: quadlet.Machine) -> None:
    for name in ("chat-0", "chat-1", "chat-balancer", "lab-0", "lab-1", "lab-2"):
        podman.wait_for(lambda n=name: machine.active(f"box-{n}.service"))
    status = "{{.State.Health.Status}}"
    assert machine.run("podman", "inspect", "--format", status, "box-chat-0") == "healthy"
    podman.wait_for(lambda: answers(machine) == {"2 replicas"})
    assert not machine.active("box-tune-0.service"), "what ends waits until it is asked for"


def test_a_container_has_its_device_its_texts_and_its_secrets(machine: quadlet.Machine) -> None:
    podman.wait_for(lambda: machine.active("box-chat-0.service"))
    shown = machine.run("podman", "exec", "box-chat-0", "python3", "-c", SHOW)
    variables, token = json.loads(shown)
    assert variables["NOTE"] == HOSTILE.replace("\n", " ")
    assert (token, variables["OTHER_KEY"]) == ("is secret", "is secret")
    assert variables["GIVEN"] == "GPU-0", "the device of the plan's first GPU, by CDI"
    units = machine.run("sh", "-c", "cat /etc/containers/systemd/box/*.container")
    assert "is secret" not in units


def test_one_that_fails_its_health_is_started_again(machine: quadlet.Machine) -> None:
    podman.wait_for(lambda: machine.active("box-chat-1.service"))
    before = identity(machine)
    machine.run("podman", "exec", "box-chat-1", "python3", "-c", "open('/scratch/sick', 'w')")
    podman.wait_for(lambda: identity(machine) not in (before, ""))
    podman.wait_for(lambda: machine.active("box-chat-1.service"))
    podman.wait_for(lambda: answers(machine) == {"2 replicas"})


def test_what_comes_after_a_run_that_fails_is_not_started(machine: quadlet.Machine) -> None:
    """The stand-in of a run answers for ever: it is killed."""
    start = ("systemctl", "start", "--no-block", "box-night-0.service")
    machine.run(*start)
    running = "{{.State.Running}}"
    inspect = ("podman", "inspect", "--format", running, "box-tune-0")
    podman.wait_for(lambda: machine.ask(*inspect).stdout.strip() == "true")
    assert machine.ask("podman", "inspect", "box-night-0").returncode != 0, "it waits"
    machine.run("podman", "kill", "--signal", "KILL", "box-tune-0")
    state = ("systemctl", "show", "--property=Job", "--value", "box-night-0.service")
    podman.wait_for(lambda: machine.run(*state) in ("", "0"))
    assert machine.ask("podman", "inspect", "box-night-0").returncode != 0
    assert machine.run("systemctl", "is-failed", "box-tune-0.service") == "failed"


def test_systemd_reads_the_services_without_a_remark(machine: quadlet.Machine) -> None:
    done = machine.ask(
        "systemd-analyze",
        "verify",
        "--generators=true",
        "--man=no",
        "box-chat-0.service",
        "gpuplan-box-assign.service",
    )
    remarks = [w for w in done.stderr.splitlines() if "box" in w and "stand-in" not in w]
    assert (done.returncode, remarks) == (0, []), done.stderr


def identity(machine: quadlet.Machine) -> str:
    return machine.ask("podman", "inspect", "--format", "{{.Id}}", "box-chat-1").stdout.strip()


GET = """\
import urllib.request
url = "http://127.0.0.1:8000/health"
found = {urllib.request.urlopen(url, timeout=5).read() for _ in range(20)}
print(len(found), "replicas")
"""


def answers(machine: quadlet.Machine) -> set[str]:
    """How many containers answer at the balancer's port; nothing where a request has no answer."""
    inside = ["nsenter", f"--target={machine.process}", "--net", "python3", "-c", GET]
    done = subprocess.run(inside, capture_output=True, text=True, check=False)
    return {done.stdout.strip()} if done.returncode == 0 else set()
