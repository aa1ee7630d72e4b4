"""HAProxy before the containers of a service: requests go to the one with the fewest at work."""

from __future__ import annotations

from gpuplan.backends.docker.services import CLOSED, LOCAL, LOGGING
from gpuplan.backends.docker.view import Part, containers
from gpuplan.engines.container import image
from gpuplan.plan.model import Engine
from gpuplan.render.commented import Tree
from gpuplan.render.environments import render
from gpuplan.render.tree import File

PORT = 8080
FILES = 16384  # two for each of the connections that its configuration allows, and a few
CONFIGURATION = "/usr/local/etc/haproxy/haproxy.cfg"  # where the image looks for it


def service(part: Part, engine: Engine) -> Tree:
    return {
        "image": image(engine, part.plan.network),
        "volumes": [
            {
                "type": "bind",
                "source": f"./{_path(part)}",
                "target": CONFIGURATION,
                "read_only": True,
            }
        ],
        "networks": [part.name],
        "ports": [f"{LOCAL}:{part.port}:{PORT}"],
        "read_only": True,
        "mem_limit": "256m",
        "ulimits": {"nofile": FILES},
        **CLOSED,
        "logging": LOGGING,
        "restart": "unless-stopped",
    }


def configuration(part: Part) -> File:
    text = render(
        "conf",
        "docker/haproxy.cfg.j2",
        port=PORT,
        servers=containers(part.workload),
        target=part.launch.port,
        has_health=part.launch.health is not None,
        health=part.launch.health or "",
    )
    return File(_path(part), text)


def _path(part: Part) -> str:
    return f"workloads/{part.name}-balancer/haproxy.cfg"
