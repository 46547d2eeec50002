"""Rematerialization for users: `checkpoint`, also called `remat`, and names for its policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from pyjx import errors
from pyjx.core.avals import is_valid_value
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.checkpoint_names import name_p
from pyjx.engine.functions import check_values
from pyjx.engine.remat_calls import remat_p
from pyjx.engine.residuals import Policy
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import P, R, TreeDef
from pyjx.runtime.jit import JitSpec, Options, TracedCall
from pyjx.runtime.signature import parameters_of
from pyjx.transforms.arguments import check_callable, wraps
from pyjx.transforms.policies import MAKERS
from pyjx.tree_util import broadcast_prefix, tree_map

_HINT = (
    "\nConsider using the `static_argnums` parameter for `jax.remat` or `jax.checkpoint`: Python "
    "sees the arguments that it names as they are, and not as traced arrays."
)


def checkpoint(fun: Callable[P, R], *, prevent_cse: bool | Sequence[Any] = True,
               policy: Policy | None = None, static_argnums: int | tuple[int, ...] = (),
               static_argnames: str | Iterable[str] = ()) -> Callable[P, R]:
    """A function like `fun` whose derivative needs less memory and more time.

    Reverse mode keeps values of the forward pass until the backward pass reads them. Of this
    function it keeps the arguments and what `policy` says; the rest is computed again in the
    backward pass, just before it is read. A function inside that is a `checkpoint` function itself
    keeps to its own policy.

    Args:
      fun: the function; arguments and results are pytrees of arrays.
      prevent_cse: whether to keep XLA from seeing that the second computation is the first one
        over again, which would undo it; True or False, or a tree of these that is a prefix of the
        arguments. False is for places where XLA cannot see it, such as the body of a loop.
      policy: `policy(primitive, *avals, **params)` says of an operation whether its results are
        saved; see `checkpoint_policies`. None saves nothing.
      static_argnums: positions of arguments that `fun` gets as they are.
      static_argnames: names of arguments that `fun` gets as they are.

    Raises:
      TypeError: `fun` is not callable, or an argument or result is not an array.
      ValueError: `static_argnums` are out of range, or `prevent_cse` is no prefix of the arguments.
      ConcretizationTypeError: Python needs the value of an argument that is not static.

    >>> import pyjx as jax, pyjx.numpy as jnp
    >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> round(float(jax.grad(f)(1.0)), 4)
    0.36
    """
    return _checkpoint(fun, prevent_cse, policy, static_argnums, static_argnames)


def remat(fun: Callable[P, R], *, prevent_cse: bool | Sequence[Any] = True,
          policy: Policy | None = None, static_argnums: int | tuple[int, ...] = ()
          ) -> Callable[P, R]:
    """Another name of `checkpoint`.

    >>> import pyjx as jax
    >>> float(jax.grad(jax.remat(lambda x: x * x))(3.0))
    6.0
    """
    return _checkpoint(fun, prevent_cse, policy, static_argnums, ())


def _checkpoint(fun: Callable[..., Any], prevent_cse: Any, policy: Policy | None,
                static_argnums: Any, static_argnames: str | Iterable[str]) -> Callable[..., Any]:
    check_callable(fun)
    if policy is not None and not callable(policy):
        raise TypeError("checkpoint: policy must be None or a function, such as "
                        f"jax.checkpoint_policies.dots_saveable, got {policy!r}.")
    if policy in MAKERS:
        raise TypeError(f"checkpoint: {policy.__name__} makes a policy and must be "  # type: ignore[union-attr]
                        f"called, as in policy={policy.__name__}(...).")  # type: ignore[union-attr]
    static_argnums = _positions(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    parameters = parameters_of(fun) if names else None
    named = [i for i, name in enumerate(parameters.positional) if name in names] \
        if parameters else []

    options = Options(static_argnums, names, traced_for="checkpoint / remat")

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        n = len(args)
        if not all([-n <= i < n for i in static_argnums]):
            raise ValueError(
                "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` can only take "
                "integer values greater than or equal to `-len(args)` and less than `len(args)`, "
                f"but got {static_argnums}, while `len(args)` = {n}"
            )
        spec = _RematSpec(fun, options if not named else options._replace(
            static_argnums=(*static_argnums, *[i for i in named if i < n])))
        try:
            traced, leaves = spec.trace(args, kwargs)
        except errors.ConcretizationTypeError as error:
            if "`jax.checkpoint`" not in str(error):
                error.args = (f"{error}{_HINT}",)
            raise
        closed, flags = traced.closed, prevent_cse
        if not isinstance(flags, bool):
            dynamic, dynamic_kw, _ = spec.without_static(args, kwargs)
            full = (*dynamic, dynamic_kw) if dynamic_kw else dynamic
            flags = (*[True] * len(closed.consts), *broadcast_prefix(prevent_cse, full))
        outs = remat_p.bind(
            *closed.consts, *leaves, jaxpr=consts_as_inputs(closed), prevent_cse=flags,
            differentiated=False, policy=policy)
        return traced.out_tree.unflatten(outs)

    return wraps(fun, checkpointed)


def _positions(numbers: Any) -> tuple[int, ...]:
    given = (numbers,) if isinstance(numbers, int) else numbers
    if not isinstance(given, tuple) or any([type(i) is not int for i in given]):
        raise TypeError(
            "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` must be an int or a "
            f"tuple of ints, but got value {numbers}"
        )
    return given


class _RematSpec(JitSpec):
    """A function with its static arguments. Calls of one signature share their trace, so that what
    is derived from it is derived once."""

    __slots__ = ()

    def raise_bad_argument(self, in_tree: TreeDef, leaves: Sequence[Any], static: Any
                           ) -> NoReturn:
        check_values(leaves)
        super().raise_bad_argument(in_tree, leaves, static)

    def trace_unhashable(self, in_tree: TreeDef, avals: tuple[Any, ...], static: Any
                         ) -> TracedCall:
        return self.trace_anew(in_tree, avals, static)


# -- names -----------------------------------------------------------------------------------------


@api_boundary
def checkpoint_name(x: Any, name: str) -> Any:
    """`x`, known to the policies of `checkpoint` by a name.

    Args:
      x: an array, or a tree of arrays.
      name: the name, for such policies as `checkpoint_policies.save_only_these_names`.

    Returns:
      `x`, unchanged.

    Raises:
      TypeError: a leaf is not an array.

    >>> from pyjx.ad_checkpoint import checkpoint_name
    >>> checkpoint_name(2.0, "two")
    2.0
    """
    return tree_map(lambda leaf: _named(leaf, name), x)


def _named(x: Any, name: str) -> Any:
    if not is_valid_value(x):
        raise TypeError(
            "Error interpreting argument to name as a JAX value. The problematic value is of type "
            f"{type(x)} and was passed to name at position 0.")
    return name_p.bind(x, name=name)


def checkpoint_name_fwd(x: Any, name: str) -> Any:
    """As `checkpoint_name`.

    >>> from pyjx.ad_checkpoint import checkpoint_name_fwd
    >>> checkpoint_name_fwd(2.0, "two")
    2.0
    """
    return checkpoint_name(x, name)
