import functools
import gc
import math
import weakref

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import checkify

pytestmark = [pytest.mark.gpu, pytest.mark.smoke]

A = np.arange(6, dtype="float32").reshape(2, 3)
B = np.arange(3, dtype="float32")


@pytest.mark.parametrize("in_axes", [0, (0,), [0], -2, (-2,)])
def test_rows(in_axes):
    np.testing.assert_allclose(jax.vmap(lambda r: r @ B, in_axes=in_axes)(A), A @ B)


@pytest.mark.parametrize(("in_axes", "out_axes", "expected"), [
    (1, 0, A.T * 2), (1, 1, A * 2), (1, -1, A * 2), (-1, 0, A.T * 2), (0, 1, A.T * 2),
])
def test_axes(in_axes, out_axes, expected):
    np.testing.assert_allclose(jax.vmap(lambda x: x * 2, in_axes, out_axes)(A), expected)


def test_arguments_that_are_not_mapped_may_be_anything():
    out = jax.vmap(lambda x, y, z: (x * 2, y), in_axes=(0, None, None), out_axes=(0, None))
    doubled, same = out(B, 5, "text")
    np.testing.assert_allclose(doubled, 2 * B)
    assert same == 5


def test_trees_of_axes():
    def f(x, y):
        return x[0] + y["b"].sum() + y["c"]
    out = jax.vmap(f, in_axes=((0, None), {"b": 1, "c": None}))((B, None), {"b": A, "c": 1.0})
    np.testing.assert_allclose(out, B + A.sum(0) + 1)
    out = jax.vmap(lambda d: {"p": d["x"], "q": (d["y"], d["x"])}, out_axes={"p": 0, "q": (1, 0)})
    got = out({"x": B, "y": np.ones((3, 2), "float32")})
    assert got["q"][0].shape == (2, 3)


def test_keyword_arguments_are_mapped_over_their_first_axis():
    np.testing.assert_allclose(jax.vmap(lambda x, *, k: x * k, in_axes=(0,))(B, k=B), B * B)


def test_outputs_that_do_not_depend_on_the_input():
    assert jax.vmap(lambda x: 1.0)(B).tolist() == [1.0, 1.0, 1.0]
    assert jax.vmap(lambda x: (x, 1.0), out_axes=(0, None))(B)[1] == 1.0
    assert jax.vmap(lambda x: jnp.zeros(2), out_axes=1)(B).shape == (2, 3)
    assert jax.vmap(lambda x: None)(B) is None


def test_axis_size():
    assert jax.vmap(lambda: 1.0, axis_size=3)().shape == (3,)
    assert jax.vmap(lambda x: x * 2, in_axes=None, axis_size=2)(B).shape == (2, 3)


def test_empty_axis():
    assert jax.vmap(lambda x: x.sum())(np.ones((0, 2), "float32")).shape == (0,)


