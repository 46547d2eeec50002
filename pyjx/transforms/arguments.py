"""What the transformations of functions share: names and positions of arguments.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.integers import as_ints
from pyjx.core.name_stack import current_name_stack, transform_name_stack
from pyjx.core.value_texts import own_call
from pyjx.engine.functions import FlatFun, flatten, name_of, source_of, with_at
from pyjx.engine.linearize import LinearProgram, linearize_flat
from pyjx.runtime.signature import check_jittable, own_attributes

# -- arguments -------------------------------------------------------------------------------------

Argnums = int | tuple[int, ...]

check_callable = check_jittable  # what is transformed is traced, compiled or not


def wraps(fun: Callable[..., Any], wrapper: Callable[..., Any], doc: str | None = None
         ) -> Callable[..., Any]:
    """Makes `wrapper` a public function with the name, the module and what else `fun` has been
    given as attributes, and its doc string; or with the text `doc`, which names it as `{fun}`, and
    has its doc string where it says `{original}`."""
    wrapper.__dict__.update(own_attributes(fun))
    name = name_of(fun)
    wrapper.__name__ = name
    long_name = getattr(fun, "__qualname__", None)
    wrapper.__qualname__ = long_name if isinstance(long_name, str) else name  # equinox has None
    wrapper.__module__ = getattr(fun, "__module__", None) or wrapper.__module__
    annotations = getattr(fun, "__annotations__", None)
    wrapper.__annotations__ = annotations if isinstance(annotations, dict) else {}
    own = getattr(fun, "__doc__", None)
    original = f"\n\nOriginal documentation:\n\n{own}" if own else ""
    wrapper.__doc__ = own if doc is None else doc.format(fun=name, original=original)
    wrapper.__wrapped__ = fun  # type: ignore[attr-defined]
    return wrapper


# -- argnums ---------------------------------------------------------------------------------------


def canonical_argnums(name: str, argnums: Any) -> Argnums:
    """The `argnums` of the function `name`: an int or a tuple of ints.

    Raises:
      TypeError: `argnums` is neither an integer nor a sequence of integers.
    """
    if isinstance(argnums, int):
        return argnums
    try:
        if hasattr(argnums, "__index__"):
            return operator.index(argnums)
        return as_ints(name, "argnums", (argnums,) if isinstance(argnums, str) else argnums)
    except TypeError as error:
        if type(error) is not TypeError:  # it is traced
            raise
        cure = "A position counts from 0, as in argnums=0: names are none."
        if not isinstance(argnums, str | list | tuple):
            cure = own_call(name)
        raise TypeError(f"{str(error).removesuffix('.')}. {cure}") from None


def _position(i: int, argnums: Argnums, n_args: int, fun: Callable[..., Any], forward: bool) -> int:
    """The index among the `n_args` positional arguments that `fun` is given, from the front."""
    if -n_args <= i < n_args:
        return i % n_args
    if i >= n_args and not forward:
        highest = argnums if isinstance(argnums, int) else max(argnums)
        raise TypeError(
            f"differentiating with respect to argnums={argnums} requires at least {highest + 1} "
            f"positional arguments to be passed by the caller, but got only {n_args} positional "
            "arguments. argnums counts from 0, without arguments given by keyword.")
    raise ValueError(f"argnums of {source_of(fun)} must have value greater than or equal to "
                     f"-len(args) and less than len(args), but got value {i} for len(args) == "
                     f"{n_args}. argnums counts from 0, without arguments given by keyword.")


def at_argnums(fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any],
               kwargs: dict[str, Any], forward: bool = False
              ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`fun` as a function of the arguments at `argnums` only, and those arguments.

    Raises:
      ValueError: there is no such argument, or one is named twice.
      TypeError: there are fewer arguments than that; `forward`, for `jacfwd`, makes this a
        ValueError too, as in JAX.
    """
    if isinstance(argnums, int):
        if not kwargs and len(args) == 1 and argnums in (0, -1):
            return fun, tuple(args)
        i = _position(argnums, argnums, len(args), fun, forward)
        before, after = args[:i], args[i + 1:]

        def of_one(x: Any) -> Any:
            return fun(*before, x, *after, **kwargs)

        return of_one, (args[i],)
    positions = [_position(i, argnums, len(args), fun, forward) for i in argnums]
    if len(set(positions)) < len(positions):
        raise ValueError(f"argnums={argnums} names an argument twice; there are {len(args)} "
                         "positional arguments, and negative positions count from the end.")

    def of_some(*xs: Any) -> Any:
        return fun(*with_at(args, positions, xs), **kwargs)

    return of_some, tuple([args[i] for i in positions])


# -- which inputs are differentiated ---------------------------------------------------------------


def is_inexact(x: Any) -> bool:
    """Whether a value has a derivative."""
    return not get_aval(x).to_tangent_aval().is_float0


def prefix_of_bools(name: str, prefix: Any, primals: Any) -> list[bool]:
    """One bool for each leaf of `primals`. Containers of `prefix` count by their length only."""
    if isinstance(prefix, bool):
        return [prefix] * flatten(primals)[1].num_leaves
    if isinstance(prefix, str):  # whose parts are strings again
        raise TypeError(f"vjp: {name} must be a tree of bools, got {prefix!r}")
    children = flatten(primals, lambda x: x is not primals)[0]
    entries = list(prefix.values()) if isinstance(prefix, dict) else list(prefix)
    if len(entries) != len(children):
        raise ValueError(f"vjp: {name} must be a tree prefix of the primals, got {len(entries)} "
                         f"entries where the primals have {len(children)}")
    return [flag for entry, child in zip(entries, children, strict=True)
            for flag in prefix_of_bools(name, entry, child)]


def wanted_inputs(leaves: Sequence[Any], primals: Any, in_nzs: Any) -> list[bool] | None:
    """Which leaves are differentiated: those of inexact dtypes where `in_nzs` says so. None: all.
    """
    wanted = [is_inexact(x) for x in leaves]
    if in_nzs is not None:
        flags = prefix_of_bools("in_nzs", in_nzs, primals)
        wanted = [w and f for w, f in zip(wanted, flags, strict=True)]
    return None if all(wanted) else wanted


def linearized(flat: FlatFun, leaves: Sequence[Any], wanted: Sequence[bool] | None
               ) -> tuple[list[Any], LinearProgram]:
    """Outputs and derivative; operations are named after the transformation."""
    names = current_name_stack()
    with transform_name_stack("jvp"):
        return linearize_flat(flat, leaves, wanted, flat.aux, names)
