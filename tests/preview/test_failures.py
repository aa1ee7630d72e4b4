"""Programs that fail, and what a preview keeps them from."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.preview.messages import PreviewFailed
from gpuplan.preview.running.run import preview
from tests.preview.programs import IMPORTS, PROJECT, failed, write

pytestmark = pytest.mark.sdk

CONFIG_MAP = 'k8s.core.v1.ConfigMap("c", metadata={"name": "c"})\n'


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that holds nothing else; its path is short, as sockets need."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import pulumi\nx = (\n", "__main__.py:2: SyntaxError: '(' was never closed"),
        ("import pulumi\nprint(1 / 0)\n", "__main__.py:2: ZeroDivisionError: division by zero"),
        ("import part\npart.build()\n", "part.py:2: KeyError: 'gpu'"),
        ("import nosuchmodule\n", "__main__.py:1: ModuleNotFoundError: No module named 'nosuch"),
        ("import pulumi\npulumi.Config().require('x')\n", "__main__.py:2: ConfigMissingError"),
        ("raise SystemExit('enough')\n", "__main__.py:1: SystemExit: enough"),
        (
            "import pulumi\npulumi.export('a', pulumi.Output.from_input(1).apply(lambda v: v / 0))",
            "__main__.py:2: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_a_failure_points_at_the_programs_own_line(
    tmp_path: Path, program: str, message: str
) -> None:
    files = {"part.py": "def build():\n    return {}['gpu']\n"}
    [found] = failed(write(tmp_path, program, files=files))
    assert found.startswith(f"the program failed at {message}")


def test_the_failing_line_can_be_shown(tmp_path: Path) -> None:
    write(tmp_path, "import pulumi\nif True:\n    print(1 / 0)\n")
    with pytest.raises(PreviewFailed) as caught:
        preview(tmp_path)
    place = caught.value.sources.locate(caught.value.diagnostics[0].origin)
    assert place is not None
    document, span = place
    assert document.text.splitlines()[span.line - 1][span.column - 1 :] == "print(1 / 0)"


def test_two_resources_of_one_name_are_both_shown(tmp_path: Path) -> None:
    program = IMPORTS + CONFIG_MAP + "\n" + CONFIG_MAP
    [message] = failed(write(tmp_path, program))
    urn = "urn:pulumi:dev::shop::kubernetes:core/v1:ConfigMap::c"
    line = len(IMPORTS.splitlines()) + 1
    places = f"__main__.py:{line} and __main__.py:{line + 2}"
    assert message == f"two resources have the URN '{urn}' ({places})"


@pytest.mark.parametrize(
    ("program", "kind", "token"),
    [
        ("pulumi.runtime.invoke('aws:index/getZones:getZones', {})", "invoke", "aws:index/getZ"),
        (
            "k8s.core.v1.Service.get('s', 'default/s')",
            "read",
            "kubernetes:core/v1:Service default/s",
        ),
    ],
)
def test_what_only_a_provider_knows_is_named(
    tmp_path: Path, program: str, kind: str, token: str
) -> None:
    write(tmp_path, IMPORTS + program, files={"a.yaml": "{}"})
    [message] = failed(tmp_path)
    line = len(IMPORTS.splitlines()) + 1
    assert message.startswith(
        f"the program at __main__.py:{line} needs a live answer to the {kind}"
    )
    assert f"'{token}" in message


def test_transforms_are_refused_with_a_reason(tmp_path: Path) -> None:
    program = IMPORTS + "pulumi.runtime.register_resource_transform(lambda a: None)\n" + CONFIG_MAP
    with pytest.raises(PreviewFailed) as caught:
        preview(write(tmp_path, program))
    assert "runs no transforms" in caught.value.diagnostics[0].help


def test_an_ill_formed_type_is_refused_where_it_stands(tmp_path: Path) -> None:
    program = """
    import pulumi

    class Thing(pulumi.CustomResource):
        def __init__(self, name):
            super().__init__("nonsense", name, {})

    Thing("x")
    """
    [message] = failed(write(tmp_path, program))
    assert message == "__main__.py:8: 'nonsense' is not a type of the form package:module:Name"


def test_a_python_without_the_sdk_says_what_to_install(tmp_path: Path, temporary: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = str(tmp_path / "bare" / "bin" / "python")
    write(tmp_path / "stack", "import pulumi\n")
    with pytest.raises(PreviewFailed) as caught:
        preview(tmp_path / "stack", python=python)
    [problem] = caught.value.diagnostics
    assert problem.message == f"previews need the Pulumi SDK, and {python} has no module 'pulumi'"
    assert problem.help == "pip install 'gpuplan[pulumi]'"
    assert list(temporary.iterdir()) == []


def test_a_python_may_be_named_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "environment").symlink_to(Path(sys.executable).parents[1])
    write(tmp_path, "import pulumi\npulumi.export('a', 1)\n")
    found = preview(tmp_path, python=f"environment/bin/{Path(sys.executable).name}")
    assert found.outputs == {"a": 1}


def test_a_python_that_is_none_is_named(tmp_path: Path, temporary: Path) -> None:
    write(tmp_path, "import pulumi\n")
    [message] = failed(tmp_path, python=str(tmp_path / "nowhere"))
    assert message == f"cannot start {tmp_path / 'nowhere'}: no such file or directory"
    [message] = failed(tmp_path, python="/bin/false")
    assert message == "cannot start /bin/false: it ended with code 1"
    assert list(temporary.iterdir()) == []


# --- nothing is left, nothing is touched ---------------------------------------------------------


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]


def wait_until(condition: object, seconds: float = 240) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


def test_a_program_that_never_ends_is_ended(tmp_path: Path, temporary: Path) -> None:
    program = IMPORTS + CONFIG_MAP + "import time\nwhile True:\n    time.sleep(1)\n"
    [message] = failed(write(tmp_path, program), timeout_s=3.0)
    assert message == "the program did not end within 3 s; it had registered 0 resources"
    assert list(temporary.iterdir()) == []


def test_a_killed_program_is_reported(tmp_path: Path, temporary: Path) -> None:
    [message] = failed(write(tmp_path, "import os\nos.kill(os.getpid(), 9)\n"))
    assert message == "the program's process was ended by SIGKILL"
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
def test_a_killed_preview_takes_its_program_along(tmp_path: Path, temporary: Path) -> None:
    program = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"
    stack = write(tmp_path / "stack", program)
    code = "import pathlib, sys; from gpuplan.preview.running.run import preview; "
    code += "preview(pathlib.Path(sys.argv[1]))"
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code, str(stack)], env=environment) as parent:
        printed: list[str] = []

        def started() -> bool:
            printed[:] = [p.read_text().strip() for p in temporary.glob("*/output.txt")]
            return bool(printed and printed[0])

        assert wait_until(started)
        parent.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not alive(int(printed[0])))
    assert wait_until(lambda: not list(temporary.iterdir()))


def test_a_preview_touches_nothing(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"""
    import json, os, pathlib, socket, subprocess, tempfile, urllib.request
    import pulumi
    import helper

    def attempt(action):
        try:
            action()
        except OSError as problem:
            return str(problem)
        return "done"

    here = pathlib.Path("made-by-program")
    outside = pathlib.Path({str(tmp_path)!r}, "outside")
    own = pathlib.Path.home() / "scratch"
    pulumi.export("found", {{
        "file": attempt(lambda: here.write_text("x")),
        "folder": attempt(here.mkdir),
        "outside": attempt(lambda: outside.write_text("x")),
        "removal": attempt(lambda: os.remove("Pulumi.yaml")),
        "truncation": attempt(lambda: os.truncate("Pulumi.yaml", 7)),
        "own": attempt(lambda: own.write_text("x")),
        "scratch": attempt(lambda: tempfile.TemporaryDirectory().cleanup()),
        "move": attempt(lambda: own.rename(outside)),
        "process": attempt(lambda: subprocess.run(["true"])),
        "lookup": attempt(lambda: socket.getaddrinfo("example.com", 443)),
        "connection": attempt(lambda: socket.create_connection(("127.0.0.1", 9))),
        "web": attempt(lambda: urllib.request.urlopen("http://127.0.0.1:9/")),
    }})
    pulumi.export("variables", sorted(os.environ))
    pulumi.export("home", os.listdir(pathlib.Path.home()))
    """
    monkeypatch.setenv("KUBECONFIG", "/etc/kubeconfig")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "hunter2")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    stack = write(tmp_path / "stack", program, files={"helper.py": ""})
    outputs = preview(stack).outputs
    reasons = {k: v.partition(":")[0] for k, v in outputs["found"].items()}
    assert reasons == {
        "file": "a preview writes no files",
        "folder": "a preview writes no files",
        "outside": "a preview writes no files",
        "removal": "a preview writes no files",
        "truncation": "a preview writes no files",
        "own": "done",
        "scratch": "done",
        "move": "a preview writes no files",
        "process": "a preview starts no processes",
        "lookup": "a preview uses no network",
        "connection": "a preview uses no network",
        "web": "<urlopen error a preview uses no network",
    }
    secrets = {"KUBECONFIG", "AWS_SECRET_ACCESS_KEY", "PULUMI_ACCESS_TOKEN", "HTTPS_PROXY"}
    assert secrets.isdisjoint(outputs["variables"])
    assert not {".kube", ".pulumi"} & set(outputs["home"])
    assert sorted(p.name for p in stack.rglob("*")) == ["Pulumi.yaml", "__main__.py", "helper.py"]
    assert not (tmp_path / "outside").exists()
    assert list(temporary.iterdir()) == []


def test_a_forbidden_act_fails_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, "import subprocess\nsubprocess.run(['kubectl', 'get', 'nodes'])\n")
    [message] = failed(tmp_path)
    assert message.startswith("the program failed at __main__.py:2: Refused: a preview starts no")


def test_a_long_temporary_path_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    made = preview(write(tmp_path / "stack", "import pulumi\npulumi.export('a', 1)\n"))
    assert made.outputs == {"a": 1}


def test_the_answer_can_be_json(tmp_path: Path) -> None:
    from gpuplan.preview.jsonpreview import to_json

    made = preview(write(tmp_path, "import pulumi\npulumi.export('a', [1, 2.5, None])\n"))
    assert json.loads(json.dumps(to_json(made)))["outputs"] == {"a": [1, 2.5, None]}
    assert PROJECT.startswith(f"name: {made.project}")
