"""docs/accuracy.md and its plots, from the measured points that the bundled anchors are made of.

    python -m gpuplan.accuracy.document CSV... --to docs

Every point is predicted without its own group: see `validate.without`.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gpuplan.accuracy.fit.validate import without
from gpuplan.accuracy.metrics.serving_priors import QUEUED_MILLISECONDS
from gpuplan.accuracy.points.aside import ASIDE, DRAFTED, TABLE, UNPLANNED, Runs
from gpuplan.accuracy.points.divided import WHY
from gpuplan.accuracy.points.points import Point, read_points
from gpuplan.accuracy.predict import PRIORS, function, rests
from gpuplan.accuracy.show.plot import scatter
from gpuplan.accuracy.show.score import (
    QUEUED,
    Predicted,
    Score,
    label,
    left_out,
    score,
    scores,
)
from gpuplan.accuracy.show.write import cell
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors

Answers = list[tuple[Point, Estimate]]


class Metric(NamedTuple):
    planned: bool
    name: str


WAYS = ("group", "model", "gpu", "generation", "source")  # the last one of the table, too
# Sections whose tables others made, beside the page.
AGAIN = "Constants fitted again"
BESIDE = {
    AGAIN: ("refitted.md", "refitted_rates.md"),
    "After own measurements": ("refitted_own.md",),
    "Points that came later": ("arrived.md",),
    "How far two sources are apart where they measured the same": ("apart.md", "apart_rates.md"),
    "Beside a peer": ("peers.md",),
}
WORST_GROUPS, WORST_POINTS = 12, 20
LEAST = 5  # points of a group that may be called worst
LISTED = 10  # points of a group that has a line
HEAD = """# How far off the predictions are

Made by `make accuracy` from {count} public measurements (read 2026-11-23 to 27; each names its
repository and commit). `gpuplan accuracy CSV…` does the same with yours.

Points of confidence C are neither learnt from nor scored: what their source leaves open could be
most of the difference. Among them are those that name no release of their engine, since a plan
names one (`bench/points/served_public.csv`: gpt-oss-20b was up to 2.5 times slower than predicted
there, on a B200).

{aside}

{divided}

A prediction has two layers: formulas, and a correction by the measured points near it. **Here no
point is predicted with the help of its own run**: points of one `split_group` go together, and so
do twins, one value under two names of a model or two divisions of the GPUs. Each column answers
another question:

| column | what was taken away | read it where |
|---|---|---|
| own run | the point's run | somebody whose points are known measured your model on your GPU |
| model | all points of its model | your model is new |
| GPU | all points of its GPU | your GPU is new |
| generation | all points of its GPU's generation | nobody measured GPUs of that generation |
| source | all points of who measured it | **you measure at home what others measured elsewhere** |

A cell is `median % / 90th percentile % / covered %` of the absolute error relative to the
measurement; bias is the median signed error; *covered* is the part of the measurements inside the
printed interval, which is made to hold 90 %. A source that has more than half of a metric's points
is not left out, since little would be left: `n` of the last column counts the others, `–` is none.

The constants of the formulas were fitted on all these points, also on those that a column takes
away: {refitted}
"""
RUNS = """And runs of InferenceX in `{table}` that drafted tokens, or may have, which that table
does not say and plans do not do, by InferenceX's own nvidia-master.yaml:"""
OTHERWISE = "And runs with a setting that no plan writes:"
SHOWN = """the table *constants fitted again* shows what that hides. It has no points of several
GeForce GPUs: their exchanges are known from two sources, which two constants are fitted on."""
NOT_SHOWN = "on new sources expect up to twice the medians and three times the 90th percentiles."
PLANNED = """## What plans rest on

`compile` sizes with the functions named here, corrected by the same points.
"""
PREDICTED = """## What is only predicted

No plan rests on these; they say how far the ways of measuring reach.
"""


def answered(pairs: Iterable[Predicted]) -> Answers:
    return [(p, e) for p, e in pairs if isinstance(e, Estimate) and p.confidence != "C"]


def set_aside() -> str:
    pages = [f"`{repo}` {path}: {why}" for (repo, path), why in ASIDE.items()]
    told = f"So are pages of one source that contradict each other: {'; '.join(pages)}."
    drafted = _filled(RUNS.format(table=TABLE)), _listed(DRAFTED)
    return "\n\n".join((_filled(told), *drafted, OTHERWISE, _listed(UNPLANNED)))


