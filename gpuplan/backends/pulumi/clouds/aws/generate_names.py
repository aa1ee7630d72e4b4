"""Write `names.json`: the values that AWS's own models enumerate, of what the programs set.

    python -m gpuplan.backends.pulumi.clouds.aws.generate_names

The SDK's types are texts, so that no type checker sees a value that AWS has not. Needs botocore.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

NAMES = Path(__file__).with_name("names.json")
# The keyword of a program, the service, and the shape of its model.
SHAPES = {
    "ami_type": ("eks", "AMITypes"),
    "capacity_type": ("eks", "CapacityTypes"),
    "authentication_mode": ("eks", "AuthenticationMode"),
    "support_type": ("eks", "SupportType"),
    "resolve_conflicts_on_create": ("eks", "ResolveConflicts"),
    "resolve_conflicts_on_update": ("eks", "ResolveConflicts"),
    "effect": ("eks", "TaintEffect"),
    "market_type": ("ec2", "MarketType"),
    "http_tokens": ("ec2", "HttpTokensState"),
    "strategy": ("ec2", "PlacementStrategy"),
    "volume_type": ("ec2", "VolumeType"),
}
# Families with NVIDIA's GPUs, and that of nodes without any.
FAMILIES = re.compile(r"(g[4-9][a-z]*|gr[0-9][a-z]*|p[3-9][a-z0-9-]*|m7i)\.")


def model(service: str) -> dict[str, Any]:
    """The newest model of a service in the installed botocore: its shapes."""
    spec = importlib.util.find_spec("botocore")
    assert spec is not None
    assert spec.origin is not None
    folder = max((Path(spec.origin).parent / "data" / service).iterdir())
    (path,) = folder.glob("service-2.json*")
    content = path.read_bytes()
    tree: dict[str, Any] = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    shapes: dict[str, Any] = tree["shapes"]
    return shapes


def generate() -> str:
    models = {service: model(service) for service in ("eks", "ec2")}
    tree: dict[str, Any] = {
        "source": f"botocore {importlib.metadata.version('botocore')}",
        **{k: sorted(models[s][shape]["enum"]) for k, (s, shape) in SHAPES.items()},
    }
    machines = sorted(models["ec2"]["InstanceType"]["enum"])
    tree["instance_types"] = [name for name in machines if FAMILIES.match(name)]
    return json.dumps(tree, indent=1) + "\n"


if __name__ == "__main__":
    NAMES.write_text(generate(), encoding="utf-8")
