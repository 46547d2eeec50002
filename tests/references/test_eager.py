"""References outside of programs: indices, values, types, errors."""

import copy

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

INDICES = [
    ..., (), 0, -1, (1, 2), (1, -1, 3), slice(None), slice(1, None), (slice(None), 1),
    (slice(None), slice(0, 3, 2)), (slice(None), slice(None), slice(1, 4, 2)), (..., 2),
    (0, ..., slice(1, 3)), np.array([1, 0]), (slice(None), np.array([0, 2])),
    (0, slice(None), np.array([0, 1, 3])), (slice(None), 0, np.array([0, 1])),
    (np.array([[0], [1]]), slice(None), np.array([0, 3])),
    (slice(None), slice(None), np.array([[0, 1]])), (np.array([0, 1]), slice(1, 3)),
    (np.array([1, -1]), slice(0, 3, 2), slice(1, 3)), np.array([False, True]),
    (slice(None), np.array([True, False, True])), (slice(1, 0),), (1, slice(0, 0)),
    (np.int64(1), np.uint8(2)),
]


def test_members_of_arrays_are_none_of_references():
    ref = jax.new_ref(X)
    for name in ("astype", "sum", "real", "devices", "delete", "is_fully_addressable",
                 "addressable_shards", "global_shards", "nbytes", "block_until_ready"):
        assert not hasattr(ref, name), name
    for name in ("at", "shape", "dtype", "ndim", "size", "sharding", "get", "set", "swap"):
        assert hasattr(ref, name), name
    with pytest.raises(AttributeError, match=r"'Ref' object has no attribute 'sum'.*`ref\[...\]`"):
        ref.sum()
    assert jax.block_until_ready([ref]) == [ref]


def test_truth_of_references():
    assert jax.new_ref(np.zeros(2)) and not jax.new_ref(np.zeros(0))
    with pytest.raises(TypeError, match="unsized"):
        bool(jax.new_ref(False))


def test_references_are_no_arrays():
    kinds = []

    def note(ref):
        kinds.append((isinstance(ref, jax.Array), isinstance(ref, jax.ref.Ref)))

    ref = jax.new_ref(jnp.arange(3.0))
    note(ref)
    jax.jit(note)(ref)
    jax.vmap(note)(ref)
    jax.grad(lambda x: (note(jax.new_ref(x)), x)[1])(1.0)
    assert kinds == [(False, True)] * 4 and isinstance(ref[...], jax.Array)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_part_is_what_numpy_says(index):
    ref = jax.new_ref(X)
    np.testing.assert_array_equal(ref[index], X[index])
    np.testing.assert_array_equal(ref.at[index][...], X[index])
    np.testing.assert_array_equal(jax.jit(lambda r: r[index])(ref), X[index])
    assert ref.at[index].shape == X[index].shape


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_part_is_written_as_numpy_does(index):
    new = -np.arange(1, X[index].size + 1, dtype=np.float32).reshape(X[index].shape)
    expected = X.copy()
    expected[index] = new
    ref = jax.new_ref(X)
    ref[index] = new
    np.testing.assert_array_equal(ref[...], expected)
    ref = jax.new_ref(X)
    np.testing.assert_array_equal(jax.ref.swap(ref, index, new), X[index])
    np.testing.assert_array_equal(ref[...], expected)

    @jax.jit
    def write(ref, new):
        ref[index] = new

    ref = jax.new_ref(X)
    write(ref, new)
    np.testing.assert_array_equal(ref[...], expected)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_part_is_added_to(index):
    new = np.arange(1, X[index].size + 1, dtype=np.float32).reshape(X[index].shape)
    expected = X.copy()
    np.add.at(expected, index, new)
    ref = jax.new_ref(X)
    jax.ref.addupdate(ref, index, new)
    np.testing.assert_array_equal(ref[...], expected)
    ref = jax.new_ref(X)
    jax.jit(lambda ref: ref.addupdate(new, index))(ref)
    np.testing.assert_array_equal(ref[...], expected)


def test_a_part_of_a_part():
    ref = jax.new_ref(X)
    part = ref.at[1].at[1:]
    np.testing.assert_array_equal(part[...], X[1, 1:])
    np.testing.assert_array_equal(part.get(), X[1, 1:])
    part[0] = np.zeros(4, np.float32)
    part.at[:, 0].set(np.array([7, 8], np.float32))
    part.at[1].addupdate(np.ones(4, np.float32))
    expected = X.copy()
    expected[1, 1] = 0
    expected[1, 1:, 0] = [7, 8]
    expected[1, 2] += 1
    np.testing.assert_array_equal(ref[...], expected)
    assert float(part.at[0, 0].swap(5.0)) == 7
    assert part.shape == (2, 4) and part.ndim == 2 and part.dtype == np.float32


