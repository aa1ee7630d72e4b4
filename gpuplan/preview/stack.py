"""A stack's folder as the Pulumi CLI reads it: `Pulumi.yaml` and `Pulumi.<stack>.yaml`.

Configuration declared in the project gives types, defaults and secrets; the stack's file and the
caller override it. What is required and absent is an error, as in `pulumi preview`, except secrets:
nobody keeps those in a repository, so a placeholder stands in and is named.
Source: pulumi pkg/workspace/config.go, sdk/go/common/workspace/project.go (3.259).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.frozen import record
from gpuplan.plan.read import PLAN
from gpuplan.preview import messages
from gpuplan.preview.messages import PreviewFailed
from gpuplan.preview.values import MASK
from gpuplan.source import Origin, SourceDocument, Sources

PROJECT_FILE = "Pulumi.yaml"
# Settings that say which cluster, of which a preview reaches none, and who has its operators.
CLUSTER_UID_SETTING = "clusterUid"
CLUSTER_SETTINGS = ("context", CLUSTER_UID_SETTING, "operatorsStack")


@record
class StackProgram:
    """What is needed to run a stack's program. `config` has namespaced keys (`chat:hfToken`) and
    values in the engine's text form; `placeholders` are those of them without a value here."""

    project: str
    stack: str
    folder: Path
    main: Path
    config: Mapping[str, str]
    secret_keys: tuple[str, ...]
    placeholders: tuple[str, ...]

    @property
    def cluster_uid(self) -> str | None:
        """The cluster that the program is for, by the UID of its namespace kube-system."""
        return self.config.get(f"{self.project}:{CLUSTER_UID_SETTING}")

    @property
    def working_folder(self) -> Path:
        """Where the program runs, and where its relative paths start."""
        return self.main if self.main.is_dir() else self.folder


@dataclass(slots=True)
class _Configuration:
    """Configuration under construction."""

    project: str
    stack: str
    values: dict[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    placeholders: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)

    def key(self, name: str) -> str:
        return name if ":" in name else f"{self.project}:{name}"

    def hide(self, key: str) -> None:
        """Stand a placeholder in for a secret without a readable value."""
        self.values[key] = MASK
        self.secrets.add(key)
        self.placeholders.add(key)


def read_program(
    folder: Path, stack: str, overrides: Mapping[str, str], *, strict: bool = True
) -> StackProgram:
    """The program of `folder` with the configuration of `stack`. `strict`: the project declares
    each of the `overrides`. Raises `PreviewFailed` with all problems at once."""
    sources = Sources()
    project = _read(folder / PROJECT_FILE, sources)
    if project is None:
        problem = messages.not_a_program if (folder / PLAN).is_file() else messages.no_program
        raise PreviewFailed([problem(folder.name or str(folder))])
    data = _mapping(project, (), sources)
    name = str(data.get("name", ""))
    _check_runtime(data, sources)
    main = (folder / str(data.get("main", "."))).resolve()
    if main.is_dir() and not (main / "__main__.py").is_file():
        raise PreviewFailed([messages.no_main(folder.name)])
    settings = _read(folder / f"Pulumi.{stack}.yaml", sources)
    known = sorted(p.name[len("Pulumi.") : -len(".yaml")] for p in folder.glob("Pulumi.?*.yaml"))
    if settings is None and known:
        raise PreviewFailed([messages.unknown_stack(stack, known)])
    settled = _Configuration(name, stack)
    if settings is not None:
        _read_values(settings, settled, sources)
    settled.problems += _undeclared(project, settled, overrides if strict else {}, sources)
    for key, text in overrides.items():
        settled.values[settled.key(key)] = text
        settled.placeholders.discard(settled.key(key))
    _apply_declarations(project, settled, settings, frozenset(map(settled.key, overrides)), sources)
    if settled.missing:
        settled.problems.append(messages.missing_config(stack, settled.missing))
    if settled.problems:
        raise PreviewFailed(settled.problems, sources)
    return StackProgram(
        project=name,
        stack=stack,
        folder=folder.resolve(),
        main=main,
        config=dict(sorted(settled.values.items())),
        secret_keys=tuple(sorted(settled.secrets)),
        placeholders=tuple(sorted(settled.placeholders)),
    )


def _read(path: Path, sources: Sources) -> SourceDocument | None:
    """The one document of a file; None when there is no file."""
    from gpuplan.manifest.text import read_yaml

    if not path.is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        reason = (problem.strerror or "unreadable").lower()
        raise PreviewFailed([messages.bad_project(f"cannot read {path.name}: {reason}")]) from None
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        reason = f"line {line} is not UTF-8"
        raise PreviewFailed([messages.bad_project(f"cannot read {path.name}: {reason}")]) from None
    for document, problems in read_yaml(path.name, text):
        sources.add(document)
        if problems:
            raise PreviewFailed(problems, sources)
        return document
    return SourceDocument(path.name, text, data={})