def _listed(runs: Runs) -> str:
    return "\n".join(_filled(f"- {_named(run)}: {why}", indent="  ") for run, why in runs)


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _named(run: Mapping[str, Sequence[str]]) -> str:
    """A kind of run: the values of its columns, layouts by the columns' names."""
    parts = (
        f"{column.upper()}{values[0]}" if column in ("tp", "ep") else " and ".join(values)
        for column, values in run.items()
    )
    return " ".join(parts)


def page(
    points: Sequence[Point], by_way: dict[str, list[Predicted]], beside: Mapping[str, str]
) -> str:
    """`beside`: the text of each section of `BESIDE` that there is."""
    said = SHOWN if beside.get(AGAIN) else NOT_SHOWN
    told = _filled(f"Other runs of InferenceX's table are taken for what they were. {WHY}")
    head = HEAD.format(count=len(points), refitted=said, aside=set_aside(), divided=told)
    parts = [head, overview(by_way)]
    for title in BESIDE:
        parts += [f"## {title}\n", beside[title]] if beside.get(title) else []
    parts += [
        f"## By kind, GPU, engine and model, from {LISTED} points on\n",
        groups(by_way["group"]),
    ]
    parts += ["## Where it is worst\n", worst_groups(by_way["group"]), worst(by_way["group"])]
    parts += ["## What is not predicted\n", reasons(by_way["group"])]
    return "\n".join(parts)


def overview(by_way: dict[str, list[Predicted]]) -> str:
    """Two tables: of metrics that plans rest on, and of those that are only predicted."""
    whole = {way: _by_metric(pairs) for way, pairs in by_way.items()}
    keys = sorted(whole["group"], key=lambda key: (not key.planned, key.name))
    parts: list[str] = []
    for planned, words in ((True, PLANNED), (False, PREDICTED)):
        rows = (_row(key, whole) for key in keys if key.planned == planned)
        parts += [words, "\n".join((*_OVERVIEW, *rows)), ""]
        parts += [waiting(by_way) + "\n"] if planned else []
    return "\n".join(parts)


_OVERVIEW = (
    "| metric | by | n | bias | own run | model | GPU | generation | source | its n |",
    "|---|---|" + "---:|" * 8,
)


def waiting(by_way: Mapping[str, Sequence[Predicted]]) -> str:
    """First tokens that are predicted to wait: the row of the table has those that did wait."""
    first = {
        way: [(p, e) for p, e in answered(by_way[way]) if rests(p) and p.metric == "ttft"]
        for way in ("group", "source")
    }
    said = {way: [a for a in pairs if _waits(a)] for way, pairs in first.items()}
    measured = [pair for pair in first["group"] if label(pair[0]) == QUEUED]
    if not measured or not said["group"]:
        return ""
    key, foreseen = Metric(planned=True, name=QUEUED), sum(map(_waits, measured))
    return _filled(
        f"Points of *{QUEUED}* are chosen by what was measured, so among them is every server that "
        f"had just been started. {foreseen} of the {len(measured)} are predicted over 3 s too. Of "
        f"the {len(said['group'])} that are predicted so, which is what the reader of a plan sees, "
        f"it is {_cell(said['group'], key)} without their own run, and "
        f"{_cell(said['source'], key)} without their source."
    )


def _waits(answer: tuple[Point, Estimate]) -> bool:
    """Whether it is predicted to."""
    return answer[1].value > QUEUED_MILLISECONDS


def _row(key: Metric, whole: Mapping[str, Mapping[Metric, Answers]]) -> str:
    answers = whole["group"][key]
    own = score(answers, key.name, planned=key.planned)
    by = function(answers[0][0].metric, planned=key.planned)
    cells = [f"[{cell(key.name)}](accuracy/{file_name(key)})", f"`{by}`", str(own.count)]
    cells.append(f"{own.bias:+.1%}")
    judged = _of_minorities(whole["source"][key])
    cells += [_cell(whole[way][key], key) for way in WAYS[:-1]]
    return f"| {' | '.join([*cells, _cell(judged, key), str(len(judged))])} |"


