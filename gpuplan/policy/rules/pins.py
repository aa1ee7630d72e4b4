"""Rules about versions: what runs tomorrow is what was reviewed today."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.policy.api import Block, Entry, Finding, Subject

EXACT = "write one exact version, so that the next deployment installs what was reviewed"
NO_TAG = "has no tag"
MOVING_TAGS = frozenset(("latest", "main", "master", "nightly", "edge", "dev", "stable"))
RELEASES = ("Release", "ReleaseArgs", "Chart", "ChartArgs", "ChartOpts")
CHART_FILES = ("chart.lock.yaml", "Chart.yaml", "Chart.lock")
_EXACT = re.compile(r"v?[0-9]+(\.[0-9]+)+([-+.][0-9A-Za-z.+-]+)?")
_IMAGE = re.compile(
    r"[a-z0-9][^\s@]*?(?::(?P<tag>[\w][\w.-]{0,127}))?(?P<digest>@sha256:[0-9a-f]{64})?"
)
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9][\w.-]*(\[[\w,. -]*\])?\s*==\s*[0-9][0-9A-Za-z.+!]*(?<!\.)\s*(;.*)?"
)


def is_exact_version(version: str) -> bool:
    """`v26.3.3`, `1.2.3-rc.1`; not `^1.2`, `1.x`, `*`, `latest` or nothing."""
    return bool(_EXACT.fullmatch(version))


def image_problem(image: str) -> str | None:
    """Why an image reference does not name one image, or None."""
    name, _, last = image.rpartition("/")
    match = _IMAGE.fullmatch(last if name else image)
    if not match:
        return "is not an image reference"
    if match["digest"]:
        return None
    if match["tag"] is None:
        return NO_TAG
    return f"has the moving tag '{match['tag']}'" if match["tag"] in MOVING_TAGS else None


def chart_version(subject: Subject) -> Iterator[Finding]:
    """A chart has no exact version.

    Why: a version range is resolved on the day of the deployment, so the next `pulumi up` may
    install an operator that nobody reviewed, on every node.

    Looks at: the components of the plan, chart locks, and releases and charts of the generated
    Python programs.

    Threshold: an exact version (`26.3.3`, `v26.3.3`). A range, `latest`, an absent version, or one
    that only a run decides, is not exact. A chart that lies in the stack itself needs none: its
    files stand in `checksums.txt`.

    Fix: write the version, or set it under `platform.versions`.

    Silent: about a chart's own dependencies, which its package holds.
    """
    for component in subject.plan.components:
        if not is_exact_version(component.version):
            yield Finding(
                resource=f"component/{component.name}",
                path=f"components[{component.name}].version",
                message=f"chart {component.chart} has the version '{component.version}', "
                "which names no single release",
                help="write an exact version under platform.versions",
            )
    for block in subject.blocks:
        chart, version = block.get("chart"), block.get("version")
        if block.kind in RELEASES and chart:
            yield from _release(block, chart, version)
        elif block.file.endswith(CHART_FILES) and version:
            yield from _inexact(block, version)


def _release(block: Block, chart: Entry, version: Entry | None) -> Iterator[Finding]:
    if chart.known and isinstance(chart.value, str) and chart.value.startswith("."):
        return
    if version is None or version.value is None:
        yield _unpinned(block, Entry(key="version", value=None, line=chart.line), "has no version")
    elif not version.known:
        fault = f"has the version '{version.value}', which only a run decides"
        yield _unpinned(block, version, fault)
    else:
        yield from _inexact(block, version)


def _inexact(block: Block, version: Entry) -> Iterator[Finding]:
    if not (isinstance(version.value, str) and is_exact_version(version.value)):
        yield _unpinned(block, version, f"has the version '{version.value}'")


def _unpinned(
    block: Block, entry: Entry, fault: str, remedy: str = EXACT, level: str | None = None
) -> Finding:
    resource = block.resource or f"file/{block.file}"
    return Finding(
        resource=resource,
        path=f"{block.path}.{entry.key}".lstrip("."),
        message=f"{resource} {fault}",
        help=remedy,
        file=block.file,
        line=entry.line,
        level=level,
    )


def image_tag(subject: Subject) -> Iterator[Finding]:
    """A container image is not pinned.

    Why: `:latest` is another program tomorrow; a node that restarts pulls it in the night. 31 % of
    public GPU pods have no tag or `:latest`.

    Looks at: the engine's image of each workload in the plan, and every `image` in the generated
    Python programs, YAML and JSON (with the `tag` or `version` beside it, as charts write it), and
    of Podman's units; the images that scripts fetch.

    Threshold: a tag that names a release, or a digest. `latest`, `main`, `master`, `nightly`,
    `edge`, `dev` and `stable` move. An image that only a run decides cannot be judged and is a
    warning.

    Fix: write the tag, better with the digest (`name:tag@sha256:…`), in `engine.image`.

    Silent: about images that a chart chooses; the chart's version pins those.
    """
    reported: list[object] = []
    for workload in subject.plan.workloads:
        problem = image_problem(workload.engine.image)
        if problem:
            reported.append(workload.engine.image)
            yield Finding(
                resource=f"workload/{workload.name}",
                path=f"workloads[{workload.name}].engine.image",
                message=f"image '{workload.engine.image}' of {workload.name} {problem}",
                help="write a release's tag, better with its digest",
                origin=workload.origin,
            )
    for block in subject.blocks:
        entry = block.get("image")
        if entry is not None and entry.value not in reported:
            yield from _image(block, entry)


def _image(block: Block, entry: Entry) -> Iterator[Finding]:
    if not entry.known:
        fault = f"has the image '{entry.value}', which only a run decides"
        yield _unpinned(block, entry, fault, "write the image as a literal", "warning")
    elif isinstance(entry.value, str) and entry.value:
        image, tag = entry.value, block.get("tag") or block.get("version")
        if image_problem(image) == NO_TAG and tag is not None and tag.known and tag.value:
            image = f"{image}:{tag.value}"
        problem = image_problem(image)
        if problem:
            yield _unpinned(block, entry, f"has the image '{image}', which {problem}")


def untested_version(subject: Subject) -> Iterator[Finding]:
    """A component runs at versions that no source states together.

    Why: an operator, a driver and a Kubernetes release that nobody tried together fail on the nodes
    and not before: pods wait for a driver that does not load.

    Looks at: the components of the plan: `untested`, which the manifest wrote as the reason.

    Threshold: any. What no reason is written for is refused by `gpuplan compile` (GP015).

    Fix: take versions that `gpuplan catalog list components` shows, or waive it with an expiry.

    Silent: about images that the manifest names itself, and what a cluster has already.
    """
    for component in subject.plan.components:
        if component.untested:
            yield Finding(
                resource=f"component/{component.name}",
                path=f"components[{component.name}].untested",
                message=f"{component.name} {component.version} is taken as it was not tested: "
                f"{component.untested}",
                help="take versions that sources state together, or waive it until they do",
            )


def requirement(subject: Subject) -> Iterator[Finding]:
    """A Python requirement of the generated program is not pinned.

    Why: a provider's new release may replace resources; the reviewed preview then is not what `up`
    does.

    Looks at: each line of the stack's `requirements.txt`.

    Threshold: `name==version`, without a wildcard. Another index, an editable install, a path or a
    URL is not a version.

    Fix: write the exact version.

    Silent: about comments, hashes, and a stack without `requirements.txt`.
    """
    for file in subject.files:
        if file.path.rpartition("/")[2] == "requirements.txt":
            for line, text in _requirements(file.text):
                if not _REQUIREMENT.fullmatch(text):
                    yield Finding(
                        resource=f"file/{file.path}",
                        path=re.split(r"[\s=<>!~;\[]", text)[0] or text,
                        message=f"{file.path}: '{text}' does not name one version",
                        help="write NAME==VERSION",
                        file=file.path,
                        line=line,
                    )


def _requirements(text: str) -> Iterator[tuple[int, str]]:
    """(line, requirement) without comments and hashes; a continued row counts as one."""
    line = 1
    for row in text.replace("\\\n", "\0").split("\n"):
        bare = re.sub(r"(^|\s)#.*|\s--hash=\S+", "", row.replace("\0", " ")).strip()
        if bare:
            yield line, bare
        line += 1 + row.count("\0")
