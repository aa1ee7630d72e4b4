"""What watches a stack: Prometheus' own tools read it and evaluate its alerts, and nothing in it
asks for a metric that nobody tells."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from ruamel.yaml import YAML

from gpuplan.monitoring.metrics import COUNTERS, ENGINES
from tests.backends.test_docker import read
from tests.support.boxes import CHAT, NOTEBOOKS, PRODUCT, stack, text
from tests.support.require import require
from tests.tools.gpubox import Box

SLO = "  slo: {time_to_first_token: {p95: 2 s}, time_per_output_token: 50 ms}\n"
SERVES = 'stack="box",workload="chat",replica="chat-0"'
TTFT = "vllm:time_to_first_token_seconds"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stack(tmp_path_factory.mktemp("box"), text(CHAT + SLO, NOTEBOOKS))


def promtool(*words: str | Path) -> str:
    program = shutil.which("promtool")
    if program is None:
        require("docker", "promtool is not installed (see tests/tools/docker-setup)")
    done = subprocess.run([program or "", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def load(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text("utf-8"))


def expressions(box: Path) -> list[str]:
    board = json.loads((box / "monitoring/dashboard.json").read_text("utf-8"))
    drawn = [t["expr"] for panel in board["panels"] for t in panel.get("targets", ())]
    groups = load(box / "monitoring/rules.yaml")["groups"]
    return drawn + [rule["expr"] for group in groups for rule in group["rules"]]


@pytest.mark.docker
def test_prometheus_takes_the_configuration_the_rules_and_every_panel(
    box: Path, tmp_path: Path
) -> None:
    promtool("check", "config", box / "monitoring/prometheus.yaml")
    promtool("check", "rules", "--lint=all", "--lint-fatal", box / "monitoring/rules.yaml")
    drawn = [{"record": f"a:{n}", "expr": e} for n, e in enumerate(expressions(box))]
    rules = tmp_path / "drawn.yaml"
    rules.write_text(json.dumps({"groups": [{"name": "drawn", "rules": drawn}]}), "utf-8")
    promtool("check", "rules", rules)


def test_nothing_asks_for_a_metric_that_nobody_tells(box: Path) -> None:
    names = {name for name, _, _ in COUNTERS} | {"up"}
    for engine in ENGINES.values():
        told = [getattr(engine, n) for n in engine.__dataclass_fields__]
        names |= {*told, *(f"{n}_{end}" for n in told for end in ("bucket", "sum", "count"))}
    asked = {n for e in expressions(box) for n in re.findall(r"(?:vllm|sglang):\w+|DCGM_\w+", e)}
    assert asked
    assert asked <= names
    kept = (box / "monitoring/counters.csv").read_text("utf-8").splitlines()
    assert {row.split(",")[0] for row in kept} >= {n for n in asked if n.startswith("DCGM_")}


@pytest.mark.docker
@pytest.mark.parametrize(
    ("series", "at", "fires"),
    [
        ({f'up{{job="engines",{SERVES}}}': "0x400"}, "90m", {"EngineDown"}),
        ({f'up{{job="engines",{SERVES}}}': "0x10 1x400"}, "90m", set()),
        (
            {
                f'{TTFT}_bucket{{{SERVES},le="1"}}': "0+1x200",
                f'{TTFT}_bucket{{{SERVES},le="5"}}': "0+60x200",
                f'{TTFT}_bucket{{{SERVES},le="+Inf"}}': "0+60x200",
            },
            "60m",
            {"ObjectiveMissed"},
        ),
        (
            {
                f'{TTFT}_bucket{{{SERVES},le="1"}}': "0+59x200",
                f'{TTFT}_bucket{{{SERVES},le="5"}}': "0+60x200",
                f'{TTFT}_bucket{{{SERVES},le="+Inf"}}': "0+60x200",
            },
            "60m",
            set(),
        ),
        ({f"vllm:kv_cache_usage_perc{{{SERVES}}}": "0.99x200"}, "60m", {"CacheFull"}),
        ({f"vllm:num_requests_waiting{{{SERVES}}}": "90000x200"}, "60m", {"QueueLong"}),
        ({'DCGM_FI_DEV_XID_ERRORS{stack="box",gpu="3"}': "0x50 79x20"}, "55m", {"GpuFault"}),
        ({'DCGM_FI_DEV_XID_ERRORS{stack="box",gpu="3"}': "79x200"}, "55m", set()),
        (
            {'DCGM_FI_DEV_ROW_REMAP_FAILURE{stack="box",gpu="1"}': "1x99"},
            "9m",
            {"GpuMemoryFailing"},
        ),
    ],
)
def test_alerts_fire_where_they_should(
    box: Path, tmp_path: Path, series: dict[str, str], at: str, fires: set[str]
) -> None:
    """Evaluated by Prometheus' own engine: how many of each are firing at that time."""
    groups = load(box / "monitoring/rules.yaml")["groups"]
    alerts = sorted({rule["alert"] for group in groups for rule in group["rules"]})
    count = 'count(ALERTS{alertstate="firing",alertname="%s"})'
    test = {
        "rule_files": [str(box / "monitoring/rules.yaml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": s, "values": v} for s, v in series.items()],
                "promql_expr_test": [
                    {
                        "expr": count % name,
                        "eval_time": at,
                        "exp_samples": [{"labels": "{}", "value": 1}] if name in fires else [],
                    }
                    for name in alerts
                ],
            }
        ],
    }
    path = tmp_path / "test.yaml"
    path.write_text(json.dumps(test), encoding="utf-8")
    promtool("test", "rules", path)


