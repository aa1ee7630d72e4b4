"""Stacks that share an inventory: each keeps its hosts, and gets none that another one holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from gpuplan.cli.main import main
from gpuplan.plan.model import Plan
from gpuplan.plan.read import read_plan
from gpuplan.render import yaml
from tests.support.changing_manifests import INVENTORY, notebooks, serving

SMALL = "meta-llama/Llama-3.2-1B-Instruct"
COMMENTED = INVENTORY.replace("name: rack\n", "name: rack  # in the cellar\n") + "# the end\n"


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    path = tmp_path / "rack.yaml"
    path.write_text(COMMENTED, encoding="utf-8")
    return path


def compiled(rack: Path, name: str, *, target: str = "kubernetes", cut: bool = False) -> Path:
    """A stack on the rack: a server on whole GPUs, or notebooks on parts of them."""
    work = notebooks("desks", 7, "lab") if cut else serving("chat", SMALL, 2.0, "web")
    work["tenancy"]["isolation"] = "shared" if cut else "gpu"
    tree = {
        "apiVersion": "gpuplan.dev/v1",
        "name": name,
        "platform": {"target": target, "inventory": rack.name},
        "workloads": [work],
    }
    manifest = rack.with_name(f"{name}.yaml")
    manifest.write_text(yaml.dumps(tree), encoding="utf-8")
    assert main(["compile", str(manifest), "-o", str(rack.parent / "stacks")]) == 0
    return rack.parent / "stacks" / name


def allocate(rack: Path, *stacks: Path) -> int:
    return main(["inventory", "allocate", str(rack), *map(str, stacks)])


def release(rack: Path, *names: str) -> int:
    return main(["inventory", "release", str(rack), *names])


def hosts(stack: Path) -> list[str]:
    return [name for pool in read_plan(stack).node_pools for name in pool.node_names]


def profiles(stack: Path) -> set[str]:
    text = (stack / "helm" / "10-gpu-operator" / "mig-profiles.yaml").read_text("utf-8")
    return set(YAML(typ="safe", pure=True).load(text)["mig-configs"])


def labels(plan: Plan) -> set[str]:
    from gpuplan.kubernetes.mig import profile_name

    return {profile_name(layout) for pool in plan.node_pools for layout in pool.layouts}


def test_a_second_stack_gets_other_hosts(rack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = compiled(rack, "one")
    assert hosts(compiled(rack, "two")) == hosts(first) == ["n1"]  # nobody has said anything
    assert allocate(rack, first) == 0
    assert "one holds n1" in capsys.readouterr().out
    second = compiled(rack, "two")
    assert hosts(second) == ["n2"]
    said = capsys.readouterr().err
    assert "info[GP026]: other stacks hold 1 host: n1 (one)" in said
    assert "--> " in said
    assert allocate(rack, second) == 0
    assert hosts(compiled(rack, "three")) == ["n3"]


def test_a_stack_keeps_its_hosts_when_others_are_free(rack: Path) -> None:
    first, second = compiled(rack, "one"), None
    allocate(rack, first)
    second = compiled(rack, "two")
    allocate(rack, second)
    assert release(rack, "one") == 0
    before = (second / "checksums.txt").read_bytes()
    assert hosts(compiled(rack, "two")) == ["n2"]
    assert (second / "checksums.txt").read_bytes() == before
    assert hosts(compiled(rack, "three")) == ["n1"]


def test_allocations_change_no_other_byte(rack: Path) -> None:
    first, second = compiled(rack, "one"), compiled(rack, "cut", cut=True)
    assert allocate(rack, first) == 0
    held = rack.read_text("utf-8")
    assert held.startswith(COMMENTED)
    assert allocate(rack, first) == 0
    assert rack.read_text("utf-8") == held
    assert release(rack, "one") == 0
    assert rack.read_text("utf-8") == COMMENTED
    rack.write_text(COMMENTED.replace("hosts:\n", "allocations: []\nhosts:\n"), encoding="utf-8")
    assert allocate(rack, second) == 0
    assert rack.read_text("utf-8").startswith(COMMENTED)


def test_a_host_is_given_once(rack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = compiled(rack, "one"), compiled(rack, "two")
    assert allocate(rack, first) == 0
    held = rack.read_bytes()
    assert allocate(rack, second) == 2
    assert "host n1 cannot be given to stack two: stack one holds it" in capsys.readouterr().err
    assert allocate(rack, first, second) == 2
    assert rack.read_bytes() == held


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("release", "RACK", "nobody"), "stack nobody holds nothing in this inventory"),
        (("allocate", "RACK"), "an inventory and a stack are to be named"),
        (("allocate", "NOWHERE", "STACK"), "nowhere.yaml"),
        (("allocate", "RACK", "RACK"), "cannot read"),
    ],
)
def test_a_mistake_is_said(
    rack: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = compiled(rack, "one")
    named = {"RACK": rack, "STACK": stack, "NOWHERE": rack.with_name("nowhere.yaml")}
    assert main(["inventory", *(str(named.get(a, a)) for a in arguments)]) == 2
    assert words in capsys.readouterr().err
    assert rack.read_text("utf-8") == COMMENTED


def test_a_text_that_cannot_be_changed_alone_stays(
    rack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = compiled(rack, "one")
    tree = YAML(typ="safe", pure=True).load(INVENTORY)
    rack.write_text(json.dumps(tree), encoding="utf-8")
    before = rack.read_bytes()
    assert allocate(rack, stack) == 2
    assert "error[GP027]" in capsys.readouterr().err
    assert rack.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name: "n1"', 'name: "n9"', "holds host n9, which the inventory does not have"),
        ('stack: "one"', 'stack: "one"\n  hosts: [{name: n1, gpus: 8}]\n- stack: "b"', "holds it"),
    ],
)
def test_a_list_that_cannot_be_true_is_shown_where_it_stands(
    rack: Path, old: str, new: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = compiled(rack, "one")
    allocate(rack, stack)
    rack.write_text(rack.read_text("utf-8").replace(old, new), encoding="utf-8")
    capsys.readouterr()
    assert main(["compile", str(rack.with_name("one.yaml")), "-o", str(stack.parent)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "rack.yaml:" in said


def test_nothing_is_left(rack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reason stands beside the refusal."""
    every = "".join(f"  - {{name: n{n}, gpus: 8}}\n" for n in range(1, 5))
    rack.write_text(f"{INVENTORY}allocations:\n- stack: big\n  hosts:\n{every}", encoding="utf-8")
    with pytest.raises(AssertionError):
        compiled(rack, "one")
    said = capsys.readouterr().err
    assert "error[" in said
    assert "other stacks hold 4 hosts: n1 (big), n2 (big)" in said
    requests = rack.with_name("requests.yaml")
    requests.write_text("requests:\n- {name: a, gpu_memory: 9 GiB}\n", encoding="utf-8")
    assert main(["pack", str(requests), "--inventory", str(rack)]) == 2


