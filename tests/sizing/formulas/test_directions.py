"""More work never takes less time or memory, and a faster device never takes more: held for every
input of every recorded formula, but for those that say what is left of something."""

from __future__ import annotations

import pytest

from gpuplan.plan.model import Evidence
from gpuplan.sizing.evidence.formula import evaluate
from tests.sizing.formulas.test_dimensions import MORE
from tests.support.sizing_cases import CASES, READER, SPEECH, TAGGER, sized

# Of percentiles logarithms end where an input is a little larger.
FAR = {name: text for name, text in MORE.items() if name != "percentiles"}
EVERY = {**CASES, **FAR, "served reader": READER, "served speech": SPEECH, "tagger": TAGGER}
AMOUNTS, RATES = ("s", "B", "FLOP"), ("B/s", "FLOP/s")
# Whether a result grows or falls with an input, by their units.
SIGNS = {
    **{("s", unit): 1 for unit in AMOUNTS},
    **{("s", unit): -1 for unit in RATES},
    **{("1/s", unit): -1 for unit in AMOUNTS},
    **{("1/s", unit): 1 for unit in (*RATES, "1/s")},
    **{(unit, unit): 1 for unit in ("B", "FLOP", "USD", "USD/h", "B/s")},
    ("USD", "USD/h"): 1,
    ("USD", "s"): 1,
    ("USD", "B"): 1,
    ("W", "W"): 1,
    ("B/s", "B"): 1,
    ("B/s", "1/s"): 1,
    ("B/s", "s"): -1,
}
# What is left when the input is taken away, and a part of a whole.
LEFT = {
    ("added_seconds", "decode_products_seconds"),
    ("added_seconds", "fixed_seconds"),
    ("asked_images_per_second", "requests_per_second"),
    ("decode_excess", "prefill_seconds"),
    ("linear_flop", "pass_attention_flop"),
    ("memory_for_a_gpu", "kept_memory"),
    ("prompt_work_seconds", "decode_seconds"),
    ("queue_room", "batch_seconds"),
    ("time_to_first_token", "prefill_seconds"),
    ("usable_bytes", "driver_bytes"),
}
CONSTANTS = ("gibibyte",)  # what others are rounded up to


def expected(entry: Evidence, name: str, unit: str) -> int:
    quantity = entry.quantity.rpartition(".")[2]
    if (quantity, name) in LEFT or quantity == "overhead_bytes" or name in CONSTANTS:
        return 0
    return SIGNS.get((entry.unit, unit), 0)


@pytest.mark.parametrize("case", EVERY)
def test_more_of_an_input_moves_a_result_the_way_that_its_unit_says(case: str) -> None:
    held = 0
    for entry in sized(EVERY[case]).evidence:
        values = {each.name: each.value for each in entry.inputs}
        for each in entry.inputs if entry.formula else ():
            sign = expected(entry, each.name, each.unit)
            for factor in (1.25, 4.0):
                more = evaluate(entry.formula, values | {each.name: each.value * factor})
                assert sign * (more - entry.value) >= -1e-9 * abs(entry.value), (
                    f"{entry.quantity} of {each.name}: {entry.formula}"
                )
            held += sign != 0
    assert held > 10
