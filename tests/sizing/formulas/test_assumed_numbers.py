"""Numbers that plans assume, and that nobody fitted: as their sources and the documentation say
them, in all plans that rest on them."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import pytest

from gpuplan.units import GIB
from tests.sizing.test_evidence_chain import WHERE, answer

ASSUMED: dict[str, set[float]] = {
    # files of batches, in bytes: text of a token, a line's fields, a number as JSON
    "token_text": {4},
    "line_bytes": {1024},
    "number_text": {22},
    "audio_bytes_per_s": {32000},  # 16 bits at 16 kHz
    # datasets of runs: Arrow beside Parquet, a token before and after sequences are packed
    "text_share": {2},
    "tokenized_token": {13},
    "packed_token": {21},
    # starts and interruptions
    "image_bytes": {12.64e9},
    "node_seconds": {300},
    "warm_up": {120},
    "stall": {0.01},
    "failure_detection": {600},
    "repair_time": {86400},
    # what engines and frameworks may fill, and what is left idle
    "gpu_memory_utilization": {0.9, 0.7},  # one manifest says 0.7
    "usable_fraction": {0.85, 0.9},  # of runs, of pipelines of images
    "scratch_bytes": {50 * GIB},
    "usual_cores": {6},
    "least_memory": {16e9},
    "usual_memory": {32e9},
    "rounds": {10},
    # bytes of one number
    "bf16_bytes": {2},
    "fp32_bytes": {4},
    "mac_flop": {2},
    "hour": {3600},
    "gibibyte": {GIB},
    "gigabyte": {1e9},
}


@cache
def met() -> dict[str, set[float]]:
    """All values of the inputs of these names."""
    values: dict[str, set[float]] = defaultdict(set)
    for name in WHERE:
        for entry in answer(name).evidence:
            values[entry.quantity.removeprefix("work.")].add(entry.value)
            for each in entry.inputs:
                if not each.source.startswith("quantity:"):
                    values[each.name].add(each.value)
    return values


@pytest.mark.parametrize("name", ASSUMED)
def test_what_plans_assume_is_what_is_documented(name: str) -> None:
    assert met()[name], f"no plan rests on {name}"
    assert met()[name] <= ASSUMED[name]
