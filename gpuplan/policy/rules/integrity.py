"""Rules about the stack as a whole: it is what was generated, all of it and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.policy.api import Finding, Subject
from gpuplan.render.checksums import CHECKSUMS, compare, sha256

HELP = "move the change into the manifest and compile again, or run compile with --force to drop it"


def checksums(subject: Subject) -> Iterator[Finding]:
    """The stack's files are not those that were generated.

    Why: a reviewer trusts a generated stack because it follows from a manifest. A file that was
    edited, added or removed by hand breaks that, and the next compile would silently undo it.

    Looks at: every file of the stack against `checksums.txt`, both ways: changed, missing and extra
    files. Links are never followed; a link counts as a changed or extra file.

    Threshold: none. Files that belong to the user are exempt: `Pulumi.<environment>.yaml`, virtual
    environments, `.pulumi`, `node_modules` and `__pycache__`. This finds edits, not forgery:
    whoever edits a file can edit `checksums.txt`, so CI should also compile the manifest and
    compare.

    Fix: make the change in the manifest (or in an override) and compile again.

    Silent: when only a `plan.yaml` is checked, without its stack.
    """
    files = {f.path: f for f in subject.files}
    if not files:
        return
    if CHECKSUMS not in files:
        yield _finding(CHECKSUMS, "is missing, so nobody can tell whether the stack was edited")
        return
    digests = {p: sha256(f.text.encode("utf-8", "surrogateescape")) for p, f in files.items()}
    changed, missing, extra = compare(files[CHECKSUMS].text, digests)
    for path in changed:
        yield _finding(path, "differs from what was generated")
    for path in missing:
        yield _finding(path, "was generated and is gone")
    for path in extra:
        yield _finding(path, "was not generated")


def _finding(path: str, what: str) -> Finding:
    return Finding(
        resource=f"file/{path}", path=path, message=f"{path} {what}", help=HELP, file=path
    )
