"""What a trial would read again though no input changed it, remembered by its whole content.

The verbs run as they are: only functions whose answer depends on nothing but what they are given
are remembered, so that a changed file is read and judged each time and its neighbours once.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import gpuplan.cli.main as command
from gpuplan.plan import serialize
from gpuplan.policy import blocks, engine, review

MOST = 64  # answers: the neighbours are asked for in every trial and stay, inputs go
Call = Callable[..., Any]


def remembered(call: Call, key: Callable[..., Hashable], taken: Call = lambda a: a) -> Call:
    """`call`, with its last answers by `key`. `taken` is what is handed out of one that was kept.
    An exception is none: it comes again."""
    known: OrderedDict[Hashable, tuple[Any, Any]] = OrderedDict()

    @functools.wraps(call)
    def asked(*given: Any, **named: Any) -> Any:
        mark = key(*given, **named)
        if mark in known:
            known.move_to_end(mark)
            return taken(known[mark][0])
        answer = call(*given, **named)
        known[mark] = (answer, given)  # what stands in a key by its identity must live on
        while len(known) > MOST:
            known.popitem(last=False)
        return taken(answer)

    return asked


def warm() -> None:
    """Once in a process."""
    command.build_parser = remembered(command.build_parser, lambda only=None: only)
    serialize.load = remembered(
        serialize.load, lambda text, document="plan.yaml", evidence=None: (text, document, evidence)
    )
    serialize.load_tree = remembered(
        serialize.load_tree, lambda text, document: (text, document), dict
    )
    serialize.load_evidence = remembered(
        serialize.load_evidence, lambda text, document: (text, document)
    )
    blocks.blocks_of = remembered(blocks.blocks_of, lambda file: file)
    builtin = review.load_pack
    one = functools.cache(lambda: builtin(None, None))
    review.load_pack = lambda path, sources: builtin(path, sources) if path else one()
    judge = engine.judge
    engine.judge = remembered(
        lambda *given: tuple(judge(*given)),
        lambda stack, pack, holders, as_of: (
            *(stack.place, id(stack.plan), stack.plan_text, stack.files),
            *(id(pack), tuple(holders.items()), as_of),
        ),
    )