def test_reads_and_writes_through_two_views_with_strides():
    x = np.zeros((6, 5), np.int32)
    ref = jax.new_ref(x)
    ref.at[::2][1, 1::2] = np.array([3, 4], np.int32)
    x[::2][1, 1::2] = [3, 4]
    np.testing.assert_array_equal(ref[...], x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "float32",
                                   "complex64"])
def test_dtypes(dtype):
    ref = jax.new_ref(jnp.zeros(3, dtype))
    one = jnp.ones((), dtype)
    ref[1] = one
    assert ref.dtype == jnp.dtype(dtype) and ref[1].dtype == ref.dtype
    assert ref[...].tolist() == jnp.array([0, 1, 0], dtype).tolist()
    jax.jit(lambda r: r.at[2].set(r[1]))(ref)
    assert ref[...].tolist() == jnp.array([0, 1, 1], dtype).tolist()


def test_64_bits():
    with jax.enable_x64(True):
        ref = jax.new_ref(np.arange(3.0))
        assert ref.dtype == np.float64
        ref[0] = 1e-300
        assert float(ref[0]) == 1e-300


def test_zero_sized():
    ref = jax.new_ref(jnp.zeros((0, 3)))
    ref[...] = jnp.zeros((0, 3))
    ref[:, 1:] = jnp.zeros((0, 2))
    assert ref[:, 0].shape == (0,)


def test_key_arrays():
    ref = jax.new_ref(jax.random.key(0))
    ref[...] = jax.random.key(5)

    @jax.jit
    def draw(ref):
        key, own = jax.random.split(ref[...])
        ref[...] = key
        return jax.random.normal(own)

    first = draw(ref)
    key, own = jax.random.split(jax.random.key(5))
    assert float(first) == float(jax.random.normal(own))
    assert (jax.random.key_data(ref[...]) == jax.random.key_data(key)).all()


def test_python_numbers_take_the_dtype_of_the_reference():
    ref = jax.new_ref(jnp.zeros(2, jnp.bfloat16))
    ref[0] = 5.0
    assert ref[...].tolist() == [5, 0] and ref.dtype == jnp.bfloat16
    assert jax.new_ref(1.0)[...].weak_type is False


def test_a_reference_has_memory_of_its_own():
    x = jnp.arange(3.0)
    ref = jax.new_ref(x)
    before = ref[...]
    ref[...] = x + 1
    ref[0] = 9.0
    assert x.tolist() == before.tolist() == [0, 1, 2]
    assert ref[...].tolist() == [9, 2, 3]
    host = np.arange(3.0, dtype=np.float32)
    other = jax.new_ref(host)
    other[0] = 7.0
    assert host.tolist() == [0, 1, 2]
    frozen = jax.freeze(ref)
    ref[1] = 0.0
    assert frozen.tolist() == [9, 2, 3]


def test_what_a_reference_says_of_itself():
    ref = jax.new_ref(jnp.arange(3.0))
    assert repr(ref) == "Ref([0., 1., 2.], dtype=float32)"
    assert str(ref.aval) == "Ref{float32[3]}" and str(jax.typeof(ref)) == "Ref{float32[3]}"
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((3,), np.float32, 1, 3, 3)
    assert isinstance(ref, jax.Ref) and not isinstance(jnp.ones(3), jax.Ref)
    assert ref.sharding == jnp.ones(3).sharding
    assert ref == ref and ref != jax.new_ref(jnp.arange(3.0)) and {ref: 1}[ref] == 1
    assert copy.copy(ref) is ref and jax.tree.leaves({"a": ref}) == [ref]
    assert isinstance(ref.unsafe_buffer_pointer(), int)


def test_types_are_interned_and_pickled():
    import pickle

    a = jax.ref.AbstractRef(jax.typeof(jnp.ones(3)))
    assert a is jax.typeof(jax.new_ref(jnp.ones(3)))
    assert pickle.loads(pickle.dumps(a)) is a
    assert a.update(kind="k").kind == "k" and a.to_tangent_aval() is a
    assert a.str_short(True) == "Ref{f32[3]}" and a.inner_aval.shape == (3,)
    ints = jax.ref.AbstractRef(jax.typeof(jnp.ones(3, int)))
    assert ints.to_tangent_aval().dtype == jax.float0


def test_empty_and_free():
    ref = jax.empty_ref(jax.ShapeDtypeStruct((2,), "int32"))
    ref[...] = jnp.array([1, 2])
    assert ref[...].tolist() == [1, 2]
    assert jax.free_ref(ref) is None


