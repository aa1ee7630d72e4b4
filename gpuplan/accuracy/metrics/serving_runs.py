"""What a client's whole run says of its means: how many requests came at once, and which prompts
the server had seen.

A closed loop starts with a burst of as many requests as it keeps running: a part of all that it
sends, which its notes tell ("80 prompts"). Two clients send the same prompts in each of their runs,
since they draw them with one seed, and an engine's prefix cache holds those of the runs before.
"""

from __future__ import annotations

import re

from gpuplan.accuracy.points.points import Case
from gpuplan.sizing.physics.serving.service import Start

TIMES_AS_MANY = 10  # requests that a run sends for each that it keeps running, where none says
CLOSED_LOOP = "a closed loop starts with all its requests at once"
USUAL_START = Start(share=1 / TIMES_AS_MANY, uncached=1 / TIMES_AS_MANY, source=CLOSED_LOOP)
# Of a loop whose answers all have one length. Where prompts go before tokens, all that began at
# once stay together, and each round is a burst as the first one is: SGLang's default, without
# --enable-mixed-chunk (docs.sglang.ai, server arguments). Elsewhere they stand in a line.
ONE_LENGTH, SPREAD = "equal", "spread"
PROMPTS_FIRST = ("sglang",)
IN_STEP = f"{CLOSED_LOOP}, and all answers have one length"
AT_RANDOM, AT_ONCE = ("Poisson",), ("static batch", "all at once", "requests at once")
# "50 prompts at 1 and 400 above": the concurrency up to which the first number holds.
_STEPPED = re.compile(r"([1-9][\d,]*) prompts at (\d+) and ([1-9][\d,]*) above")
_PROMPTS = re.compile(r"(?<!\d)(?<!\d[.,])([1-9][\d,]*) prompts")
_PLACES = re.compile(r"(?:at most|than the) ([1-9]\d*) sequences")
# sgl-cookbook's pages, each measured with one server: runs of 10, 80 and 500 requests, then the
# same prompts with longer answers, then longer prompts with 10, 80 and 320. Prompts of the smaller
# run come first in the larger one. Whether a server was started anew between them, pages do not
# say: half is taken.
REPEATING, BEFORE = "lengths are the run means", {80: 10, 320: 80, 500: 80, 1000: 10}
LONG_ANSWERS = 2000  # tokens on average, of prompts that were sent before
STARTED_ANEW = 0.5


def of_run(case: Case) -> tuple[Start, float]:
    """How its requests come, and the part of their prompts that a prefix cache holds."""
    notes = case.row["notes"]
    if any(word in notes for word in AT_RANDOM):
        return Start(at_random=True, source="requests come at random"), 0.0
    concurrency = max(case.number("batch", 1), 1.0)
    sent = concurrency if any(word in notes for word in AT_ONCE) else _sent(notes, concurrency)
    share = min(1.0, concurrency / sent)
    held, repeated = _seen(case, sent, concurrency)
    if not in_step(case):
        return Start(share=share, uncached=share - held / sent, source=CLOSED_LOOP), repeated
    if case.engine in PROMPTS_FIRST:
        return Start(share=1.0, uncached=1.0 - repeated, source=IN_STEP), repeated
    uncached = share - held / sent
    return Start(share=share, uncached=uncached, in_step=True, source=IN_STEP), repeated


def in_step(case: Case) -> bool:
    """Whether all answers have one length, as the row says. Raises `ValueError`."""
    said = case.row.get("output_lengths", "").strip()
    if said not in ("", ONE_LENGTH, SPREAD):
        raise ValueError(f"output_lengths '{said}' is neither {ONE_LENGTH} nor {SPREAD}")
    return said == ONE_LENGTH


def places(case: Case) -> float | None:
    """Sequences that the server was told to take at once at most; None where no row says it."""
    said = _PLACES.search(case.row["notes"])
    return float(said[1]) if said else None


def _sent(notes: str, concurrency: float) -> float:
    """Requests of the whole run."""
    if stepped := _STEPPED.search(notes):
        few, most, many = (float(number.replace(",", "")) for number in stepped.groups())
        return few if concurrency <= most else many
    if prompts := _PROMPTS.search(notes):
        return float(prompts[1].replace(",", ""))
    return TIMES_AS_MANY * concurrency


def _seen(case: Case, sent: float, concurrency: float) -> tuple[float, float]:
    """Requests of the burst whose prompts a cache holds, and the part of all. No state of linear
    attention is kept for them."""
    model = case.model
    if REPEATING not in case.row["notes"] or getattr(model, "linear", None) is not None:
        return 0.0, 0.0
    if case.number("output_len") > LONG_ANSWERS:
        return min(concurrency, sent), 1.0
    before = STARTED_ANEW * BEFORE.get(round(sent), 0)
    return min(before, STARTED_ANEW * concurrency), before / sent
