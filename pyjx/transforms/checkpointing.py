"""Rematerialization for users: `checkpoint`, also called `remat`, names and policies that say which
values it saves, and lists of what is saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

from pyjx import configuration, errors
from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import DebugInfo, Literal
from pyjx.core.primitive import Primitive
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import checked_aval
from pyjx.engine.functions import FlatFun, check_values, flatten, source_of
from pyjx.engine.linearize import linearize_flat
from pyjx.engine.primitives import name_p
from pyjx.engine.remat_calls import nothing_saveable, origin, remat_p
from pyjx.engine.residuals import Offloadable, Policy, Recompute, Saveable, Within
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import P, R, TreeDef
from pyjx.guards import guard
from pyjx.lazy import deferred
from pyjx.runtime.jit import JitSpec, Options, TracedCall
from pyjx.runtime.signature import leaf_names, parameters_of
from pyjx.transforms.arguments import check_callable, wraps
from pyjx.tree_util import broadcast_prefix, tree_map

saving = deferred("pyjx.runtime.saving")


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save all values, as if there were no `checkpoint`."""
    return True


def dots_saveable(prim: Primitive, *_: Any, **__: Any) -> bool:
    """Save the results of contractions and convolutions."""
    return prim.contracts


def dots_with_no_batch_dims_saveable(prim: Primitive, *args: Any, **params: Any) -> bool:
    """Save the results of contractions without batch dimensions.

    These are the products with weights; the others, such as attention scores, are computed again.
    """
    return _is_weight_product(prim, params)


def _is_weight_product(prim: Primitive, params: dict[str, Any]) -> bool:
    if not prim.contracts or "window_strides" in params:  # those of a convolution
        return False
    _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Save the results of contractions without batch dimensions in memory of another kind.

    Args:
      offload_src, offload_dst: kinds of memory, such as "device" and "pinned_host".
    """
    def policy(prim: Primitive, *_: Any, **params: Any) -> Any:
        if _is_weight_product(prim, params):
            return Offloadable(src=offload_src, dst=offload_dst)
        return Recompute

    return policy


def _names(names: Iterable[str]) -> frozenset[str]:
    """The names as a policy asks for them."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError("A policy takes names as strings, as in save_only_these_names('a', "
                            f"'b') or names_which_can_be_saved=['a', 'b']; got {name!r}.")
    return frozenset(names)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Save all values but those that `checkpoint_name` gives one of these names."""
    names = _names(names_not_to_save)

    def policy(prim: Primitive, *_: Any, **params: Any) -> bool:
        return prim is not name_p or params["name"] not in names

    return policy


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Save the values that `checkpoint_name` gives any name but these, and no others."""
    names = _names(names_not_to_save)

    def policy(prim: Primitive, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] not in names

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Save the values that `checkpoint_name` gives one of these names, and no others.

    >>> import pyjx as jax, pyjx.numpy as jnp
    >>> from pyjx.ad_checkpoint import checkpoint_name, print_saved_residuals
    >>> policy = jax.checkpoint_policies.save_only_these_names("wave")
    >>> f = lambda x: jnp.sin(checkpoint_name(jnp.sin(x * 3.0), "wave"))
    >>> print_saved_residuals(jax.checkpoint(f, policy=policy), 1.0)  # doctest: +ELLIPSIS
    f32[] from the argument x
    f32[] named 'wave' from ...
    """
    names = _names(names_which_can_be_saved)

    def policy(prim: Primitive, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] in names

    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save what either of two policies saves."""
    for given in (policy_1, policy_2):
        if not callable(given):
            raise TypeError("save_from_both_policies: a policy must be a function, such as "
                            f"jax.checkpoint_policies.dots_saveable, got {given!r}.")

    def policy(prim: Primitive, *args: Any, **params: Any) -> Any:
        first = policy_1(prim, *args, **params)
        if first is Saveable or isinstance(first, Offloadable) or first is True:
            return first
        return policy_2(prim, *args, **params)

    return policy


