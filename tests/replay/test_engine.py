"""The scheduler by hand: places, budget, blocks, preemption; numbers, traces and the verb."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.errors import Rejected
from gpuplan.replay.engine import Answer, Engine, Settings
from gpuplan.replay.requests import Lengths, Open, Request, opened
from gpuplan.replay.sglang import PromptsFirst
from gpuplan.replay.trace import parsed

ROOT = Path(__file__).parents[2]


class Constant:
    """A decode step takes 10 ms, a token of a prompt 1 ms more, and an engine alone 5 ms."""

    def decode(self, sequences: int, context: float) -> float:
        return 0.01

    def slowed(self, sequences: int) -> float:
        return 1.0

    def prompt(self, tokens: int) -> float:
        return tokens * 0.001

    def added(self, tokens: int, sequences: int) -> float:
        return 0.0

    def alone(self) -> float:
        return 0.005

    def launch(self) -> float:
        return 0.008

    def late(self, sequences: int, seconds: float) -> float:
        return self.launch() - seconds

    def first(self, tokens: int, sequences: int) -> float:
        return 0.0


class Slow(Constant):
    """The host takes 18 ms to start a step with prompts."""

    def launch(self) -> float:
        return 0.018


class Shared(Constant):
    """Half of what a prompt takes is for itself; products take 30 ms up to 100 tokens of all."""

    def prompt(self, tokens: int) -> float:
        return tokens * 0.0005

    def added(self, tokens: int, sequences: int) -> float:
        return 0.03 * max(tokens / 100, 1) - (0.005 if sequences else 0)


def answers(
    *requests: tuple[float, int, int],
    places: int = 8,
    budget: int = 1000,
    blocks: int = 1000,
    times: Constant | None = None,
) -> list[Answer]:
    settings = Settings(
        max_num_seqs=places, max_num_batched_tokens=budget, blocks=blocks, block_tokens=4
    )
    engine = Engine(settings, times or Constant())
    asked = [
        Request(number=n, arrival_seconds=s, input_tokens=i, output_tokens=o)
        for n, (s, i, o) in enumerate(requests)
    ]
    engine.run(asked, range(len(asked)))
    return sorted(engine.answers, key=lambda a: a.request.number)


def test_a_request_alone_takes_its_prompt_and_a_step_for_each_further_token() -> None:
    (answer,) = answers((0.0, 100, 11))
    assert answer.end_seconds == pytest.approx(0.005 + 0.1 + 10 * 0.01)
    assert answer.decode_seconds == pytest.approx(10 * 0.01)


def test_prompts_of_a_step_share_its_products() -> None:
    one, *others = answers((0.0, 10, 11), (0.05, 40, 1), (0.05, 40, 1), times=Shared())
    assert one.end_seconds - 10 * 0.01 == pytest.approx(
        0.005
        + 0.005
        + 0.03  # its prompt in a step alone
        + 0.02
        + 0.02
        + 0.03
        - 0.005  # both others' in one of its steps, which reads weights, too
    )
    assert [a.end_seconds for a in others] == [pytest.approx(0.06 + 0.075)] * 2


def test_a_short_prompt_takes_as_long_as_the_host_needs_to_start_its_kernels() -> None:
    first, _ = answers((0.0, 2, 11), (0.04, 3, 1), times=Slow())
    # a step with a prompt of 3 ms takes as long as 18 ms of launches, and the first step no less
    assert first.decode_seconds == pytest.approx(9 * 0.01 + 0.018)
    assert first.end_seconds == pytest.approx(0.018 + 9 * 0.01 + 0.018)
    quicker, _ = answers((0.0, 2, 11), (0.04, 3, 1))  # launches end while the step runs
    assert quicker.decode_seconds == pytest.approx(10 * 0.01 + 0.003)


def test_a_prompt_beyond_the_budget_is_computed_in_chunks_beside_what_decodes() -> None:
    first, second = answers((0.0, 10, 21), (0.02, 250, 1), budget=101)
    # Of 101 tokens of a step one decodes: three steps compute the long prompt.
    assert first.decode_seconds == pytest.approx(20 * 0.01 + 0.25)
    assert second.end_seconds == pytest.approx(0.025 + 3 * 0.01 + 0.25)


def test_what_finds_no_place_waits_until_one_ends() -> None:
    first, second = answers((0.0, 10, 11), (0.0, 10, 1), places=1)
    assert first.end_seconds == pytest.approx(0.015 + 0.1)
    assert second.end_seconds == pytest.approx(first.end_seconds + 0.015)
    assert second.first_seconds == pytest.approx(first.end_seconds)


def test_where_blocks_run_out_the_last_taken_is_computed_again() -> None:
    first, second = answers((0.0, 8, 20), (0.0, 8, 20), blocks=8)
    assert (first.preempted, second.preempted) == (0, 1)
    assert second.end_seconds > first.end_seconds
    alone, beside = answers((0.0, 8, 20), (0.0, 8, 20))
    assert (alone.preempted, beside.preempted) == (0, 0)
    assert beside.end_seconds < second.end_seconds


def test_a_prompt_that_the_cache_does_not_hold_is_an_error() -> None:
    with pytest.raises(ValueError, match="hold no prompt of 40"):
        answers((0.0, 40, 2), blocks=8)


def test_requests_have_the_rate_and_lengths_that_were_asked() -> None:
    lengths = Lengths(
        input_mean=1000, input_p95=2500, output_mean=200, output_p95=500, longest=20_000
    )
    drawn = [r for r, _ in zip(opened(Open(per_second=5), lengths, 1), range(20_000), strict=False)]
    assert drawn[-1].arrival_seconds == pytest.approx(4000, rel=0.03)
    prompts = sorted(r.input_tokens for r in drawn)
    assert sum(prompts) / len(prompts) == pytest.approx(1000, rel=0.03)
    assert prompts[19_000] == pytest.approx(2500, rel=0.03)


def test_bursts_vary_as_much_as_was_asked() -> None:
    fixed = Lengths(input_mean=1, input_p95=1, output_mean=1, output_p95=1, longest=10)
    counts = [0] * 4000
    for request in opened(Open(per_second=10, variation=4.0), fixed, 3):
        if request.arrival_seconds >= len(counts):
            break
        counts[int(request.arrival_seconds)] += 1
    mean = sum(counts) / len(counts)
    variance = sum((c - mean) ** 2 for c in counts) / len(counts)
    assert mean == pytest.approx(10, rel=0.05)
    assert variance / mean == pytest.approx(4, rel=0.2)


def test_a_trace_is_read_in_order_of_arrival() -> None:
    text = "arrival_seconds,input_tokens,output_tokens\n7.5,10,2\n5,20,3\n"
    first, second = parsed(text, "t.csv")
    assert (first.arrival_seconds, first.input_tokens) == (0, 20)
    assert (second.arrival_seconds, second.output_tokens) == (2.5, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seconds,input_tokens,output_tokens\n", "no column arrival_seconds"),
        ("arrival_seconds,input_tokens,output_tokens\n1,0,2\n", "t.csv:2: no request"),
        ("arrival_seconds,input_tokens,output_tokens\n1,x,2\n", "t.csv:2: no request"),
        ("arrival_seconds,input_tokens,output_tokens\n", "holds no request"),
    ],
)
def test_a_wrong_trace_says_where(text: str, message: str) -> None:
    with pytest.raises(Rejected) as rejected:
        parsed(text, "t.csv")
    assert message in rejected.value.diagnostics[0].message


def test_the_verb_shows_table_plot_and_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    stack = str(ROOT / "stacks/chat")
    assert main(["replay", stack, "--requests", "500", "--exit-code"]) == 0
    shown = capsys.readouterr().out
    assert "seed 1" in shown
    assert "first token, p95" in shown
    assert "keeps up" in shown
    assert main(["replay", stack, "--requests", "500"]) == 0
    assert capsys.readouterr().out == shown
    assert max(map(len, shown.splitlines())) <= 80


def test_too_much_load_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["replay", str(ROOT / "stacks/chat"), "--requests", "1000", "--load", "40"]
    assert main([*arguments, "--exit-code"]) == 1
    assert "ever more requests wait" in capsys.readouterr().out


def test_a_trace_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.csv"
    rows = [f"{n / 4},{300 + n % 7},{50 + n % 5}" for n in range(200)]
    path.write_text("\n".join(["arrival_seconds,input_tokens,output_tokens", *rows]) + "\n")
    assert main(["replay", str(ROOT / "stacks/chat"), "--trace", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "200 requests" in shown
    assert "seed" not in shown


def test_a_stack_without_language_models_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(ROOT / "stacks/images")]) == 2
    assert "serves a language model" in " ".join(capsys.readouterr().err.split())


def prompts_first(
    *requests: tuple[float, int, int], places: int = 8, budget: int = 1000, cache: int = 4000
) -> list[Answer]:
    settings = Settings(
        max_num_seqs=places, max_num_batched_tokens=budget, blocks=cache, block_tokens=1
    )
    engine = PromptsFirst(settings, Constant())
    asked = [
        Request(number=n, arrival_seconds=s, input_tokens=i, output_tokens=o)
        for n, (s, i, o) in enumerate(requests)
    ]
    engine.run(asked, range(len(asked)))
    return sorted(engine.answers, key=lambda a: a.request.number)


def test_sglang_decodes_nothing_while_prompts_are_computed() -> None:
    first, second = prompts_first((0.0, 10, 21), (0.02, 250, 1), budget=100)
    # Three steps of the long prompt, in which no token is decoded: as vLLM, it would gain three.
    assert first.decode_seconds == pytest.approx(20 * 0.01 + 0.25)
    assert second.end_seconds == pytest.approx(0.025 + 0.25)
    alone, _ = prompts_first((0.0, 10, 21), (0.0, 250, 1), budget=1000)
    assert alone.decode_seconds == pytest.approx(20 * 0.01)


def test_sglang_takes_no_prompt_whose_answer_finds_no_room() -> None:
    first, second = prompts_first((0.0, 50, 100), (0.0, 50, 100), cache=240)
    assert second.first_seconds > 0  # 50 + 100 tokens, and 0.7 of 99 that the first may still write
    assert second.end_seconds > first.end_seconds
    assert (first.preempted, second.preempted) == (0, 0)
    _, beside = prompts_first((0.0, 50, 100), (0.0, 50, 100), cache=400)
    assert beside.end_seconds < second.end_seconds


def test_sglang_retracts_whoever_has_answered_least() -> None:
    # Taken while 0.4 of the first one's rest is kept free; at their ends all would hold 1,580.
    answers = prompts_first((0.0, 20, 900), *[(3.0, 20, 300)] * 3, cache=1500)
    first, *later = answers
    assert (first.preempted, sum(a.preempted for a in later)) == (0, 1)
    assert max(a.end_seconds for a in later) > first.decode_seconds * 0.65


def test_engines_that_are_not_played_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(ROOT / "stacks/images")]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "by vllm, sglang" in shown
