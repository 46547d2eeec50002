"""Tracing without running: `make_jaxpr`, `eval_shape`, `ShapeDtypeStruct`, `typeof`."""

import pickle
from copy import deepcopy

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.layout import Format, Layout

pytestmark = pytest.mark.smoke

S = jax.ShapeDtypeStruct


@pytest.fixture
def x():
    return jnp.arange(3.0)


def test_make_jaxpr_of_arguments_of_all_kinds(x):
    expected = "{ lambda ; a:f32[3]. let b:f32[3] = mul a 3.0:f32[] in (b,) }"
    f = jax.make_jaxpr(lambda a: a * 3)
    for argument in (x, np.ones(3, np.float32), S((3,), "float32"), jax.typeof(x)):
        assert str(f(argument)) == expected
    assert str(jax.make_jaxpr(lambda: None)()) == "{ lambda ; . let  in () }"


def test_make_jaxpr_with_static_and_keyword_arguments(x):
    expected = "{ lambda ; a:f32[3]. let b:f32[3] = mul a 3.0:f32[] in (b,) }"
    for numbers in (1, -1, (1,)):
        f = jax.make_jaxpr(lambda a, n: a * int(n), static_argnums=numbers)
        assert str(f(x, 3)) == expected
    assert "mul" in str(jax.make_jaxpr(lambda a, n: a * n)(x, n=3))


def test_make_jaxpr_return_shape(x):
    closed, shape = jax.make_jaxpr(lambda a: {"b": a * 3, "c": 1}, return_shape=True)(x)
    assert len(closed.eqns) == 1
    assert shape == {"b": S((3,), np.float32), "c": S((), np.int32, weak_type=True)}


def test_make_jaxpr_name_and_errors():
    def some_name(a):
        return a

    assert jax.make_jaxpr(some_name).__name__ == "make_jaxpr(some_name)"
    with pytest.raises(TypeError, match="callable"):
        jax.make_jaxpr(3)
    with pytest.raises(TypeError, match="at path a"):
        jax.make_jaxpr(some_name)("text")


def test_eval_shape(x):
    out = jax.eval_shape(lambda a, b: {"s": a @ b, "n": None}, S((2, 3), "float32"),
                         np.ones((3, 4), np.float32))
    assert out == {"s": S((2, 4), np.float32), "n": None}
    assert jax.eval_shape(lambda a, b=1: a * b, 1.0, b=x) == S((3,), np.float32)
    f = jax.jit(lambda a, n: a * int(n), static_argnums=1)
    assert jax.eval_shape(f, x, 3) == f.eval_shape(x, 3) == S((3,), np.float32)
    assert jax.eval_shape(lambda a: a * 2, 3).weak_type
    assert jax.eval_shape(lambda a: a * 2, S((), np.int32, weak_type=True)).weak_type
    assert jax.eval_shape(lambda a: a * 2, S((2,), "float64")).dtype == np.float32
    with pytest.raises(TypeError, match="at path a"):
        jax.eval_shape(lambda a: a, "text")
    with pytest.raises(TypeError, match="callable"):
        jax.eval_shape(3)


def test_eval_shape_runs_nothing():
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.eval_shape(lambda a: float(a), 1.0)
    huge = jax.eval_shape(lambda: jnp.zeros((10**6, 10**6)))
    assert huge.size == 10**12


def test_objects_with_shape_and_dtype():
    class Described:
        shape = (3,)
        dtype = np.dtype("float32")

    assert jax.eval_shape(lambda a: a * 2, Described()) == S((3,), np.float32)


def test_struct():
    s = S((2, 3), "float32")
    assert (s.size, s.ndim, len(s), s.shape, s.dtype) == (6, 2, 2, (2, 3), np.float32)
    assert s == S([2, 3], np.float32)
    assert hash(s) == hash(S([2, 3], np.float32))
    assert s != S((2, 3), np.float16)
    assert s.update(shape=(4,)) == S((4,), np.float32)
    assert repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    assert repr(S((), np.int8, weak_type=True)).endswith("weak_type=True)")
    assert S.like(jnp.ones(2)) == S((2,), np.float32)
    sharding = jnp.ones(2).sharding
    assert S((2,), "float32", sharding=sharding).sharding is sharding


@pytest.mark.parametrize(("make", "error"), [
    (lambda: S((2,), None), ValueError),
    (lambda: S((1.5,), "float32"), TypeError),
    (lambda: S((2,), "float32", sharding=3), ValueError),
    (lambda: len(S((), "float32")), TypeError),
    (lambda: S((2,), "float32").update(nonsense=1), TypeError),
])
def test_bad_structs(make, error):
    with pytest.raises(error):
        make()


def test_typeof(x):
    assert str(jax.typeof(x)) == "float32[3]"
    assert repr(jax.typeof(1)) == "ShapedArray(int32[], weak_type=True)"
    assert not jax.typeof(True).weak_type
    assert jax.typeof(np.ones((2, 3))).dtype == np.float32
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.typeof("text")
    assert jax.jit(lambda a: jax.typeof(a).shape == (3,))(x)


def test_jit_refuses_what_only_describes_a_result():
    """Though `eval_shape`, which takes it, has traced the function before."""
    def f(x):
        return jax.ShapeDtypeStruct((2,), np.float32)

    assert jax.eval_shape(f, 1.0).shape == (2,)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.jit(f)(1.0)
    assert jax.eval_shape(f, 1.0).shape == (2,)


