"""What can go wrong between here and a server, one constructor a message."""

from __future__ import annotations

from gpuplan.diagnostics import Diagnostic, error

BY_HAND = "or write it in the manifest: engine.image with @sha256:…, model.revision"


def unreachable(host: str, reason: str, proxy: str | None) -> Diagnostic:
    way = f"the way goes through the proxy {proxy}" if proxy else "no proxy is set for it"
    return error(
        "GP080",
        f"{host} cannot be reached: {reason}",
        help=f"{way} (HTTPS_PROXY, NO_PROXY); without a network leave out --online, {BY_HAND}",
    )


def not_allowed(host: str, subject: str, status: int) -> Diagnostic:
    return error(
        "GP081",
        f"{host} does not show {subject} to everybody ({status})",
        help=f"it is asked without credentials: is the name right? Else take a mirror, {BY_HAND}",
    )


def not_there(host: str, subject: str) -> Diagnostic:
    return error("GP082", f"{host} has no {subject}", help=f"check the name and its tag, {BY_HAND}")


def too_often(host: str, subject: str, wait: str | None) -> Diagnostic:
    seconds = f"in {wait} s" if wait and wait.isdigit() else "later"
    return error(
        "GP083",
        f"{host} limits how often it is asked, and did not answer for {subject}",
        help=f"try again {seconds}: what was found is kept; {BY_HAND}",
    )


def sent_elsewhere(host: str, other: str) -> Diagnostic:
    return error(
        "GP084",
        f"{host} sends to {other}, which nobody asked for",
        help=f"name {other} itself where it is meant, {BY_HAND}",
    )


def unusable(host: str, subject: str, reason: str) -> Diagnostic:
    return error(
        "GP085",
        f"what {host} answers for {subject} cannot be used: {reason}",
        help=f"try again later, {BY_HAND}",
    )
