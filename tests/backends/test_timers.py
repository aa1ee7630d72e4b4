"""Cron's fields as systemd's calendar, by its own reading of both."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuplan.backends.docker.timers import calendar
from tests.support.boxes import CHAT, TUNE, stack, text
from tests.support.require import require

CASES = {
    "0 3 * * *": ["*-*-* 3:0:00"],
    "*/15 8-18/2 * 1,6 *": ["*-1,6-* 8..18/2:0/15:00"],
    "30 4 * * 1-5": ["Mon,Tue,Wed,Thu,Fri *-*-* 4:30:00"],
    "30 4 * * 0": ["Sun *-*-* 4:30:00"],
    "30 4 * * 5-7": ["Sun,Fri,Sat *-*-* 4:30:00"],
    "30 4 * * 0-7": ["*-*-* 4:30:00"],
    "30 4 * * */2": ["Sun,Tue,Thu,Sat *-*-* 4:30:00"],
    "0 0 1 * 1": ["*-*-1 0:0:00", "Mon *-*-* 0:0:00"],
    "0 0 */2 * 1": ["Mon *-*-1/2 0:0:00"],
    "0 0 29 2 *": ["*-2-29 0:0:00"],
    "5-20/5 */6 1-7 */3 *": ["*-1/3-1..7 0/6:5..20/5:00"],
}


@pytest.mark.parametrize("schedule", CASES)
def test_a_schedule_is_a_calendar(schedule: str) -> None:
    assert list(calendar(schedule)) == CASES[schedule]


@pytest.mark.parametrize("schedule", CASES)
def test_systemd_reads_it(schedule: str) -> None:
    if shutil.which("systemd-analyze") is None:
        require("docker", "systemd-analyze is not installed")
    for moment in calendar(schedule):
        command = ["systemd-analyze", "calendar", "--iterations=3", moment]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Next elapse" in done.stdout


def test_what_recurs_has_a_timer_and_a_unit_that_waits_for_its_end(tmp_path: Path) -> None:
    tune = TUNE + "  schedule: '30 4 1 * 1'\n"
    manifest = text(CHAT, tune).replace("  target: docker\n", "  target: docker\n  quadlet: true\n")
    made = stack(tmp_path, manifest)
    for path in ("gpuplan-box-tune.timer", "quadlet/box-tune-0.timer"):
        lines = re.findall(r"^OnCalendar=(.*)$", (made / path).read_text("utf-8"), re.MULTILINE)
        assert lines == ["*-*-1 4:30:00", "Mon *-*-* 4:30:00"]
    unit = (made / "gpuplan-box-tune.service").read_text("utf-8")
    assert "ExecStart=/usr/bin/docker compose --profile tune up tune-0\n" in unit
    assert "Type=oneshot" in unit
    assert not list(made.glob("gpuplan-box-chat.*")), "what stays has none"
    readme = (made / "README.md").read_text("utf-8")
    assert 'sudo systemctl enable --now "$PWD/gpuplan-box-tune.timer"' in readme
