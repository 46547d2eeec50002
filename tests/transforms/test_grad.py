from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

pytestmark = [pytest.mark.gpu, pytest.mark.smoke]


def f32(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def test_gradient_of_a_vector():
    x = f32(5)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sin(x).sum())(x), np.cos(x), rtol=1e-5)


def test_value_and_gradient():
    value, g = jax.value_and_grad(lambda x: (x * x).sum())(np.float32([1, 2]))
    assert float(value) == 5.0
    assert g.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(("argnums", "expected"), [
    (0, 5.0), (1, 3.0), (-1, 3.0), (-2, 5.0), ((0, 1), (5.0, 3.0)), ([1], (3.0,)),
    ((1, 0), (3.0, 5.0)), (np.int64(1), 3.0),
])
def test_argnums(argnums, expected):
    g = jax.grad(lambda x, y: x * y, argnums=argnums)(3.0, 5.0)
    assert jax.tree.map(float, g) == expected
    assert isinstance(g, tuple) == isinstance(expected, tuple)


def test_auxiliary_data_may_be_anything():
    g, aux = jax.grad(lambda x: (x * x, {"x": x, "name": "a", "none": None}), has_aux=True)(3.0)
    assert float(g) == 6.0
    assert aux == {"x": 3.0, "name": "a", "none": None}
    (value, aux), g = jax.value_and_grad(lambda x: (x * x, x + 1), has_aux=True)(3.0)
    assert (float(value), float(aux), float(g)) == (9.0, 4.0, 6.0)


def test_keyword_arguments_are_constants():
    assert float(jax.grad(lambda x, *, y: x * y)(3.0, y=5.0)) == 5.0
    assert float(jax.grad(lambda x, y=2.0: x * y)(3.0)) == 2.0


def test_pytrees():
    params = {"w": f32(2, 3), "b": [f32(3), None, ()]}
    g = jax.grad(lambda p, x: ((x @ p["w"] + p["b"][0]) ** 2).sum())(params, f32(4, 2))
    assert jax.tree.structure(g) == jax.tree.structure(params)
    assert jax.tree.map(lambda a, b: a.shape == b.shape, g, params)["w"]


@pytest.mark.parametrize("tree", [{}, (), None, [None, ()]])
def test_without_leaves(tree):
    assert jax.grad(lambda t: 1.0)(tree) == tree


def test_unused_and_constant():
    assert jax.grad(lambda x: 1.0)(np.ones((2, 0, 3), "float32")).shape == (2, 0, 3)
    zeros = jax.grad(lambda x: jnp.ones(2).sum())(f32(3))
    assert zeros.tolist() == [0.0, 0.0, 0.0]
    assert isinstance(zeros, jax.Array)


def test_results_are_arrays_with_the_type_of_the_argument():
    for x in (3.0, np.float32(3), np.float16(3), jnp.float32(3), np.ones(2, "float32")):
        for f in (lambda x: x.sum() if x.shape else x, lambda x: 1.0):
            g = jax.grad(f)(x)
            assert isinstance(g, jax.Array)
            assert g.shape == np.shape(x)
            assert g.dtype == (np.float32 if isinstance(x, float) else x.dtype)
            assert g.weak_type == isinstance(x, float)


def test_integers_have_tangents_without_values():
    product = jax.grad(lambda x, y: x * y, argnums=(0, 1), allow_int=True)
    g = product(np.float32(2), np.int32(3))
    assert float(g[0]) == 3.0
    assert g[1].dtype == jax.float0
    assert g[1].shape == ()


def test_complex_convention():
    # for real f of z = x + iy: df/dx - i df/dy
    z = 1.0 + 2.0j
    assert complex(jax.grad(lambda z: jnp.real(z) ** 2 + 3 * jnp.imag(z))(z)) == 2.0 - 3.0j
    g = complex(jax.grad(jnp.sin, holomorphic=True)(z))
    assert g == pytest.approx(complex(np.cos(z)), rel=1e-5)
    g = complex(jax.grad(lambda z: (z * z.conj()).real)(z))
    assert g == pytest.approx(2 * z.conjugate())