def test_a_struct_along_the_mesh_that_is_set():
    mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
    other = jax.make_mesh((1,), ("y",))
    struct = S((4, 4), "float32", sharding=jax.P("x"))
    assert repr(struct) == "ShapeDtypeStruct(shape=(4, 4), dtype=float32, sharding=P('x',))"
    for use in (lambda: struct.sharding, lambda: struct.format, lambda: jax.typeof(struct),
                lambda: jax.jit(jnp.sin).lower(struct)):
        with pytest.raises(TypeError, match="the context mesh cannot be empty"):
            use()
    with jax.set_mesh(mesh):
        named = jax.NamedSharding(mesh, jax.P("x"))
        assert struct.sharding == struct.format.sharding == named
        assert struct == S((4, 4), "float32", sharding=named)
        assert hash(struct) == hash(S((4, 4), "float32", sharding=named))
        assert jax.jit(jnp.sin).lower(struct).compile().input_shardings[0][0].spec == jax.P("x")
        assert struct.update(shape=(8, 4)).sharding == named
    with jax.set_mesh(other), pytest.raises(ValueError, match=r"x of .* is not found in mesh"):
        struct.sharding  # noqa: B018


def test_a_struct_cannot_be_changed():
    struct = S((2,), "float32")
    with pytest.raises(RuntimeError, match=r"Cannot reassign attributes \(shape\) of immutable"):
        struct.shape = (3,)
    with pytest.raises(RuntimeError, match=r"\(shape\) of immutable"):
        del struct.shape
    with pytest.raises(RuntimeError, match=r"\(sharding\) of immutable"):
        S((2,), "float32", sharding=jax.P("x")).sharding = None
    with pytest.raises(AttributeError):
        struct.other = 1
    for one in (struct, S((2,), "int8", weak_type=True, is_ref=True)):
        for copy in (pickle.loads(pickle.dumps(one)), deepcopy(one), one.update()):
            assert copy == one and repr(copy) == repr(one)


def test_a_struct_like_an_array(x):
    assert S.like(x) == S((3,), "float32") and S.like(x).sharding is None
    assert S.like(np.ones(3)) == S((3,), "float32")
    there = jax.device_put(x, jax.devices()[0])
    assert S.like(there).format == there.format
    assert S.like(jax.random.key(0)).dtype == jax.random.key(0).dtype


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: S(4, "float32"), TypeError, "is not iterable"),
    (lambda: S(np.int64(4), "float32"), TypeError, "is not iterable"),
    (lambda: S(None, "float32"), TypeError, "Shapes must be 1D sequences"),
    (lambda: S((2, None), "float32"), TypeError, "Shapes must be 1D sequences"),
    (lambda: S((4,), "float32", sharding=jax.P(None, "x")), ValueError, "of rank at least 2"),
    (lambda: S((4,), "float32", sharding=jax.NamedSharding(
        jax.make_mesh((1,), ("x",)), jax.P(None, "x"))), ValueError, "of rank at least 2"),
    (lambda: S((4,), "float32", sharding=jax.devices()[0]), ValueError, "should be an instance"),
    (lambda: S((4,), "float32", sharding=Format(Layout.AUTO)), TypeError, "Layout.AUTO"),
    (lambda: S((4,), "float32", manual_axis_type=3), TypeError, "jax.sharding.ManualAxisType"),
    (lambda: S((4, 4), "float32", sharding=jnp.ones((4, 4)).format).update(
        sharding=jnp.ones(4).sharding), ValueError, "You are updating ShapeDtypeStruct"),
    (lambda: S((4,), "float32").update(layout=None), TypeError, "unknown fields"),
])
def test_what_a_struct_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_layout_of_a_struct_or_an_array_is_that_of_the_argument():
    x = jnp.arange(6.).reshape(2, 3)
    columns = jax.device_put(x, Format(Layout((1, 0)), x.sharding))
    f = jax.jit(lambda x: x * 2)
    for given in (S.like(columns), columns):
        compiled = f.lower(given).compile()
        assert compiled.input_formats[0][0].layout.major_to_minor == (1, 0)
        assert compiled(columns).tolist() == f(x).tolist()
    assert f.lower(x).compile().input_formats[0][0].layout.major_to_minor == (0, 1)


def test_structs_are_arguments_of_jitted_functions_while_a_program_is_recorded():
    struct = jax.ShapeDtypeStruct((3,), jnp.float32)
    inner = jax.jit(lambda x, y: x + y)

    def f(x):
        return inner(x, struct)

    assert jax.eval_shape(lambda: inner(struct, struct)).shape == (3,)
    assert jax.eval_shape(f, struct).shape == (3,)
    assert jax.eval_shape(jax.grad(lambda x: f(x).sum()), struct).shape == (3,)
    assert jax.make_jaxpr(f)(jnp.ones(3)).out_avals[0].shape == (3,)
    for run in (f, jax.jit(f), jax.jit(f).lower, jax.vmap(f)):
        with pytest.raises(TypeError, match="ShapeDtypeStruct"):
            run(jnp.ones(3))


def test_fields_of_a_derived_struct_are_given_once():
    class Batched(jax.ShapeDtypeStruct):
        __slots__ = ("axes",)

        def __init__(self, shape, dtype, axes):
            super().__init__(shape, dtype)
            self.axes = axes

    struct = Batched((2,), "float32", (0,))
    assert struct.axes == (0,) and struct.shape == (2,)
    for name in ("axes", "shape", "sharding"):
        with pytest.raises(RuntimeError, match=rf"Cannot reassign attributes \({name}\)"):
            setattr(struct, name, (1,))


def test_types_of_arrays_stay_when_caches_are_cleared():
    x = jnp.ones(3)
    jax.clear_caches()
    with jax.set_mesh(jax.make_mesh((1,), ("i",))):
        assert jax.typeof(x) is x.aval
