"""A stack's hosts under the real Pulumi, over SSH: set up, changed, and as they were before."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.require import require
from tests.tools import sshhost
from tests.tools.program import ROOT
from tests.tools.sshhost import SshHost
from tests.tools.updates import Failed, Workspace

pytestmark = [pytest.mark.pulumi, pytest.mark.sdk]

STACK = ROOT / "stacks/notebooks"
HOST = "hv-03"
FOLDER = f"hypervisor/host/{HOST}"
GRUB = "/etc/default/grub.d/60-gpuplan.cfg"
WANTED = "/etc/systemd/system/sysinit.target.wants/gpuplan-hugepages.service"
HOOK = "/etc/libvirt/hooks/qemu.d/gpuplan"


@pytest.fixture
def host() -> Iterator[SshHost]:
    if missing := sshhost.absent():
        require("pulumi", missing)
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name:
        running = sshhost.start(Path(name), "127.0.0.7")
        try:
            yield running
        finally:
            running.stop()


@pytest.fixture
def work(host: SshHost, tmp_path: Path) -> Workspace:
    """The stack, configured as its README says but for the host's key."""
    made = Workspace(tmp_path / "program", tmp_path / "home")
    made.create(STACK, {f'hosts["{HOST}"]': host.address})
    sshhost.without_devices(made.program / FOLDER / "setup.sh")
    made.pulumi("config", "set", "--secret", "sshPrivateKey", "--", host.private_key)
    return made


def known(work: Workspace, key: str) -> None:
    work.pulumi("config", "set", "--path", f'hostKeys["{HOST}"]', key)


def test_a_host_is_set_up_changed_and_left_as_it_was(work: Workspace, host: SshHost) -> None:
    before = host.files()
    known(work, host.public_key)
    work.up()
    written = {p.relative_to(STACK / FOLDER) for p in (STACK / FOLDER).rglob("*") if p.is_file()}
    assert {f"/{p}" for p in written if len(p.parts) > 1} <= host.files()
    for program in (HOOK, "/usr/local/sbin/gpuplan-vgpus"):
        assert host.path(program).stat().st_mode & 0o111 == 0o111
    assert host.path(WANTED).is_symlink()
    assert "hugepages=" in host.path("/boot/cmdline").read_text()
    guests = sorted(p.stem for p in (STACK / "hypervisor/libvirt").glob("*-?.xml"))
    assert sorted(p.name for p in host.path("/guests").iterdir()) == guests
    assert work.preview("--expect-no-changes") == {}

    change(work)
    assert work.preview() == {
        "update": [
            f"command:remote:Command::host-{HOST}-units",
            f"command:remote:CopyToRemote::host-{HOST}-files",
        ]
    }
    work.up()
    assert "quiet" in host.path(GRUB).read_text()
    assert "quiet" in host.path("/boot/cmdline").read_text()
    assert host.path(WANTED).is_symlink(), "a change undoes nothing"

    work.destroy()
    assert host.files() - before == {"/boot/cmdline"}
    assert "hugepages=" not in host.path("/boot/cmdline").read_text()
    assert list(host.path("/guests").iterdir()) == []


def change(work: Workspace) -> None:
    """Another kernel line, as a new version of the stack would bring it."""
    grub, setup = work.program / FOLDER / GRUB[1:], work.program / FOLDER / "setup.sh"
    before = grub.read_text("utf-8")
    after = before + 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX quiet"\n'
    grub.write_text(after, "utf-8")
    old, new = (hashlib.sha256(text.encode()).hexdigest() for text in (before, after))
    script = setup.read_text("utf-8")
    assert old in script
    setup.write_text(script.replace(old, new), "utf-8")


def test_a_guest_and_files_that_are_gone_are_no_obstacle(work: Workspace, host: SshHost) -> None:
    known(work, host.public_key)
    work.up()
    host.path("/guests/notebook-0").unlink()
    host.path("/etc/systemd/system/gpuplan-hugepages.service").unlink()
    work.destroy()
    assert work.resources() == []


def test_a_host_that_nobody_vouched_for_is_not_set_up(work: Workspace, host: SshHost) -> None:
    before = host.files()
    assert work.preview()["create"], "a preview only warns"
    with pytest.raises(Failed, match=f"hostKeys has no public key of {HOST}"):
        work.up()
    other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBd5oQqNBGTwmU8cLC6fqgKkb0Vho0GfFYgGYBLBFDXG"
    known(work, other)
    with pytest.raises(Failed, match="host key"):
        work.up()
    assert host.files() == before
    work.pulumi("config", "rm", "hostKeys")
    work.pulumi("config", "set", "trustUnseenHosts", "true")
    work.up()
    assert host.files() > before
