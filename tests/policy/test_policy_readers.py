"""What is read of a stack's files: each setting by its name, with its value and its line."""

from __future__ import annotations

import pytest

from gpuplan.policy.written import written
from gpuplan.render.tree import File
from tests.support.policy_samples import judge, stack
from tests.support.samples import serving_plan

# By file: its text, and what it makes: kind and name, with the settings, their values and lines.
MADE: dict[str, tuple[str, dict[tuple[str, str], list[tuple[str, str, int]]]]] = {
    "jobs/run.sbatch": (
        (
            "#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --requeue\n# SBATCH --nodes=3\n"
            "#SBATCH  --array=0-3%2\nimage=/images/a.sqsh\n#SBATCH --nodes=4\n"
        ),
        {
            ("job", "run"): [
                ("--nodes", "2", 2),
                ("--requeue", "", 3),
                ("--array", "0-3%2", 5),
                ("image", "/images/a.sqsh", 6),
            ]
        },
    ),
    "etc/slurm.conf": (
        (
            "# NodeName=old CPUs=1\nClusterName=c\n\nNodeName=n[1-2] CPUs=4 RealMemory=9\n"
            "PartitionName=p Nodes=n1 State=UP\n"
        ),
        {
            ("node", "n1"): [("CPUs", "4", 4), ("RealMemory", "9", 4)],
            ("node", "n2"): [("CPUs", "4", 4), ("RealMemory", "9", 4)],
            ("partition", "p"): [("Nodes", "n1", 5), ("State", "UP", 5)],
        },
    ),
    "etc/gres.conf": (
        "NodeName=n[1-2] Name=gpu File=/dev/a Cores=0-3\nNodeName=n1 Name=gpu File=/dev/b\n",
        {
            ("GPUs", f"{node}:/dev/a"): [
                ("Name", "gpu", 1),
                ("File", "/dev/a", 1),
                ("Cores", "0-3", 1),
            ]
            for node in ("n1", "n2")
        }
        | {("GPUs", "n1:/dev/b"): [("Name", "gpu", 2), ("File", "/dev/b", 2)]},
    ),
    "etc/topology.conf": (
        "SwitchName=s Nodes=n1\nBlockName=b Nodes=n[1-2]\nBlockSizes=2\n",
        {
            ("switch", "s"): [("Nodes", "n1", 1)],
            ("block", "b"): [("Nodes", "n[1-2]", 2)],
        },
    ),
    "accounts.sh": (
        "quality() {\nquality low Priority=5 Preempt='a,b c'\nquality 'open\nother x Priority=1\n",
        {("QOS", "low"): [("Priority", "5", 2), ("Preempt", "a,b c", 2)]},
    ),
    "etc/accounts.cfg": (
        "Parent - 'root'\nAccount - 'ml ops':Fairshare=64:GrpTRES='gres/gpu=8,cpu=2'\n",
        {("account", "ml ops"): [("Fairshare", "64", 2), ("GrpTRES", "gres/gpu=8,cpu=2", 2)]},
    ),
    "compose.yaml": (
        (
            "services:\n  a:\n    image: x:1\n    devices: [b, c]\n    command:\n    - serve\n"
            "    - --port=80\n    restart: 3\n  d: none\n  e:\n    command: sh -c x\n"
        ),
        {
            ("service", "a"): [
                ("image", "x:1", 3),
                ("devices", '["b", "c"]', 4),
                ("serve", "", 5),
                ("--port", "80", 5),
                ("restart", "3", 8),
            ],
            ("service", "e"): [("command", "sh -c x", 11)],
        },
    ),
    "quadlet/a.container": (
        (
            "# Image=old\n; Image=older\n[Container]\nImage=x:1\nPodmanArgs=--memory=1k\n"
            "PodmanArgs=--init\nExec=a=b\n"
        ),
        {
            ("unit", "a.container"): [
                ("Image", "x:1", 4),
                ("--memory", "1k", 5),
                ("--init", "", 6),
                ("Exec", "a=b", 7),
            ]
        },
    ),
    "assign.sh": (
        (
            "echo a b c d\ntable() {\n    cat <<'END'\na 0 - 6 A\nb 1 - 2\nc 1 -\nEND\n}\n"
            "e 1 - 2 E\n"
        ),
        {
            ("share", "a"): [("gpus", "0", 4), ("instance", "-", 4), ("cores", "6", 4)],
            ("share", "b"): [("gpus", "1", 5), ("instance", "-", 5), ("cores", "2", 5)],
        },
    ),
}


@pytest.mark.parametrize("path", MADE)
def test_a_file_is_read_whole_and_by_its_readers_words(path: str) -> None:
    text, expected = MADE[path]
    things = [((t.kind, t.name), t.settings) for t in written([File(path, text)])]
    assert {key: [(s.name, s.value, s.line) for s in own] for key, own in things} == expected
    assert len(things) == len(expected)


@pytest.mark.parametrize("path", MADE)
def test_a_file_elsewhere_is_nobodys(path: str) -> None:
    assert written([File(f"more/{path}", MADE[path][0])]) == ()


def found(name: str, text: str) -> list[tuple[str, str, int | None]]:
    """(resource, path, line) of what runs privileged and of images without a tag."""
    judged = judge(stack(serving_plan(), **{name: text}))
    return [(v.resource, v.path, v.line) for v in judged if v.rule in ("GP701", "GP602")]