def save_and_offload_only_these_names(*, names_which_can_be_saved: Any,
                                      names_which_can_be_offloaded: Any, offload_src: str,
                                      offload_dst: str) -> Policy:
    """Save values by their names, some of them in memory of another kind.

    Args:
      names_which_can_be_saved, names_which_can_be_offloaded: names that `checkpoint_name` gives.
      offload_src, offload_dst: kinds of memory, such as "device" and "pinned_host".

    Raises:
      ValueError: a name is among both.
    """
    saved, offloaded = _names(names_which_can_be_saved), _names(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(
            "The names should be exclusive and should not intersect in `names_which_can_be_saved` "
            f"and `names_which_can_be_offloaded`. Got names_which_can_be_saved={saved}, "
            f"names_which_can_be_offloaded={offloaded} and the intersection={saved & offloaded}")

    def policy(prim: Primitive, *_: Any, **params: Any) -> Any:
        if prim is name_p and params["name"] in saved:
            return Saveable
        if prim is name_p and params["name"] in offloaded:
            return Offloadable(src=offload_src, dst=offload_dst)
        return Recompute

    return policy


# Functions that make policies, and are none.
MAKERS = (offload_dot_with_no_batch_dims, save_anything_except_these_names,
          save_any_names_but_these, save_only_these_names, save_from_both_policies,
          save_and_offload_only_these_names)
for _maker in MAKERS:
    guard(_maker)

checkpoint_policies = SimpleNamespace(
    **{policy.__name__: policy for policy in (
        everything_saveable, nothing_saveable, dots_saveable, dots_with_no_batch_dims_saveable,
        *MAKERS)},
    checkpoint_dots=dots_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
)


def checkpoint(fun: Callable[P, R], *, prevent_cse: bool | Sequence[Any] = True,
               policy: Policy | None = None, static_argnums: int | tuple[int, ...] = (),
               static_argnames: str | Iterable[str] = (),
               memory_budget: str | float | None = None) -> Callable[P, R]:
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
      memory_budget: what may be saved besides the arguments, as `jit` takes it: of what `policy`
        says, or of all values, that which costs most to compute again. It is that of each call,
        so of an iteration where a loop calls `fun`, for arrays as they are before they are cut for
        several devices.

    Raises:
      TypeError: `fun` is not callable, or an argument or result is not an array.
      ValueError: `static_argnums` are out of range, `prevent_cse` is no prefix of the arguments, or
        there is no such `memory_budget`.
      ConcretizationTypeError: Python needs the value of an argument that is not static.

    >>> import pyjx as jax, pyjx.numpy as jnp
    >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> round(float(jax.grad(f)(1.0)), 4)
    0.36
    """
    return _checkpoint(fun, prevent_cse, policy, static_argnums, static_argnames, memory_budget)


def remat(fun: Callable[P, R], *, prevent_cse: bool | Sequence[Any] = True,
          policy: Policy | None = None, static_argnums: int | tuple[int, ...] = (),
          memory_budget: str | float | None = None) -> Callable[P, R]:
    """Another name of `checkpoint`.

    >>> import pyjx as jax
    >>> float(jax.grad(jax.remat(lambda x: x * x))(3.0))
    6.0
    """
    return _checkpoint(fun, prevent_cse, policy, static_argnums, (), memory_budget)


@guard
def _checkpoint(fun: Callable[..., Any], prevent_cse: Any, policy: Any,
                static_argnums: Any, static_argnames: str | Iterable[str],
                memory_budget: str | float | None) -> Callable[..., Any]:
    check_callable(fun)
    if policy is not None and not callable(policy):
        raise TypeError("checkpoint: policy must be None or a function, such as "
                        f"jax.checkpoint_policies.dots_saveable, got {policy!r}.")
    if policy in MAKERS:
        raise TypeError(f"checkpoint: {policy.__name__} makes a policy and must be "
                        f"called, as in policy={policy.__name__}(...).")
    if memory_budget is not None:
        policy = Within(configuration.checked_budget(memory_budget, "checkpoint"),
                        policy or everything_saveable, saving.within)
    static_argnums = _positions(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    parameters = parameters_of(fun) if names else None
    named = [i for i, name in enumerate(parameters.positional) if name in names] \
        if parameters else []

    options = Options(static_argnums, names, traced_for=errors.CHECKPOINT)

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        n = len(args)
        if not all([-n <= i < n for i in static_argnums]):
            raise ValueError(
                "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` can only take "
                "integer values greater than or equal to `-len(args)` and less than `len(args)`, "
                f"but got {static_argnums}, while `len(args)` = {n}"
                + ". What is given by name is not counted: name it in static_argnames."
                * bool(kwargs))
        spec = _RematSpec(fun, options if not named else options._replace(
            static_argnums=(*static_argnums, *[i for i in named if i < n])))
        traced, leaves = spec.trace(args, kwargs)
        closed, flags = traced.closed, prevent_cse
        if not isinstance(flags, bool):
            dynamic, dynamic_kw, _ = spec.without_static(args, kwargs)
            full = (*dynamic, dynamic_kw) if dynamic_kw else dynamic
            flags = (*[True] * len(closed.consts), *broadcast_prefix(prevent_cse, full))
        outs = remat_p.bind(*closed.consts, *leaves, jaxpr=consts_as_inputs(closed),
                            prevent_cse=flags, differentiated=False, policy=policy)
        return traced.out_tree.unflatten(outs)

    return wraps(fun, checkpointed)


def _positions(numbers: Any) -> tuple[int, ...]:
    given = (numbers,) if isinstance(numbers, int) else numbers
    if not isinstance(given, tuple) or any([type(i) is not int for i in given]):
        raise TypeError("the `static_argnums` argument to `jax.checkpoint` / `jax.remat` must be "
                        f"an int or a tuple of ints, but got value {numbers}")
    return given


class _RematSpec(JitSpec):
    """A function with its static arguments. Calls of one signature share their trace, so that what
    is derived from it is derived once."""

    __slots__ = ()

    def raise_bad_argument(self, in_tree: TreeDef, leaves: Sequence[Any], static: Any) -> NoReturn:
        check_values(leaves)
        super().raise_bad_argument(in_tree, leaves, static)

    def trace_unhashable(self, in_tree: TreeDef, avals: tuple[Any, ...], static: Any) -> TracedCall:
        return self.trace_anew(in_tree, avals, static)


# -- names -----------------------------------------------------------------------------------------


def checkpoint_name(x: Any, name: str) -> Any:
    """`x`, known to the policies of `checkpoint` by a name.

    Args:
      x: an array, or a tree of arrays.
      name: the name, for such policies as `checkpoint_policies.save_only_these_names`.

    Returns:
      `x`, unchanged.

    Raises:
      TypeError: a leaf is not an array, or the name is none that a set may hold, but a list, say.

    >>> from pyjx.ad_checkpoint import checkpoint_name
    >>> checkpoint_name(2.0, "two")
    2.0
    """
    try:
        hash(name)
    except TypeError as error:
        raise TypeError("checkpoint_name: name must be hashable, such as a str, got "
                        f"{shortened(name)}: {error}.") from None
    return tree_map(lambda leaf: _named(leaf, name), x)


def _named(x: Any, name: str) -> Any:
    checked_aval("name", x)
    return name_p.bind(x, name=name)


def checkpoint_name_fwd(x: Any, name: str) -> Any:
    """As `checkpoint_name`.

    >>> from pyjx.ad_checkpoint import checkpoint_name_fwd
    >>> checkpoint_name_fwd(2.0, "two")
    2.0
    """
    return checkpoint_name(x, name)


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The type of each value that a backward pass of `f(*args, **kwargs)` reads, and its origin."""
    check_callable(f)
    leaves, in_tree = flatten((args, kwargs))
    check_values(leaves)
    flat = FlatFun(lambda args, kwargs: f(*args, **kwargs), in_tree, of=f)

    def residuals(*primals: Any) -> list[Any]:
        return linearize_flat(flat, primals)[1].pruned().residuals()

    names = leaf_names(parameters_of(f), in_tree, ())
    jaxpr = trace_to_jaxpr(residuals, [get_aval(x) for x in leaves],
                           DebugInfo("saved_residuals", source_of(f), names)).jaxpr
    found = {v: origin(jaxpr, v) for v in jaxpr.outvars if not isinstance(v, Literal)}
    return [(v.aval, text) for v, (_, text) in sorted(found.items(), key=lambda item: item[1][0])]


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print what reverse mode keeps of `f(*args, **kwargs)`: the type of each value that the
    backward pass reads, and where it comes from.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.ad_checkpoint import print_saved_residuals
    >>> print_saved_residuals(lambda x, y: jnp.sin(x) * y, 1.0, 2.0)  # doctest: +ELLIPSIS
    f32[] from the argument y
    f32[] output of sin from ...
    f32[] output of cos from ...
    """
    for aval, text in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(short_dtypes=True)} {text}")
