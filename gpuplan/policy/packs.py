"""Policy packs: severity, thresholds and whether a rule runs, read from `policies/builtin.yaml`.

A pack of the user's (`--config FILE`) has the same form, names only what it changes, and is laid
over the built-in one. A pack that says something unknown is refused: a gate never guesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gpuplan.diagnostics import Diagnostic, Severity, did_you_mean, error
from gpuplan.errors import Rejected
from gpuplan.frozen import frozen
from gpuplan.policy.reading import read_builtin, read_document
from gpuplan.render import yaml
from gpuplan.source import Origin, Sources

API_VERSION = "gpuplan.dev/policies/v1"
SEVERITIES = tuple(s.value for s in Severity)
FIELDS = ("severity", "enabled", "thresholds")


@frozen
class Setting:
    """How one rule runs. `pinned`: the user set the severity, so it holds for every finding."""

    severity: Severity
    enabled: bool
    thresholds: Mapping[str, int]
    pinned: bool = False


@frozen
class Pack:
    """Settings by rule identifier."""

    settings: Mapping[str, Setting]

    def __getitem__(self, rule: str) -> Setting:
        return self.settings[rule]


def invalid(message: str, origin: Origin, *, label: str = "", remedy: str = "") -> Diagnostic:
    return error("GP950", message, origin, label=label, help=remedy)


def unknown_rule(name: str, known: Iterable[str], origin: Origin) -> Diagnostic:
    return invalid(
        f"no rule is called '{name}'",
        Origin(origin.document, origin.path, key=True),
        label=did_you_mean(name, known),
        remedy="docs/rules.md lists all rules",
    )


def unknown_field(name: str, known: Iterable[str], origin: Origin) -> Diagnostic:
    names = tuple(known)
    return invalid(
        f"unknown field '{name}'",
        Origin(origin.document, origin.path, key=True),
        label=did_you_mean(name, names),
        remedy=f"fields here are {', '.join(names)}" if names else "this rule has no thresholds",
    )


def builtin_pack() -> Pack:
    """The pack that comes with gpuplan."""
    rules = yaml.loads(read_builtin())["rules"]
    assert isinstance(rules, dict)
    return Pack(
        {
            name: Setting(
                severity=Severity(body["severity"]),
                enabled=body.get("enabled", True),
                thresholds=body.get("thresholds", {}),
            )
            for name, body in rules.items()
        }
    )


def load_pack(path: Path | None, sources: Sources | None = None) -> Pack:
    """The built-in pack with the one at `path` laid over it. Raises `Rejected`."""
    pack = builtin_pack()
    if path is None:
        return pack
    document = read_document(path, sources)
    root = Origin(document.name)
    problems: list[Diagnostic] = []
    settings = dict(pack.settings)
    for name, body, origin in _rules(document.data, root, problems):
        if name not in settings:
            problems.append(unknown_rule(name, settings, origin))
        elif isinstance(body, dict):
            settings[name] = _overlay(settings[name], body, origin, problems)
        else:
            problems.append(invalid(f"'{name}' must be a mapping of {', '.join(FIELDS)}", origin))
    if problems:
        raise Rejected(problems)
    return Pack(settings)


def _rules(
    data: object, root: Origin, problems: list[Diagnostic]
) -> list[tuple[str, object, Origin]]:
    """(rule, body, origin) of a pack's document; what is wrong above that goes to `problems`."""
    if not isinstance(data, dict) or data.get("api_version") != API_VERSION:
        message = f"a policy pack starts with 'api_version: {API_VERSION}'"
        problems.append(invalid(message, root))
        return []
    fields = ("api_version", "rules")
    problems += [unknown_field(n, fields, root.child(n)) for n in data if n not in fields]
    rules = data.get("rules")
    if not isinstance(rules, dict):
        problems.append(invalid("'rules' must map rule identifiers to settings", root))
        return []
    return [(name, body, root.child("rules", name)) for name, body in rules.items()]


def _overlay(
    setting: Setting, body: dict[str, object], origin: Origin, problems: list[Diagnostic]
) -> Setting:
    for name, value in body.items():
        here = origin.child(name)
        if name == "severity" and isinstance(value, str) and value in SEVERITIES:
            setting = replace(setting, severity=Severity(value), pinned=True)
        elif name == "enabled" and isinstance(value, bool):
            setting = replace(setting, enabled=value)
        elif name == "thresholds" and isinstance(value, dict):
            known = setting.thresholds
            problems.extend(_wrong_thresholds(known, value, here))
            setting = replace(setting, thresholds={**known, **value})
        else:
            problems.append(_wrong_field(name, here))
    return setting


def _wrong_field(name: str, origin: Origin) -> Diagnostic:
    kinds = {
        "severity": f"one of {', '.join(SEVERITIES)}",
        "enabled": "true or false",
        "thresholds": "a mapping of names to whole numbers",
    }
    if name not in kinds:
        return unknown_field(name, FIELDS, origin)
    return invalid(f"'{name}' must be {kinds[name]}", origin)


def _wrong_thresholds(
    known: Mapping[str, int], given: dict[str, object], origin: Origin
) -> Iterable[Diagnostic]:
    for name, value in given.items():
        here = origin.child(name)
        if name not in known:
            yield unknown_field(name, known, here)
        elif isinstance(value, bool) or not isinstance(value, int) or value < 0:
            yield invalid(f"'{name}' must be a whole number, zero or more", here)
