"""Known vulnerabilities of what the program depends on: `make audit`.

pip-audit is installed into out/audit; it asks a database of the Python Packaging Authority or, if
that is out of reach, OSV. Exit code 0: none known; 1: some are; 2: of some or all nobody
could be asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import venv

from bench.torture.readers import ROOT

PIP_AUDIT = "pip-audit>=2.9,<3"
SERVICES = ("pypi", "osv")
OUT = ROOT / "out" / "audit"


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["pulumi"]]
    python = OUT / "bin" / "python"
    if not python.exists():
        venv.create(OUT, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", PIP_AUDIT]
    if subprocess.run(pip, check=False).returncode:
        print("not audited: pip-audit cannot be installed here", file=sys.stderr)
        return 2
    listed = OUT / "requirements.txt"
    listed.write_text("\n".join(wanted) + "\n", encoding="utf-8")
    for service in SERVICES:
        words = [str(python), "-m", "pip_audit", "-r", str(listed), "-s", service, "-f", "json"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        answer = said(done.stdout)
        if answer is not None:
            skipped, known = answer
            print("\n".join([*known, *(f"not audited: {name}" for name in skipped)]))
            return 1 if known else 2 if skipped else 0
        last = done.stderr.strip().splitlines()[-1:] or ["no reason was said"]
        print(f"{service} gives no answer: {last[0]}", file=sys.stderr)
    print("not audited: no database of vulnerabilities can be reached here", file=sys.stderr)
    return 2


def said(text: str) -> tuple[list[str], list[str]] | None:
    """Packages that were skipped, and vulnerabilities of the others; None where a database knew no
    package at all, which an index without one looks like."""
    try:
        packages = json.loads(text)["dependencies"]
    except (ValueError, KeyError):
        return None
    skipped = [p["name"] for p in packages if "skip_reason" in p]
    if len(skipped) == len(packages):
        return None
    vulnerable = ((p, v) for p in packages for v in p.get("vulns", ()))
    return skipped, [f"{p['name']} {p['version']}: {v['id']}" for p, v in vulnerable]


if __name__ == "__main__":
    raise SystemExit(main())
