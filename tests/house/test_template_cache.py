"""Compiled templates are run: only the user's own are, and only whole ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.render.environments import environment, render


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    environment.cache_clear()
    yield tmp_path
    environment.cache_clear()


def rendered() -> str:
    environment.cache_clear()
    return render("shell", "inventory/collect.sh.j2", commands=())


def file_of(cache: Path) -> Path:
    (path,) = (p for p in cache.rglob("*") if p.is_file())
    return path


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99])
def test_a_file_that_was_cut_is_made_again(cache: Path, part: float) -> None:
    text = rendered()
    path = file_of(cache)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    assert rendered() == text
    assert path.read_bytes() == whole


def test_a_damaged_file_is_made_again(cache: Path) -> None:
    text = rendered()
    path = file_of(cache)
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        assert rendered() == text
    assert path.read_bytes() == whole


def test_what_others_may_write_is_never_run(cache: Path) -> None:
    rendered()
    path = file_of(cache)
    kept = path.stat().st_mtime_ns
    path.parent.chmod(0o777)
    environment.cache_clear()
    template = environment("shell")
    bucket = template.bytecode_cache.get_bucket(  # type: ignore[union-attr]
        template, "inventory/collect.sh.j2", None, "source"
    )
    assert bucket.code is None
    rendered()
    assert path.stat().st_mtime_ns == kept, "nothing is written there either"


def test_a_link_in_the_cache_is_not_followed(cache: Path, tmp_path: Path) -> None:
    text = rendered()
    path = file_of(cache)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    assert rendered() == text
    assert not path.is_symlink()
    assert elsewhere.read_bytes() == before
