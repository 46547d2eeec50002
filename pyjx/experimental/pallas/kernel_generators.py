"""Random bits in kernels: the generator of a TPU's core, and where kernels are interpreted one in a
reference of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import AbstractRef, ShapedArray, get_aval
from pyjx.core.effects import Effect, Effects
from pyjx.core.evaluation import bind_all, program_of, walk
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from pyjx.core.places import joined
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import trace_to_jaxpr
from pyjx.experimental.pallas.kernel_grids import ANY, GridMapping, program_id
from pyjx.lax.random_bits import threefry2x32_p
from pyjx.random import fold_in


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


# -- distributions ---------------------------------------------------------------------------------


def _bits(shape: Sequence[int]) -> Array:
    return lax.bitcast_convert_type(prng_random_bits(shape), np.uint32)


def _check_dtype(caller: str, dtype: DTypeLike, known: str) -> None:
    if dtypes.name(dtypes.dtype(dtype)) != known:
        raise NotImplementedError(f"{caller}: dtype must be {known}, got {dtype}. Convert the "
                                  "result by astype.")


def stateful_bits(shape: Sequence[int] = (), dtype: DTypeLike = np.uint32) -> Array:
    """Random uint32 from the generator of the core, which `prng_seed` has set.

    Args:
      shape: the shape of the result.
      dtype: uint32.
    """
    _check_dtype("stateful_bits", dtype, "uint32")
    return _bits(shape)


def stateful_uniform(shape: Sequence[int] = (), dtype: DTypeLike = np.float32,
                     minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0) -> Array:
    """Random numbers in [minval, maxval) from the generator of the core.

    Args:
      shape: the shape of the result.
      dtype: float32.
      minval, maxval: numbers, or arrays that broadcast to the shape.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> def kernel(o_ref):
    ...     pltpu.prng_seed(3)
    ...     o_ref[...] = pltpu.stateful_uniform(o_ref.shape, minval=2.0, maxval=3.0)
    ...
    >>> x = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), "float32"), interpret=True)()
    >>> bool((x >= 2).all() and (x < 3).all()), round(float(x.mean()), 1)
    (True, 2.5)
    """
    _check_dtype("stateful_uniform", dtype, "float32")
    one = _bits(shape) >> np.uint32(9) | np.uint32(0x3F800000)  # type: ignore[operator]
    unit: Any = lax.bitcast_convert_type(one, np.float32) - np.float32(1)
    low, high = [lax.convert_element_type(x, np.float32) for x in (minval, maxval)]
    return lax.max(low, unit * (high - low) + low)  # type: ignore[operator]


def stateful_normal(shape: Sequence[int] = (), dtype: DTypeLike = np.float32) -> Array:
    """Random numbers of the standard normal distribution from the generator of the core.

    Args:
      shape: the shape of the result.
      dtype: float32.
    """
    _check_dtype("stateful_normal", dtype, "float32")
    inner = np.nextafter(np.float32(-1), np.float32(0))
    return lax.erf_inv(stateful_uniform(shape, minval=inner)) * np.float32(math.sqrt(2))  # type: ignore[no-any-return,operator]


def stateful_bernoulli(p: ArrayLike = 0.5, shape: Sequence[int] | None = None) -> Array:
    """Random bools from the generator of the core, true with a probability.

    Args:
      p: the probability, a number or an array.
      shape: the shape of the result, by default that of `p`.
    """
    return stateful_uniform(get_aval(p).shape if shape is None else shape) < p  # type: ignore[operator]


def to_pallas_key(key: Array) -> Array:
    """A key for `jax.random` in a kernel: the key itself, where kernels are interpreted. For TPUs
    seed the generator of the core by its words.

    Args:
      key: a key array.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> def kernel(key_ref, o_ref):
    ...     o_ref[...] = jax.random.uniform(key_ref[...], o_ref.shape)
    ...
    >>> key = to_pallas_key(jax.random.key(0))
    >>> drawn = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), "float32"), interpret=True)(key)
    >>> bool((drawn == jax.random.uniform(key, (2,))).all())
    True
    """
    return key


def sample_block(sampler_fn: Callable[..., Array], global_key: Array, block_size: Sequence[int],
                 tile_size: Sequence[int], total_size: Sequence[int],
                 block_index: Sequence[ArrayLike] | None = None, **kwargs: Any) -> Array:
    """A block of a random array, which is the same array whatever its blocks are.

    Args:
      sampler_fn: `sampler_fn(key, shape=tile_size, **kwargs)` gives the numbers of a tile.
      global_key: the key of the whole array, of which each tile has one by its number.
      block_size, tile_size, total_size: the shapes of a block, of the tiles that it is made of, and
        of the array; each divides the next.
      block_index: which block, by default that of the program.

    >>> import pyjx as jax
    >>> def block(size, index):
    ...     return sample_block(jax.random.uniform, jax.random.key(0), size, (2, 4), (8, 16), index)
    ...
    >>> bool((block((4, 8), (1, 0))[2:] == block((2, 16), (3, 0))[:, :8]).all())
    True
    """
    if not len(block_size) == len(tile_size) == len(total_size):
        raise ValueError(f"block_size ({len(block_size)}), tile_size ({len(tile_size)}) and "
                         f"total_size ({len(total_size)}) must have the same length.")
    for block, tile, total in zip(block_size, tile_size, total_size, strict=True):
        if block % tile or total % tile:
            raise ValueError(f"sample_block: tiles {tuple(tile_size)} must divide the block "
                             f"{tuple(block_size)} and the whole {tuple(total_size)}.")
    if block_index is None:
        block_index = [program_id(i) for i in range(len(block_size))]
    counts = [block // tile for block, tile in zip(block_size, tile_size, strict=True)]

    def tiles(places: tuple[int, ...]) -> Array:
        axis = len(places)
        if axis < len(counts):
            return lax.concatenate([tiles((*places, i)) for i in range(counts[axis])], axis)
        number: Any = np.int32(0)
        for i, place in enumerate(places):
            at: Any = lax.convert_element_type(block_index[i], np.int32)
            number = number * np.int32(total_size[i] // tile_size[i]) + (
                at * np.int32(counts[i]) + np.int32(place))
        return sampler_fn(fold_in(global_key, number), shape=tuple(tile_size), **kwargs)

    return tiles(())


# -- interpreted -----------------------------------------------------------------------------------


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
        return bind_all(eqn.primitive, operands, eqn.params)
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
