"""A replica that writes down audio: its windows share the GPU evenly, as many as have a place.

With `n` at once a window takes `n` times the seconds that one keeps the GPU busy; a request is
answered with the last of its windows.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuplan.replay.engine import Answer, Sample, Settings
from gpuplan.replay.requests import Request
from gpuplan.replay.steps import Derivations

_WINDOW = (
    "asking_seconds",
    "reading_seconds",
    "writing_seconds",
    "window_least",
    "window_seconds",
    "window_latency",
)


class WindowTimes:
    """Seconds that a window takes with others at once, by the plan's formulas."""

    def __init__(self, known: Derivations) -> None:
        self._step, self._inputs = known.group("decode.")
        self._window, self._own = known.sheet(_WINDOW)
        self._known: dict[int, float] = {}

    def latency(self, count: int) -> float:
        if count not in self._known:
            load = dict.fromkeys(("sequences", "tokens", "outputs"), float(count))
            done = self._step(self._inputs | load)
            step = {"decode_seconds": done["seconds"], "decode_least": done["roofline_seconds"]}
            self._known[count] = self._window(self._own | load | step)["window_latency"]
        return self._known[count]


@dataclass(slots=True)
class SpeechEngine:
    """One replica."""

    settings: Settings
    times: WindowTimes
    windows: int
    now: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    _done: float = 0.0  # the part of a window that each that always ran would have done
    _running: deque[tuple[float, Request]] = field(default_factory=deque)
    _waiting: deque[Request] = field(default_factory=deque)
    _left: Counter[int] = field(default_factory=Counter)

    def run(self, requests: Iterable[Request], wanted: range) -> None:
        """Until the requests of those numbers are answered, or none is left."""
        coming = iter(requests)
        open_answers, following = len(wanted), next(coming, None)
        while open_answers and (following or self._running):
            arrival = following.arrival_seconds if following else float("inf")
            if self._running and self._next_end() <= arrival:
                open_answers -= self._finish() in wanted
                continue
            assert following is not None
            self._pass(max(arrival, self.now))
            self._left[following.number] = self.windows
            self._waiting.extend([following] * self.windows)
            self._admit()
            following = next(coming, None)

    def _next_end(self) -> float:
        latency = self.times.latency(len(self._running))
        return self.now + max(0.0, self._running[0][0] - self._done) * latency

    def _pass(self, until: float) -> None:
        if self._running:
            count = len(self._running)
            lasted = until - self.now
            self._done += lasted / self.times.latency(count)
            self.samples.append((self.now, lasted, count, len(self._waiting), 0))
        self.now = until

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self.settings.max_num_seqs:
            self._running.append((self._done + 1.0, self._waiting.popleft()))

    def _finish(self) -> int:
        """The window that was taken first ends; the number of its request where that was its
        last, else -1."""
        self._pass(self._next_end())
        _, request = self._running.popleft()
        self._admit()
        self._left[request.number] -= 1
        if self._left[request.number]:
            return -1
        seconds = self.now - request.arrival_seconds
        self.answers.append(
            Answer(
                request=request,
                first_seconds=seconds,
                decode_seconds=0.0,
                end_seconds=self.now,
                preempted=0,
            )
        )
        return request.number
