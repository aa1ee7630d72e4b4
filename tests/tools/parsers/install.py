"""The argument parsers of vLLM, SGLang, Axolotl and vLLM-Omni, at the catalogue's releases.

    python -m tests.tools.parsers.install        two minutes, 0.9 GB; 3 GB on disk

Engines come from their own wheels, of which all but compiled GPU code is unpacked, PyTorch from
its own, and what else parsers import from `packages.txt`. CUDA's libraries, which none of it calls,
are stand-ins (`cuda.py`, which needs cc, nm and readelf). All of it lands in
`~/.cache/gpuplan-engines/parsers-DIGEST` ($ENGINES replaces the folder before the last), whose
digest is that of the releases and packages: another release of an engine is installed anew.
vLLM-Omni is beside them with the vLLM that it extends, the release of the same number.
"""

from __future__ import annotations

import hashlib
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

from gpuplan.catalog.load import load_catalog
from tests.tools.engines import CACHE
from tests.tools.parsers import cuda

HERE = Path(__file__).parent
PACKAGES = HERE / "packages.txt"
ENGINES = ("vllm", "sglang", "axolotl")
OMNI = "vllm-omni"
OMNI_PACKAGES = HERE / "omni.txt"
LARGEST = 5_000_000  # bytes of a file that is no compiled code


def version(engine: str) -> str:
    pin = load_catalog().engine(engine)
    assert pin is not None
    return pin.version


def folder() -> Path:
    made_of = [*(f"{e}=={version(e)}" for e in ENGINES), PACKAGES.read_text("utf-8")]
    made_of += [Path(cuda.__file__).read_text("utf-8")]
    return CACHE / f"parsers-{hashlib.sha256(''.join(made_of).encode()).hexdigest()[:12]}"


def omni() -> Path:
    made_of = f"{version(OMNI)} {OMNI_PACKAGES.read_text('utf-8')}"
    return folder() / f"{OMNI}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"


def absent() -> str:
    """Why no parser can be asked; empty where they can."""
    ready = all((made / "complete").exists() for made in (folder(), omni()))
    return "" if ready else "no parsers are installed: `make engine-parsers` (two minutes, once)"


def ask(engine: str, questions: list[Any], hub: Path | None = None) -> list[dict[str, Any]]:
    """What `ask_ENGINE.py` answers; it says what a question is. `hub`: a Hub's cache."""
    done = subprocess.run(
        [folder() / "bin" / "python", "-P", HERE / f"ask_{engine.removeprefix('vllm-')}.py"],
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
    paths = (omni() if engine == OMNI else folder() / engine, HERE)
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
    _omni()
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


def _omni() -> None:
    pinned = version(OMNI)
    for engine in (OMNI, "vllm"):
        _fetch(f"{engine}=={pinned}", omni())
    wanted = ("--no-deps", "--target", str(omni()), "--requirement", str(OMNI_PACKAGES))
    _run(*_pip(), "install", "--quiet", *wanted)
    (omni() / "complete").touch()


def _pip() -> tuple[str, ...]:
    return str(folder() / "bin" / "python"), "-m", "pip"


def _fetch(pinned: str, to: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder()) as wheels:
        only = ("--no-deps", "--only-binary", ":all:", "--dest", wheels)
        _run(*_pip(), "download", "--quiet", *only, pinned)
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
