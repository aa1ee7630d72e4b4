"""Served points: what the serving model must do whatever its constants are."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpuplan.accuracy.metrics.serving import served, tpot, ttft
from gpuplan.accuracy.points.known import find_model
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.catalog.load import load_catalog
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.served import features

ROW = {
    "engine": "vllm 0.19.0",
    "precision": "fp8",
    "tp": "8",
    "pp": "1",
    "ep": "1",
    "dp": "1",
    "batch": "32",
    "input_len": "1024",
    "output_len": "1024",
    "notes": "",
}
MODELS = {
    "dense": "llama3.1-70b",
    "experts": "qwen3-235b-a22b",
    "windows": "gpt-oss-120b",
    "latent": "deepseek-r1",
    "states": "qwen3.5-397b-a17b",
    "sparse": "glm-5",
}
GPUS = ("h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb", "gb200-186gb")


def model(name: str) -> Transformer:
    found = find_model(name, "")
    assert isinstance(found, Transformer), name
    return found


def case(name: str, gpu: str = "h200-sxm-141gb", **changed: str) -> Case:
    row = ROW | changed
    card = load_catalog().gpu(gpu)
    assert card is not None
    return Case(
        metric="tpot",
        model=model(name),
        gpu=card,
        engine={"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}[
            row["engine"].split()[0]
        ],
        precision=row["precision"],
        row=row,
    )


def milliseconds(name: str, gpu: str = "h200-sxm-141gb", **changed: str) -> float:
    return answered(case(name, gpu, **changed))


def answered(each: Case) -> float:
    answer = tpot(each)
    assert not isinstance(answer, str), answer
    return answer.value


def waiting(each: Case) -> float:
    point = served(each)
    assert not isinstance(point, str), point
    return point.waiting


def decode_step(name: str, gpu: str = "h200-sxm-141gb", **changed: str) -> dict[str, float]:
    point = served(case(name, gpu, **changed))
    assert not isinstance(point, str), point
    return point.replica.modelled(point.sequences)


kinds = st.sampled_from(sorted(MODELS))
gpus = st.sampled_from(GPUS)
engines = st.sampled_from(("vllm 0.19.0", "sglang 0.5.9", "trtllm 1.2.0"))
ranks = st.sampled_from(
    ({"tp": "8"}, {"tp": "4", "dp": "2", "ep": "8"}, {"tp": "4", "pp": "2"}, {"tp": "1", "dp": "8"})
)
settings_of_engines = st.builds(lambda e, r: {"engine": e} | r, engines, ranks)
batches = st.integers(min_value=1, max_value=600)
lengths = st.integers(min_value=32, max_value=60_000)


@settings(max_examples=60)
@given(kinds, gpus, settings_of_engines, batches, lengths)
def test_no_prediction_beats_its_roofline(
    kind: str, gpu: str, replica: dict[str, str], batch: int, length: int
) -> None:
    setting = replica | {"batch": str(batch), "input_len": str(length)}
    for answer in (
        tpot(case(MODELS[kind], gpu, **setting)),
        ttft(case(MODELS[kind], gpu, **setting)),
    ):
        assert not isinstance(answer, str)
        if isinstance(answer, Reckoned):
            assert answer.best is not None
            assert 0 < answer.best <= answer.value


@settings(max_examples=60)
@given(kinds, gpus, settings_of_engines, batches, lengths)
def test_more_requests_are_never_faster(
    kind: str, gpu: str, replica: dict[str, str], batch: int, length: int
) -> None:
    setting = replica | {"input_len": str(length)}
    few, many = (
        milliseconds(MODELS[kind], gpu, batch=str(b), **setting) for b in (batch, batch + 9)
    )
    assert few <= many * (1 + 1e-9)


@settings(max_examples=40)
@given(kinds, gpus, engines, batches, lengths)
def test_a_longer_prompt_is_never_faster(
    kind: str, gpu: str, engine: str, batch: int, length: int
) -> None:
    setting = {"engine": engine, "batch": str(batch)}
    both = [case(MODELS[kind], gpu, input_len=str(n), **setting) for n in (length, length + 500)]
    assume(not any(waiting(each) for each in both))
    short, long = (answered(each) for each in both)
    assert short <= long * (1 + 1e-9)


def test_what_memory_does_not_hold_waits_for_what_it_holds() -> None:
    """Not all of 128 prompts of 8,192 tokens fit beside the weights. The others wait as long as it
    takes to serve them; those that run are as fast as they are without."""
    setting = {"tp": "1", "input_len": "8192"}
    few, many = (case("llama3.1-70b", **setting, batch=n) for n in ("32", "128"))
    assert not waiting(few)
    queue = waiting(many)
    assert 32 < 128 - queue < 128
    held = case("llama3.1-70b", **setting, batch=str(math.floor(128 - queue)))
    assert answered(many) == pytest.approx(answered(held), rel=0.03)
    first, after = ttft(held), ttft(many)
    assert isinstance(first, Reckoned)
    assert isinstance(after, Estimate)
    rate = (128 - queue) * 1000 / (first.value + 1024 * answered(many))  # Little's law
    assert after.value - first.value == pytest.approx(1000 * queue / rate, rel=0.1)
    assert after.low < after.value < after.high


def test_states_and_chosen_tokens_bound_what_long_contexts_cost() -> None:
    def growth(name: str) -> float:
        short, long = (
            decode_step(name, engine="sglang 0.5.9", input_len=str(prompt), output_len="100")
            for prompt in (2_000, 100_000)
        )
        return long["decode_seconds"] / short["decode_seconds"] - 1

    assert growth("qwen3.5-397b-a17b") < growth("qwen3-235b-a22b") / 2
    assert growth("glm-5") < growth("deepseek-r1")


def test_ranks_that_wait_for_each_other_stall_together() -> None:
    """A prompt of one rank stops the tokens of all, unless the engine starts prompts together."""

    def stalls(engine: str) -> float:
        return decode_step("minimax-m2.5", engine=engine, tp="2", dp="4")["stalling_ranks"]

    assert stalls("vllm 0.19.0") == 4
    assert stalls("trtllm 1.2.0") == 1


def test_experts_are_spread_over_all_ranks() -> None:
    def expert_bytes(**division: str) -> float:
        return decode_step("deepseek-r1", batch="512", **division)["expert_bytes"]

    assert expert_bytes(tp="1", dp="8") == pytest.approx(expert_bytes(tp="8"), rel=1e-9)


def test_spread_and_fixed_lengths_differ_where_the_client_shows() -> None:
    """Mean lengths of a range-ratio of 0.8 are nine tenths of the nominal ones."""
    fixed = served(case("qwen3-32b"))
    spread = served(case("qwen3-32b", notes="range-ratio 0.8"))
    assert not isinstance(fixed, str)
    assert not isinstance(spread, str)
    nominal = fixed.replica.service.tokens.output_mean.value
    assert spread.replica.service.tokens.output_mean.value == pytest.approx(0.9 * nominal)
    assert (fixed.features["client"], spread.features["client"]) == ("fixed", "spread")


def test_one_network_under_two_names_shares_its_points() -> None:
    card = load_catalog().gpu("h200-sxm-141gb")
    assert card is not None
    where = [
        features(
            model(name),
            card,
            "vllm",
            "",
            "fp8",
            concurrency=64,
            input=1024,
            output=512,
            tp=4,
            dp=2,
            ep=8,
            pp=1,
        )
        for name in ("deepseek-r1", "deepseek-v3")
    ]
    assert where[0] == where[1]
    assert where[0]["version"] == "?"
    assert where[0]["batch"] == 6
    assert where[0]["gpus"] == math.log2(8)
    assert where[0]["layout"] == f"{where[0]['cell']}|tp 4|dp 2|ep 8|pp 1"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"input_len": ""}, "lengths of input and output are not given"),
        ({"notes": "batch-1 first-token"}, "no server"),
        ({"precision": "fp3"}, "precision 'fp3'"),
    ],
)
def test_what_cannot_be_expressed_is_named(changed: dict[str, str], said: str) -> None:
    answer = tpot(case("qwen3-32b", **changed))
    assert isinstance(answer, str)
    assert said in answer


def test_a_row_may_say_the_format_of_the_cache() -> None:
    """Public runs keep it in fp8 beside weights in fp8; a server that keeps it whole reads more."""
    usual, half, whole = (
        milliseconds(MODELS["dense"], batch="64", input_len="16384", **said)
        for said in ({}, {"kv_cache_dtype": "fp8"}, {"kv_cache_dtype": "auto"})
    )
    assert usual == half
    assert whole > 1.02 * half
    with pytest.raises(ValueError, match="kv_cache_dtype 'int3' is neither auto nor fp8"):
        tpot(case(MODELS["dense"], kv_cache_dtype="int3"))
