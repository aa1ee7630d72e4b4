"""`gpuplan accuracy`: predictions held against measurements."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuplan.cli.common import Progress, add_json, print_json, report_problems, write_text

EPILOG = """\
examples:
  gpuplan accuracy measured.csv
  gpuplan accuracy measured.csv --predictions out.csv --markdown accuracy.md

A row is one measurement: model, hf_id, gpu, engine, precision, metric, value, unit, and the setting
(n_gpus, tp, input_len, output_len, batch, …). Metrics that are predicted: tpot and ttft (ms, closed
loop), tokens_per_s_per_gpu, step_time (s), peak_gpu_memory_train, mlperf_offline_samples_per_s. A
prediction never sees the measured value.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="CSV", help="measured points")
    parser.add_argument("--predictions", metavar="FILE", help="write one row for each row read")
    parser.add_argument("--markdown", metavar="FILE", help="write the scores as Markdown")
    parser.add_argument("--csv", metavar="FILE", help="write the scores as CSV")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.accuracy import write
    from gpuplan.accuracy.points import read_points
    from gpuplan.accuracy.predict import predict
    from gpuplan.accuracy.score import left_out, scores
    from gpuplan.errors import Rejected
    from gpuplan.plan.serialize import to_tree

    progress = Progress()
    try:
        points = read_points(options.files)
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, as_json=options.json)
    progress(f"predicting {len(points)} points")
    pairs = [(point, predict(point)) for point in points]
    progress.done()
    found, reasons = list(scores(pairs)), left_out(pairs)
    files = (
        (options.predictions, write.predictions_csv(pairs)),
        (options.markdown, write.markdown(found, reasons)),
        (options.csv, write.scores_csv(found)),
    )
    failed = [write_text(text, file) for file, text in files if file]
    if problems := [p for p in failed if p]:
        return report_problems(problems, as_json=options.json)
    if options.json:
        listed = [{"reason": reason, "count": count} for reason, count in reasons]
        print_json({"scores": [to_tree(s) for s in found], "not_predicted": listed})
    else:
        print(write.table(found, reasons), end="")
    return 0
