"""Whether OpenStack nova would put machines on hosts. Runs in nova's environment, knows no gpuplan.

Reads a JSON list of questions and writes the list of answers. A question is a host's cells and a
machine. A cell has `cores` (CPUs of each core that guests may have), `pinned` CPUs, 1 GiB `pages`
with `used` ones, and free `gpus`. The machine has `cells`, each with `vcpus` and `pages`, and
`gpus` that have to be near its cells. `threads` says that vCPUs fill whole cores. The answer is the
host cell and the CPUs of each of the machine's cells, or null.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")

import nova.conf  # noqa: E402
from nova import objects  # noqa: E402
from nova.objects.pci_device_pool import PciDevicePool, PciDevicePoolList  # noqa: E402
from nova.pci import stats, whitelist  # noqa: E402
from nova.virt import hardware  # noqa: E402

GIB_KB, GIB_MB = 2**20, 2**10
SMALL_PAGES = 8 * GIB_MB * GIB_MB // 4  # nothing of a guest's memory is in them
CARD = {"vendor_id": "10de", "product_id": "26b9"}


def host(cells: list[dict[str, Any]]) -> Any:
    found = []
    for number, cell in enumerate(cells):
        pages = objects.NUMAPagesTopology
        found.append(
            objects.NUMACell(
                id=number,
                cpuset=set(),
                pcpuset={cpu for core in cell["cores"] for cpu in core},
                memory=(cell["pages"] + 8) * GIB_MB,
                cpu_usage=0,
                memory_usage=cell["used"] * GIB_MB,
                pinned_cpus=set(cell["pinned"]),
                siblings=[set(core) for core in cell["cores"]],
                socket=number,
                mempages=[
                    pages(size_kb=4, total=SMALL_PAGES, used=0),
                    pages(size_kb=GIB_KB, total=cell["pages"], used=cell["used"]),
                ],
            )
        )
    return objects.NUMATopology(cells=found)


def flavor(machine: dict[str, Any]) -> Any:
    cells = machine["cells"]
    specs = {
        "hw:cpu_policy": "dedicated",
        "hw:cpu_thread_policy": "require" if machine["threads"] > 1 else "prefer",
        "hw:mem_page_size": "1GB",
        "hw:numa_nodes": str(len(cells)),
    }
    first = 0
    for number, cell in enumerate(cells):
        last = first + cell["vcpus"] - 1
        specs[f"hw:numa_cpus.{number}"] = ",".join(map(str, range(first, last + 1)))
        specs[f"hw:numa_mem.{number}"] = str(cell["pages"] * GIB_MB)
        first = last + 1
    memory = sum(c["pages"] for c in cells) * GIB_MB
    return objects.Flavor(vcpus=first, memory_mb=memory, extra_specs=specs)


def pools(cells: list[dict[str, Any]]) -> Any:
    """Free GPUs by node. nova copies this for every try, so the host's topology stays out of it,
    which nova needs only for affinity to a socket."""
    listed = PciDevicePoolList(
        objects=[
            PciDevicePool(
                numa_node=number, count=cell["gpus"], tags={"dev_type": "type-PCI"}, **CARD
            )
            for number, cell in enumerate(cells)
            if cell["gpus"]
        ]
    )
    return stats.PciDeviceStats(
        objects.NUMATopology(cells=[]), listed, dev_filter=whitelist.Whitelist([])
    )


def answer(question: dict[str, Any]) -> list[Any] | None:
    topology = host(question["cells"])
    machine = question["machine"]
    wanted = hardware.numa_get_constraints(
        flavor(machine), objects.ImageMeta(properties=objects.ImageMetaProps())
    )
    request = objects.InstancePCIRequest(
        count=machine["gpus"], spec=[CARD], numa_policy="required", request_id="gpus"
    )
    found = hardware.numa_fit_instance_to_host(
        topology,
        wanted,
        {},
        pci_requests=[request],
        pci_stats=pools(question["cells"]),
    )
    if found is None:
        return None
    return [[cell.id, sorted(cell.cpu_pinning.values())] for cell in found.cells]


def main() -> None:
    objects.register_all()
    nova.conf.CONF([], default_config_files=[])
    json.dump([answer(q) for q in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
