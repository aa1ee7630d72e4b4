"""A plan that refers to what it does not hold is refused by every verb that reads it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.torture.readers import ROOT
from gpuplan.cli.main import main
from gpuplan.plan.outside.pins import of_lock

POOL = "l40s-x1"


ORDER = (f"  - pool: {POOL}\n", "the order of AWS")
WORK = (f"  node_pool: {POOL}\n", "'assistant'")
READ = [(verb, *change) for verb in ("check", "cost", "replay", "lock") for change in (ORDER, WORK)]


@pytest.mark.parametrize(("verb", "line", "referrer"), [("explain", *ORDER), *READ])
def test_a_reference_to_nothing_is_named(
    verb: str, line: str, referrer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = tmp_path / "chat"
    shutil.copytree(ROOT / "stacks" / "chat", stack)
    plan = stack / "plan.yaml"
    text = plan.read_text("utf-8")
    assert line in text
    plan.write_text(text.replace(line, line.replace(POOL, "gone")), "utf-8")
    assert main([verb, str(stack)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "GP952" in said
    assert f"{referrer} refers to 'gone'" in said


def test_a_row_of_an_earlier_lock_without_its_name_knows_nothing() -> None:
    digest = f"sha256:{'0' * 64}"
    rows = [{"digest": digest}, {"image": "a:1", "digest": digest}]
    known = of_lock({"images": rows, "charts": [{"name": "x", "digest": digest}]})
    assert known["image", "a:1"] == digest
    assert ("chart", "x") not in known
