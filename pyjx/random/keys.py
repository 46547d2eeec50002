"""Key arrays: their dtype, the array class, and the primitives on them.

A key array of shape s is an array of `key<tag>[s]`; behind it is an array uint32[s + key_shape],
which the compiled program sees (`pyjx.engine.physical`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.arithmetic import on_results
from pyjx.core.array_type import Array, ArrayLike, AxisLike
from pyjx.core.avals import ShapedArray, array_aval, aval_makers, get_aval
from pyjx.core.explicit import Entries, agreed
from pyjx.core.layouts import ShardingLike
from pyjx.core.places import explicit_sharding, place_of
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.engine.axes import moveaxis
from pyjx.engine.rules import jvp_zero
from pyjx.engine.types import Avals, Dims, Rule, Value, Values
from pyjx.guards import guard
from pyjx.jaxlib_pytrees import of_calls
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.shapes import expand_dims
from pyjx.numpy import array_methods
from pyjx.random.implementations import PRNGImpl, over_axes, over_batch
from pyjx.runtime import flag_checks
from pyjx.runtime.array import ArrayImpl, DataArray, Shard, no_rows
from pyjx.runtime.device_put import device_put, put_handlers
from pyjx.runtime.transfers import array_from_host

_UINT32 = np.dtype(np.uint32)


@guard
class KeyTy(dtypes.ExtendedDType):
    """The dtype of keys of one generator."""

    __slots__ = ("_impl", "name")

    type = dtypes.prng_key

    def __init__(self, impl: PRNGImpl) -> None:
        self._impl = impl
        self.name = f"key<{impl.tag}>"

    @property
    def itemsize(self) -> int:
        return math.prod(self._impl.key_shape) * _UINT32.itemsize

    def __eq__(self, other: object) -> bool:
        return type(other) is KeyTy and other._impl is self._impl

    def __hash__(self) -> int:
        return hash((KeyTy, self._impl))

    def __reduce__(self) -> Any:
        return KeyTy, (self._impl,)

    def physical_aval(self, aval: ShapedArray) -> ShapedArray:
        return ShapedArray((*aval.shape, *self._impl.key_shape), _UINT32)

    def from_physical(self, data: Array) -> PRNGKeyArray:
        return PRNGKeyArray(self._impl, data)

    def filled(self, shape: tuple[int, ...], value: ArrayLike) -> Any:
        """A key array all of whose words are `value`."""
        data = np.full((*shape, *self._impl.key_shape), value, _UINT32)
        return random_wrap_p.bind(data, impl=self._impl)


def check_key_data(impl: PRNGImpl, data: Value | ShapedArray, cure: str = "") -> None:
    """TypeError, with this cure, unless `data` is an array of the data of keys."""
    shape, dtype = getattr(data, "shape", None), getattr(data, "dtype", None)
    if shape is None or dtype is None:
        if isinstance(data, int):
            cure = f" If that is a seed, make a key of it: jax.random.key({data})."
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data to have ndim, "
                        f"shape, and dtype attributes. Got {data}.{cure}")
    n = len(impl.key_shape)
    if len(shape) < n:
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data.ndim >= "
                        f"{n}; got ndim={len(shape)}.")
    if tuple(shape[len(shape) - n:]) != impl.key_shape:
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data.shape to end "
                        f"with {impl.key_shape}; got shape={tuple(shape)} for impl={impl!r}.")
    if dtype not in (_UINT32, dtypes.float0):
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; "
                        f"got dtype={dtype}.{cure}")


def _sharding_of_keys(impl: PRNGImpl, key_data: Array) -> Any:
    """What the type of keys says of how they lie, which that of their data says."""
    found = place_of(key_data).sharding
    if found is None:
        return None
    ndim = key_data.ndim - len(impl.key_shape)
    spec = found.spec.update(partitions=found.spec[:ndim])
    return explicit_sharding(found.mesh, spec, ndim)


def _unpickled(impl: PRNGImpl, key_data: Array) -> PRNGKeyArray:
    return PRNGKeyArray(impl, key_data)


@guard
class PRNGKeyArray(DataArray):
    """An array of random keys. Make them with `key`, `split` and `wrap_key_data`."""

    __slots__ = ("_consumed", "_impl")

    def __init__(self, impl: PRNGImpl, key_data: Array) -> None:
        check_key_data(impl, key_data)
        shape = key_data.shape
        self._impl = impl
        self._base_array = key_data
        self._consumed: Any = None  # which keys are (runtime/flag_checks.py)
        shape = shape[:len(shape) - len(impl.key_shape)]
        sharding = _sharding_of_keys(impl, key_data)
        self.aval = (array_aval(shape, KeyTy(impl)) if sharding is None else
                     ShapedArray(shape, KeyTy(impl), sharding=sharding))

    T = property(lambda self: self.transpose())

    def copy_to_host_async(self) -> None:
        self._base_array.copy_to_host_async()

    def copy(self) -> PRNGKeyArray:
        copied = PRNGKeyArray(self._impl, self._base_array.copy())
        if configuration.debug_key_reuse.value:
            copied._consumed = flag_checks.consumed(self)
        return copied

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> PRNGKeyArray:
        return self.copy()

    def addressable_data(self, index: int) -> PRNGKeyArray:
        return PRNGKeyArray(self._impl, self._base_array.addressable_data(index))

    @property
    def addressable_shards(self) -> list[Shard]:
        return list(map(self._shard, self._base_array.addressable_shards))

    @property
    def global_shards(self) -> list[Shard]:
        return list(map(self._shard, self._base_array.global_shards))

    def _shard(self, shard: Shard) -> Shard:
        """A part of the data as a part of the keys."""
        data = None if shard.data is None else PRNGKeyArray(self._impl, shard.data)
        return Shard(shard.device, shard.index[:self.ndim], shard.replica_id, data)

    def __reduce__(self) -> Any:
        return _unpickled, (self._impl, self._base_array)  # the class may be of a module of jax

    # -- indexing and shape: the same on the data, whose last axis stays ---------------------------

    def _of(self, function: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(jnp, function)(self, *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, tuple):
            index = (index,)
        consumed = sum([_axes_of(i) for i in index])
        if consumed > self.ndim:
            raise IndexError(f"Too many indices: {self.ndim}-dimensional array indexed with "
                             f"{consumed} regular index{'' if consumed == 1 else 'es'}.")
        if not any(i is Ellipsis for i in index):
            index = (*index, Ellipsis)
        out = self._with(self._base_array[(*index, slice(None))])
        if configuration.debug_key_reuse.value and not isinstance(out, Tracer):
            flag_checks.note_taken(self, index, out)
        return out

    def _with(self, data: Array) -> Any:
        """The keys of other data, which are known only while a function is traced if those are."""
        if isinstance(data, Tracer):
            return random_wrap_p.bind(data, impl=self._impl)
        return PRNGKeyArray(self._impl, data)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise no_rows(self.aval)
        return iter([self._with(row) for row in self._base_array])

    def reshape(self, *shape: Any, order: str = "C", out_sharding: ShardingLike = None) -> Any:
        new = shape[0] if len(shape) == 1 else shape
        return self._of("reshape", new, order)

    def ravel(self, order: str = "C", *, out_sharding: ShardingLike = None) -> Any:
        return self.reshape(-1, order=order)

    flatten = ravel

    def squeeze(self, axis: AxisLike = None) -> Any:
        return self._of("squeeze", axis)

    def transpose(self, *axes: Any) -> Any:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return self._of("transpose", order)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return self._of("swapaxes", axis1, axis2)

    def take(self, indices: ArrayLike, axis: int | None = None, *args: Any, **options: Any) -> Any:
        return self._of("take", indices, axis, *args, **options)

    def repeat(self, repeats: ArrayLike, axis: int | None = None, **options: Any) -> Any:
        return self._of("repeat", repeats, axis, **options)

    def to_device(self, device: Any, *, stream: Any = None) -> Any:
        return PRNGKeyArray(self._impl, self._base_array.to_device(device, stream=stream))

    @property
    def at(self) -> Any:
        return array_methods._at(self)

    def __pos__(self) -> PRNGKeyArray:
        return self

    # -- operators ---------------------------------------------------------------------------------

    __hash__ = None  # type: ignore[assignment]

    __array_priority__ = 100  # NumPy's arrays leave operators to keys, which refuse them

    def __bool__(self) -> bool:
        raise TypeError("key array cannot be converted to boolean.")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
        raise TypeError("JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use "
                        "jax.random.key_data(arr) if you wish to extract the underlying integer "
                        "array.")

    def __repr__(self) -> str:
        return (f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n"
                f"{np.asarray(self._base_array)}")

    __str__ = __repr__

    def pprint(self) -> str:
        """The shape and the generator, one attribute a line."""
        impl = self._impl
        names = ("key_shape", "seed", "split", "random_bits", "fold_in", "name", "tag")
        lines = [f"\n    {name} = {getattr(impl, name)}" for name in names]
        return (f"PRNGKeyArray:\n  shape = {self.shape}\n  "
                f"impl = PRNGImpl [{impl.tag}] {{{impl.name}}}:{''.join(lines)}")


def _has_not(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"Cannot call abstract method {name}: key arrays hold no "
                                  "numbers; jax.random.key_data(keys) gives the ones behind them.")

    method.__name__ = name
    return guard(method)


for _name in (*array_methods.FORWARDED, "astype", "byteswap", "compress", "item", "tolist", "view"):
    if _name not in vars(PRNGKeyArray):  # which moves keys
        setattr(PRNGKeyArray, _name, _has_not(_name))
for _name in ("imag", "mT", "real"):
    setattr(PRNGKeyArray, _name, property(_has_not(_name)))


def _put(keys: PRNGKeyArray, device: Any, donate: bool) -> PRNGKeyArray:
    return PRNGKeyArray(keys._impl, device_put(keys._base_array, device, donate=donate))


aval_makers[PRNGKeyArray] = lambda x: x.aval
of_calls.register_node(PRNGKeyArray, lambda keys: ((keys._base_array,), keys._impl),
                       lambda impl, data: PRNGKeyArray(impl, data[0]))
put_handlers[PRNGKeyArray] = _put


def _axes_of(index: Any) -> int:
    """How many axes one element of an index uses up."""
    if index is None or index is Ellipsis:
        return 0
    dtype = getattr(index, "dtype", None)
    return index.ndim if dtype is not None and dtype == np.bool_ else 1


# -- primitives ------------------------------------------------------------------------------------


def _impl_of(name: str, keys: ShapedArray) -> PRNGImpl:
    if type(keys.dtype) is not KeyTy:
        raise TypeError(f"{name} takes a key array, got {keys.str_short()}")
    return keys.dtype._impl


def _keys(impl: PRNGImpl, shape: tuple[int, ...]) -> ShapedArray:
    return ShapedArray(shape, KeyTy(impl))


def _leading(out: ShapedArray, *operands: ShapedArray, **params: Any) -> Entries:
    """The sharding rule of what is done for each key; what is one for all has no say."""
    types = " and ".join([a.str_short() for a in operands])
    entries = agreed([a for a in operands if a.ndim],
                     f"Keys and data should have the same sharding. Got types {types}.")
    return (*entries, *[None] * out.ndim)[:out.ndim]


def _primitive(name: str, shape_rule: Rule, physical: Rule, *, batch: Rule | None = None,
               impl: Rule | None = None) -> Primitive:
    """A primitive without derivatives, which works on leading axes of its operand anyway.

    `physical` is what it does to the data; `impl` what it does to concrete arrays where that only
    relabels them, so that no program is needed.
    """
    primitive = register(Primitive(name, shape_rule=shape_rule, physical=physical, impl=impl,
                                   sharding_rule=_leading))

    def batch_in_front(operands: Values, dims: Sequence[int], **params: Any) -> Any:
        return primitive.bind(moveaxis(operands[0], dims[0], 0), **params), 0

    return primitive.define(batch=batch or batch_in_front, jvp=jvp_zero(primitive))


def _seed(avals: Avals, seeds: Value, *, impl: PRNGImpl) -> Array:
    return over_batch(avals[0].ndim, impl.seed, seeds)


random_seed_p = _primitive("random_seed", lambda seeds, *, impl: _keys(impl, seeds.shape), _seed)


# Operations on keys say in which way threefry counts: as the flag was where they were called, which
# may be another way than where their program is lowered.


def counting(partitionable: bool | None) -> AbstractContextManager[Any]:
    """Within it the flag is as an operation's parameter says; None: as it is."""
    if partitionable is None or partitionable == configuration.threefry_partitionable.value:
        return nullcontext()
    return configuration.threefry_partitionable(partitionable)


