"""`gpuplan accuracy`: predictions held against measurements, and anchored on them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import Progress, add_json, print_json, report_problems, say, write_text

if TYPE_CHECKING:
    from gpuplan.accuracy.points.points import Point
    from gpuplan.accuracy.show.score import Predicted
    from gpuplan.sizing.calibration.anchors import Anchors

WAYS = ("group", "model", "gpu", "generation", "source")
EPILOG = """\
examples:
  gpuplan accuracy measured.csv
  gpuplan accuracy measured.csv --predictions out.csv --markdown accuracy.md
  gpuplan accuracy measured.csv --calibrate anchors/
  gpuplan accuracy measured.csv --leave-out model

A row is one measurement: model, hf_id, gpu, engine, precision, metric, value,
unit, and its setting (n_gpus, tp, input_len, output_len, batch, …); one of
images_per_s also has the column kind: training or inference; one of a server
may have kv_cache_dtype: auto or fp8, which public runs have beside fp8 weights,
and output_lengths: equal, where all answers have one length (random data with
ignore_eos, every answer as long as max_tokens), so that clients of a closed
loop go in step and their prompts wait for each other; else spread.
A prediction never sees the measured value of its row; it may rest on bundled
public measurements, its anchors. --calibrate writes anchors that rest on your
rows as well: give their folder to --anchors, or name it under 'calibration' in
a manifest. The column source_repo says who measured; leave it empty for
yourself: what you measured then moves the predictions of your other models and
GPUs, too.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="CSV", help="measured points")
    parser.add_argument("--predictions", metavar="FILE", help="write one row for each row read")
    parser.add_argument("--markdown", metavar="FILE", help="write the scores as Markdown")
    parser.add_argument("--csv", metavar="FILE", help="write the scores as CSV")
    parser.add_argument(
        "--anchors", type=Path, metavar="DIR", help="anchors instead of the bundled"
    )
    parser.add_argument(
        "--leave-out",
        choices=WAYS,
        help="score each point by the other rows: without its split_group, model, GPU, the GPU's "
        "generation or its source",
    )
    parser.add_argument("--calibrate", type=Path, metavar="DIR", help="write anchors")
    parser.add_argument(
        "--alone", action="store_true", help="anchors of these rows, without the bundled points"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.accuracy.points.points import read_points
    from gpuplan.accuracy.predict import anchored
    from gpuplan.accuracy.show import write
    from gpuplan.accuracy.show.score import left_out, scores
    from gpuplan.errors import Rejected
    from gpuplan.plan.serialize import to_tree

    progress = Progress()
    try:
        points = read_points(options.files)
        progress(f"predicting {len(points)} points")
        if options.calibrate:
            _calibrate(points, options.calibrate, alone=options.alone)
        anchors = _anchors(options.anchors)
        pairs = _predicted(points, anchors, options.leave_out)
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, as_json=options.json)
    finally:
        progress.done()
    scored, reasons = list(scores(pairs)), left_out(pairs)
    files = (
        (options.predictions, write.predictions_csv(pairs)),
        (options.markdown, write.markdown(scored, reasons)),
        (options.csv, write.scores_csv(scored)),
    )
    failed = [write_text(text, file) for file, text in files if file]
    if problems := [p for p in failed if p]:
        return report_problems(problems, as_json=options.json)
    own = 0 if options.leave_out else anchored(points, anchors)
    if options.json:
        listed = [{"reason": reason, "count": count} for reason, count in reasons]
        tree = [to_tree(s) for s in scored]
        print_json({"scores": tree, "not_predicted": listed, "anchors": own})
    else:
        say(write.table(scored, reasons), end="")
        say(write.flattered(own), end="")
    return 0


def _anchors(folder: Path | None) -> Anchors:
    from gpuplan.resolve.calibration import folder_anchors
    from gpuplan.sizing.calibration.anchors import Anchors

    return folder_anchors(folder)[0] if folder else Anchors()


def _predicted(points: Sequence[Point], anchors: Anchors, way: str | None) -> list[Predicted]:
    if way:
        from gpuplan.accuracy.fit.validate import fields, without

        return without(points, way, fields(points, alone=True))
    from gpuplan.accuracy.predict import predict

    return [(point, predict(point, anchors)) for point in points]


def _calibrate(points: Sequence[Point], folder: Path, *, alone: bool) -> None:
    """Write a file for each quantity that the points measure. Raises `Rejected`."""
    from gpuplan.accuracy.fit.anchor_file import write_fields
    from gpuplan.accuracy.fit.validate import fields

    write_fields(fields(points, alone=alone), folder)