def test_names():
    def loss(x):
        """Doc."""
        return x

    g = jax.grad(loss, argnums=(0,))
    assert g.__name__ == "loss"
    assert g.__wrapped__ is loss
    assert g.__doc__.startswith("Gradient of loss with respect to positional argument(s) (0,).")


INEXACT = ("grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
           "np.inexact), but got {}. If you want to use Boolean- or integer-valued inputs, use vjp "
           "or set allow_int to True.")
FLOATING = ("grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
            "but got {}. For ")
SCALAR = "Gradient only defined for scalar-output functions. Output "


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: jax.grad(3), TypeError, "Expected a callable value, got 3"),
    (lambda: jax.grad(jnp.sin, argnums=1.5), TypeError, "'float' object is not iterable"),
    (lambda: jax.grad(jnp.sin)(np.ones(3)), TypeError,
     SCALAR + "had shape: (3,). To get the gradient, reduce the output to a scalar with "
     "output.sum(), or use jax.jacobian to differentiate a function with a non-scalar output."),
    (lambda: jax.grad(jnp.sin)(np.ones((1, 1))), TypeError,
     SCALAR + "had shape: (1, 1). To get the gradient, extract the scalar with "
     "output.reshape(()) or output[0, 0], reduce"),
    (lambda: jax.grad(lambda x: (x, x))(1.0), TypeError, SCALAR + "was (1.0, 1.0)."),
    (lambda: jax.grad(lambda x: None)(1.0), TypeError, SCALAR + "was None."),
    (lambda: jax.grad(lambda x: "a")(1.0), TypeError,
     "returned a value of type <class 'str'>, which is not a valid JAX type"),
    (lambda: jax.grad(lambda x: 1.0)("a"), TypeError,
     "Argument 'a' of type <class 'str'> is not a valid JAX type"),
    (lambda: jax.grad(lambda x: x * 1.0)(3), TypeError, INEXACT.format("int32")),
    (lambda: jax.grad(lambda d: d["a"] * d["n"])({"a": 1.0, "n": 3}), TypeError,
     INEXACT.format("int32") + " The input is d['n'], which is 3: write 3.0."),
    (lambda: jax.grad(lambda x, *ys: x, argnums=(0, -1))(1.0, 2.0, [1.0, jnp.arange(2)]),
     TypeError, " The input is ys[1][1], of type int32[2]: ys[1][1].astype(float) has a gradient."),
    (lambda: jax.grad(lambda x, k: x, argnums=1)(1.0, jax.random.key(0)), TypeError,
     " The input is k, of type key<fry>[]."),
    (lambda: jax.grad(lambda x: x * 1.0)(True), TypeError, INEXACT.format("bool")),
    (lambda: jax.grad(lambda x: x * 1j)(3.0), TypeError, FLOATING.format("complex64")
     + "holomorphic differentiation, pass holomorphic=True."),
    (lambda: jax.grad(lambda x: 2)(3.0), TypeError, FLOATING.format("int32")
     + "differentiation of functions with integer outputs, use jax.vjp directly."),
    (lambda: jax.grad(lambda x: x, holomorphic=True)(3.0), TypeError,
     "grad with holomorphic=True requires inputs with complex dtype, but got float32."),
    (lambda: jax.grad(jnp.real, holomorphic=True)(3j), TypeError,
     "grad with holomorphic=True requires outputs with complex dtype, but got float32."),
    (lambda: jax.grad(jnp.sin, argnums=2)(1.0), TypeError,
     "differentiating with respect to argnums=2 requires at least 3 positional arguments to be "
     "passed by the caller, but got only 1 positional arguments."),
    (lambda: jax.grad(jnp.sin, argnums=-2)(1.0), ValueError,
     "must have value greater than or equal to -len(args) and less than len(args), but got value "
     "-2 for len(args) == 1."),
    (lambda: jax.grad(jnp.add, argnums=(0, -7, 4))(1.0, 2.0), ValueError,
     "argnums of add must have value greater than or equal to -len(args) and less than len(args), "
     "but got value -7 for len(args) == 2."),
    (lambda: jax.grad(lambda x: x)(x=1.0), TypeError,
     "differentiating with respect to argnums=0 requires at least 1 positional arguments"),
    (lambda: jax.grad(lambda x: x, has_aux=True)(1.0), TypeError,
     "expected function with aux output to return a two-element tuple, but got type"),
    (lambda: jax.grad(lambda x: x, reduce_axes=("i",)), NotImplementedError,
     "reduce_axes argument to grad is deprecated"),
])
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("function", [float, complex, lambda x: x.tolist()])
def test_numbers_without_tangents_are_refused(function):
    for transform in (jax.grad, lambda f: lambda x: jax.jvp(f, (x,), (x,))):
        with pytest.raises(jax.errors.ConcretizationTypeError):
            transform(lambda x: jax.numpy.real(function(x) * x))(1.5)


