"""A host that nobody can plan is left out with a warning; the others are planned as without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.cli.main import main

HOST = """\
- names: [{names}]
  cpu_cores: 64
  memory: 768 GiB
  price: $20/h
  gpus:
  - {{type: {gpu}, count: 8}}
"""
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: shop
platform: {target: kubernetes, inventory: rack.yaml}
workloads:
- name: chat
  task: inference
  model: Llama-3.1-8B-Instruct
  load: {requests_per_second: 2, input_tokens: 500, output_tokens: 200}
"""


def rack(folder: Path, **hosts: str) -> Path:
    parts = [HOST.format(names=n.replace("_", ", "), gpu=gpu) for n, gpu in hosts.items()]
    head = "apiVersion: gpuplan.dev/inventory/v1\nname: rack\nhosts:\n"
    (folder / "rack.yaml").write_text(head + "".join(parts), encoding="utf-8")
    (folder / "shop.yaml").write_text(MANIFEST, encoding="utf-8")
    return folder / "shop.yaml"


@pytest.mark.parametrize(
    ("gpu", "why"),
    [
        ("nvidia-b900", "unknown GPU 'nvidia-b900'"),
        ("unknown", "the type of this GPU is not known"),
        ("rx-7900-xtx-24gb", "AMD Radeon RX 7900 XTX cannot be planned"),
    ],
)
def test_the_others_are_planned(
    tmp_path: Path, gpu: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = rack(tmp_path, n1_n2="h100-sxm-80gb")
    assert main(["compile", str(alone), "-o", str(tmp_path / "alone")]) == 0
    capsys.readouterr()
    path = rack(tmp_path, n1_n2="h100-sxm-80gb", y1_y2_y3=gpu)
    assert main(["compile", str(path), "-o", str(tmp_path / "both")]) == 0
    said = capsys.readouterr().err
    assert f"warning[GP0{'12' if 'cannot' in why else '06'}]: y1 and 2 other hosts left out" in said
    assert why.rsplit(maxsplit=1)[-1].strip("'") in said.replace("\n", " ")
    assert "rack.yaml:15:" in said
    plans = [tmp_path / n / "shop" / "pools.py" for n in ("alone", "both")]
    assert len({p.read_text("utf-8") for p in plans}) == 1


def test_where_there_is_no_other_the_name_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rack(tmp_path, n1="nvidia-b900", n2="unknown")
    assert main(["compile", str(path), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("error[GP006]") == 2
    assert not (tmp_path / "out").exists()


def test_pack_leaves_it_out_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rack(tmp_path, n1_n2="h100-sxm-80gb", y1="nvidia-b900")
    assert main(["pack", str(path), "--inventory", str(tmp_path / "rack.yaml")]) == 0
    found = capsys.readouterr()
    assert "y1 left out: unknown GPU" in found.err
    assert "8x-h100-sxm-80gb" in found.out
