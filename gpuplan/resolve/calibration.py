"""Anchors of one's own: the folder that `gpuplan accuracy --calibrate` wrote."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.errors import Rejected
from gpuplan.manifest.load import Loaded, read_text, unreadable, unreadable_at
from gpuplan.plan.model import Digest
from gpuplan.sizing.calibration.anchors import Anchors, Field, read
from gpuplan.source import Origin


def manifest_anchors(loaded: Loaded) -> tuple[Anchors, tuple[Digest, ...]]:
    """Those that the manifest names, else the bundled ones. Raises `Rejected`."""
    name = loaded.manifest.platform.calibration
    if name is None:
        return Anchors(), ()
    return folder_anchors(
        loaded.folder / name, Origin(loaded.document, ("platform", "calibration"))
    )


def folder_anchors(
    folder: Path, origin: Origin | None = None
) -> tuple[Anchors, tuple[Digest, ...]]:
    """Every file of a folder, and digests of them. Raises `Rejected`."""
    from gpuplan.resolve.anchor_file import fault  # few manifests name a folder

    problems: list[Diagnostic] = []
    try:
        paths = sorted(p for p in folder.iterdir() if p.suffix == ".json")
    except FileNotFoundError:
        paths = []
    except OSError as problem:
        unread = unreadable(folder, (problem.strerror or "unreadable").lower())
        raise Rejected([unreadable_at(unread, origin) if origin else unread]) from problem
    fields: dict[str, Field] = {}
    inputs = []
    for path in paths:
        text = read_text(path)
        if isinstance(text, Diagnostic):
            problems.append(unreadable_at(text, origin) if origin else text)
            continue
        if wrong := fault(text, path.stem):
            problems.append(_no_anchors(path, f"holds no anchors: {wrong}", origin))
        else:
            fields[path.stem] = read(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        inputs.append(Digest(name=f"{folder.name}/{path.name}", sha256=digest))
    if not paths:
        problems.append(_no_anchors(folder, "has no anchors", origin))
    if problems:
        raise Rejected(problems)
    return Anchors(fields), tuple(inputs)


def _no_anchors(path: Path, fault: str, origin: Origin | None) -> Diagnostic:
    remedy = "`gpuplan accuracy CSV --calibrate DIR` writes them"
    return error("GP009", f"{path.name} {fault}", origin, help=remedy)
