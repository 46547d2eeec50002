"""Making keys and deriving others from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike, KeyLike
from pyjx.core.avals import ShapedArray, get_aval, is_valid_value
from pyjx.core.bounded import BoundedDict
from pyjx.core.frames import warn
from pyjx.core.integers import as_int, as_shape, as_sizes
from pyjx.core.layouts import ShardingLike
from pyjx.core.scalars import scalar_constant
from pyjx.core.specs import PartitionSpec
from pyjx.core.trace import eager_trace, state
from pyjx.core.value_texts import shortened
from pyjx.engine.types import Value
from pyjx.guards import guard
from pyjx.random.implementations import (
    PRNGImpl,
    PRNGSpec,
    _rbg_seed,
    implementation,
    implementations,
    threefry_seed,
)
from pyjx.random.keys import (
    KeyTy,
    PRNGKeyArray,
    check_key_data,
    draw_bits,
    is_eager,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_unwrap_p,
    random_wrap_p,
    split_keys,
)
from pyjx.runtime.operations import op_jit
from pyjx.runtime.resharding import placed
from pyjx.runtime.resharding import placed_result as placed_result
from pyjx.runtime.sharding import NamedSharding
from pyjx.runtime.transfers import array_from_numpy

_UINT32 = np.dtype(np.uint32)

# -- which generator -------------------------------------------------------------------------------


def default_implementation() -> PRNGImpl:
    return implementation(configuration.default_prng_impl.value)


def resolve(impl: Any) -> PRNGImpl:
    """The generator that an `impl` argument stands for: None, a name, a specification, or the
    dtype of keys.

    Raises:
      ValueError: there is no generator with this name.
      TypeError: it is something else.
    """
    if impl is None:
        return default_implementation()
    if type(impl) is PRNGImpl:
        return impl
    if type(impl) is KeyTy or type(impl) is PRNGSpec:
        return impl._impl
    if isinstance(impl, str):
        return implementation(impl)
    raise TypeError(f"unrecognized type {type(impl)} for specifying PRNG implementation.")


def _one_of(function: str, impl: Any, dtype: Any) -> PRNGImpl:
    """The generator that one of two arguments stands for."""
    if impl is not None and dtype is not None:
        raise ValueError("Cannot specify both `impl` and `dtype` arguments to jax.random."
                         f"{function}")
    return resolve(dtype if impl is None else impl)


def key_dtype(impl_spec: Any = None) -> KeyTy:
    """The dtype of the keys of a generator.

    Args:
      impl_spec: the generator: its name, such as "threefry2x32", or what `key_impl` gives; by
        default the one of the flag `jax_default_prng_impl`.

    >>> import pyjx as jax
    >>> jax.random.key_dtype()
    key<fry>
    """
    return KeyTy(resolve(impl_spec))


# -- keys as arguments -----------------------------------------------------------------------------


def is_key(x: Any) -> bool:
    return dtypes.is_extended(getattr(x, "dtype", None))


def check_key(name: str, key: Any, *, scalar: bool = True) -> tuple[Any, bool]:
    """The key array that an argument stands for, and whether it was given as raw data.

    Raises:
      TypeError: it is neither a key array nor uint32 data of the default generator's keys.
      ValueError: it has more than one key and `scalar` asks for one.
    """
    if is_key(key):
        raw = False
        keys = key
    elif hasattr(key, "dtype") or isinstance(key, (int, float, complex)):
        impl = default_implementation()
        try:
            check_key_data(impl, key)
        except TypeError as error:
            cure = " Keys are made by jax.random.key(seed)." * hasattr(key, "dtype")
            if getattr(key, "dtype", None) == np.uint32:
                cure = (f" A raw key has the shape {impl.key_shape}: to map over keys, split one "
                        "by jax.random.split(key, n).")
            raise TypeError(f"{error}{cure}") from None
        _check_legacy()
        keys = random_wrap_p.bind(key, impl=impl)
        raw = True
    else:
        raise TypeError(f"{name}: unexpected PRNG key type {type(key)}. A key is made of a seed by "
                        "jax.random.key(seed).")
    if scalar and keys.ndim:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape "
                         f"{tuple(key.shape)} != (). Use jax.vmap for batching.")
    return keys, raw


def _check_legacy() -> None:
    mode = configuration.legacy_prng_key.value
    if mode == "allow":
        return
    message = ("Legacy uint32 key array passed as key to jax.random function. Please create keys "
               "using `jax.random.key`. If use of a raw key array was intended, set "
               "jax_legacy_prng_key='allow'.")
    if mode == "error":
        raise ValueError(message)
    warn(message)


# -- one compiled call -----------------------------------------------------------------------------


def on_key(*static: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function `(key, *arrays, **static)` one compiled call, of a batch or of a derivative
    that is computed at once, too.

    The compiled program takes the key's data, since C++ passes on no other arrays; a key array
    that is the result comes back as data too. While a program is recorded the function itself
    runs.
    """
    def decorate(core: Callable[..., Any]) -> Callable[..., Any]:
        def on_data(data: Value, *arrays: Value, impl: PRNGImpl, **options: Any) -> Array:
            out = core(random_wrap_p.bind(data, impl=impl), *arrays, **options)
            return random_unwrap_p.bind(out) if is_key(out) else out

        on_data.__name__ = core.__name__
        compiled = op_jit(on_data, static_argnames=("impl", *static))
        bounded = guard(core)  # errors of keys used twice, without the library's frames

        def call(key: Any, *arrays: Value, **options: Any) -> Array:
            if state.dynamic is not eager_trace:
                return core(key, *arrays, **options)
            if configuration.debug_key_reuse.value:
                return bounded(key, *arrays, **options)
            if type(key) is PRNGKeyArray:
                return compiled(key._base_array, *arrays, impl=key._impl, **options)
            return compiled(random_unwrap_p.bind(key), *arrays, impl=key.dtype._impl, **options)

        call.__name__ = core.__name__
        return call

    return decorate


