"""The scheduler of a serving engine, step by step, as vLLM's V1 does it.

In each step running requests come first, a token for each that decodes, then the rest of a prompt
that did not fit the last one; then waiting requests are taken in order, while there are places, a
budget of tokens and free blocks of the cache. Where a running request gets no block, the one that
was taken last is put back, to the head of those that wait, and is computed again later
(vllm/v1/core/sched/scheduler.py). Where nothing but decoding goes on, many steps are taken at once:
as many as pass until a request arrives, ends or lacks a block.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Protocol

from gpuplan.frozen import record
from gpuplan.replay.requests import Request


class Times(Protocol):
    """Seconds of a replica's steps."""

    def decode(self, sequences: int, context: float) -> float:
        """A step in which so many sequences decode, with so many cached tokens each on average."""

    def slowed(self, sequences: int) -> float:
        """How much longer such a step is for each second of the prompts in it."""

    def late(self, sequences: int, seconds: float) -> float:
        """How much longer it is at least with prompts, which takes `seconds` without: the host
        starts their kernels."""

    def prompt(self, tokens: int) -> float:
        """What a prompt of so many tokens takes for itself, without the engine's own time."""

    def added(self, tokens: int, sequences: int) -> float:
        """What so many tokens of prompts take together, beside a token of each of so many sequences
        that decode."""

    def alone(self) -> float:
        """The engine's own time of a step in which nothing decodes."""

    def launch(self) -> float:
        """What a step of prompts alone takes at least: the host starts their kernels."""

    def first(self, tokens: int, sequences: int) -> float:
        """A first token, seen by its client, of a prompt that nothing keeps waiting."""


@record
class Settings:
    """What the engine is told, and the blocks of cache that memory leaves it. Of a prompt,
    `computed` is the share that its prefix cache does not hold."""

    max_num_seqs: int
    max_num_batched_tokens: int
    blocks: int
    block_tokens: int
    computed: float = 1.0


@record
class Answer:
    """What became of a request; seconds. `decode_seconds` are those from its first token to its
    last."""

    request: Request
    first_seconds: float
    decode_seconds: float
    end_seconds: float
    preempted: int

    @property
    def latency_seconds(self) -> float:
        return self.first_seconds + self.decode_seconds


Sample = tuple[float, float, int, int, int]  # begins at, lasts; that run, that wait; blocks taken


@dataclass(slots=True, eq=False)
class Job:
    """A request that waits or runs. `left`: tokens of the prompt to compute; `cached`, `since`:
    tokens in the cache when it began to decode, and the step count then; `end`: the step count at
    which it ends, -1 before it decodes."""

    request: Request
    since_seconds: float
    computing: int = 0
    left: int = 0
    own_per_token: float = 0.0
    held: int = 0
    cached: int = 0
    since: int = 0
    end: int = -1
    done: int = 0
    own_seconds: float = 0.0
    first_seconds: float | None = None
    first_at: float = 0.0
    preempted: int = 0


