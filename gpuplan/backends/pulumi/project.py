"""The files around a program: project, settings, requirements, identities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.backends.pulumi.view import Resource
from gpuplan.diagnostics import Diagnostic, error
from gpuplan.plan.model import Plan, record
from gpuplan.render import commented, python
from gpuplan.render.tree import File

# Exact, so that a plugin that nobody reviewed never runs. Tested with each other.
PULUMI = "pulumi==3.272.0"
KUBERNETES = "pulumi-kubernetes==4.34.2"
COMMAND = "pulumi-command==1.2.1"
AWS = "pulumi-aws==7.51.1"
GOOGLE = "pulumi-gcp==10.2.0"

HEADER = "Written by gpuplan; `gpuplan check` finds edits."


@record
class Setting:
    """A value of the stack's configuration. Without a default the user must set it."""

    name: str
    kind: str
    description: str
    default: str | bool | int | dict[str, str] | list[str] | None = None
    secret: bool = False


def secrets(plan: Plan) -> Iterator[Setting]:
    """One setting for each configuration secret, with who reads it."""
    readers: dict[str, list[str]] = {}
    for workload in plan.workloads:
        for secret in workload.secrets:
            if secret.store == "config":
                readers.setdefault(secret.name, []).append(
                    f"{secret.environment} of {workload.name}"
                )
    for name in sorted(readers):
        text = ", ".join(readers[name])
        yield Setting(name=name, kind="string", description=text, secret=True)


def reserved_setting(name: str) -> Diagnostic:
    return error(
        "GP018",
        f"a secret cannot be called '{name}': the stack has a setting of that name",
        help="choose another name for it in 'secrets'",
    )


def clashes(settings: Iterable[Setting], secrets: Iterable[Setting]) -> tuple[Diagnostic, ...]:
    taken = {s.name for s in settings}
    return tuple(reserved_setting(s.name) for s in secrets if s.name in taken)


def files(
    plan: Plan,
    settings: Iterable[Setting],
    requirements: Iterable[str],
    resources: Iterable[Resource],
    *,
    part: str = "",
    folder: str = "",
) -> Iterator[File]:
    """`part` is the end of the project's name, where a stack has several programs, and `folder`
    where this one is (`cloud/pools/`)."""
    settings = tuple(settings)
    # One environment for all programs of a stack, at its top, where it is known for the user's.
    venv = f"{'../' * folder.count('/')}venv"
    yield File(f"{folder}Pulumi.yaml", _project(plan, settings, part, venv))
    if required := [s for s in settings if s.default is None]:
        yield File(f"{folder}Pulumi.dev.yaml", _stack(required), seed=True)
    pinned = "".join(f"{r}\n" for r in sorted(requirements))
    yield File(f"{folder}requirements.txt", pinned)
    yield File(f"{folder}urns.txt", _identities(resources))


def _project(plan: Plan, settings: tuple[Setting, ...], part: str, venv: str) -> str:
    tree = {
        "name": plan.name + part,
        **({"description": plan.description} if plan.description else {}),
        "runtime": {"name": "python", "options": {"toolchain": "pip", "virtualenv": venv}},
        "config": {s.name: _declaration(s) for s in settings},
    }
    return commented.dumps(tree, {}, HEADER)


def _declaration(setting: Setting) -> dict[str, object]:
    tree: dict[str, object] = {"type": setting.kind, "description": setting.description}
    if setting.default is not None:
        tree["default"] = setting.default
    if setting.secret:
        tree["secret"] = True
    return tree


def _stack(required: list[Setting]) -> str:
    """The user's own file. Secrets never stand in it in clear: the CLI encrypts them."""
    lines = [
        python.comment("Settings of the Pulumi stack `dev`: yours. gpuplan wrote this file once."),
        python.comment("Before the first `pulumi up`:"),
    ]
    for setting in required:
        secret = "--secret " if setting.secret else ""
        value = "" if setting.secret else f" {setting.name.upper()}"
        command = python.comment(f"pulumi config set {secret}{setting.name}{value}")
        command = command.removeprefix("# ")
        lines += [python.comment(f"- {setting.description}:"), f"#     {command}"]
    return "\n".join([*lines, "config: {}"]) + "\n"


def _identities(resources: Iterable[Resource]) -> str:
    """Every resource the program registers, one a line: what a change of names would break."""
    head = [
        python.comment("The stack's resources as `type::name`, sorted: their identity in Pulumi."),
        python.comment(
            "`protect`: never deleted by an update. `retain`: kept when the stack goes."
            " `former=`: its earlier name. `if=`: only where this setting is true."
        ),
    ]
    lines = sorted({str(resource) for resource in resources})
    return "\n".join([*head, *lines]) + "\n"
