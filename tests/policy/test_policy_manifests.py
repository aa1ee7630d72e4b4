"""Which file is a stack's manifest, and which its inventory: those that say what the plan says."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from gpuplan.plan.model import Plan
from gpuplan.plan.outside.regions import Regions
from gpuplan.policy.manifests import documents
from gpuplan.source import Origin
from tests.support.samples import libvirt_plan, serving_plan, serving_workload

CHAT = "name: chat\nworkloads:\n- name: assistant\n"
STACK = Path("a/stacks/chat")


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    STACK.mkdir(parents=True)


def put(path: str, text: str = CHAT) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def taken(plan: Plan, *given: Path) -> dict[str, str]:
    """Of each document that is found, its file."""
    return {name: d.path for name, d in documents(STACK, plan, given).documents.items()}


def two(first: str = "chat.yaml", second: str = "chat.yaml") -> Plan:
    """A plan of two workloads that stand in these documents."""
    works = [
        serving_workload(name=name, origin=Origin(document, ("workloads", 0)))
        for name, document in (("assistant", first), ("other", second))
    ]
    return serving_plan(workloads=tuple(works))


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        (CHAT, True),
        (f"# more\n{CHAT}", True),
        (CHAT.replace("name: chat", "name: chat-2"), False),
        (CHAT.replace("name: chat\n", ""), False),
        (CHAT.replace("assistant", "helper"), False),
        (f"{CHAT}- name: more\n", False),
        (f"{CHAT}- more\n", True),  # no workload
        ("name: chat\nworkloads: []\n", False),
        ("name: chat\nworkloads: assistant\n", False),
        ("name: chat\nworkloads: {name: assistant}\n", False),
        ("name: chat\n", False),
        ("- chat\n", False),
        ("", False),
        (f"{CHAT}x: [\n", False),
        (f"{CHAT}name: chat\n", False),  # twice
    ],
)
def test_a_manifest_is_one_that_names_the_stack_and_its_workloads(text: str, ours: bool) -> None:
    put("chat.yaml", text)
    assert taken(serving_plan()) == ({"chat.yaml": "chat.yaml"} if ours else {})


def test_workloads_of_a_manifest_are_in_the_plans_order() -> None:
    put("chat.yaml", f"{CHAT}- name: other\n")
    assert taken(two()) == {"chat.yaml": "chat.yaml"}
    plan = two()
    assert taken(replace(plan, workloads=plan.workloads[::-1])) == {}


def test_workloads_of_other_documents_are_held_to_those() -> None:
    put("chat.yaml", CHAT)
    put("more.yaml", "name: chat\nworkloads:\n- name: other\n")
    assert taken(two("chat.yaml", "more.yaml")) == {
        "chat.yaml": "chat.yaml",
        "more.yaml": "more.yaml",
    }
    assert taken(two("more.yaml", "chat.yaml")) == {}


def test_a_later_document_of_a_file_is_found_in_it() -> None:
    put("chat.yaml", f"name: first\n---\n{CHAT}")
    assert taken(two("chat.yaml#2", "chat.yaml#2")) == {}
    [work] = serving_plan().workloads
    second = replace(work, origin=Origin("chat.yaml#2", ("workloads", 0)))
    assert taken(serving_plan(workloads=(second,))) == {"chat.yaml#2": "chat.yaml"}
    assert taken(serving_plan()) == {}


@pytest.mark.parametrize(
    ("name", "target", "ours"),
    [
        ("chat", "kubernetes", True),
        ("chat-slurm", "slurm", True),
        ("chat-slurm", "kubernetes", False),
        ("chat-kubernetes-slurm", "kubernetes", False),
    ],
)
def test_a_plan_of_one_of_several_targets_is_named_with_it(
    name: str, target: str, ours: bool
) -> None:
    put("chat.yaml")
    assert bool(taken(serving_plan(name=name, target=target))) == ours


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("name: europe\nworkloads:\n- name: other\n- name: assistant\n", True),
        ("name: europe\nworkloads:\n- name: assistant\n", True),
        ("name: chat-b\nworkloads:\n- name: other\n- name: assistant\n", True),
        ("name: asia\nworkloads:\n- name: assistant\n", False),
        ("name: europe\nworkloads:\n- name: other\n", False),
    ],
)
def test_a_plan_of_one_of_several_regions_has_some_of_the_workloads(text: str, ours: bool) -> None:
    put("chat.yaml", text)
    plan = serving_plan(name="chat-b", regions=Regions(name="europe", members=()))
    assert bool(taken(plan)) == ours


PLACES = ("x/chat.yaml", "chat.yaml", "a/stacks/chat.yaml", "a/chat.yaml", "b/chat.yaml",
          "c/chat.yaml", "a/d/chat.yaml")  # fmt: skip


def test_the_nearest_manifest_is_taken_and_those_of_other_stacks_are_not() -> None:
    """Given ones first, then where the command runs, beside the stacks, and a folder down."""
    for place in reversed(PLACES):
        put(place)
        given = [Path("x/chat.yaml")]
        assert taken(serving_plan(), *given) == {"chat.yaml": place}
    for place, following in pairwise(PLACES):
        put(place, CHAT.replace("chat", "another"))
        assert taken(serving_plan(), Path("x/chat.yaml")) == {"chat.yaml": following}
    put(PLACES[-1], "name: [")
    assert taken(serving_plan(), Path("x/chat.yaml")) == {}


@pytest.mark.parametrize("place", ["a/stacks/chat/chat.yaml", ".e/chat.yaml", "b/c/chat.yaml"])
def test_no_manifest_is_looked_for_further_away(place: str) -> None:
    put(place)
    assert taken(serving_plan()) == {}


def test_a_plan_that_names_no_document_has_no_manifest() -> None:
    put("chat.yaml")
    assert taken(serving_plan(workloads=(serving_workload(origin=None),))) == {}


# --- inventories ----------------------------------------------------------------------------------

TUNE = "name: tune\nplatform: {inventory: inv/hosts.yaml}\nworkloads:\n- name: tune\n"
HOSTS = "hosts:\n- names: [hv-01, hv-02]\n"


def hosted(*more: Origin) -> Plan:
    """On the first host of an inventory; pools stand at `more`."""
    plan = libvirt_plan()
    work = replace(plan.workloads[0], origin=Origin("tune.yaml", ("workloads", 0)))
    host = replace(plan.hosts[0], origin=Origin("hosts.yaml", ("hosts", 0, "names", 0)))
    pools = tuple(replace(plan.node_pools[0], origin=o) for o in more)
    return replace(plan, workloads=(work,), hosts=(host,), node_pools=pools)


@pytest.mark.parametrize(
    ("inventory", "ours"),
    [
        (HOSTS, True),
        (f"# more\n{HOSTS}", True),
        (HOSTS.replace("hv-01", "hv-03"), False),
        (HOSTS.replace("[hv-01, hv-02]", "[hv-02, hv-01]"), False),
        (HOSTS.replace("[hv-01, hv-02]", "[{hv: 1}]"), True),  # what stands there has no name
        (HOSTS.replace("[hv-01, hv-02]", "[]"), False),
        (HOSTS.replace("names", "name"), False),
        ("hosts: 1\n", False),
        ("hosts: []\n", False),
        (f"{HOSTS}x: [\n", False),
    ],
)
def test_an_inventory_is_one_that_has_the_plans_hosts_where_they_stood(
    inventory: str, ours: bool
) -> None:
    put("b/tune.yaml", TUNE)
    put("b/inv/hosts.yaml", inventory)
    assert ("hosts.yaml" in taken(hosted())) == ours


def test_all_that_stands_in_the_inventory_has_to_be_there() -> None:
    put("b/tune.yaml", TUNE)
    put("b/inv/hosts.yaml", HOSTS)
    here, gone = (Origin("hosts.yaml", ("hosts", n)) for n in (0, 1))
    elsewhere = Origin("tune.yaml", ("platform", "gpus"))
    both = {"tune.yaml": "b/tune.yaml", "hosts.yaml": "b/inv/hosts.yaml"}
    assert taken(hosted(here)) == both
    assert taken(hosted(here, elsewhere)) == both
    assert taken(hosted(here, gone)) == {"tune.yaml": "b/tune.yaml"}
    assert taken(hosted(Origin("hosts.yaml", ("hosts", 0, "names", 1)))) == both


@pytest.mark.parametrize(
    "platform", ["", "platform: 1\n", "platform: {inventory: 1}\n", "platform: {}\n"]
)
def test_a_manifest_that_names_no_inventory_has_none(platform: str) -> None:
    put("b/tune.yaml", TUNE.replace("platform: {inventory: inv/hosts.yaml}\n", platform))
    put("b/inv/hosts.yaml", HOSTS)
    assert taken(hosted()) == {"tune.yaml": "b/tune.yaml"}
