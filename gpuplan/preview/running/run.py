"""`preview`: run a stack's unmodified program under an engine that creates nothing.

No CLI, plugin, credential or network: a subprocess with an empty home and the Pulumi SDK, and this
process as its engine.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.preview import messages
from gpuplan.preview.messages import PreviewFailed
from gpuplan.preview.running.child import Child, TimedOut
from gpuplan.source import Place, SourceDocument, Sources, Span

if TYPE_CHECKING:
    from gpuplan.preview.registered import Preview
    from gpuplan.preview.running.engine import Monitor, Refusal
    from gpuplan.preview.stack import StackProgram

TIMEOUT_S = 120.0
SDK_MODULES = ("pulumi", "pulumi_kubernetes", "pulumi_command", "pulumi_aws", "pulumi_gcp")


def preview(
    stack_dir: Path,
    *,
    stack: str = "dev",
    config: Mapping[str, str] = MappingProxyType({}),
    python: str = sys.executable,
    timeout_s: float = TIMEOUT_S,
    strict: bool = True,
    cluster_uid: str | None = None,
) -> Preview:
    """What `pulumi preview` would show for a new stack.

    `config` overrides the stack's configuration; a key without a namespace is the project's own,
    and declared there if the preview is `strict`.
    `python` runs the program and needs the SDK. `cluster_uid` is that of the cluster in reach; None
    stands for the one that the configuration names. Raises `PreviewFailed` with every problem.
    """
    with Child(python) as child:  # it loads the SDK while this process gets ready
        from gpuplan.preview.running.collect import preview_of
        from gpuplan.preview.running.engine import Engine
        from gpuplan.preview.running.protocol import load
        from gpuplan.preview.stack import read_program

        program = read_program(stack_dir, stack, config, strict=strict)
        reached = cluster_uid or program.cluster_uid
        names = (program.project, program.stack)
        with Engine(load(), child.address, *names, reached) as monitor:
            child.start(_settings(program))
            try:
                result = child.wait(timeout_s)
            except TimedOut:
                count = len(monitor.registrations)
                raise PreviewFailed([messages.timed_out(timeout_s, count)]) from None
        if result["kind"]:
            raise _failure(result, program, monitor, python)
        return preview_of(program, monitor, child.output())


def previews(folders: Sequence[Path], **options: Any) -> list[Preview]:
    """The previews of several folders, run side by side; only the first is strict. Raises what the
    first failure raised."""
    strict = (True, *(False for _ in folders[1:]))
    with ThreadPoolExecutor(max_workers=max(1, len(folders))) as pool:
        return list(pool.map(lambda f, s: preview(f, strict=s, **options), folders, strict))


def _settings(program: StackProgram) -> dict[str, Any]:
    return {
        "project": program.project,
        "stack": program.stack,
        "config": program.config,
        "secret_keys": program.secret_keys,
        "program": str(program.main),
        "folder": str(program.folder),
        "working_folder": str(program.working_folder),
    }


# --- failures ------------------------------------------------------------------------------------


def _failure(
    result: Mapping[str, Any], program: StackProgram, monitor: Monitor, python: str
) -> PreviewFailed:
    module = str(result.get("module") or "")
    if result["kind"] == "SdkMissing" or module.partition(".")[0] in SDK_MODULES:
        return PreviewFailed([messages.sdk_missing(module, python)])
    frames = result["frames"]
    if monitor.refusals:
        ended_at = f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
        return PreviewFailed([_refusal(r, program, monitor, ended_at) for r in monitor.refusals])
    cause = f"{result['kind']}: {result['message']}".rstrip(": ")
    if not frames:
        return PreviewFailed([messages.program_failed(cause, "", None, _remedy(result))])
    path, line = frames[-1]
    sources = Sources()
    at = _place(program.folder, path, line, sources)
    problem = messages.program_failed(cause, f"{path}:{line}", at, _remedy(result))
    return PreviewFailed([problem], sources)


def _place(folder: Path, path: str, line: int, sources: Sources) -> Place | None:
    """The line of the stack's file, without its indentation, for the excerpt."""
    try:
        text = (folder / path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    rows = text.splitlines()
    if not 1 <= line <= len(rows):
        return None
    sources.add(SourceDocument(path, "\n".join(rows), path))
    start = len(rows[line - 1]) - len(rows[line - 1].lstrip())
    return Place(path, Span(line, start + 1, line, len(rows[line - 1]) + 1))


def _remedy(result: Mapping[str, Any]) -> str:
    if result["refused"]:
        return "`pulumi preview` would do this for real; a preview here does not"
    if "does not support" in str(result["message"]):
        return "a preview runs no transforms and no hooks; `pulumi preview` does"
    if result.get("module"):
        return "install the stack's requirements.txt in the Python named by --python"
    return "correct the program, or compile the stack again"


def _refusal(
    refusal: Refusal, program: StackProgram, monitor: Monitor, ended_at: str
) -> Diagnostic:
    """`ended_at` is where the program gave up: invokes do not say where they came from."""
    here = _where(refusal.request, program) or ended_at
    if refusal.kind == "duplicate":
        first = _where(monitor.registrations[refusal.subject].request, program)
        return messages.duplicate_urn(refusal.subject, first, here)
    if refusal.kind == "option":
        return messages.refused(refusal.message, here)
    return messages.no_live_answer(refusal.kind, refusal.subject, here)


def _where(request: Any, program: StackProgram) -> str:
    from gpuplan.preview.running.collect import own_frames

    frames = own_frames(request, program.folder) if hasattr(request, "stackTrace") else ()
    return f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
