"""Rules over generated files: whatever a person may edit in them is seen, or said to be unseen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.findings import Report
from gpuplan.policy.engine import check
from gpuplan.policy.packs import builtin_pack
from gpuplan.policy.reading import read_stacks
from gpuplan.render.checksums import CHECKSUMS
from gpuplan.render.tree import File, FileTree
from tests.support.policy_samples import MANIFEST, PROGRAM, TODAY, judge, rules, stack, write
from tests.support.samples import HOSTILE, serving_plan


def report(name: str, text: str) -> Report:
    return judge(stack(serving_plan(), **{name: text}))


def program(line: str) -> Report:
    return report("workload.py", f"import k8s\n{line}\n")


@pytest.mark.parametrize("file", ["workload.py", "Pulumi.dev.yaml", "notes.txt"])
def test_a_secret_in_any_file_is_found_and_never_said(file: str) -> None:
    token = "hf_" + "Qz9" * 12
    found = judge(stack(serving_plan(), **{file: f"# one\nTOKEN = '{token}'\n"}))
    [verdict] = [v for v in found.verdicts if v.rule == "GP702"]
    assert (verdict.file, verdict.line) == (f"stacks/chat/{file}", 2)
    assert token not in repr(found)


def test_a_sound_stack_passes() -> None:
    files = {"workload.py": PROGRAM, "m.yaml": MANIFEST, "requirements.txt": "pulumi==3.272.0\n"}
    assert judge(stack(serving_plan(), **files)).verdicts == ()


@pytest.mark.parametrize(
    "line",
    [
        "k8s.SecurityContextArgs(privileged=True)",
        "PRIVILEGED = True\nk8s.SecurityContextArgs(privileged=PRIVILEGED)",
        'k8s.Pod("p", spec={"containers": [{"securityContext": {"privileged": True}}]})',
        "k8s.SecurityContextArgs(privileged=bool(1))",
        "k8s.SecurityContextArgs(privileged=not False)",
        'k8s.SecurityContextArgs(privileged=config.require_bool("p"))',
        'k8s.SecurityContextArgs(**{"privileged": True})',
        "k8s.SecurityContextArgs(**options)",
        "k8s.SecurityContextArgs(**dict(privileged=True))",
        'context["privileged"] = True',
        "context.privileged = True",
        'setattr(context, "privileged", True)',
        'k8s.SecurityContextArgs(privileged="true")',
        "k8s.SecurityContextArgs(privileged=1)",
        "def f(X):\n    k8s.SecurityContextArgs(privileged=X)\nX = False",
        "X = False\ndef f(X):\n    k8s.SecurityContextArgs(privileged=X)",
        "X = False\nX = True\nk8s.SecurityContextArgs(privileged=X)",
        "X = True\nX = False\nk8s.SecurityContextArgs(privileged=X)",
        'k8s.ConfigGroup("g", yaml="securityContext: {privileged: true}")',
        'command.remote.Command("c", create="docker run --privileged -d x")',
        'k8s.SecurityContextArgs(**{"privile\\x67ed": True})',
        "k8s.SecurityContextArgs(privileged=True",
        "null\0byte",
    ],
)
def test_a_privileged_container_in_a_program(line: str) -> None:
    found = program(line)
    assert "GP701" in rules(found)
    assert found.exit_code() == 1


@pytest.mark.parametrize(
    "line",
    [
        "k8s.SecurityContextArgs(privileged=False)",
        "k8s.SecurityContextArgs(privileged=None)",
        "PRIVILEGED = False\nk8s.SecurityContextArgs(privileged=PRIVILEGED)",
        "X = False\nk8s.ContextArgs(privileged=X)\nk8s.ContextArgs(privileged=X)",
        "print('unprivileged users')  # privileged: true",
        "k8s.Command(create='docker run --privileged=false x')",
        "k8s.DeploymentArgs(**options)",
        "k8s.SecurityContextArgs(allow_privilege_escalation=False)",
        r"pattern = '\d'",
        'sed(text, "privileged", "plain")',
        'setattr(context, "privileged", False)',
    ],
)
def test_an_unprivileged_program(line: str) -> None:
    assert rules(program(line)) == set()


def test_a_finding_in_a_program_names_its_container_and_line() -> None:
    (verdict,) = report("workload.py", PROGRAM.replace("=False", "=True"))
    assert verdict.resource == "Deployment[assistant]"
    assert verdict.path.endswith(
        "ContainerArgs[vllm].security_context.SecurityContextArgs.privileged"
    )
    assert verdict.place == "stacks/chat/workload.py:11"


def test_what_stands_after_a_resource_is_not_of_it() -> None:
    report_of = program('k8s.Deployment("a", spec={"replicas": 1})\nother.privileged = True')
    (verdict,) = report_of
    assert "Deployment" not in verdict.resource
    assert "Deployment" not in verdict.path


def test_a_fingerprint_survives_an_edit_elsewhere() -> None:
    one = PROGRAM.replace("=False", "=True")
    two = "# a comment\n\nOTHER = 1\n" + one
    (first,), (second,) = report("workload.py", one), report("workload.py", two)
    assert first.line != second.line
    assert first.fingerprint == second.fingerprint


def test_two_findings_of_one_property_have_two_fingerprints() -> None:
    found = program("x.privileged = True\ny.privileged = True")
    assert len({v.fingerprint for v in found}) == len(found.verdicts) == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.yaml", MANIFEST.replace("privileged: false", "privileged: true")),
        ("m.yaml", MANIFEST.replace("privileged: false", "privileged: yes")),
        ("m.yaml", MANIFEST.replace("privileged: false", '"privile\\x67ed": true')),
        ("m.yaml", MANIFEST.replace("privileged: false", "privileged: '{{ .Values.p }}'")),
        ("m.yaml", MANIFEST.replace("privileged: false", "privileged: &x true")),
        ("m.yaml", f"a: 1\n---\n{MANIFEST.replace('privileged: false', 'privileged: true')}"),
        ("m.yaml", f"a: 1\n{MANIFEST}  # privileged\n  bad"),
        ("m.yml", "privileged: true\nprivileged: false\n"),
        ("m.yaml", "script: |\n  docker run --privileged x\n"),
        ("m.json", '{"securityContext": {"privileged": true}}'),
        ("m.json", '{"privileged": '),
        ("m.yaml", "a: !custom {privileged: true}\n"),
    ],
)
def test_a_privileged_container_in_a_document(name: str, text: str) -> None:
    found = report(name, text)
    assert "GP701" in rules(found)


def test_a_finding_in_a_document_names_its_container_and_line() -> None:
    spaced = MANIFEST.replace("privileged: false", "privileged:  true")
    for text in (MANIFEST.replace("privileged: false", "privileged: true"), spaced):
        (verdict,) = report("m.yaml", text)
        assert verdict.resource == "Deployment/assistant"
        assert verdict.path == "spec.template.spec.containers[vllm].securityContext.privileged"
        assert verdict.line == 11


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("vllm", "has no tag"),
        ("registry:5000/vllm", "has no tag"),
        ("vllm:latest", "moving tag 'latest'"),
        ("registry/vllm:main", "moving tag 'main'"),
        ("vllm@sha256:abc", "is not an image reference"),
        ("{{ image }}", "is not an image reference"),
    ],
)
def test_an_unpinned_image(image: str, words: str) -> None:
    for name, text in (
        ("m.yaml", MANIFEST.replace("vllm/vllm-openai:v0.11.0", f'"{image}"')),
        ("workload.py", PROGRAM.replace("vllm/vllm-openai:v0.11.0", image)),
    ):
        (verdict,) = report(name, text)
        assert verdict.rule == "GP602"
        assert words in verdict.message


@pytest.mark.parametrize(
    "image",
    [
        "vllm:v1",
        "r.io:5000/a/b:1.2-cuda12",
        f"vllm@sha256:{'0' * 64}",
        f"v:latest@sha256:{'0' * 64}",
    ],
)
def test_a_pinned_image(image: str) -> None:
    assert rules(report("m.yaml", f'image: "{image}"\n')) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("driver:\n  image: driver\n  version: 580.126.20\n", set()),
        ("driver:\n  image: driver\n  tag: latest\n", {"GP602"}),
        ("driver:\n  image: driver\n  tag: 1.2\n", set()),
        (f"driver:\n  image: driver@sha256:{'0' * 64}\n  version: 580\n", set()),
        ("driver:\n  image:\n    repository: driver\n", set()),
        ("driver:\n  image: driver\n", {"GP602"}),
    ],
)
def test_an_image_with_its_tag_beside_it(text: str, found: set[str]) -> None:
    assert rules(report("values.yaml", text)) == found


def test_an_image_that_only_a_run_decides_is_a_warning() -> None:
    (verdict,) = program('k8s.ContainerArgs(image=config.require("image"))')
    assert (verdict.rule, verdict.severity.value) == ("GP602", "warning")
    assert "only a run decides" in verdict.message


def test_an_image_of_the_plan_is_reported_once() -> None:
    plan = serving_plan()
    engine = replace(plan.workloads[0].engine, image="vllm:latest")
    plan = replace(plan, workloads=(replace(plan.workloads[0], engine=engine),))
    found = judge(stack(plan, **{"m.yaml": "image: vllm:latest\n"}))
    assert [v.file for v in found] == ["stacks/chat/plan.yaml"]


@pytest.mark.parametrize(
    ("version", "found"),
    [
        (', version="v26.3.3"', set()),
        (', version="1.2.3-rc.1+build"', set()),
        ("", {"GP601"}),
        (", version=None", {"GP601"}),
        (', version="^1.2"', {"GP601"}),
        (', version=">=1"', {"GP601"}),
        (', version="1.x"', {"GP601"}),
        (', version="latest"', {"GP601"}),
        (', version="1"', {"GP601"}),
        (", version=pick()", {"GP601"}),
    ],
)
def test_a_chart_release(version: str, found: set[str]) -> None:
    assert rules(program(f'k8s.helm.v3.Release("r", chart="c"{version})')) == found
    assert rules(program(f'k8s.Release("r", k8s.ReleaseArgs(chart="c"{version}))')) == found


def test_a_chart_in_the_stack_needs_no_version() -> None:
    assert rules(program('k8s.helm.v4.Chart("r", chart="./charts/r")')) == set()


def test_a_chart_lock() -> None:
    assert rules(report("helm/10-x/chart.lock.yaml", "chart: x\nversion: 1.2.3\n")) == set()
    assert rules(report("helm/10-x/chart.lock.yaml", "chart: x\nversion: latest\n")) == {"GP601"}


@pytest.mark.parametrize(
    ("line", "pinned"),
    [
        ("pulumi==3.272.0", True),
        ("pulumi[x]==3.272.0 ; python_version >= '3.11'", True),
        ("pulumi==3.272.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11", True),
        ("# pulumi", True),
        ("pulumi == 3.272.0  # why", True),
        ("pulumi", False),
        ("pulumi>=3", False),
        ("pulumi==3.*", False),
        ("pulumi~=3.2", False),
        ("pulumi==3.2,>1", False),
        ("--extra-index-url https://example.org", False),
        ("-e .", False),
        ("pulumi @ https://example.org/p.whl", False),
    ],
)
def test_a_requirement(line: str, pinned: bool) -> None:
    found = report("requirements.txt", f"a==1\n{line}\nb==2.0\n")
    assert [(v.rule, v.line) for v in found] == ([] if pinned else [("GP606", 2)])


@pytest.mark.parametrize("line", ["pulumi>=3,<4", "pulumi [x] >=3 ; python_version >= '3.11'"])
def test_a_requirement_is_named_without_its_versions(line: str) -> None:
    (verdict,) = report("requirements.txt", f"{line}\n")
    assert verdict.path == "pulumi"


def test_a_requirement_after_a_continued_line_keeps_its_number() -> None:
    (verdict,) = report("requirements.txt", "a==1 \\\n  --hash=x\nb\n")
    assert verdict.line == 3


# --- integrity ------------------------------------------------------------------------------------


def read(folder: Path) -> Report:
    return check(read_stacks(folder), builtin_pack(), as_of=TODAY)


def test_a_stack_as_generated(tmp_path: Path) -> None:
    assert read(write(tmp_path, serving_plan())).verdicts == ()


@pytest.mark.parametrize(
    ("name", "text", "words", "severity"),
    [
        ("README.md", "# edited\n", "README.md differs from what was generated", "error"),
        ("README.md", None, "README.md was generated and is gone", "error"),
        ("extra.py", "x = 1\n", "extra.py was not generated", "warning"),
        ("sub/.hidden", "", "sub/.hidden was not generated", "warning"),
        ("a__pycache__b.py", "x = 1\n", "a__pycache__b.py was not generated", "warning"),
        ("sub/venv/x", "", "sub/venv/x was not generated", "warning"),
        (CHECKSUMS, None, "checksums.txt is missing", "error"),
    ],
)
def test_an_edited_stack(
    tmp_path: Path, name: str, text: str | None, words: str, severity: str
) -> None:
    folder = write(tmp_path, serving_plan())
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)
    (verdict,) = read(folder)
    assert (verdict.rule, verdict.severity.value) == ("GP904", severity)
    assert words in verdict.message
    assert ("compile keeps it" in verdict.help) == (severity == "warning")
    assert verdict.file == f"{folder.as_posix()}/{name}"


@pytest.mark.parametrize("path", ["/etc/passwd", "../other/plan.yaml", "C:/x"])
def test_a_record_of_files_that_leads_out_of_the_stack(tmp_path: Path, path: str) -> None:
    folder = write(tmp_path, serving_plan())
    with (folder / CHECKSUMS).open("a") as record:
        record.write(f"{'0' * 64}  {path}\n")
    number = len((folder / CHECKSUMS).read_text().splitlines())
    (verdict,) = read(folder)
    assert (verdict.rule, verdict.severity.value) == ("GP904", "error")
    assert verdict.message == f"checksums.txt has a line that was not generated: line {number}"


def test_a_record_of_files_that_names_one_twice(tmp_path: Path) -> None:
    folder = write(tmp_path, serving_plan())
    record = (folder / CHECKSUMS).read_text()
    (folder / CHECKSUMS).write_text(record + record.splitlines()[0] + "\n")
    (verdict,) = read(folder)
    assert f"line {len(record.splitlines()) + 1}" in verdict.message


def test_the_users_own_files_are_free(tmp_path: Path) -> None:
    folder = write(tmp_path, serving_plan())
    own = ("Pulumi.dev.yaml", "venv/bin/python", "__pycache__/x.pyc", ".pulumi/state")
    for name in (*own, ".git/HEAD", ".env", ".gitignore", "env/bin/python"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\xff\x00")
    assert read(folder).verdicts == ()


def test_what_python_keeps_beside_programs_is_no_file_of_a_stack(tmp_path: Path) -> None:
    folder = write(tmp_path, serving_plan(), **{"pools/pool.py": "x = 1\n"})
    for name in ("pools/__pycache__/pool.pyc", "pools/deep/__pycache__/a.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\0")
    assert read(folder).verdicts == ()
    (folder / "pools/deep/more.py").write_text("", encoding="utf-8")
    assert [v.message for v in read(folder)] == ["pools/deep/more.py was not generated"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = write(tmp_path, serving_plan())
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.py").write_text("x.privileged = True\n")
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to(tmp_path / "outside" / "secret.py")
    (folder / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    (folder / "dangling").symlink_to("nowhere")
    found = [v.message for v in read(folder)]
    assert found == [
        "README.md differs from what was generated",
        "dangling was not generated",
        "linked was not generated",
    ]


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    folder = write(tmp_path, serving_plan())
    (folder / "README.md").write_bytes(b"\xff\xfe")
    assert [v.message for v in read(folder)] == ["README.md differs from what was generated"]


def test_only_a_plan_has_no_checksums_to_miss() -> None:
    assert judge(stack(serving_plan())).verdicts == ()


def test_hostile_names_are_data() -> None:
    tree = FileTree((File("plan.yaml", ""), File(f"{HOSTILE}.txt", "x"), File(CHECKSUMS, "")))
    made = replace(stack(serving_plan()), files=tree)
    assert {v.resource for v in judge(made)} == {"file/plan.yaml", f"file/{HOSTILE}.txt"}
