"""Optimizers as triples of functions: `init(params)`, `update(i, grads, state)`, `params(state)`.

`optimizer` makes them from functions of single arrays; the state is a pytree for any of the
parameters. Step sizes are numbers, or functions of the iteration.

    >>> import pyjx as jax
    >>> from pyjx.example_libraries.optimizers import sgd
    >>> opt_init, opt_update, get_params = sgd(0.5)
    >>> state = opt_init({"w": jax.numpy.ones(2)})
    >>> get_params(opt_update(0, {"w": jax.numpy.ones(2)}, state))["w"].tolist()
    [0.5, 0.5]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.tree_util import (
    PyTree,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)

__all__ = [
    "InitFn", "JoinPoint", "Optimizer", "OptimizerState", "ParamsFn", "Schedule", "Step",
    "UpdateFn", "adagrad", "adam", "adamax", "clip_grads", "constant", "exponential_decay",
    "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer",
    "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop",
    "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]

Step = int
Schedule = Callable[[Step], Any]
InitFn = Callable[[Any], "OptimizerState"]
UpdateFn = Callable[[Step, Any, "OptimizerState"], "OptimizerState"]
ParamsFn = Callable[["OptimizerState"], Any]


class OptimizerState(NamedTuple):
    """The state of an optimizer: for each parameter a list of arrays, and how to put them together.

    It is a pytree of these arrays.
    """

    packed_state: tuple[list[Any], ...]
    tree_def: Any
    subtree_defs: tuple[Any, ...]


register_pytree_node(
    OptimizerState, lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda data, children: OptimizerState(children[0], *data))


class Optimizer(NamedTuple):
    """The functions of an optimizer."""

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Make an optimizer of pytrees from one of single arrays.

    Args:
      opt_maker: gives, for options, the triple `(init, update, get_params)`: `init(x)` is a state,
        `update(i, gradient, state)` the next one, and `get_params(state)` the array in it.

    Returns:
      The function that gives, for the same options, the `Optimizer` of pytrees.
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params: PyTree) -> OptimizerState:
            leaves, tree = tree_flatten(params)
            states, subtrees = _flat_states([init(x) for x in leaves])
            return OptimizerState(states, tree, subtrees)

        def tree_update(i: Step, grads: PyTree, opt_state: OptimizerState) -> OptimizerState:
            states, tree, subtrees = opt_state
            leaves, grad_tree = tree_flatten(grads)
            if grad_tree != tree:
                raise TypeError("optimizer update function was passed a gradient tree that did not "
                                "match the parameter tree structure with which it was initialized: "
                                f"parameter tree {tree} and grad tree {grad_tree}.")
            following, new_subtrees = _flat_states([
                update(i, g, tree_unflatten(subtree, state))
                for g, subtree, state in zip(leaves, subtrees, states, strict=True)])
            for old, new in zip(subtrees, new_subtrees, strict=True):
                if old != new:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not "
                        f"match its input structure: input {old} and output {new}.")
            return OptimizerState(following, tree, subtrees)

        def tree_params(opt_state: OptimizerState) -> Any:
            states, tree, subtrees = opt_state
            return tree_unflatten(tree, [
                get_params(tree_unflatten(subtree, state))
                for subtree, state in zip(subtrees, states, strict=True)])

        return Optimizer(tree_init, tree_update, tree_params)

    return tree_opt_maker


def _flat_states(states: Sequence[Any]) -> tuple[tuple[list[Any], ...], tuple[Any, ...]]:
    flat = [tree_flatten(s) for s in states]
    return tuple([leaves for leaves, _ in flat]), tuple([tree for _, tree in flat])


# -- optimizers ------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: float | Schedule) -> Any:
    """Stochastic gradient descent: x - step g."""
    schedule = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - schedule(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: float | Schedule, mass: ArrayLike) -> Any:
    """Gradient descent with momentum: v becomes mass v + g, x becomes x - step v."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, v = state
        v = mass * v + g
        return x - schedule(i) * v, v

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: float | Schedule, mass: ArrayLike) -> Any:
    """Gradient descent with Nesterov's momentum: x - step (mass v + g), of the new v."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, v = state
        v = mass * v + g
        return x - schedule(i) * (mass * v + g), v

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """Adagrad (Duchi, Hazan and Singer 2011) with momentum.

    Steps are divided by the root of the sum of squares of all gradients.
    """
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, squares, m = state
        squares = squares + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - schedule(i) * m, squares, m

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp: steps are divided by the root of a moving average of squares of gradients."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        return x - schedule(i) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8,
                     momentum: float = 0.9) -> Any:
    """`rmsprop` with momentum, of steps."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, squares, m = state
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        m = momentum * m + schedule(i) * g / jnp.sqrt(squares + eps)
        return x - m, squares, m

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam (Kingma and Ba 2014): moving averages of gradients and of their squares, unbiased."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mhat = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        vhat = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - schedule(i) * mhat / (jnp.sqrt(vhat) + eps), m, v

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
          ) -> Any:
    """Adam with the largest gradients, of decaying weight, in place of the average of squares."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = jnp.maximum(b2 * v, jnp.abs(g))
        return x - schedule(i) / (1 - b1 ** (i + 1)) * m / (v + eps), m, v

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """SM3 (Anil, Gupta, Koren and Singer 2019): Adagrad with sums for rows, columns, ... alone."""
    schedule = make_schedule(step_size)

    def init(x: Array) -> Any:
        shape = jnp.shape(x)
        x = jnp.atleast_1d(x)
        m = jnp.zeros_like(x)
        return x, m, [jnp.zeros(n, m.dtype) for n in x.shape], shape

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, m, sums, shape = state
        ndim = x.ndim
        wide = [s.reshape([-1 if j == k else 1 for j in range(ndim)]) for k, s in enumerate(sums)]
        squares = functools.reduce(jnp.minimum, wide) + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        sums = [squares.max([j for j in range(ndim) if j != k]) for k in range(ndim)]
        return x - schedule(i) * m, m, sums, shape

    def get_params(state: PyTree) -> Any:
        x, _, _, shape = state  # sizes are data of the state, which may be traced
        return x if shape else x[0]

    return init, update, get_params


def _with_zeros(count: int) -> Callable[[Any], Any]:
    return lambda x: (x, *[jnp.zeros_like(x)] * count)


def _first(state: PyTree) -> Any:
    return state[0]


def _inverse_root(x: Array) -> Array:
    return jnp.where(x > 0, 1 / jnp.sqrt(jnp.where(x > 0, x, 1)), 0)


# -- schedules -------------------------------------------------------------------------------------


def constant(step_size: float) -> Schedule:
    """The step size in every iteration."""
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: float, decay_rate: float) -> Schedule:
    """step_size * decay_rate ** (i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: float, decay_steps: float, decay_rate: float,
                       staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate * i / decay_steps); `staircase` rounds i / decay_steps down."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: float, decay_steps: float, final_step_size: float,
                     power: float = 1.0) -> Schedule:
    """From one step size to another, by the share of iterations left to a power."""

    def schedule(i: Step) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left ** power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: ArrayLike) -> Schedule:
    """values[k] after k of the boundaries.

    Raises:
      ValueError: the lengths do not match.
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if not boundaries.shape[0] == values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule as it is, and of a number the constant one.

    Raises:
      TypeError: it is neither.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# -- gradients and states --------------------------------------------------------------------------


def l2_norm(tree: PyTree) -> Array:
    """The root of the sum of the squares of all elements of a pytree."""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: PyTree, max_norm: float) -> Any:
    """Gradients, scaled so that their `l2_norm` is at most `max_norm`."""
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Marks where the state of a parameter hangs in the tree of parameters."""

    def __init__(self, subtree: PyTree) -> None:
        self.subtree = subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state as a pytree like the parameters, with a `JoinPoint` in place of each."""
    states, tree, subtrees = opt_state
    return tree_unflatten(tree, [JoinPoint(tree_unflatten(subtree, state))
                                 for subtree, state in zip(subtrees, states, strict=True)])


def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """The state of which `unpack_optimizer_state` made this pytree."""
    points, tree = tree_flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise TypeError("pack_optimizer_state: expected a pytree of JoinPoint, as "
                        "unpack_optimizer_state gives it")
    states, subtrees = _flat_states([p.subtree for p in points])
    return OptimizerState(states, tree, subtrees)


__dir__ = directory(__name__, __all__)
