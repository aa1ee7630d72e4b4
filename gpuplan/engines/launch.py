"""What starts an engine, in terms that no target owns: each backend writes them in its syntax."""

from __future__ import annotations

from gpuplan.plan.model import record
from gpuplan.render.commented import Because


@record
class Indexed:
    """A text with the index of the process in it, which only its target knows: those of a run count
    from 0."""

    before: str
    after: str = ""


Argument = str | Indexed | Because


@record
class Launch:
    """What a container runs. An empty `command` keeps the image's entry point. `health` is an HTTP
    path on `port`; without it a connection to the port must do. `files` are texts by their names in
    the folder `container.CONFIG`."""

    command: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    port: int | None = None
    health: str | None = None
    files: tuple[tuple[str, str], ...] = ()
