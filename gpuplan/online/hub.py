"""The newest commit of a model, from the Hugging Face Hub (`GET /api/models/ORGANISATION/NAME`)."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from gpuplan.errors import Rejected
from gpuplan.online import messages
from gpuplan.online.http import OK, get, refuse
from gpuplan.plan.outside.pins import COMMIT

HUB = "https://huggingface.co"


def commit(model: str, hub: str = HUB) -> str:
    """Raises `Rejected`."""
    host = urlsplit(hub).netloc
    answer = get(f"{hub.rstrip('/')}/api/models/{quote(model)}")
    if answer.status != OK:
        refuse(answer, host, f"model {model}")
    tree = answer.json(host, f"model {model}")
    revision = tree.get("sha") if isinstance(tree, dict) else None
    if not isinstance(revision, str) or not COMMIT.fullmatch(revision):
        raise Rejected([messages.unusable(host, f"model {model}", "it names no commit")])
    return revision