def test_keys_beside_numbers():
    gradient = jax.grad(lambda k, x: jax.random.normal(k) * x, (0, 1), allow_int=True)
    by_key, by_number = gradient(jax.random.key(0), 2.0)
    assert by_key.dtype == jax.float0 and by_key.shape == ()
    assert float(by_number) == float(jax.random.normal(jax.random.key(0)))


@pytest.mark.filterwarnings("ignore")  # of the dtypes asked for that are not there
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("inside", [False, True], ids=["off", "on"])
@pytest.mark.parametrize(("body", "expected"), [
    (lambda x: x * 2, 2), (lambda x: 2 / x, -2 / 9), (lambda x: x ** 2.5, 2.5 * 3 ** 1.5),
    (lambda x: jnp.where(x > 1, 3 * x, 0), 3), (lambda x: jnp.mean(x * 3), 3),
    (lambda x: jnp.sum(x.astype("float64") ** 2) * 2.0, 12), (jax.nn.gelu, 1.0115842),
])
def test_64_bit_types_may_be_switched_inside(body, expected, inside, wrap):
    def f(x):
        with jax.enable_x64(inside):
            return body(x)

    with jax.enable_x64(not inside):
        for x in (3.0, np.float32(3), jnp.float32(3)):
            for g in (jax.grad(f), jax.jacfwd(f), jax.jacrev(f)):
                np.testing.assert_allclose(wrap(g)(x), expected, rtol=1e-6)
        np.testing.assert_allclose(wrap(jax.hessian(f))(jnp.float32(3)),
                                   jax.hessian(body)(jnp.float32(3)), rtol=1e-5, atol=1e-6)


def test_64_bit_types_may_be_switched_before_the_backward_pass():
    with jax.enable_x64(True):
        x = jnp.float64(3)
        y, pull_back = jax.vjp(lambda x: jnp.sin(2 * x) * 3.5, x)
    (ct,) = pull_back(y)
    assert ct.dtype == np.float64
    np.testing.assert_allclose(ct, 7 * np.cos(6.0) * float(y), rtol=1e-12)


def test_weak_types_of_tangents():
    x, weak = jnp.float32(3), jnp.asarray(1.0)
    for f in (lambda x: x * 2.0, lambda x: (x / 2) * 3, lambda x: 2.5 - x * 1.5):
        for t in (1.0, weak):
            for out in (jax.jvp(f, (x,), (t,))[1], jax.linearize(f, x)[1](t),
                        jax.vjp(f, x)[1](t)[0]):
                assert not out.weak_type
    assert not jax.jvp(lambda x: x + 1, (x,), (1.0,))[1].weak_type
    for t in (1.0, x):
        assert jax.jvp(lambda x: x * 2.0, (3.0,), (t,))[1].weak_type


