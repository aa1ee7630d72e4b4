"""The parsers of vLLM, SGLang, Axolotl, vLLM-Omni and Megatron-Bridge, at the catalogue's releases.

    python -m tests.tools.parsers.install        two minutes, 0.9 GB; 3 GB on disk

Engines come from their own wheels, of which all but compiled GPU code is unpacked, PyTorch from
its own, and what else parsers import from `packages.txt`. CUDA's libraries, which none of it calls,
are stand-ins (`cuda.py`, which needs cc, nm and readelf). All of it lands in
`~/.cache/gpuplan-engines/parsers-DIGEST` ($ENGINES replaces the folder before the last), whose
digest is that of the releases and packages: another release of an engine is installed anew.
Two are beside them: vLLM-Omni with the vLLM that it extends, the release of the same number, and
Megatron-Bridge with its Megatron Core, wheels for Python 3.12 of which only Python is needed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path
from typing import Any

from tests.tools.parsers import cuda
from tests.tools.parsers.places import ENGINES, HERE, PACKAGES, Beside, beside, folder, version

PROGRAMS = {"vllm-omni": "ask_omni.py", "megatron-bridge": "ask_megatron.py"}
LARGEST = 5_000_000  # bytes of a file that is no compiled code


def absent() -> str:
    """Why no parser can be asked; empty where they can."""
    wanted = (folder(), *(b.folder for b in beside().values()))
    ready = all((made / "complete").exists() for made in wanted)
    return "" if ready else "no parsers are installed: `make engine-parsers` (two minutes, once)"


def ask(engine: str, questions: list[Any], hub: Path | None = None) -> list[dict[str, Any]]:
    """What `ask_ENGINE.py` answers; it says what a question is. `hub`: a Hub's cache."""
    done = subprocess.run(
        [folder() / "bin" / "python", "-P", HERE / PROGRAMS.get(engine, f"ask_{engine}.py")],
        input=json.dumps(questions),
        env=_environment(engine, hub),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    if done.returncode:
        raise RuntimeError(f"{engine} failed:\n{done.stderr[-3000:]}")
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def _environment(engine: str, hub: Path | None) -> dict[str, str]:
    """`TESTS_PARSERS` is the folder of the programs, which share the stand-in for a GPU."""
    apart = beside().get(engine)
    paths = (apart.folder if apart else folder() / engine, HERE)
    return {
        "HOME": str(folder() / "home"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "HF_HOME": str(hub or folder() / "home"),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "AXOLOTL_DO_NOT_TRACK": "1",
    }


def install() -> int:
    if not absent():
        print(f"{folder().name}: present")
        return 0
    started = time.monotonic()
    if not (folder() / "complete").exists():
        _engines()
    for engine in beside().values():
        _apart(engine)
    print(f"{folder().name}: {time.monotonic() - started:.0f} s")
    return 0


def _engines() -> None:
    venv.create(folder(), with_pip=True, clear=True)
    _run(*_pip(), "install", "--quiet", "--no-deps", "--requirement", str(PACKAGES))
    cuda.stand_in(next((folder() / "lib").glob("python*")) / "site-packages")
    for engine in ENGINES:
        _fetch(f"{engine}=={version(engine)}", folder() / engine)
    (folder() / "home").mkdir()
    (folder() / "complete").touch()


def _apart(engine: Beside) -> None:
    if (engine.folder / "complete").exists():
        return
    for wheel in engine.wheels:
        _fetch(wheel, engine.folder, *engine.options)
    wanted = ("--no-deps", "--target", str(engine.folder), "--requirement", str(engine.listed))
    _run(*_pip(), "install", "--quiet", *wanted)
    (engine.folder / "complete").touch()


def _pip() -> tuple[str, ...]:
    return str(folder() / "bin" / "python"), "-m", "pip"


def _fetch(pinned: str, to: Path, *options: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder()) as wheels:
        only = ("--no-deps", "--only-binary", ":all:", "--dest", wheels)
        _run(*_pip(), "download", "--quiet", *only, *options, pinned)
        _unpack(next(Path(wheels).iterdir()), to)


def _run(*command: str) -> None:
    if subprocess.run(command, check=False).returncode:
        sys.exit(1)


def _unpack(wheel: Path, to: Path) -> None:
    """Its Python; neither libraries nor kernels."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if entry.file_size < LARGEST and ".so" not in Path(entry.filename).suffixes:
                archive.extract(entry, to)


if __name__ == "__main__":
    sys.exit(install())
