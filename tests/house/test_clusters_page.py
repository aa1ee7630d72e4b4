"""docs/clusters.md: each piece of a manifest on it compiles, and does what stands beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuplan.pipeline import compile_files

PAGE = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text(encoding="utf-8")
PIECES = re.findall(r"```yaml\nplatform:\n(.*?)```", PAGE, re.DOTALL)
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: chat
platform:
  target: kubernetes
  gpus: [l40s]
{piece}
workloads:
- name: assistant
  task: inference
  model: Qwen/Qwen3-8B
  load: {{requests_per_second: 1, input_tokens: 500, output_tokens: 100}}
"""


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_of_the_page_compiles(piece: str, tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(MANIFEST.format(piece=piece.rstrip()), encoding="utf-8")
    result = compile_files([path])
    assert result.stacks, [p.message for p in result.problems]
    plan = result.stacks[0].plan
    assert plan.network or plan.kubernetes_version == "1.34"


def test_the_page_shows_all_three() -> None:
    assert len(PIECES) == 3
