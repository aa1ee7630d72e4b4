"""What starts an engine, in terms that no target owns: each backend writes them in its syntax."""

from __future__ import annotations

from collections.abc import Callable

from gpuplan.plan.model import record
from gpuplan.render.commented import Because


@record
class Indexed:
    """A text with the index of the process in it, which only its target knows: those of a run count
    from 0."""

    before: str
    after: str = ""


Argument = str | Indexed | Because


def written(argument: Argument, index: str, quote: Callable[[str], str] = str) -> str | Because:
    """An argument in a target's syntax: `quote` writes a text that is passed on as it is, and
    `index` stands for the index of the process."""
    match argument:
        case Because():
            return Because(written(argument.value, index, quote), argument.reason)
        case Indexed():
            return f"{quote(argument.before)}{index}{quote(argument.after)}"
    return quote(argument)


@record
class Launch:
    """What a container runs. An empty `command` keeps the image's entry point. `health` is an HTTP
    path on `port`; without it a connection to the port must do. The image has `python`, else curl.
    `files` are texts by their names in the folder `container.CONFIG`. `drain_flag` takes the
    seconds for which a server that is told to end finishes the requests that it has; without one it
    is taken to drop them. `before` is a command that has to end before."""

    command: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    port: int | None = None
    health: str | None = None
    python: bool = True
    drain_flag: str | None = None
    before: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
