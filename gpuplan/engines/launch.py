"""What starts an engine, in terms that no target owns: each backend writes them in its syntax."""

from __future__ import annotations

from collections.abc import Callable

from gpuplan.plan.model import record
from gpuplan.render.commented import Because


@record
class Indexed:
    """A text with the index of the process in it, `times` a number, which only its target knows:
    those of a run, and of a replica over nodes, count from 0."""

    before: str
    after: str = ""
    times: int = 1


@record
class First:
    """A text with the address of the process that those of a replica over nodes meet at."""

    before: str
    after: str = ""


Argument = str | Indexed | First | Because


def written(
    argument: Argument, index: str, quote: Callable[[str], str] = str, first: str = ""
) -> str | Because:
    """An argument in a target's syntax: `quote` writes a text that is passed on as it is, `index`
    stands for the index of the process, and `first` for the address of the first one."""
    match argument:
        case Because():
            return Because(written(argument.value, index, quote, first), argument.reason)
        case Indexed():
            return f"{quote(argument.before)}{index}{quote(argument.after)}"
        case First():
            return f"{quote(argument.before)}{first}{quote(argument.after)}"
    return quote(argument)


@record
class Launch:
    """What a container runs. An empty `command` keeps the image's entry point. `health` is an HTTP
    path on `port`; without it a connection to the port must do. The image has `python`, else curl.
    `token_in_home`: it reads the Hub's token from the file `token` in HF_HOME, and no variable
    names another. `read_only`: its image writes below HOME, /tmp and the folders that variables
    name, and nowhere else. `files` are texts by their names in the folder `container.CONFIG`.
    `drain_flag` takes the seconds for which a server that is told to end finishes the requests that
    it has; without one it is taken to drop them. `before` is a command that has to end before.
    `others` are the arguments
    on all nodes of a replica but its first, which alone listens."""

    command: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    port: int | None = None
    health: str | None = None
    python: bool = True
    token_in_home: bool = False
    read_only: bool = False
    drain_flag: str | None = None
    before: tuple[str, ...] = ()
    others: tuple[Argument, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
