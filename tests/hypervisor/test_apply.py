"""A stack applied by ssh and virsh alone, to a host that is reached by a real sshd."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.require import require
from tests.tools import sshhost
from tests.tools.program import ROOT
from tests.tools.sshhost import SshHost

pytestmark = pytest.mark.hypervisor

HOST = "hv-03"
GUEST = "notebook-0"
FOLDER = f"hypervisor/host/{HOST}"
CONFIG = """\
Host *
    HostName {address}
    IdentityFile {folder}/user
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known
    LogLevel ERROR
"""


@pytest.fixture
def host() -> Iterator[SshHost]:
    if missing := sshhost.absent():
        require("hypervisor", missing)
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name:
        running = sshhost.start(Path(name), "127.0.0.8")
        try:
            yield running
        finally:
            running.stop()


@dataclass
class Stack:
    folder: Path
    path: str
    user: str = "root"

    def apply(self, verb: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": self.path, "GPUPLAN_USER": self.user}
        command = ["sh", self.folder / "apply.sh", verb]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def stack(host: SshHost, tmp_path: Path) -> Stack:
    """The stack as it stands in the repository, but for the comparison with devices, which this
    machine has not."""
    folder = tmp_path / "stack"
    shutil.copytree(ROOT / "stacks/notebooks", folder)
    sshhost.without_devices(folder / FOLDER / "setup.sh")
    (host.folder / "config").write_text(CONFIG.format(address=host.address, folder=host.folder))
    (host.folder / "known").write_text(f"* {host.public_key}\n")
    program = tmp_path / "bin/ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {host.folder}/config "$@"\n')
    program.chmod(0o755)
    return Stack(folder, f"{program.parent}:{os.environ['PATH']}")


def names(host: SshHost, folder: str) -> set[str]:
    return {p.name for p in host.path(folder).iterdir()}


@pytest.mark.parametrize("user", ["root", "admin"])
def test_a_stack_is_applied_compared_and_undone(user: str, stack: Stack, host: SshHost) -> None:
    before = host.files()
    stack.user = user
    done = stack.apply("diff")
    assert (done.returncode, done.stderr) == (1, "")
    assert f"+ guest {GUEST}\n" in done.stdout
    assert "+ /etc/sysctl.d/60-gpuplan.conf" in done.stdout
    assert host.files() == before, "a comparison changes nothing"

    done = stack.apply("apply")
    assert done.returncode == 0, done.stderr
    source = stack.folder / FOLDER
    written = {p.relative_to(source) for p in source.rglob("*") if p.is_file()}
    assert {f"/{p}" for p in written if len(p.parts) > 1} <= host.files()
    assert host.path("/usr/local/sbin/gpuplan-vgpus").stat().st_mode & 0o777 == 0o755
    assert "hugepages=" in host.path("/boot/cmdline").read_text()
    assert (host.path("/guests") / GUEST).stat().st_mode & 0o111, "it starts with its host"
    assert not host.path("/running").exists(), "no guest was started"
    done = stack.apply("diff")
    assert (done.returncode, done.stdout) == (0, f"host {HOST}\n"), done.stderr
    assert stack.apply("apply").returncode == 0

    assert stack.apply("start").returncode == 0
    assert names(host, "/running") == names(host, "/guests")
    done = stack.apply("remove")
    assert done.returncode != 0
    assert "notebook-0 is running: virsh shutdown notebook-0" in done.stderr
    shutil.rmtree(host.path("/running"))
    done = stack.apply("remove")
    assert done.returncode == 0, done.stderr
    assert host.files() - before <= {"/boot/cmdline"}
    assert names(host, "/guests") == set()
    assert not (stack.folder / "applied.txt").exists()


def test_a_change_is_shown_and_a_guest_that_left_is_undefined_first(
    stack: Stack, host: SshHost
) -> None:
    assert stack.apply("apply").returncode == 0
    xml = stack.folder / f"hypervisor/libvirt/{GUEST}.xml"
    xml.write_text(xml.read_text("utf-8").replace("<title>", "<title>new "), "utf-8")
    other = host.path("/guests/helper-0")
    other.write_text(other.read_text("utf-8") + "<!-- edited -->", "utf-8")
    done = stack.apply("diff")
    assert done.returncode == 1
    assert f"+++ {GUEST} of the stack" in done.stdout
    assert "+  <title>new " in done.stdout
    assert "~ guest helper-0: changed or undefined here" in done.stdout

    script = stack.folder / FOLDER / "guests.sh"
    line = f'    "$1" {GUEST}\n'
    assert line in script.read_text("utf-8")
    script.write_text(script.read_text("utf-8").replace(line, ""), "utf-8")
    assert f"- guest {GUEST}\n" in stack.apply("diff").stdout
    host.path("/running").mkdir()
    host.path(f"/running/{GUEST}").touch()
    done = stack.apply("apply")
    assert done.returncode != 0
    assert f"{GUEST} is running" in done.stderr
    assert f"guests stay on {HOST}, and nothing else was done" in done.stderr
    assert host.path(f"/guests/{GUEST}").exists()
    host.path(f"/running/{GUEST}").unlink()
    assert stack.apply("apply").returncode == 0
    assert not host.path(f"/guests/{GUEST}").exists()
    assert host.path("/guests/helper-0").exists()


def test_a_host_that_left_the_stack_is_undone(stack: Stack, host: SshHost) -> None:
    """Nothing but its line in applied.txt says that it was set up."""
    before = host.files()
    assert stack.apply("apply").returncode == 0
    script = stack.folder / "apply.sh"
    text = script.read_text("utf-8")
    script.write_text(text.replace(f'    "$1" {HOST}\n', ""), "utf-8")
    done = stack.apply("diff")
    assert (done.returncode, done.stdout) == (1, f"- host {HOST}\n")
    host.path("/running").mkdir()
    host.path(f"/running/{GUEST}").touch()
    assert stack.apply("apply").returncode != 0
    assert names(host, "/guests"), "a guest that runs keeps its definition, and so its host"
    host.path(f"/running/{GUEST}").unlink()
    done = stack.apply("apply")
    assert done.returncode == 0, done.stderr
    assert names(host, "/guests") == set()
    assert host.files() - before <= {"/boot/cmdline"}


def test_what_did_not_end_is_shown_and_made_again(stack: Stack, host: SshHost) -> None:
    """The files are in place, but the boot loader does not know of them."""
    grub = host.path("/usr/local/sbin/update-grub")
    whole = grub.read_text("utf-8")
    grub.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    assert stack.apply("apply").returncode != 0
    grub.write_text(whole, "utf-8")
    done = stack.apply("diff")
    assert "~ the last apply did not end" in done.stdout
    assert stack.apply("apply").returncode == 0
    assert "hugepages=" in host.path("/boot/cmdline").read_text()
    assert "did not end" not in stack.apply("diff").stdout


def test_a_host_with_old_programs_is_left_as_it_is(stack: Stack, host: SshHost) -> None:
    before = host.files()
    program = host.path("/usr/local/sbin/dpkg-query")
    program.write_text("#!/bin/sh\nprintf 2020.11\n")
    done = stack.apply("apply")
    assert done.returncode != 0
    assert "OVMF is 2020.11" in done.stderr
    assert host.files() == before
