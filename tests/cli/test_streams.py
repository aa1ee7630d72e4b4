"""Streams that are closed or full, names that are no text, and mistakes of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHAT = ROOT / "stacks" / "chat"
RUN = "import sys; sys.argv[0] = 'gpuplan'; from gpuplan.__main__ import run; run()"


def ran(*arguments: str | bytes | Path, shell: str = "", code: str = RUN) -> tuple[int, str]:
    """The exit code and what is said on stderr; `shell` redirects streams."""
    command = [sys.executable, "-c", code, *map(os.fsencode, arguments)]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    return done.returncode, done.stderr.decode("utf-8", "replace")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("shell", "code"),
    [(">&-", 0), ("2>&-", 0), ("<&-", 0), (">/dev/full", 2), ("2>/dev/full", 0), (">&- 2>&-", 0)],
)
def test_a_stream_that_takes_nothing_is_no_bug(shell: str, code: int) -> None:
    returned, said = ran("explain", CHAT, shell=shell)
    assert returned == code
    assert "Traceback" not in said
    assert "mistake in gpuplan" not in said
    returned, said = ran("explain", CHAT / "nothing", shell=shell)
    assert returned == 2
    assert "Traceback" not in said


def test_an_exception_is_our_mistake_with_a_line_to_report() -> None:
    broken = "import gpuplan.cli.explain as e; e.run = lambda _: {}['secret words']; " + RUN
    code, said = ran("explain", CHAT, code=broken)
    assert code == 3
    assert "this is a mistake in gpuplan, not in your input" in said
    assert "explain: KeyError at main.py:" in said
    assert "Traceback" not in said
    assert "secret words" not in said, "the input is the user's to send"


def test_names_that_are_no_utf_8_are_names(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(folder)  # noqa: PTH102
    except (OSError, UnicodeError):
        pytest.skip("this file system takes UTF-8 alone")
    manifest = folder + b"/\xe9.yaml"
    Path(os.fsdecode(manifest)).write_bytes((ROOT / "examples" / "chat.yaml").read_bytes())
    assert ran("compile", manifest, "-o", folder + b"/out")[0] == 0
    Path(os.fsdecode(folder + b"/out/chat/\xe9.txt")).write_bytes(b"mine")
    report = tmp_path / "report.sarif"
    for arguments in (
        ("compile", manifest, "-o", folder + b"/out"),
        ("check", folder + b"/out", "--output", f"sarif={report}", "--output", "json"),
        ("explain", folder + b"/out/chat"),
        ("diff", folder + b"/out", folder + b"/out", "-o", str(tmp_path / "diff.md")),
        ("pack", manifest, "--json"),
    ):
        code, said = ran(*arguments)
        assert code == 0, said
    assert report.stat().st_size
