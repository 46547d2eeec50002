"""`export`: from a jitted function to a module for one platform or several; and symbolic shapes
from their text, for its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from lowering.program import LoweredProgram
from lowering.types import quoted, with_symbols
from pyjx import configuration, jaxlib_api
from pyjx.core.avals import get_aval
from pyjx.core.effects import is_replaced
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.symbolic.expressions import DimExpr
from pyjx.core.symbolic.parser import Parser
from pyjx.core.symbolic.scopes import SymbolicScope
from pyjx.core.symbolic.solving import scope_of, solve
from pyjx.engine.types import TreeDef
from pyjx.export.exported import (
    PLATFORM_FUNCTION,
    DisabledSafetyCheck,
    Exported,
    check_calling_convention,
    check_custom_calls,
    has_constants,
    lowered_type,
)
from pyjx.export.trees import flat_tree
from pyjx.runtime import backends, dispatch
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.jit import jit, spec_of
from pyjx.runtime.lower import lower_closed
from pyjx.runtime.placement import Placement, placement_of
from pyjx.runtime.sharding import NamedSharding
from pyjx.transforms.vjp import vjp
from pyjx.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

# -- export ----------------------------------------------------------------------------------------

# StableHLO of the oldest jaxlib that is supported: all of them read what is written for it.
STABLEHLO_VERSION = "1.13.0"

def default_export_platform() -> str:
    """The platform that `export` lowers for unless it is told others: the default device's.

    >>> from pyjx import export
    >>> export.default_export_platform() in ("cpu", "cuda", "rocm", "tpu")
    True
    """
    return jaxlib_api.raw_platform(backends.default_device().client)


def export(fun_jit: Callable[..., Any], *, platforms: Sequence[str] | None = None,
           disabled_checks: Sequence[DisabledSafetyCheck] = (),
           _override_lowering_rules: Any = None) -> Callable[..., Exported]:
    """A function that gives `fun_jit`, exported for arguments like those it is called with.

    Args:
      fun_jit: the result of `jit`.
      platforms: for which to lower: some of cpu, cuda, rocm, tpu and what plugins may be called;
        by default, and of none, the default device's. No such device need be there.
      disabled_checks: safety checks that are not made.

    Returns:
      a function of arrays, or of `ShapeDtypeStruct`, whose shapes may be symbolic
      (`symbolic_shape`), to `Exported`.

    Raises:
      ValueError: `fun_jit` is no result of `jit`, a platform's name is none, a variable of a shape
        does not follow from the arguments, or the program calls foreign functions that may change.
      NotImplementedError: the program calls Python functions, or takes mutable references.

    >>> import pyjx as jax
    >>> from pyjx import export
    >>> f = jax.jit(lambda x: 2 * x)
    >>> exported = export.export(f)(jax.ShapeDtypeStruct(export.symbolic_shape("n"), "float32"))
    >>> exported.in_avals
    (ShapedArray(float32[n]),)
    >>> exported.call(jax.numpy.ones(3, "float32"))
    Array([2., 2., 2.], dtype=float32)
    """
    if not isinstance(fun_jit, jaxlib_api.PjitFunction):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}. "
                         "Write export(jax.jit(f))(*args).")
    if isinstance(platforms, str):
        raise ValueError("platforms must be a sequence of strings, not a string: write "
                         f"({platforms!r},).")
    names = _canonical(platforms) if platforms else (default_export_platform(),)

    def exporter(*args: Any, **kwargs: Any) -> Exported:
        # Before the trace, whose operations would only find that dimensions differ.
        named = tree_flatten_with_path((args, kwargs))[0]
        paths = [("args", "kwargs")[path[0].idx] + keystr(path[1:]) for path, _ in named]
        scope_of([x for _, x in named], fun_jit.__name__, paths)
        traced = fun_jit.trace(*args, **kwargs)
        call = traced._traced
        call.check_is_whole("export")
        placement = placement_of(call.closed, traced._given, call.request, names[0])[0]
        return export_closed(call.closed, call.name, call.in_tree, call.out_tree, names,
                             tuple(disabled_checks), placement, paths,
                             keep_unused=spec_of(fun_jit).options.keep_unused)

    return exporter


def _canonical(platforms: Sequence[str]) -> tuple[str, ...]:
    """The names of platforms as lowering rules call them. Those of no known one stay: the program
    has the rules that are for all, and runs where a plugin of that name is."""
    known = configuration.known_platforms
    names = tuple([backends.platforms_named(p, "export")[0] if p.lower() in known else p
                   for p in platforms])
    if wrong := [p for p in names if not re.fullmatch(r"[A-Za-z_][\w.$-]*", p)]:
        raise ValueError(f"export: {wrong[0]!r} is no name of a platform; known ones are "
                         f"{', '.join(sorted(known))}.")
    if len(set(names)) < len(names):
        raise ValueError(f"export: platforms must be some different ones, got {names}.")
    return names


def export_closed(closed: ClosedJaxpr, name: str, in_tree: TreeDef, out_tree: TreeDef,
                  platforms: tuple[str, ...], disabled: tuple[DisabledSafetyCheck, ...],
                  placement: Placement, paths: Sequence[str] = (), keep_unused: bool = False
                  ) -> Exported:
    """A traced function, exported for as many devices as it is placed on."""
    in_avals = tuple(closed.in_avals)
    solve(in_avals, paths)
    if dispatch.is_called_otherwise(closed):
        strange = [a for a in (*in_avals, *closed.out_avals) if a.is_high]
        raise NotImplementedError(
            f"export: {name} takes or closes over "
            + (f"values of a type of a library, {strange[0]}, or gives one" if strange else
               "mutable references")
            + ", which a module has no types for. Take their values as arguments, and return the "
              "new ones.")
    several = len(platforms) > 1
    pure = dispatch.pure(closed).jaxpr if is_replaced(closed.effects) else closed
    spread = placement.mesh is not None
    programs = [
        lower_closed(pure, name, platform=p, keep_unused=keep_unused or several, for_export=True,
                     placement=placement if spread else None, paths=paths) for p in platforms]
    for program in programs:
        if program.host_calls:
            raise NotImplementedError("serialization of host_callbacks is not yet implemented: "
                                      f"'{name}' calls Python functions, which are of this "
                                      "process. Export it without them.")
        check_custom_calls(program.text, disabled)
    kept = tuple([i for i, k in enumerate(programs[0].kept) if k])
    text = programs[0].named_text()
    if several:
        text = _for_several(programs, platforms, in_avals, closed.out_avals,
                            closed.jaxpr.debug_info.result_paths or ())
    return Exported(
        name, in_tree, in_avals, out_tree, tuple(closed.out_avals),
        _named(placement.in_shardings, in_avals, spread),
        _named(placement.out_shardings, closed.out_avals, spread),
        (None,) * len(in_avals), (None,) * len(closed.out_avals),
        placement.mesh.size if spread else 1, platforms, (), (), disabled,
        _artifact(name, text, programs[0].is_dynamic),
        check_calling_convention(int(configuration.export_calling_convention_version.value),
                                 "The requested export calling_convention_version"), kept,
        several or programs[0].is_dynamic or has_constants(closed.jaxpr),
        lambda primal: _exported_vjp(primal, closed, placement if spread else None))


def _named(shardings: Sequence[Any], avals: Sequence[Any], spread: bool) -> tuple[Any, ...]:
    """Shardings by names of axes alone, which other processes have devices for; None where XLA is
    to choose."""
    if not spread:
        return (None,) * len(avals)
    return tuple([s and NamedSharding(s.mesh.abstract_mesh, s.spec) for s in shardings])


def _artifact(name: str, text: str, is_dynamic: bool) -> bytes:
    try:
        return jaxlib_api.portable_artifact(text, STABLEHLO_VERSION)
    except jaxlib_api.JaxRuntimeError as error:
        if not is_dynamic:
            raise
        raise NotImplementedError(
            f"export: '{name}' has an operation that needs a size as a number, where its shapes "
            f"are symbolic: {str(error).splitlines()[0]}. Give that size as a number.") from None


# -- several platforms -----------------------------------------------------------------------------


def _for_several(programs: Sequence[LoweredProgram], platforms: Sequence[str],
                 in_avals: Sequence[Any], out_avals: Sequence[Any], out_names: Sequence[str]
                 ) -> str:
    """One module of the programs for several platforms, whose `main` takes the index of one."""
    bodies = [_with_suffix(p.text, platform)
              for p, platform in zip(programs, platforms, strict=True)]
    in_types, out_types = list(map(lowered_type, in_avals)), list(map(lowered_type, out_avals))
    params = ", ".join([f"%x{i}: {t}" for i, t in enumerate(in_types)])
    given = ", ".join([f"%x{i}" for i in range(len(in_types))])
    n, results = len(out_types), ", ".join(out_types)
    named = results if len(out_names) != n else ", ".join([
        f"{t} {{jax.result_info = {quoted(name)}}}" if name else t
        for t, name in zip(out_types, out_names, strict=True)])
    values = [f"%r#{i}" for i in range(n)] if n > 1 else ["%r"] * n
    head = f"%r:{n} = " if n > 1 else "%r = " if n else ""
    end = f" {', '.join(values)} : {results}" if n else ""
    branches = "}, {".join([
        f"\n      {head}func.call @{PLATFORM_FUNCTION.format(p)}({given}) : "
        f"({', '.join(in_types)}) -> ({results})\n      stablehlo.return{end}\n    "
        for p in platforms])
    main = (f"  func.func public @main(%platform: tensor<i32>{', ' if params else ''}{params}) -> "
            f'({named}) {{\n    {head}"stablehlo.case"(%platform) ({{{branches}}}) : '
            f"(tensor<i32>) -> ({results})\n    return{end}\n  }}")
    first = programs[0].text
    head, meshes = first[:first.index("\n")], re.findall(r"^  sdy\.mesh .*$", first, re.MULTILINE)
    return "\n".join([head, *meshes, main, *bodies]) + "\n}\n"


def _with_suffix(text: str, platform: str) -> str:
    """The functions of a module, under names of its platform."""
    body = text[text.index("  func.func"):].rstrip().removesuffix("}").rstrip()
    names = {"main": PLATFORM_FUNCTION.format(platform)}
    for found in re.findall(r"func\.func private @([\w.$-]+)", body):
        names[found] = f"{found}_{platform}"
    return with_symbols(body, names).replace("func.func public", "func.func private", 1)


# -- derivatives -----------------------------------------------------------------------------------


def _exported_vjp(primal: Exported, closed: ClosedJaxpr, placement: Placement | None) -> Exported:
    """The backward pass of a function, exported as the function was."""
    n = len(primal.in_avals)

    def backward(*flat: Any) -> tuple[Any, ...]:
        _, pullback = vjp(jaxpr_as_fun(closed), *flat[:n])
        return tuple(pullback(list(flat[n:])))

    backward.__name__ = f"{primal.fun_name}_vjp"
    avals = [*primal.in_avals, *[a.to_tangent_aval() for a in primal.out_avals]]
    given: Any = {} if placement is None else {
        "in_shardings": (*placement.in_shardings, *placement.out_shardings),
        "out_shardings": placement.in_shardings}
    call = jit(backward, **given).trace(*avals)._traced
    return export_closed(call.closed, call.name, flat_tree(len(avals)), call.out_tree,
                         primal.platforms, tuple(primal.disabled_safety_checks),
                         placement_of(call.closed, (None,) * len(avals), call.request,
                                      primal.platforms[0])[0],
                         [f"args[{i}]" for i in range(len(avals))])


# -- symbolic shapes -------------------------------------------------------------------------------


def symbolic_shape(shape_spec: str | None, *, constraints: Sequence[str] = (),
                   scope: SymbolicScope | None = None, like: Sequence[Any] | None = None
                   ) -> tuple[Any, ...]:
    """The shape that a text stands for, such as `"b, 2*b + 1, ..."`.

    Names are dimension variables, which stand for ints >= 1. Dimensions are made of them and of
    integers by `+`, `-`, `*`, `//`, `%`, `^`, `floordiv`, `mod`, `max` and `min`. `_` stands for
    the dimension of `like` in its place, `...` for all that follow.

    Args:
      shape_spec: the text; None for `...`.
      constraints: comparisons of dimensions by `==`, `>=` or `<=`, which are taken to hold, and
        checked where the program is called.
      scope: the scope of the variables, which has constraints of its own; by default a new one.
        Dimensions of two scopes cannot be mixed.
      like: the shape that placeholders stand for.

    Raises:
      ValueError: the text cannot be read, or a constraint is never true.

    >>> from pyjx import export
    >>> export.symbolic_shape("b, _, 2*b + 1", like=(2, 3, 5))
    (b, 3, 2*b + 1)
    >>> a, b = export.symbolic_shape("a, b", constraints=["a >= b"])
    >>> a >= b
    True
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("symbolic_shape: Cannot specify both a `scope` and `constraints`. Give "
                         "the constraints to the scope.")
    text = "..." if shape_spec is None else shape_spec
    if not isinstance(text, str):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {text!r}.")
    return Parser(scope, text, like).shape()


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (),
                        scope: SymbolicScope | None = None) -> Any:
    """`args` with symbolic shapes: a pytree of `ShapeDtypeStruct`.

    Args:
      args: a pytree of arrays, or of what has a shape and a dtype.
      shapes_specs: texts as for `symbolic_shape`, or None for the shape as it is; a prefix of the
        tree `args`, or one text for all. For a tuple of arguments it may be a list.
      constraints, scope: as for `symbolic_shape`.

    >>> import numpy as np
    >>> from pyjx import export
    >>> export.symbolic_args_specs([np.ones((3, 4)), np.ones(4)], ["b, ...", None])[0].shape
    (b, 4)
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("symbolic_args_specs: constraints belong to the scope, and cannot be "
                         "given together with `scope`.")
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    leaves, tree = tree_flatten(args)
    specs = _spread(shapes_specs, args)
    structs = []
    for x, spec in zip(leaves, specs, strict=True):
        shape = x.shape if hasattr(x, "shape") else get_aval(x).shape
        dtype = x.dtype if hasattr(x, "dtype") else get_aval(x).dtype
        structs.append(ShapeDtypeStruct(
            symbolic_shape(spec, scope=scope, like=shape), dtype,
            weak_type=getattr(x, "weak_type", False)))
    return tree_unflatten(tree, structs)


def _spread(specs: Any, args: Any) -> list[str | None]:
    """A text for each leaf of `args`, of whose tree `specs` is a prefix."""
    if specs is None or isinstance(specs, str):
        return [specs] * len(tree_flatten(args)[0])
    prefix, tree = tree_flatten(specs, is_leaf=lambda s: s is None or isinstance(s, str))
    try:
        parts = tree.flatten_up_to(args)
    except (TypeError, ValueError) as error:
        paths = tree_flatten_with_path(args)[0]
        raise ValueError("symbolic_args_specs: shapes_specs is no prefix of the tree of args, "
                         f"which has {len(paths)} leaves: {error}") from None
    return [s for s, part in zip(prefix, parts, strict=True) for _ in tree_flatten(part)[0]]


def symbolic_dim_bounds(dimension: int | DimExpr) -> tuple[float, float]:
    """Between which numbers a dimension lies: `(lower, upper)`, ints, or infinite where no bound is
    known.

    Raises:
      TypeError: it is neither a symbolic dimension nor an integer.

    >>> from pyjx import export
    >>> export.symbolic_dim_bounds(export.symbolic_shape("2*n + 1")[0])
    (3, inf)
    """
    if not isinstance(dimension, DimExpr):
        dimension = as_int("symbolic_dim_bounds", "dimension", dimension)
        return dimension, dimension
    return dimension.scope.bounds(dimension)