def test_nested_and_jitted():
    f = jax.vmap(jax.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(f(B, B), np.outer(B, B))
    np.testing.assert_allclose(jax.jit(f)(B, B), np.outer(B, B))
    np.testing.assert_allclose(jax.vmap(jax.jit(lambda x: x * 2))(A), A * 2)


def test_results_summed_over_the_examples():
    f = jax.vmap(lambda x: (x * x, x > 0, x, 1.0), out_axes=(None, None, 0, None), sum_match=True)
    square, positive, same, one = f(A)
    np.testing.assert_allclose(square, (A * A).sum(0), rtol=1e-6)
    np.testing.assert_array_equal(positive, (A > 0).sum(0))
    assert positive.dtype == np.int32 and one == 1.0
    np.testing.assert_array_equal(same, A)
    np.testing.assert_allclose(jax.grad(lambda x: f(x)[0].sum())(A), 2 * A, rtol=1e-6)


def test_gradients_of_examples():
    def f(w, x):
        return jnp.sin(w * x).sum()
    got = jax.vmap(jax.grad(f), in_axes=(None, 0))(B, A)
    np.testing.assert_allclose(got, A * np.cos(B * A), rtol=1e-5)


def test_names():
    def f(x):
        return x

    assert jax.vmap(f).__name__ == "f"
    assert jax.vmap(f).__wrapped__ is f


class Named:
    """An object that is called, with a state of its own."""

    def __init__(self):
        self.state_index = 5

    def __call__(self, x):
        return x


@pytest.mark.parametrize("transform", [
    jax.vmap, jax.jit, jax.grad, jax.value_and_grad, jax.jacfwd, jax.jacrev, jax.hessian,
    jax.checkpoint, jax.pmap, jax.make_jaxpr, jax.custom_jvp, jax.custom_vjp,
    jax.custom_batching.custom_vmap, checkify.checkify,
    lambda f: jax.shard_map(f, mesh=jax.make_mesh((1,), ("i",)), in_specs=jax.P(),
                            out_specs=jax.P())])
def test_what_a_function_has_been_given_stays_with_it(transform):
    def f(x: int) -> int:
        return x

    f.tag = "mine"
    for fun in (f, jax.jit(f), jax.vmap(f)):
        made = transform(fun)
        assert made.tag == "mine"
        assert made.__annotations__.get("x") in (int, None)
    assert transform(Named()).state_index == 5


def test_what_is_made_of_a_jitted_function_is_not_called_as_one():
    made = jax.vmap(jax.jit(lambda x: x + 1))
    assert jax.eval_shape(made, jnp.ones(3)).shape == (3,)


def test_names_of_what_has_none():
    assert jax.jit(functools.partial(math.hypot, 1.0)).__name__ == "hypot"
    traced = jax.make_jaxpr(test_names)
    assert traced.__name__ == traced.__qualname__ == "make_jaxpr(test_names)"
    assert traced.__module__ == jax.__name__


class Unnamed:
    """An object as equinox leaves it where a field has its default: what names it is no string."""

    def __init__(self):
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
            vars(self)[attribute] = ()

    def __call__(self, x):
        return x * x


@pytest.mark.parametrize("transform", [
    jax.vmap, jax.jit, jax.grad, jax.value_and_grad, jax.hessian, jax.checkpoint,
    checkify.checkify])
def test_names_that_are_no_strings(transform):
    transform(Unnamed())(jnp.ones(1) if transform is jax.vmap else 1.0)


IN_AXES = "vmap in_axes must be an int, None, or a tuple of entries corresponding to the " \
    "positional arguments passed to the function, but got "
LEAVES = " must be an int, None, or (nested) container with those types as leaves, but got "
ADD = lambda x, y: x + y  # noqa: E731


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: jax.vmap(3), TypeError, "Expected a callable value, got 3"),
    (lambda: jax.vmap(ADD, in_axes="0"), TypeError, IN_AXES + "0."),
    (lambda: jax.vmap(ADD, in_axes={0}), TypeError, IN_AXES + "{0}."),
    (lambda: jax.vmap(ADD, in_axes=(0.0, 0)), TypeError, "vmap in_axes" + LEAVES
     + "(0.0, 0), where in_axes[0] is 0.0."),
    (lambda: jax.vmap(ADD, out_axes="a"), TypeError, "vmap out_axes" + LEAVES + "a."),
    (lambda: jax.vmap(ADD, in_axes=(0,))(B, B), ValueError,
     IN_AXES + "len(in_axes)=1, len(args)=2."),
    (lambda: jax.vmap(ADD, in_axes=(0, 0))(B, y=B), ValueError, "Note that the function was "
     "called with keyword arguments ['y'], which the entries of a tuple in_axes never correspond"),
    (lambda: jax.vmap(lambda d: d, in_axes=({"b": 0},))({"a": B}), ValueError,
     "vmap in_axes specification must be a tree prefix of the corresponding value; \n"
     "  Mismatch details (1 found):\n"
     "  pytree structure error: different pytree metadata at key path\n    vmap in_axes[0]"),
    (lambda: jax.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(B), ValueError,
     "vmap out_axes specification must be a tree prefix of the corresponding value; \n"
     "  Mismatch details (1 found):\n"
     "  pytree structure error: different lengths of tuple at key path\n    vmap out_axes"),
    (lambda: jax.vmap(ADD, in_axes=None)(B, B), ValueError,
     "vmap must have at least one non-None value in in_axes or axis_size must be specified"),
    (lambda: jax.vmap(lambda: 1.0)(), ValueError, "vmap wrapped function must be passed at least "
     "one argument containing an array or axis_size must be specified, got empty *args=() and "
     "**kwargs={}"),
    (lambda: jax.vmap(ADD)(B, 2.0), ValueError, "vmap was requested to map its argument along "
     "axis 0, which implies that its rank should be at least 1, but is only 0 (its shape is ())"),
    (lambda: jax.vmap(ADD)(B, 2.0), ValueError, "). It is argument y; where it is the same for all "
     "examples, its entry of in_axes is None."),
    (lambda: jax.vmap(ADD)(1.0, 2.0), ValueError, "). It is argument x; call the function without "
     "vmap, as nothing else is mapped."),
    (lambda: jax.vmap(jax.random.normal)(jax.random.key(0)), ValueError, "). It is argument key; "
     "jax.random.split(key, n) gives a key to each of n examples."),
    (lambda: jax.vmap(ADD, in_axes=(0, -2))(B, B), ValueError, "along axis -2, which implies that "
     "its rank should be at least 2, but is only 1 (its shape is (3,))"),
    (lambda: jax.vmap(lambda x: x)("abc"), TypeError,
     "Argument 'abc' of type <class 'str'> is not a valid JAX type"),
    (lambda: jax.vmap(lambda x: x, out_axes=None)(B), ValueError,
     "at vmap out_axes, got axis spec None but output was batched on axis 0. It depends on what is "
     "mapped: 0 in out_axes stacks it; None is for what is the same for all examples."),
    (lambda: jax.vmap(lambda x: (x, {"a": x}), out_axes=(0, None))(B), ValueError,
     "at vmap out_axes[1]['a'], got axis spec None but output was batched on axis 0"),
    (lambda: jax.vmap(lambda x: x, out_axes=1)(B), ValueError,
     "axis 1 is out of bounds for array of dimension 1"),
    (lambda: jax.vmap(lambda x: "a")(B), TypeError,
     "Output from batched function 'a' with type <class 'str'> is not a valid JAX type"),
])
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def three(x, y, z, w=None, **kwargs):
    return x