def without(**values: Any) -> Rule:
    """The rule `printed` that leaves parameters out where they have one of these values."""
    return lambda params: [
        (k, v) for k, v in sorted(params.items()) if k not in values or v not in values[k]]


def _split_shape(keys: ShapedArray, *, shape: tuple[int, ...], partitionable: bool | None = None
                 ) -> ShapedArray:
    return _keys(_impl_of("random_split", keys), (*keys.shape, *shape))


def _split(avals: Avals, data: Value, *, shape: tuple[int, ...], partitionable: bool | None = None
           ) -> Array:
    impl = avals[0].dtype._impl
    with counting(partitionable):
        return over_batch(avals[0].ndim, lambda k: impl.split(k, shape), data)


random_split_p = _primitive("random_split", _split_shape, _split)
random_split_p.define(printed=without(partitionable=(True, False, None)))


def split_keys(keys: Value, shape: tuple[int, ...]) -> Array:
    return random_split_p.bind(keys, shape=shape,
                               partitionable=configuration.threefry_partitionable.value)


def _bits_shape(keys: ShapedArray, *, bit_width: int, shape: tuple[int, ...], fused: bool = False,
                partitionable: bool | None = None) -> ShapedArray:
    _impl_of("random_bits", keys)
    return ShapedArray((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))


