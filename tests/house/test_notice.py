"""NOTICE names every repository that a fact was taken from, and no other."""

from __future__ import annotations

import re

from tests.house.test_house import ROOT

REPOSITORY = re.compile(
    r'^[ #]+(?:repository: |"repository": ")([\w.-]+/[\w.-]+)"?,?(?:@.*)?$', re.M
)
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
