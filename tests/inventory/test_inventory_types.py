"""Which GPU and which MIG instances a host has, where names, sizes and counts leave it open."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path

import pytest

from gpuplan.diagnostics import error
from gpuplan.inventory.readers.registry import READERS
from gpuplan.inventory.texts import texts
from gpuplan.report.terminal import render_diagnostics
from gpuplan.source import Place, SourceDocument, Sources, Span
from tests.inventory.test_inventory_import import messages, run
from tests.support import inventory_machine as machine
from tests.support.work import calls

GPU = """<nvidia_smi_log>
<driver_version>580.1</driver_version>
<attached_gpus>1</attached_gpus>
<gpu id="00000000:01:00.0">
<product_name>{product}</product_name>
{mig}
<fb_memory_usage><total>{memory} MiB</total></fb_memory_usage>
</gpu>
</nvidia_smi_log>
"""
DEVICES = """<mig_mode><current_mig>Enabled</current_mig></mig_mode>
<mig_devices><mig_device><index>0</index>
<fb_memory_usage><total>19968 MiB</total></fb_memory_usage></mig_device></mig_devices>"""
LGI = """+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 2g.20gb         14        3          0:2     |
+-------------------------------------------------------+
"""


def gpu(product: str, memory: int, mig: str = "") -> str:
    return GPU.format(product=product, memory=memory, mig=mig)


@pytest.mark.parametrize(
    ("product", "memory", "known"),
    [
        ("NVIDIA GeForce RTX 3080", 10240, "rtx-3080-10gb"),
        ("NVIDIA GeForce RTX 3080", 12288, None),
        ("NVIDIA GeForce RTX 4090", 49140, None),
        ("NVIDIA H20", 97871, "h20-96gb"),
        ("NVIDIA H20", 143771, None),
        ("NVIDIA A40", 49140, "a40"),  # without ECC
    ],
)
def test_a_board_with_another_memory_is_another_type(
    product: str, memory: int, known: str | None
) -> None:
    host, problems = run({"nvidia-smi.xml": gpu(product, memory)})
    assert host.gpus[0].type == (known or product)
    said = [] if known else [f"the catalogue has no GPU '{product}' with {memory} MiB"]
    assert messages(problems, "GP067") == said


def test_mig_instances_of_unknown_profile_are_a_gap() -> None:
    text = gpu("NVIDIA A100-SXM4-80GB", 81920, DEVICES)
    host, problems = run({"nvidia-smi.xml": text})
    assert (host.gpus[0].mig, host.gpus[0].mig_instances) == (True, [])
    assert any("the MIG instances of the GPU" in m for m in messages(problems, "GP066"))
    host, problems = run({"nvidia-smi.xml": text, "lgi.txt": LGI})
    assert host.gpus[0].mig_instances == ["2g.20gb@0"]
    assert not any("the MIG instances" in m for m in messages(problems, "GP066"))


def node(labels: dict[str, str]) -> str:
    named = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "2"}
    metadata = {"name": "gpu-01", "labels": named | labels}
    capacity = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "0"}
    status = {"capacity": capacity, "nodeInfo": {"architecture": "amd64"}}
    return json.dumps({"kind": "Node", "apiVersion": "v1", "metadata": metadata, "status": status})


def test_a_node_of_amd_gpus_is_known_by_the_label_of_their_product() -> None:
    labels = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}
    metadata = {"name": "gpu-01", "labels": labels}
    status = {"capacity": {"amd.com/gpu": "8"}, "nodeInfo": {"architecture": "amd64"}}
    text = {"kind": "Node", "apiVersion": "v1", "metadata": metadata, "status": status}
    host, problems = run({"nodes.json": json.dumps(text)})
    assert [(g.type, g.count) for g in host.gpus] == [("mi300x-192gb", 8)]
    assert not messages(problems, "GP067")


BALANCED = {
    "nvidia.com/mig.config": "all-balanced",
    "nvidia.com/mig.config.state": "success",
    "nvidia.com/mig-1g.10gb.count": "4",
    "nvidia.com/mig-2g.20gb.count": "2",
    "nvidia.com/mig-3g.40gb.count": "2",
}


def test_devices_of_a_node_are_those_of_each_gpu_where_all_are_alike() -> None:
    host, problems = run({"nodes.json": node(BALANCED)})
    [gpus] = host.gpus
    assert (gpus.count, gpus.mig) == (2, True)
    assert gpus.mig_instances == ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]
    assert not messages(problems, "GP063")
    host, _ = run({"nodes.json": node(BALANCED | {"nvidia.com/mig-1g.10gb.me.all.count": "2"})})
    assert host.gpus[0].mig_instances[2] == "1g.10gb+me.all"


@pytest.mark.parametrize(
    "change",
    [
        {"nvidia.com/mig.config": "custom"},
        {"nvidia.com/mig.config.state": "failed"},
        {"nvidia.com/mig-1g.10gb.count": "3"},
    ],
)
def test_devices_that_may_be_of_either_gpu_are_not_spread(change: dict[str, str]) -> None:
    host, problems = run({"nodes.json": node(BALANCED | change)})
    assert (host.gpus[0].mig, host.gpus[0].mig_instances) == (True, [])
    assert messages(problems, "GP063") == [
        "gpu-01 counts MIG devices of all its GPUs: which GPU has which is not told"
    ]


def test_more_links_than_there_can_be_are_no_link() -> None:
    text = machine.TEXTS["topo.txt"]().replace("NV18", "NV4294967296", 1)
    host, problems = run({"topo.txt": text})
    assert host.links[0].link == "NV18"
    assert any("GPU0" in m for m in messages(problems, "GP063"))


def test_an_empty_text_is_said_to_be_empty() -> None:
    _, problems = run({"nvidia-smi.xml": gpu("NVIDIA L4", 23034), "lscpu.txt": "\n"})
    assert messages(problems, "GP068") == ["gpu-01/lscpu.txt is empty"]


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("lscpu said\n",))
    writer.start()
    found, problems = texts([pipe], io.BytesIO())
    writer.join()
    assert ([text.document.text for text in found], problems) == (["lscpu said\n"], [])


def test_a_line_of_any_length_is_looked_at_once() -> None:
    [reader] = [each for each in READERS if each.tool == "nvidia-smi topo -m"]
    assert not reader.recognises("GPU0 " * 400_000)
    assert calls(lambda: reader.recognises("GPU0 " * 400_000)) < 100


def test_the_name_of_a_file_cannot_drive_the_terminal() -> None:
    document = SourceDocument("a", "text\n", "ho\x1b[31mst/a")
    sources = Sources()
    sources.add(document)
    problem = error("GP061", "wrong", Place("a", Span(1, 1, 1, 2)))
    assert "\x1b" not in render_diagnostics([problem], sources)