@pytest.mark.parametrize(("call", "lines"), [
    (lambda: jax.vmap(ADD)(B, A), [
        "  * one axis had size 3: axis 0 of argument x of type float32[3];",
        "  * one axis had size 2: axis 0 of argument y of type float32[2,3]"]),
    (lambda: jax.vmap(three)(B, B, A), [
        "  * most axes (2 of them) had size 3, e.g. axis 0 of argument x of type float32[3];",
        "  * one axis had size 2: axis 0 of argument z of type float32[2,3]"]),
    (lambda: jax.vmap(three)(B, B, A, A), [
        "  * most axes (2 of them) had size 3, e.g. axis 0 of argument x of type float32[3];",
        "  * some axes (2 of them) had size 2, e.g. axis 0 of argument z of type float32[2,3]"]),
    (lambda: jax.vmap(lambda d: d)({"a": B, "b": A}), [
        "  * one axis had size 3: axis 0 of argument d['a'] of type float32[3];",
        "  * one axis had size 2: axis 0 of argument d['b'] of type float32[2,3]"]),
    (lambda: jax.vmap(three)(B, B, B, k=A), [
        "  * most axes (3 of them) had size 3, e.g. axis 0 of argument x of type float32[3];",
        "  * one axis had size 2: axis 0 of kwargs['k'] of type float32[2,3]"]),
    (lambda: jax.vmap(ADD, axis_size=5)(B, B), [
        "  * the `axis_size` argument was 5;",
        "  * most axes (2 of them) had size 3, e.g. axis 0 of argument x of type float32[3]"]),
])
def test_axes_of_different_sizes(call, lines):
    with pytest.raises(ValueError) as caught:
        call()
    expected = ["vmap got inconsistent sizes for array axes to be mapped:", *lines]
    if "`axis_size`" not in lines[0]:
        expected.append(
            "What is given by name is mapped: bind what is the same for all examples by "
            "functools.partial." if "kwargs" in lines[-1] else
            "What all examples share, such as weights, has None in in_axes.")
    assert str(caught.value).split("\n") == expected


def test_doc_strings_are_those_of_the_function():
    def documented(x):
        """Doubles {x}."""
        return x * 2

    def bare(x):
        return x

    assert jax.vmap(documented).__doc__.endswith("\n\nOriginal documentation:\n\nDoubles {x}.")
    assert "Original" not in jax.vmap(bare).__doc__
    mesh = jax.make_mesh((1,), ("x",))
    for transformed in (
        jax.checkpoint, jax.jit, jax.pmap, jax.custom_jvp, jax.custom_vjp,
        lambda f: jax.shard_map(f, mesh=mesh, in_specs=jax.P(), out_specs=jax.P()),
    ):
        assert transformed(documented).__doc__ == "Doubles {x}."
        assert transformed(bare).__doc__ is None


