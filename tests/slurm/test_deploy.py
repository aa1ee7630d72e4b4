"""`deploy.sh` on a controller: it shows, changes, has Slurm read it, and takes it back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.slurms import CHAT, H100, stack
from tests.tools import slurm
from tests.tools.slurm import Cluster

pytestmark = pytest.mark.slurm

SYSTEMCTL = """\
#!/bin/bash
echo "$*" >>/systemctl
if [[ $* == "restart slurmctld" ]]; then
  if scontrol ping 2>/dev/null | grep -q UP; then scontrol shutdown slurmctld; fi
  while scontrol ping 2>/dev/null | grep -q UP; do sleep 0.1; done
  slurmctld
fi
"""
SWITCHES = """\
switches:
- {name: leaf, hosts: [gpu-1, gpu-2, gpu-3]}
"""
THREE = H100.replace("gpu-2]", "gpu-2, gpu-3]")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    slurm.present()
    with slurm.machine(tmp_path / "machine", "ctl-1") as cluster:
        cluster.write("/usr/local/bin/systemctl", SYSTEMCTL, 0o755)
        yield cluster


def placed(cluster: Cluster, folder: Path, made: Path) -> None:
    """The stack at its place, with nodes on paper."""
    copy = Path(shutil.copytree(made, folder))
    for name, text in slurm.overlaid(made).items():
        (copy / "etc" / name).write_text(text, encoding="utf-8")
    cluster.run("rm", "-rf", "/lustre/stack")
    cluster.copy(copy, "/lustre/stack")


def deploy(cluster: Cluster, *words: str) -> str:
    return cluster.run("./deploy.sh", *words, cwd="/lustre/stack").stdout


def up(cluster: Cluster) -> None:
    cluster.until(lambda: "UP" in cluster.run("scontrol", "ping", check=False).stdout)


def calls(cluster: Cluster) -> list[str]:
    """What systemctl was told since it was asked last."""
    text = cluster.shell("cat /systemctl 2>/dev/null; rm -f /systemctl")
    return text.splitlines()


def test_a_change_is_shown_made_and_taken_back(cluster: Cluster, tmp_path: Path) -> None:
    placed(cluster, tmp_path / "one", stack(tmp_path / "a", CHAT))
    shown = deploy(cluster)
    assert "+SlurmctldHost=ctl-1" in shown
    assert cluster.run("ls", "/etc/slurm/slurm.conf", check=False).returncode != 0, "only shown"
    deploy(cluster, "--yes")
    up(cluster)
    assert calls(cluster) == ["restart slurmdbd", "restart slurmctld"]
    mode = cluster.shell("stat -c '%a %U' /etc/slurm/slurmdbd.conf /etc/slurm/gpuplan/health.sh")
    assert mode.split() == ["600", "slurm", "755", "root"]
    assert deploy(cluster, "--yes") == "nothing to change\n"
    assert calls(cluster) == []

    placed(cluster, tmp_path / "two", stack(tmp_path / "b", CHAT, hosts=THREE))
    before = cluster.shell("pgrep -x slurmctld")
    shown = deploy(cluster, "--yes")
    assert "+NodeName=gpu-[2-3]" in shown
    assert calls(cluster) == [], "it is enough that Slurm reads it again"
    cluster.until(lambda: "gpu-3" in cluster.run("sinfo", "-h", "-N", check=False).stdout)

    placed(cluster, tmp_path / "three", stack(tmp_path / "c", CHAT, hosts=THREE, more=SWITCHES))
    assert "+TopologyPlugin=topology/tree" in deploy(cluster, "--yes")
    assert calls(cluster) == ["restart slurmctld"]
    up(cluster)
    assert "SwitchName=leaf" in cluster.run("scontrol", "show", "topology").stdout
    assert cluster.shell("pgrep -x slurmctld") != before

    deploy(cluster, "--undo")
    assert calls(cluster) == ["restart slurmctld"]
    up(cluster)
    assert "SwitchName" not in cluster.run("scontrol", "show", "topology").stdout
    assert "gpu-3" in cluster.run("sinfo", "-h", "-N").stdout
    assert cluster.run("./deploy.sh", "--undo", cwd="/lustre/stack", check=False).returncode == 1


def test_a_node_gets_no_password_file_and_restarts_its_own_daemon(
    cluster: Cluster, tmp_path: Path
) -> None:
    placed(cluster, tmp_path / "one", stack(tmp_path / "a", CHAT))
    cluster.run("hostname", "gpu-1")
    deploy(cluster, "--yes")
    assert calls(cluster) == ["restart slurmd"]
    placed(cluster, tmp_path / "two", stack(tmp_path / "b", CHAT, hosts=THREE))
    deploy(cluster, "--yes")
    assert calls(cluster) == ["reload slurmd"]
    assert "slurmdbd.conf" not in cluster.shell("ls /etc/slurm")


def test_an_unknown_word_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    placed(cluster, tmp_path / "one", stack(tmp_path / "a", CHAT))
    done = cluster.run("./deploy.sh", "--now", cwd="/lustre/stack", check=False)
    assert done.returncode == 2
    assert "--undo" in done.stderr
