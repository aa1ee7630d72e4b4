"""Secrets in a stack's files."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.credentials import form
from gpuplan.policy.api import Finding, Subject


def secret_value(subject: Subject) -> Iterator[Finding]:
    """A file of the stack holds a secret.

    Why: a stack is committed, reviewed and copied; who reads it can use the secret, and it stays in
    the history after it was removed.

    Looks at: every line of the stack's files, for what has the form of an issuer's token, of a
    private key, or of an address with a password. The finding never repeats it.

    Threshold: none. Source: the forms that gitleaks 8 looks for.

    Fix: revoke it; refer to a secret in the manifest (`secrets`), whose value is set by
    `pulumi config set --secret` or stands in an object of the namespace.

    Silent: about passwords without such a form, and about what Pulumi has encrypted.
    """
    for file in subject.files:
        if form(file.text) is None:
            continue
        for number, line in enumerate(file.text.split("\n"), start=1):
            if kind := form(line):
                yield Finding(
                    resource=f"file/{file.path}",
                    path=kind.partition(" ")[2].replace(" ", "-"),
                    message=f"{file.path} holds {kind}",
                    help="revoke it, and refer to a secret in the manifest instead",
                    file=file.path,
                    line=number,
                )
