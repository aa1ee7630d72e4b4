"""Every problem a preview reports, one constructor each."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Diagnostic, did_you_mean, error, warning
from gpuplan.errors import Rejected
from gpuplan.source import Origin, Place, Sources

INSTALL = "pip install 'gpuplan[pulumi]'"


class PreviewFailed(Rejected):
    """No preview could be made; `sources` hold the stack's files that diagnostics point into."""

    def __init__(self, diagnostics: Sequence[Diagnostic], sources: Sources | None = None) -> None:
        super().__init__(diagnostics)
        self.sources = sources or Sources()


def _list(names: Sequence[str]) -> str:
    quoted = [f"'{n}'" for n in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def no_program(folder: str) -> Diagnostic:
    return error(
        "GP030",
        f"{folder} holds no Pulumi program: there is no Pulumi.yaml",
        help="name the folder of a stack, such as stacks/chat; `gpuplan compile` writes one",
    )


def not_a_program(folder: str) -> Diagnostic:
    return error(
        "GP030",
        f"{folder} holds no Pulumi program: stacks of its target are applied without one",
        help="its README.md says how; `gpuplan check` judges it, `gpuplan diff` compares it",
    )


def no_main(folder: str) -> Diagnostic:
    return error("GP030", f"{folder} has no __main__.py to run", help="compile the stack again")


def bad_project(message: str, at: Origin | None = None) -> Diagnostic:
    return error("GP030", message, at, help="compile the stack again, or repair the file")


def other_runtime(runtime: str, at: Origin) -> Diagnostic:
    return error(
        "GP030",
        f"the program's runtime is '{runtime}': only Python programs can be previewed",
        at,
        help="run `pulumi preview` for programs in other languages",
    )


def unknown_stack(stack: str, known: Sequence[str]) -> Diagnostic:
    return error(
        "GP031",
        f"there is no Pulumi.{stack}.yaml here",
        help=did_you_mean(stack, known) or f"choose one of {', '.join(known)}",
    )


def missing_config(stack: str, keys: Sequence[str]) -> Diagnostic:
    values = "value" if len(keys) == 1 else "values"
    return error(
        "GP031",
        f"stack '{stack}' is missing configuration {values} {_list(keys)}",
        help=f"add {'it' if len(keys) == 1 else 'them'} to Pulumi.{stack}.yaml, "
        "or pass --config KEY=VALUE",
    )


def unknown_config(key: str, known: Sequence[str]) -> Diagnostic:
    return error(
        "GP031",
        f"the program has no setting '{key}'",
        help=did_you_mean(key, known) or f"Pulumi.yaml declares {', '.join(known) or 'none'}",
    )


def wrong_config_type(key: str, kind: str, at: Origin | None) -> Diagnostic:
    return error(
        "GP031",
        f"configuration '{key}' must be of type '{kind}'",
        at,
        help="Pulumi.yaml declares the type",
    )


def plain_secret(stack: str, key: str, at: Origin | None) -> Diagnostic:
    return error(
        "GP031",
        f"configuration '{key}' is a secret, and stands here in plain text",
        at,
        help=f"`pulumi config set --stack {stack} --secret {key}` encrypts it; "
        "a preview needs no value",
    )


def sdk_missing(module: str, python: str) -> Diagnostic:
    return error(
        "GP032",
        f"previews need the Pulumi SDK, and {python} has no module '{module}'",
        help=INSTALL,
    )


def no_python(python: str, reason: str) -> Diagnostic:
    return error("GP032", f"cannot start {python}: {reason}", help="name a Python with --python")


def program_failed(cause: str, where: str, at: Place | None, remedy: str) -> Diagnostic:
    """`where` is `FILE:LINE` in the stack, empty when the failure is outside of its own code."""
    place = f" at {where}" if where else ""
    return error("GP033", f"the program failed{place}: {cause}", at, help=remedy)


def no_live_answer(kind: str, token: str, where: str) -> Diagnostic:
    """An `invoke`, a `call` or a `read`: things only a running provider can answer."""
    place = f" at {where}" if where else ""
    return error(
        "GP034",
        f"the program{place} needs a live answer to the {kind} of '{token}', "
        "and a preview has no provider",
        help="give the value as configuration, or run `pulumi preview` with credentials",
    )


def duplicate_urn(urn: str, *where: str) -> Diagnostic:
    """`where` are both places, as `file:line`; which of them came first is chance."""
    known = sorted(where, key=lambda place: (place.rpartition(":")[0], len(place), place))
    places = f" ({' and '.join(known)})" if all(where) else ""
    return error(
        "GP035",
        f"two resources have the URN '{urn}'{places}",
        help="give one of them another name",
    )


def refused(message: str, where: str) -> Diagnostic:
    place = f"{where}: " if where else ""
    return error("GP035", f"{place}{message}", help="correct the resource's options")


def timed_out(timeout_s: float, registered: int) -> Diagnostic:
    return error(
        "GP036",
        f"the program did not end within {timeout_s:g} s; it had registered {registered} resources",
        help="look for a loop or a wait in the program",
    )


def died(signal_name: str) -> Diagnostic:
    return error(
        "GP036",
        f"the program's process was ended by {signal_name}",
        help="memory may have run out; try again, or run `pulumi preview` to see more",
    )


def bad_urn_list(document: str, line: int, text: str) -> Diagnostic:
    return error(
        "GP037",
        f"{document}:{line} is not a line of the form type::name: {text!r}",
        help="compile the stack again",
    )


def lost_resource(name: str, reason: str) -> Diagnostic:
    return error(
        "GP038",
        f"'{name}' is committed in urns.txt and the program no longer registers it: {reason}",
        help="a renamed one needs an alias: `renamed_from` in the manifest writes it; "
        "one that shall go needs `protect` removed and applied first",
    )


def unlisted_resource(names: Sequence[str]) -> Diagnostic:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return warning("GP037", f"urns.txt does not list {shown}", help="compile the stack again")
