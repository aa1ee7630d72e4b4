"""Compiles over a stack while they are killed, run in pairs, or their disk does not take it.

Each trial ends with the old stack or the new one, never a part of either, with exit code 0 or 2
and no traceback; a compile after it ends with the new stack. What a machine cannot do (mounts need
root) is left out and said.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.torture.readers import ROOT

OLD, NEW = ROOT / "examples" / "chat.yaml", ROOT / "examples" / "assistant-70b.yaml"
Files = dict[str, bytes]
# Kills itself before operation N on the output folder; Python announces operations to a hook.
KILLED = """
import os, signal, sys
limit, folder, seen = int(sys.argv[1]), sys.argv[2], 0
def watch(event, values):
    global seen
    if event == "open" or event.startswith(("os.", "shutil.", "ctypes.", "fcntl.")):
        if seen or folder in str(values):
            seen += 1
            if seen == limit:
                os.kill(os.getpid(), signal.SIGKILL)
from gpuplan.cli.main import main
import gpuplan.cli.compile, gpuplan.pipeline
sys.addaudithook(watch)
sys.exit(main(sys.argv[3:]))
"""
# Stops at operation N until a line comes in.
STOPPED = KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "print(flush=True); input()")


class Disks:
    """Trials in a folder; `counts` by the kind of trial, `failures` by kind and what was wrong."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.absent: dict[str, str] = {}
        self.manifests = folder / "manifests"
        shutil.copytree(ROOT / "examples", self.manifests)
        self.old, self.new = (self._manifest(name, p) for name, p in (("old", OLD), ("new", NEW)))
        output = folder / "made"
        self.before = self._made(self.old, output)
        self.after = self._made(self.new, output)  # over the old one: it keeps the user's files
        self.fresh = self._made(self.new, folder / "fresh")

    def _manifest(self, name: str, example: Path) -> Path:
        """An example whose stack is called `site`."""
        rows = example.read_text(encoding="utf-8").split("\n")
        named = ["name: site" if row.startswith("name: ") else row for row in rows]
        path = self.manifests / f"{name}.yaml"
        path.write_text("\n".join(named), encoding="utf-8")
        return path

    def _made(self, manifest: Path, output: Path) -> Files:
        assert ended(self.arguments(manifest, output))[0] == 0
        return content(output / "site")

    def arguments(self, manifest: Path, output: Path) -> list[str]:
        return ["compile", str(manifest), "-o", str(output), "--fresh"]

    def begin(self, output: Path) -> None:
        """The old stack, and nothing else."""
        shutil.rmtree(output, ignore_errors=True)
        for name, data in self.before.items():
            path = output / "site" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def judge(self, kind: str, output: Path, code: int | None, said: str) -> None:
        """`code` is None where the program was killed; a compile that follows must succeed."""
        self.counts[kind] += 1
        stack = content(output / "site")
        if code not in (0, 2, None):
            self.failures[f"{kind}: exit code {code}"] += 1
        if "Traceback" in said:
            self.failures[f"{kind}: a traceback"] += 1
        if stack not in (self.before, self.after) or (code == 0 and stack != self.after):
            self.failures[f"{kind}: a part of a stack"] += 1
        code, _ = ended(self.arguments(self.new, output))
        if code != 0 or content(output / "site") != self.after:
            self.failures[f"{kind}: the next compile"] += 1


def content(stack: Path) -> Files:
    files = (p for p in sorted(stack.rglob("*")) if p.is_file())
    return {p.relative_to(stack).as_posix(): p.read_bytes() for p in files}


def ended(arguments: list[str], limit: Callable[[], object] | None = None) -> tuple[int, str]:
    """Exit code of the program, and what it said."""
    command = [sys.executable, "-m", "gpuplan", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, preexec_fn=limit)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def killed(disks: Disks, count: int) -> None:
    """Before an operation on the output, up to all of them in turn."""
    output = disks.folder / "killed"
    last = 400
    for _ in range(count):
        number = disks.chance.randint(1, last)
        disks.begin(output)
        done = _hooked(KILLED, number, disks.arguments(disks.new, output), output)
        if done.returncode == 0:
            last = min(last, number)
        code = None if done.returncode < 0 else done.returncode
        disks.judge("killed before an operation", output, code, done.stderr)


def _hooked(
    code: str, number: int, arguments: list[str], output: Path
) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", code, str(number), str(output), *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def full(disks: Disks, count: int) -> None:
    """Files may have so many bytes and no more (RLIMIT_FSIZE)."""
    output = disks.folder / "full"
    largest = max(map(len, disks.after.values()))
    for _ in range(count):
        most = disks.chance.randint(0, largest)
        disks.begin(output)
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
        code, said = ended(disks.arguments(disks.new, output), limit)
        disks.judge("a disk that takes no more", output, code, said)


@contextmanager
def mounted(disks: Disks, kind: str, options: str) -> Iterator[Path | None]:
    """A small file system in memory, or None."""
    place = disks.folder / kind.replace(" ", "-")
    place.mkdir(exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        disks.absent[kind] = "no file system can be mounted here"
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)


def small(disks: Disks, count: int) -> None:
    """A file system without room for two stacks."""
    kind = "a full file system"
    size = sum(map(len, disks.after.values()))
    for _ in range(count):
        with mounted(disks, kind, f"size={disks.chance.randint(2, 6) * size // 4096 * 1024}") as p:
            if p is None:
                return
            try:
                disks.begin(p / "out")
            except OSError:
                continue
            code, said = ended(disks.arguments(disks.new, p / "out"))
            (p / "out" / "room").touch()
            words = ["mount", "-o", "remount,size=64m", str(p)]
            subprocess.run(words, capture_output=True, check=False)
            disks.judge(kind, p / "out", code, said)