@pytest.mark.parametrize("argnums", [(0, 0), (1, -1)])
@pytest.mark.parametrize("transform", [jax.grad, jax.value_and_grad, jax.jacfwd, jax.jacrev])
def test_an_argument_named_twice(transform, argnums):
    with pytest.raises(ValueError, match="names an argument twice"):
        transform(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


@pytest.mark.parametrize(("f", "value"), [
    (jax.lax.square, 1.0), (jax.lax.one_minus_square, 1.0), (jnp.real, 1 + 0j), (jnp.imag, 1 + 0j),
    (lambda x: jnp.percentile(x, 30.0), 1.0), (jnp.median, 1.0), (jnp.nanmedian, 1.0),
])
@pytest.mark.parametrize("x64", [False, True])
def test_gradients_by_weak_arrays_that_are_not_weak(f, value, x64):
    with jax.enable_x64(x64):
        x = jnp.broadcast_to(value, (3,))
        assert x.weak_type
        assert not jax.grad(lambda x: jnp.sum(f(x)))(x).weak_type
        assert isinstance(value, complex) or jax.grad(lambda x: jnp.sum(jnp.sin(x)))(x).weak_type


def test_cotangents_of_calls_have_the_types_they_come_with():
    """A program whose results are of weak type is pulled back with those of strong type, too."""
    weak = jax.numpy.broadcast_to(jax.numpy.asarray(1j), (2,))

    def fun(x):
        return jax.numpy.real(jax.jit(lambda x: x)(x)).sum()

    assert weak.weak_type and not jax.grad(fun)(weak).weak_type


def test_the_name_of_an_integer_is_found_beside_arguments_that_are_no_pytrees():
    with pytest.raises(TypeError, match=r"requires real- or complex-valued.*The input is x, which"):
        jax.grad(lambda x, k: x * 1.0)(3, {1: 1, "a": 2})


@pytest.mark.parametrize(("transform", "args", "words"), [
    *[(of, (3,), "x, of type int32[], as Python's int is: outside of the traced function write it "
       "as a float, such as 1.0, or float(x).")
      for of in (jax.grad, jax.value_and_grad, jax.jacfwd, jax.jacrev, jax.hessian)],
    (jax.grad, ([3],), "or float(x[0])."),
    (jax.grad, (True,), "x, of type bool[], as Python's bool is: outside of"),
    (jax.grad, (np.int32(3),), "x, of type int32[]: x.astype(float) has a gradient."),
    (jax.grad, (np.arange(2),), "x, of type int32[2]: x.astype(float) has a gradient. "
     "Indices stay out of argnums."),
])
def test_pythons_integers_that_are_traced_are_told_from_arrays(transform, args, words):
    with pytest.raises(TypeError) as caught:
        jax.jit(transform(lambda x: jax.tree.leaves(x)[0] * 1.0))(*args)
    assert words in str(caught.value)


def test_what_is_computed_of_pythons_integers_is_an_array():
    with pytest.raises(TypeError, match=r"is x, of type int32\[\]: x.astype\(float\) has a gradi"):
        jax.jit(lambda n: jax.grad(lambda x: x * 1.0)(n + 1))(3)


def _loss(w):
    return jnp.sum(w**2)


@pytest.mark.parametrize(("f", "name"), [
    (jax.vmap(_loss), "vmap of _loss at "), (jax.grad(_loss), "grad of _loss at "),
    (jax.jit(jax.grad(_loss)), "grad of _loss at "), (jax.jacfwd(_loss), "jacfwd of _loss at "),
    (jax.vmap(jax.grad(_loss)), "vmap of grad of _loss at "),
    (partial(jax.checkpoint(jax.vmap(_loss))), "checkpoint of vmap of _loss at "),
])
def test_what_a_transformation_made_is_not_taken_for_its_function(f, name):
    w = jnp.ones((2, 3) if "vmap" in name else 3)
    with pytest.raises(TypeError, match=f"^{SCALAR}") as caught:
        jax.grad(f)(w)
    said, cure = str(caught.value).split(" The function is ")[1].split(". With f for it, ")
    assert said.startswith(name)
    assert eval(cure.partition(" is the")[0], {"jax": jax, "f": f})(w).shape == w.shape


def test_a_path_is_not_taken_for_a_transformation():
    scope = {}
    exec(compile("def loss(x): return x * x", "/proof of concept/at home.py", "exec"), scope)
    with pytest.raises(TypeError, match=f"^{SCALAR}") as caught:
        jax.grad(scope["loss"])(jnp.ones(2))
    assert str(caught.value).endswith("The function is loss at /proof of concept/at home.py:1.")