def _bits(avals: Avals, data: Value, *, bit_width: int, shape: tuple[int, ...], fused: bool = False,
          partitionable: bool | None = None) -> Array:
    impl = avals[0].dtype._impl
    draw = impl.fused_bits if fused else impl.random_bits
    with counting(partitionable):
        return over_batch(avals[0].ndim, lambda k: draw(k, bit_width, shape), data)


random_bits_p = _primitive("random_bits", _bits_shape, _bits)
# 20 rounds of threefry give two words, with three operations each.
random_bits_p.define(
    arithmetic=lambda eqn: (60 * on_results(eqn), 0.0),
    printed=without(fused=(False,), partitionable=(True, False, None)))


def draw_bits(keys: Value, bit_width: int, shape: tuple[int, ...], fused: bool) -> Array:
    return random_bits_p.bind(keys, bit_width=bit_width, shape=shape, fused=fused,
                              partitionable=configuration.threefry_partitionable.value)


def _fold_in_shape(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    impl = _impl_of("random_fold_in", keys)
    if data.dtype != _UINT32:
        raise TypeError(f"random_fold_in requires data of dtype uint32, got {data.str_short()}")
    if keys.ndim and data.ndim and keys.ndim != data.ndim:
        raise TypeError("random_fold_in requires keys and data of one rank, or a single one, got "
                        f"the shapes {keys.shape} and {data.shape}")
    return _keys(impl, broadcast_shapes(keys.shape, data.shape))


def _fold_in(avals: Avals, data: Value, values: Value) -> Array:
    return over_axes([aval.shape for aval in avals], avals[0].dtype._impl.fold_in, data, values)


def _fold_in_batch(operands: Values, dims: Dims) -> Any:
    """What is not batched stays one for all: rbg makes other bits of many words than of one."""
    rank = max([get_aval(x).ndim - (d is not None) for x, d in zip(operands, dims, strict=True)])

    def aligned(x: Any, d: int | None) -> Array:
        if d is None:
            return expand_dims(x, (0,)) if get_aval(x).ndim else x
        missing = rank + 1 - get_aval(x).ndim
        return expand_dims(moveaxis(x, d, 0), range(1, 1 + missing))

    return random_fold_in_p.bind(*map(aligned, operands, dims)), 0


random_fold_in_p: Primitive = _primitive("random_fold_in", _fold_in_shape, _fold_in,
                                         batch=_fold_in_batch)


def _wrap_shape(data: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    check_key_data(impl, data)
    return _keys(impl, data.shape[:data.ndim - len(impl.key_shape)])


random_wrap_p = _primitive("random_wrap", _wrap_shape, lambda avals, data, *, impl: data,
                           impl=lambda data, *, impl: PRNGKeyArray(
                               impl, data if type(data) is ArrayImpl else array_from_host(data)))


def _unwrap_shape(keys: ShapedArray) -> ShapedArray:
    _impl_of("random_unwrap", keys)
    return keys.dtype.physical_aval(keys)  # type: ignore[no-any-return]


random_unwrap_p = _primitive("random_unwrap", _unwrap_shape, lambda avals, data: data,
                             impl=lambda keys: keys._base_array)


def _clone_shape(keys: ShapedArray) -> ShapedArray:
    _impl_of("random_clone", keys)
    return keys


random_clone_p = _primitive("random_clone", _clone_shape, lambda avals, data: data,
                            impl=lambda keys: PRNGKeyArray(keys._impl, keys._base_array.copy()))


def is_eager(*values: Any) -> bool:
    """Whether operations on `values` run at once."""
    return state.dynamic is eager_trace and not any([isinstance(x, Tracer) for x in values])