def test_the_profile_has_what_it_mounts_and_reaches_what_it_scrapes(
    box: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(box, tmp_path / "stack"))
    assert Box(tmp_path / "machine", 8, PRODUCT, cores=32).assign(folder).returncode == 0
    assert not {"prometheus", "grafana", "dcgm-exporter"} & read(folder)["services"].keys()
    project = read(folder, "monitor")
    services = project["services"]
    for name in ("prometheus", "grafana", "dcgm-exporter"):
        mounts = [v for v in services[name]["volumes"] if v["type"] == "bind"]
        assert mounts
        assert all(Path(v["source"]).is_file() and v["read_only"] for v in mounts)
        assert services[name]["cap_drop"] == ["ALL"]
    jobs = {j["job_name"]: j for j in load(folder / "monitoring/prometheus.yaml")["scrape_configs"]}
    scraped = [t for c in jobs["engines"]["static_configs"] for t in c["targets"]]
    assert scraped == ["chat-0:8000", "chat-1:8000"]
    reach = set(services["prometheus"]["networks"])
    for address in (*scraped, *jobs["gpus"]["static_configs"][0]["targets"]):
        assert reach & set(services[address.split(":")[0]]["networks"]), address
    assert all(p["host_ip"] == "127.0.0.1" for p in services["grafana"]["ports"])
    assert not services["prometheus"].get("ports")


def lost(given: Any, kept: Any, at: str = "") -> list[str]:
    """What a reader of `given` did not keep; what it adds are its defaults."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [p for key in given for p in lost(given[key], kept.get(key), f"{at}.{key}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = enumerate(zip(given, kept, strict=True))
        return [p for n, (one, other) in pairs for p in lost(one, other, f"{at}[{n}]")]
    return [] if given == kept else [at]


def test_grafana_s_own_records_hold_all_of_the_dashboard(box: Path) -> None:
    """Their readers take the keys that Grafana knows, of panels and queries by their kind."""
    plugins.register_default_plugins()
    board = json.loads((box / "monitoring/dashboard.json").read_text("utf-8"))
    read_back = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
    assert lost(board, read_back) == []
    assert read_back["panels"][0]["title"] == "chat"
    wrong = json.loads(json.dumps(board).replace('"legendFormat"', '"legend_format"'))
    assert lost(wrong, json.loads(JSONEncoder().encode(Dashboard.from_json(wrong))))
    rows = [p for p in board["panels"] if p["type"] == "row"]
    assert rows
    assert all({"collapsed", "id", "panels", "type"} <= row.keys() for row in rows), "all it needs"


def test_panels_stand_beside_one_another_and_show_the_promise(box: Path) -> None:
    board = json.loads((box / "monitoring/dashboard.json").read_text("utf-8"))
    cells = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & own
        assert max(x for x, _ in own) < 24
        cells |= own
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"])
    titled = {p["title"]: p for p in board["panels"]}
    steps = titled["p95 time to first token"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps[-1] == {"color": "red", "value": 2.0}
