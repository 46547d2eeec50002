import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

X = np.float32([0.5, 1.0, 2.0])
A = np.arange(6, dtype="float32").reshape(2, 3)

both = pytest.mark.parametrize("jacobian", [jax.jacfwd, jax.jacrev, jax.jacobian])


@both
def test_matrix(jacobian):
    np.testing.assert_allclose(jacobian(lambda x: A @ x)(X), A)
    np.testing.assert_allclose(jax.jit(jacobian(lambda x: A @ x))(X), A)
    np.testing.assert_allclose(jacobian(jnp.sin)(0.5), np.cos(0.5), rtol=1e-6)


@both
def test_shapes_are_those_of_output_and_then_input(jacobian):
    x = np.ones((2, 3), "float32")
    j = jacobian(lambda x: x.sum(0) * 2)(x)
    assert j.shape == (3, 2, 3)
    np.testing.assert_allclose(j, 2 * np.eye(3)[:, None, :] * np.ones((1, 2, 1)))


@both
def test_trees(jacobian):
    def f(x, y):
        return {"product": x["a"] * y, "sum": x["b"].sum() + y.sum()}

    x = {"a": X, "b": A}
    by_x, by_y = (jacobian(f, argnums=(0, 1))(x, X)["product"])
    np.testing.assert_allclose(by_x["a"], np.diag(X))
    assert by_x["b"].shape == (3, 2, 3)
    np.testing.assert_allclose(by_y, np.diag(X))
    j = jacobian(f, argnums=1)(x, X)
    np.testing.assert_allclose(j["sum"], np.ones(3))


@both
def test_auxiliary_data(jacobian):
    j, aux = jacobian(lambda x: (x * x, {"x": x}), has_aux=True)(X)
    np.testing.assert_allclose(j, np.diag(2 * X))
    np.testing.assert_allclose(aux["x"], X)


@both
def test_empty(jacobian):
    assert jacobian(lambda x: x * 2)(np.zeros(0, "float32")).shape == (0, 0)


@both
def test_holomorphic(jacobian):
    j = jacobian(lambda z: z * z, holomorphic=True)(np.complex64([1j, 2]))
    np.testing.assert_allclose(j, np.diag([2j, 4]))


def test_integers():
    assert jax.jacrev(lambda x: x * 2.0, allow_int=True)(np.arange(2)).tolist() == [[0, 0], [0, 0]]
    assert not jax.jacfwd(lambda x: x.astype("int32"))(X).any()


def test_hessian():
    x = {"a": X, "b": X}
    h = jax.hessian(lambda x: (x["a"] * x["b"]).sum())(x)
    np.testing.assert_allclose(h["a"]["b"], np.eye(3))
    np.testing.assert_allclose(h["a"]["a"], np.zeros((3, 3)))
    h, aux = jax.hessian(lambda x: ((x**3).sum(), x), has_aux=True)(X)
    np.testing.assert_allclose(h, np.diag(6 * X), rtol=1e-6)
    np.testing.assert_allclose(aux, X)


def test_values_are_concrete():
    np.testing.assert_allclose(jax.hessian(lambda x: (x * x).sum() if x[0] > 0 else 0.0)(X),
                               2 * np.eye(3))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: jax.jacfwd(lambda x: x)(1), "jacfwd requires real-valued inputs (input dtype that is "
     "a sub-dtype of np.floating), but got int32."),
    (lambda: jax.hessian(lambda x: x)(1), "hessian requires real-valued inputs (input dtype that "),
    (lambda: jax.jacrev(lambda x: x)(1), "jacrev requires real- or complex-valued inputs (input "
     "dtype that is a sub-dtype of np.inexact), but got int32."),
    (lambda: jax.jacfwd(lambda x: x)(1j), "jacfwd requires real-valued inputs (input dtype that "
     "is a sub-dtype of np.floating), but got complex64. For holomorphic differentiation, pass"),
    (lambda: jax.jacfwd(lambda x: x, holomorphic=True)(1.0),
     "jacfwd with holomorphic=True requires inputs with complex dtype, but got float32."),
    (lambda: jax.jacrev(lambda x: x, holomorphic=True)(1.0),
     "jacrev with holomorphic=True requires inputs with complex dtype, but got float32."),
    (lambda: jax.jacfwd(jnp.real, holomorphic=True)(1j),
     "jacfwd with holomorphic=True requires outputs with complex dtype, but got float32."),
    (lambda: jax.jacrev(lambda x: x * 1j)(1.0), "jacrev requires real-valued outputs (output "
     "dtype that is a sub-dtype of np.floating), but got complex64."),
    (lambda: jax.jacrev(lambda x: x.astype("int32"))(X), "jacrev requires real-valued outputs "
     "(output dtype that is a sub-dtype of np.floating), but got int32."),
])
def test_errors(call, message):
    with pytest.raises(TypeError) as caught:
        call()
    assert message in str(caught.value)


def test_weak_types():
    """A Jacobian is as weakly typed as what it is of: the output forwards, the input backwards."""
    weak, strong = jnp.asarray(3.0), jnp.float32(3)
    for f in (lambda x: x ** 2.5, lambda x: jnp.maximum(x, 0.0) * 2):
        for x in (weak, strong):
            for transform in (jax.jacfwd, jax.jacrev, jax.hessian):
                for run in (transform(f), jax.jit(transform(f))):
                    assert run(x).weak_type == x.weak_type
    f = lambda x: x * jnp.float32(2)  # noqa: E731
    assert not jax.jacfwd(f)(weak).weak_type
    assert jax.jacrev(f)(weak).weak_type
