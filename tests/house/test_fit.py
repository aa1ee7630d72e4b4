"""The fits behind the constants: what they find, what they leave alone, and what they write."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support.require import require

ROOT = Path(__file__).parents[2]
SIZES = np.geomspace(1.0, 1e4, 60)
PRIORS = {"launch": (1.0, 1.0), "rate": (2.0, 1.0), "unseen": (0.3, 0.5)}
TRUE = {"launch": 3.0, "rate": 0.5}


@pytest.fixture(scope="module")
def fits() -> ModuleType:
    if importlib.util.find_spec("scipy") is None:
        require("scipy", "the fits need scipy")
    from bench.fitting import fit

    return fit


def log_seconds(constants: dict[str, float]) -> np.ndarray:
    return np.log(constants["launch"] + SIZES * constants["rate"])


def test_a_fit_finds_what_was_measured_and_far_points_hardly_move_it(fits: ModuleType) -> None:
    measured = log_seconds(TRUE)
    measured[::10] += np.log(20)  # a tenth of the points is wrong

    def errors(constants: dict[str, float]) -> np.ndarray:
        return log_seconds(constants) - measured

    found = fits.fit(PRIORS, errors, scale=0.01)
    assert found == pytest.approx(TRUE | {"unseen": 0.3}, rel=0.02)
    square = fits.fit(PRIORS, errors, scale=0.01, soft=False)
    assert square["rate"] > 1.1 * TRUE["rate"]
    weights = np.ones(60)
    weights[::10] = 0.0
    only_right = fits.fit(PRIORS, errors, scale=0.01, soft=False, weights=weights)
    assert only_right == pytest.approx(TRUE | {"unseen": 0.3}, rel=1e-3)


def test_a_prior_holds_as_much_as_its_width_says(fits: ModuleType) -> None:
    def errors(constants: dict[str, float]) -> list[float]:
        return [np.log(constants["rate"] / 8.0)]

    tight, wide = (fits.fit({"rate": (2.0, w)}, errors, scale=1.0, soft=False) for w in (0.1, 10.0))
    assert tight["rate"] == pytest.approx(2.0, rel=0.02)
    assert wide["rate"] == pytest.approx(8.0, rel=0.02)


def test_a_cell_with_many_points_does_not_outweigh_one_with_few(fits: ModuleType) -> None:
    assert fits.by_cell(["a", "a", "a", "a", "b"], 0.5).tolist() == [0.5] * 4 + [1.0]
    out = fits.each_left_out(np.array(["b", "a", "b"]))
    assert [rows.tolist() for rows in out] == [[False, True, False], [True, False, True]]


def test_a_data_file_reads_back_in_the_houses_layout(
    fits: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fits, "GPUPLAN", tmp_path)
    monkeypatch.setattr(sys, "argv", [str(ROOT / "bench/fitting/made_up.py")])
    values = {"rate": 1 / 3, ("a", "b"): (1e-6, True), "engines": {"vllm": {"x": 2.0}}}
    lines = ("SOURCE = 'a fit'", *fits.table("CONSTANTS", values, {"rate": "a part of the peak"}))
    fits.write("made.py", "Constants of a test\n\nOverheads are seconds.\n", lines)
    text = (tmp_path / "made.py").read_text("utf-8")
    assert text.startswith('"""Constants of a test, written by bench/fitting/made_up.py.\n')
    assert '    # a part of the peak\n    "rate": 0.3333,\n' in text
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--check", "made.py"], cwd=tmp_path, check=False
    )
    assert done.returncode == 0
    read: dict[str, object] = {}
    exec(compile(text, "made.py", "exec"), read)
    assert read["CONSTANTS"] == {
        "rate": 0.3333,
        ("a", "b"): (1e-6, True),
        "engines": {"vllm": {"x": 2.0}},
    }
