"""References whose value is looked at in another shape or order, or as another dtype."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import hijax

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

LOOKS = {
    "T": (lambda r: r.T, lambda x: x.T),
    "transpose": (lambda r: r.transpose((1, 0, 2)), lambda x: x.transpose((1, 0, 2))),
    "reshape": (lambda r: r.reshape(6, -1), lambda x: x.reshape(6, -1)),
    "reshape to a tuple": (lambda r: r.reshape((4, 6)), lambda x: x.reshape(4, 6)),
    "of a part": (lambda r: r.at[1, 1:].T, lambda x: x[1, 1:].T),
    "part of it": (lambda r: r.T.at[1:, 2], lambda x: x.T[1:, 2]),
    "part of the elements": (lambda r: r.at[1].reshape(12).at[2:9],
                             lambda x: x[1].reshape(12)[2:9]),
    "one after another": (lambda r: r.at[:, 1].T.reshape(2, 2, 2).T,
                          lambda x: x[:, 1].T.reshape(2, 2, 2).T),
    "memory": (lambda r: r.at[0].memory_space_cast("any"), lambda x: x[0]),
}


def expected_writes(of_array, new):
    places = of_array(np.arange(X.size).reshape(X.shape))
    out = X.copy().reshape(-1)
    out[places.reshape(-1)] = new.reshape(-1)
    return out.reshape(X.shape)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_what_is_seen_is_read_written_and_added_to(look, wrapped):
    of_ref, of_array = LOOKS[look]
    old = of_array(X)
    new = -np.arange(1, old.size + 1, dtype=np.float32).reshape(old.shape)
    seen = of_ref(jax.new_ref(X))
    assert (seen.shape, seen.dtype, seen.ndim, seen.size) == (
        old.shape, old.dtype, old.ndim, old.size)
    np.testing.assert_array_equal(wrapped(lambda r: of_ref(r)[...])(jax.new_ref(X)), old)
    ref = jax.new_ref(X)
    np.testing.assert_array_equal(wrapped(lambda r, v: of_ref(r).swap(v))(ref, new), old)
    np.testing.assert_array_equal(ref[...], expected_writes(of_array, new))
    ref = jax.new_ref(X)
    wrapped(lambda r, v: of_ref(r).set(v[0], 0))(ref, new)
    np.testing.assert_array_equal(of_ref(ref).get(0), new[0])
    ref = jax.new_ref(X)
    wrapped(lambda r, v: of_ref(r).addupdate(v))(ref, new)
    np.testing.assert_array_equal(ref[...], expected_writes(of_array, old + new))


@pytest.mark.parametrize("look", LOOKS)
def test_derivatives_and_batches(look):
    of_ref, of_array = LOOKS[look]

    def f(x):
        ref = jax.new_ref(x)
        of_ref(ref)[0] = jnp.sin(of_ref(ref)[0]) * 1.5
        return (of_ref(ref)[...] ** 2).sum() + (ref[...] ** 3).sum()

    def pure(x):
        part = of_array(x)
        part = part.at[0].set(jnp.sin(part[0]) * 1.5)
        places = of_array(np.arange(X.size).reshape(X.shape))
        whole = x.reshape(-1).at[places.reshape(-1)].set(part.reshape(-1))
        return (part ** 2).sum() + (whole ** 3).sum()

    x = jnp.asarray(X) / 10
    np.testing.assert_allclose(jax.grad(f)(x), jax.grad(pure)(x), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), jax.grad(pure)(x), rtol=1e-5)
    batch = jnp.stack([x, 2 * x])
    for axis in range(4):
        moved = jnp.moveaxis(batch, 0, axis)
        np.testing.assert_allclose(jax.vmap(f, axis)(moved), [f(x), f(2 * x)], rtol=1e-5)

    def reads(ref):
        return of_ref(ref)[...]

    np.testing.assert_array_equal(
        jax.vmap(reads)(jax.new_ref(batch)), [of_array(b) for b in np.asarray(batch)])


@pytest.mark.parametrize(("dtype", "to"), [
    ("float32", "int32"), ("int32", "int16"), ("int16", "int32"), ("float32", "uint8"),
    ("uint8", "float32"), ("bfloat16", "uint16"),
])
def test_bits(dtype, to):
    rows = np.arange(32, dtype=np.float32).reshape(8, 4).astype(jnp.dtype(dtype))
    wide, narrow = sorted([jnp.dtype(dtype).itemsize, jnp.dtype(to).itemsize], reverse=True)
    k = wide // narrow
    if jnp.dtype(to).itemsize < jnp.dtype(dtype).itemsize:
        expected = rows.view(to).reshape(8, 4, k).swapaxes(1, 2).reshape(8 * k, 4)
    else:
        expected = np.ascontiguousarray(rows.reshape(8 // k, k, 4).swapaxes(1, 2)).view(to)
        expected = expected.reshape(8 // k, 4)
    ref = jax.new_ref(rows)
    np.testing.assert_array_equal(ref.bitcast(to)[...], expected)
    np.testing.assert_array_equal(jax.jit(lambda r: r.bitcast(to)[1:])(ref), expected[1:])
    batched = jax.vmap(lambda r: r.bitcast(to)[0])(jax.new_ref(np.stack([rows, rows])))
    np.testing.assert_array_equal(batched, [expected[0]] * 2)
    ref.bitcast(to)[0] = jnp.zeros(4, to)
    expected[0] = 0
    np.testing.assert_array_equal(ref.bitcast(to)[...], expected)
    ref.bitcast(to)[...] = expected[::-1]
    np.testing.assert_array_equal(ref.bitcast(to).at[...].bitcast(dtype)[...], ref[...])


def test_methods_of_references_are_listed():
    assert {"addupdate", "bitcast", "get", "reshape", "set", "swap", "transpose"} <= set(
        dir(jax.ref.Ref))
    assert "Add to it" in jax.ref.Ref.addupdate.__doc__


def test_types():
    ref = jax.new_ref(X)
    seen = ref.at[0].T
    assert isinstance(seen, hijax.TransformedRef) and not isinstance(seen, jax.ref.Ref)
    assert str(seen.type) == "Ref{float32[4,3]}" and not seen.multiref and not seen.is_dynamic_size
    assert str(ref.bitcast("int32").type) == "Ref{int32[2,3,4]}" and seen.memory_space is None
    assert ref.memory_space_cast("any").memory_space == "any"
    again = hijax.TransformedRef(seen.ref, seen.transforms)
    np.testing.assert_array_equal(again[1], X[0].T[1])
    text = str(jax.make_jaxpr(lambda r: r.at[1:].reshape(12)[3] + r.bitcast("int32")[0, 0, 0])(ref))
    assert "[1:,:,:]{reshape([12])}[3]" in text and "{bitcast(int32)}[0,0,0]" in text


@pytest.mark.parametrize(("look", "error", "message"), [
    (lambda r: r.reshape(7), ValueError, r"cannot reshape shape \(2, 3, 4\) into shape \(7,\)"),
    (lambda r: r.reshape(5, -1), ValueError, "cannot reshape"),
    (lambda r: r.transpose((0, 1)), ValueError, "each axis of shape"),
    (lambda r: r.at[0, 0].bitcast("int16"), NotImplementedError, "at least two axes"),
    (lambda r: r.at[0].bitcast("complex64"), ValueError, "no whole elements"),
    (lambda r: r.bitcast("bool"), TypeError, "dtype float32 to bool"),
    (lambda r: r.at[:, :2].bitcast("complex64"), TypeError, "dtype float32 to complex64"),
    (lambda r: r.bitcast(jax.random.key(0).dtype), TypeError, "dtype float32 to key<fry>"),
    (lambda r: r.T.set(jnp.zeros((4, 3))), ValueError, "Invalid shape for `swap`"),
    (lambda r: r.bitcast("int32").set(jnp.zeros((2, 3, 4))), ValueError, "Invalid dtype"),
])
def test_looks_that_there_are_not(look, error, message):
    with pytest.raises(error, match=message):
        look(jax.new_ref(X))


def test_bits_of_tangents_are_no_tangents():
    def f(x):
        ref = jax.new_ref(x)
        return ref[0] + ref.bitcast("int32")[0]

    with pytest.raises(NotImplementedError, match="bits of a tangent"):
        jax.grad(f)(jnp.ones(3))
