"""A compile that is killed leaves the old stack or the new one, and the next one cleans up.

The program is killed before each of its operations on files in turn (Python announces them to an
audit hook), and, for what no hook sees, at moments of a clock.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from tests.tools.program import EXAMPLES, ROOT, Files, command, difference, files

KILLS = 24
CLOCK_KILLS = 6
# Runs the program in a fork for every line `N` it reads: killed before the N-th operation after the
# first on the output folder, or not at all for 0. Answers with the wait status and, of a whole run,
# the operations' names.
SERVER = """
import os, signal, sys
import gpuplan.cli.compile, gpuplan.pipeline
from gpuplan.cli.main import main

def run(limit, folder, arguments, report):
    seen = []
    def watch(event, values):
        if event == "open" or event.startswith(("os.", "shutil.", "ctypes.", "fcntl.")):
            if seen or folder in str(values):
                seen.append(event)
                if len(seen) == limit:
                    os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(watch)
    code = main(arguments)
    os.write(report, " ".join(seen).encode())
    os._exit(code)

for line in sys.stdin:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(2, 1)
        run(int(line), sys.argv[1], sys.argv[2:], writer)
    os.close(writer)
    status = os.waitpid(child, 0)[1]
    print(status, os.read(reader, 60000).decode(), flush=True)
    os.close(reader)
"""


class Site:
    """An output folder with the stack of one example, and a manifest that makes it another's."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(ROOT / "examples", folder / "manifests")
        self.manifest = folder / "manifests" / "site.yaml"
        self.pristine, self.output, clean = (folder / f for f in ("pristine", "output", "clean"))
        self.become(EXAMPLES[0])
        self.compile(self.pristine)
        (self.pristine / "site" / "Pulumi.mine.yaml").write_text("config: {}\n")
        (self.pristine / "site" / "venv" / "bin").mkdir(parents=True)
        (self.pristine / "site" / "venv" / "bin" / "python").write_text("")
        self.become(ROOT / "examples" / "passthrough.yaml")
        shutil.copytree(self.pristine, clean)
        self.compile(clean)
        self.old, self.new = files(self.pristine), files(clean)
        assert self.new.keys() - self.old.keys(), "files must come"
        assert self.old.keys() - self.new.keys(), "files must go"

    def become(self, example: Path) -> None:
        text, count = re.subn(r"(?m)^name: .*$", "name: site", example.read_text(encoding="utf-8"))
        assert count == 1
        self.manifest.write_text(text, encoding="utf-8")

    def compile(self, folder: Path) -> None:
        assert main(["compile", str(self.manifest), "-o", str(folder), "--fresh"]) == 0

    @property
    def arguments(self) -> list[str]:
        return ["compile", str(self.manifest), "-o", str(self.output), "--fresh"]

    def reset(self) -> None:
        shutil.rmtree(self.output, ignore_errors=True)
        shutil.copytree(self.pristine, self.output)

    def check(self) -> None:
        """The stack is the old or the new one; the next compile ends with the new one alone, and
        with all that the user put there."""
        found = stack(files(self.output))
        assert not difference(found, stack(self.old)) or not difference(found, stack(self.new))
        self.compile(self.output)
        assert difference(files(self.output), self.new) == []


def stack(found: Files) -> Files:
    """Without the program's hidden folders, and the user's that may still lie in one of them."""
    return {p: f for p, f in found.items() if not p.startswith((".", "site/venv"))}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("atomic"))


class Server:
    def __init__(self, site: Site) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(site.output), *site.arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, limit: int) -> tuple[int, list[str]]:
        """(wait status, operations) of a run that is killed before operation `limit`."""
        assert self.process.stdin
        assert self.process.stdout
        print(limit, file=self.process.stdin, flush=True)
        status, *operations = self.process.stdout.readline().split()
        return int(status), operations


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    found = Server(site)
    yield found
    found.process.communicate()


def test_killed_before_any_operation(site: Site, server: Server) -> None:
    site.reset()
    status, operations = server.run(0)
    assert status == 0
    assert difference(files(site.output), site.new) == []
    numbers = range(1, len(operations) + 1)
    chosen = set(random.Random(7).sample(numbers, min(KILLS, len(numbers))))
    # The exchange of the stacks is where an order of steps can be wrong: all of it.
    renames = [n for n in numbers if operations[n - 1] in ("os.rename", "ctypes.dlsym")]
    assert renames
    chosen |= {n for r in renames for n in (r, r + 1)} & set(numbers)
    for number in sorted(chosen):
        site.reset()
        assert server.run(number)[0] == signal.SIGKILL
        site.check()


def test_killed_at_any_time(site: Site) -> None:
    site.reset()
    started = time.monotonic()
    subprocess.run(command(*site.arguments), cwd=ROOT, check=True, capture_output=True)
    seconds = time.monotonic() - started
    for moment in random.Random(11).sample(range(100), CLOCK_KILLS):
        site.reset()
        with subprocess.Popen(
            command(*site.arguments), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            time.sleep(seconds * moment / 100)
            process.kill()
        site.check()
