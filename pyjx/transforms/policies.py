"""Policies of rematerialization: which values `checkpoint` saves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyjx.core.primitive import Primitive
from pyjx.engine.checkpoint_names import name_p
from pyjx.engine.remat_calls import nothing_saveable
from pyjx.engine.residuals import Offloadable, Policy, Recompute, Saveable


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


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Save all values but those that `checkpoint_name` gives one of these names."""
    names = frozenset(names_not_to_save)

    def policy(prim: Primitive, *_: Any, **params: Any) -> bool:
        return prim is not name_p or params["name"] not in names

    return policy


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Save the values that `checkpoint_name` gives any name but these, and no others."""
    names = frozenset(names_not_to_save)

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
    names = frozenset(names_which_can_be_saved)

    def policy(prim: Primitive, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] in names

    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save what either of two policies saves."""
    def policy(prim: Primitive, *args: Any, **params: Any) -> Any:
        first = policy_1(prim, *args, **params)
        if first is Saveable or isinstance(first, Offloadable) or first is True:
            return first
        return policy_2(prim, *args, **params)

    return policy


def save_and_offload_only_these_names(
    *, names_which_can_be_saved: Any, names_which_can_be_offloaded: Any, offload_src: str,
    offload_dst: str,
) -> Policy:
    """Save values by their names, some of them in memory of another kind.

    Args:
      names_which_can_be_saved, names_which_can_be_offloaded: names that `checkpoint_name` gives.
      offload_src, offload_dst: kinds of memory, such as "device" and "pinned_host".

    Raises:
      ValueError: a name is among both.
    """
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(
            "The names should be exclusive and should not intersect in `names_which_can_be_saved` "
            f"and `names_which_can_be_offloaded`. Got names_which_can_be_saved={saved}, "
            f"names_which_can_be_offloaded={offloaded} and the intersection={saved & offloaded}"
        )

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

checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)
