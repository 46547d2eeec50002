"""A lowered program: text, which result takes over the memory of which donated argument, and what
else it takes to compile and to call it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from lowering import shardings
from lowering.locations import Locations, Scope
from lowering.module import Function, Module, constant_operand, emit_jaxpr
from pyjx.core.avals import ShapedArray, taken_over
from pyjx.core.effects import is_ordered
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from pyjx.core.passes.dce import used_variables
from pyjx.lazy import deferred

dynamic = deferred("lowering.dynamic")  # few programs have symbolic dimensions

_DONOR = "jax.buffer_donor = true"


def donation(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
             donated: Sequence[bool], lie_alike: Callable[[int, int], bool]
             ) -> tuple[list[str], list[ShapedArray]]:
    """The attribute of each argument, and the types of those donated in vain.

    An argument and a result that are not known to lie alike may share memory or not; XLA will
    know.
    """
    attributes = [""] * len(in_avals)
    unused: list[ShapedArray] = []
    if not any(donated):
        return attributes, unused
    results = taken_over(in_avals, out_avals, donated)
    for i, result in results.items():
        attributes[i] = f"tf.aliasing_output = {result} : i32" if lie_alike(i, result) else _DONOR
    # XLA may find a use for memory of another shape, if there is a result of the same size.
    taken = {*results.values()}
    free_sizes = [math.prod(a.shape) for k, a in enumerate(out_avals) if k not in taken]
    for i in [i for i, given in enumerate(donated) if given and i not in results]:
        aval = in_avals[i]
        if aval.size in free_sizes:
            free_sizes.remove(aval.size)
            attributes[i] = _DONOR
        else:
            unused.append(aval)
    return attributes, unused


# Constants of up to so many bytes are written into the text; larger ones become arguments.
INLINE_CONSTANT_BYTES = 32


class LoweredProgram:
    """A program as StableHLO.

    Attributes:
      text: the module, without locations.
      const_args: constants that `main` takes before its arguments.
      kept: for each argument of the jaxpr, whether `main` takes it.
      unused_donations: types of the arguments donated in vain.
      custom_calls: the families of foreign functions that must be registered, such as `lapack`.
      host_calls: what the program calls on the host, by index.
      keepalives: what has to live as long as the program does.
      inspections: what is to be told of the shardings of the program's values.
      is_dynamic: whether dimensions are known only where it is called.
      ordered: whether `main` takes a token after the constants, and gives one first.
      fit: how it was made to fit into a budget of memory; None if it has none.
      keeps_barriers: whether XLA must not look through its barriers in loops.
      places: how the places of its operations in the user's source are told: by how many frames of
        the stack, all if negative, and by names of files without what a regular expression matches.
    """

    __slots__ = ("_module", "const_args", "custom_calls", "fit", "host_calls", "inspections",
                 "is_dynamic", "keepalives", "keeps_barriers", "kept", "ordered",
                 "places", "text", "unused_donations")

    def __init__(self, module: Module, const_args: list[Any], kept: list[bool],
                 unused_donations: list[ShapedArray], ordered: bool) -> None:
        self._module = module
        self.text = module.text()
        self.is_dynamic = type(module) is not Module
        self.const_args = const_args
        self.kept = kept
        self.unused_donations = unused_donations
        self.custom_calls = frozenset(module.custom_calls)
        self.host_calls = module.host_calls
        self.keepalives = module.keepalives
        self.inspections = module.inspections
        self.ordered = ordered
        self.keeps_barriers = False
        self.fit: Any = None
        self.places: tuple[int, str | None] = (1, None)

    def located_text(self, frames: int | None = None, names_results: bool = False) -> str:
        """The text in which each operation has its name and its place in the user's source, with
        `frames` of the stack, if not as `places` says. `names_results` is as for `named_text`."""
        usual, dropped = self.places
        return self._module.text(
            Locations(usual if frames is None else frames, dropped), names_results)

    def named_text(self) -> str:
        """The text in which results have the user's names, for readers: XLA does not look at them,
        and programs that differ by names alone are one in the caches."""
        return self._module.text(names_results=True)


def has_symbols(aval: Any) -> bool:
    """Whether dimensions of a type are expressions."""
    return any([type(d) is not int for d in aval.shape])


def _annotate(main: Function, jaxpr: Jaxpr, donated: Sequence[bool], kept: Sequence[bool],
              partitioning: shardings.Partitioning, hoisted: Sequence[bool]) -> list[ShapedArray]:
    """Say of the main function's arguments and results all that is known; the types of those
    donated in vain."""
    given, results = partitioning.in_shardings, partitioning.out_shardings
    attributes, unused = donation(jaxpr.in_avals, jaxpr.out_avals, donated, partitioning.lie_alike)
    taken = [*compress(jaxpr.constvars, hoisted), *compress(jaxpr.invars, kept)]
    n_consts = sum(hoisted)
    for words, attribute in zip(main.param_attributes[n_consts:], compress(attributes, kept),
                                strict=True):
        if attribute:
            words.append(attribute)
    if partitioning is not shardings.ONE:
        p, before = partitioning, [None] * n_consts
        ins = [*compress(p.const_shardings, hoisted), *compress(given, kept)]
        avals = [v.aval for v in taken], jaxpr.out_avals
        shardings.annotate(main, avals, (ins, results), p._replace(
            kinds=([*before, *compress(p.kinds[0], kept)], p.kinds[1]),
            layouts=([*before, *compress(p.layouts[0], kept)], p.layouts[1])))
    return unused


def _names(debug: DebugInfo, n_consts: int, kept: Sequence[bool], n_results: int, ordered: bool
           ) -> tuple[list[str], list[str]]:
    """The user's names of the main function's arguments and results; "" for what has none."""
    token = [""] * ordered
    given, made = [*token, *(debug.arg_names or ())], [*token, *(debug.result_paths or ())]
    given = given if len(given) == len(kept) else [""] * len(kept)
    return ([""] * n_consts + list(compress(given, kept)),
            made if len(made) == n_results else [""] * n_results)


def lower(closed: ClosedJaxpr, name: str = "main", *, platform: str = "cpu",
          donated: Sequence[bool] = (), keep_unused: bool = True,
          inline_constants: bool = False, partitioning: shardings.Partitioning = shardings.ONE,
          devices: Sequence[Any] = (), paths: Sequence[str] = ()) -> LoweredProgram:
    """Lower a jaxpr. The same jaxpr gives the same text.

    Args:
      closed: the program, decomposed; none of its constants may be a tracer. With ordered effects
        it takes a token first, of which `donated` and `kept` say nothing, and gives one first.
      name: the module is called `jit_<name>`.
      platform: `cpu`, `cuda`, `rocm` or `tpu`, for the rules that differ.
      donated: for each argument, whether its memory may be reused for a result.
      keep_unused: whether the program takes arguments that it does not use.
      inline_constants: whether constants are written into the text, however large.
      partitioning: how the program is spread over devices.
      devices: these, in order, by which operations name one of them; empty if not yet known.
      paths: what messages call the arguments, where the program is to check their shapes.

    Raises:
      NotImplementedError: a primitive has no rule for the platform.
    """
    jaxpr = closed.jaxpr
    ordered = is_ordered(jaxpr.effects)
    if ordered:
        donated = [False, *(donated or [False] * (len(jaxpr.invars) - 1))]
        partitioning = shardings.with_token(partitioning)
    used = set(jaxpr.invars) if keep_unused else used_variables(jaxpr)
    kept = [v in used or has_symbols(v.aval) for v in jaxpr.invars]
    donated = [d and k for d, k in zip(donated or [False] * len(kept), kept, strict=True)]
    small = [inline_constants or (isinstance(c, np.ndarray) and c.nbytes <= INLINE_CONSTANT_BYTES)
             for c in closed.consts]
    hoisted = [v for v, s in zip(jaxpr.constvars, small, strict=True) if not s]
    params = [*hoisted, *[v for v, k in zip(jaxpr.invars, kept, strict=True) if k]]

    if any(map(has_symbols, jaxpr.in_avals)):
        of_params = [*[""] * len(hoisted), *compress(["", *paths][not ordered:], kept)]
        module: Module = dynamic.DynamicModule(name, platform, partitioning.parts, jaxpr.in_avals,
                                               of_params if paths else ())
    else:
        module = Module(name, platform, partitioning.parts)
    module.manual = partitioning.manual
    module.devices = devices
    module.spread = partitioning.is_spread
    if partitioning.mesh is not None and partitioning.parts > 1:
        module.meshes.name(partitioning.mesh)  # the first one, whatever operations name
    main = module.add("main", [v.aval for v in params], jaxpr.out_avals, Scope(f"jit({name})"))
    main.visibility = "public"
    unused = _annotate(main, jaxpr, donated, kept, partitioning, [not s for s in small])
    env = {v: f"%arg{i}" for i, v in enumerate(params)}
    for v, c, s in zip(jaxpr.constvars, closed.consts, small, strict=True):
        if s:
            env[v] = constant_operand(main.block, c, v.aval)
    outs = emit_jaxpr(main.block, jaxpr, env)
    if partitioning.is_spread:
        outs = shardings.constrained(main.block, outs, jaxpr.out_avals, partitioning.out_shardings)
    for i, kind in enumerate(partitioning.kinds[1]):
        if kind is not None:
            outs[i] = shardings.placed_in_memory(main.block, outs[i], jaxpr.out_avals[i], kind)
    main.close(outs)
    main.names = partial(_names, closed.debug_info, len(hoisted), kept, len(outs), ordered)
    if ordered:
        main.mark_tokens(len(hoisted))
        kept = kept[1:]
    const_args = [c for c, s in zip(closed.consts, small, strict=True) if not s]
    return LoweredProgram(module, const_args, kept, unused, ordered)
