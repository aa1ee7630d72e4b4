"""A generated stack under the real `pulumi`: preview, up, destroy, with state in a local folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.require import require

PROGRAMS = (
    "pulumi",
    "pulumi-language-python",
    "pulumi-resource-kubernetes",
    "pulumi-resource-command",
)
STACK = "dev"


def need_pulumi() -> None:
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    if missing:
        require("pulumi", f"no {', '.join(missing)} on PATH (no package registry carries them)")


class Failed(Exception):
    """Pulumi's own words; `code` is its exit code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"exit code {code}\n{text}")
        self.code = code


@dataclass(frozen=True)
class Workspace:
    """`program` is a copy of a stack's folder; `home` holds Pulumi's own files and the state."""

    program: Path
    home: Path

    @staticmethod
    def create(source: Path, folder: Path, config: Mapping[str, str]) -> Workspace:
        """Copy the stack into `folder` and give it the state and the configuration of a new one."""
        workspace = Workspace(folder / "program", folder / "home")
        (workspace.home / "state").mkdir(parents=True)
        workspace.replace(source)
        workspace.pulumi("stack", "init", STACK)
        for name, value in sorted(config.items()):
            workspace.pulumi("config", "set", "--secret", name, "--", value)
        return workspace

    def replace(self, source: Path) -> None:
        """Another version of the program under the same state; the configuration stays."""
        shutil.copytree(source, self.program, dirs_exist_ok=True)
        for environment in ("venv", ".venv"):
            if not (self.program / environment).exists():
                (self.program / environment).symlink_to(sys.prefix)

    @property
    def environment(self) -> dict[str, str]:
        """No cluster, cloud or plugin of the person who runs the tests is in reach."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PULUMI_HOME": str(self.home / "pulumi"),
            "PULUMI_BACKEND_URL": f"file://{self.home / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_PYTHON_CMD": sys.executable,
        }

    def pulumi(self, *arguments: str) -> str:
        """What it prints. Raises `Failed`."""
        done = subprocess.run(
            ["pulumi", "--non-interactive", "--color=never", *arguments],
            cwd=self.program,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failed(done.returncode, f"{done.stdout}{done.stderr}")
        return done.stdout

    def preview(self) -> dict[str, int]:
        """What an update would do: operation → number of resources, `same` left out."""
        summary = json.loads(self.pulumi("preview", "--json", f"--stack={STACK}"))["changeSummary"]
        return {operation: n for operation, n in summary.items() if operation != "same"}

    def up(self) -> None:
        self.pulumi("up", "--yes", "--skip-preview", f"--stack={STACK}")

    def destroy(self) -> None:
        self.pulumi("destroy", "--yes", "--skip-preview", f"--stack={STACK}")

    def resources(self) -> list[dict[str, Any]]:
        """The resources in the state, the stack itself left out."""
        deployment = json.loads(self.pulumi("stack", "export", f"--stack={STACK}"))["deployment"]
        found = deployment.get("resources") or []
        return [r for r in found if r["type"] != "pulumi:pulumi:Stack"]
