"""What new price lists would change in the catalogue, for a person who reviews it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpuplan.catalog.update.changes import Change, Review, Verdict
from gpuplan.plan.serialize import to_json
from gpuplan.render.text import COLUMNS, printable, wrapped
from gpuplan.units import plural, significant

SHOWN = 40  # rows of a kind


def text(review: Review, day: str) -> str:
    """Outliers first: they are what a person has to look at."""
    lines = [_sentence(review, day)]
    lines += _block("outliers, not taken without --accept-outliers", review.outliers)
    lines += _block("changed", [c for c in review.of("changed") if not c.odd])
    lines += _block("new", [c for c in review.of("new") if not c.odd])
    lines += _block("refused", review.of("refused"))
    lines += _block("older than what the catalogue has", review.of("older"))
    unknown = sorted({_machine(c) for c in review.of("unknown machine")})
    lines += _names("machines that the catalogue does not have", unknown)
    gone = [f"{p} {i} {r} {c}" for p, i, r, c in review.unlisted]
    lines += _names("no longer in the list, kept in the catalogue", gone)
    return "\n".join(lines) + "\n"


def tree(review: Review) -> Any:
    data: dict[str, Any] = to_json(review)
    data["counts"] = _counts(review)
    return data


def _counts(review: Review) -> dict[str, int]:
    kinds: tuple[Verdict, ...] = ("new", "changed", "same", "older", "unknown machine", "refused")
    counts: dict[str, int] = {kind: len(review.of(kind)) for kind in kinds}
    return counts | {"outliers": len(review.outliers)}


def _sentence(review: Review, day: str) -> str:
    counts = ", ".join(f"{n:,} {kind}" for kind, n in _counts(review).items() if n)
    return f"prices of {day}: {counts or 'none'}"


def _block(title: str, changes: Sequence[Change]) -> Iterator[str]:
    if not changes:
        return
    yield f"\n{title}"
    for change in changes[:SHOWN]:
        yield from (f"  {part}" for part in wrapped(printable(_words(change)), COLUMNS - 2))
    if len(changes) > SHOWN:
        yield f"  and {plural(len(changes) - SHOWN, 'other')}, with --json"


def _words(change: Change) -> str:
    quote = change.quote
    what = f"{quote.provider} {quote.instance} {quote.region}"
    what += " spot" if quote.capacity == "spot" else ""
    now = f"{quote.usd_per_hour.normalize():f} of {change.date}"
    was = ""
    if change.before is not None:
        was = f"{change.before.normalize():f} of {change.before_date} → "
    share = change.share
    percent = "" if share is None else f" ({'+' if share > 0 else ''}{significant(share * 100)} %)"
    odd = f": {'; '.join(change.odd)}" if change.odd else ""
    return f"{what}  {was}{now}{percent}{odd}"


def _machine(change: Change) -> str:
    return f"{change.quote.provider} {change.quote.instance}"


def _names(title: str, names: Sequence[str]) -> Iterator[str]:
    if not names:
        return
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    yield f"\n{title}"
    words = ", ".join(printable(n) for n in names[:SHOWN]) + more
    yield from (f"  {part}" for part in wrapped(words, COLUMNS - 2))
