"""Packs, waivers, reading: a gate that cannot judge says so, and an exception is never silent."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML, MappingNode, SequenceNode

from gpuplan.diagnostics import Severity
from gpuplan.errors import Rejected
from gpuplan.plan.model import Plan
from gpuplan.policy.document import main as document
from gpuplan.policy.engine import EVERY, check
from gpuplan.policy.lines import line_of
from gpuplan.policy.packs import builtin_pack, load_pack
from gpuplan.policy.reading import read_stacks
from gpuplan.policy.review import run_check
from gpuplan.policy.waivers import load_waivers
from gpuplan.render import yaml
from gpuplan.source import Sources
from tests.support.policy_samples import (
    PROGRAM,
    TODAY,
    alternative,
    judge,
    rules,
    stack,
    with_machine,
    with_pool,
    with_workload,
    write,
)
from tests.support.samples import HOSTILE, libvirt_plan, serving_plan, training_plan

ROOT = Path(__file__).parents[2]
RULES = [r.identifier for r in EVERY]


def dear_plan():
    return with_workload(serving_plan(), alternatives=(alternative("9.00"),))


# --- packs ----------------------------------------------------------------------------------------


def test_the_builtin_pack_knows_every_rule_and_no_other() -> None:
    assert sorted(builtin_pack().settings) == sorted(RULES)


def test_the_builtin_pack_is_canonical() -> None:
    text = (ROOT / "policies" / "builtin.yaml").read_text(encoding="utf-8")
    comments = [line for line in text.splitlines(keepends=True) if line.startswith("#")]
    assert "".join(comments) + yaml.dumps(yaml.loads(text)) == text


def pack(tmp_path: Path, rules: str) -> Path:
    path = tmp_path / "pack.yaml"
    path.write_text(f"api_version: gpuplan.dev/policies/v1\nrules:\n{rules}")
    return path


def test_a_pack_changes_what_it_names(tmp_path: Path) -> None:
    path = pack(tmp_path, "  GP301: {thresholds: {minimum: 20}}\n  GP204: {severity: info}\n")
    loaded = load_pack(path)
    assert loaded["GP301"].thresholds == {"minimum": 20, "error_below": 2}
    assert loaded["GP204"].severity is Severity.INFO
    assert loaded["GP101"] == builtin_pack()["GP101"]
    assert rules(judge(serving_plan(), pack=loaded)) == {"GP301"}


def test_a_severity_of_the_user_holds_for_every_finding(tmp_path: Path) -> None:
    plan = with_pool(serving_plan(), cpu_cores=8)
    assert [v.severity for v in judge(plan)] == [Severity.ERROR]
    path = pack(tmp_path, "  GP301: {severity: info}\n")
    assert [v.severity for v in judge(plan, pack=load_pack(path))] == [Severity.INFO]


@pytest.mark.parametrize(
    ("rule", "remedy"),
    [("GP101", "this rule has no thresholds"), ("GP301", "fields here are minimum, error_below")],
)
def test_an_unknown_threshold_is_told_which_there_are(
    tmp_path: Path, rule: str, remedy: str
) -> None:
    with pytest.raises(Rejected) as raised:
        load_pack(pack(tmp_path, f"  {rule}: {{thresholds: {{x: 1}}}}\n"))
    [told] = raised.value.diagnostics
    assert told.help == remedy


def test_a_threshold_may_be_zero(tmp_path: Path) -> None:
    loaded = load_pack(pack(tmp_path, "  GP301: {thresholds: {error_below: 0}}\n"))
    found = judge(with_pool(serving_plan(), cpu_cores=8), pack=loaded)
    assert [v.severity for v in found] == [Severity.WARNING]


def test_a_rule_can_be_switched_off(tmp_path: Path) -> None:
    path = pack(tmp_path, "  GP201: {enabled: false}\n")
    assert judge(dear_plan(), pack=load_pack(path)).verdicts == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: {}", "starts with 'api_version"),
        ("", "starts with 'api_version"),
        ("- a", "starts with 'api_version"),
        ("api_version: gpuplan.dev/policies/v2\nrules: {}", "starts with 'api_version"),
        ("V\nrules: []", "'rules' must map"),
        ("V\nrule: {}", "unknown field 'rule'"),
        ("V\nrules: {GP999: {}}", "no rule is called 'GP999'"),
        ("V\nrules: {GP101: 1}", "'GP101' must be a mapping"),
        ("V\nrules: {GP101: {severity: fatal}}", "'severity' must be one of"),
        ("V\nrules: {GP101: {enabled: 'false'}}", "'enabled' must be true or false"),
        ("V\nrules: {GP101: {enable: false}}", "unknown field 'enable'"),
        ("V\nrules: {GP101: {thresholds: {x: 1}}}", "unknown field 'x'"),
        ("V\nrules: {GP301: {thresholds: {minimum: 4.5}}}", "must be a whole number"),
        ("V\nrules: {GP301: {thresholds: {minimum: '4'}}}", "must be a whole number"),
        ("V\nrules: {GP301: {thresholds: {minimum: -1}}}", "must be a whole number"),
        ("V\nrules: {GP301: {thresholds: {minimum: true}}}", "must be a whole number"),
        ("V\nrules: {GP301: {thresholds: [4]}}", "'thresholds' must be a mapping"),
        ("V\nrules: {}\n---\nV\nrules: {}", "more than one document"),
        ("V\nrules: {GP101: {}, GP101: {}}", "duplicate key"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_bad_pack_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "pack.yaml"
    path.write_text(text.replace("V\n", "api_version: gpuplan.dev/policies/v1\n"))
    with pytest.raises(Rejected) as caught:
        load_pack(path)
    assert any(words in d.message for d in caught.value.diagnostics)
    assert all(d.severity is Severity.ERROR for d in caught.value.diagnostics)


def test_all_mistakes_of_a_pack_come_at_once_with_their_lines(tmp_path: Path) -> None:
    path = pack(tmp_path, "  GP999: {}\n  GP301:\n    severity: bad\n    thresholds: {x: 1}\n")
    sources = Sources()
    with pytest.raises(Rejected) as caught:
        load_pack(path, sources)
    places = [sources.locate(d.origin) for d in caught.value.diagnostics]
    assert [place[1].line for place in places if place] == [3, 5, 6]


# --- waivers --------------------------------------------------------------------------------------


WAIVER = """\
waivers:
- rule: GP201
  match: chat/workload/assistant
  reason: the H100s are paid for
  owner: ml-platform
  expires: 2026-12-31
