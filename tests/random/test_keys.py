"""Keys and key arrays."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx import random

pytestmark = [pytest.mark.gpu, pytest.mark.smoke]

KEY = random.key(42)
KEYS = random.split(KEY, 3)


def test_known_keys() -> None:
    assert repr(KEY) == "Array((), dtype=key<fry>) overlaying:\n[ 0 42]"
    text = KEY.pprint()
    assert text.startswith("PRNGKeyArray:\n  shape = ()\n  impl = PRNGImpl [fry] {threefry2x32}:")
    assert text.endswith("name = threefry2x32\n    tag = fry")
    np.testing.assert_array_equal(
        random.key_data(KEYS),
        [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]])
    np.testing.assert_array_equal(random.fold_in(random.PRNGKey(0), 7), [2716826189, 292468403])


@pytest.mark.parametrize("seed, words", [
    (0, [0, 0]), (7, [0, 7]), (-1, [0, 2**32 - 1]), (2**40 + 5, [0, 5]), (True, [0, 1]),
    (np.uint32(2**32 - 1), [0, 2**32 - 1]), (np.int8(-3), [0, 2**32 - 3]),
])
def test_seeds(seed: Any, words: list[int]) -> None:
    assert random.PRNGKey(seed).tolist() == words
    assert jax.jit(lambda: random.PRNGKey(seed))().tolist() == words
    assert random.key_data(random.key(seed, impl="rbg")).tolist() == words * 2


def test_seeds_of_64_bits() -> None:
    with jax.enable_x64(True):
        assert random.PRNGKey(2**40 + 5).tolist() == [256, 5]
        assert random.PRNGKey(-1).tolist() == [2**32 - 1, 2**32 - 1]


def test_dtype() -> None:
    dtype = KEY.dtype
    assert (dtype.name, dtype.itemsize, str(dtype)) == ("key<fry>", 8, "key<fry>")
    assert dtype == random.key_dtype() == random.key(1).dtype
    assert dtype != random.key_dtype("rbg")
    assert hash(dtype) == hash(random.key_dtype("threefry2x32"))
    assert jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)
    assert jax.dtypes.issubdtype(dtype, jax.dtypes.extended)
    assert not jax.dtypes.issubdtype(dtype, np.integer)
    assert random.key_impl(KEY) == "threefry2x32"
    assert random.key_impl(random.key(0, impl="unsafe_rbg")) == "unsafe_rbg"


def test_array() -> None:
    assert isinstance(KEYS, jax.Array)
    assert (KEYS.shape, KEYS.ndim, KEYS.size, len(KEYS)) == ((3,), 1, 3, 3)
    assert KEYS.nbytes == 24
    assert [k.shape for k in KEYS] == [()] * 3
    assert KEYS[1:].shape == (2,)
    assert KEYS[None].shape == (1, 3)
    assert KEYS[..., 0].shape == ()
    assert KEYS[jnp.array([2, 0])].shape == (2,)
    assert KEYS.reshape(3, 1).T.shape == (1, 3)
    assert (KEYS == KEYS).tolist() == [True] * 3
    assert (KEYS[::-1] != KEYS).tolist() == [True, False, True]
    assert bool(KEYS.at[0].set(KEY)[0] == KEY)
    assert jax.tree_util.tree_leaves({"a": KEY})[0] is KEY
    assert jax.device_get(KEY) is KEY
    assert bool(jax.device_put(KEY) == KEY)
    assert bool(pickle.loads(pickle.dumps(KEY)) == KEY)
    assert bool(copy.deepcopy(KEY) == KEY)
    assert jnp.zeros_like(KEYS).shape == (3,)


def test_structural_operations() -> None:
    data = np.asarray(random.key_data(KEYS))

    def check(fun: Any, want: np.ndarray) -> None:
        for f in (fun, jax.jit(fun)):
            np.testing.assert_array_equal(random.key_data(f(KEYS)), want)

    check(lambda k: jnp.concatenate([k, k[:1]]), np.concatenate([data, data[:1]]))
    check(lambda k: jnp.stack([k, k], 1), np.stack([data, data], 1))
    check(lambda k: k.reshape(1, 3), data.reshape(1, 3, 2))
    check(lambda k: k[::-1], data[::-1])
    check(lambda k: jnp.where(jnp.array([True, False, True]), k, k[::-1]),
          np.where(np.array([[True], [False], [True]]), data, data[::-1]))
    check(lambda k: jnp.broadcast_to(k, (2, 3)), np.broadcast_to(data, (2, 3, 2)))
    check(lambda k: k[jnp.array([2, 2])], data[[2, 2]])
    check(lambda k: jnp.expand_dims(k, 1), data[:, None])
    check(lambda k: jnp.transpose(k.reshape(3, 1)), data.reshape(1, 3, 2))


def test_split_shapes() -> None:
    assert random.split(KEY, (2, 3)).shape == (2, 3)
    assert random.split(KEY, 0).shape == (0,)
    assert random.split(random.PRNGKey(0), 4).shape == (4, 2)
    flat = random.key_data(random.split(KEY, 6)).reshape(2, 3, 2)
    np.testing.assert_array_equal(random.key_data(random.split(KEY, (2, 3))), flat)


def test_through_jit_and_vmap() -> None:
    a, b = jax.jit(random.split)(KEY)
    assert isinstance(a, jax.Array)
    assert not bool(a == b)
    nested = jax.jit(lambda k: jax.jit(lambda q: random.fold_in(q, 3))(k))(KEY)
    assert bool(nested == random.fold_in(KEY, 3))
    folded = jax.vmap(random.fold_in, (None, 0))(KEY, jnp.arange(3))
    assert [bool(f == random.fold_in(KEY, i)) for i, f in enumerate(folded)] == [True] * 3
    made = jax.vmap(random.key)(jnp.arange(3))
    assert bool((made == jnp.stack([random.key(i) for i in range(3)])).all())
    closed_over = jax.jit(lambda: random.normal(KEY))()
    assert closed_over == random.normal(KEY)
    assert jax.eval_shape(random.split, KEY).dtype == KEY.dtype


def test_jaxpr() -> None:
    text = str(jax.make_jaxpr(lambda k: random.bits(random.split(k)[0], (3,)))(KEY))
    assert "random_split[shape=(2,)]" in text
    assert "random_bits[bit_width=32 fused=True shape=(3,)]" in text
    assert "a:key<fry>[]" in text
    assert "random_wrap[impl=fry]" in str(jax.make_jaxpr(random.normal)(random.PRNGKey(0)))


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_generators_of_xla(impl: str) -> None:
    k = random.key(5, impl=impl)
    assert random.key_data(k).tolist() == [0, 5, 0, 5]
    a, b = random.split(k)
    assert not bool(a == b)
    assert not bool(random.fold_in(k, 1) == random.fold_in(k, 2))
    x = np.asarray(random.normal(k, (4000,)))
    assert abs(x.mean()) < 0.1
    assert abs(x.std() - 1) < 0.1
    np.testing.assert_array_equal(x, random.normal(k, (4000,)))
    assert random.bits(k, (3,), "uint8").dtype == np.uint8
    assert jax.vmap(lambda q: random.uniform(q, (3,)))(random.split(k, 2)).shape == (2, 3)
    with pytest.raises(IndexError, match="index is out of bounds for axis 0 with size 0"):
        jax.vmap(random.bits)(random.split(k, 0))


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_one_number_for_many_keys_is_drawn_once(impl: str) -> None:
    # XLA's generator gives a batch of words other bits than each word: one stays one, as in JAX.
    keys = random.split(random.key(3, impl=impl), 6)
    want = jnp.stack([random.fold_in(k, 3) for k in keys])
    fold = jax.vmap(random.fold_in, (0, None))
    assert bool((fold(keys, 3) == want).all())
    assert bool((jax.jit(fold)(keys, 3) == want).all())
    nested = jax.vmap(fold, (0, None))(keys.reshape(2, 3), 3)
    assert bool((nested == want.reshape(2, 3)).all())
    grid = jax.vmap(fold, (None, 0))(keys, jnp.arange(3))
    along = jax.vmap(random.fold_in, (None, 0))(keys[1], jnp.arange(3))
    assert bool((grid[:, 1] == along).all())
    swapped = jax.vmap(jax.vmap(random.fold_in, (None, 0)), (0, None))(keys, jnp.arange(3))
    assert bool((swapped == grid.T).all())


@pytest.mark.parametrize("impl, words, bits", [
    ("philox2x32", [0x82C00340], [0x53157AE9, 0x2D9F6FFA]),
    ("philox4x32", [0x6B62C75A, 0x173E265E], [0x59344115, 0x3EFBA955]),
    ("threefry4x32", [0xF9DEA2D6, 0xEF172DC7, 0xDCE2C754, 0x988BE96A], [0x366DC8B4, 0x60DA518F]),
])
def test_other_ciphers(impl: str, words: list[int], bits: list[int]) -> None:
    k = random.key(7, impl=impl)
    assert random.key_data(k).tolist() == words
    assert random.bits(k, (2,)).tolist() == bits
    keys = random.split(k, 3)
    assert bool(random.fold_in(k, 2) == keys[2])
    batched = jax.vmap(lambda q: random.bits(q, (4,)))(keys)
    np.testing.assert_array_equal(batched[1], random.bits(keys[1], (4,)))
    x = np.asarray(random.uniform(k, (4000,)))
    assert abs(x.mean() - 0.5) < 0.02


def test_default_generator() -> None:
    with jax.default_prng_impl("rbg"):
        assert random.PRNGKey(0).shape == (4,)
        assert random.key_impl(random.key(0)) == "rbg"
        assert random.normal(random.PRNGKey(0), (2,)).shape == (2,)


def test_legacy_keys() -> None:
    raw = random.PRNGKey(0)
    with jax.legacy_prng_key("error"), pytest.raises(ValueError, match="Legacy uint32 key"):
        random.normal(raw)
        for bad in (jnp.zeros(3), jnp.zeros(1, "uint32"), jnp.zeros(2), 3):
            with pytest.raises(TypeError, match="invalid PRNG key data"):
                random.normal(bad)
    with jax.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy uint32 key"):
        random.normal(raw)


@pytest.mark.parametrize("call, error, text", [
    (lambda: random.key(0, impl="foo"), ValueError, 'unrecognized PRNG implementation "foo"'),
    (lambda: random.key(0, impl=3), TypeError, "unrecognized type <class 'int'>"),
    (lambda: random.key(1.0), TypeError, "PRNG key seed must be an integer"),
    (lambda: random.key(np.bool_(True)), TypeError, "PRNG key seed must be an integer"),
    (lambda: jax.jit(random.key)(True), TypeError, "PRNG key seed must be an integer"),
    (lambda: random.key(np.array([1, 2])), TypeError, "key accepts a scalar seed"),
    (lambda: random.key(KEY), TypeError, "was given a PRNG key"),
    (lambda: random.PRNGKey(2**63), OverflowError, "too large"),
    (lambda: random.split(KEYS), ValueError, "split accepts a single key"),
    (lambda: random.split(KEY, 2.0), TypeError, "cannot be interpreted as an integer"),
    (lambda: random.fold_in(KEY, jnp.arange(2)), TypeError, "fold_in accepts a scalar"),
    (lambda: random.fold_in(KEY, 1j), TypeError, "data must be an integer, got 1j"),
    (lambda: random.fold_in(KEY, -1), OverflowError, "out of bounds for uint32"),
    (lambda: random.fold_in(KEY, -1.5), OverflowError, "fold_in: data must be of uint32, got -1.5"),
    (lambda: random.fold_in(KEY, float("inf")), OverflowError, "got inf"),
    (lambda: random.fold_in(KEY, np.float64("nan")), ValueError, "got nan"),
    (lambda: random.wrap_key_data(jnp.zeros((3, 3), "uint32")), TypeError,
     r"expected key_data.shape to end with \(2,\); got shape=\(3, 3\)"),
    (lambda: random.wrap_key_data(jnp.zeros((), "uint32")), TypeError, "key_data.ndim >= 1"),
    (lambda: random.wrap_key_data(jnp.zeros((3, 2))), TypeError, "expected key_data.dtype"),
    (lambda: np.asarray(KEY), TypeError, "cannot be converted to a NumPy array"),
    (lambda: bool(KEY), TypeError, "key array cannot be converted to boolean"),
    (lambda: len(KEY), TypeError, "unsized"),
    (lambda: hash(KEY), TypeError, "unhashable type"),
    (lambda: KEY + 1, TypeError, "add does not accept dtypes key<fry>, int32"),
    (lambda: np.ones(2) - KEY, TypeError, "subtract does not accept dtypes float32, key<fry>"),
    (lambda: jax.jit(lambda k: k << 1)(KEY), TypeError, "left_shift does not accept dtypes key<f"),
    (lambda: KEY % KEY, TypeError, "remainder does not accept dtypes key<fry>, key<fry>"),
    (lambda: -KEY, TypeError, "neg does not accept dtype key<fry>"),
    (lambda: KEY + "a", TypeError, "unsupported operand type.*'PRNGKeyArray' and 'str'"),
    (lambda: None * KEY, TypeError, "unsupported operand type.*'NoneType' and 'PRNGKeyArray'"),
    (lambda: KEY == (1,), TypeError, "unsupported operand type.*'PRNGKeyArray' and 'tuple'"),
    (lambda: KEYS[0, 0], IndexError, "Too many indices"),
])
def test_bad_input(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_literals_beside_keys_keep_the_type_that_they_were_recorded_with():
    with jax.enable_x64(True):
        traced = jax.jit(lambda k, x: (k, x * 2.5)).trace(jax.random.key(0), np.float64(1))
    assert "tensor<f64>" in traced.lower().as_text()


def test_a_known_array_of_keys_is_indexed_while_tracing():
    keys = jax.random.split(jax.random.key(0), 4)
    want = [jax.random.uniform(k) for k in keys]

    def total(first):
        return jax.lax.fori_loop(first, 4, lambda i, c: c + jax.random.uniform(keys[i]), 0.0)

    assert np.allclose(jax.jit(total)(0), sum(want))
    assert np.allclose(total(1), sum(want[1:]))
    assert jax.jit(lambda: jax.random.uniform(keys[2]))() == want[2]
    assert jax.jit(lambda: jnp.stack([jax.random.uniform(k) for k in keys]))().tolist() == want
    assert (jax.vmap(lambda i: jax.random.uniform(keys[i]))(jnp.arange(4)) == jnp.stack(want)).all()
    body = jax.jit(lambda i: keys[i])(3)
    assert body == keys[3]


def test_keys_are_close_where_they_are_equal() -> None:
    keys = random.split(random.key(0))
    assert jnp.isclose(keys, keys[0]).tolist() == [True, False]
    assert jnp.allclose(keys, keys) and not jnp.allclose(keys[0], keys[1])


@pytest.mark.parametrize("method", ["all", "cumsum", "dot", "round", "searchsorted", "byteswap"])
def test_keys_have_no_methods_of_numbers(method):
    keys = jax.random.split(jax.random.key(0), 2)
    with pytest.raises(NotImplementedError, match=f"method {method}: key arrays hold no numbers"):
        getattr(keys, method)(keys)


@pytest.mark.parametrize("name", ["real", "imag", "mT"])
def test_keys_have_no_attributes_of_numbers(name):
    with pytest.raises(NotImplementedError, match=f"Cannot call abstract method {name}"):
        getattr(jax.random.key(0), name)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_tell_of_their_buffer(impl):
    keys = jax.random.split(jax.random.key(0, impl=impl), 3)
    data = jax.random.key_data(keys)
    assert keys.on_device_size_in_bytes() == data.nbytes == 12 * data.shape[1]
    assert keys.unsafe_buffer_pointer() == keys._base_array.unsafe_buffer_pointer()
    assert keys.block_until_ready().is_ready() and keys.platform() == data.platform()
    assert not keys._committed and jax.device_put(keys, jax.devices()[0])._committed
    assert +keys is keys


@pytest.mark.parametrize("read", [
    lambda k: k.real, lambda k: k.imag, lambda k: k.view("uint32"), lambda k: k.byteswap()])
def test_traced_keys_hold_no_numbers(read):
    with pytest.raises(TypeError, match="hold no numbers; of random keys"):
        jax.make_jaxpr(read)(jax.random.key(0))


@pytest.mark.parametrize("compare", [
    lambda ks: jax.lax.sort(ks), lambda ks: jax.lax.sort((ks, jnp.arange(3))),
    lambda ks: jax.lax.top_k(ks, 2), lambda ks: jax.lax.argmin(ks, 0, "int32"),
    lambda ks: jax.lax.max(ks, ks), lambda ks: jax.lax.clamp(ks, ks, ks),
    lambda ks: jax.lax.reduce_max(ks, (0,)), lambda ks: jnp.lexsort((ks,))])
def test_keys_have_no_order(compare):
    with pytest.raises(TypeError, match="not accept dtype key<fry>"):
        compare(jax.random.split(jax.random.key(0), 3))


def test_keys_are_sorted_by_numbers():
    keys = jax.random.split(jax.random.key(0), 3)
    assert (jax.lax.sort_key_val(jnp.array([2, 0, 1]), keys)[1] == keys[jnp.array([1, 2, 0])]).all()


@pytest.mark.parametrize("draw", [
    lambda: random.randint(random.key(11), (3,), 0, 1000),
    lambda: random.normal(random.key(1), (3,)),
    lambda: random.key_data(random.split(random.key(1), 3)),
    lambda: random.split(random.PRNGKey(1), 3), lambda: random.gamma(random.key(1), 2.0, (3,)),
    lambda: random.permutation(random.key(1), 9), lambda: random.poisson(random.key(1), 3.0, (3,)),
    lambda: random.key_data(random.split(random.key(1, impl="rbg"), 3)),
    lambda: jax.vmap(lambda key: random.uniform(key, (3,)))(random.split(random.key(1), 2)),
])
def test_bits_are_counted_as_the_flag_says_where_a_draw_is_called(draw):
    wanted = {}
    for flag in (True, False):
        with jax.threefry_partitionable(flag):
            wanted[flag] = np.asarray(draw())
    assert (wanted[True] != wanted[False]).any()

    def under(flag):
        with jax.threefry_partitionable(flag):
            return draw()

    def in_a_branch(flag):
        return jax.lax.cond(True, lambda: under(flag), lambda: under(flag))

    for outside in (True, False):
        with jax.threefry_partitionable(outside):
            for flag, want in wanted.items():
                for fun in (under, in_a_branch):
                    np.testing.assert_array_equal(jax.jit(fun, static_argnums=0)(flag), want)


def test_calls_with_keys_are_known_to_the_dispatcher() -> None:
    seen: list[str] = []

    def listen(event: str, **kwargs: Any) -> None:
        if event == "/pyjx/jit/call_miss":
            seen.append(str(kwargs["fun_name"]))

    @jax.jit
    def moved(state: Any) -> Any:
        keys, x = state
        key, now = random.split(keys["next"])
        return {"next": key}, x + random.normal(now)

    jax.monitoring.register_event_listener(listen)
    try:
        state = {"next": random.key(0)}, jnp.float32(0)
        for _ in range(4):
            state = moved(state)
        other = moved(({"next": random.key(0, impl="rbg")}, jnp.float32(0)))
    finally:
        jax.monitoring.unregister_event_listener(listen)
    assert seen.count("moved") <= 3  # two implementations, and maybe what is committed
    assert type(state[0]["next"]) is type(KEY)
    assert random.key_impl(state[0]["next"]) == "threefry2x32"
    assert random.key_impl(other[0]["next"]) == "rbg"
    with jax.disable_jit():
        want = {"next": random.key(0)}, jnp.float32(0)
        for _ in range(4):
            want = moved(want)
    np.testing.assert_array_equal(random.key_data(state[0]["next"]),
                                  random.key_data(want[0]["next"]))
    np.testing.assert_allclose(state[1], want[1], rtol=1e-6)


@pytest.mark.parametrize("name", ["devices", "is_deleted", "delete", "is_ready", "platform",
                                  "on_device_size_in_bytes", "unsafe_buffer_pointer",
                                  "unsafe_raw_buffer"])
def test_methods_of_key_arrays_are_functions_of_their_class(name: str) -> None:
    method = getattr(type(KEY), name)
    assert (method.__name__, method.__qualname__) == (name, f"DataArray.{name}")
    assert list(inspect.signature(method).parameters) == ["self"]
    assert inspect.getdoc(method) == inspect.getdoc(getattr(jax.Array, name, None))


def test_key_arrays_answer_for_their_data() -> None:
    keys = random.split(random.key(0), 3)
    assert list(map(type(keys).devices, [keys])) == [random.key_data(keys).devices()]
    assert keys.platform() == random.key_data(keys).platform()
    keys.delete()
    assert type(keys).is_deleted(keys) and not KEYS.is_deleted()
