"""Pages of a source that contradict each other: set aside, as points of confidence C are. Each for
a reason that can be read at the source, whatever is predicted; docs/accuracy.md also shows what is
left with them.
"""

from __future__ import annotations

from collections.abc import Mapping

# The page, as `source_repo` and `source_path` name it, and what is wrong with it.
ASIDE = {
    (
        "sgl-project/sgl-cookbook",
        "docs/autoregressive/Moonshotai/Kimi-K2.5.md",
    ): "the page of Kimi-K2.6 prints the same figures to the digit, on H200 as measured with K2.5 "
    "but under SGLang 0.5.9 where this page says 0.5.6.post2, and on MI350X as K2.6's own: "
    "which release, and which model, was measured is not known (commit 7b5bd9c05e3d, read "
    "2026-11-27)",
}


def aside(row: Mapping[str, str]) -> bool:
    """Whether a row is of such a page."""
    return (row.get("source_repo", ""), row.get("source_path", "")) in ASIDE
