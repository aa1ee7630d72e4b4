"""The Ansible role of hypervisors: linted, then run over a real SSH server, twice, and undone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hypervisor.test_apply import CONFIG, FOLDER, GUEST, HOST, host, names
from tests.tools import sshhost
from tests.tools.ansible import program, remarks
from tests.tools.program import ROOT
from tests.tools.sshhost import SshHost

__all__ = ["host"]

pytestmark = pytest.mark.hypervisor


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guests of the example, as a stack with a role. Its hosts have no such devices here."""
    folder = tmp_path_factory.mktemp("role")
    shutil.copytree(ROOT / "examples/inventories", folder / "inventories")
    text = (ROOT / "examples/notebooks.yaml").read_text("utf-8")
    text = text.replace("  target: libvirt\n", "  target: libvirt\n  ansible: true\n")
    (folder / "notebooks.yaml").write_text(text, "utf-8")
    words = ["compile", folder / "notebooks.yaml", "-o", folder]
    subprocess.run([sys.executable, "-m", "gpuplan", *words], check=True, capture_output=True)
    return folder / "notebooks"


def play(stack: Path, host: SshHost, *words: str, user: str = "root") -> tuple[int, int, str]:
    """The exit status of a play, the number of its changes on the host, and what it says."""
    (host.folder / "config").write_text(CONFIG.format(address=host.address, folder=host.folder))
    (host.folder / "known").write_text(f"* {host.public_key}\n")
    command = [
        *(program("ansible-playbook"), "-i", "ansible/inventory.yml", "ansible/site.yml"),
        *("-e", "ansible_python_interpreter=/usr/bin/python3", "--user", user, *words),
        *("--ssh-common-args", f"-F {host.folder}/config"),
    ]
    home = {"HOME": str(host.folder), "ANSIBLE_HOME": str(host.folder / "ansible")}
    done = subprocess.run(
        command, cwd=stack, capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | home | {"LC_ALL": "C.UTF-8", "ANSIBLE_NOCOLOR": "1"},
    )  # fmt: skip
    said = done.stdout + done.stderr
    found = re.search(rf"{HOST} +: .*changed=(\d+)", said)
    assert found, said
    return done.returncode, int(found[1]), said


@pytest.fixture
def stack(compiled: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "stack"
    shutil.copytree(compiled, folder)
    sshhost.without_devices(folder / FOLDER / "setup.sh")
    return folder


def test_ansible_lint_has_no_remark(compiled: Path) -> None:
    assert not remarks(compiled)


@pytest.mark.parametrize("user", ["root", "admin"])
def test_a_play_shows_changes_once_and_undoes_them(stack: Path, host: SshHost, user: str) -> None:
    before = host.files()
    code, shown, said = play(stack, host, "--check", user=user)
    assert code == 0, said
    assert shown > 0, "it says that something would change"
    assert "+ /etc/sysctl.d/60-gpuplan.conf" in said
    assert f"+ guest {GUEST}" in said
    assert host.files() == before, "and changes nothing"
    assert names(host, "/guests") == set()
    code, _, said = play(stack, host, user=user)
    assert code == 0, said
    assert "hugepages=" in host.path("/boot/cmdline").read_text()
    assert (host.path("/guests") / GUEST).stat().st_mode & 0o111, "it starts with its host"
    assert not host.path("/running").exists(), "no guest was started"
    assert play(stack, host, user=user)[:2] == (0, 0), "the second time nothing changes"
    assert play(stack, host, "--check", user=user)[:2] == (0, 0)
    code, _, said = play(stack, host, "-e", "hypervisor_state=absent", user=user)
    assert code == 0, said
    assert host.files() - before <= {"/boot/cmdline"}
    assert names(host, "/guests") == set()
    assert not (stack / "applied.txt").read_text("utf-8")
    assert play(stack, host, "-e", "hypervisor_state=absent", user=user)[:2] == (0, 0)


def test_a_host_that_left_is_undone_and_one_that_lacks_something_is_left_alone(
    stack: Path, host: SshHost
) -> None:
    before = host.files()
    package = host.path("/usr/local/sbin/dpkg-query")
    there = package.read_text("utf-8")
    package.write_text("#!/bin/sh\nprintf 2020.11\n", "utf-8")
    code, _, said = play(stack, host)
    assert code != 0
    assert "OVMF is 2020.11" in said
    assert host.files() == before
    package.write_text(there, "utf-8")
    assert play(stack, host)[0] == 0
    inventory = stack / "ansible/inventory.yml"
    inventory.write_text("---\nhypervisors:\n  hosts: {}\n", "utf-8")
    host.path("/running").mkdir()
    host.path(f"/running/{GUEST}").touch()
    code, _, said = play(stack, host)
    assert code != 0
    assert f"{GUEST} is running: virsh shutdown {GUEST}" in said
    assert host.path("/usr/local/sbin/gpuplan-vgpus").exists()
    host.path(f"/running/{GUEST}").unlink()
    code, _, said = play(stack, host)
    assert code == 0, said
    assert host.files() - before <= {"/boot/cmdline"}
