"""Many configurations at once are what one by one gives."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.evidence.formula import FUNCTIONS, Formula
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.hardware.devices import partitions
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.kinds.serving.limit import fits, largest
from gpuplan.sizing.physics.serving.bulk import WANTED, predict
from gpuplan.sizing.physics.serving.replica import Replica
from tests.support.sizing_cases import (
    BATCH,
    CHAT_8B,
    CHAT_70B,
    DEEPSEEK,
    offer,
    replica,
    site,
    wanted,
)

ROOT = Path(__file__).parents[2]
DRAFTS = "    speculative: {accepted_tokens: 2.4, draft_tokens: 3, draft_cost: 5 %}\n"
BURSTS = CHAT_8B.replace("requests_per", "burst: 6, prefix_cache: 0.3, requests_per")
CASES = {
    "dense": CHAT_70B,
    "small": CHAT_8B,
    "latent": DEEPSEEK,
    "batch": BATCH,
    "drafts": CHAT_70B + DRAFTS,
    "bursts": BURSTS,
    "capped": CHAT_8B + "    overrides: {max_num_seqs: 7}\n",
    "windowed": CHAT_8B.replace("meta-llama/Llama-3.1-8B-Instruct", "openai/gpt-oss-20b"),
}
GPUS = ("l40s", "a100-sxm-80gb", "h100-sxm-80gb", "b200-sxm-180gb")


def replicas(name: str) -> list[Replica]:
    """All sizes on all types, in bf16 where a type lacks fp8; and a partition."""
    demand, found = wanted(CASES[name]), []
    assert isinstance(demand, LanguageDemand)
    for gpu in GPUS:
        low = unsupported(offer(gpu).gpu, demand.precision)
        asked = replace(demand, precision="bf16") if low else demand
        found += [replica(asked, gpu, size) for size in (1, 2, 4, 8)]
    part = next(iter(partitions(offer("h100-sxm-80gb"), site("h100-sxm-80gb"))))
    return [*found, replica(demand, part, 1)]


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(CASES)),
    st.lists(st.floats(0.25, 500), min_size=1, max_size=4),
    st.floats(10, 20_000),
    st.floats(1, 4),
    st.floats(2, 3_000),
)
def test_an_array_of_configurations_is_each_of_them(
    name: str, batches: list[float], prompt: float, longer: float, output: float
) -> None:
    made = replicas(name)
    lengths = {
        "input_mean": prompt,
        "input_p95": prompt * longer,
        "output_mean": output,
        "output_p95": output * longer,
    }
    points = {n: np.full(len(batches), v) for n, v in lengths.items()}
    found = predict(made, points | {"sequences": np.array(batches)})
    for row, one in enumerate(made):
        alone = one.at_lengths(lengths)
        for column, batch in enumerate(batches):
            values = alone.needs(batch) | alone.times(batch)
            for quantity in WANTED:
                got = found[quantity][row, column]
                assert got == pytest.approx(values[quantity], rel=1e-9), quantity
            assert found["fits"][row, column] == fits(alone, batch)


def test_the_largest_batch_is_that_of_the_search() -> None:
    made = replicas("dense")
    batches = np.arange(1.0, 513.0)
    found = predict(made, {"sequences": batches})
    for row, one in enumerate(made):
        fitting = batches[found["fits"][row] > 0]
        assert int(largest(one)) == (fitting.max() if fitting.size else 0)


def test_every_function_of_formulas_works_on_arrays() -> None:
    x = np.array([0.5, 1.25, 3.0])
    for name, function in FUNCTIONS.items():
        rest = {"min": (1, 2), "max": (1, 2), "norm": (2, 8)}.get(name, ())
        text = f"{name}({', '.join(map(str, ('x', *rest)))})"
        sheet = Sheet((("y", Formula(text, "1", "test")),))
        each = [function(v, *rest) for v in x.tolist()]
        assert sheet.over({"x": x})["y"].tolist() == pytest.approx(each, rel=1e-15)
        assert sheet({"x": 1.25})["y"] == pytest.approx(each[1], rel=1e-15)


def test_a_compilation_does_not_wait_for_numpy(tmp_path: Path) -> None:
    manifest = str(ROOT / "examples" / "chat.yaml")
    code = (
        "import sys; from gpuplan.cli.main import main; "
        f"code = main(['compile', {manifest!r}, '-o', {str(tmp_path)!r}]); "
        "sys.exit(code or 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
