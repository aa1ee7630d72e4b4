"""Texts from files, folders and archives, hostile ones too, and the verb that imports them."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.diagnostics import Diagnostic
from gpuplan.inventory.readers.registry import likely
from gpuplan.inventory.run import imported
from gpuplan.inventory.texts import texts
from gpuplan.manifest.text import read_yaml
from tests.inventory.test_inventory_import import codes, dgx, given, load, run
from tests.support import inventory_machine as machine

# Archives and folders


def tar(path: Path, members: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def found(*paths: Path) -> tuple[dict[str, str], list[Diagnostic]]:
    read, problems = texts(paths, io.BytesIO())
    return {t.document.name: t.place for t in read}, problems


def test_folders_and_archives_name_hosts(tmp_path: Path) -> None:
    (tmp_path / "all" / "gpu-01").mkdir(parents=True)
    (tmp_path / "all" / "gpu-01" / "lscpu.txt").write_text("a")
    tar(tmp_path / "all" / "gpuplan-gpu-02.tar.gz", {"gpu-02/lscpu.txt": b"b"})
    with zipfile.ZipFile(tmp_path / "rack.zip", "w") as archive:
        archive.writestr("gpu-03/lscpu.txt", "c")
        archive.writestr("gpu-04/lscpu.txt", "d")
    flat = tar(tmp_path / "gpuplan-gpu-05.tgz", {"lscpu.txt": b"e"})
    names, problems = found(tmp_path / "all", tmp_path / "rack.zip", flat)
    assert not problems
    assert sorted(names.values()) == [f"gpu-0{n}" for n in range(1, 6)]


def test_a_member_that_leads_out_stays_inside(tmp_path: Path) -> None:
    names, _ = found(tar(tmp_path / "x.tar.gz", {"../../etc/passwd": b"a", "/h/abs": b"b"}))
    assert sorted(names) == ["etc/passwd", "h/abs"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.tar.gz"]


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("h/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    names, problems = found(path)
    assert not names
    assert codes(problems) == {"GP069"}


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("gpuplan.inventory.archives.LARGEST_ARCHIVE", 2**20)
    bomb = tar(tmp_path / "x.tar.gz", {"h/a": bytes(2**22)})
    _, problems = found(bomb)
    assert any("unpacks to more than" in p.message for p in problems)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("h/a", bytes(2**22))
    _, problems = found(tmp_path / "x.zip")
    assert any("unpacks to more than" in p.message for p in problems)


def test_a_file_without_a_name_ends_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("lspci.txt", "")
        archive.writestr(zipfile.ZipInfo(""), "text")
    _, problems = found(tmp_path / "x.zip")
    assert any("a file in it has no name" in p.message for p in problems)


@pytest.mark.parametrize("name", ["x.tar.gz", "x.zip", "x.tar"])
def test_a_broken_archive_is_a_diagnostic(tmp_path: Path, name: str) -> None:
    whole = tar(tmp_path / "whole.tar.gz", {"h/a": bytes(range(256)) * 400}).read_bytes()
    (tmp_path / name).write_bytes(whole[:200] if name == "x.tar.gz" else b"no archive" * 100)
    names, problems = found(tmp_path / name)
    assert not names
    assert codes(problems) == {"GP009"}


def test_what_is_no_text_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "photo").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "powershell.txt").write_bytes("CPU(s): 4".encode("utf-16"))
    names, problems = found(tmp_path)
    assert [n.rpartition("/")[2] for n in names] == ["powershell.txt"]
    assert codes(problems) == {"GP069"}


# Texts that mean harm


HOSTILE = 'x"\x1b[31m\u202e</title><script>: {a: &b [*b]}\n- !!python/object'


def test_names_from_tools_are_data_in_the_document(tmp_path: Path) -> None:
    product = "NVIDIA: {x: &amp;a [*a], #} !!python/name:os.system &#34;"
    text = machine.nvidia_xml().replace(machine.PRODUCT, product).replace("2330", "FFF0")
    host, _ = run({"q.xml": text})
    assert host.gpus[0].type.startswith("NVIDIA: {x: &a [*a], #} !!python")
    files = {HOSTILE.replace("/", ""): machine.lscpu()}
    answer = imported(given(files, "h\x1b[2J\nost: #"), "a: [", likely)
    [host] = load(answer)
    assert host.names == ["h-2j-ost"]
    assert "\x1b" not in answer.text


def test_the_terminal_gets_no_escape_codes_from_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.xml").write_text(machine.nvidia_xml().replace("HBM3", "\x9b31m\u202e"))
    main(["inventory", "import", str(tmp_path), "-o", str(tmp_path / "out.yaml")])
    printed = capsys.readouterr()
    assert "\x9b" not in printed.out + printed.err
    assert "\x9b" not in (tmp_path / "out.yaml").read_text(encoding="utf-8")


# The verb


def test_the_verb_writes_what_compile_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "gpu-01"
    folder.mkdir()
    for name, text in dgx().items():
        (folder / name).write_text(text, encoding="utf-8")
    out = tmp_path / "inventory.yaml"
    assert main(["inventory", "import", str(folder), "-o", str(out), "--name", "rack"]) == 0
    (tmp_path / "chat.yaml").write_text(
        """apiVersion: gpuplan.dev/v1
