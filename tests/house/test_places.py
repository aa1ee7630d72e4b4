"""What is wrong inside a file is said by its line, in words that are about the file."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from gpuplan.accuracy.fit.validate import MOST_POINTS, too_many_points
from gpuplan.cli.main import main

MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: own
platform: {target: kubernetes, gpus: [l4]}
workloads:
- name: chat
  task: inference
  model: ./config.json
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 200}
"""


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main([str(word) for word in words]) == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "line 1, column 1 is not JSON: expecting value"),
        ('{"a": 1,\n "b" 2}', "line 2, column 6 is not JSON: expecting ':' delimiter"),
        ('{"a":\n ' + "9" * 5_000 + "}", "line 2, column 2: a number has more than 4,300 digits"),
        ('{"a": "\\ud800"}', "half of a surrogate pair is no character"),
        ("[" * 100_000, "nested too deeply"),
    ],
    ids=range(5),
)
def test_a_broken_config_says_where(
    text: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.yaml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    words = said(capsys, "compile", tmp_path / "m.yaml", "-o", tmp_path / "out")
    assert fault in words
    assert "m.yaml:7:10" in words
    assert "set_int_max_str_digits" not in words


def test_a_broken_archive_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = gzip.compress(b"x" * 10_000, mtime=0)
    broken = {
        "cut.tar.gz": (packed[:-20], "it ends in the middle of a file"),
        "no.tar": (b"x" * 2_000, "it is no .tar archive, or a damaged one"),
        "no.zip": (b"PK\3\4" + b"x" * 50, "it is no .zip archive, or a damaged one"),
    }
    for name, (content, fault) in broken.items():
        (tmp_path / name).write_bytes(content)
        assert f"{name}: {fault}" in said(capsys, "inventory", "import", tmp_path / name)
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as archive:
        archive.writestr("lscpu.txt", "CPU(s): 4\n")
    content = bytearray((tmp_path / "odd.zip").read_bytes())
    content[content.index(b"PK\1\2") + 10] = 97  # a method that nobody has
    (tmp_path / "odd.zip").write_bytes(bytes(content))
    words = said(capsys, "inventory", "import", tmp_path / "odd.zip")
    assert "a member is encrypted, or packed by a method of its own" in words


def test_too_many_points_are_refused_before_they_are_weighed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = (
        "id,model,gpu,engine,precision,metric,value,n_gpus,tp,pp,cp,ep,dp,sharding,recompute,"
        "method,seq_len,input_len,output_len,batch,global_batch,unit,notes\n"
    )
    rows = "".join(
        f"{n},llama3.1-8b,L4,vllm,fp8,tpot,30,1,1,,,,,,,,,1000,250,4,,ms,\n"
        for n in range(MOST_POINTS + 1)
    )
    points, folder = tmp_path / "points.csv", tmp_path / "anchors"
    points.write_text(head + rows, encoding="utf-8")
    words = said(capsys, "accuracy", points, "--alone", "--calibrate", folder)
    assert (
        " ".join(too_many_points("time_per_output_token", MOST_POINTS + 1).message.split()) in words
    )
    assert not folder.exists()
