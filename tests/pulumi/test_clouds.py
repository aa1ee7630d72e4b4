"""The programs that make clusters under the real `pulumi preview`, with an account's credentials:
the provider itself checks each resource, and nothing is made."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuplan.preview.running.run import preview
from tests.support.clouds import compiled
from tests.support.require import require
from tests.tools.program import ROOT
from tests.tools.updates import Workspace, short

pytestmark = [pytest.mark.pulumi, pytest.mark.sdk]


@dataclass(frozen=True)
class Account:
    """`credentials` are variables of which one is enough, `kept` what goes to the provider with
    them. `config` is as Pulumi's CLI sets it, and `shown` as a preview of ours takes it."""

    provider: str
    credentials: tuple[str, ...]
    kept: tuple[str, ...]
    config: Mapping[str, str]
    shown: Mapping[str, str]

    def environment(self) -> dict[str, str]:
        return {n: os.environ[n] for n in (*self.credentials, *self.kept) if n in os.environ}

    def absent(self) -> str:
        """Why nothing can be asked; empty where it can."""
        programs = ("pulumi", "pulumi-language-python", f"pulumi-resource-{self.provider}")
        missing = [p for p in programs if not shutil.which(p)]
        if missing:
            return f"no {', '.join(missing)} on PATH"
        if not any(n in os.environ for n in self.credentials):
            return f"no credentials: none of {', '.join(self.credentials)} is set"
        return ""


ARN = "arn:aws:iam::123456789012:role/operators"
GROUP = "00000000-0000-0000-0000-000000000001"
PROJECT = {"gcp:project": os.environ.get("GOOGLE_PROJECT", "some-project")}
ACCOUNTS = {
    "eks": Account(
        provider="aws",
        credentials=("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        kept=("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_CONFIG_FILE"),
        config={"aws:region": "us-east-1", "administrators[0]": ARN},
        shown={"administrators": f'["{ARN}"]'},
    ),
    "gke": Account(
        provider="gcp",
        credentials=("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS"),
        kept=("GOOGLE_PROJECT",),
        config=PROJECT,
        shown=PROJECT,
    ),
    "aks": Account(
        provider="azure-native",
        credentials=("ARM_CLIENT_ID",),
        kept=("ARM_CLIENT_SECRET", "ARM_TENANT_ID", "ARM_SUBSCRIPTION_ID", "ARM_USE_OIDC"),
        config={"administrators[0]": GROUP},
        shown={"administrators": f'["{GROUP}"]'},
    ),
}


@pytest.mark.parametrize("target", ACCOUNTS)
def test_the_provider_takes_the_cluster(tmp_path: Path, target: str) -> None:
    account = ACCOUNTS[target]
    if missing := account.absent():
        require("clouds", missing)
    text = (ROOT / "examples" / f"{target}.yaml").read_text(encoding="utf-8")
    source = compiled(tmp_path, text) / "cloud" / "cluster"
    program = tmp_path / "stack" / "cloud" / "cluster"
    workspace = Workspace(program, tmp_path / "home", environment=account.environment())
    program.parents[1].mkdir(parents=True)
    (program.parents[1] / "venv").symlink_to(sys.prefix)
    workspace.create(source, account.config)
    found = preview(source, config=dict(account.shown), strict=False).resources
    assert workspace.preview() == {"create": sorted(short(r.urn) for r in found)}
