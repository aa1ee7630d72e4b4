"""DCGM exporter, Prometheus and Grafana beside the workloads, as a profile that is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from gpuplan.backends.docker.services import CLOSED, LOCAL, LOGGING
from gpuplan.backends.docker.storage import SECRETS
from gpuplan.backends.docker.view import Part, containers
from gpuplan.engines.container import image
from gpuplan.monitoring.dashboard import SOURCE, dashboard
from gpuplan.monitoring.metrics import counters
from gpuplan.monitoring.rules import rules
from gpuplan.monitoring.scrape import Target, configuration, told
from gpuplan.plan.model import Engine, Plan
from gpuplan.render import commented
from gpuplan.render.commented import Because, Tree
from gpuplan.render.tree import File

PROFILE = "monitor"
# Names that no workload has: those have no underscore.
NETWORK, HISTORY, BOARDS = "monitor_net", "prometheus_data", "grafana_data"
ADMIN = "grafana_admin"  # the secret, and the file that it is
GRAFANA_USER = 472  # of the image, who reads that file
EXPORTER, PROMETHEUS, GRAFANA = "dcgm-exporter", "prometheus", "grafana"
EXPORTER_PORT, PROMETHEUS_PORT, GRAFANA_PORT = 9400, 9090, 3000
FOLDER = "monitoring"
PROVISIONED, DASHBOARDS = "/etc/grafana/provisioning", "/etc/gpuplan"
KEPT = "15d"
TITLE = "Written by gpuplan; `gpuplan check` finds edits."


def services(plan: Plan, parts: Sequence[Part]) -> Tree:
    """None where the plan has no images for them."""
    images = {engine.name: engine for engine in plan.monitors}
    if not images:
        return {}
    seen = [part.name for part in parts if told(part.workload)]
    return {
        EXPORTER: _common(plan, images[EXPORTER], [NETWORK])
        | {
            "command": ["--collectors", "/etc/gpuplan/counters.csv"],
            "volumes": [_file("counters.csv", "/etc/gpuplan/counters.csv")],
            "cap_add": [Because("SYS_ADMIN", "profiling metrics, which the driver keeps for root")],
            "deploy": {"resources": {"reservations": {"devices": [_all_gpus()]}}},
            "mem_limit": "1g",
        },
        PROMETHEUS: _common(plan, images[PROMETHEUS], [NETWORK, *seen])
        | {
            "command": [
                "--config.file=/etc/prometheus/prometheus.yaml",
                "--storage.tsdb.path=/prometheus",
                f"--storage.tsdb.retention.time={KEPT}",
            ],
            "volumes": [
                _file("prometheus.yaml", "/etc/prometheus/prometheus.yaml"),
                _file("rules.yaml", "/etc/prometheus/rules.yaml"),
                {"type": "volume", "source": HISTORY, "target": "/prometheus"},
            ],
            "read_only": True,
            "mem_limit": "2g",
        },
        GRAFANA: _common(plan, images[GRAFANA], [NETWORK])
        | {
            "environment": {
                "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
                "GF_ANALYTICS_REPORTING_ENABLED": "false",
                "GF_SECURITY_ADMIN_PASSWORD__FILE": f"/run/secrets/{ADMIN}",
                "GF_USERS_ALLOW_SIGN_UP": "false",
            },
            "secrets": [ADMIN],
            "volumes": [
                _file("datasources.yaml", f"{PROVISIONED}/datasources/gpuplan.yaml"),
                _file("dashboards.yaml", f"{PROVISIONED}/dashboards/gpuplan.yaml"),
                _file("dashboard.json", f"{DASHBOARDS}/dashboard.json"),
                {"type": "volume", "source": BOARDS, "target": "/var/lib/grafana"},
            ],
            "ports": [f"{LOCAL}:{GRAFANA_PORT}:{GRAFANA_PORT}"],
            "depends_on": [PROMETHEUS],
            "mem_limit": "512m",
        },
    }


def _common(plan: Plan, engine: Engine, networks: list[str]) -> Tree:
    return {
        "image": image(engine, plan.network),
        "profiles": [PROFILE],
        "networks": networks,
        **CLOSED,
        "logging": LOGGING,
        "restart": "unless-stopped",
        "labels": {"gpuplan.dev/stack": plan.name},
    }


def _all_gpus() -> Tree:
    return {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}


def _file(name: str, target: str) -> Tree:
    return {"type": "bind", "source": f"./{FOLDER}/{name}", "target": target, "read_only": True}


def volumes(plan: Plan) -> Tree:
    return {HISTORY: {}, BOARDS: {}} if plan.monitors else {}


def secrets(plan: Plan) -> Tree:
    return {ADMIN: {"file": f"./{SECRETS}/{ADMIN}"}} if plan.monitors else {}


def files(plan: Plan, parts: Sequence[Part]) -> Iterator[File]:
    if not plan.monitors:
        return
    engines = [
        Target(workload=part.name, replica=name, address=f"{name}:{part.launch.port}")
        for part in parts
        if told(part.workload)
        for name in containers(part.workload)
    ]
    scraped = configuration(plan, engines, f"{EXPORTER}:{EXPORTER_PORT}", "rules.yaml")
    source = {
        "apiVersion": 1,
        "datasources": [
            {
                "name": "Prometheus",
                "type": SOURCE["type"],
                "uid": SOURCE["uid"],
                "access": "proxy",
                "url": f"http://{PROMETHEUS}:{PROMETHEUS_PORT}",
                "isDefault": True,
            }
        ],
    }
    boards = {
        "apiVersion": 1,
        "providers": [{"name": plan.name, "type": "file", "options": {"path": DASHBOARDS}}],
    }
    for name, tree in (
        ("prometheus.yaml", scraped),
        ("rules.yaml", rules(plan)),
        ("datasources.yaml", source),
        ("dashboards.yaml", boards),
    ):
        yield File(f"{FOLDER}/{name}", commented.dumps(tree, {}, TITLE))
    yield File(f"{FOLDER}/counters.csv", counters())
    shown = json.dumps(dashboard(plan), indent=2, ensure_ascii=False)
    yield File(f"{FOLDER}/dashboard.json", shown + "\n")
