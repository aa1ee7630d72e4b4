"""A generated stack under the real `pulumi`: preview, up, destroy, with its state in a folder."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuplan.preview.stack import CLUSTER_SETTINGS
from gpuplan.preview.values import MASK
from tests.support.require import require
from tests.tools.cluster import CONTEXT
from tests.tools.kube import Kube
from tests.tools.stacks import settings

PROGRAMS = (
    "pulumi",
    "pulumi-language-python",
    "pulumi-resource-kubernetes",
    "pulumi-resource-command",
)
STACK = "dev"
SETTINGS = f"Pulumi.{STACK}.yaml"
# The stack's own environment, which has the SDK already.
ENVIRONMENT = "venv"


def need_pulumi() -> None:
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    if missing:
        require("pulumi", f"no {', '.join(missing)} on PATH (no package registry carries them)")


class Failed(Exception):
    """Pulumi's own words."""


@dataclass(frozen=True)
class Workspace:
    """`program` is a copy of a stack's folder; `home` holds Pulumi's own files and the state.
    Without a `cluster` none is in reach. `environment` is what providers read of credentials."""

    program: Path
    home: Path
    cluster: Kube | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def create(self, source: Path, config: Mapping[str, str]) -> None:
        """Copy the stack, with a state and a configuration; its secrets are those of a preview."""
        (self.home / "state").mkdir(parents=True)
        self.program.mkdir(parents=True)
        (self.program / ENVIRONMENT).symlink_to(sys.prefix)
        self.replace(source)
        self.pulumi("stack", "init", STACK)
        secrets = [name for name, setting in settings(source).items() if setting.get("secret")]
        for name in secrets:
            self.pulumi("config", "set", "--secret", name, MASK)
        uid = cluster_uid(self.cluster) if self.cluster else "none"
        known = dict(zip(CLUSTER_SETTINGS[:2], (CONTEXT, uid), strict=True))
        declared = {n: v for n, v in known.items() if n in settings(source)}
        for name, value in (declared | dict(config)).items():
            self.pulumi("config", "set", "--path", name, value)

    def replace(self, source: Path, *keep: str) -> None:
        """Another version of the program; state, configuration and the entries `keep` stay."""
        for path in self.program.iterdir():
            if path.name not in (ENVIRONMENT, SETTINGS, *keep):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        kept = shutil.ignore_patterns(*(p.name for p in self.program.iterdir()))
        shutil.copytree(source, self.program, dirs_exist_ok=True, ignore=kept)

    def _environment(self) -> dict[str, str]:
        reach = {"KUBECONFIG": str(self.cluster.plane.kubeconfig)} if self.cluster else {}
        return (
            dict(self.environment)
            | reach
            | {
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "PULUMI_HOME": str(self.home / "pulumi"),
                "PULUMI_BACKEND_URL": f"file://{self.home / 'state'}",
                "PULUMI_CONFIG_PASSPHRASE": "",
                "PULUMI_SKIP_UPDATE_CHECK": "true",
                "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            }
        )

    def pulumi(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """What it prints. Raises `Failed`."""
        program = ["pulumi", "--non-interactive", "--color=never", *arguments]
        return self._run(program, environment)

    def shell(self, command: str) -> str:
        """What a line of the documents prints. Raises `Failed`."""
        return self._run(["bash", "-o", "pipefail", "-c", command])

    def _run(self, program: list[str], environment: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            program,
            cwd=self.program,
            env=self._environment() | dict(environment or {}),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failed(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def preview(self, *more: str) -> dict[str, list[str]]:
        """Operation → `type::name` of each resource that an update would touch, sorted."""
        steps = json.loads(self.pulumi("preview", "--json", f"--stack={STACK}", *more))["steps"]
        found: dict[str, list[str]] = {}
        for step in steps:
            if step["op"] not in ("same", "read"):
                found.setdefault(step["op"], []).append(short(step["urn"]))
        return {operation: sorted(urns) for operation, urns in sorted(found.items())}

    def up(self) -> None:
        self.pulumi("up", "--yes", "--skip-preview", f"--stack={STACK}")

    def destroy(self) -> None:
        """Whole: what is protected is released first."""
        self.pulumi("state", "unprotect", "--all", "--yes", f"--stack={STACK}")
        self.pulumi("destroy", "--yes", "--skip-preview", f"--stack={STACK}")

    def run(self, command: str, cluster: Kube, values: Mapping[str, str] | None = None) -> str:
        """A line of the stack's README, answered with yes; `values` stand for its words in capital
        letters."""
        program, *words = shlex.split(command)
        given: dict[str, str] = {}
        while "=" in program:
            name, _, value = program.partition("=")
            given[name] = value
            program, *words = words
        for name, value in (values or {}).items():
            words = [word.replace(name, value) for word in words]
        if program == "kubectl":
            return cluster.kubectl(*words)
        assert program == "pulumi", command
        changes = words[0] in ("up", "destroy")
        always = ["--yes", *(["--skip-preview"] if changes else []), f"--stack={STACK}"]
        return self.pulumi(*words, *always, environment=given)

    def resources(self) -> list[str]:
        """`type::name` of what the state holds, sorted; left out are the stack itself and what the
        program only reads."""
        tree: dict[str, Any] = json.loads(self.pulumi("stack", "export", f"--stack={STACK}"))
        held = tree["deployment"].get("resources") or ()
        urns = [r["urn"] for r in held if not r.get("external")]
        return sorted(short(u) for u in urns if "::pulumi:pulumi:Stack::" not in u)


def cluster_uid(cluster: Kube) -> str:
    """What tells the cluster from all others."""
    uid = ("-o", "jsonpath={.metadata.uid}")
    return cluster.kubectl("get", "namespace", "kube-system", *uid)


def short(urn: str) -> str:
    return "::".join(urn.split("::")[2:])
