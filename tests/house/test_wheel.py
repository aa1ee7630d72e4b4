"""What `pip install gpuplan` brings is whole: it compiles an example far from any checkout."""

from __future__ import annotations

import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.tools.program import EXAMPLES, ROOT, difference, files, run


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    [built] = folder.glob("*.whl")
    return built


def test_it_carries_its_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for folder in ("templates", "policies"):
        sources = [f for f in (ROOT / folder).rglob("*") if f.is_file()]
        assert sources
        shipped = {f"gpuplan/_data/{f.relative_to(ROOT).as_posix()}" for f in sources}
        assert shipped <= names
    package = [f for f in (ROOT / "gpuplan").rglob("*") if f.is_file() and f.suffix != ".pyc"]
    assert {f.relative_to(ROOT).as_posix() for f in package} <= names
    assert not [n for n in names if n.startswith(("tests/", "examples/", "stacks/"))]
    licences = {n.rpartition("/")[2] for n in names if ".dist-info/licenses/" in n}
    assert licences == {"LICENSE", "NOTICE"}


def test_it_works_on_its_own(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    pip = (sys.executable, "-m", "pip", f"--python={home}")
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel)
    [packages] = home.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = "import gpuplan; print(gpuplan.__file__)"
    assert run(home / "bin" / "python", "-c", where, cwd=tmp_path).startswith(str(packages))
    run(home / "bin" / "gpuplan", "compile", *EXAMPLES, "-o", "stacks", cwd=tmp_path)
    assert difference(files(tmp_path / "stacks"), files(ROOT / "stacks")) == []