name: chat
platform: {target: kubernetes, inventory: inventory.yaml}
workloads:
  - name: assistant
    task: inference
    model: meta-llama/Llama-3.1-8B-Instruct
    load:
      requests_per_second: {mean: 2, peak: 4}
      input_tokens: {mean: 1000}
      output_tokens: {mean: 300}
    slo: {time_to_first_token: 1 s, time_per_output_token: 40 ms}
""",
        encoding="utf-8",
    )
    code = main(["compile", str(tmp_path / "chat.yaml"), "-o", str(tmp_path / "stacks")])
    assert code == 0, capsys.readouterr().err
    plan = (tmp_path / "stacks" / "chat" / "plan.yaml").read_text(encoding="utf-8")
    assert 'node_names: ["gpu-01"]' in plan


def test_guests_need_the_hypervisor_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gpu-01").mkdir()
    for name, text in dgx().items():
        (tmp_path / "gpu-01" / name).write_text(text, encoding="utf-8")
    out = tmp_path / "inventory.yaml"
    main(["inventory", "import", str(tmp_path / "gpu-01"), "-o", str(out)])
    text = out.read_text(encoding="utf-8")
    manifest = """apiVersion: gpuplan.dev/v1
name: guests
platform: {target: libvirt, inventory: inventory.yaml}
workloads:
  - name: assistant
    task: inference
    model: meta-llama/Llama-3.1-8B-Instruct
    load:
      requests_per_second: {mean: 2, peak: 4}
      input_tokens: {mean: 1000}
      output_tokens: {mean: 300}
    slo: {time_to_first_token: 1 s, time_per_output_token: 40 ms}
"""
    (tmp_path / "guests.yaml").write_text(manifest, encoding="utf-8")
    compile_ = ["compile", str(tmp_path / "guests.yaml"), "-o", str(tmp_path / "stacks")]
    assert main(compile_) == 2
    errors = [e for e in capsys.readouterr().err.splitlines() if e.startswith("error")]
    assert len(errors) == 1
    assert "hypervisor" in errors[0]
    out.write_text(
        f"{text}    hypervisor: {{disk_path: /dev/vg0, bridge: br0}}\n", encoding="utf-8"
    )
    assert main(compile_) == 0, capsys.readouterr().err


def test_an_empty_answer_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("buy milk\n")
    assert main(["inventory", "import", str(tmp_path / "notes.txt")]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert "GP068" in printed.err
    assert main(["inventory", "import", str(tmp_path / "absent")]) == 2


def test_the_collecting_script_runs_and_is_read_back(tmp_path: Path) -> None:
    from gpuplan.inventory.collect import COMMANDS, script

    (tmp_path / "collect.sh").write_text(script(), encoding="utf-8")
    fake = tmp_path / "bin"
    fake.mkdir()
    (tmp_path / "q.xml").write_text(
        machine.nvidia_xml().replace("<uuid>", "<serial>1650000</serial>\n\t\t<uuid>")
    )
    (tmp_path / "topo.txt").write_text(machine.topo())
    smi = fake / "nvidia-smi"
    smi.write_text(
        f'#!/bin/sh\ncase "$1" in -q) cat {tmp_path}/q.xml;; topo) cat {tmp_path}/topo.txt;; '
        "*) echo failed >&2; exit 9;; esac\n"
    )
    smi.chmod(0o755)
    done = subprocess.run(
        ["sh", "collect.sh"],
        cwd=tmp_path,
        env={"PATH": f"{fake}:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [archive] = tmp_path.glob("gpuplan-*.tar.gz")
    with tarfile.open(archive) as packed:
        members = {Path(m.name).name: m for m in packed.getmembers() if m.isfile()}
        assert set(members) <= {c.file for c in COMMANDS}
        smi_file = packed.extractfile(members["nvidia-smi-q-x.xml"])
        assert smi_file is not None
        assert b"1650000" not in smi_file.read()
    read, problems = texts([archive], io.BytesIO())
    assert not problems
    [host] = load(imported(read, "test", likely))
    assert len(host.gpus) == 8
    assert host.links[0].link == "NV18"


def test_a_document_may_have_as_many_nodes_as_it_writes_out() -> None:
    """A fleet of unequal hosts has more than aliases may make of a small text."""
    [(document, problems)] = read_yaml("fleet.yaml", "hosts:\n" + "- 1000\n" * 25_000)
    assert not problems
    assert isinstance(document.data, dict)
    assert len(document.data["hosts"]) == 25_000


def test_the_answer_as_json_is_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.xml").write_text(machine.nvidia_xml())
    out = tmp_path / "out.yaml"
    main(["inventory", "import", str(tmp_path / "q.xml"), "-o", str(out)])
    capsys.readouterr()
    main(["inventory", "import", str(tmp_path / "q.xml"), "--json"])
    answer = json.loads(capsys.readouterr().out)
    [(document, _)] = read_yaml("out.yaml", out.read_text(encoding="utf-8"))
    assert answer["inventory"] == document.data
    assert {p["code"] for p in answer["problems"]} == {"GP066"}


def test_a_folder_that_is_no_collection_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("gpuplan.inventory.texts.MOST_FILES", 2)
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("a")
    names, problems = found(tmp_path)
    assert not names
    assert any("more than 2 files" in p.message for p in problems)