def _cell(answers: Answers, key: Metric) -> str:
    if not answers:
        return "–"
    scored = score(answers, key.name, planned=key.planned)
    share = "–" if scored.covered is None else f"{100 * scored.covered:.0f}"
    return f"{100 * scored.error:.1f} / {100 * scored.ninety:.1f} / {share}"


def _of_minorities(answers: Answers) -> Answers:
    """The points of those who measured no more than half of them."""
    count = Counter(point.repository for point, _ in answers)
    return [pair for pair in answers if 2 * count[pair[0].repository] <= len(answers)]


def groups(pairs: Sequence[Predicted]) -> str:
    return _table(s for s in scores(answered(pairs)) if s.category and s.count >= LISTED)


def worst_groups(pairs: Sequence[Predicted]) -> str:
    listed = [s for s in scores(answered(pairs)) if s.category and s.count >= LEAST]
    return _table(sorted(listed, key=lambda s: (-s.error, s.metric, s.group))[:WORST_GROUPS])


def worst(pairs: Sequence[Predicted]) -> str:
    """The points that are farthest off, one of each group."""
    ranked = sorted(answered(pairs), key=lambda x: (-abs(_log(x)), x[0].identifier))
    seen: set[str] = set()
    lines = [
        "| metric | measured | predicted | interval | setting | source |",
        "|---|---:|---:|---:|---|---|",
    ]
    for point, answer in ranked:
        if point.group not in seen and len(seen) < WORST_POINTS:
            seen.add(point.group)
            cells = (
                label(point),
                f"{point.value:.4g}",
                f"{answer.value:.4g}",
                f"{answer.low:.4g} … {answer.high:.4g}",
                point.group,
                point.source,
            )
            lines.append(f"| {' | '.join(map(cell, cells))} |")
    return "\n".join(lines) + "\n"


def reasons(pairs: Sequence[Predicted]) -> str:
    lines = ["| because | n |", "|---|---:|"]
    lines += [f"| {cell(reason)} | {count} |" for reason, count in left_out(pairs)]
    return "\n".join(lines) + "\n"


def plots(pairs: Sequence[Predicted]) -> dict[str, str]:
    """SVG by file name, one for each metric."""
    return {
        file_name(key): scatter(key.name.replace("_", " "), _unit(answers), answers)
        for key, answers in _by_metric(pairs).items()
    }


def file_name(key: Metric) -> str:
    return f"{key.name.replace(' ', '-')}{'' if key.planned else '-only-predicted'}.svg"


def _by_metric(pairs: Iterable[Predicted]) -> dict[Metric, Answers]:
    by_metric: dict[Metric, Answers] = defaultdict(list)
    for point, answer in answered(pairs):
        by_metric[Metric(rests(point), label(point))].append((point, answer))
    return by_metric


def _unit(answers: Answers) -> str:
    case = answers[0][0].case
    return "" if isinstance(case, str) else case.row["unit"]


def _log(pair: tuple[Point, Estimate]) -> float:
    return math.log(pair[1].value / pair[0].value)


def _table(scored: Iterable[Score]) -> str:
    lines = [
        "| metric | by | group | n | MdAPE | P90 | bias | covered |",
        "|---|---|---|" + "---:|" * 5,
    ]
    lines += [
        f"| {cell(s.metric)} | {s.category} | {cell(s.group)} | {s.count} | {s.error:.1%} "
        f"| {s.ninety:.1%} | {s.bias:+.1%} | {_share(s)} |"
        for s in scored
    ]
    return "\n".join(lines) + "\n"


def _share(score: Score) -> str:
    return "–" if score.covered is None else f"{score.covered:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--to", type=Path, required=True)
    options = parser.parse_args()
    points = read_points(options.files)
    anchored = {quantity: Anchors()(quantity) for quantity in PRIORS}  # of these very points
    by_way = {way: without(points, way, anchored) for way in WAYS}
    folder = options.to / "accuracy"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in plots(by_way["group"]).items():
        (folder / name).write_text(text, encoding="utf-8")
    beside = {title: _text(folder / name for name in names) for title, names in BESIDE.items()}
    (options.to / "accuracy.md").write_text(page(points, by_way, beside), encoding="utf-8")


def _text(paths: Iterable[Path]) -> str:
    return "\n".join(path.read_text("utf-8") for path in paths if path.exists())


if __name__ == "__main__":
    main()
