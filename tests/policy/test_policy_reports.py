"""Reports in every format: complete, readable by what consumes them, every name in them data."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from gpuplan.diagnostics import Severity
from gpuplan.findings import Report, Suppression, Verdict
from gpuplan.policy.engine import EVERY
from gpuplan.report import sarif
from gpuplan.report.findings import FORMATS, render
from gpuplan.report.markdown import LIMIT, within_limit
from gpuplan.report.paint import Paint
from tests.support.policy_samples import (
    PROGRAM,
    TODAY,
    alternative,
    judge,
    stack,
    with_pool,
    with_workload,
)
from tests.support.samples import HOSTILE, serving_plan

NASTY = f"{HOSTILE}\r\x00\x1b[31m</script>\u2028|a|b|<img src=x>::error::,file=x"


def sample() -> Report:
    """Two errors (one with a saving, one in a program), a warning, a waived note."""
    plan = with_workload(serving_plan(), alternatives=(alternative("9.00"),))
    plan = with_pool(plan, cpu_cores=24, memory_bytes=500 * 2**30)
    report = judge(stack(plan, **{"workload.py": PROGRAM.replace("=False", "=True")}))
    waiver = Suppression(
        reason="leased", owner="ml", expires=TODAY, place="policies/waivers.yaml:2", inline=False
    )
    waived = (replace(v, suppression=waiver) if v.rule == "GP304" else v for v in report)
    return replace(report, verdicts=tuple(waived))


def nasty() -> Report:
    """Every text of every verdict is hostile."""

    def spoil(verdict: Verdict) -> Verdict:
        texts = ("stack", "resource", "path", "file", "message", "help")
        waiver = verdict.suppression
        if waiver:
            waiver = replace(waiver, reason=NASTY, owner=NASTY, place=NASTY)
        return replace(verdict, suppression=waiver, **dict.fromkeys(texts, NASTY))

    report = sample()
    return replace(report, stacks=(NASTY,), verdicts=tuple(spoil(v) for v in report))


def test_the_full_text() -> None:
    assert render(sample(), "full") == (
        "error[GP201]: assistant runs on 6 × h100-sxm-80gb; 4 × l40s meets the same\n"
        "              objectives and saves $6,351 a month (49 %)\n"
        f" --> stacks/chat/plan.yaml:{line('GP201')}\n"
        "  = saves $6,351 a month\n"
        "  = help: use l40s, or waive this with the reason for h100-sxm-80gb\n"
        "\n"
        "error[GP701]: Deployment[assistant] runs privileged\n"
        " --> stacks/chat/workload.py:11\n"
        "  = help: remove it, or ask for the one capability that is needed\n"
        "\n"
        "warning[GP301]: a node of h100-sxm-80gb has 3 physical cores a GPU, fewer than 4\n"
        f" --> stacks/chat/plan.yaml:{line('GP301')}\n"
        "  = help: choose a shape with more cores\n"
        "\n"
        "info[GP304]: a node of h100-sxm-80gb has 500 GiB of host memory for 632 GiB of\n"
        "             GPU memory\n"
        f" --> stacks/chat/plan.yaml:{line('GP304')}\n"
        "  = waived until 2026-11-01 by ml: leased (policies/waivers.yaml:2)\n"
        "  = help: give it at least 100 % of its GPU memory\n"
        "\n"
        "2 errors, 1 warning, 1 waived in chat\n"
    )


def line(rule: str) -> int | None:
    return next(v.line for v in sample() if v.rule == rule)


def test_the_concise_text_has_a_line_each() -> None:
    lines = render(sample(), "concise").splitlines()
    assert len(lines) == 5
    assert lines[1] == (
        "stacks/chat/workload.py:11: error[GP701] Deployment[assistant] runs privileged"
    )
    assert lines[3].endswith("(waived until 2026-11-01 by ml: leased (policies/waivers.yaml:2))")


def test_a_clean_report_says_how_much_was_judged() -> None:
    report = judge(serving_plan())
    assert render(report, "full") == f"no findings in chat ({len(EVERY)} rules)\n"
    assert render(report, "github") == ""
    assert "**no findings** in `chat`." in render(report, "markdown")


def test_colour_only_when_asked() -> None:
    assert "\x1b" not in render(sample(), "full")
    assert "\x1b[1;31merror[GP201]\x1b[0m" in render(sample(), "full", Paint(on=True))


def test_json_holds_every_field() -> None:
    tree = json.loads(render(sample(), "json"))
    assert tree["version"] == 1
    assert tree["summary"] == {"error": 2, "warning": 1, "info": 0, "waived": 1}
    assert [f["rule"] for f in tree["findings"]] == ["GP201", "GP701", "GP301", "GP304"]
    assert tree["findings"][0]["usd_per_hour"] == 8.7
    assert tree["findings"][3]["waived"]["expires"] == "2026-11-01"
    assert set(tree["findings"][1]) == {
        *("rule", "name", "severity", "stack", "resource", "path", "file", "line", "message"),
        *("help", "requested", "capacity", "unit", "usd_per_hour", "fingerprint", "waived"),
    }


# --- SARIF ----------------------------------------------------------------------------------------


def run_of(report: Report) -> dict[str, Any]:
    log = json.loads(render(report, "sarif"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    return run


def test_sarif_names_rules_places_and_suppressions() -> None:
    run = run_of(sample())
    rules = run["tool"]["driver"]["rules"]
    assert [r["id"] for r in rules] == [r.identifier for r in EVERY]
    assert all(r["help"]["text"] and r["shortDescription"]["text"].endswith(".") for r in rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert re.fullmatch(
            r"stacks/chat/(plan\.yaml|workload\.py)", place["artifactLocation"]["uri"]
        )
        assert place["region"]["startLine"] >= 1
    assert [r["level"] for r in run["results"]] == ["error", "error", "warning", "note"]
    assert [len(r.get("suppressions", [])) for r in run["results"]] == [0, 0, 0, 1]
    assert run["results"][3]["suppressions"][0]["justification"] == "leased"


def test_sarif_says_what_it_left_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "LIMIT", 3)
    run = run_of(sample())
    assert [r["ruleId"] for r in run["results"]] == ["GP201", "GP701", "GP301"]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("1 less grave results were left off")


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("stacks/a b/plan.yaml", "stacks/a%20b/plan.yaml"),
        ("a:b#c?d%.py", "a%3Ab%23c%3Fd%25.py"),
        ("é\n", "%C3%A9%0A"),
        ("/abs/x.py", "file:///abs/x.py"),
    ],
)
def test_sarif_places_are_uris(file: str, uri: str) -> None:
    report = sample()
    report = replace(report, verdicts=(replace(report.verdicts[0], file=file),))
    (result,) = run_of(report)["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


# --- CI services ----------------------------------------------------------------------------------


def test_junit_fails_on_errors_only() -> None:
    suite = ET.fromstring(render(sample(), "junit"))
    assert suite.attrib == {"name": "gpuplan", "tests": "4", "failures": "2", "skipped": "1"}
    assert [case[0].tag for case in suite] == ["failure", "failure", "properties", "skipped"]


def test_github_annotations_are_capped_and_say_so() -> None:
    report = sample()
    many = replace(report, verdicts=report.verdicts[:1] * 13 + report.verdicts[2:])
    lines = render(many, "github").splitlines()
    assert [text.partition(" ")[0] for text in lines] == ["::error"] * 10 + ["3", "::warning"]
    assert lines[10] == "3 more of severity error are not annotated"


def test_gitlab_fingerprints_are_unique() -> None:
    tree = json.loads(render(sample(), "gitlab"))
    assert len({f["fingerprint"] for f in tree}) == len(tree) == 3
    assert tree[0]["location"] == {
        "path": "stacks/chat/plan.yaml",
        "lines": {"begin": line("GP201")},
    }


# --- hostile names --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_names_can_be_written_in_any_format(form: str) -> None:
    text = render(nasty(), form)
    assert text.encode("utf-8")
    assert "\x1b" not in text
    assert "\x00" not in text


def test_hostile_names_are_whole_in_json() -> None:
    assert json.loads(render(nasty(), "json"))["findings"][0]["message"] == NASTY
    assert run_of(nasty())["results"][0]["message"]["text"].startswith(NASTY)
    assert json.loads(render(nasty(), "gitlab"))[0]["description"] == NASTY


def test_hostile_names_are_one_attribute_in_junit() -> None:
    suite = ET.fromstring(render(nasty(), "junit"))
    assert len(suite) == 4
    seen = NASTY.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")
    assert {case.get("classname") for case in suite} == {seen}
    assert {case.get("file") for case in suite} == {seen}


def test_hostile_names_are_one_command_in_github() -> None:
    lines = render(nasty(), "github").split("\n")
    assert len(lines) == 4
    for text in lines[:3]:
        head, _, message = text.removeprefix("::").partition("::")
        assert "\r" not in text
        assert re.fullmatch(r"(error|warning) file=[^,:]*,(line=\d+,)?title=[^,:]*", head)
        assert message.startswith(HOSTILE.replace("%", "%25").replace("\n", "%0A") + "%0D")


def test_hostile_names_are_text_in_terminals() -> None:
    for form in ("full", "concise"):
        text = render(nasty(), form)
        assert all(c == "\n" or c.isprintable() for c in text)
    assert len(render(nasty(), "concise").splitlines()) == 5


def markdown_text(text: str) -> tuple[list[str], str]:
    """(HTML tags that a CommonMark reader with tables renders, the visible text)."""
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return re.findall(r"<(\w+)", html), re.sub(r"<[^>]*>", "", html)


def test_hostile_names_are_text_in_markdown() -> None:
    tags, text = markdown_text(render(nasty(), "markdown"))
    allowed = {"p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert set(tags) <= allowed | {"details", "summary"}
    assert tags.count("tr") == 4
    assert tags.count("td") == 15
    assert "&lt;img src=x&gt;" in text
    assert "{{ x }} ]]&gt; $(HOME) ${y}" in text


def test_a_comment_has_a_limit_and_says_what_is_missing() -> None:
    long = replace(sample().verdicts[0], message="x" * 3000)
    text = render(replace(sample(), verdicts=(long,) * 500), "markdown")
    assert len(text) <= LIMIT
    assert text.startswith("**500 errors** in `chat`.")
    assert "1 part left off: too long for a comment." in text
    assert len(within_limit(["a\n" * LIMIT])) <= LIMIT
    assert within_limit(["a\n" * LIMIT]).endswith("too long for a comment.\n")


def test_more_than_a_hundred_findings_are_counted() -> None:
    text = render(replace(sample(), verdicts=sample().verdicts[:1] * 150), "markdown")
    assert "50 findings more: `gpuplan check`." in text


def test_severities_of_the_report_are_those_of_its_active_findings() -> None:
    assert [sample().count(s) for s in Severity] == [2, 1, 0]
