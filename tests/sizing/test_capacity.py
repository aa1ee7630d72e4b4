"""The inverse questions: what machines can serve."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.sizing.ask.demand import Demand, ServingDemand
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.capacity import capacities, choice
from tests.support.sizing_cases import (
    CHAT_8B,
    CHAT_70B,
    DEEPSEEK,
    IMAGES,
    READER,
    SPEECH,
    TAGGER,
    site,
    size,
    wanted,
)

ROOT = Path(__file__).parents[2]
RACK = str(ROOT / "examples" / "inventories" / "rack-7.yaml")
ASSISTANT = str(ROOT / "examples" / "assistant-70b.yaml")
SERVED = {
    "chat 70B": CHAT_70B,
    "chat 8B": CHAT_8B,
    "DeepSeek": DEEPSEEK,
    "images": IMAGES,
    "reader": READER,
    "speech": SPEECH,
    "tagger": TAGGER,
}


def at_rate(name: str, rate: float) -> Demand:
    fields = (f"load.requests_per_second.{part}" for part in ("mean", "peak"))
    return wanted(SERVED[name], numbers=dict.fromkeys(fields, rate))


@pytest.mark.parametrize("name", sorted(SERVED))
def test_what_a_rack_serves_is_sized_on_it_and_a_little_more_is_not(name: str) -> None:
    demand, rack = wanted(SERVED[name]), site("h200-sxm-141gb", node_count=2)
    (found,) = capacities(demand, rack, 1)
    assert found.assured is not None
    assert found.replicas >= 1
    assert isinstance(size(at_rate(name, found.assured * 0.999), rack), Sized)
    assert not isinstance(size(at_rate(name, found.assured * 1.001), rack), Sized)


def test_more_confidence_assures_fewer_requests() -> None:
    rack = site("h100-sxm-80gb", node_count=1)
    sure = wanted(CHAT_8B, numbers={"slo.confidence": 0.97})
    (likely,), (certain,) = (capacities(d, rack, 1) for d in (wanted(CHAT_8B), sure))
    assert likely.assured is not None
    assert certain.assured is not None
    assert certain.assured < likely.assured


def test_nodes_that_are_bought_are_as_many_as_is_said() -> None:
    one, four = (capacities(wanted(CHAT_8B), site("l40s"), n)[0] for n in (1, 4))
    assert one.assumed
    assert one.assured is not None
    assert four.assured == pytest.approx(4 * one.assured)
    assert four.replicas == 4 * one.replicas


def test_what_serves_nothing_says_which_gate_it_fails() -> None:
    apart = replace(site("h100-sxm-80gb", node_count=4), fabric=None)
    (found,) = capacities(wanted(DEEPSEEK), apart, 1)
    assert (found.replicas, found.assured) == (0, None)
    assert found.shortfalls[0].resource == "gpu_memory"


def test_replicas_over_nodes_are_as_many_as_whole_nodes_hold() -> None:
    counts = {}
    for nodes in (1, 2, 3, 4):
        (found,) = capacities(wanted(DEEPSEEK), site("h100-sxm-80gb", node_count=nodes), nodes)
        counts[nodes] = found.replicas
    assert counts == {1: 0, 2: 1, 3: 1, 4: 2}


@pytest.mark.parametrize(("gpus", "replicas"), [(4, 2), (2, 6), (8, 0)])
def test_no_replica_lies_on_parts_of_two_nodes(gpus: int, replicas: int) -> None:
    """Two nodes of 6: one of 4 in each, three of 2 in each; one of 8 in none."""
    demand = wanted(CHAT_70B + f"    overrides: {{tensor_parallel_size: {gpus}}}\n")
    nodes = site("h200-sxm-141gb", node_count=2, gpus_per_node=6)
    (found,) = capacities(demand, nodes, 2)
    assert found.replicas == replicas
    assert isinstance(found.replicas, int)


def test_each_part_of_a_gpu_holds_a_replica() -> None:
    one = wanted(READER + "    overrides: {partition: 1g.10gb}\n")
    (found,) = capacities(one, site("h100-sxm-80gb", node_count=2), 2)
    assert (found.partition, found.replicas) == ("1g.10gb", 2 * 8 * 7)


def test_no_more_replicas_are_promised_than_can_be_planned() -> None:
    (found,) = capacities(wanted(READER), site("h100-sxm-80gb", node_count=5000), 1)
    assert found.replicas == 10_000 < 5000 * 8
    fixed = READER + f"    overrides: {{replicas: {found.replicas}}}\n"
    assert isinstance(size(wanted(fixed), site("h100-sxm-80gb")), Sized)


def test_a_choice_is_what_the_search_would_take() -> None:
    demand, rack = wanted(CHAT_70B), site("h100-sxm-80gb", "l40s")
    winner, nearest = choice(demand, rack)
    answer = size(demand, rack)
    assert isinstance(answer, Sized)
    assert winner is not None
    assert winner.gpu_count == answer.workload.gpu_count
    assert nearest is None


@pytest.mark.parametrize("name", ["chat 70B", "chat 8B", "DeepSeek"])
def test_two_pools_lie_on_the_nodes_and_are_in_time(name: str) -> None:
    demand = wanted(SERVED[name])
    assert isinstance(demand, ServingDemand)
    asked = demand.objectives.limits
    limits = (asked.get(time) for time in ("time_to_first_token", "time_per_output_token"))
    first, token = (limit.value if limit else math.inf for limit in limits)
    served = []
    for nodes in (1, 2, 4):
        (found,) = capacities(demand, site("b200-sxm-180gb"), nodes, splitting=True)
        if (pools := found.split) is None:
            assert (name, nodes) == ("DeepSeek", 1), "8 GPUs for each half are two nodes"
            served.append(0.0)
            continue
        gpus = pools.prefill_replicas * pools.prefill_tensor_parallel_size
        gpus += pools.decode_replicas * pools.decode_tensor_parallel_size
        assert gpus <= 8 * nodes
        assert pools.time_to_first_token <= first
        assert pools.time_per_output_token <= token
        assert pools.requests_per_second.value > pools.assured > 0
        served.append(pools.assured)
    assert served == sorted(served)
    assert served[2] >= 2 * served[1] * (1 - 1e-8)


def test_long_answers_want_more_gpus_for_decode() -> None:
    def share(prompt: int, output: int) -> float:
        text = CHAT_70B.replace("{mean: 1200, p95: 4000}", str(prompt))
        text = text.replace("output_tokens: 300", f"output_tokens: {output}")
        (found,) = capacities(wanted(text), site("h100-sxm-80gb"), 4, splitting=True)
        assert found.split is not None
        decode = found.split.decode_replicas * found.split.decode_tensor_parallel_size
        prefill = found.split.prefill_replicas * found.split.prefill_tensor_parallel_size
        return decode / (decode + prefill)

    assert share(4000, 100) < share(1200, 300) < share(300, 1500)


def test_the_verb_answers_in_requests_per_second(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", ASSISTANT]) == 0
    printed = capsys.readouterr().out
    assert "4 nodes of 8 × h100-sxm-80gb" in printed
    assert "requests/s with 80 %" in printed
    assert "wanted 7 × 1.3 requests/s" in printed
    assert "for decode of" not in printed
    assert main(["capacity", ASSISTANT, "--split"]) == 0
    apart = capsys.readouterr().out
    assert "GPU for prefill" in apart
    assert max(map(len, (printed + apart).splitlines())) <= 100


def test_an_inventory_stands_in_for_the_platforms_offer(capsys: pytest.CaptureFixture[str]) -> None:
    chat = str(ROOT / "examples" / "chat.yaml")
    assert main(["capacity", chat, "--inventory", RACK, "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["workloads"]
    assert [c["gpu"] for c in answer["capacities"]] == ["h100-sxm-80gb", "l40s"]
    assert not any(c["assumed"] for c in answer["capacities"])


def test_a_gpu_that_nothing_was_measured_on_serves_nothing_for_that_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = "gpus: [mi250-64gb]\n  node: {gpus: 8, count: 2, cpu_cores: 64, memory: 512 GiB}"
    text = Path(ASSISTANT).read_text("utf-8").replace("precision: fp8", "precision: bf16")
    manifest = tmp_path / "unmeasured.yaml"
    manifest.write_text(text.replace("inventory: inventories/rack-7.yaml", node), "utf-8")
    assert main(["capacity", str(manifest)]) == 0
    assert "none: no measured kernels stand for it\n" in capsys.readouterr().out


def test_the_largest_model_comes_first_and_every_refusal_has_its_reason(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["capacity", ASSISTANT, "--models", "--json"]) == 0
    models = json.loads(capsys.readouterr().out)["workloads"][0]["models"]
    sizes = [m["parameters"] for m in models]
    assert sizes == sorted(sizes, reverse=True)
    fitting = [m for m in models if m["fits"]]
    assert fitting
    assert len(fitting) < len(models)
    assert all(m["gpu_count"] > 0 for m in fitting)
    assert all(m["reasons"] for m in models if not m["fits"])
    own = next(m for m in models if m["model"] == "meta-llama/Llama-3.3-70B-Instruct")
    assert main(["compile", ASSISTANT, "-o", str(tmp_path), "--json"]) == 0
    (sized,) = json.loads(capsys.readouterr().out)["stacks"][0]["plan"]["workloads"]
    assert (own["gpu"], own["gpu_count"]) == (sized["gpu"], sized["gpu_count"])
    assert main(["capacity", ASSISTANT, "--models"]) == 0
    assert f"that fits: {fitting[0]['parameters'] / 1e9:,.1f} B" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            [str(ROOT / "examples" / "finetune.yaml"), "--models"],
            "has no workload that serves a model",
        ),
        ([ASSISTANT, "nobody"], "has no workload 'nobody'"),
        ([ASSISTANT, "--inventory", "absent.yaml"], "absent.yaml"),
        ([str(ROOT / "docs" / "mistakes.yaml")], "error"),
    ],
)
def test_a_question_without_an_answer_is_an_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capacity", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in " ".join(shown.err.split())


@pytest.mark.parametrize("nodes", ["0", "100001", "9999999", "9" * 5000, "x", "-1"])
def test_nodes_are_counted_within_a_stated_limit(
    nodes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["capacity", ASSISTANT, "--nodes", nodes])
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "is no number from 1 to 100,000" in said
    assert len(said) < 1_000
