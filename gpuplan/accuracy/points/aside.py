"""Pages whose own figures say that their setting is not what was measured: set aside, as points of
confidence C are. Each for a reason that can be read at the source, whatever is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping

# The page, as `source_repo` and `source_path` name it, and what is wrong with it.
ASIDE = {
    (
        "sgl-project/sgl-cookbook",
        "docs/autoregressive/Moonshotai/Kimi-K2.5.md",
    ): "the same figures, to the digit, stand on the page of Kimi-K2.6, on H200 with SGLang "
    "0.5.9 where this page says 0.5.6.post2: of which model and release they are, nobody can tell "
    "(commit 7b5bd9c05e3d, read 2026-11-27; of all pages of that source only these two, and two "
    "of GLM that are not used, share figures)",
}


def aside(row: Mapping[str, str]) -> bool:
    """Whether a row is of such a page."""
    return (row.get("source_repo", ""), row.get("source_path", "")) in ASIDE
