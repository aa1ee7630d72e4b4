"""Two stacks compared: what it costs, what is lost, what is new, and silence without a change."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from gpuplan.errors import Rejected
from gpuplan.plan.diff import PlanDiff, StacksDiff, diff
from gpuplan.plan.model import Disk, Override, Plan, Tenant
from gpuplan.policy.review import run_diff
from gpuplan.report.changes.diff import FORMATS, render_diff
from gpuplan.report.changes.diffmarkdown import MARKER
from gpuplan.report.markdown import LIMIT
from gpuplan.source import Origin
from gpuplan.units import GIB
from tests.support.policy_samples import (
    TODAY,
    alternative,
    judge,
    with_cost,
    with_machine,
    with_pool,
    with_workload,
    write,
)
from tests.support.samples import (
    HOSTILE,
    PROVENANCE,
    estimate,
    libvirt_plan,
    serving_plan,
    serving_pool,
    serving_workload,
    training_plan,
)


def compare(base: Plan | None, head: Plan | None) -> PlanDiff:
    reports = (judge(p) if p else None for p in (base, head))
    return diff(base, head, *reports)


def markdown(*stacks: PlanDiff) -> str:
    return render_diff(StacksDiff(stacks=stacks), "markdown")


def text(*stacks: PlanDiff) -> str:
    return render_diff(StacksDiff(stacks=stacks), "text")


def grown() -> Plan:
    """Two more nodes of another price, five replicas, a workload that is new, one blocker."""
    plan = with_workload(
        serving_plan(),
        replicas=5,
        gpu_count=10,
        usd_per_hour=Decimal("29.50"),
        alternatives=(alternative("9.00"),),
    )
    plan = with_pool(plan, node_count=4)
    plan = with_cost(plan, usd_per_hour=Decimal("94.40"), budget_usd_per_hour=Decimal(100))
    extra = serving_workload(name="search", alternatives=(), volumes=())
    return replace(plan, workloads=(*plan.workloads, extra))


@pytest.mark.parametrize("plan", [serving_plan(), training_plan(), libvirt_plan()])
def test_the_same_plan_is_no_change(plan: Plan) -> None:
    result = compare(plan, plan)
    assert not result.changed
    assert (result.status, result.fields, result.risks) == ("same", (), ())
    assert text(result) == f"{plan.name}: no change.\n"
    assert markdown(result) == f"{MARKER}\n\n**No change** to 1 stack.\n"
    assert json.loads(render_diff(StacksDiff(stacks=(result,)), "json"))["changed"] is False


def test_where_a_plan_came_from_is_no_change() -> None:
    head = with_workload(serving_plan(), origin=Origin("other.yaml", ("workloads", 3)))
    head = replace(head, provenance=replace(PROVENANCE, gpuplan_version="9"), evidence=())
    assert not compare(serving_plan(), head).changed


def test_the_sentence_a_manager_reads() -> None:
    result = compare(serving_plan(), grown())
    assert text(result).splitlines()[0] == (
        "chat: 1 new blocker, +$34,456 a month (+100 %), 16 → 32 × h100-sxm-80gb."
    )
    assert markdown(result).splitlines()[2].replace("\\", "") == (
        "**chat: 1 new blocker, +$34,456 a month (+100 %), 16 → 32 × h100-sxm-80gb.**"
    )


def test_less_is_less() -> None:
    assert text(compare(grown(), serving_plan())).splitlines()[0] == (
        "chat: −$34,456 a month (−50 %), 32 → 16 × h100-sxm-80gb."
    )


@pytest.mark.parametrize(
    ("usd_per_hour", "words"),
    [
        ("47.1993", "−$0.51 a month (under 1 % less)"),
        ("47.2007", "+$0.51 a month (under 1 % more)"),
        ("46.9", "−$219 a month (−1 %)"),
        ("47.2", "no change in cost ($34,456 a month)"),
    ],
)
def test_a_little_less_is_not_nothing(usd_per_hour: str, words: str) -> None:
    few = with_cost(serving_plan(), usd_per_hour=Decimal(usd_per_hour))
    result = compare(serving_plan(), with_workload(few, renamed_from=("other",)))
    assert words in text(result).splitlines()[0]
    assert words in markdown(result).replace("\\", "")


def test_figures_before_and_after() -> None:
    result = compare(serving_plan(), grown())
    totals = {f.name: (f.base, f.head) for f in result.totals}
    assert totals["gpus"] == (16, 32)
    assert totals["gpus_used"] == (6, 16)
    assert totals["nodes"] == (2, 4)
    assert totals["usd_per_month"] == (Decimal("34456"), Decimal("68912"))
    assert totals["gpu_memory_bytes"] == (16 * 79 * GIB, 32 * 79 * GIB)
    assert totals["host_memory_bytes"] == (4096 * GIB, 8192 * GIB)
    (assistant, search) = result.workloads
    assert (assistant.status, search.status) == ("changed", "added")
    figures = {f.name: (f.base, f.head) for f in assistant.figures}
    assert figures["replicas"] == (3, 5)
    assert figures["usd_per_month"] == (Decimal("12921"), Decimal("21535"))
    assert figures["time_to_first_token_headroom"] == (60.0, 60.0)
    (pool,) = result.pools
    assert {f.name: (f.base, f.head) for f in pool.figures}["nodes"] == (2, 4)


def test_findings_new_fixed_waived_and_as_before() -> None:
    few = with_pool(serving_plan(), cpu_cores=24)
    dear = with_workload(few, alternatives=(alternative("9.00"),))
    found = compare(few, dear).findings
    assert [v.rule for v in found.new] == ["GP201"]
    assert [v.rule for v in found.remaining] == ["GP301"]
    assert [v.rule for v in compare(dear, few).findings.fixed] == ["GP201"]
    fewer = compare(few, with_pool(serving_plan(), cpu_cores=8)).findings
    assert [(v.rule, v.severity.value) for v in fewer.new] == [("GP301", "error")]
    assert compare(None, dear).findings.new == judge(dear).verdicts
    assert compare(dear, None).findings.new == ()


def test_every_field_that_differs_is_named() -> None:
    plan = serving_plan()
    override = Override(quantity="assistant.replicas", derived=3, value=5, unit="1")
    head = with_workload(plan, precision="bf16", overrides=(override,), volumes=())
    head = replace(head, target="libvirt", components=())
    fields = {f.path: (f.base, f.head) for f in compare(plan, head).fields}
    assert fields["target"] == ('"kubernetes"', '"libvirt"')
    assert fields["workloads[assistant].precision"] == ('"fp8"', '"bf16"')
    assert fields["workloads[assistant].volumes[models]"][1] is None
    assert fields["components[gpu-operator]"][1] is None
    assert json.loads(fields["workloads[assistant].overrides[0]"][1] or "")["value"] == 5
    assert len(fields) == 5


def test_the_order_of_workloads_is_no_change() -> None:
    other = serving_workload(name="other")
    one = replace(serving_plan(), workloads=(serving_workload(), other))
    two = replace(serving_plan(), workloads=(other, serving_workload()))
    assert not compare(one, two).changed


# --- money that is not known ----------------------------------------------------------------------


def unpriced() -> Plan:
    plan = with_workload(serving_plan(), usd_per_hour=None)
    plan = with_pool(plan, usd_per_hour=None)
    return with_cost(plan, usd_per_hour=None, unpriced=("h100-sxm-80gb",), budget_usd_per_hour=None)


def partly() -> Plan:
    return with_cost(serving_plan(), unpriced=("other",), budget_usd_per_hour=None)


@pytest.mark.parametrize(
    ("base", "head", "words"),
    [
        (serving_plan(), unpriced(), "cost unpriced a month (before: $34,456)"),
        (unpriced(), serving_plan(), "cost $34,456 a month (before: unpriced)"),
        (serving_plan(), partly(), "cost $34,456 + unpriced a month (before: $34,456)"),
        (None, unpriced(), "a new stack, cost unpriced a month"),
        (unpriced(), None, "removed"),
    ],
)
def test_unpriced_is_said_and_never_zero(base: Plan | None, head: Plan | None, words: str) -> None:
    result = compare(base, head)
    assert words in text(result).splitlines()[0]
    for form in FORMATS[::2]:
        shown = render_diff(StacksDiff(stacks=(result,)), form)
        assert "unpriced" in shown
        assert not re.search(r"\$0\b", shown)
    cost = json.loads(render_diff(StacksDiff(stacks=(result,)), "json"))
    assert cost["stacks"][0]["totals"]["usd_per_month"]["change"] is None


def test_an_unknown_memory_is_not_zero() -> None:
    head = with_pool(serving_plan(), memory_bytes=None)
    assert "host memory    4 TiB → unknown" in text(compare(serving_plan(), head))


# --- what could be lost ---------------------------------------------------------------------------


def losses(base: Plan, head: Plan | None) -> list[tuple[str, str]]:
    return [(r.severity.value, r.message) for r in compare(base, head).risks]


def with_volume(**changes: object) -> Plan:
    volume = replace(serving_workload().volumes[0], **changes)  # type: ignore[arg-type]
    return with_workload(serving_plan(), volumes=(volume,))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (with_workload(serving_plan(), volumes=()), "is removed"),
        (with_volume(name="weights"), "is removed"),
        (with_volume(size_bytes=99 * GIB), "cannot shrink to 99 GiB: it is replaced"),
        (with_volume(storage_class="fast"), "storage class to fast: it is replaced"),
        (with_volume(shared=False), "changes who may mount it: it is replaced"),
        (with_workload(serving_plan(), tenant="ads"), "is made anew for tenant ads"),
    ],
)
def test_a_volume_that_is_lost(head: Plan, words: str) -> None:
    ((severity, message),) = losses(serving_plan(), head)
    assert severity == "error"
    assert message.startswith("volume models of assistant (100 GiB)")
    assert message.endswith(words)


def test_a_volume_that_grows_is_kept() -> None:
    assert losses(serving_plan(), with_volume(size_bytes=200 * GIB)) == []


def test_a_renamed_workload_is_the_same_one() -> None:
    head = with_workload(serving_plan(), name="helper", renamed_from=("assistant",))
    result = compare(serving_plan(), head)
    assert [(i.name, i.status) for i in result.workloads] == [("assistant → helper", "changed")]
    assert result.risks == ()
    third = with_workload(serving_plan(), name="third", renamed_from=("helper",))
    ((severity, message),) = losses(head, third)
    assert severity == "error"
    assert message.endswith("is made anew: 'renamed_from' must keep 'assistant' first")


def test_a_removed_stack_stops_and_deletes() -> None:
    assert losses(serving_plan(), None) == [
        ("error", "volume models of assistant (100 GiB) is removed"),
        ("error", "tenant search is removed, with all in its namespace"),
        ("warning", "workload assistant stops"),
    ]


def test_a_namespace_that_is_lost() -> None:
    head = replace(
        serving_plan(),
        tenants=(Tenant(name="ads", gpu_quota=8, storage_quota_bytes=0, isolation="shared"),),
    )
    assert losses(serving_plan(), head) == [
        ("error", "tenant search is removed, with all in its namespace")
    ]


@pytest.mark.parametrize(
    ("head", "severity", "words"),
    [
        (replace(libvirt_plan(), virtual_machines=()), "error", "VM tune-0 is destroyed"),
        (with_machine(libvirt_plan(), uuid="0"), "error", "its UUID changes"),
        (with_machine(libvirt_plan(), host="hv-02"), "error", "moves from hv-01 to hv-02"),
        (with_machine(libvirt_plan(), disks=()), "error", "loses its disk root"),
        (
            with_machine(
                libvirt_plan(),
                disks=(Disk(name="root", source="/dev/vg0/tune-0-root", size_bytes=GIB),),
            ),
            "error",
            "disk root of VM tune-0 shrinks",
        ),
    ],
)
def test_a_machine_that_is_lost(head: Plan, severity: str, words: str) -> None:
    ((found, message),) = losses(libvirt_plan(), head)
    assert found == severity
    assert words in message


def test_an_objective_that_is_missed_now() -> None:
    slow = serving_workload().metrics[0]
    slow = replace(slow, estimate=estimate(1.2))
    head = with_workload(serving_plan(), metrics=(slow,))
    assert losses(serving_plan(), head) == [
        ("warning", "assistant misses its time to first token p95: 1.2 s of 1 s")
    ]
    assert losses(head, head) == []


# --- the comment ----------------------------------------------------------------------------------


def test_the_comment_opens_with_what_matters() -> None:
    head = with_workload(grown(), volumes=())
    lines = [x for x in markdown(compare(serving_plan(), head)).split("\n") if x]
    assert lines[0] == MARKER
    assert lines[1].startswith("**chat")
    assert lines[2] == "- 🛑 volume models of assistant (100 GiB) is removed"
    assert lines[3] == "New findings:"
    assert "`GP201`" in lines[6]
    assert lines[7].startswith("| workload | what | GPUs | cost/month |")
    assert "| assistant | 6 × h100-sxm-80gb" in lines[9]
    assert lines[11].startswith("<details>")
    assert max(i for i, x in enumerate(lines) if x.startswith("|")) > 11


def test_a_stack_that_did_not_change_is_one_line() -> None:
    same = compare(training_plan(), training_plan())
    assert markdown(compare(serving_plan(), grown()), same).endswith("\n\nNo change to `tune`.\n")


def test_hostile_names_are_data() -> None:
    workload = serving_workload(name=HOSTILE, node_pool=HOSTILE, gpu=HOSTILE, tenant=HOSTILE)
    plan = serving_plan(
        name=HOSTILE,
        workloads=(workload,),
        node_pools=(serving_pool(name=HOSTILE, gpu=HOSTILE, cpu_cores=8),),
    )
    for base, head in ((None, plan), (plan, None), (plan, with_workload(plan, volumes=()))):
        result = compare(base, head)
        assert all(c == "\n" or c.isprintable() for c in text(result))
        html = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown(result))
        allowed = "p strong code table thead tbody tr th td ul li details summary"
        assert set(re.findall(r"<(\w+)", html)) <= {*allowed.split()}
        names = json.loads(render_diff(StacksDiff(stacks=(result,)), "json"))
        assert names["stacks"][0]["name"] == HOSTILE


def test_a_comment_that_would_be_too_long_says_what_is_missing() -> None:
    many = tuple(serving_workload(name=f"w{i:04}", volumes=()) for i in range(1500))
    result = compare(serving_plan(), replace(serving_plan(), workloads=many))
    comment = markdown(result)
    assert len(comment) <= LIMIT
    assert "workloads more: `gpuplan diff` shows all." in comment
    assert comment.startswith(MARKER)
    stacks = tuple(replace(result, name=f"s{i}") for i in range(40))
    comment = markdown(*stacks)
    assert len(comment) <= LIMIT
    assert "left off: too long for a comment." in comment


# --- from folders ---------------------------------------------------------------------------------


def folders(base: Path, head: Path) -> StacksDiff:
    return run_diff(base, head, as_of=TODAY)


def test_folders_of_stacks_are_paired_by_name(tmp_path: Path) -> None:
    base, head = tmp_path / "base", tmp_path / "head"
    write(base, serving_plan())
    write(base, replace(training_plan(), name="gone"))
    write(head, grown())
    write(head, replace(libvirt_plan(), name="new"))
    result = folders(base, head)
    assert [(s.name, s.status) for s in result.stacks] == [
        ("chat", "changed"),
        ("gone", "removed"),
        ("new", "added"),
    ]
    assert result.changed
    assert not folders(head, head).changed


def test_two_stacks_are_compared_whatever_their_names(tmp_path: Path) -> None:
    base = write(tmp_path, with_pool(serving_plan(), cpu_cores=24))
    head = write(tmp_path, with_pool(replace(serving_plan(), name="other"), cpu_cores=24))
    (stack,) = folders(base, head).stacks
    assert [f.path for f in stack.fields] == ["name"]
    assert [v.rule for v in stack.findings.remaining] == ["GP301"]


@pytest.mark.parametrize("nothing", ["empty", "/dev/null"])
def test_a_side_without_stacks(tmp_path: Path, nothing: str) -> None:
    (tmp_path / "empty").mkdir()
    head = write(tmp_path / "head", serving_plan())
    (stack,) = folders(tmp_path / nothing, head).stacks
    assert stack.status == "added"
    (stack,) = folders(head, tmp_path / nothing).stacks
    assert stack.status == "removed"


def test_a_path_that_is_wrong_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Rejected):
        folders(tmp_path / "absent", write(tmp_path, serving_plan()))


def test_generated_files_count_even_when_the_plan_does_not(tmp_path: Path) -> None:
    base = write(tmp_path / "a", serving_plan(), **{"x.py": "a = 1\n", "Pulumi.dev.yaml": "a: 1"})
    head = write(tmp_path / "b", serving_plan(), **{"x.py": "a = 2\n", "Pulumi.dev.yaml": "a: 2"})
    (stack,) = folders(base, head).stacks
    assert stack.changed
    assert [(f.path, f.status) for f in stack.files] == [("x.py", "changed")]


def test_a_waiver_makes_a_finding_waived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dear = with_workload(serving_plan(), alternatives=(alternative("9.00"),))
    base = write(tmp_path / "a", dear, **{"x.py": "x.privileged = True\n"})
    mark = "# gpuplan: ignore[GP701] until=2026-12-31 why\n"
    head = write(tmp_path / "b", dear, **{"x.py": f"{mark}x.privileged = True\n"})
    (stack,) = folders(base, head).stacks
    assert [v.rule for v in stack.findings.waived] == ["GP701"]
    assert [v.rule for v in stack.findings.remaining] == ["GP201"]
    (later,) = run_diff(base, head, as_of=date(2027, 1, 1)).stacks
    assert later.findings.waived == ()
