"""Products of arrays against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.numpy.agreement import agrees, complexes, floats, ints

x, y, v, t, u = floats(3, 4), floats(4, 5), floats(4), floats(2, 3, 4), floats(2, 4, 5)
c = complexes(3, 4)


@pytest.mark.parametrize("name, args", [
    ("dot", (x, y)), ("dot", (x, v)), ("dot", (v, v)), ("dot", (t, u)), ("dot", (x, 2.0)),
    ("matmul", (x, y)), ("matmul", (x, v)), ("matmul", (v, y)), ("matmul", (v, v)),
    ("matmul", (t, u)), ("matmul", (t, y)), ("matmul", (x, u)), ("matmul", (v, u)),
    ("matmul", (t, v)), ("matmul", (t[:, None], u[None])), ("matmul", (floats(5, 1, 2, 3),
                                                                    floats(4, 3, 2))),
    ("tensordot", (x, y, 1)), ("tensordot", (x, x)), ("tensordot", (x, y, 0)),
    ("tensordot", (t, u, ((2, 0), (1, 0)))), ("vdot", (x, x)), ("vdot", (c, x)),
    ("inner", (x, t)), ("inner", (x, 2.0)), ("outer", (v, x)), ("kron", (x, v)),
    ("kron", (v, x)), ("kron", (x, y)), ("trace", (x,)), ("trace", (t, 1, 1, 2)),
    ("cross", (floats(5, 3), floats(3))), ("cross", (x, x[::-1], 0, 0, 0)),
    ("vecdot", (c, x)), ("dot", (ints(2, 3), ints(3, 2))),
])
def test_products(name, args):
    agrees(name, *args, tol=1e-4)


@pytest.mark.parametrize("first", [(), (1,), (2,), (1, 1), (3, 1)])
@pytest.mark.parametrize("second", [(), (1,), (2,), (1, 1), (1, 2)])
def test_batches_of_products_are_broadcast(first, second):
    a, b = floats(*first, 2, 3), floats(*second, 3, 4)
    agrees("matmul", a, b, tol=1e-4)
    agrees("matmul", a[(0,) * (len(first) + 1)], b, tol=1e-4)
    agrees("matmul", a, b[(0,) * len(second)][:, 0], tol=1e-4)


@pytest.mark.parametrize(("name", "first", "second", "operands"), [
    ("matmul", (1, 2, 3), (1, 3, 4), [(2, 3), (3, 4)]),
    ("matmul", (1, 1, 2, 3), (1, 3, 4), [(1, 2, 3), (3, 4)]),
    ("matmul", (5, 1, 2, 3), (5, 1, 3, 4), [(5, 2, 3), (5, 3, 4)]),
    ("vecdot", (1, 2, 3), (2, 3), [(2, 3), (2, 3)]), ("vecdot", (1, 3), (1, 3), [(3,), (3,)]),
    ("matvec", (1, 2, 3), (1, 3), [(2, 3), (3,)]), ("vecmat", (1, 2, 3), (2, 3, 4), [(2, 3),
                                                                                 (2, 3, 4)])])
def test_a_batch_of_one_is_no_batch(name, first, second, operands):
    a, b = floats(*first), floats(*second)
    jaxpr = jax.make_jaxpr(getattr(jnp, name))(a, b)
    product = next(e for e in jaxpr.eqns if e.primitive.name == "dot_general")
    assert [v.aval.shape for v in product.invars] == operands
    expected = {"matmul": np.matmul, "vecdot": lambda a, b: (a * b).sum(-1),
                "matvec": lambda a, b: (a @ b[..., None])[..., 0],
                "vecmat": lambda a, b: (a[..., None, :] @ b)[..., 0, :]}[name](a, b)
    np.testing.assert_allclose(getattr(jnp, name)(a, b), expected, rtol=1e-4, atol=1e-5)


def test_matvec_and_vecmat():
    np.testing.assert_allclose(jnp.matvec(t, v), t @ v, rtol=1e-5)
    np.testing.assert_allclose(jnp.vecmat(v, u), v @ u, rtol=1e-5)


@pytest.mark.parametrize("subscripts, shapes", [
    ("ij,jk->ik", ((3, 4), (4, 5))), ("ij,kj->ik", ((3, 4), (5, 4))),
    ("bij,bjk->bki", ((2, 3, 4), (2, 4, 5))), ("btnh,bsnh->bnts", ((2, 3, 4, 5), (2, 6, 4, 5))),
    ("bnts,bsnh->btnh", ((2, 4, 3, 6), (2, 6, 4, 5))), ("ij,kl->k", ((2, 3), (4, 5))),
    ("ii->i", ((3, 3),)), ("ii", ((3, 3),)), ("iij->j", ((2, 2, 3),)), ("ij->ji", ((2, 3),)),
    ("ij->", ((2, 3),)), ("ba", ((2, 3),)), ("i,j->ij", ((3,), (4,))),
    ("ij,ij->ij", ((2, 3), (2, 3))), ("ij,j->ij", ((2, 3), (3,))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))), ("...j,jk->...k", ((2, 3, 4), (4, 5))),
    ("...ij->...ji", ((2, 3, 4),)), ("...,...->...", ((2, 3), (3,))), (",ij->ij", ((), (2, 3))),
    ("ij,ij->j", ((2, 3), (1, 3))), ("iij,jkk->ik", ((2, 2, 3), (3, 4, 4))),
    ("ij,jk,kl,lm,mn->in", ((2, 3), (3, 2), (2, 3), (3, 2), (2, 3))), ("ij,ji", ((2, 3), (3, 2))),
])
def test_einsum(subscripts, shapes):
    agrees("einsum", subscripts, *[floats(*s) for s in shapes], tol=1e-4)


def test_einsum_forms():
    expected = x @ y
    np.testing.assert_allclose(jnp.einsum(x, [0, 1], y, [1, 2], [0, 2]), expected, rtol=1e-5)
    np.testing.assert_allclose(jnp.einsum(t, [..., 0, 1], [..., 1, 0]), t.swapaxes(1, 2))
    path, info = jnp.einsum_path("ij,jk,kl->il", x, y, floats(5, 2))
    assert [len(p) for p in path] == [2, 2]
    assert "FLOP" in str(info)
    calls = []

    def dot(*args, **kwargs):
        calls.append(1)
        return jax.lax.dot_general(*args, **kwargs)

    jnp.einsum("ij,jk->ik", x, y, _dot_general=dot)
    assert calls == [1]


def test_dtypes():
    half = jnp.ones((2, 2), jnp.bfloat16)
    assert jnp.matmul(half, half).dtype == jnp.bfloat16
    assert jnp.matmul(half, half, preferred_element_type=jnp.float32).dtype == jnp.float32
    assert jnp.einsum("ij,jk->ik", half, half, preferred_element_type=jnp.float32).dtype == \
        jnp.float32
    assert jnp.matmul(half, jnp.ones((2, 2))).dtype == jnp.float32
    assert jnp.matmul(jnp.ones((2, 2), bool), jnp.ones((2, 2), bool)).dtype == jnp.bool_


def test_one_operation():
    text = str(jax.make_jaxpr(lambda t, u: jnp.einsum("bij,bjk->bik", t, u))(t, u))
    assert text.count(" = ") == 1
    assert "dot_general" in text


def test_derivatives():
    for f in (lambda a: jnp.sum(jnp.matmul(a, u) ** 2),
              lambda a: jnp.sum(jnp.einsum("bij,bjk->bki", a, u) ** 2)):
        np.testing.assert_allclose(jax.grad(f)(t), 2 * (t @ u) @ u.swapaxes(1, 2), rtol=1e-4)


@pytest.mark.parametrize("call, error, message", [
    (lambda: jnp.dot(x, x), TypeError, "contracting dimensions to have the same shape"),
    (lambda: jnp.matmul(x, 1.0), ValueError, "matmul input operand 1 must have ndim at least 1"),
    (lambda: jnp.matmul(t, floats(3, 4, 4)), ValueError, "Incompatible types for matmul"),
    (lambda: jnp.tensordot(x, x, 3), TypeError, "Number of tensordot axes"),
    (lambda: jnp.einsum("ij,jk->il", x, y), ValueError, "'l' did not appear in the input"),
    (lambda: jnp.einsum("ij,ij->i", x, floats(2, 3)), ValueError, "Size of label 'i'"),
    (lambda: jnp.einsum("...i, ...j -> ...ij", x, floats(9, 3)), ValueError,
     r"along '...', and operand 1, '...j' of shape \(9, 3\), has 9"),
    (lambda: jnp.einsum("ijk->i", x), ValueError, "correct number of indices for operand 0"),
    (lambda: jnp.cross(x, x), ValueError, "Dimension must be 3 for cross product"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_weak_types_of_products():
    weak = jnp.broadcast_to(1.0, (2,))
    assert jnp.dot(weak, weak).weak_type
    assert not jnp.dot(weak, weak, preferred_element_type="float32").weak_type
    assert jax.grad(lambda x: jnp.vdot(weak, x))(weak).weak_type


def test_outer_product_of_booleans():
    x = jnp.array([True, False])
    assert jnp.outer(x, x).tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_einsum_sums_narrow_integers(dtype):
    x = np.arange(12, dtype=dtype).reshape(3, 2, 2)
    agrees_with = np.einsum("lkj,i,l->", x, np.ones(2, dtype), np.ones(3, dtype))
    got = jnp.einsum("lkj,i,l->", x, np.ones(2, dtype), np.ones(3, dtype))
    assert got.dtype == dtype and got == agrees_with


def test_batches_that_do_not_fit_are_named():
    a, b = jnp.ones((7, 2, 3, 4)), jnp.ones((3, 4, 5))
    with pytest.raises(ValueError, match=r"Axis 1 of .* size 2, axis 0 of the other size 3"):
        a @ b
