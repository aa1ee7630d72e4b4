"""What transformers calls the classes of models: a JSON object, from its own tables.

Runs in the environment of the parsers, knows no gpuplan.
"""

from __future__ import annotations

import json

from transformers.models.auto import modeling_auto


def types() -> dict[str, str]:
    found: dict[str, str] = {}
    for table in (n for n in dir(modeling_auto) if n.endswith("MAPPING_NAMES")):
        for kind, names in getattr(modeling_auto, table).items():
            for name in (names,) if isinstance(names, str) else names:
                found.setdefault(name, kind)
    return found


if __name__ == "__main__":
    print(json.dumps(types()))
