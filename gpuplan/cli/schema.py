"""`gpuplan schema`: JSON Schemas of the documents people and programs write."""

from __future__ import annotations

import argparse

from gpuplan.cli.common import print_json

DOCUMENTS = ("manifest", "plan", "evidence", "inventory", "catalog", "requests", "costs")
EPILOG = """\
An editor completes a manifest whose first line is
  # yaml-language-server: $schema=manifest.schema.json
with the file made by
  gpuplan schema manifest > manifest.schema.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("document", nargs="?", choices=DOCUMENTS, default="manifest")


def run(options: argparse.Namespace) -> int:
    from gpuplan.schemas import schema

    print_json(schema(options.document))
    return 0
