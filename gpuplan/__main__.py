"""The program: `main` in a process of its own, which starts and ends as fast as it can."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

from gpuplan.cli.main import main


def run() -> NoReturn:
    """Collecting garbage, asking pydantic's plugins and tidying memory up take a fifth of a
    `compile`, and give a process that ends at once nothing."""
    gc.disable()
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
