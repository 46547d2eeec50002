"""Bad input: calls with a wrong argument, and transformations used wrongly."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.calls import Calls, wrapped
from tests.oracle.language import Assign, Call, Data, Expr, Program, Text
from tests.oracle.misuse import MISUSE
from tests.oracle.values import Gen


class Errors:
    """Makes calls with one bad argument, and misuse of transformations."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def program(self, g: Gen) -> Program:
        if g.chance(0.55):
            source = str(g.pick(*MISUSE))
            x = g.data(g.shape(0, 2), form_="jnp") if g.chance(0.9) else g.data(())
            return Program("errors", (Assign("x", x), Assign("result", Text(source))), g.x64,
                           (source,))
        space = g.pick("jnp", "jnp", "lax", "nn", "random")
        function = g.rng.choice(self.calls.spaces[str(space)])
        e = spoiled(g, self.calls.expression(g, function))
        made = wrapped(g, "errors", e, function)
        return made


def spoiled(g: Gen, e: Call) -> Call:
    """The call with one argument replaced, left out or added."""
    count = len(e.args)
    way = g.weighted({"bad": 6, "dtype": 2, "rank": 2, "less": 1, "more": 1, "keyword": 0.5})
    if way == "less" and count:
        return replace(e, args=e.args[:-1])
    if way == "more":
        return replace(e, args=(*e.args, g.bad()))
    if way == "keyword":
        return replace(e, keywords=(*e.keywords, ("nothing", Text("1"))))
    places = [i for i, a in enumerate(e.args) if isinstance(a, Data) or way == "bad"]
    if not places:
        return e
    at = g.rng.choice(places)
    old = e.args[at]
    new: Expr = g.bad()
    if isinstance(old, Data) and way == "dtype":
        new = g.data(old.shape, None, "jnp")
    elif isinstance(old, Data) and way == "rank":
        new = g.data(g.shape(), old.dtype)
    return replace(e, args=(*e.args[:at], new, *e.args[at + 1:]))
