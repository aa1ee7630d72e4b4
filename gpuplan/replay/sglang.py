"""The scheduler of SGLang: prompts first.

While prompts wait and find room, steps compute prompts alone, up to `chunked_prefill_size` tokens
(and `MOST_INPUT`, the default of `max_prefill_tokens`), and nothing decodes. A prompt is taken
where the cache also has room for its whole answer and for a share of what those that decode may
still write (`new_token_ratio`): 0.7 at first, less with every step, down to 0.098, and as counted
after a retraction, all at a `schedule_conservativeness` of 1. Where the cache is full, those with
the fewest answered tokens are retracted until 20 steps fit, and wait behind all others. A request
is taken to ask for no more tokens than its answer has.

Source: python/sglang/srt/managers/scheduler.py, schedule_policy.py (`PrefillAdder`) and
schedule_batch.py (`retract_decode`) of sgl-project/sglang.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuplan.replay.engine import Engine, Job

MOST_INPUT = 16384
MOST_RESERVED = 4096  # tokens of an answer that room is kept for
FIRST_RATIO, LEAST_RATIO, DECAY_STEPS = 0.7, 0.098, 600
RETRACTED_STEPS = 20


@dataclass(slots=True)
class PromptsFirst(Engine):
    """One replica of SGLang."""

    _ratio: float = FIRST_RATIO

    def _advance(self) -> None:
        chunks = self._chunks(self.settings.max_num_batched_tokens, more=True)
        if chunks:
            self._mixed(0, chunks)
            return
        if not self.decoding:
            self._refuse()
        self._make_room()
        self._decode(max(self._steps(), 1))

    def _decode(self, steps: int) -> None:
        Engine._decode(self, steps)  # noqa: SLF001 - slots leave no super()
        decay = steps * (FIRST_RATIO - LEAST_RATIO) / DECAY_STEPS
        self._ratio = max(self._ratio - decay, LEAST_RATIO)

    def _steps(self) -> int:
        """While somebody waits for the cache, its room is looked at anew after each step."""
        places = len(self._running) < self.settings.max_num_seqs
        return 1 if self._waiting and places else Engine._steps(self)  # noqa: SLF001 - slots leave no super()

    def _chunks(self, budget: int, *, more: bool) -> list[tuple[Job, int]]:
        return Engine._chunks(self, min(budget, MOST_INPUT), more=more)  # noqa: SLF001 - slots leave no super()

    def _room(self, job: Job) -> bool:
        kept = sum(self._may_write(j) for j in self._running.values()) * self._ratio
        needed = job.computing + self._may_write(job) + self.settings.block_tokens
        fits = needed + kept < self._free * self.settings.block_tokens
        return fits or not self._running

    def _may_write(self, job: Job) -> int:
        done = job.done + (self._step - job.since if job.end >= 0 else 0)
        return min(max(job.request.output_tokens - done, 0), MOST_RESERVED)

    def _make_room(self) -> bool:
        if self._blocks(1) <= self._free:
            return False
        while self.decoding > 1 and self._blocks(RETRACTED_STEPS) > self._free:
            decoding = (j for j in self._running.values() if j.end >= 0)
            job = min(decoding, key=lambda j: (self._step - j.since + j.done, -j.request.number))
            del self._running[job.request.number]
            self._release(job)
            job.preempted += 1
            self._waiting.append(job)
        jobs = list(self._running.values())
        made = sum(j.request.output_tokens - self._may_write(j) for j in jobs)
        asked = sum(j.request.output_tokens for j in jobs)
        self._ratio = min(1.0, (made + RETRACTED_STEPS * len(jobs)) / max(asked, 1))
        return True
