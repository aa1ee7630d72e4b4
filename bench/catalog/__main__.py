"""Instance types and their prices, from upstream tables at pinned commits.

    python -m bench.catalog CHECKOUTS [PROVIDER …]

`CHECKOUTS` is a folder with clones (bare or not) of the repositories that the modules beside this
one name, each with the commit that they pin. The same commits give the same bytes. What the
tables do not have stays in the files (`kept.py`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.catalog import aws, azure, gcp, oci, skypilot
from bench.catalog.kept import with_kept

DATA = Path(__file__).parents[2] / "gpuplan/catalog/data"
PROVIDERS = {"aws": aws, "azure": azure, "gcp": gcp, "oci": oci, "skypilot": skypilot}


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for provider in sys.argv[2:] or PROVIDERS:
        for name, text in PROVIDERS[provider].files(Path(sys.argv[1])).items():
            path = DATA / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(with_kept(path, text), encoding="utf-8")
            print(f"{name}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