@pytest.mark.parametrize(
    ("line", "resource", "path"),
    [
        ('a = {"spec": {"privileged": True}}', "file/p.py", "spec.privileged"),
        ('a = {**{"privileged": True}}', "file/p.py", "*.privileged"),
        ('a["b"] = [{"c": {"privileged": True}}]', "file/p.py", "c.privileged"),
        ('f(b={"privileged": True})', "file/p.py", "f.b.privileged"),
        ('f(**{"privileged": True})', "file/p.py", "f.**.privileged"),
        ('f({"privileged": True})', "file/p.py", "f.privileged"),
        ('g(f("x", privileged=True))', "file/p.py", "g.f[x].privileged"),
        ('Pod("x", b=f(privileged=True))', "Pod[x]", "Pod[x].b.f.privileged"),
        ('Pod(name="x", privileged=True)', "file/p.py", "Pod[x].privileged"),
        ('Pod("x", name="y", privileged=True)', "Pod[x]", "Pod[x].privileged"),
        ('pod("x", privileged=True)', "file/p.py", "pod[x].privileged"),
        ('m.n.Pod("x", b=Container("y", privileged=True))', "Container[y]",
         "Pod[x].b.Container[y].privileged"),
        ("x.privileged = True", "file/p.py", "privileged"),
        ('x["privileged"] = True', "file/p.py", "privileged"),
        ('setattr(x, "privileged", True)', "file/p.py", "setattr.privileged"),
        ('Pod("x", "--privileged")', "Pod[x]", "Pod[x]"),
        ('Pod("x", image="y")', "Pod[x]", "Pod[x].image"),
    ],
)  # fmt: skip
def test_the_way_to_a_setting_of_a_program_is_told_by_names(
    line: str, resource: str, path: str
) -> None:
    assert found("p.py", f"x = 1\n{line}\n") == [(resource, path, 2)]


@pytest.mark.parametrize(
    ("text", "resource", "path", "line"),
    [
        ("privileged: true\n", "file/m.yaml", "privileged", 1),
        ("a:\n  privileged: true\n", "file/m.yaml", "a.privileged", 2),
        ("kind: Pod\na:\n- privileged: true\n", "file/m.yaml", "a[0].privileged", 2),
        ("kind: Pod\nmetadata:\n  name: x\na:\n- name: b\n  privileged: true\n", "Pod/x",
         "a[b].privileged", 6),
        ("kind: 1\nmetadata:\n  name: x\nb:\n  image: y\n", "file/m.yaml", "b.image", 5),
        ("kind: Pod\nmetadata: x\nb:\n  image: y\n", "file/m.yaml", "b.image", 4),
        ("a:  1\nb:\n- - image:  y\n", "file/m.yaml", "b[0][0].image", 3),
        ("a:  1\nb:\n- image: y:1\n- c: {image: z}\n", "file/m.yaml", "b[1].c.image", 4),
        ("a:  1\nb:\n- c\n- docker run --privileged\n", "file/m.yaml", "b[1]", 4),
    ],
)  # fmt: skip
def test_the_way_to_a_setting_of_a_document_is_told_by_names(
    text: str, resource: str, path: str, line: int
) -> None:
    assert found("m.yaml", text) == [(resource, path, line)]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.sh", "echo\n  exec podman run --privileged x\n", 2),
        ("a.sh", "echo a \\\n  b\ndocker run \\\n  --privileged x\n", 3),
        ("a.sbatch", "echo a \\\n  b \\\n  c\nsrun --privileged x\n", 4),
        ("a.sh", "echo\nfetch a 'docker://r#x'\n", 2),
        ("a.container", "[Container]\nImage = x\n", 2),
        ("a.container", "[Container]\nPodmanArgs=--privileged\n", 2),
        ("a.service", "\n\nsrun --fakeroot\n", 3),
    ],
)
def test_what_a_script_starts_and_fetches_stands_at_its_line(
    name: str, text: str, line: int
) -> None:
    assert [(r, n) for r, _, n in found(name, text)] == [(f"file/{name}", line)]


@pytest.mark.parametrize(
    ("name", "text", "image"),
    [
        ("a.container", "Image=r.io/x\n", "r.io/x"),
        ("a.container", "Image = r.io/x:latest \n", "r.io/x:latest"),
        ("a.sh", "fetch a 'docker://r.io#x/y'\n", "r.io/x/y"),
        ("a.sbatch", "  fetch b docker://r.io#x#y\n", "r.io/x#y"),
        ("a.yaml", "image:  r.io/x\n", "r.io/x"),
        ("a.yaml", "image:  r.io/x\ntag: main\n", "r.io/x:main"),
        ("a.yaml", "image:  r.io/x\nversion: edge\n", "r.io/x:edge"),
        ("a.yaml", "image:  r.io/x\ntag: dev\nversion: 1\n", "r.io/x:dev"),
        ("a.json", '{"image": "r.io/x"}', "r.io/x"),
        ("a.py", 'f(image="r.io/x", tag=pick())\n', "r.io/x"),
        ("a.py", 'f(image="r.io/x", tag="dev")\n', "r.io/x:dev"),
        ("a.py", 'f(image="r.io/x", tag="")\n', "r.io/x"),
    ],
)
def test_the_image_that_a_file_names_is_judged_whole(name: str, text: str, image: str) -> None:
    judged = judge(stack(serving_plan(), **{name: text}))
    said = [v.message for v in judged if v.rule == "GP602"]
    problem = "has no tag" if ":" not in image else f"has the moving tag '{image.split(':')[1]}'"
    assert said == [f"file/{name} has the image '{image}', which {problem}"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.sh", "Image = x\n"),  # a unit's word
        ("a.sh", "echo docker run --privileged\n"),  # starts nothing
        ("a.txt", "docker run --privileged x\n"),
        ("a.container", "# Image = x\n"),
        ("a.sh", "fetch a docker://r#x:1\n"),
    ],
)
def test_what_starts_and_fetches_nothing_is_not_judged(name: str, text: str) -> None:
    assert found(name, text) == []
