"""A workload's emitted settings under a load: which requests come, what became of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from gpuplan.plan.model import Evidence, Workload, record
from gpuplan.plan.replay import Replayed, ReplayedTime
from gpuplan.plan.times import STATISTICS, TIMES, time_name
from gpuplan.replay.engine import Answer, Engine, Settings
from gpuplan.replay.moments import MOMENTS, Played, mean_running, moments, percentile, window
from gpuplan.replay.reading import ReadEngine, ReadTimes, Texts
from gpuplan.replay.requests import (
    Arrivals,
    Closed,
    Lengths,
    Open,
    Queued,
    Request,
    asked,
    first_asked,
    opened,
    thought,
)
from gpuplan.replay.sglang import PromptsFirst
from gpuplan.replay.speech import SpeechEngine, WindowTimes
from gpuplan.replay.steps import Derivations, EvidenceTimes, settings

REQUESTS = 4000  # that are measured
SEED = 1
ENGINES = {"vllm": Engine, "sglang": PromptsFirst}  # whose schedulers are played
READERS = ("vllm", "tei")  # that take what waits into their next step
DEVIATIONS = 2.27  # of the busiest second of a minute above the mean, as the sizing takes bursts

LoadName = Literal["peak", "mean", "limit"]


@record
class Load:
    """What is replayed: the load of that name, so many requests per second of all replicas, or the
    requests of a trace, in order of arrival."""

    name: LoadName = "peak"
    per_second: float | None = None
    trace: tuple[Request, ...] = ()
    requests: int = REQUESTS
    seed: int = SEED


def replay(workload: Workload, evidence: Iterable[Evidence], load: Load) -> Replayed | None:
    """None of a workload that serves no language model, by an engine that is not played, or by
    replicas of which none does both prefill and decode."""
    if workload.disaggregation is not None:
        return None
    known = Derivations(workload.name, evidence)
    scene = _scene(workload, known, load)
    if scene is None or (load.trace and isinstance(scene, _Hearing)):
        return None
    return scene.traced() if load.trace else scene.arriving()


def _scene(workload: Workload, known: Derivations, load: Load) -> _Scene | None:
    serving, engine = workload.serving, workload.engine.name
    if serving is None or workload.command:
        return None
    if serving.audio:
        return _Hearing(workload, known, load) if engine == "vllm" else None
    if "load.input_tokens.mean" not in known.entries:
        return None
    if serving.pooling:
        return _Reading(workload, known, load) if engine in READERS else None
    return _Scene(workload, known, load) if engine in ENGINES else None


class _Scene:
    """One workload, read."""

    def __init__(self, workload: Workload, known: Derivations, load: Load) -> None:
        self.workload, self.known, self.load = workload, known, load
        # What always has all that it can hold is recorded at its limit alone.
        expected = "limit." if workload.task == "batch" else ""
        self.settings, self.times = settings(workload, known), EvidenceTimes(known, expected)
        mean = ("load.input_tokens.mean", "load.input_tokens.p95")
        assert workload.serving is not None
        self.serving = workload.serving
        # Each stage of a pipeline, and each data-parallel group, has a batch of its own: as a
        # replica with its part of the cache.
        sizes = workload.parallelism
        self.ranks = sizes.pipeline_parallel_size * sizes.data_parallel_size
        self.lengths = Lengths(
            input_mean=known.value(mean[0]),
            input_p95=known.value(mean[1]),
            output_mean=known.value("load.output_tokens.mean"),
            output_p95=known.value("load.output_tokens.p95"),
            longest=workload.serving.max_model_len,
        )

    def arriving(self) -> Replayed:
        """Requests as the manifest says that they come, a share of them at one replica. Those that
        come before the replica has filled are not measured."""
        arrivals, count = self._arrivals(), self.load.requests
        life = self.known.value("limit.request_seconds")
        filling = 3 * self.known.value("limit.sequences")
        if isinstance(arrivals, Open):
            filling = min(filling, 3 * arrivals.per_second * life)
        first = math.ceil(filling) + 50
        engine = ENGINES[self.workload.engine.name](self.settings, self.times)
        if isinstance(arrivals, Closed):
            engine.again = _Again(arrivals, self.lengths, self.load.seed)
            requests: Iterable[Request] = first_asked(arrivals, self.lengths, self.load.seed)
        else:
            requests = opened(arrivals, self.lengths, self.load.seed)
        if isinstance(arrivals, Queued):
            # All wait from the start: those that are measured, and as many as fill it to the end.
            requests = islice(requests, 2 * first + count)
        engine.run(requests, range(first, first + count))
        return self._outcome([engine], range(first, first + count), self._described(arrivals))

    def traced(self) -> Replayed:
        """Each replica gets every so manieth request."""
        replicas, engines = self.workload.replicas * self.ranks, []
        for place in range(replicas):
            share = self.load.trace[place::replicas]
            engine = ENGINES[self.workload.engine.name](self.settings, self.times)
            engine.run(share, range(len(self.load.trace)))
            engines.append(engine)
        return self._outcome(engines, range(len(self.load.trace)), "trace")

    def _arrivals(self) -> Arrivals:
        known, replicas = self.known, self.workload.replicas * self.ranks
        if self.workload.task == "batch":
            return Queued()
        users = known.optional("load.concurrency.users")
        rate = self._rate()
        if users is not None and rate is None:
            think = known.optional("load.concurrency.think_time") or 0.0
            users *= known.optional("growth.factor") or 1.0
            return Closed(
                users=math.ceil(users / replicas),
                think_seconds=think,
                start_seconds=think + known.value("request_seconds"),
            )
        each = (known.value("sized_rate") if rate is None else rate) / replicas
        burst = known.optional("load.burst") or 1.0
        return Open(per_second=each, variation=max(1.0, each * ((burst - 1) / DEVIATIONS) ** 2))

    def _rate(self) -> float | None:
        """Requests per second of all replicas; None: what the plan is sized for."""
        if self.load.per_second is not None:
            return self.load.per_second
        if self.load.name == "limit":
            return self.known.value("requests_per_second")
        if self.load.name == "mean":
            return self.known.optional("load.requests_per_second.mean")
        return None

    def _described(self, arrivals: Arrivals) -> str:
        if isinstance(arrivals, Queued):
            return "all waiting from the start"
        if isinstance(arrivals, Closed):
            return f"{arrivals.users} users in a closed loop at each replica"
        return "Poisson arrivals" if arrivals.variation == 1 else "bursts as declared"

    @property
    def _as_sized(self) -> bool:
        load = self.load
        return not load.trace and load.per_second is None and load.name == "peak"

    def _outcome(self, engines: Sequence[Played], wanted: range, arrivals: str) -> Replayed:
        answers = [a for e in engines for a in e.answers if a.request.number in wanted]
        replicas = self.workload.replicas * self.ranks
        scale = replicas / len(engines)
        start, end = window(answers, queued=self.workload.task == "batch")
        seconds = max(end - start, 1e-9)
        within = sum(start < a.end_seconds <= end for e in engines for a in e.answers)
        queued = self.workload.task == "batch"
        shown = [s for e in engines for s in e.samples if start <= s[0] <= end]
        over_time = tuple(moments(engines[0], start, end, replicas))
        last = over_time[-MOMENTS // 10 :]
        return Replayed(
            workload=self.workload.name,
            arrivals=arrivals,
            seed=None if self.load.trace else self.load.seed,
            requests=len(answers),
            seconds=seconds,
            replicas=self.workload.replicas,
            max_num_seqs=self.serving.max_num_seqs,
            max_num_batched_tokens=self.settings.max_num_batched_tokens,
            cache_tokens=self.ranks * self.settings.blocks * self.settings.block_tokens,
            arrived=None if queued else len(answers) * scale / seconds,
            answered=within * scale / seconds,
            wanted=self.known.value("sized_rate") if self._as_sized else None,
            times=tuple(self._times(answers)),
            running_mean=mean_running(engines, start, end),
            running_most=max((s[2] for s in shown), default=0),
            waiting_most=max((s[3] for s in shown), default=0),
            waiting_last=sum(m.waiting for m in last) / max(len(last), 1),
            preempted=sum(a.preempted for a in answers),
            moments=over_time,
        )

    def _times(self, answers: Sequence[Answer]) -> Iterable[ReplayedTime]:
        """A batch is measured by its rate alone."""
        if self.workload.task == "batch":
            return
        longer = [a for a in answers if a.request.output_tokens > 1]
        tokens = sum(a.request.output_tokens - 1 for a in longer)
        yield from self._time("time_to_first_token", [a.first_seconds for a in answers])
        if longer:
            each = [a.decode_seconds / (a.request.output_tokens - 1) for a in longer]
            mean = sum(a.decode_seconds for a in longer) / tokens
            yield from self._time("time_per_output_token", each, mean)
        yield from self._time("request_latency", [a.latency_seconds for a in answers])

    def _time(
        self, time: str, seconds: list[float], mean: float | None = None
    ) -> Iterator[ReplayedTime]:
        """The plain statistic, and every other that the plan has an objective for."""
        ordered = sorted(seconds)
        curve = tuple(percentile(ordered, percent) for percent in range(101))
        metrics = {m.name: m for m in self.workload.metrics}
        for name in (time_name(time, statistic) for statistic in STATISTICS):
            if name in (time, *metrics):
                metric = metrics.get(name)
                yield ReplayedTime(
                    name=name,
                    mean=sum(ordered) / len(ordered) if mean is None else mean,
                    p50=curve[50],
                    p95=curve[95],
                    p99=curve[99],
                    curve=curve,
                    statistic=TIMES[name][1],
                    planned=(self.known.value(name) or None) if self._as_sized else None,
                    limit=None if metric is None else metric.limit,
                    accepted_miss=metric is not None and bool(metric.accepted_miss),
                )


class _Reading(_Scene):
    """A workload that reads texts and writes none."""

    def __init__(self, workload: Workload, known: Derivations, load: Load) -> None:
        self.workload, self.known, self.load = workload, known, load
        assert workload.serving is not None
        self.serving, self.ranks = workload.serving, 1
        self.settings = Settings(
            max_num_seqs=workload.serving.max_num_seqs,
            max_num_batched_tokens=workload.serving.max_num_batched_tokens,
            blocks=0,
            block_tokens=1,
        )
        self._read()

    def _read(self) -> None:
        self.lengths = Lengths(
            input_mean=self.known.value("load.input_tokens.mean"),
            input_p95=self.known.value("load.input_tokens.p95"),
            output_mean=1.0,
            output_p95=1.0,
            longest=self.serving.max_model_len + 1,
        )

    def arriving(self) -> Replayed:
        arrivals, count = self._arrivals(), self.load.requests
        assert not isinstance(arrivals, Closed)
        first = 50 + math.ceil(3 * self.settings.max_num_seqs / self._texts)
        requests: Iterable[Request] = opened(arrivals, self.lengths, self.load.seed)
        if isinstance(arrivals, Queued):
            requests = islice(requests, 2 * first + count)
        engine = self._engine()
        engine.run(requests, range(first, first + count))
        return self._outcome([engine], range(first, first + count), self._described(arrivals))

    def traced(self) -> Replayed:
        replicas, engines = self.workload.replicas, list[ReadEngine | SpeechEngine]()
        for place in range(replicas):
            engine = self._engine()
            engine.run(self.load.trace[place::replicas], range(len(self.load.trace)))
            engines.append(engine)
        return self._outcome(engines, range(len(self.load.trace)), "trace")

    @property
    def _texts(self) -> int:
        return self.serving.texts or 1

    def _engine(self) -> ReadEngine | SpeechEngine:
        texts = Texts(count=self._texts, lengths=self.lengths, seed=self.load.seed)
        return ReadEngine(self.settings, ReadTimes(self.known), texts)

    def _times(self, answers: Sequence[Answer]) -> Iterable[ReplayedTime]:
        if self.workload.task != "batch":
            yield from self._time("request_latency", [a.latency_seconds for a in answers])


class _Hearing(_Reading):
    """A workload that writes down audio: all requests bring as many windows."""

    def _read(self) -> None:
        heard = self.known.value("load.audio")
        self.lengths = Lengths(
            input_mean=heard, input_p95=heard, output_mean=1.0, output_p95=1.0, longest=10**9
        )

    @property
    def _texts(self) -> int:
        return int(self.known.value("windows"))

    def _engine(self) -> SpeechEngine:
        return SpeechEngine(self.settings, WindowTimes(self.known), self._texts)


class _Again:
    """What a closed loop's users ask next; numbers go on from their first requests."""

    def __init__(self, arrivals: Closed, lengths: Lengths, seed: int) -> None:
        self.arrivals, self.lengths, self.seed = arrivals, lengths, seed
        self.number = arrivals.users

    def __call__(self, _: Request, now: float) -> Request:
        number, self.number = self.number, self.number + 1
        seconds = now + thought(self.arrivals, self.seed, number)
        return asked(self.lengths, self.seed, number, seconds)