def _mapping(document: SourceDocument, path: tuple[str, ...], sources: Sources) -> dict[str, Any]:
    """The mapping at `path`, empty when absent."""
    data: Any = document.data
    for part in path:
        data = data.get(part)
        if data is None:
            return {}
    if not isinstance(data, dict):
        section = ".".join(path) or document.name
        at = Origin(document.name, path)
        raise PreviewFailed([messages.bad_project(f"{section} must be a mapping", at)], sources)
    return data


def _check_runtime(data: Mapping[str, Any], sources: Sources) -> None:
    runtime = data.get("runtime")
    kind = runtime.get("name") if isinstance(runtime, dict) else runtime
    if not data.get("name"):
        at = Origin(PROJECT_FILE)
        raise PreviewFailed([messages.bad_project("Pulumi.yaml names no project", at)], sources)
    if kind != "python":
        at = Origin(PROJECT_FILE, ("runtime",) if runtime else ())
        raise PreviewFailed([messages.other_runtime(str(kind), at)], sources)


def _read_values(document: SourceDocument, settled: _Configuration, sources: Sources) -> None:
    """The `config:` of a stack's file. Encrypted values, unreadable here, get placeholders."""
    for name, value in _mapping(document, ("config",), sources).items():
        key = settled.key(str(name))
        if _is_encrypted(value):
            settled.hide(key)
        elif _holds_encrypted(value):
            settled.hide(key)
            settled.values[key] = _text(_without_encrypted(value))
        else:
            settled.values[key] = _text(value)


def _is_encrypted(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"secure"}


def _holds_encrypted(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_encrypted(value) or any(map(_holds_encrypted, value.values()))
    return isinstance(value, list) and any(map(_holds_encrypted, value))


def _without_encrypted(value: Any) -> Any:
    if _is_encrypted(value):
        return MASK
    if isinstance(value, dict):
        return {k: _without_encrypted(v) for k, v in value.items()}
    return [_without_encrypted(v) for v in value] if isinstance(value, list) else value


def _text(value: Any) -> str:
    """A value as the engine hands it to programs: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _undeclared(
    project: SourceDocument,
    settled: _Configuration,
    overrides: Mapping[str, str],
    sources: Sources,
) -> Iterator[Diagnostic]:
    """The project's own settings among `overrides` that it does not declare."""
    own = f"{settled.project}:"
    declared = sorted(str(k).removeprefix(own) for k in _mapping(project, ("config",), sources))
    for name in (k.removeprefix(own) for k in overrides):
        if ":" not in name and name not in declared:
            yield messages.unknown_config(name, declared)


def _apply_declarations(
    project: SourceDocument,
    settled: _Configuration,
    settings: SourceDocument | None,
    given: frozenset[str],
    sources: Sources,
) -> None:
    """Defaults, secrets, required keys and types of the project's `config:`."""
    for name, declared in sorted(_mapping(project, ("config",), sources).items()):
        key = settled.key(str(name))
        declaration = declared if isinstance(declared, dict) else {"value": declared}
        secret = bool(declaration.get("secret"))
        fallback = declaration.get("default", declaration.get("value"))
        if key not in settled.values:
            _absent(settled, key, secret=secret, fallback=fallback)
            continue
        at = _value_origin(settings, key, settled) if key not in given else None
        if secret and key not in settled.secrets:
            if key not in given:
                settled.problems.append(messages.plain_secret(settled.stack, key, at))
            settled.secrets.add(key)
        kind = declaration.get("type")
        if kind and key not in settled.placeholders and not _fits(str(kind), settled.values[key]):
            settled.problems.append(messages.wrong_config_type(key, str(kind), at))


def _absent(settled: _Configuration, key: str, *, secret: bool, fallback: Any) -> None:
    if fallback == "" and key in map(settled.key, CLUSTER_SETTINGS):
        fallback = None  # the program asks for it where nothing else names the cluster
    if fallback is not None:
        settled.values[key] = _text(fallback)
        if secret:
            settled.secrets.add(key)
    elif secret:
        settled.hide(key)
    elif key in map(settled.key, CLUSTER_SETTINGS):
        settled.values[key] = f"[{key.partition(':')[2]}]"
        settled.placeholders.add(key)
    elif key.startswith(f"{settled.project}:"):
        settled.missing.append(key.removeprefix(f"{settled.project}:"))


def _value_origin(
    settings: SourceDocument | None, key: str, settled: _Configuration
) -> Origin | None:
    if settings is None:
        return None
    bare = key.removeprefix(f"{settled.project}:")
    names = [n for n in (key, bare) if ("config", n) in settings.values]
    return Origin(settings.name, ("config", *names[:1]))


def _fits(kind: str, text: str) -> bool:
    """Whether a value's text form is of a declared type; unknown types fit."""
    if kind == "boolean":
        return text in ("true", "false")
    if kind == "integer":
        return text.removeprefix("-").removesuffix(".0").isdecimal()
    if kind in ("object", "array"):
        wanted = dict if kind == "object" else list
        try:
            return isinstance(json.loads(text), wanted)
        except ValueError:
            return False
    return True
