"""Waivers as they are written: what each says, which findings it covers, what is told of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.findings import Report
from gpuplan.policy.engine import EVERY
from gpuplan.policy.waivers import load_waivers
from gpuplan.render.tree import FileTree
from tests.support.policy_samples import TODAY, alternative, judge, stack, with_pool, with_workload
from tests.support.samples import serving_plan

RULES = [rule.identifier for rule in EVERY]
FIELDS = {
    "rule": "GP201",
    "match": "chat/workload/assistant",
    "reason": "paid for",
    "owner": "ml",
    "expires": "2026-12-31",
}


def listed(folder: Path, *entries: object) -> Path:
    """A file of waivers: fields and their texts as YAML, or what is none."""
    rows = ["waivers:"]
    for entry in entries:
        fields = (
            [f"{k}: {v}" for k, v in entry.items()] if isinstance(entry, dict) else [f"{entry}"]
        )
        rows += [f"- {fields[0]}", *(f"  {field}" for field in fields[1:])]
    file = folder / "waivers.yaml"
    file.write_text("\n".join(rows) + "\n", "utf-8")
    return file


def waived(folder: Path, *entries: object, **files: str) -> Report:
    plan = with_workload(serving_plan(), alternatives=(alternative("9.00"),))
    waivers = load_waivers(listed(folder, *entries), RULES)
    return judge(stack(plan, **files), waivers=waivers)


def problems(report: Report) -> list[str]:
    return [v.message.partition("covers nothing: ")[2] for v in report if v.rule == "GP903"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"owner": None}, "'owner' is missing"),
        ({"owner": None, "reason": None}, "'reason' is missing; 'owner' is missing"),
        ({"owner": "''"}, "'owner' must be a text"),
        ({"owner": "1"}, "'owner' must be a text"),
        ({"owner": "[a]"}, "'owner' must be a text"),
        ({"expires": "soon"}, "'soon' is not a date: write YYYY-MM-DD"),
        ({"expires": "2026-12-32"}, "'2026-12-32' is not a date: write YYYY-MM-DD"),
        ({"expires": "20261231"}, "'expires' must be a text"),
        ({"expires": "'20261231'"}, "'20261231' is not a date: write YYYY-MM-DD"),
        ({"rule": "GP20"}, "no rule is called 'GP20' did you mean 'GP206'?"),
        ({"rule": "x"}, "no rule is called 'x'"),
        ({"rule": "x", "expires": "y"},
         "no rule is called 'x'; 'y' is not a date: write YYYY-MM-DD"),
        ({"until": "a"}, "unknown field 'until'"),
        ({"match": None, "matches": "a"},
         "unknown field 'matches' did you mean 'match'?; 'match' is missing"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_waiver_is_all_said(
    tmp_path: Path, changes: dict[str, str | None], said: str | None
) -> None:
    entry = {k: v for k, v in (FIELDS | changes).items() if v is not None}
    report = waived(tmp_path, entry)
    assert problems(report) == ([said] if said else [])
    assert ("GP201" in {v.rule for v in report.active}) == (said is not None)
    for verdict in report:
        if verdict.rule == "GP903":
            assert (verdict.line, verdict.file) == (2, f"{tmp_path}/waivers.yaml")


def test_waivers_stand_at_their_own_lines(tmp_path: Path) -> None:
    bad = FIELDS | {"owner": "1"}
    report = waived(tmp_path, FIELDS, "text", bad, FIELDS | {"match": "chat/*/other"})
    said = {(v.rule, v.line, v.message.partition(" covers")[0]) for v in report.active}
    assert said == {
        ("GP903", 7, "the waiver of unknown rule"),
        ("GP903", 8, "the waiver of GP201 for chat/workload/assistant"),
        ("GP902", 13, "the waiver of GP201 for chat/*/other matches no finding"),
    }
    assert problems(report)[0] == "it must be a mapping of rule, match, reason, owner, expires"


@pytest.mark.parametrize("days", [-2, -1, 0, 1, 179, 180, 181])
def test_a_waiver_holds_from_its_first_possible_day_to_its_last(tmp_path: Path, days: int) -> None:
    entry = FIELDS | {"expires": (TODAY + timedelta(days=days)).isoformat()}
    active = {v.rule for v in waived(tmp_path, entry).active}
    late, long = days < 0, days > 180
    assert active == {*(["GP901"] * late), *(["GP903"] * long), *(["GP201"] * (late or long))}


def test_the_first_waiver_that_holds_covers_and_all_that_match_are_used(tmp_path: Path) -> None:
    expired = FIELDS | {"expires": "2026-10-01", "reason": "first"}
    other = FIELDS | {"match": "tune/*", "reason": "elsewhere"}
    again = FIELDS | {"match": "chat/*", "reason": "third"}
    report = waived(tmp_path, expired, other, FIELDS, again)
    [covered] = [v for v in report if v.rule == "GP201"]
    assert covered.suppression
    assert covered.suppression.reason == "paid for"
    assert (covered.suppression.owner, covered.suppression.expires) == ("ml", date(2026, 12, 31))
    assert covered.suppression.place == f"{tmp_path}/waivers.yaml:12"
    assert {v.rule for v in report.active} == {"GP901"}


MARK = "# gpuplan: ignore[GP701] until=2026-12-31 why"


@pytest.mark.parametrize(
    ("file", "text", "covered"),
    [
        ("a.py", f"x.privileged = True  {MARK}\n", True),
        ("a.py", f"{MARK}\nx.privileged = True\n", True),
        ("a.py", f"{MARK}\n\nx.privileged = True\n", False),
        ("a.py", f"x.privileged = True\n{MARK}\n", False),
        ("a.py", f"#  gpuplan:  {MARK[11:]}\nx.privileged = True\n", True),
        ("a.yml", f"{MARK}\nprivileged:  true\n", True),
        ("a.yaml", f"b: 1 {MARK}\nprivileged:  true\n", True),
        ("a.yaml", f"b: 'x' {MARK}\nprivileged:  true\n", True),
        ("a.yaml", f"b: x{MARK}\nprivileged:  true\n", False),
        ("a.sh", f"{MARK}\ndocker run --privileged\n", False),
        ("a.json", f'{{"b": "{MARK}", "privileged": true}}', False),
    ],
)
def test_a_comment_covers_its_line_and_the_next_of_its_own_file(
    file: str, text: str, covered: bool
) -> None:
    for other in ("", f"{MARK}\n"):
        files = {file: text} | ({"z.py": other} if other else {})
        report = judge(stack(serving_plan(), **files))
        assert [bool(v.suppression) for v in report if v.rule == "GP701"] == [covered]


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("ignore[GP606] until=2026-12-31 why", []),
        ("ignore[GP606] until=2026-12-31", ["a reason is missing"]),
        ("ignore[GP606] why", ["'until=YYYY-MM-DD' is missing"]),
        ("ignore[GP606]", ["'until=YYYY-MM-DD' is missing; a reason is missing"]),
        ("ignore[GP606] until=x why", ["'x' is not a date: write YYYY-MM-DD"]),
        ("ignore", ["write 'ignore[RULE] until=YYYY-MM-DD REASON'"]),
        ("ignore[XY] until=2026-12-31 why", ["no rule is called 'XY'"]),
    ],
)
def test_what_is_wrong_with_a_comment_is_all_said(mark: str, said: list[str]) -> None:
    text = f"a==1\n# gpuplan: {mark}\npulumi\n"
    report = judge(stack(serving_plan(), **{"requirements.txt": text}))
    assert problems(report) == said
    assert [v.line for v in report if v.rule == "GP903"] == [2] * len(said)
    assert [bool(v.suppression) for v in report if v.rule == "GP606"] == [not said]
    for verdict in report:
        if verdict.suppression:
            assert verdict.suppression.place == "stacks/chat/requirements.txt:2"


def test_a_comment_that_matches_nothing_is_stale_in_its_own_stack() -> None:
    report = judge(stack(serving_plan(), **{"a.py": f"{MARK}\n"}))
    assert [(v.rule, v.line, v.file) for v in report] == [("GP902", 1, "stacks/chat/a.py")]


# --- order of findings ----------------------------------------------------------------------------


def test_of_one_gravity_what_saves_most_is_first_and_a_whole_file_before_its_lines() -> None:
    plan = with_workload(
        serving_plan(), usd_per_hour=Decimal("0.9"), alternatives=(alternative("0.4"),)
    )
    made = stack(with_pool(plan, memory_bytes=1), **{"a.py": "x.privileged = True\n"})
    edited = (replace(f, text=f"{f.text}#\n") if f.path == "a.py" else f for f in made.files)
    report = judge(replace(made, files=FileTree(tuple(edited))))
    assert [(v.rule, v.line is None) for v in report if v.severity.value == "error"] == [
        ("GP201", False),
        ("GP904", True),
        ("GP701", False),
        ("GP303", False),
    ]