STORES = {
    "set": lambda r, value: jax.ref.set(r, ..., value),
    "swap": lambda r, value: jax.ref.swap(r, ..., value),
    "addupdate": lambda r, value: jax.ref.addupdate(r, ..., value),
    "view": lambda r, value: jax.ref.set(r.at[:], ..., value),
}


@pytest.mark.parametrize("store", STORES)
def test_references_are_not_stored_in_references(store):
    def f(x):
        r = jax.new_ref(x)
        for other in (jax.new_ref(x), r):
            with pytest.raises(ValueError, match="Cannot store a Ref into another Ref"):
                STORES[store](r, other)
        return r[...].sum()

    x = jnp.ones(3)
    for run in (f, jax.jit(f), jax.grad(f), jax.grad(jax.jit(f)), jax.checkpoint(f)):
        run(x)
    jax.vmap(f)(x[:, None])


@pytest.mark.parametrize(("do", "error", "words"), [
    (lambda r: r[5], ValueError, "Out of bound indexer: idx=5, dim=3."),
    (lambda r: r[-4], ValueError, "Out of bound indexer"),
    (lambda r: r[3:], ValueError, "Out of bound slice: start=3, dim=3."),
    (lambda r: r[0, 0], ValueError, "`indices` must not be longer than `shape`"),
    (lambda r: r[..., ...], ValueError, "Only one ellipsis is supported."),
    (lambda r: r[::-1], ValueError, r"slice must have a step >= 1 \(found: -1\)"),
    (lambda r: r["a"], TypeError, "indexed by integers"),
    (lambda r: r[1.0], TypeError, "indexed by integers"),
    (lambda r: r.__setitem__(0, 1), ValueError,
     "Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32."),
    (lambda r: r.__setitem__(0, 1j), ValueError, r"`swap`.* store jnp.asarray\(value, ref.dtype\)"),
    (lambda r: r.__setitem__(..., jnp.ones(4)), ValueError,
     r"Invalid shape for `swap`. Ref shape: \(3,\). Expected shape: \(3,\). Value shape: \(4,\)."),
    (lambda r: r.__setitem__(slice(0, 2), 1.0), ValueError,
     r"Expected shape: \(2,\).* What is stored at ref\[:2\] has the shape of that part"),
    (lambda r: r.__setitem__(..., [1.0, 2.0, 3.0]), TypeError, "not a valid JAX type"),
    (lambda r: jax.ref.addupdate(r, ..., jnp.arange(3)), ValueError,
     "Invalid dtype for `addupdate`"),
    (lambda r: jax.ref.addupdate(r, ..., jnp.ones(4)), ValueError,
     "Invalid shape for `addupdate`"),
    (lambda r: r + 1, TypeError, r"unsupported operand type\(s\) for \+: 'Ref' and 'int'"),
    (lambda r: r < 1, TypeError, "'<' not supported between instances of 'Ref' and 'int'"),
    (lambda r: jnp.sin(r), TypeError,
     "sin got a Ref of type Ref{float32.3.} at position 0, but a Ref can't be passed where an "
     "array is expected. Did you forget to read its value with `ref.....`"),
    (lambda r: jnp.add(r, 1), TypeError, "can't be passed where an array is expected"),
    (lambda r: jnp.asarray(r), TypeError, "can't be passed where an array is expected"),
    (lambda r: np.asarray(r), TypeError, "is no array"),
    (lambda r: float(r), TypeError, "is no array"),
    (lambda r: jax.new_ref(r), TypeError, "new_ref got a Ref"),
    (lambda r: jax.new_ref([1, 2]), TypeError,
     "Error interpreting argument to new_ref as a JAX value. The problematic value is of type "
     "<class 'list'> and was passed to new_ref at position 0."),
    (lambda r: jax.new_ref(1.0, pin=True), NotImplementedError, "only works inside of a `jit`"),
    (lambda r: jax.ref.get(jnp.ones(3), 0), ValueError, "Can only call `ref_get` on a `Ref`"),
    (lambda r: jax.ref.swap(jnp.ones(3), 0, 1.0), ValueError, "Can only call `ref_swap`"),
    (lambda r: jax.freeze(1), ValueError, "Can only call `freeze` on a `Ref`"),
])
def test_errors(do, error, words):
    with pytest.raises(error, match=words):
        do(jax.new_ref(jnp.arange(3.0)))


def test_deep_copies_are_references_of_their_own():
    ref = jax.new_ref(jnp.zeros(2), kind="counter")
    copied = copy.deepcopy({"a": ref, "b": [ref]})
    assert copied["a"] is copied["b"][0] and copied["a"].aval is ref.aval
    copied["a"][0] = 5.0
    ref[1] = 7.0
    np.testing.assert_array_equal(ref[...], [0, 7])
    np.testing.assert_array_equal(copied["a"][...], [5, 0])
