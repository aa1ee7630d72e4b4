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
from pathlib import Path

import pytest

from tests.tools.program import EXAMPLES, ROOT, Files, command, difference, files, gpuplan

KILLS = 40
CLOCK_KILLS = 8
# Runs the program; kills it before the n-th operation after the first on the output folder. With
# n = 0 it only counts them.
PROGRAM = """
import os, runpy, signal, sys
limit, folder, seen = int(sys.argv[1]), sys.argv[2], 0
def watch(event, arguments):
    global seen
    if event == "open" or event.startswith(("os.", "shutil.", "ctypes.", "fcntl.")):
        if seen or folder in str(arguments):
            seen += 1
            if seen == limit:
                os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
sys.argv = ["gpuplan", *sys.argv[3:]]
try:
    runpy.run_module("gpuplan", run_name="__main__")
finally:
    print(seen, file=sys.stderr)
"""


class Site:
    """An output folder with the stack of one example, and a manifest that makes it another's."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(ROOT / "examples", folder / "manifests")
        self.manifest = folder / "manifests" / "site.yaml"
        self.pristine, self.output, clean = (folder / f for f in ("pristine", "output", "clean"))
        self.become(EXAMPLES[0])
        gpuplan("compile", self.manifest, "-o", self.pristine)
        (self.pristine / "site" / "Pulumi.mine.yaml").write_text("config: {}\n")
        (self.pristine / "site" / "venv" / "bin").mkdir(parents=True)
        (self.pristine / "site" / "venv" / "bin" / "python").write_text("")
        self.become(EXAMPLES[1])
        shutil.copytree(self.pristine, clean)
        gpuplan("compile", self.manifest, "-o", clean)
        self.old, self.new = files(self.pristine), files(clean)
        assert self.old.keys() ^ self.new.keys(), "files must come and go"

    def become(self, example: Path) -> None:
        text, count = re.subn(r"(?m)^name: .*$", "name: site", example.read_text(encoding="utf-8"))
        assert count == 1
        self.manifest.write_text(text, encoding="utf-8")

    def reset(self) -> None:
        shutil.rmtree(self.output, ignore_errors=True)
        shutil.copytree(self.pristine, self.output)

    @property
    def arguments(self) -> list[str]:
        return ["compile", str(self.manifest), "-o", str(self.output)]

    def check(self) -> None:
        """The stack is the old or the new one; the next compile ends with the new one alone, and
        with all that the user put there."""
        found = stack(files(self.output))
        assert not difference(found, stack(self.old)) or not difference(found, stack(self.new))
        gpuplan(*self.arguments)
        assert difference(files(self.output), self.new) == []


def stack(found: Files) -> Files:
    """Without the program's hidden folders, and the user's that may still lie in one of them."""
    return {p: f for p, f in found.items() if not p.startswith((".", "site/venv"))}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("atomic"))


def killed_before(site: Site, operation: int) -> tuple[int, str]:
    watched = [sys.executable, "-c", PROGRAM, str(operation), str(site.output), *site.arguments]
    done = subprocess.run(watched, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_killed_before_any_operation(site: Site) -> None:
    site.reset()
    code, text = killed_before(site, 0)
    assert code == 0, text
    operations = range(1, int(text.split()[-1]) + 1)
    chosen = random.Random(7).sample(operations, min(KILLS, len(operations)))
    for operation in sorted({*chosen, *operations[-8:]}):
        site.reset()
        code, text = killed_before(site, operation)
        assert code == -signal.SIGKILL, text
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
