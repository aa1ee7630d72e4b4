"""The kubeconfig that a cloud's cluster hands to the workloads' stack, by the real kubectl on a
real API server; what asks the cloud for a token is played."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clouds import compiled
from tests.tools.kube import Kube

pytestmark = [pytest.mark.cluster]

ROOT = Path(__file__).parents[2]
PLAYED = """\
#!{python}
import json, os, sys
assert sys.argv[1:] == {arguments}, sys.argv
told = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert told["spec"]["cluster"]["server"] == {server!r}, told
print(json.dumps({{"apiVersion": told["apiVersion"], "kind": "ExecCredential",
                  "status": {{"token": {token!r}}}}}))
"""
TOKENS = {
    "eks": ("aws", ["eks", "get-token", "--cluster-name", "own", "--region", "us-east-1"]),
    "gke": ("gke-gcloud-auth-plugin", []),
}


def written(stack: Path) -> Callable[[list[str]], str]:
    """The function of the program, with what it imports played: outputs are not asked for."""
    values: dict[str, object] = {}
    pulumi = types.ModuleType("pulumi")
    pulumi.Output = types.SimpleNamespace(  # type: ignore[attr-defined]
        all=lambda *_: types.SimpleNamespace(apply=lambda function: function)
    )
    held = types.SimpleNamespace(data=None, cluster_ca_certificate=None)
    control = types.ModuleType("control")
    control.cluster = types.SimpleNamespace(  # type: ignore[attr-defined]
        name=None, endpoint=None, certificate_authority=held, master_auth=held
    )
    before = {name: sys.modules.get(name) for name in ("pulumi", "control")}
    sys.modules |= {"pulumi": pulumi, "control": control}
    try:
        text = (stack / "cloud" / "cluster" / "access.py").read_text(encoding="utf-8")
        exec(compile(text, "access.py", "exec"), values)
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    reached = values["reached"]
    assert callable(reached)
    return reached


@pytest.mark.parametrize("target", TOKENS)
def test_the_kubeconfig_of_a_clouds_cluster_reaches_it(
    cluster: Kube, tmp_path: Path, target: str
) -> None:
    own = json.loads(cluster.plane.kubeconfig.read_text(encoding="utf-8"))
    server = own["clusters"][0]["cluster"]["server"]
    authority = Path(own["clusters"][0]["cluster"]["certificate-authority"]).read_bytes()
    token = own["users"][0]["user"]["token"]
    command, arguments = TOKENS[target]
    stack = compiled(tmp_path, (ROOT / "examples" / f"{target}.yaml").read_text(encoding="utf-8"))
    address = server if target == "eks" else server.removeprefix("https://")
    found = written(stack)(["own", address, b64encode(authority).decode()])
    assert token not in found
    (tmp_path / "kubeconfig").write_text(found, encoding="utf-8")
    played = tmp_path / "bin" / command
    played.parent.mkdir()
    played.write_text(
        PLAYED.format(python=sys.executable, arguments=arguments, server=server, token=token),
        encoding="utf-8",
    )
    played.chmod(0o755)
    given = ("--kubeconfig", tmp_path / "kubeconfig", "-o", "jsonpath={.metadata.name}")
    asked = subprocess.run(
        [cluster.plane.kubectl, *given, "get", "namespace", "kube-system"],
        env={"PATH": f"{played.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert asked.stdout == "kube-system", asked.stderr