"""


def waived(tmp_path: Path, text: str, *plans, as_of: date = TODAY):
    path = tmp_path / "waivers.yaml"
    path.write_text(text)
    stacks = [p if not hasattr(p, "workloads") else stack(p) for p in plans or (dear_plan(),)]
    return check(stacks, builtin_pack(), load_waivers(path, RULES), as_of=as_of)


def test_a_waived_finding_stays_visible(tmp_path: Path) -> None:
    report = waived(tmp_path, WAIVER)
    (verdict,) = report.verdicts
    assert report.active == ()
    assert report.exit_code(Severity.INFO) == 0
    assert verdict.suppression is not None
    assert verdict.suppression.reason == "the H100s are paid for"
    assert verdict.suppression.place.endswith("waivers.yaml:2")


@pytest.mark.parametrize(
    ("match", "covers"),
    [("chat/*", True), ("*/workload/*", True), ("tune/*", False), ("chat/workload/other", False)],
)
def test_a_waiver_matches_stack_and_resource(tmp_path: Path, match: str, covers: bool) -> None:
    report = waived(tmp_path, WAIVER.replace("chat/workload/assistant", f'"{match}"'))
    assert ("GP201" not in rules(report)) == covers


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        (date(2026, 12, 31), set()),
        (date(2027, 1, 1), {"GP201", "GP901"}),
        (date(2026, 12, 31) - timedelta(days=180), set()),
        (date(2026, 12, 31) - timedelta(days=181), {"GP201", "GP903"}),
    ],
)
def test_a_waiver_ends_and_is_not_granted_for_long(
    tmp_path: Path, day: date, expected: set[str]
) -> None:
    report = waived(tmp_path, WAIVER, as_of=day)
    assert rules(report) - {"GP206"} == expected  # its prices get old too
    assert report.exit_code() == int(bool(expected))


@pytest.mark.parametrize("plan", [serving_plan(), with_workload(dear_plan(), name="other")])
def test_a_waiver_that_matches_nothing_is_a_warning(tmp_path: Path, plan) -> None:
    report = waived(tmp_path, WAIVER, plan)
    (verdict,) = (v for v in report if v.rule == "GP902")
    assert verdict.severity is Severity.WARNING
    assert verdict.line == 2
    assert verdict.resource == "waiver/GP201/chat/workload/assistant"
    assert verdict.message.startswith("the waiver of GP201 for chat/workload/assistant")


def test_a_waiver_of_a_stack_that_is_not_checked_is_not_stale(tmp_path: Path) -> None:
    report = waived(tmp_path, WAIVER.replace("chat/workload", "elsewhere/workload"), serving_plan())
    assert rules(report) == set()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  owner: ml-platform\n", "", "'owner' is missing"),
        ("  reason: the H100s are paid for\n", "", "'reason' is missing"),
        ("reason: the H100s are paid for", "reason: ' '", "'reason' must be a text"),
        ("  expires: 2026-12-31\n", "", "'expires' is missing"),
        ("2026-12-31", "2026-02-30", "'2026-02-30' is not a date"),
        ("2026-12-31", "20261231", "'expires' must be a text"),
        ("GP201", "GP299", "no rule is called 'GP299'"),
        ("  owner:", "  ower: x\n  owner:", "unknown field 'ower' did you mean 'owner'?"),
        ("- rule: GP201\n  match", "- just text\n- match", "it must be a mapping"),
    ],
)
def test_an_incomplete_waiver_covers_nothing(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    report = waived(tmp_path, WAIVER.replace(old, new))
    found = [v for v in report if v.rule == "GP903"]
    assert "GP201" in rules(report)
    assert any(words in v.message for v in found)
    assert report.exit_code() == 1


@pytest.mark.parametrize("text", ["", "[]", "waivers: {}", "waivers: []\nmore: 1", "a: [", "x"])
def test_a_file_that_is_no_list_of_waivers_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Rejected):
        waived(tmp_path, text)


PRIVILEGED = PROGRAM.replace("privileged=False)", "privileged=True)")


def inline(comment: str, program: str = PRIVILEGED):
    return judge(
        stack(serving_plan(), **{"workload.py": program.replace("=True),", f"=True),{comment}")})
    )


def test_an_inline_waiver_covers_its_line() -> None:
    report = inline("  # gpuplan: ignore[GP701] until=2026-12-31 the profiler needs it")
    assert report.active == ()
    (verdict,) = report
    assert verdict.suppression is not None
    assert verdict.suppression.inline
    assert verdict.suppression.reason == "the profiler needs it"


def test_an_inline_waiver_alone_covers_the_next_line() -> None:
    text = "# gpuplan: ignore[GP701, GP602] until=2026-12-31 why\nx.privileged = True\n"
    report = judge(stack(serving_plan(), **{"a.py": text}))
    assert [(v.rule, v.line) for v in report.active] == [("GP902", 1)]
    (stale,) = report.active
    assert stale.resource == "waiver/GP602"
    assert stale.message.startswith("the waiver of GP602 ")
    assert " for " not in stale.message.partition(":")[0]
    later = text.replace("why\n", "why\n\n")
    assert rules(judge(stack(serving_plan(), **{"a.py": later}))) == {"GP701", "GP902"}


def test_an_inline_waiver_in_a_document_covers_its_line() -> None:
    mark = "# gpuplan: ignore[GP701] until=2026-12-31 the profiler needs it"
    text = f"a: 1\nprivileged: true  {mark}\nb: 2\n"
    report = judge(stack(serving_plan(), **{"m.yaml": text}))
    assert report.active == ()
    assert [(v.rule, v.line) for v in report] == [("GP701", 2)]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# gpuplan: ignore[GP701] until=2026-10-31 why", {"GP701", "GP901"}),
        ("# gpuplan: ignore[GP701] until=2099-01-01 why", {"GP701", "GP903"}),
        ("# gpuplan: ignore[GP701] why", {"GP701", "GP903"}),
        ("# gpuplan: ignore[GP701] until=2026-12-31", {"GP701", "GP903"}),
        ("# gpuplan: ignore", {"GP701", "GP903"}),
        ("# gpuplan: ignore[GP999] until=2026-12-31 why", {"GP701", "GP903"}),
        ("# gpuplan: ignore[GP602] until=2026-12-31 why", {"GP701", "GP902"}),
        ("# see # gpuplan: ignore[GP701] until=2026-12-31 why", {"GP701"}),
    ],
)
def test_an_inline_waiver_that_does_not_cover(comment: str, expected: set[str]) -> None:
    assert rules(inline(f"  {comment}")) == expected


def test_text_that_looks_like_a_waiver_is_data() -> None:
    mark = "# gpuplan: ignore[GP701] until=2026-12-31 why"
    python = f'x.privileged = True; note = "{mark}"\ntext = """\n{mark}\n"""\ny.privileged = True\n'
    document = f"privileged: true\nnote: \"{mark}\"\nother: '{mark}'\n"
    report = judge(stack(serving_plan(), **{"a.py": python, "b.yaml": document}))
    assert report.waived == ()
    assert len([v for v in report if v.rule == "GP701"]) == 3


# --- reading and order ----------------------------------------------------------------------------


def test_stacks_are_found_by_path_folder_and_plan(tmp_path: Path) -> None:
    chat = write(tmp_path, serving_plan())
    tune = write(tmp_path, libvirt_plan())
    write(tmp_path / ".hidden", serving_plan())
    write(tmp_path, replace(serving_plan(), name=".old"))
    assert [s.plan.name for s in read_stacks(tmp_path)] == ["chat", "tune"]
    assert run_check([chat, tmp_path, tune], as_of=TODAY).stacks == ("chat", "tune")
    report = run_check([chat / "plan.yaml"], as_of=TODAY)
    assert report.stacks == ("chat",)


def test_paths_are_shown_as_they_were_given(tmp_path: Path, monkeypatch) -> None:
    folder = write(tmp_path / "stacks", dear_plan())
    monkeypatch.chdir(folder)
    for given, shown in ((".", "plan.yaml"), ("../chat", "../chat/plan.yaml"), ("plan.yaml",) * 2):
        (verdict,) = run_check([Path(given)], as_of=TODAY)
        assert verdict.file == shown
        assert verdict.line == 1 + (folder / "plan.yaml").read_text().split("\n").index(
            "  gpu: h100-sxm-80gb"
        )


def test_waivers_beside_the_current_folder_are_read(tmp_path: Path, monkeypatch) -> None:
    folder = write(tmp_path, dear_plan())
    monkeypatch.chdir(tmp_path)
    assert rules(run_check([folder], as_of=TODAY)) == {"GP201"}
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "waivers.yaml").write_text(WAIVER)
    assert rules(run_check([folder], as_of=TODAY)) == set()


@pytest.mark.parametrize("content", ["", "api_version: x\n", "not: [yaml", "name: chat\n"])
def test_a_stack_that_cannot_be_read_is_refused(tmp_path: Path, content: str) -> None:
    folder = write(tmp_path, serving_plan())
    (folder / "plan.yaml").write_text(content)
    with pytest.raises(Rejected):
        run_check([folder], as_of=TODAY)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  cpu_cores: 112", "  cpu_cores: many"),
        ("  cpu_cores: 112", "  cpu_cores: 112.5"),
        ("  cpu_cores: 112", "  cpu_cores: true"),
        ("  cpu_cores: 112", "  cpu_cores: [112]"),
        ("  usd_per_hour: 47.2", "  usd_per_hour: free"),
        ("  usd_per_hour: 47.2", "  usd_per_hour: .nan"),
        ("  isolation: shared", "  isolation: none"),
        ("  name: assistant", "  name: 5"),
        ("  replicas: 3", "  replica: 3"),
    ],
)
def test_a_plan_with_a_wrong_value_is_refused(tmp_path: Path, old: str, new: str) -> None:
    folder = write(tmp_path, serving_plan())
    text = (folder / "plan.yaml").read_text()
    assert old.replace("  name", "- name") in text
    edited = text.replace(old.replace("  name", "- name"), new.replace("  name", "- name"))
    (folder / "plan.yaml").write_text(edited)
    with pytest.raises(Rejected):
        run_check([folder], as_of=TODAY)


def test_a_rule_that_cannot_judge_does_not_pass(tmp_path: Path) -> None:
    folder = write(tmp_path, with_machine(libvirt_plan(), threads_per_core=0))
    with pytest.raises(Rejected, match="GP301 cannot judge tune"):
        run_check([folder], as_of=TODAY)


def test_every_bad_path_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Rejected) as caught:
        run_check(
            [tmp_path / "absent", tmp_path / "empty"], as_of=TODAY, waivers_path=tmp_path / "w"
        )
    messages = [d.message for d in caught.value.diagnostics]
    assert messages == [f"cannot read {tmp_path}/w: no such file or directory"]
    with pytest.raises(Rejected) as caught:
        run_check([tmp_path / "absent", tmp_path / "empty"], as_of=TODAY)
    assert [d.rule for d in caught.value.diagnostics] == ["GP009", "GP951"]


def test_a_stack_that_lost_its_plan_does_not_pass_unseen(tmp_path: Path) -> None:
    write(tmp_path, libvirt_plan())
    folder = write(tmp_path, serving_plan())
    (folder / "plan.yaml").unlink()
    for path in (folder, tmp_path):
        with pytest.raises(Rejected, match=r"chat/plan\.yaml: no such file"):
            run_check([path], as_of=TODAY)


def test_a_plan_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = write(tmp_path, serving_plan())
    (folder / "plan.yaml").rename(tmp_path / "outside.yaml")
    (folder / "plan.yaml").symlink_to(tmp_path / "outside.yaml")
    with pytest.raises(Rejected):
        run_check([folder], as_of=TODAY)


def test_a_plan_that_refers_to_nothing_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, with_pool(serving_plan(), name="renamed"))
    with pytest.raises(Rejected, match="refers to 'h100-sxm-80gb'"):
        run_check([folder], as_of=TODAY)


def test_findings_are_sorted_by_gravity_cost_and_place() -> None:
    dear = with_pool(dear_plan(), cpu_cores=24, memory_bytes=1)
    files = {"z.py": "x.privileged = True", "a.py": "\nx.privileged = True\ny.privileged = True"}
    other = stack(replace(dear_plan(), name="b-chat"), **{"README.md": ""})
    report = judge(stack(dear, **files), other)
    assert [(v.severity.value, v.rule, v.file) for v in report] == [
        ("error", "GP201", "stacks/b-chat/plan.yaml"),
        ("error", "GP201", "stacks/chat/plan.yaml"),
        ("error", "GP701", "stacks/chat/a.py"),
        ("error", "GP701", "stacks/chat/a.py"),
        ("error", "GP303", "stacks/chat/plan.yaml"),
        ("error", "GP701", "stacks/chat/z.py"),
        ("warning", "GP301", "stacks/chat/plan.yaml"),
        ("info", "GP304", "stacks/chat/plan.yaml"),
    ]
    assert [v.line for v in report if v.file.endswith("a.py")] == [2, 3]


@pytest.mark.parametrize(
    ("severities", "fail_on", "code"),
    [
        ({"cpu_cores": 24}, Severity.ERROR, 0),
        ({"cpu_cores": 24}, Severity.WARNING, 1),
        ({"memory_bytes": 500 * 2**30}, Severity.WARNING, 0),
        ({"memory_bytes": 500 * 2**30}, Severity.INFO, 1),
        ({"cpu_cores": 8}, Severity.ERROR, 1),
        ({}, Severity.INFO, 0),
    ],
)
def test_exit_codes(severities: dict[str, int], fail_on: Severity, code: int) -> None:
    assert judge(with_pool(serving_plan(), **severities)).exit_code(fail_on) == code


def test_lines_of_a_plan_are_the_right_ones() -> None:
    text = stack(libvirt_plan()).plan_text
    rows = text.split("\n")
    for path, row in (
        ("workloads[tune].memory.capacity_bytes", "    capacity_bytes: "),
        ("node_pools[h100-sxm-80gb].memory_bytes", "  memory_bytes: "),
        ("virtual_machines[tune-0].memory_bytes", "  memory_bytes: "),
        ("virtual_machines[tune-0]", "- name: tune-0"),
        ("virtual_machines[tune-0].name", "- name: tune-0"),
        ("virtual_machines[tune-0].devices[gpu2]", "  - name: gpu2"),
        ("workloads[tune].environment[NOTE].value", '  - {"name": "NOTE"'),
        ("hosts[hv-01]", "- name: hv-01"),
        ("cost.usd_per_hour", "  usd_per_hour: 47.2"),
    ):
        line = line_of(text, path)
        assert line is not None
        assert rows[line - 1].startswith(row), (path, rows[line - 1])
    assert line_of(text, "workloads[absent].memory") == line_of(text, "workloads")
    assert line_of(text, "absent") is None


def lines(node: Any, path: str) -> Iterator[tuple[str, int]]:
    """Each property below `node` that stands on a line of its own, with that line."""
    if getattr(node, "flow_style", True):
        return
    for entry in node.value if isinstance(node, SequenceNode) else ():
        for key, value in entry.value[:1] if isinstance(entry, MappingNode) else ():
            if key.value == "name":
                yield f"{path}[{value.value}]", entry.start_mark.line + 1
                yield from lines(entry, f"{path}[{value.value}]")
    for key, value in node.value if isinstance(node, MappingNode) else ():
        inner = f"{path}.{key.value}" if path else key.value
        yield inner, key.start_mark.line + 1
        yield from lines(value, inner)


@pytest.mark.parametrize("make", [serving_plan, training_plan, libvirt_plan])
def test_every_property_of_a_plan_has_the_line_that_a_parser_finds(
    make: Callable[[], Plan],
) -> None:
    """Whatever was written: lists in lists, equal names in two lists, values in braces."""
    text = stack(make()).plan_text
    found = list(lines(YAML().compose(text), ""))
    assert len(found) > 100
    known = dict(found)
    assert {path: line_of(text, path) for path, _ in found} == known
    for path, _ in found:
        parent, _, key = path.rpartition(".")
        if parent in known:
            assert line_of(text, f"{parent}.absent.{key}") == known[parent], path


@pytest.mark.parametrize("make", [serving_plan, libvirt_plan])
def test_a_property_that_others_have_is_not_found_in_them(make: Callable[[], Plan]) -> None:
    """Of all names in a plan, those that a part of it lacks have the line of that part."""
    text = stack(make()).plan_text
    known = dict(lines(YAML().compose(text), ""))
    ways = [match.groups() for path in known if (match := re.fullmatch(r"(.+)([.[].+)", path))]
    for sign in (".", "["):  # of mappings, of lists
        parts = {part for part, end in ways if end.startswith(sign) and part in known}
        ends = {end for _, end in ways if end.startswith(sign)}
        absent = [(part, end) for part in parts for end in ends if f"{part}{end}" not in known]
        assert len(absent) > 20
        for part, end in absent:
            assert line_of(text, f"{part}{end}") == known[part], (part, end)


def test_a_report_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    write(tmp_path, with_pool(dear_plan(), cpu_cores=24))
    code = (
        "from datetime import date; from pathlib import Path\n"
        "from gpuplan.policy.review import run_check\n"
        "from gpuplan.report.findings import render\n"
        f"print(render(run_check([Path({str(tmp_path)!r})], as_of=date(2026, 11, 1)), 'json'))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert "GP201" in outputs.pop()


def test_check_imports_neither_pydantic_nor_yaml_libraries(tmp_path: Path) -> None:
    write(tmp_path, serving_plan(), **{"workload.py": PROGRAM})
    code = (
        "import sys; from datetime import date; from pathlib import Path\n"
        "from gpuplan.policy.review import run_check\n"
        "from gpuplan.report.findings import render\n"
        f"render(run_check([Path({str(tmp_path)!r})], as_of=date(2026, 11, 1)), 'full')\n"
        "print([m for m in ('pydantic', 'ruamel', 'ruamel.yaml', 'jinja2') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert run.stdout.strip() == "[]"


def test_a_description_cannot_waive_anything() -> None:
    mark = "# gpuplan: ignore[GP201] until=2026-12-31 why"
    for text in (mark, f"{HOSTILE}\n{mark}\n", f'"\n{mark}', f"' {mark}"):
        plan = with_workload(replace(dear_plan(), description=text), description=text)
        report = judge(stack(plan, **{"README.md": ""}))
        assert rules(report) == {"GP201"}
        assert report.waived == ()


# --- documentation --------------------------------------------------------------------------------


def test_the_rules_page_is_current() -> None:
    assert document(["--check", str(ROOT / "docs" / "rules.md")]) == 0


def test_a_stale_rules_page_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "rules.md"
    page.write_text("old")
    assert document(["--check", str(page)]) == 1
    assert "stale" in capsys.readouterr().err


def test_rules_are_functions_that_call_nothing_impure() -> None:
    for module in sorted((ROOT / "gpuplan" / "policy" / "rules").glob("*.py")):
        names = {
            node.id
            for node in ast.walk(ast.parse(module.read_text()))
            if isinstance(node, ast.Name)
        }
        assert names.isdisjoint({"open", "eval", "exec", "print", "input", "__import__"})
