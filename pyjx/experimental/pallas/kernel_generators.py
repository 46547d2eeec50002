"""Random bits in kernels: the generator of a TPU's core, and where kernels are interpreted one in a
reference of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.effects import Effect, Effects
from pyjx.core.evaluation import walk
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from pyjx.core.nested import program_of
from pyjx.core.places import joined
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import trace_to_jaxpr
from pyjx.experimental.pallas.kernel_grids import ANY, GridMapping
from pyjx.lax.random_bits import threefry2x32_p


class GeneratorEffect(Effect):
    """A kernel sets the generator of its core, or draws from it."""

    __slots__ = ()


_draws: Effects = frozenset({GeneratorEffect()})
_WORDS = ShapedArray((2,), np.dtype(np.uint32))

prng_seed_p = register(Primitive(
    "prng_seed", multiple_results=True, cached=False, effects=lambda params: _draws,
    shape_rule=lambda *seeds: []))
prng_random_bits_p = register(Primitive(
    "prng_random_bits", cached=False, effects=lambda params: _draws,
    shape_rule=lambda shape: ShapedArray(shape, np.dtype(np.int32))))


def prng_seed(*seeds: ArrayLike) -> None:
    """Set the generator of the core.

    Args:
      seeds: one or two integers. The same ones give the same bits on one kind of machine; where
        kernels are interpreted, others than on a TPU.
    """
    if not 1 <= len(seeds) <= 2:
        raise ValueError(f"prng_seed: one or two seeds are taken, got {len(seeds)}. Combine them "
                         "by arithmetic.")
    prng_seed_p.bind(*[lax.convert_element_type(seed, np.int32) for seed in seeds])


def prng_random_bits(shape: Sequence[int]) -> Array:
    """Random int32 of a shape, from the generator of the core, which `prng_seed` has set.

    Args:
      shape: the shape of the result.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> def kernel(seed_ref, o_ref):
    ...     pltpu.prng_seed(seed_ref[0])
    ...     o_ref[...] = pltpu.prng_random_bits(o_ref.shape)
    ...
    >>> bits = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), "int32"), interpret=True)
    >>> bool((bits(jax.numpy.array([3])) == bits(jax.numpy.array([3]))).all())
    True
    """
    return prng_random_bits_p.bind(shape=tuple(shape))  # type: ignore[no-any-return]


def draws(program: ClosedJaxpr) -> bool:
    """Whether a kernel, or a program in one, uses the generator."""
    return not _draws.isdisjoint(program.effects)


def with_generator(kernel: ClosedJaxpr, mapping: GridMapping) -> tuple[ClosedJaxpr, GridMapping]:
    """The kernel with a generator as its last reference, and what it is called with."""
    axes = joined(kernel.in_avals)
    state = AbstractRef(_WORDS.varying(axes), ANY, None)

    def fun(*args: Any) -> list[Any]:
        return _drawn(kernel.jaxpr, kernel.consts, args[:-1], args[-1])

    return (trace_to_jaxpr(fun, [*kernel.in_avals, state],
                           kernel.debug_info.with_unknown_names()),
            mapping._replace(scratch=(*mapping.scratch, state)))


def _drawn(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], state: Any) -> list[Any]:
    """The results of a program whose bits come from a reference to the words of a key."""
    return walk(jaxpr, consts, args, partial(_apply, state))


def _apply(state: Any, eqn: JaxprEqn, operands: list[Any]) -> Any:
    holder, program = eqn.primitive.holder, program_of(eqn.primitive, eqn.params)
    if eqn.primitive is prng_seed_p:
        words = [lax.bitcast_convert_type(x, np.uint32).reshape(1) for x in operands]
        state[...] = lax.concatenate([*words, np.zeros(2 - len(words), np.uint32)], 0)
        return []
    if eqn.primitive is prng_random_bits_p:
        shape = eqn.params["shape"]
        size = math.prod(shape)
        half = (size + 3) // 2
        counters = lax.iota(np.uint32, half)
        drawn = lax.concatenate(threefry2x32_p.bind(
            state[0], state[1], counters, counters + np.uint32(half)), 0)
        state[...] = drawn[:2]  # the next key
        return [lax.bitcast_convert_type(drawn[2:2 + size], np.int32).reshape(shape)]
    if _draws.isdisjoint(eqn.effects):
        out = eqn.primitive.bind(*operands, **eqn.params)
        return out if eqn.primitive.multiple_results else [out]
    if holder.held is None:
        assert program is not None, eqn.primitive
        return _drawn(program.jaxpr, program.consts, operands, state)
    return held_with(state, eqn, operands, lambda p, args, state: _drawn(
        p.jaxpr, p.consts, args, state))


def held_with(ref: Any, eqn: JaxprEqn, operands: Sequence[Any],
              run: Callable[[ClosedJaxpr, Sequence[Any], Any], list[Any]]) -> Any:
    """The results of an equation whose programs take a further reference: `run(program, args, ref)`
    gives those of each."""
    holder, held = eqn.primitive.holder, eqn.primitive.holder.held(eqn.params)

    def inner(p: ClosedJaxpr) -> ClosedJaxpr:
        return trace_to_jaxpr(lambda ref, *args: run(p, args, ref), [ref.aval, *p.in_avals],
                              p.debug_info)

    return holder.bind([inner(p) for p in held.programs],
                       [*operands[:held.head], ref, *operands[held.head:]], eqn.params,
                       [holder.constant, *held.ins], held.outs)
