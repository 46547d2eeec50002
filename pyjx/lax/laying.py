"""Values of no mesh beside values that are cut along one, where a carry or the results of branches
bring them together: they are laid as those are.

Where a mesh is set, what is computed along no axis of it is whole, and only the carries that a loop
is given are laid, which may have been made before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_

from pyjx import configuration
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.contents import deduplicated
from pyjx.core.derived import derived
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.primitive import vary
from pyjx.core.specs import spec_to_give
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.calls import call
from pyjx.engine.moves import reshard_p
from pyjx.engine.types import Value, Values


def cut_as(aval: ShapedArray, other: ShapedArray) -> ShapedArray:
    """The type, cut as another is if it tells of no mesh."""
    place = other.place
    if place.sharding is None or aval.place.sharding is not None or place.is_open or (
            not aval.has_shape_of(other)):
        return aval
    return aval.reshard(place.sharding)


def run_laid(body: ClosedJaxpr, types: Sequence[ShapedArray] | None,
             loop: Callable[..., list[Value]], carry: Values, *others: Values) -> list[Value]:
    """`loop(carry, *others)`, the carry laid as the types say if there are any. It is one program
    then, called as the loop of this body is: all operands together tell on which devices."""
    if types is None:
        return loop(carry, *others)

    def program(*xs: Value) -> list[Value]:
        given = iter(xs)
        first, *rest = [[next(given) for _ in group] for group in (carry, *others)]
        return loop(list(map(_laid, first, types)), *rest)

    flat = [x for group in (carry, *others) for x in group]
    return call(deduplicated(trace_to_jaxpr(program, list(map(get_aval, flat)))),
                body.debug_info.traced_for, *flat)


def laid_results(closed: ClosedJaxpr, types: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The program with its first results laid as these types are, if they tell of no mesh, and none
    is set."""
    if configuration.abstract_mesh.value is not None:
        return closed
    outs = closed.out_avals
    laid = (*map(cut_as, outs, types), *outs[len(types):])
    return closed if all(map(is_, laid, outs)) else results_like(closed, laid)


@derived
def results_like(closed: ClosedJaxpr, types: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    """The program, whose results are laid and vary as these types do."""
    return trace_to_jaxpr(lambda *xs: list(map(_laid, jaxpr_as_fun(closed)(*xs), types)),
                          closed.in_avals, closed.debug_info)


def _laid(x: Value, aval: ShapedArray) -> Value:
    """A value of a program, which may be a constant, whose devices are those of the program."""
    sharding, x = aval.place.sharding, vary(x, aval.place.mat.varying)
    return x if get_aval(x).place.sharding == sharding else reshard_p.bind(
        x, dst_sharding=sharding, concrete_mesh=None)


def laid_by_hand(avals: Sequence[ShapedArray], others: Sequence[ShapedArray], cure: str) -> str:
    """For messages: the cure with the sharding of the first of the others that lies otherwise along
    the same mesh; nothing where none does."""
    return next((cure.format(spec_to_give(b.spec)) for a, b in [
        (x.place, y.place) for x, y in zip(avals, others, strict=True)] if a.sharding != b.sharding
        and (not a.sharding or not b.sharding or a.sharding.mesh == b.sharding.mesh)), "")
