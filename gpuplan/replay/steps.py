"""A replica's step times and settings, from a workload of a plan and its evidence.

The formulas are those that the plan was sized by, as texts (`gpuplan explain` prints them), here
evaluated for the batch of each step. What measured points say is taken at the loads that the plan
records, the expected one and the limit, and between them by the logarithm of the load.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property

from gpuplan.plan.model import Evidence, Workload
from gpuplan.replay.engine import Settings
from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Sheet

CONTEXT_STEPS = 24  # for each doubling of the context: within 1.5 % of it


class Lacking(LookupError):
    """Evidence that a replay needs is not there, or is no arithmetic: its name."""


class Derivations:
    """The evidence of one workload by its names without the workload's. It may be a stranger's:
    raises `Lacking`."""

    def __init__(self, workload: str, evidence: Iterable[Evidence]) -> None:
        start = f"{workload}."
        self.entries = {
            e.quantity.removeprefix(start): e for e in evidence if e.quantity.startswith(start)
        }

    def entry(self, name: str) -> Evidence:
        try:
            return self.entries[name]
        except KeyError:
            raise Lacking(name) from None

    def value(self, name: str) -> float:
        return self.entry(name).value

    def given(self, name: str, of: str) -> float:
        """The input `of` an entry."""
        inputs = {i.name: i.value for i in self.entry(name).inputs}
        if of not in inputs:
            raise Lacking(f"{name}.{of}")
        return inputs[of]

    def optional(self, name: str) -> float | None:
        entry = self.entries.get(name)
        return None if entry is None else entry.value

    def sheet(self, names: Iterable[str]) -> tuple[Sheet, dict[str, float]]:
        """The derivations `names` as one sheet, in that order, and the inputs of all of them."""
        lines, inputs = [], dict[str, float]()
        for name in names:
            entry = self.entry(name)
            inputs |= {i.name: i.value for i in entry.inputs}
            line = name.rpartition(".")[2]
            formula = Formula(entry.formula, entry.unit, entry.source)
            if not line.isidentifier() or not _sound(formula):  # it is compiled, and run
                raise Lacking(name)
            lines.append((line, formula))
        return Sheet(tuple(lines)), inputs

    def group(self, prefix: str) -> tuple[Sheet, dict[str, float]]:
        return self.sheet(n for n, e in self.entries.items() if n.startswith(prefix) and e.formula)


def _sound(formula: Formula) -> bool:
    try:
        return formula.names is not None
    except ValueError:
        return False


_PROMPTS, _DECODED = "prompts_beside", "decode_products_seconds"


class Mixed:
    """Products of a step in which prompts are computed beside sequences that decode."""

    def __init__(self, decode: Sheet, beside: Sheet, inputs: dict[str, float]) -> None:
        self._decode, self._inputs, self._added = decode, inputs, dict[tuple[int, int], float]()
        lines = [line for line in beside.lines if line[0] != _PROMPTS]
        self._beside = Sheet(tuple(lines))
        self._alone = Sheet(tuple(line for line in lines if line[0] != _DECODED))

    @classmethod
    def of(
        cls, known: Derivations, expected: str, decode: Sheet, inputs: dict[str, float]
    ) -> Mixed | None:
        """None of an engine that computes prompts in steps of their own."""
        beside, more = known.group(f"{expected}beside.")
        return cls(decode, beside, inputs | more) if beside.lines else None

    def added(self, tokens: int, sequences: int) -> float:
        """Seconds that prompts of so many tokens add."""
        bucket = round(CONTEXT_STEPS * math.log2(tokens))
        seconds = self._added.get((bucket, sequences))
        if seconds is None:
            prompts = {"prefill_tokens": 2.0 ** (bucket / CONTEXT_STEPS), _PROMPTS: 1.0}
            scope = self._inputs | prompts | {"prefill_own_seconds": 0.0}
            scope |= dict.fromkeys(("sequences", "tokens", "outputs"), float(sequences))
            if sequences:
                seconds = self._beside(self._decode(scope))["growth_seconds"]
            else:
                seconds = self._alone(scope | {_DECODED: 0.0})["growth_seconds"]
            self._added[bucket, sequences] = seconds
        return seconds


class EvidenceTimes:
    """`engine.Times` of the replica that a plan describes."""

    def __init__(self, known: Derivations, expected: str) -> None:
        """`expected` is the prefix of the load at which the plan records a first token."""
        self._known, self._expected = known, expected
        self._decode, self._decode_inputs = known.group(f"{expected}decode.")
        self._prefill, self._prefill_inputs = known.group("prefill.")
        self._first, self._first_inputs = known.sheet(
            f"{expected}{name}"
            for name in ("prompt_seconds", "modelled_first_seconds", "first_token_seconds")
        )
        self._mixed = Mixed.of(known, expected, self._decode, self._decode_inputs)
        self._interference = known.given(f"{expected}prompt_work_seconds", "interference")
        self._stalling = known.given(f"{expected}stall_seconds", "stalling_ranks")
        self._steps: dict[tuple[int, int], float] = {}
        self._prompts: dict[int, dict[str, float]] = {}

    @cached_property
    def _corrections(self) -> list[tuple[float, float]]:
        """(log2 of the load, corrected over modelled time of a token), by load."""
        by_load = {}
        for prefix in {"limit.", self._expected}:
            load = self._known.value(f"{prefix}sequences")
            token = self._known.value(f"{prefix}closed_token_seconds")
            modelled = self._known.value(f"{prefix}modelled_token_seconds")
            by_load[math.log2(load)] = token / modelled
        return sorted(by_load.items())

    def corrected(self, sequences: float) -> float:
        place, points = math.log2(sequences), self._corrections
        (low, first), (high, last) = points[0], points[-1]
        if place <= low or high == low:
            return first
        return last if place >= high else first + (last - first) * (place - low) / (high - low)

    def decode(self, sequences: int, context: float) -> float:
        bucket = round(CONTEXT_STEPS * math.log2(max(context, 1.0)))
        seconds = self._steps.get((sequences, bucket))
        if seconds is None:
            batch = float(sequences)
            scope = self._decode_inputs | {
                "sequences": batch,
                "tokens": batch,
                "outputs": batch,
                "context": 2.0 ** (bucket / CONTEXT_STEPS),
            }
            seconds = self._decode(scope)["seconds"] * self.corrected(batch)
            self._steps[sequences, bucket] = seconds
        return seconds

    def slowed(self, sequences: int) -> float:
        return self._interference * self._stalling * self.corrected(sequences)

    def late(self, sequences: int, seconds: float) -> float:
        return self._stalling * (self.corrected(sequences) * self._launch - seconds)

    def prompt(self, tokens: int) -> float:
        return self._prompt(tokens)["work_seconds" if self._mixed is None else "own_seconds"]

    def added(self, tokens: int, sequences: int) -> float:
        return 0.0 if self._mixed is None else self._mixed.added(tokens, sequences)

    def launch(self) -> float:
        return self._launch

    @cached_property
    def _launch(self) -> float:
        return self._known.value("prefill.launch_seconds")

    def alone(self) -> float:
        return self._prefill_overhead

    @cached_property
    def _prefill_overhead(self) -> float:
        return self._known.value("prefill.overhead_seconds")

    def _prompt(self, tokens: int) -> dict[str, float]:
        seconds = self._prompts.get(tokens)
        if seconds is None:
            count = float(tokens)
            seconds = self._prefill(
                self._prefill_inputs | {"prompt": count, "around": count, "tokens": count}
            )
            self._prompts[tokens] = seconds
        return seconds

    def first(self, tokens: int, sequences: int) -> float:
        prompt = self._prompt(tokens)
        scope = self._first_inputs | {
            "prefill_seconds": prompt["seconds"],
            "prefill_work_seconds": prompt["work_seconds"],
            "prefill_overhead_seconds": prompt["overhead_seconds"],
            "sequences": float(sequences),
        }
        return self._first(scope)["first_token_seconds"]


def settings(workload: Workload, known: Derivations) -> Settings:
    """What the engine is told by its arguments, for one stage of a pipeline. Its cache gets what
    memory leaves."""
    serving = workload.serving
    assert serving is not None
    block = known.given("kv_cache_tokens", _BLOCK)
    stages = workload.parallelism.pipeline_parallel_size
    return Settings(
        max_num_seqs=max(1, serving.max_num_seqs // stages),
        max_num_batched_tokens=serving.max_num_batched_tokens,
        blocks=int(_cache_tokens(workload, known) // (block * stages)),
        block_tokens=int(block),
        computed=1 - (known.optional("load.prefix_cache") or 0.0),
    )


_BLOCK = "block_tokens"


def _cache_tokens(workload: Workload, known: Derivations) -> float:
    """The most tokens whose cache fits beside weights, work space and what the engine takes."""
    memory = workload.memory
    room = memory.usable_bytes - memory.weights_bytes - memory.activations_bytes
    room -= int(known.value("own_bytes"))
    entry = known.entry("kv_cache_bytes")
    cache = Formula(entry.formula, entry.unit, entry.source)
    inputs: Mapping[str, float] = {i.name: i.value for i in entry.inputs}

    def fits(tokens: float) -> bool:
        return cache(**{**inputs, "kv_cache_tokens": tokens}) <= room

    low, high = 0.0, 2.0**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
