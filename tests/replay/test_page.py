"""The page of a replay: what a reader sees, hears, and can open without a network."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gpuplan.cli.main import main

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "chat.html"
    arguments = ["replay", str(ROOT / "stacks/chat"), "--requests", "500", "--html", str(path)]
    assert main(arguments) == 0
    first = path.read_text(encoding="utf-8")
    assert main(arguments) == 0
    assert path.read_text(encoding="utf-8") == first
    return first


def test_every_chart_has_a_title_and_words(page: str) -> None:
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 6
    titles = []
    for text in charts:
        chart = ET.fromstring(text)
        title, words = (chart.find(name) for name in ("title", "desc"))
        assert title is not None
        assert words is not None
        assert chart.get("aria-labelledby") == f"{title.get('id')} {words.get('id')}"
        assert re.search(r"\d", words.text or "")
        titles.append(title.text)
    assert titles[0] == "Requests per second, all replicas"
    assert titles[3].startswith("Time to first token")


def test_percentiles_and_objectives_are_drawn(page: str) -> None:
    first = page[page.index("Time to first token") :]
    assert [f">p{n}<" in first for n in (50, 95, 99)] == [True] * 3
    assert "limit of p95 1.5 s" in first


def test_no_curve_leaves_its_chart(page: str) -> None:
    for path in re.findall(r' d="M([^"]*)"', page):
        for point in path.split("L"):
            if re.fullmatch(r"\d+ \d+", point):
                x, y = map(int, point.split())
                assert 0 <= x <= 540
                assert 0 <= y <= 250


def test_the_page_needs_nothing_else(page: str) -> None:
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)
    assert "prefers-color-scheme: dark" in page