def read_only(disks: Disks, count: int) -> None:
    kind = "a read-only disk"
    for _ in range(count):
        with mounted(disks, kind, "size=64m") as place:
            if place is None:
                return
            disks.begin(place / "out")
            again = ("mount", "-o", "remount,")
            for mode in ("ro", "rw"):
                words = [again[0], again[1], again[2] + mode, str(place)]
                subprocess.run(words, capture_output=True, check=False)
                if mode == "ro":
                    code, said = ended(disks.arguments(disks.new, place / "out"))
            disks.judge(kind, place / "out", code, said)


def vanished(disks: Disks, count: int) -> None:
    """The output folder is removed while the program stands before an operation on it."""
    for _ in range(count):
        output = disks.folder / "vanished"
        disks.begin(output)
        number = str(disks.chance.randint(1, 60))
        words = [sys.executable, "-c", STOPPED, number, str(output)]
        process = subprocess.Popen(
            [*words, *disks.arguments(disks.new, output)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        shutil.rmtree(output, ignore_errors=True)
        _, said = process.communicate("\n")
        kind = "an output that vanishes"
        stack = content(output / "site")
        disks.counts[kind] += 1
        if process.returncode not in (0, 2) or "Traceback" in said:
            disks.failures[f"{kind}: exit code {process.returncode}"] += 1
        if stack not in ({}, disks.after, disks.fresh):  # fresh: it vanished before the write began
            disks.failures[f"{kind}: a part of a stack"] += 1


def at_once(disks: Disks, count: int) -> None:
    """Two compiles of different manifests to one stack."""
    for _ in range(count):
        output = disks.folder / "at-once"
        disks.begin(output)
        both = [
            subprocess.Popen(
                [sys.executable, "-m", "gpuplan", *disks.arguments(manifest, output)],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for manifest in (disks.old, disks.new)
        ]
        time.sleep(disks.chance.random() / 10)
        said = "".join(process.communicate()[1] for process in both)
        code = max(process.returncode for process in both)
        kind = "two compiles at once"
        disks.counts[kind] += 1
        if code not in (0, 2) or "Traceback" in said:
            disks.failures[f"{kind}: exit code {code}"] += 1
        if content(output / "site") not in (disks.before, disks.after):
            disks.failures[f"{kind}: a part of a stack"] += 1


def targets(disks: Disks, count: int) -> None:
    """Output folders behind links, with names that are no UTF-8, or in other letters."""
    for number in range(count):
        kind, output = (_linked, _no_utf8, _spaced)[number % 3](disks)
        if output is None:
            disks.absent[kind] = "this file system does not take it"
            continue
        disks.begin(output)
        code, said = ended(disks.arguments(disks.new, output))
        disks.judge(kind, output, code, said)


def _linked(disks: Disks) -> tuple[str, Path | None]:
    real, link = disks.folder / "real", disks.folder / "link"
    real.mkdir(exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(real)
    return "an output behind a link", link / "out"


def _no_utf8(disks: Disks) -> tuple[str, Path | None]:
    kind, path = "a name that is no UTF-8", Path(os.fsdecode(os.fsencode(disks.folder) + b"/\xe9"))
    try:
        path.mkdir(exist_ok=True)
    except OSError:
        return kind, None
    return kind, path / "out"


def _spaced(disks: Disks) -> tuple[str, Path | None]:
    return "a name with marks", disks.folder / "a 'b\" $(c)\n-d"


# How a file system that takes names which differ in case for one is made and mounted: by the
# kernel, or in user space where the kernel has none.
FOLDING = (
    (("mkfs.vfat", "{image}"), ("mount", "-o", "loop", "{image}", "{place}")),
    (
        ("mkfs.exfat", "{image}"),
        ("mount", "-t", "exfat-fuse", "-o", "loop", "{image}", "{place}"),
    ),
)


def _mounted(image: Path, place: Path) -> bool:
    for steps in FOLDING:
        image.write_bytes(b"")
        os.truncate(image, 64 * 2**20)
        words = [[word.format(image=image, place=place) for word in step] for step in steps]
        if all(shutil.which(step[0]) for step in words) and all(
            not subprocess.run(step, capture_output=True, check=False).returncode for step in words
        ):
            return True
    return False


def folded(disks: Disks, count: int) -> None:
    """A file system that takes names that differ in case for one (vfat or exFAT)."""
    kind = "a case-insensitive disk"
    place = disks.folder / "folded"
    place.mkdir(exist_ok=True)
    if not _mounted(disks.folder / "folded.img", place):
        disks.absent[kind] = (
            "no such file system can be mounted here (dosfstools; exfat-fuse, exfatprogs)"
        )
        return
    try:
        for _ in range(count):
            disks.begin(place / "out")
            code, said = ended(disks.arguments(disks.new, place / "OUT"))
            disks.judge(kind, place / "out", code, said)
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)


KINDS: tuple[tuple[Callable[[Disks, int], None], float], ...] = (
    (killed, 0.5),
    (full, 0.15),
    (small, 0.05),
    (read_only, 0.05),
    (vanished, 0.1),
    (at_once, 0.1),
    (targets, 0.05),
    (folded, 0.05),
)


def run(count: int, seed: int) -> Disks:
    """`count` trials, some of each kind."""
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        disks = Disks(Path(folder), seed)
        for trial, part in KINDS:
            trial(disks, max(2, round(count * part)))
        return disks