@dataclass(slots=True)
class Engine:
    """One replica. `again` gives the request that follows one that ended, in a closed loop."""

    settings: Settings
    times: Times
    again: Callable[[Request, float], Request | None] | None = None
    now: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    _counted: int = 0
    _coming: Iterator[Request] = field(default_factory=lambda: iter(()))
    _called: int = -1
    _arriving: list[tuple[float, int, Request]] = field(default_factory=list)
    _waiting: deque[Job] = field(default_factory=deque)
    _running: dict[int, Job] = field(default_factory=dict)  # in the order in which they were taken
    _prompts: dict[int, Job] = field(default_factory=dict)
    _ends: list[tuple[int, int]] = field(default_factory=list)
    _step: int = 0
    _offset: int = 0  # the sum of `cached - since` of all that decode
    _phases: list[int] = field(default_factory=list)  # how many take a block at which step
    _free: int = 0
    _prompted: bool = False  # whether a prompt was in the last step

    def run(self, requests: Iterable[Request], wanted: range) -> None:
        """Until the requests of those numbers are answered, or none is left."""
        open_answers = len(wanted)
        self._coming = iter(requests)
        self._call()
        self._phases = [0] * self.settings.block_tokens
        self._free = self.settings.blocks
        while open_answers:
            for answer in self.answers[self._counted :]:
                open_answers -= answer.request.number in wanted
            self._counted = len(self.answers)
            self._arrive()
            if not self._running and not self._waiting:
                if not self._arriving:
                    return
                self.now = self._arriving[0][0]
                self._prompted = False
                continue
            self._advance()

    @property
    def decoding(self) -> int:
        return len(self._running) - len(self._prompts)

    def _call(self) -> None:
        """The next of the requests that arrive in order."""
        request = next(self._coming, None)
        if request is not None:
            self._called = request.number
            heappush(self._arriving, (request.arrival_seconds, request.number, request))

    def _arrive(self) -> None:
        while self._arriving and self._arriving[0][0] <= self.now:
            seconds, _, request = heappop(self._arriving)
            if request.number == self._called:
                self._call()
            # What is left of a step that only decodes is part of a measured first token.
            since = seconds if self._prompted else self.now
            job = Job(request, since, computing=request.input_tokens)
            self._waiting.append(job)

    def _advance(self) -> None:
        steps = self._steps_alone()
        if steps:
            self._decode(steps)
            return
        preempted = self._make_room()
        decoding = self.decoding
        chunks = self._chunks(self.settings.max_num_batched_tokens - decoding, more=not preempted)
        if not chunks and not decoding:
            if not preempted:
                self._refuse()
            return
        self._mixed(decoding, chunks)

    def _steps_alone(self) -> int:
        """Steps that can be taken at once: 0 where a prompt is to be computed or a block lacks."""
        if not self.decoding or self._prompts or self._takes_next():
            return 0
        return self._steps()

    def _steps(self) -> int:
        """Steps of those that decode until a request arrives, ends or lacks a block."""
        decoding = self.decoding
        steps = self._ends[0][0] - self._step
        if self._arriving:
            seconds = self._decode_seconds(decoding, 0)
            gap = self._arriving[0][0] - self.now
            steps = min(steps, max(1, math.ceil(gap / seconds)))
        while steps and self._blocks(steps) > self._free:
            steps //= 2
        return steps

    def _takes_next(self) -> bool:
        """Whether the first that waits finds a place, and blocks for its first chunk."""
        if not self._waiting or len(self._running) >= self.settings.max_num_seqs:
            return False
        job = self._waiting[0]
        budget = self.settings.max_num_batched_tokens - self.decoding
        size = self.settings.block_tokens
        return math.ceil(min(job.computing, max(budget, 1)) / size) <= self._free

    def _decode_seconds(self, decoding: int, steps: int) -> float:
        """A step in the middle of `steps`."""
        context = self._offset / decoding + self._step + steps / 2
        return self.times.decode(decoding, context)

    def _blocks(self, steps: int) -> int:
        """Blocks that those that decode take in the next steps: one at each first token of one."""
        size = self.settings.block_tokens
        whole, rest = divmod(steps, size)
        first = self._step % size
        part = sum(self._phases[(first + n) % size] for n in range(rest))
        return whole * self.decoding + part

    def _decode(self, steps: int) -> None:
        decoding = self.decoding
        self._free -= self._blocks(steps)
        self._pass(steps * self._decode_seconds(decoding, steps), steps)
        self._prompted = False

    def _pass(self, seconds: float, steps: int) -> None:
        taken = self.settings.blocks - self._free
        self.samples.append((self.now, seconds, len(self._running), len(self._waiting), taken))
        self.now += seconds
        self._step += steps
        while self._ends and self._ends[0][0] <= self._step:
            end, number = heappop(self._ends)
            job = self._running.get(number)
            if job is not None and job.end == end:
                self._finish(job)

    def _make_room(self) -> bool:
        """Preempt until every request that decodes gets its token's block; whether one was."""
        preempted = False
        while self.decoding and self._blocks(1) > self._free:
            preempted = True
            _, job = self._running.popitem()
            self._release(job)
            job.preempted += 1
            self._waiting.appendleft(job)
        return preempted

    def _release(self, job: Job) -> None:
        """Blocks go back; what it has generated belongs to its prompt from now on."""
        if self._prompts.pop(job.request.number, None) is None:
            self._leave(job)
            made = self._step - job.since
            job.done += made
            job.computing = job.cached + made
        self._free += job.held
        job.held, job.end = 0, -1

    def _leave(self, job: Job) -> None:
        size = self.settings.block_tokens
        self._offset -= job.cached - job.since
        self._phases[(job.since - job.cached) % size] -= 1
        job.held = math.ceil((job.cached + self._step - job.since) / size)

    def _chunks(self, budget: int, *, more: bool) -> list[tuple[Job, int]]:
        """Tokens of prompts that this step computes: of those that run, then, if there may be more,
        of those that wait."""
        chunks = []
        for job in list(self._prompts.values()):
            if tokens := self._chunk(job, budget):
                chunks.append((job, tokens))
                budget -= tokens
        places = self.settings.max_num_seqs if more else 0
        while self._waiting and budget > 0 and len(self._running) < places:
            job = self._waiting[0]
            if not self._room(job):
                break
            self._begin(job)
            tokens = self._chunk(job, budget)
            if not tokens:
                break
            self._waiting.popleft()
            self._running[job.request.number] = self._prompts[job.request.number] = job
            chunks.append((job, tokens))
            budget -= tokens
        return chunks

    def _room(self, job: Job) -> bool:  # noqa: ARG002 - other schedulers keep room for its answer
        """Whether the next that waits is taken at all, as far as its first chunk finds blocks."""
        return True

    def _begin(self, job: Job) -> None:
        job.left = max(1, math.ceil(job.computing * self.settings.computed))
        job.own_per_token = self.times.prompt(job.computing) / job.left
        job.held = 0

    def _chunk(self, job: Job, budget: int) -> int:
        """As many tokens as budget and blocks allow, all or nothing of the blocks."""
        tokens = min(job.left, max(budget, 0))
        if not tokens:
            return 0
        left = job.left - tokens
        cached = job.computing - math.floor(left / self.settings.computed)
        needed = math.ceil(cached / self.settings.block_tokens) - job.held
        if needed > self._free:
            return 0
        self._free -= needed
        job.held += needed
        job.left = left
        return tokens

    def _mixed(self, decoding: int, chunks: list[tuple[Job, int]]) -> None:
        """A step of prompts in which so many of those that decode get a token: all or none. What
        waits for it is slowed as measured, the engine's own time included."""
        own = [tokens * job.own_per_token for job, tokens in chunks]
        added = [self.times.added(tokens, decoding) for _, tokens in chunks]
        together = sum(tokens for _, tokens in chunks)
        work = sum(own) + (self.times.added(together, decoding) if chunks else 0.0)
        seconds, slowed = self.times.alone(), 1.0
        least = self.times.launch() - seconds
        if self.decoding:
            seconds, slowed = 0.0, self.times.slowed(self.decoding)
            least = self.times.late(self.decoding, self._decode_seconds(self.decoding, 1))
        if decoding:
            seconds = self._decode_seconds(decoding, 1)
            self._free -= self._blocks(1)
        total = seconds + max(slowed * work, least if chunks else 0.0)
        for (job, _), alone, more in zip(chunks, own, added, strict=True):
            job.own_seconds += seconds + max(slowed * (alone + more), least)
        self._pass(total, 1 if decoding else 0)
        self._prompted = bool(chunks)
        for job, _ in chunks:
            if not job.left:
                self._prompted_all(job)

    def _prompted_all(self, job: Job) -> None:
        """Its prompt is computed, and with it its next token."""
        number, size = job.request.number, self.settings.block_tokens
        del self._prompts[number]
        job.cached, job.since = job.computing, self._step
        job.done += 1
        self._offset += job.cached - job.since
        self._phases[(job.since - job.cached) % size] += 1
        if job.first_seconds is None:
            waited = self.now - job.since_seconds - job.own_seconds
            alone = self.times.first(job.request.input_tokens, max(1, self.decoding))
            job.first_seconds = max(waited, 0.0) + alone
            job.first_at = self.now
        left = job.request.output_tokens - job.done
        if left <= 0:
            self._finish(job)
            return
        job.end = self._step + left
        heappush(self._ends, (job.end, number))

    def _finish(self, job: Job) -> None:
        del self._running[job.request.number]
        self._leave(job)
        self._free += job.held
        assert job.first_seconds is not None
        answer = Answer(
            request=job.request,
            first_seconds=job.first_seconds,
            decode_seconds=self.now - job.first_at,
            end_seconds=self.now,
            preempted=job.preempted,
        )
        self.answers.append(answer)
        following = self.again(job.request, self.now) if self.again else None
        if following is not None:
            heappush(self._arriving, (following.arrival_seconds, following.number, following))

    def _refuse(self) -> None:
        """The cache holds less than one prompt: it would wait for ever."""
        raise ValueError(
            f"{self.settings.blocks} blocks of {self.settings.block_tokens} tokens hold no prompt"
            f" of {self._waiting[0].computing if self._waiting else 0}"
        )
