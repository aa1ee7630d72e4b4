"""Rules about the stack as a whole: it is what was generated, all of it and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.policy.api import Finding, Subject
from gpuplan.render.checksums import CHECKSUMS, compare, sha256, strange_lines

CHANGED = "move the change into the manifest and compile again; compile --force drops it"
MISSING = "compile the manifest again"
EXTRA = "compile keeps it: move it out of the stack, unless the stack needs it"


def checksums(subject: Subject) -> Iterator[Finding]:
    """The stack's files are not those that were generated.

    Why: a reviewer trusts a generated stack because it follows from a manifest. A file that was
    edited or removed by hand breaks that. One that was added is no part of the manifest: compile
    keeps it, and nothing says what it is for.

    Looks at: every file of the stack against `checksums.txt`, both ways: changed and missing files
    are errors, extra ones are warnings. A line of `checksums.txt` that names no file of a stack, or
    one twice, is an error. Links are never followed; a link counts as a changed or
    extra file.

    Threshold: none. Files that belong to the user are exempt: `Pulumi.<environment>.yaml`,
    `custom.py`, virtual environments, `node_modules`, `__pycache__` and what is hidden at the top
    of the stack, like `.git` and `.env`. This finds edits, not forgery: whoever edits a file can
    edit `checksums.txt`, so CI should also compile the manifest and compare.

    Fix: make the change in the manifest (or in an override) and compile again; move a file that the
    stack does not need out of it.

    Silent: when only a `plan.yaml` is checked, without its stack.
    """
    files = {f.path: f for f in subject.files}
    if not files:
        return
    if CHECKSUMS not in files:
        message = "is missing, so nobody can tell whether the stack was edited"
        yield _finding(CHECKSUMS, message, "compile the manifest again, with --force")
        return
    digests = {p: sha256(f.text.encode("utf-8", "surrogateescape")) for p, f in files.items()}
    written = files[CHECKSUMS].text
    for number in strange_lines(written):
        yield _finding(CHECKSUMS, f"has a line that was not generated: line {number}", CHANGED)
    changed, missing, extra = compare(written, digests)
    for path in changed:
        yield _finding(path, "differs from what was generated", CHANGED)
    for path in missing:
        yield _finding(path, "was generated and is gone", MISSING)
    for path in extra:
        yield _finding(path, "was not generated", EXTRA, "warning")


def _finding(path: str, fault: str, remedy: str, level: str | None = None) -> Finding:
    return Finding(
        resource=f"file/{path}",
        path=path,
        message=f"{path} {fault}",
        help=remedy,
        level=level,
        file=path,
    )
