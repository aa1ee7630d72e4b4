"""The Ansible role on a controller: linted, then really run, twice, and taken back."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.test_deploy import SYSTEMCTL, THREE, placed, up
from tests.support.slurms import CHAT, stack
from tests.tools import slurm
from tests.tools.ansible import program, remarks
from tests.tools.slurm import Cluster

pytestmark = pytest.mark.slurm

# In the machine's namespaces, with this machine's programs: its own Slurm behind two names.
BEGIN = """\
set -eu
work=$1 root=$2
shift 2
mount --make-rprivate /
mount -t proc proc /proc
mkdir -p "$work/upper" "$work/work" "$work/bin" "$work/home"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$work/upper,workdir=$work/work" /etc
mkdir -p /etc/slurm
mount --bind "$root/etc/slurm" /etc/slurm
for name in passwd group; do mount --bind "$root/etc/$name" "/etc/$name"; done
for name in scontrol systemctl; do
  printf '#!/bin/bash\\nexec chroot %q env PATH=/usr/local/bin:/usr/sbin:/usr/bin %s "$@"\\n' \\
    "$root" "$name" >"$work/bin/$name"
  chmod 755 "$work/bin/$name"
done
export PATH=$work/bin:$PATH HOME=$work/home ANSIBLE_LOCAL_TEMP=$work/home/tmp
export ANSIBLE_REMOTE_TEMP=$work/home/tmp
exec "$@"
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    program("ansible-playbook")
    slurm.present()
    with slurm.machine(tmp_path / "machine", "ctl-1") as cluster:
        cluster.write("/usr/local/bin/systemctl", SYSTEMCTL, 0o755)
        yield cluster


def play(cluster: Cluster, *words: str) -> str:
    """What Ansible says on the controller; it has to succeed."""
    root, work = cluster.folder / "root", cluster.folder / "play"
    inside = ["nsenter", "--target", cluster.first, "--mount", "--uts", "--net", "--ipc", "--pid"]
    folder = root / "lustre/stack/ansible"
    command = [
        *(program("ansible-playbook"), "--inventory", str(folder / "inventory.yml")),
        *(str(folder / "site.yml"), "--limit", "ctl-1", "--connection", "local"),
        *("-e", "ansible_become=false", "-e", f"ansible_python_interpreter={sys.executable}"),
        *("-e", f"slurm_folder={work}/copy", *words),
    ]
    done = subprocess.run(
        [*inside, "unshare", "--mount", "bash", "-c", BEGIN, "begin", str(work), str(root),
         *command],
        capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"LC_ALL": "C.UTF-8", "ANSIBLE_NOCOLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def changed(said: str) -> int:
    found = re.search(r"ctl-1 .*changed=(\d+)", said)
    assert found, said
    return int(found[1])


def test_ansible_lint_has_no_remark(tmp_path: Path) -> None:
    assert not remarks(stack(tmp_path, CHAT))


def test_a_play_shows_changes_once_and_takes_back(cluster: Cluster, tmp_path: Path) -> None:
    placed(cluster, tmp_path / "one", stack(tmp_path / "a", CHAT))
    shown = play(cluster, "--check")
    assert "+SlurmctldHost=ctl-1" in shown
    assert not cluster.shell("ls /etc/slurm/slurm.conf 2>/dev/null || true"), "only shown"
    assert changed(play(cluster)) > 0
    up(cluster)
    assert changed(play(cluster)) == 0, "the second time nothing changes"
    placed(cluster, tmp_path / "two", stack(tmp_path / "b", CHAT, hosts=THREE))
    shown = play(cluster)
    assert "+NodeName=gpu-[2-3]" in shown
    cluster.until(lambda: "gpu-3" in cluster.run("sinfo", "-h", "-N", check=False).stdout)
    assert changed(play(cluster, "-e", "slurm_state=absent")) == 1
    cluster.until(lambda: "gpu-3" not in cluster.run("sinfo", "-h", "-N", check=False).stdout)
    assert changed(play(cluster, "-e", "slurm_state=absent")) == 0, "there is nothing more"