def test_pack_leaves_held_hosts_alone(rack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack = compiled(rack, "one")
    allocate(rack, stack)
    capsys.readouterr()

    def packed(*more: Path) -> set[str]:
        text = rack.read_text("utf-8").replace(
            "  memory: 2 TiB\n", "  memory: 2 TiB\n  price: $60/hour\n"
        )
        priced = rack.with_name("priced.yaml")
        priced.write_text(text, encoding="utf-8")
        names = [str(m) for m in more]
        assert main(["pack", *names, "--inventory", str(priced), "--json"]) == 0
        return {row["host_name"] for row in json.loads(capsys.readouterr().out)["placed"]}

    other = rack.with_name("other.yaml")
    own = rack.with_name("one.yaml")
    other.write_text(own.read_text("utf-8").replace("name: one", "name: other"), encoding="utf-8")
    assert packed(other) == {"n2"}
    assert packed(own) == {"n1"}


def test_check_finds_a_host_that_another_stack_holds(
    rack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = compiled(rack, "one"), compiled(rack, "two")
    allocate(rack, first)
    capsys.readouterr()
    place = ["--inventory", str(rack), "--as-of=2026-10-01"]
    assert main(["check", str(first), *place]) == 0
    assert main(["check", str(second), "--as-of=2026-10-01"]) == 0  # nobody said who holds what
    capsys.readouterr()
    assert main(["check", str(second), *place]) == 1
    assert "names host n1, which stack one holds" in capsys.readouterr().out


def test_the_cluster_has_one_map_of_mig_profiles(rack: Path) -> None:
    one = compiled(rack, "one", cut=True)
    allocate(rack, one)
    plain = compiled(rack, "plain")
    assert labels(read_plan(one)) <= profiles(one)
    assert profiles(plain) == profiles(one)  # whichever stack installs the operator
    for name in ("values.yaml", "mig-profiles.yaml"):
        assert (plain / "helm" / "10-gpu-operator" / name).is_file()
    release(rack, "one")
    assert not (compiled(rack, "plain") / "helm" / "10-gpu-operator" / "mig-profiles.yaml").exists()