@pytest.mark.parametrize("shape", [(), (1,), (2,), (2, 3)])
@pytest.mark.parametrize("jitted", [False, True])
def test_unmapped_numbers_serve_for_every_element_of_a_mapped_predicate(shape, jitted):
    which = np.arange(3 * math.prod(shape)).reshape(3, *shape) % 2 == 0
    f = jax.vmap(lambda p: jax.lax.select(p, 0, 1))
    assert np.array_equal((jax.jit(f) if jitted else f)(which), np.where(which, 0, 1))


@pytest.mark.parametrize("cases", [(0.0, B), (B, 0.0)])
def test_a_number_beside_an_array_is_no_case_of_a_mapped_predicate(cases):
    which = np.ones((2, 3), bool)
    with pytest.raises(TypeError, match="select cases must have the same shapes"):
        jax.vmap(lambda p: jax.lax.select(p, *cases))(which)


def test_a_mapped_output_where_none_is_wanted_is_named_with_its_axis():
    with pytest.raises(ValueError, match=r"axis_name=rows\) but out_axes is None: .*b.\]\[0\]"):
        jax.vmap(lambda x: {"a": x, "b": [x]}, out_axes={"a": 0, "b": [None]},
                 axis_name="rows")(jnp.ones(2))


def test_a_mapped_function_holds_few_of_the_trees_that_it_was_called_with():
    """A tree holds the functions in it, with all that they close over."""
    mapped = jax.vmap(lambda f, x: f(x))
    alive = []
    for n in range(30):
        held = functools.partial(lambda n, x: x + n, n)
        alive.append(weakref.ref(held))
        assert float(mapped(jax.tree_util.Partial(held), np.zeros(1))[0]) == n
        del held
    jax.clear_caches()
    gc.collect()
    assert sum(f() is not None for f in alive) <= 8


@pytest.mark.parametrize("fun", [
    jax.lax.linalg.cholesky, jax.lax.linalg.svd, jax.lax.linalg.qr, jax.lax.linalg.lu,
    jax.lax.linalg.schur, jax.lax.linalg.hessenberg, jax.lax.linalg.eig, jax.lax.linalg.tridiagonal,
    lambda x: jax.lax.linalg.triangular_solve(x, x), lambda x: jax.lax.fft(x, "fft", (3, 3)),
    lambda x: jax.lax.fft(x, "rfft", (3, 3)),
])
def test_the_batch_is_no_axis_of_an_example(fun):
    with pytest.raises((TypeError, ValueError)) as alone:
        fun(jnp.ones(3))
    with pytest.raises(type(alone.value)) as batched:
        jax.vmap(fun)(jnp.eye(3))
    assert str(batched.value) == str(alone.value)


@pytest.mark.parametrize("fun", [
    lambda x: jax.lax.dynamic_slice(x, (0,), (9,)), lambda x: jax.lax.slice(x, (0,), (9,)),
    lambda x: jax.lax.reshape(x, (9,)), lambda x: jax.lax.transpose(x, (1,)),
    lambda x: jax.lax.rev(x, (3,)), lambda x: jax.lax.reduce_sum(x, (3,)),
    lambda x: jax.lax.broadcast_in_dim(x, (5,), (0,)), lambda x: jax.lax.clamp(x[:2], x, x),
    lambda x: jax.lax.dynamic_update_slice(x, jnp.ones(9), (0,)),
    lambda x: jax.lax.dot_general(x, x[:2], (((0,), (0,)), ((), ()))),
    lambda x: jax.lax.select(x > 0, jnp.ones((2, 3)), jnp.ones((2, 3))),
])
def test_errors_tell_the_sizes_of_an_example(fun):
    with pytest.raises((TypeError, ValueError)) as alone:
        fun(jnp.asarray(B))
    with pytest.raises((TypeError, ValueError)) as batched:
        jax.vmap(fun)(A)
    assert str(batched.value) == str(alone.value)


@pytest.mark.parametrize("args", [([1.0, 2.0],), (np.ones(2), [1.0, 2.0]), ([[1, 2], [3, 4]],)])
def test_lists_of_numbers_are_no_arrays(args):
    def f(*args):
        return jax.tree.leaves(args)[0]

    with pytest.raises(ValueError, match="a list of numbers is no array, but a tree: give"):
        jax.vmap(f)(*args)
    assert jax.vmap(f)(*map(jnp.array, args)).shape[0] == 2
    with pytest.raises(ValueError, match="its entry of in_axes is None"):
        jax.vmap(f)((jnp.ones(3), 2.0))
