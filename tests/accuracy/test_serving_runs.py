"""What the notes of a client's run say of its means, and that the fit computes what plans do."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from gpuplan.accuracy.metrics.serving import Served, served
from gpuplan.accuracy.metrics.serving_runs import of_run
from gpuplan.accuracy.points.aside import TABLE
from gpuplan.accuracy.points.points import Case, read_points
from gpuplan.sizing.data import serving as constants
from gpuplan.sizing.model.shapes import inputs
from tests.accuracy.test_accuracy_serving import case, model

ROOT = Path(__file__).parents[2]
REPEATED = "bench_serving random 0..N: lengths are the run means; "


@pytest.mark.parametrize(
    ("notes", "load", "share", "uncached", "repeated"),
    [
        ("", "32", 0.1, 0.1, 0.0),  # ten requests for each that runs
        ("ShareGPT, 100 prompts, at most 4 at once", "4", 0.04, 0.04, 0.0),
        ("random, 2,048 prompts, at most 1,024 at once", "1024", 0.5, 0.5, 0.0),
        ("random, 50 prompts at 1 and 400 above", "1", 0.02, 0.02, 0.0),
        ("random, 50 prompts at 1 and 400 above", "100", 0.25, 0.25, 0.0),
        ("fixed lengths, prompts drawn at random", "8", 0.1, 0.1, 0.0),  # no number, or none sent
        ("random,80 prompts", "8", 0.1, 0.1, 0.0),
        ("random, 0 prompts", "8", 0.1, 0.1, 0.0),
        ("Poisson 2 requests/s, 100 prompts", "7", 0.0, 0.0, 0.0),
        ("offline, all at once", "16", 1.0, 1.0, 0.0),
        (f"{REPEATED}10 prompts", "1", 0.1, 0.1, 0.0),
        # half of the ten that the run before had, of the 16 that start, and of all 80
        (f"{REPEATED}80 prompts", "16", 0.2, 11 / 80, 5 / 80),
        (f"{REPEATED}320 prompts", "64", 0.2, 0.1, 40 / 320),
    ],
)
def test_a_run_starts_with_a_part_of_its_requests(
    notes: str, load: str, share: float, uncached: float, repeated: float
) -> None:
    start, again = of_run(case("llama3.1-70b", notes=notes, batch=load))
    assert (start.share, start.uncached, again) == pytest.approx((share, uncached, repeated))


@pytest.mark.parametrize(
    ("engine", "lengths", "share"),
    [
        ("sglang 0.5.1.post1", "", 1.0),
        ("sglang 0.5.6.post2", "", 0.1),
        ("sglang 0.5.1.post1", "spread", 0.1),
    ],
)
def test_runs_that_a_table_says_nothing_of_are_rounds_where_their_times_are(
    engine: str, lengths: str, share: float
) -> None:
    told = {"engine": engine, "output_lengths": lengths, "source_path": TABLE, "batch": "64"}
    assert of_run(case("qwen3-32b", **told))[0].share == share


def test_prompts_that_are_sent_again_for_longer_answers_are_in_the_cache_but_no_states() -> None:
    longer = {"notes": f"{REPEATED}320 prompts", "batch": "64", "output_len": "4000"}
    start, repeated = of_run(case("llama3.1-70b", **longer))
    assert (start.uncached, repeated) == (0.0, 1.0)
    assert of_run(case("qwen3.5-397b-a17b", **longer))[1] == 0.0


def first(case_of: Case) -> float:
    one = served(case_of)
    assert isinstance(one, Served)
    return one.replica.modelled(one.sequences)["modelled_first_seconds"]


EQUAL = {"notes": "random, 1,000 prompts", "input_len": "4000", "output_len": "500"}


def test_answers_of_one_length_bring_prompts_that_wait_for_each_other() -> None:
    """SGLang computes those of all 32 clients in a row, vLLM has them stand in a line."""
    for engine, least, most in (("sglang 0.5.9", 2.5, 20), ("vllm 0.18.0", 1.3, 6)):
        loop = EQUAL | {"engine": engine, "batch": "32"}
        spread, equal = (
            first(case("llama3.1-8b", **loop, output_lengths=said)) for said in ("spread", "equal")
        )
        assert first(case("llama3.1-8b", **loop)) == spread
        assert least < equal / spread < most
        alone = [
            first(case("llama3.1-8b", **loop | {"batch": "1"}, output_lengths=said))
            for said in ("spread", "equal")
        ]
        assert alone[0] == alone[1], "nobody is beside it"


@pytest.mark.parametrize("engine", ["sglang 0.5.9", "vllm 0.18.0", "trtllm 1.2.0"])
@pytest.mark.parametrize("prompt", ["20", "1000", "9000"])
def test_who_goes_in_step_with_more_waits_longer(engine: str, prompt: str) -> None:
    loop = EQUAL | {"engine": engine, "input_len": prompt, "output_lengths": "equal"}
    times = [first(case("llama3.1-8b", **loop, batch=str(load))) for load in range(1, 130, 3)]
    assert times == sorted(times)


def test_a_line_does_not_grow_where_steps_take_prompts_beside_tokens() -> None:
    """Of vLLM, beyond what the burst adds, of which many prompts leave little."""
    loop = EQUAL | {"notes": "random, 900,000 prompts", "engine": "vllm 0.18.0"}
    few, many = (
        first(case("llama3.1-8b", **loop, output_lengths="equal", batch=load))
        for load in ("16", "64")
    )
    assert many < 1.3 * few
    rounds = loop | {"engine": "sglang 0.5.9"}
    few, many = (
        first(case("llama3.1-8b", **rounds, output_lengths="equal", batch=load))
        for load in ("16", "64")
    )
    assert many > 2.5 * few


def test_short_prompts_that_come_at_once_read_the_weights_once() -> None:
    """64 prompts of 16 tokens are a step of 1,024, which reads the weights as one of 16 does."""
    burst = {"notes": "random, all at once", "input_len": "16", "engine": "vllm 0.18.0"}
    alone, beside = (first(case("llama3.1-8b", **burst, batch=n)) for n in ("1", "64"))
    assert beside < 12 * alone


def test_lengths_of_answers_are_equal_or_spread() -> None:
    with pytest.raises(ValueError, match="output_lengths 'one' is neither equal nor spread"):
        of_run(case("llama3.1-8b", output_lengths="one"))


def test_a_layer_that_is_one_block_exchanges_once() -> None:
    hybrid = model("nvidia-nemotron-3-nano-30b-a3b")
    assert inputs(hybrid)["all_reduces"].value == hybrid.layers == 52
    assert inputs(hybrid)["layer_pairs"].value == 26
    dense = model("llama3.1-70b")
    assert inputs(dense)["all_reduces"].value == 2 * dense.layers


@pytest.fixture
def fitting() -> ModuleType:
    pytest.importorskip("scipy")
    from bench.fitting import calibrate

    return calibrate


def test_the_fit_computes_what_plans_do(fitting: ModuleType) -> None:
    """Of every kind: engines, sites that tune, latent attention, states, other makers."""
    import numpy as np

    files = [ROOT / f"bench/points/served_public{n}.csv" for n in ("", "2")]
    found = fitting.expressed(read_points(files), "ttft")
    found += [(point, served(tuned(point.case))) for point, _ in found]
    points = fitting.Points(found)
    known = {**constants.FACTORS, "latent_overhead": constants.LATENT_OVERHEAD}
    known["piece_seconds"] = constants.PIECE_SECONDS
    known |= {"unfused_seconds": constants.UNFUSED_SECONDS, "overlapped": constants.OVERLAPPED}
    known["scaled_within"] = constants.SCALED_WITHIN
    known |= {(n, e): v for e, own in constants.ENGINE.items() for n, v in own.items()}
    known |= {("amd", n): v for n, v in constants.VENDOR["amd"].items()}
    all_of_them = np.ones(len(found), bool)
    token = points.times(known, all_of_them)[0]
    first = fitting.first_of(points, known, constants.FIRST_TOKEN, all_of_them)
    assert any(points.in_step)
    assert any(points.tuned)
    assert not all(points.tuned)
    for place, (_, one) in enumerate(found):
        planned = one.replica.modelled(one.sequences)
        assert token[place] == pytest.approx(planned["modelled_token_seconds"], rel=1e-6)
        assert first[place] == pytest.approx(planned["modelled_first_seconds"], rel=1e-6)


def tuned(of: Case) -> Case:
    return Case(
        metric=of.metric,
        model=of.model,
        gpu=of.gpu,
        engine=of.engine,
        precision=of.precision,
        row={**of.row, "source_repo": "ai-dynamo/aiconfigurator (a table)"},
    )