def _as_given(new: Any, impl: PRNGImpl, raw: bool) -> Any:
    """New keys, or their data, in the form in which the key was given."""
    if is_key(new):
        return random_unwrap_p.bind(new) if raw else new
    return new if raw else random_wrap_p.bind(new, impl=impl)


# -- making keys -----------------------------------------------------------------------------------


def _host_key(impl: PRNGImpl, seed: int, bits: int) -> np.ndarray[Any, Any] | None:
    """The data of the key of a seed, where it is known without running a program."""
    words = [seed >> 32 & 0xFFFFFFFF if bits == 64 else 0, seed & 0xFFFFFFFF]
    if impl.seed is threefry_seed:
        return np.array(words, _UINT32)
    if impl.seed is _rbg_seed:
        return np.array(words * 2, _UINT32)
    return None


@op_jit(static_argnames=("impl",))
def _seed(seed: ArrayLike, *, impl: PRNGImpl) -> Any:
    return random_unwrap_p.bind(random_seed_p.bind(seed, impl=impl))


def _seeded(name: str, seed: Any, impl: PRNGImpl) -> Any:
    """The key of a seed: key data where it runs at once, else a traced key array."""
    if is_key(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if isinstance(seed, int) and not isinstance(seed, np.generic):
        seed = np.int64(seed)  # OverflowError beyond 64 bits
    seed = np.asarray(seed) if isinstance(seed, (list, tuple)) else seed
    if not is_valid_value(seed):
        raise TypeError(f"{name}: PRNG key seed must be an integer; got {shortened(seed)} of type "
                        f"{type(seed)}, which is not a valid JAX type")
    aval = get_aval(seed)
    if aval.shape:
        raise TypeError(f"{name} accepts a scalar seed, but was given an array of shape "
                        f"{aval.shape} != (). Use jax.vmap for batching")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {shortened(seed)}")
    offset = configuration.random_seed_offset.value
    if isinstance(seed, (np.generic, np.ndarray)):
        seed = np.asarray(seed).astype(aval.dtype)
        if offset:
            seed = (seed.astype(np.int64) + offset).astype(aval.dtype)
        seed = seed[()]
        if is_eager():
            data = _host_key(impl, int(seed), aval.dtype.itemsize * 8)
            if data is not None:
                out = array_from_numpy(data, ShapedArray(data.shape, _UINT32), alias=True)
                mesh = configuration.mesh.value
                return out if mesh is None else placed(out, NamedSharding(mesh, PartitionSpec()))
    elif offset:
        seed = lax.add(seed, scalar_constant(offset, aval.dtype))
    if is_eager(seed):
        return _seed(seed, impl=impl)
    return random_seed_p.bind(seed, impl=impl)


def key(seed: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """A random key from an integer seed.

    Args:
      seed: an integer scalar.
      impl: the generator: None (the flag `jax_default_prng_impl`), a name such as "threefry2x32"
        or "rbg", or the dtype of keys.
      dtype: the same as a dtype; only one of both may be given.

    Raises:
      TypeError: the seed is no integer, or an array of several.
      ValueError: there is no such generator.

    >>> import pyjx as jax
    >>> jax.random.key(42)
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]

    One seed is enough for a program: other keys are made of its key by `split` and `fold_in`.

    >>> key, subkey = jax.random.split(jax.random.key(0))
    >>> jax.random.uniform(subkey, (2,)).shape
    (2,)
    """
    chosen = _one_of("key", impl, dtype)
    made = _seeded("key", seed, chosen)
    return made if is_key(made) else random_wrap_p.bind(made, impl=chosen)


Key = key


def PRNGKey(seed: ArrayLike, *, impl: Any = None) -> Array:
    """The data of `key(seed)`, as functions of this module also take it: an array of uint32; the
    key itself where the flag `jax_enable_custom_prng` is set.

    Args:
      seed: an integer, a Python one or a scalar array; of which the low 32 bits count, or all 64
        with 64-bit types on.
      impl: the generator, by name, as for `key`.

    >>> import pyjx as jax
    >>> jax.random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    made = _seeded("PRNGKey", seed, resolve(impl))
    if configuration.enable_custom_prng.value:
        return made if is_key(made) else wrap_key_data(made, impl=impl)
    return random_unwrap_p.bind(made) if is_key(made) else made


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: DTypeLike | None = None
                 ) -> Array:
    """The key array of key data, whose last axis is that of a key's words.

    Args:
      key_bits_array: unsigned integers, such as `key_data` gives: uint32 of shape (..., 2) for
        threefry2x32.
      impl: the generator whose keys they are, by name; by default the one of the flag
        `jax_default_prng_impl`.
      dtype: the dtype of keys, in the place of `impl`.

    Raises:
      TypeError: the data is not of the generator's keys.

    >>> import pyjx as jax
    >>> jax.random.wrap_key_data(jax.random.key_data(jax.random.key(1))) == jax.random.key(1)
    Array(True, dtype=bool)
    """
    chosen = _one_of("wrap_key_data", impl, dtype)
    check_key_data(chosen, key_bits_array, " Make it by jnp.array(words, dtype=jnp.uint32).")
    return random_wrap_p.bind(key_bits_array, impl=chosen)


def key_data(keys: KeyLike) -> Array:
    """The uint32 data of a key array.

    Args:
      keys: a key, or an array of keys.

    >>> import pyjx as jax
    >>> jax.random.key_data(jax.random.key(42))
    Array([ 0, 42], dtype=uint32)
    """
    wrapped, _ = check_key("key_data", keys, scalar=False)
    return random_unwrap_p.bind(wrapped)


def key_impl(keys: KeyLike) -> str | PRNGSpec:
    """What `impl=` says for the generator of a key array: its name, or the specification of one
    that the program defines.

    Args:
      keys: a key, or an array of keys.

    >>> import pyjx as jax
    >>> jax.random.key_impl(jax.random.key(0))
    'threefry2x32'
    """
    wrapped, _ = check_key("key_impl", keys, scalar=False)
    impl: PRNGImpl = wrapped.dtype._impl
    return impl.name if implementations.get(impl.name) is impl else PRNGSpec(impl)


def clone(key: KeyLike) -> Array:
    """The same key, for use once more where the reuse of keys is checked.

    Args:
      key: a key, or an array of keys.

    >>> import pyjx as jax
    >>> jax.random.clone(jax.random.key(42))
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]
    """
    wrapped, raw = check_key("clone", key, scalar=False)
    new = random_clone_p.bind(wrapped)
    return random_unwrap_p.bind(new) if raw else new


# -- deriving keys and bits ------------------------------------------------------------------------


# The C++ callable on a key's data, by generator and number of keys.
_splits = BoundedDict(1024, "programs that split keys")


def _split_data(impl: PRNGImpl, num: int) -> Callable[[Any], Any]:
    def split_data(data: Value) -> Array:
        keys = split_keys(random_wrap_p.bind(data, impl=impl), (num,))
        return random_unwrap_p.bind(keys)

    return op_jit(split_data)


@on_key("shape")
def _split(key: KeyLike, *, shape: tuple[int, ...]) -> Array:
    return split_keys(key, shape)


def split(key: KeyLike, num: int | tuple[int, ...] = 2) -> Array:
    """New keys, which are independent of each other and of `key`.

    Args:
      key: a key.
      num: how many, or the shape of the result.

    Raises:
      ValueError: `key` is an array of several keys.

    >>> import pyjx as jax
    >>> jax.random.split(jax.random.key(42), 3).shape
    (3,)

    A key for each of five layers, or for each example of a batch:

    >>> keys = jax.random.split(jax.random.key(0), 5)
    >>> jax.vmap(lambda k: jax.random.normal(k, (3,)))(keys).shape
    (5, 3)
    """
    if (type(key) is PRNGKeyArray and not key.aval.shape and type(num) is int and num >= 0
            and is_eager(key._base_array)  # the usual call, without the checks of others
            and not configuration.debug_key_reuse.value):
        known = _splits.get((key._impl, num))
        if known is None:
            known = _splits[key._impl, num] = _split_data(key._impl, num)
        return PRNGKeyArray(key._impl, known(key._base_array))
    wrapped, raw = check_key("split", key)
    shape = (as_shape("split", "num", num) if isinstance(num, (tuple, list))
             else (as_int("split", "num", num),))
    if any(n < 0 for n in shape):
        raise ValueError(f"split: num must not be negative, got {num}")
    return _as_given(_split(wrapped, shape=shape), wrapped.dtype._impl, raw)


def split_traced(key: KeyLike, num: int = 2) -> list[Any]:
    """The single keys of `split`, within an operation on a key."""
    return list(lax.unstack(split_keys(key, (num,))))


@on_key()
def _fold_in(key: KeyLike, data: Value) -> Array:
    return random_fold_in_p.bind(key, data)


def fold_in(key: KeyLike, data: ArrayLike) -> Array:
    """A new key for each integer.

    Args:
      key: a key.
      data: an integer scalar of 32 bits.

    Raises:
      TypeError: `data` is an array.
      ValueError: `key` is an array of several keys, or `data` is nan.
      OverflowError: `data` is negative, infinite or above 32 bits.

    >>> import pyjx as jax
    >>> bool(jax.random.fold_in(jax.random.key(42), 1) == jax.random.fold_in(jax.random.key(42), 2))
    False

    In a loop it is simpler than `split`: the key of a step is a function of its number.

    >>> key = jax.random.key(0)
    >>> [int(jax.random.randint(jax.random.fold_in(key, i), (), 0, 10)) for i in range(3)] == [
    ...     int(jax.random.randint(jax.random.fold_in(key, i), (), 0, 10)) for i in range(3)]
    True
    """
    wrapped, raw = check_key("fold_in", key)
    if type(data) is int or isinstance(data, float):
        try:
            data = np.uint32(int(data))
        except (ValueError, OverflowError) as error:
            raise type(error)(f"fold_in: data must be of uint32, got {data} ({error})") from None
    else:
        if not is_valid_value(data) or dtypes.issubdtype(get_aval(data).dtype, np.complexfloating):
            raise TypeError(f"fold_in: data must be an integer, got {shortened(data)} of type "
                            f"{type(data)}."
                            + " Of a name one is zlib.crc32(name.encode())."
                            * (type(data).__name__ == "str"))
        shape = get_aval(data).shape
        if shape:
            raise TypeError("fold_in accepts a scalar, but was given an array of "
                            f"shape {shape} != (). Use jax.vmap for batching.")
        data = lax.convert_element_type(data, _UINT32)
    return _as_given(_fold_in(wrapped, data), wrapped.dtype._impl, raw)


@on_key("shape", "dtype")
def _bits(key: KeyLike, *, shape: tuple[int, ...], dtype: dtypes.DType) -> Array:
    return draw_bits(key, dtype.itemsize * 8, shape, True)


def bits(key: KeyLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
         out_sharding: ShardingLike = None) -> Array:
    """Uniform random bits.

    Args:
      key: a key.
      shape: of the result.
      dtype: an unsigned integer dtype; by default the one of the flag `jax_enable_x64`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the dtype is another one.

    >>> import pyjx as jax
    >>> jax.random.bits(jax.random.key(42), (2,), "uint8").dtype
    dtype('uint8')
    """
    wrapped, _ = check_key("bits", key)
    dtype = dtypes.check_and_canonicalize_user_dtype(
        dtypes.default_uint_dtype() if dtype is None else dtype)
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        raise ValueError("dtype argument to `bits` must be an unsigned int dtype, got "
                         f"{dtypes.name(dtype)}")
    shape = as_sizes("bits", "shape", shape)
    return placed_result(_bits(wrapped, shape=shape, dtype=dtype), out_sharding, "bits")
