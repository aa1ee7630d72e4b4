"""Where hosts lack what the cheapest choice needs, or do not state it, the next GPU is taken."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from gpuplan.diagnostics import Severity
from gpuplan.pipeline import NOTHING, Result, Standing, compile_files

EXAMPLES = Path(__file__).parents[2] / "examples"
PASSED = "'lora-70b' is not put on h100-sxm-80gb: "


def hosts() -> list[dict[str, Any]]:
    """Cheap hosts with four H100 each and others with eight A100, all with cards with functions."""
    listed = YAML(typ="safe").load(EXAMPLES / "inventories" / "hypervisors.yaml")
    h100 = listed["hosts"][0]
    a100 = copy.deepcopy(h100)
    h100 |= {"price": "$5/hour", "gpus": h100["gpus"][:4], "nics": h100["nics"][:4]}
    h100["node_type"] = "half"
    a100 |= {"price": "$9/hour", "names": ["hv-11", "hv-12"], "node_type": "hgx-a100"}
    a100["serials"] = {f"hv-1{n}": a100["serials"][f"hv-0{n}"] for n in (1, 2)}
    for gpu in a100["gpus"]:
        gpu |= {"type": "a100-sxm-80gb", "pci_id": "10de:20b2"}
    return [h100, a100]


def compiled(folder: Path, *listed: dict[str, Any], there: Standing = NOTHING) -> Result:
    """The example's run in five days, for which two hosts of either kind are enough."""
    manifest = YAML(typ="safe").load(EXAMPLES / "passthrough.yaml")
    manifest["platform"] |= {
        "inventory": "hosts.yaml",
        "gpus": ["h100-sxm-80gb", "a100-sxm-80gb"],
        "fabric": {"kind": "infiniband", "bandwidth_per_gpu": "200 Gb/s"},
    }
    manifest["workloads"][0]["slo"] = {"finish_within": "5 d"}
    inventory = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "rack", "hosts": list(listed)}
    YAML().dump(inventory, folder / "hosts.yaml")
    YAML().dump(manifest, folder / "manifest.yaml")
    return compile_files([folder / "manifest.yaml"], standing=lambda _: there)


def gpu_of(result: Result) -> str:
    return result.stacks[0].plan.workloads[0].gpu


def warnings(result: Result) -> list[str]:
    return [d.message for d in result.problems if d.severity is Severity.WARNING]


def test_where_all_is_stated_the_cheapest_is_taken(tmp_path: Path) -> None:
    result = compiled(tmp_path, *hosts())
    assert gpu_of(result) == "h100-sxm-80gb"
    assert not any(message.startswith(PASSED) for message in warnings(result))


def test_functions_that_nobody_states_send_guests_to_the_next_gpu(tmp_path: Path) -> None:
    h100, a100 = hosts()
    for nic in h100["nics"]:
        del nic["virtual_functions"]
    result = compiled(tmp_path, h100, a100)
    assert gpu_of(result) == "a100-sxm-80gb"
    assert {m.host for m in result.stacks[0].plan.virtual_machines} == {"hv-11", "hv-12"}
    (said,) = (message for message in warnings(result) if message.startswith(PASSED))
    assert "no NIC has a virtual function left" in said
    rejected = result.stacks[0].plan.workloads[0].alternatives
    assert any(
        a.gpu == "h100-sxm-80gb" and "host with what it needs" in a.shortfalls[0].resource
        for a in rejected
    )


def test_a_fact_of_a_host_that_nobody_states(tmp_path: Path) -> None:
    h100, a100 = hosts()
    del h100["cpu_vendor"]
    result = compiled(tmp_path, h100, a100)
    assert gpu_of(result) == "a100-sxm-80gb"
    assert f"{PASSED}'cpu_vendor' is not stated" in warnings(result)


def test_guests_that_run_are_not_moved_for_a_fact_that_went(tmp_path: Path) -> None:
    h100, a100 = hosts()
    there = Standing(compiled(tmp_path, h100, a100).stacks[0].plan)
    del h100["cpu_vendor"]
    result = compiled(tmp_path, h100, a100, there=there)
    assert not result.stacks
    (problem,) = (d for d in result.problems if d.severity is Severity.ERROR)
    assert problem.message == "'cpu_vendor' is not stated"


def test_where_no_gpu_has_a_place_the_first_choice_says_what_it_lacks(tmp_path: Path) -> None:
    listed = hosts()
    for nic in (nic for host in listed for nic in host["nics"]):
        del nic["virtual_functions"]
    result = compiled(tmp_path, *listed)
    assert not result.stacks
    (problem,) = (d for d in result.problems if d.severity is Severity.ERROR)
    assert problem.rule == "GP044"
    assert problem.message.endswith("8 of its 8 GPUs"), "on H100: A100 would need 16"
