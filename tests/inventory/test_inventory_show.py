"""Drawings of hosts: text within 100 columns, SVG without overlaps, what is placed where."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gpuplan.cli.main import main
from gpuplan.inventory.draw.boxes import host_drawing
from gpuplan.inventory.draw.placed import Placement, Share
from gpuplan.inventory.v1 import HostSpec
from gpuplan.render.text import width
from gpuplan.report.machines.host import COLUMNS, text
from gpuplan.report.machines.hostsvg import CHARACTER, svg

EXAMPLE = "examples/inventories/hypervisors.yaml"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'a"<script>&\x1b[31m\u202e]]>'


def host(gpus: int = 8, nodes: int = 2, gpu: str = "h100-sxm-80gb") -> HostSpec:
    return HostSpec.model_validate(
        {
            "names": ["gpu-01"],
            "threads_per_core": 2,
            "numa_nodes": [
                {"cpus": f"{16 * n}-{16 * n + 15}", "memory": "256 GiB"} for n in range(nodes)
            ],
            "gpus": [
                {
                    "type": gpu,
                    "address": f"0000:{n + 16:02x}:00.0",
                    "numa_node": n * min(nodes, 2) // gpus,
                    "switch": f"sw{n // 2}",
                    "memory": "81559 MiB",
                }
                for n in range(gpus)
            ],
            "nics": [
                {"type": "connectx-7", "address": "0000:a0:00.0", "numa_node": 0, "switch": "sw0"}
            ],
            "nvme": [{"size": "3840 GB", "address": "0000:b0:00.0"}],
            "links": [{"link": "NV18", "between": [f"gpu{n}" for n in range(gpus)]}][: gpus - 1],
        }
    )


@pytest.mark.parametrize("gpus", [1, 2, 4, 8, 16])
def test_a_drawing_names_every_device_once_and_fits(gpus: int) -> None:
    drawn = text(host_drawing(host(gpus), Placement()))
    assert max(width(line) for line in drawn.splitlines()) <= COLUMNS
    for number in range(gpus):
        assert drawn.count(f"gpu{number} ") == 1
    for name in ("nic0", "nvme0", "NUMA node 0", "NUMA node 1"):
        assert name in drawn


def test_boxes_are_closed_and_lines_are_equally_long() -> None:
    lines = text(host_drawing(host(), Placement())).splitlines()
    inside = False
    for line in lines:
        if line.startswith("╭"):
            inside = True
        if inside:
            assert width(line) == COLUMNS, line
            assert line[-1] in "╮│╯"
        if line.startswith("╰"):
            inside = False
    assert not inside


def test_devices_stand_in_the_box_of_their_node_and_switch() -> None:
    drawn = text(host_drawing(host(4), Placement()))
    first, second = drawn.split("NUMA node 1")
    assert "gpu0 " in first
    assert "gpu3 " in second
    box = first.split("PCIe switch sw0")[1].split("└")[0]
    assert "gpu0 " in box
    assert "gpu1 " in box
    assert "nic0 " in box
    assert "whose NUMA node nobody said" in second


def test_nodes_that_only_gpus_name_are_drawn() -> None:
    gpus = [{"type": "l4", "count": 2, "numa_node": node} for node in (0, 1)]
    spec = HostSpec.model_validate({"names": ["n"], "gpus": gpus, "nvme": [{"size": "1 GB"}]})
    _, first, second, rest = text(host_drawing(spec, Placement())).split("╭─ ")
    assert first.startswith("NUMA node 0 ")
    assert second.startswith("NUMA node 1 ")
    assert ("gpu1 " in first, "gpu2 " in second) == (True, True)
    assert rest.startswith("devices whose NUMA node nobody said")
    assert "processors" not in text(host_drawing(spec, Placement()))


def test_nodes_without_devices_are_folded() -> None:
    drawn = text(host_drawing(host(8, nodes=8), Placement()))
    assert "NUMA nodes 2-7" in drawn
    assert drawn.count("╭") == 4  # two nodes with GPUs, the others, the drive


def test_ascii_has_no_other_characters() -> None:
    drawn = text(host_drawing(host(), Placement()), ascii_only=True)
    assert drawn.isascii()
    assert "+-" in drawn


def test_parts_stand_on_their_gpu_with_their_starts() -> None:
    shares = [Share(part="3g.40gb@0", owner="chat-1"), Share(part="1g.10gb@4", owner="notes-2")]
    drawn = text(host_drawing(host(), Placement(gpus={0: shares})))
    lines = drawn.splitlines()
    number = next(i for i, line in enumerate(lines) if "gpu0 " in line)
    assert "3g.40gb@0 chat-1" in lines[number]
    assert "1g.10gb@4 notes-2" in lines[number + 1]


def test_names_from_elsewhere_cannot_drive_the_terminal_or_the_drawing() -> None:
    spec = host(2, gpu=HOSTILE)
    placed = Placement(gpus={0: [Share(part="", owner=HOSTILE)]})
    drawn = text(host_drawing(spec, placed))
    assert "\x1b" not in drawn
    assert "\u202e" not in drawn
    assert max(width(line) for line in drawn.splitlines()) <= COLUMNS
    image = svg([host_drawing(spec, placed)])
    assert "<script" not in image
    tree = ET.fromstring(image)
    assert any("<script>" in (t.text or "") for t in tree.iter(f"{SVG}text"))


def _boxes(image: str) -> list[tuple[str, float, float, float, float]]:
    tree = ET.fromstring(image)
    found = []
    for box in tree.iter(f"{SVG}rect"):
        x, y, wide, high = (float(box.attrib[k]) for k in ("x", "y", "width", "height"))
        found.append((box.attrib["class"], x, y, x + wide, y + high))
    return found


@pytest.mark.parametrize("gpus", [1, 3, 8, 16])
def test_no_two_boxes_cross_and_all_are_on_the_canvas(gpus: int) -> None:
    shares = [Share(part=f"1g.10gb@{n}", owner=f"w-{n}") for n in range(7)]
    image = svg([host_drawing(host(gpus, nodes=4), Placement(gpus={0: shares}))])
    tree = ET.fromstring(image)
    wide, high = float(tree.attrib["width"]), float(tree.attrib["height"])
    boxes = _boxes(image)
    for number, (_, x, y, right, bottom) in enumerate(boxes):
        assert 0 <= x < right <= wide
        assert 0 <= y < bottom <= high
        for _, x2, y2, right2, bottom2 in boxes[number + 1 :]:
            apart = right <= x2 or right2 <= x or bottom <= y2 or bottom2 <= y
            inside = x <= x2 and y <= y2 and right2 <= right and bottom2 <= bottom
            outside = x2 <= x and y2 <= y and right <= right2 and bottom <= bottom2
            assert apart or inside or outside


def test_texts_of_a_drawing_stand_in_their_boxes_and_on_lines_of_their_own() -> None:
    image = svg([host_drawing(host(8, gpu="a very long product name " * 8), Placement())])
    tree = ET.fromstring(image)
    limit = float(tree.attrib["width"])
    places = set()
    for label in tree.iter(f"{SVG}text"):
        x, y = float(label.attrib["x"]), float(label.attrib["y"])
        assert x + len(label.text or "") * CHARACTER <= limit + 1
        assert (x, y) not in places
        places.add((x, y))


def test_a_drawing_says_what_it_shows_and_has_a_dark_side() -> None:
    shares = {0: [Share(part="", owner="chat-0")]}
    image = svg([host_drawing(host(2), Placement(gpus=shares), "gpu-01")])
    tree = ET.fromstring(image)
    assert tree.attrib["role"] == "img"
    assert tree.findtext(f"{SVG}title") == "gpu-01"
    described = tree.findtext(f"{SVG}desc") or ""
    assert "2 GPUs" in described
    assert "gpu0: chat-0" in described
    assert "prefers-color-scheme: dark" in image


def test_the_verb_draws_a_stack_on_a_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inventory", "show", EXAMPLE, "hv-01", "--plan", "stacks/passthrough"]) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith("hv-01\n")
    for number in range(8):
        [line] = [row for row in drawn.splitlines() if f" gpu{number} " in row]
        assert "lora-70b-0" in line
    assert "host keeps  CPUs 0-1,112-113" in drawn
    assert "pinned      lora-70b-0: CPUs 2-25,114-137" in drawn


def test_the_verb_draws_how_a_stack_cuts_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    rack = "examples/inventories/rack-7.yaml"
    assert main(["inventory", "show", rack, "gpu-01", "--plan", "stacks/lab"]) == 0
    drawn = capsys.readouterr().out
    assert "gpu3  h100-sxm-80gb  " in drawn
    assert "gpu4  h100-sxm-80gb  1g.20gb@0,6 1g.10gb@2-5 " in drawn
    assert "gpu7  h100-sxm-80gb  3g.40gb@0,4 " in drawn


def test_the_verb_draws_what_pack_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"request": "chat", "number": 3, "host_type": "pcie-4x-a100", "host": 0, "gpus": [2]}
    by_name = {**row, "request": "notes", "host_name": "hv-03", "mode": "mig"}
    answer = {
        "placed": [
            {**row, "mode": "mig", "part": "3g.40gb", "start": 4},
            {**by_name, "part": "2g.20gb", "start": 0},
            {**row, "host_type": "hgx-h100", "request": "other"},
        ]
    }
    (tmp_path / "pack.json").write_text(json.dumps(answer))
    arguments = ["inventory", "show", EXAMPLE, "hv-03", "--pack", str(tmp_path / "pack.json")]
    assert main(arguments) == 0
    drawn = capsys.readouterr().out
    lines = drawn.splitlines()
    number = next(i for i, line in enumerate(lines) if "gpu2 " in line)
    assert "2g.20gb@0 notes-3" in lines[number]
    assert "3g.40gb@4 chat-3" in lines[number + 1]
    assert "other" not in drawn


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"placed": [{"host": "x"}]}', "{" * 9000])
def test_what_is_no_answer_of_pack_is_refused(
    tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pack.json").write_text(content)
    assert main(["inventory", "show", EXAMPLE, "--pack", str(tmp_path / "pack.json")]) == 2
    assert "no answer of `gpuplan pack --json`" in capsys.readouterr().err


def test_an_unknown_host_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inventory", "show", EXAMPLE, "hv-1"]) == 2
    assert "did you mean 'hv-01'?" in capsys.readouterr().err


def test_a_broken_inventory_shows_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(
        "apiVersion: gpuplan.dev/inventory/v1\nname: x\nhosts: [{names: [a], gpu: 1}]\n"
    )
    assert main(["inventory", "show", str(file)]) == 2
    assert "broken.yaml:3" in capsys.readouterr().err


def test_the_verb_writes_one_drawing_of_all_hosts(tmp_path: Path) -> None:
    out = tmp_path / "hosts.svg"
    assert main(["inventory", "show", EXAMPLE, "--svg", str(out)]) == 0
    drawn = out.read_text(encoding="utf-8")
    assert (ET.fromstring(drawn).findtext(f"{SVG}title") or "").endswith("hv-03")
    again = tmp_path / "again.svg"
    main(["inventory", "show", EXAMPLE, "--svg", str(again)])
    assert again.read_text(encoding="utf-8") == drawn
