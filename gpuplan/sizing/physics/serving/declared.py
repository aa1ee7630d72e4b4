"""What a manifest declares of a service and no measurement of the engine knows.

Speculative decoding (a draft model or multi-token prediction), a prefix cache and bursts change
lines of the sheets of `steps`, `latency` and `memory`. Nothing is assumed where nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant
from gpuplan.sizing.evidence.sheet import Line, Sheet

# Field of the manifest → its name in the formulas.
SYMBOLS = {
    "speculative.accepted_tokens": "accepted_tokens",
    "speculative.draft_tokens": "draft_tokens",
    "speculative.draft_cost": "draft_cost",
    "speculative.draft_memory": "draft_bytes",
    "load.prefix_cache": "prefix_hit_share",
    "load.burst": "burst",
}
NO_DRAFT = constant(0, "B", "the draft is part of the model: speculative.draft_memory is not set")

_VERIFIED: Line = (
    "tokens",
    Formula(
        "sequences * (draft_tokens + 1)",
        "1",
        "a step verifies the drafts of every sequence and one token more (Leviathan et al. 2023)",
    ),
)
_SAMPLED: Line = ("outputs", Formula("tokens", "1", "every one of them is sampled"))
_ACCEPTED: tuple[Line, ...] = (
    ("step_seconds", Formula("work_seconds + overhead_seconds", "s", "a step that verifies")),
    (
        "seconds",
        Formula(
            "step_seconds * (1 + draft_cost) / accepted_tokens",
            "s",
            "drafting and verifying, for each token that is accepted",
        ),
    ),
)
_COMPUTED: Line = (
    "tokens",
    Formula(
        "max(1, prompt * (1 - prefix_hit_share))", "1", "tokens that are not in the prefix cache"
    ),
)
_VARIATION: Line = (
    "arrival_variation",
    Formula(
        "max(1, replica_rate * ((burst - 1) / 2.27) ** 2)",
        "1",
        "variance over mean of the requests of a second, whose busiest of 60 is `burst` times the "
        "mean (2.27 deviations above it, the median of the largest of 60)",
    ),
)
_RUNNING = Formula(
    "ceil(slowness * sequences + 1.645 * sqrt(slowness * sequences * (1 + arrival_variation) / 2))",
    "1",
    "95th percentile of the running requests: the peakedness of bursts with exponential service "
    "(Whitt 1984), at the speed that is met with the wanted confidence",
)


@dataclass(frozen=True, slots=True)
class Declared:
    """What of it is written, and its numbers by their names in the formulas."""

    scope: dict[str, Quantity]
    speculative: bool
    cached: bool
    bursts: bool

    def __bool__(self) -> bool:
        return bool(self.scope)

    def decode(self, sheet: Sheet) -> Sheet:
        return verified(sheet) if self.speculative else sheet

    def prefill(self, sheet: Sheet) -> Sheet:
        return partly_cached(sheet) if self.cached else sheet

    def times(self, sheet: Sheet) -> Sheet:
        return bursting(sheet) if self.bursts else sheet

    def memory(self, sheet: Sheet) -> Sheet:
        return with_draft(sheet) if self.speculative else sheet

    def running(self, sheet: Sheet) -> Sheet:
        return crowded(sheet) if self.bursts else sheet


def declared(demand: Demand) -> Declared:
    found = {
        symbol: demand.given[field] for field, symbol in SYMBOLS.items() if field in demand.given
    }
    speculative = "accepted_tokens" in found
    if speculative:
        found.setdefault("draft_bytes", NO_DRAFT)
    return Declared(
        scope=found,
        speculative=speculative,
        cached="prefix_hit_share" in found,
        bursts="burst" in found and demand.kind == "serving",
    )


@cache
def verified(sheet: Sheet) -> Sheet:
    """A decode step that verifies drafts; its `seconds` are those of one accepted token."""
    more = _changed(sheet, "attention_flop", "({}) * (draft_tokens + 1)", "of every verified token")
    rest = tuple(line for line in more.lines if line[0] != "seconds")
    return Sheet((_VERIFIED, _SAMPLED, *rest, *_ACCEPTED))


@cache
def partly_cached(sheet: Sheet) -> Sheet:
    """The prefill of a prompt whose first part is in the cache: what is left attends to all."""
    less = _changed(
        sheet,
        "attention_flop",
        "({}) * (1 - prefix_hit_share ** 2)",
        "of the tokens that are not in the prefix cache, to all before them",
    )
    return Sheet((_COMPUTED, *less.lines))


@cache
def bursting(sheet: Sheet) -> Sheet:
    """The wait of Allen and Cunneen instead of that of Poisson arrivals."""
    more = _changed(
        sheet,
        "queue_seconds",
        "({}) * (arrival_variation + prompt_spread ** 2) / (1 + prompt_spread ** 2)",
        "mean wait of a G/G/1 queue (Allen and Cunneen)",
    )
    place = next(n for n, (name, _) in enumerate(more.lines) if name == "queue_seconds")
    return Sheet((*more.lines[:place], _VARIATION, *more.lines[place:]))


@cache
def with_draft(sheet: Sheet) -> Sheet:
    """The memory of a replica that verifies drafts."""
    logits = "({}) + 10 * max_num_seqs * draft_tokens * vocabulary"
    more = _changed(sheet, "activations_bytes", logits, "and the logits of the drafts")
    names = [name for name, _ in sheet.lines]
    fixed = "own_bytes" if "own_bytes" in names else "overhead_bytes"
    return _changed(more, fixed, "({}) + draft_bytes", "and the draft model")


@cache
def crowded(sheet: Sheet) -> Sheet:
    """The running requests of a service with bursts; needs `replica_rate`."""
    lines = tuple((n, _RUNNING if n == "max_num_seqs" else f) for n, f in sheet.lines)
    return Sheet((_VARIATION, *lines))


def _changed(sheet: Sheet, name: str, expression: str, more: str) -> Sheet:
    """`sheet` with the line `name` as `expression`, in which `{}` is what it was. `more` is added
    to its source."""
    place = next(n for n, (line, _) in enumerate(sheet.lines) if line == name)
    old = sheet.lines[place][1]
    new = Formula(expression.format(old.expression), old.unit, f"{old.source}; {more}")
    return Sheet((*sheet.lines[:place], (name, new), *sheet.lines[place + 1 :]))
