"""Outputs as people paste them: whatever a terminal, a mail or a log put around the lines, the
facts are those of the output itself. Every sample of every reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuplan.inventory.facts import Subject, Value
from gpuplan.inventory.pasted import plain
from gpuplan.inventory.readers.registry import likely
from gpuplan.source import SourceDocument
from tests.inventory import test_readers_texts

TREES = Path(__file__).parent / "inventory_samples" / "trees"
SAMPLES = test_readers_texts.everything() | {p.stem: p.read_text("utf-8") for p in TREES.iterdir()}
# One line that nothing tells from a sentence of a log.
ALONE = {"cmdline-2x-rtx4090"}


def each(before: str, behind: str = "") -> Callable[[str], str]:
    return lambda text: "".join(f"{before}{row}{behind}\n" for row in text.split("\n"))


def wrapped(width: int) -> Callable[[str], str]:
    def rows(line: str) -> list[str]:
        return [line[i : i + width] for i in range(0, len(line), width)] or [""]

    return lambda text: "\n".join(row for line in text.split("\n") for row in rows(line))


AROUND = {
    "indented by a blank": each(" "),
    "indented by a tab": each("\t"),
    "quoted in a mail": each("> "),
    "with the times of a log": each("2026-01-05T10:00:00.123Z "),
    "coloured": each("\x1b[1;32m", "\x1b[0m"),
    "with blanks at the ends": each("", "  "),
    "of Windows": lambda text: "\ufeff" + text.replace("\n", "\r\n"),
    "from a web page": lambda text: text.replace("  ", "\u00a0 "),
    "between prompts": lambda text: f"root@node7:~# command -x\n{text}\nroot@node7:~# ",
    "in a shell of another kind": lambda text: f"[ops@n1 ~]$ a | b\n{text}\n[ops@n1 ~]$ exit\n",
}


def facts(text: str) -> set[tuple[Subject, str, Value]]:
    shown = plain(text)
    document = SourceDocument("document", shown)
    readings = [r for i in likely(shown) if i.recognises(shown) for r in i.read(document)]
    return {(f.subject, f.attribute, f.value) for r in readings for f in r.facts}


@pytest.mark.parametrize("name", sorted(AROUND))
def test_what_stands_around_every_line_changes_no_fact(name: str) -> None:
    for sample, text in SAMPLES.items():
        if sample not in ALONE:
            assert facts(AROUND[name](text)) == facts(text), sample


@pytest.mark.parametrize("sample", sorted(s for s in SAMPLES if s.startswith("lspci")))
@pytest.mark.parametrize("width", [80, 100, 132])
def test_a_listing_that_a_terminal_wrapped_is_one_again(sample: str, width: int) -> None:
    """But for a row whose rest begins with a blank: a name may be cut there."""
    whole, found = facts(SAMPLES[sample]), facts(wrapped(width)(SAMPLES[sample]))
    assert {fact[:2] for fact in found} <= {fact[:2] for fact in whole}
    assert len(found - whole) <= len(whole) // 20
    assert all(attribute in {"product", "pci_id"} for _, attribute, _ in whole - found)


def test_lines_keep_their_numbers() -> None:
    assert plain("  a\n\n    b\n  c") == "a\n\n  b\nc"
    assert plain("> a\n>\n> b") == "a\n\nb"
    assert plain("  a\n\tb") == "  a\n\tb"
