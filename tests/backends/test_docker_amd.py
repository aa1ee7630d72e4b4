"""One machine with Docker and AMD's GPUs: device files in place of a runtime."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backends.test_docker import read
from tests.support.boxes import CHAT, stack, text
from tests.support.require import require
from tests.tools.gpubox import AmdBox, variables

MI300X, DEVICE = "mi300x-192gb", "74a1"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replicas of a service on two GPUs each."""
    chat = CHAT + "  overrides: {tensor_parallel_size: 2, replicas: 3}\n"
    return stack(tmp_path_factory.mktemp("box"), text(chat, gpu=MI300X))


@pytest.fixture
def machine(tmp_path: Path) -> AmdBox:
    return AmdBox(tmp_path / "machine", 8, DEVICE, cores=32)


@pytest.fixture
def folder(box: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(box, tmp_path / "stack"))


def test_every_container_has_the_files_of_its_gpus(folder: Path, machine: AmdBox) -> None:
    done = machine.assign(folder)
    assert done.returncode == 0, done.stderr
    given = variables(folder)
    services = read(folder)["services"]
    assert sorted(services) == ["chat-0", "chat-1", "chat-2", "chat-balancer"]
    every = []
    for name, first in (("chat-0", 0), ("chat-1", 2), ("chat-2", 4)):
        service = services[name]
        paths = [device["source"] for device in service["devices"]]
        expected = [f"/dev/dri/renderD{machine.minor(first + n)}" for n in (0, 1)]
        assert paths == ["/dev/kfd", *expected], "GPUs count by their addresses"
        assert "deploy" not in service, "no runtime gives them"
        assert service["image"] == "vllm/vllm-openai-rocm:v0.27.1"
        assert service["cap_drop"] == ["ALL"]
        assert service["cap_add"] == ["SYS_PTRACE"]
        assert service["security_opt"] == ["no-new-privileges:true", "seccomp=unconfined"]
        cpus = given[f"{name.upper().replace('-', '_')}_CPUS"]
        assert service["cpuset"] == cpus
        assert {int(c) % 64 // 32 for c in cpus.split(",")} == {first // 4}, "beside its GPUs"
        every += expected
    assert len(set(every)) == len(every)
    assert "cap_add" not in services["chat-balancer"], "what spreads requests has no GPU"


def test_a_second_run_gives_the_same_files(folder: Path, machine: AmdBox) -> None:
    assert machine.assign(folder).returncode == 0
    given = variables(folder)
    done = machine.assign(folder, "--check")
    assert done.returncode == 0
    assert all(f"{name}={value}" in done.stdout for name, value in given.items())
    assert machine.assign(folder).returncode == 0
    assert variables(folder) == given


def _busy(machine: AmdBox) -> None:
    machine.works(1, 4711)


def _fewer(machine: AmdBox) -> None:
    for number in range(4):
        shutil.rmtree(machine.root / f"sys/class/drm/renderD{machine.minor(number)}")


def _other(machine: AmdBox) -> None:
    (machine.root / "sys/bus/pci/devices/0000:10:00.0/device").write_text("0x74a5\n", "utf-8")


def _bare(machine: AmdBox) -> None:
    shutil.rmtree(machine.root / "sys/class/kfd")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_busy, "process 4711 is using GPU 1: end it first"),
        (_fewer, "the plan counts on 8 GPUs, and the machine has 4"),
        (_other, "GPU 0 is a 74a5, and the plan counts on 74a1"),
        (_bare, "there is no /dev/kfd: install AMD's driver"),
    ],
)
def test_what_is_not_free_is_refused(
    folder: Path, machine: AmdBox, change: Callable[[AmdBox], None], said: str
) -> None:
    change(machine)
    done = machine.assign(folder)
    assert done.returncode == 1
    assert said in done.stderr
    assert not (folder / ".env").exists()


def test_processes_that_do_not_stand_in_its_way(folder: Path, machine: AmdBox) -> None:
    machine.works(0, 4711)
    machine.runs("f00", [1, 4711])
    machine.works(2, 99, size=0)
    done = machine.assign(folder)
    assert done.returncode == 0, done.stderr


def test_nothing_of_the_stack_is_for_another_vendor(box: Path) -> None:
    for path in (p for p in box.rglob("*") if p.is_file() and p.name != "evidence.yaml"):
        assert "nvidia" not in path.read_text("utf-8").casefold(), path.name
    assert "8 × mi300x-192gb with AMD's driver" in (box / "README.md").read_text("utf-8")
    assert not (box / "monitoring").exists(), "what it would ask of GPUs is not known of AMD's"


def test_a_shell_reads_the_script_without_a_remark(box: Path) -> None:
    if shutil.which("shellcheck") is None:
        require("docker", "shellcheck is not installed (see tests/tools/docker-setup)")
    command = ["shellcheck", box / "assign.sh"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
