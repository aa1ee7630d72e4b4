"""A chart that is installed beside the workloads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import File, Identifier, Minor, Strict, unique

Sha256 = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Definition = Annotated[str, Field(pattern=r"^[a-z]+(\.[a-z0-9-]+)+$")]
Driver = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]


class TestedKubernetes(Strict):
    """The oldest and the newest minor release that it was tested with."""

    oldest: Minor
    newest: Minor


class Removed(Strict):
    """Definitions of kinds (`plural.group`) that a hook of the chart deletes when it is uninstalled
    with the values that gpuplan gives it, though Helm itself would leave them."""

    definitions: Annotated[list[Definition], Field(min_length=1)]
    source: str


class ReleaseDocument(Strict):
    """One release of the chart: the driver that it installs unless told otherwise (`source`), and
    the drivers and Kubernetes releases that its publisher states for it (`tested`). `digest` only
    where a source states it."""

    version: str
    app_version: str | None = None
    driver: Driver | None = None
    drivers: list[Driver] = []
    kubernetes: TestedKubernetes | None = None
    digest: Sha256 | None = None
    uninstall_removes: Removed | None = None
    source: str
    tested: str | None = None


class ComponentFile(File):
    """A chart by exact version, which is one of its `releases`. `needed_for`: only where the
    platform has a fabric of that kind; `cluster`: never installed, the cluster's owner does."""

    kind: Literal["component"]
    version: str
    repository: str
    chart: str
    namespace: Identifier
    kubernetes_minimum: Minor | None = None
    needed_for: Literal["efa", "infiniband", "cluster"] | None = None
    releases: Annotated[list[ReleaseDocument], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        for release in self.releases:
            yield from filter(None, (release.source, release.tested))
            if release.uninstall_removes:
                yield release.uninstall_removes.source

    @model_validator(mode="after")
    def _sound(self) -> Self:
        unique("release", (r.version for r in self.releases))
        if self.version not in {r.version for r in self.releases}:
            raise ValueError(f"no release is {self.version}")
        for release in self.releases:
            if release.driver and release.drivers and release.driver not in release.drivers:
                raise ValueError(f"{release.version}: its own driver is not among its drivers")
            if (release.drivers or release.kubernetes) and not release.tested:
                raise ValueError(f"{release.version}: 'tested' names no source")
        return self
