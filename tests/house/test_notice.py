"""NOTICE names every repository that a fact was taken from, and no other."""

from __future__ import annotations

import csv
import re

from tests.house.test_house import ROOT

REPOSITORY = re.compile(
    r'^[ #]+(?:repository: |"repository": ")([\w.-]+/[\w.-]+)"?,?(?:@.*)?$', re.M
)
MEASURED_BY = re.compile(r"\b([\w.-]+/[\w.-]+)@[0-9a-f]{7,40}\b")
NAMED = re.compile(r"^  ((?:[\w.-]+/[\w.-]+(?:, )?)+)", re.M)


def test_notice_names_the_sources() -> None:
    data = (ROOT / "gpuplan").rglob("data/**/*.yaml")
    models = (ROOT / "gpuplan/models").rglob("*.json")
    tables = (ROOT / "gpuplan/models").rglob("*.tsv")
    texts = (f.read_text("utf-8") for f in (*data, *models, *tables))
    cited = {name for text in texts for name in REPOSITORY.findall(text)}
    notice = (ROOT / "NOTICE").read_text("utf-8")
    named = {name for line in NAMED.findall(notice) for name in line.split(", ")}
    assert cited
    assert named == cited


def test_notice_names_who_measured() -> None:
    anchors = (ROOT / "gpuplan/sizing/data/anchors").glob("*.json")
    points = (ROOT / "bench/points").glob("*.csv")
    texts = [f.read_text("utf-8") for f in anchors]
    cited = {name for text in texts for name in MEASURED_BY.findall(text)}
    for path in points:
        with path.open(encoding="utf-8", newline="") as rows:
            cited |= {row["source_repo"] for row in csv.DictReader(rows)}
    notice = (ROOT / "NOTICE").read_text("utf-8")
    assert len(cited) > 20
    assert {n for n in cited if n not in notice and not n.startswith("mlcommons/")} == set()
