"""A replay in words: what was asked of the settings, what came of it, and how full they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.plan.replay import Replayed, ReplayedTime
from gpuplan.plan.times import TIMES
from gpuplan.units import format_quantity, significant

_BARS = " ▁▂▃▄▅▆▇█"


def text(replayed: Replayed) -> str:
    lines = [*_head(replayed), *_times(replayed), *_plot(replayed), _verdict(replayed)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _head(replayed: Replayed) -> Iterator[str]:
    seed = "" if replayed.seed is None else f", seed {replayed.seed}"
    yield f"{replayed.workload}   {replayed.arrivals}{seed}"
    count = f"{replayed.replicas} replicas" if replayed.replicas > 1 else "1 replica"
    cache = replayed.cache_tokens
    yield (
        f"  settings   {count}, each {replayed.max_num_seqs} sequences, "
        f"{replayed.max_num_batched_tokens:,} tokens a step{',' if cache else ''}"
    )
    if cache:
        yield f"             a cache of {cache:,} tokens"
    if replayed.arrived is None:
        wanted = f", wanted {significant(replayed.wanted)}" if replayed.wanted else ""
        rate = f"{significant(replayed.answered)} requests/s answered{wanted}"
    else:
        rate = (
            f"{significant(replayed.arrived)} requests/s arrive, "
            f"{significant(replayed.answered)} are answered"
        )
    yield f"  load       {rate}"
    yield f"  measured   {replayed.requests:,} requests in {_seconds(replayed.seconds)}"


def _times(replayed: Replayed) -> Iterator[str]:
    if not replayed.times:
        return
    heads = ("mean", "p50", "p95", "p99", "planned", "limit")
    yield f"  {'':<22}" + "".join(f"{h:>9}" for h in heads)
    for time in replayed.times:
        cells = [_seconds(v) for v in (time.mean, time.p50, time.p95, time.p99)]
        cells += ["–" if v is None else _seconds(v) for v in (time.planned, time.limit)]
        yield f"  {_named(time):<22}" + "".join(f"{c:>9}" for c in cells)


def _named(time: ReplayedTime) -> str:
    """With the statistic that plan and limit are about."""
    name = TIMES[time.name][0].removeprefix("time_to_").removeprefix("time_per_")
    return f"{name.replace('_', ' ')}, {time.statistic}"


def _plot(replayed: Replayed) -> Iterator[str]:
    """How many run and wait, from the first measured arrival to the last."""
    running = [m.running for m in replayed.moments]
    waiting = [m.waiting for m in replayed.moments]
    mean, most = significant(replayed.running_mean), replayed.running_most
    yield f"  running    {_bars(running, replayed.max_num_seqs)}"
    yield f"             {mean} on average, {most} at most, of {replayed.max_num_seqs} places"
    if replayed.waiting_most:
        top = max(*waiting, 1.0)
        yield f"  waiting    {_bars(waiting, top)}"
        yield f"             {replayed.waiting_most} at most"
    if replayed.preempted:
        yield f"  preempted  {replayed.preempted} times: the cache was full"


def _bars(values: Sequence[float], top: float) -> str:
    """Nothing is drawn where nothing is; whatever is there gets the lowest bar."""
    last = len(_BARS) - 1
    return "".join(_BARS[min(last, -int(-last * v // top)) if v > 0 else 0] for v in values)


def _verdict(replayed: Replayed) -> str:
    if not replayed.keeps_up and replayed.arrived is None:
        return "  too slow: it does not answer as many as are wanted"
    if not replayed.keeps_up:
        return "  too much: ever more requests wait"
    missed = [_named(t) for t in replayed.times if not t.kept]
    if missed:
        return f"  missed: {'; '.join(missed)}"
    accepted = [_named(t) for t in replayed.times if t.missed]
    if accepted:
        return f"  keeps up; an accepted miss: {'; '.join(accepted)}"
    kept = any(t.limit is not None for t in replayed.times)
    return "  keeps up" + (" and meets every objective" if kept else "")


def _seconds(value: float) -> str:
    return format_quantity(value, "s")
