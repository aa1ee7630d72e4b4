"""A replica that reads texts and writes none, step by step: all that wait go into the next step, in
order, while there are places and tokens; a request is answered with its last text.

Its API server takes one request after the other, beside the steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuplan.frozen import record
from gpuplan.replay.engine import Answer, Sample, Settings
from gpuplan.replay.requests import Lengths, Request
from gpuplan.replay.steps import Derivations


class ReadTimes:
    """Seconds of a step, by the plan's formulas."""

    def __init__(self, known: Derivations) -> None:
        self._step, self._inputs = known.group("step.")
        self.host_seconds = known.given("service_seconds", "host_seconds")

    def step(self, tokens: float, squares: float) -> float:
        """A step of texts with that sum of their tokens, and of the squares of these."""
        batch = {"tokens": tokens, "longer_input": squares / tokens}
        return self._step(self._inputs | batch)["step_seconds"]


@record
class Texts:
    """Texts of a request, each of its own length."""

    count: int
    lengths: Lengths
    seed: int

    def of(self, request: Request) -> list[int]:
        """The first has the length that is the request's own."""
        numbers = range(1, self.count)
        others = (self.lengths.of(-self.seed, request.number * self.count + n)[0] for n in numbers)
        return [request.input_tokens, *others]


@dataclass(slots=True)
class ReadEngine:
    """One replica."""

    settings: Settings
    times: ReadTimes
    texts: Texts
    now: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    _waiting: deque[tuple[Request, int, bool]] = field(default_factory=deque)

    def run(self, requests: Iterable[Request], wanted: range) -> None:
        """Until the requests of those numbers are answered, or none is left."""
        coming, served = iter(requests), 0.0
        left, following = len(wanted), next(coming, None)
        while left:
            while following is not None:
                ready = max(following.arrival_seconds, served) + self.times.host_seconds
                if ready > self.now and self._waiting:
                    break
                self.now, served = max(self.now, ready), ready
                self._come(following)
                following = next(coming, None)
            if not self._waiting:
                return
            left -= sum(answer.request.number in wanted for answer in self._advance())

    def _come(self, request: Request) -> None:
        lengths = self.texts.of(request)
        for place, tokens in enumerate(lengths, 1):
            self._waiting.append((request, tokens, place == len(lengths)))

    def _advance(self) -> list[Answer]:
        """One step."""
        budget = self.settings.max_num_batched_tokens
        taken: list[tuple[Request, int, bool]] = []
        while self._waiting and len(taken) < self.settings.max_num_seqs:
            if self._waiting[0][1] > budget and taken:
                break
            text = self._waiting.popleft()
            taken.append(text)
            budget -= text[1]
        tokens = sum(text[1] for text in taken)
        seconds = self.times.step(tokens, sum(text[1] ** 2 for text in taken))
        self.samples.append((self.now, seconds, len(taken), len(self._waiting), 0))
        self.now += seconds
        made = [self._answered(request) for request, _, last in taken if last]
        self.answers += made
        return made

    def _answered(self, request: Request) -> Answer:
        return Answer(
            request=request,
            first_seconds=self.now - request.arrival_seconds,
            decode_seconds=0.0,
            end_seconds=self.now,
            preempted=0,
        )
