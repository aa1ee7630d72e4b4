"""How runs of InferenceX were divided over their GPUs, where a table says something else."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuplan.accuracy.points.aside import TABLE, is_of

# For docs/accuracy.md, too.
WHY = (
    "The dumps of InferenceX's database that this table was made from since 2026-04-06 have "
    "products where runs had factors: `{tp: 4, ep: 4}` stands there as 4 times 4 ranks of "
    "attention and 16 of experts, or as 16 and 4. No run had that: the names of the table's own "
    "rows say tp4_ep4, as does every version of nvidia-master.yaml, and its scripts start servers "
    "on `tp` GPUs of one machine (2026-03-25 to 2026-04-27, read 2026-11-28). No script passed "
    "`--enable-expert-parallel` for Kimi-K2.5 in FP4 on vLLM 0.17.0, whatever the line said."
)
_DUMPED = re.compile(r"2026_04_06_|.*_cfg(\d+)$")
# Runs of vLLM whose line says `dp-attn: true`, which its dump tells from others by these numbers:
# minimaxm2.5-fp4-b200-vllm, -fp4-b300-vllm and -fp8-b300-vllm of commit 41ed82dc1, by their loads.
_ATTENTION_APART = ("707", "727", "827")
# By benchmarks/single_node/kimik2.5_fp4_b200.sh and _b300.sh of commits a58dedd5a to f34a83b25.
_EXPERTS_WHOLE = {"model": ("kimi-k2.5",), "precision": ("fp4",), "engine": ("vllm 0.17.0",)}


def divided(row: Mapping[str, str]) -> Mapping[str, str]:
    """The row with the division that was run; rows of other tables, and those of whose numbers
    nothing follows, as they are."""
    if row.get("source_path") != TABLE:
        return row
    dumped = _DUMPED.match(row.get("locator", ""))
    told = {**row, **_run(row, dumped[1])} if dumped else row
    return {**told, "ep": "1"} if is_of(row, _EXPERTS_WHOLE) else told


def _run(row: Mapping[str, str], configured: str | None) -> Mapping[str, str]:
    """GPUs, and ranks of a replica's attention and experts; {} of a row that says them."""
    try:
        gpus, tensor, experts, data = (int(row[column]) for column in ("n_gpus", "tp", "ep", "dp"))
    except ValueError:
        return {}
    if experts <= 1 or gpus % experts:
        return {}
    if not row["engine"].startswith("vllm"):
        tensor, apart = gpus // experts, data > 1
    elif data > 1:
        experts, apart = data, configured in _ATTENTION_APART
    else:
        return {}
    attention = {"tp": 1, "dp": tensor} if apart else {"tp": tensor, "dp": 1}
    return {
        name: str(count) for name, count in ({"n_gpus": tensor, "ep": experts} | attention).items()
    }
