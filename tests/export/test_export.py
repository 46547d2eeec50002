"""Exporting and calling: fields, derivatives, platforms, errors."""

import copy
import pickle
import re
from collections import namedtuple

import ml_dtypes
import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export, jaxlib_api, lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.ones((3, 2), np.float32)


def product(x, y):
    return jnp.sin(x) @ y, {"first": x[0]}


def exported(symbolic=True):
    n = export.symbolic_shape("n, 3") if symbolic else (2, 3)
    return export.export(jax.jit(product))(jax.ShapeDtypeStruct(n, np.float32), Y)


def test_fields():
    e = exported()
    assert e.fun_name == "product" and str(e) == "Exported(fun_name=product, ...)"
    assert e.in_tree == jax.tree.structure(((0, 0), {}))
    assert [a.str_short() for a in e.in_avals] == ["float32[n,3]", "float32[3,2]"]
    assert e.out_tree == jax.tree.structure((0, {"first": 0}))
    assert [a.str_short() for a in e.out_avals] == ["float32[n,2]", "float32[3]"]
    assert e.platforms == (export.default_export_platform(),)
    assert e.nr_devices == 1 and e.module_kept_var_idx == (0, 1)
    assert e.in_shardings_hlo == e.in_shardings_jax() == (None, None)
    assert e.out_shardings_hlo == e.out_shardings_jax(None) == (None, None)
    assert e.ordered_effects == e.unordered_effects == e.disabled_safety_checks == ()
    assert e.calling_convention_version == export.maximum_supported_calling_convention_version
    assert e.uses_global_constants and not exported(False).uses_global_constants
    assert e.mlir_module_serialized.startswith(b"ML\xefR")
    assert "tensor<?x3xf32>" in e.mlir_module() and "?" not in exported(False).mlir_module()
    with pytest.raises(AttributeError):
        e.fun_name = "other"


def test_pickles():
    """Of what has a derivative the message says what serves; all else is its fields."""
    e = exported(False)
    for given in (e, export.deserialize(e.serialize(vjp_order=1))):
        with pytest.raises(TypeError, match=r"^cannot pickle 'Exported' .*: use its .serial"):
            pickle.dumps(given)
    assert copy.copy(e) is e and copy.deepcopy(e) is e
    loaded = export.deserialize(e.serialize())
    loaded.call(X, Y)
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(again.call(X, Y)[0], e.call(X, Y)[0])
    assert again.in_avals == e.in_avals and not again.has_vjp()


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_calls(symbolic, wrap):
    out, rest = wrap(exported(symbolic).call)(X, Y)
    np.testing.assert_allclose(out, np.sin(X) @ Y, rtol=1e-6)
    np.testing.assert_array_equal(rest["first"], X[0])
    if symbolic:
        assert wrap(exported().call)(np.ones((5, 3), np.float32), Y)[0].shape == (5, 2)


@pytest.mark.parametrize("symbolic", [False, True])
def test_derivatives(symbolic):
    e = exported(symbolic)
    gx, gy = jax.grad(lambda x, y: e.call(x, y)[0].sum(), (0, 1))(X, Y)
    np.testing.assert_allclose(gx, np.cos(X) * 2, rtol=1e-5)
    np.testing.assert_allclose(gy, np.repeat(np.sin(X).sum(0)[:, None], 2, 1), rtol=1e-5)
    second = jax.grad(lambda x: jax.grad(lambda v: e.call(v, Y)[0].sum())(x).sum())(X)
    np.testing.assert_allclose(second, -np.sin(X) * 2, rtol=1e-5, atol=1e-6)
    assert e.has_vjp()
    assert [a.str_short() for a in e.vjp().in_avals][2:] == [
        "float32[n,2]" if symbolic else "float32[2,2]", "float32[3]"]
    assert e.vjp().fun_name == "product_vjp"


def test_derivatives_are_those_of_the_order_asked_for():
    e = exported()
    assert not export.deserialize(e.serialize()).has_vjp()
    once = export.deserialize(e.serialize(vjp_order=1))
    assert once.has_vjp() and not once.vjp().has_vjp()
    np.testing.assert_allclose(
        jax.grad(lambda x: once.call(x, Y)[0].sum())(X), np.cos(X) * 2, rtol=1e-5)
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(lambda x: jax.grad(lambda v: once.call(v, Y)[0].sum())(x).sum())(X)
    for order in (-1, 100):
        with pytest.raises(ValueError, match="vjp_order"):
            e.serialize(vjp_order=order)


def test_integer_arguments_and_results_have_derivatives_zero():
    e = export.export(jax.jit(lambda x, i: (x * i, i + 1)))(X, np.int32(2))
    assert jax.grad(lambda x: e.call(x, np.int32(3))[0].sum())(X).tolist() == [[3.0] * 3] * 2
    specs = export.symbolic_args_specs([np.ones((2, 3), int), np.ones((3, 4))], ["2, n", "n, 4"])
    e = export.export(jax.jit(lambda i, x: (i + 1, x * x)))(*specs)
    (_, y), pullback = jax.vjp(e.call, np.ones((2, 3), int), np.full((3, 4), 2.0))
    i_bar, x_bar = pullback((np.zeros((2, 3), jax.float0), np.ones_like(y)))
    assert (i_bar.shape, i_bar.dtype) == ((2, 3), jax.float0) and (x_bar == 4).all()
    assert e.vjp().out_avals[0].str_short() == "float0[2,n]"


@pytest.mark.parametrize("keep_unused", [False, True])
def test_unused_arguments_are_kept_where_jit_keeps_them(keep_unused):
    e = export.export(jax.jit(lambda x, y: x, keep_unused=keep_unused))(1.0, 2.0)
    assert e.module_kept_var_idx == ((0, 1) if keep_unused else (0,))
    assert export.deserialize(e.serialize()).call(1.0, 2.0) == 1


def test_sizes_as_values():
    e = export.export(jax.jit(lambda x: lax.shape_as_value(x.shape) * 2))(
        jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32))
    assert e.call(np.ones((5, 3), np.float32)).tolist() == [10, 6]


def test_batches_are_refused():
    with pytest.raises(NotImplementedError, match="call_exported"):
        jax.vmap(exported().call)(X[None], Y[None])


def test_what_can_be_exported():
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(product)
    with pytest.raises(ValueError, match="'no where' is no name of a platform"):
        export.export(jax.jit(product), platforms=["no where"])
    with pytest.raises(ValueError, match="not a string"):
        export.export(jax.jit(product), platforms="cpu")
    with pytest.raises(ValueError, match="some different ones"):
        export.export(jax.jit(product), platforms=["cpu", "cpu"])
    with pytest.raises(TypeError, match="outer transformation"):
        jax.jit(lambda y: export.export(jax.jit(lambda x: x + y))(X))(X)


@pytest.mark.parametrize("callback", [
    lambda x: jax.pure_callback(lambda v: v, x, x),
    lambda x: (jax.debug.print("{}", x), x)[1],
])
def test_host_callbacks_are_refused(callback):
    with pytest.raises(NotImplementedError, match="host_callbacks is not yet implemented"):
        export.export(jax.jit(callback))(X)


def test_custom_calls_without_a_guarantee_are_refused():
    def foreign(x):
        return jax.ffi.ffi_call("my_target", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    with pytest.raises(ValueError, match=r"no compatibility guarantees(.|\n)*@my_target"):
        export.export(jax.jit(foreign))(X)
    check = export.DisabledSafetyCheck.custom_call("my_target")
    e = export.export(jax.jit(foreign), disabled_checks=[check])(X)
    assert e.disabled_safety_checks == (check,)
    assert export.deserialize(e.serialize()).disabled_safety_checks == (check,)
    every = export.DisabledSafetyCheck.custom_call("ALL")
    assert export.export(jax.jit(foreign), disabled_checks=[every])(X).mlir_module()
    assert check.is_custom_call() == "my_target"
    assert check != export.DisabledSafetyCheck.platform()
    assert export.DisabledSafetyCheck.platform().is_custom_call() is None


# -- platforms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("none", [None, (), []])
def test_the_default_platform(none):
    assert export.export(jax.jit(product), platforms=none)(X, Y).platforms == (
        export.default_export_platform(),)


def test_other_platforms():
    e = export.export(jax.jit(product), platforms=["tpu"])(X, Y)
    with pytest.raises(ValueError, match=re.escape(
            "Function 'product' was exported for platforms '('tpu',)' but it is used on "
            "'('cpu',)'.")):
        e.call(X, Y)
    allowed = export.export(jax.jit(product), platforms=["cuda"],
                            disabled_checks=[export.DisabledSafetyCheck.platform()])(X, Y)
    np.testing.assert_allclose(allowed.call(X, Y)[0], np.sin(X) @ Y, rtol=1e-6)


def test_platforms_of_plugins_that_are_not_here():
    for name in ("tpu7x", "cuda12", "rocm6"):
        assert export.export(jax.jit(product), platforms=[name])(X, Y).platforms == (name,)
    e = export.export(jax.jit(product), platforms=["cpu", "abacus"])(X, Y)
    assert e.platforms == ("cpu", "abacus")
    np.testing.assert_allclose(e.call(X, Y)[0], np.sin(X) @ Y, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="'eigh' not found for platform abacus"):
        export.export(jax.jit(jnp.linalg.eigh), platforms=["abacus"])(np.eye(2))


@pytest.mark.parametrize("shape", [(2, 3), "n, 3"])
def test_several_platforms(shape):
    def by_platform(x):
        return lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos), x.sum()

    if isinstance(shape, str):
        shape = export.symbolic_shape(shape)
    e = export.export(jax.jit(by_platform), platforms=["tpu", "cuda", "cpu"])
    with pytest.raises(NotImplementedError, match="platform_dependent has no branch"):
        e(jax.ShapeDtypeStruct(shape, np.float32))
    e = export.export(jax.jit(by_platform), platforms=["tpu", "cpu"])(
        jax.ShapeDtypeStruct(shape, np.float32))
    assert e.platforms == ("tpu", "cpu") and e.uses_global_constants
    assert "@main(%arg0: tensor<i32>" in e.mlir_module()
    for record in (e, export.deserialize(e.serialize())):
        np.testing.assert_allclose(record.call(X)[0], np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: e.call(x)[0].sum())(X), np.cos(X), rtol=1e-5)


# -- symbolic shapes -------------------------------------------------------------------------------


def test_wrong_arguments():
    e = exported()
    with pytest.raises(ValueError, match=r"same pytree structure(.|\n)*length 1 in the invocation"):
        e.call(X)
    with pytest.raises(ValueError, match=re.escape(
            "Dtype mismatch for args[1]: expected float32 and called with int32")):
        e.call(X, Y.astype(np.int32))
    with pytest.raises(ValueError, match=re.escape(
            "Shape mismatch for args[1].shape[0] (expected same constant): expected (3, 2) and "
            "called with (4, 2)")):
        e.call(X, np.ones((4, 2), np.float32))
    with pytest.raises(ValueError, match="Rank mismatch"):
        e.call(X[0], Y)


def test_dimensions_are_checked():
    a, = export.symbolic_shape("a")
    e = export.export(jax.jit(lambda x, y: x[:, 0] + y))(
        jax.ShapeDtypeStruct((a, a), np.float32), jax.ShapeDtypeStruct((a,), np.float32))
    assert e.call(np.ones((2, 2), np.float32), np.ones(2, np.float32)).tolist() == [2, 2]
    for x, y, message in (
            ((2, 3), 2, "Found inconsistency between dimension size args[0].shape[1] (= 3) and the "
             "specification 'a' (= 2). Using the following polymorphic shapes specifications: "
             "args[0].shape = (a, a),args[1].shape = (a,). Obtained dimension variables: 'a' = 2 "
             "from specification 'a' for dimension args[0].shape[0] (= 2)"),
            ((2, 2), 3, "args[1].shape[0] (= 3)"),
            ((0, 0), 0, "Expected value >= 1 for dimension variable 'a'.")):
        with pytest.raises(ValueError, match=re.escape(message)):
            e.call(np.ones(x, np.float32), np.ones(y, np.float32))


def refined_for(e, *shapes):
    """The module made static for arguments of these shapes, unchecked by who calls it."""
    avals = [jax.typeof(np.ones(s, np.float32)) for s in shapes]
    functions = {name: text.replace("func.func public", "func.func private")
                 for name, text in e._program.functions().items()}
    return jaxlib_api.refined(e._program._static_module(
        sorted(functions.items(), key=lambda item: item[0] != "main"), avals))


def test_modules_check_shapes_themselves():
    shapes = export.symbolic_args_specs(
        [jax.ShapeDtypeStruct((4, 3), np.float32), jax.ShapeDtypeStruct((7, 3), np.float32)],
        ["2*n, m", "2*n + m, m"], constraints=["n >= m"])
    e = export.export(jax.jit(lambda x, k: jnp.sum(x) + k.shape[0]))(*shapes)
    e = export.deserialize(e.serialize())
    assert e.mlir_module().count("custom_call @shape_assertion") == 6
    assert "shape_assertion" not in refined_for(e, (6, 3), (9, 3))
    for x, k, message in (
            ((5, 2), (6, 2), "Division had remainder 1 when computing the value of 'n'."),
            ((0, 2), (2, 2), "Expected value >= 1 for dimension variable 'n'."),
            ((6, 3), (8, 3), "Found inconsistency between dimension size args[1].shape[0] (= 8) "
             "and the specification '2*n + m' (= 9)."),
            ((6, 3), (9, 4), "Obtained dimension variables: 'n' = 3 from specification '2*n' for "
             "dimension args[0].shape[0] (= 6), 'm' = 3 from specification 'm' for dimension "
             "args[0].shape[1] (= 3)."),
            ((4, 3), (7, 3), "the symbolic shape constraint n >= m. Expected 'n - m' to be "
             "greater or equal to 0, but found -1.")):
        with pytest.raises(Exception, match=re.escape(message)):  # jaxlib's
            refined_for(e, x, k)
        with pytest.raises(ValueError, match=re.escape(message)):
            e.call(np.ones(x, np.float32), np.ones(k, np.float32))
    # Such a module in another one, with sizes that are not known yet.
    n, m = export.symbolic_shape("n, m", constraints=["n >= m"])
    outer = export.export(jax.jit(lambda x, k: e.call(x, k) * 2))(
        jax.ShapeDtypeStruct((2 * n, m), np.float32), jax.ShapeDtypeStruct((2 * n + m, m),
                                                                           np.float32))
    assert float(outer.call(np.ones((6, 3), np.float32), np.ones((9, 3), np.float32))) == 54


def test_modules_of_many_variables_are_called():
    names = [f"v{i}" for i in range(20)]
    structs = [jax.ShapeDtypeStruct(export.symbolic_shape(name), np.float32) for name in names]
    scope = structs[0].shape[0].scope
    structs = [jax.ShapeDtypeStruct(export.symbolic_shape(name, scope=scope), np.float32)
               for name in names]
    structs = {f"{{{i}}}": x for i, x in enumerate(structs)}
    e = export.export(jax.jit(lambda xs: sum(x.sum() for x in xs.values())))(structs)
    assert float(e.call({k: np.ones(i + 1, np.float32) for i, k in enumerate(structs)})) == 210


@pytest.mark.parametrize("platforms", [None, ("cpu", "cuda")])
def test_results_have_their_names(platforms):
    e = export.export(jax.jit(lambda x: {"top": [x + 1, x], "b": (x,)}), platforms=platforms)(
        np.ones(3, np.float32))
    names = re.findall(r'jax.result_info = "([^"]*)"', e.mlir_module())
    assert names == ["result['b'][0]", "result['top'][0]", "result['top'][1]"]
    assert e.call(np.ones(3, np.float32))["top"][0].tolist() == [2, 2, 2]
    assert jax.jit(lambda x: e.call(x)["b"])(np.ones(3, np.float32))[0].tolist() == [1, 1, 1]


def test_constraints_are_checked():
    a, b = export.symbolic_shape("a, b", constraints=["a >= b", "mod(a, 2) == 0"])
    e = export.export(jax.jit(lambda x: jnp.sum(x) + x.shape[0]))(
        jax.ShapeDtypeStruct((a, 2 * b), np.float32))
    e = export.deserialize(e.serialize())
    assert float(e.call(np.ones((4, 2), np.float32))) == 12
    for shape, message in (
            ((4, 3), "Division had remainder 1 when computing the value of 'b'."),
            ((4, 10), "the symbolic shape constraint a >= b. Expected '- b + a' to be greater or "
             "equal to 0, but found -1."),
            ((3, 2), "the symbolic shape constraint mod(a, 2) == 0. Expected 'mod(a, 2)' to be "
             "equal to 0, but found 1.")):
        with pytest.raises(ValueError, match=re.escape(message)):
            e.call(np.ones(shape, np.float32))


def test_variables_must_follow_from_the_arguments():
    with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables"):
        export.export(jax.jit(lambda x: x))(
            jax.ShapeDtypeStruct(export.symbolic_shape("a + b"), np.float32))
    shape = export.symbolic_shape("a + b, a")
    e = export.export(jax.jit(lambda x: x.reshape(-1)))(jax.ShapeDtypeStruct(shape, np.float32))
    assert e.call(np.ones((3, 2), np.float32)).shape == (6,)
    both = {"square": jax.ShapeDtypeStruct(export.symbolic_shape("a, a^2, b*c"), np.float32)}
    with pytest.raises(ValueError, match=re.escape(
            "args[0]['square'].shape = (a, a^2, b*c). Unprocessed specifications: 'b*c' for "
            "dimension size args[0]['square'].shape[2]")):
        export.export(jax.jit(lambda x: x))(both)


def test_arguments_of_two_scopes_are_named():
    shape = export.symbolic_shape("a + b, a")
    other = jax.ShapeDtypeStruct(export.symbolic_shape("a"), np.float32)
    with pytest.raises(ValueError, match=r"mixing of symbolic scopes when exporting pair\."
                       r"(.|\n)*'b \+ a' \(args\[0\]\)(.|\n)*'a' \(kwargs\['y'\]\)"):
        def pair(x, y):
            return x, y

        export.export(jax.jit(pair))(jax.ShapeDtypeStruct(shape, np.float32), y=other)


def test_constraints_on_variables_of_no_argument_are_refused():
    rows = export.symbolic_shape("rows", constraints=["rows >= cols"])
    with pytest.raises(ValueError, match=r"variable 'cols'.*'rows >= cols'"):
        export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct(rows, np.float32))


def test_unused_arguments_tell_dimensions():
    n, = export.symbolic_shape("n")
    e = export.export(jax.jit(lambda x, y, z: jnp.zeros(y.shape[0]) + z))(
        X, jax.ShapeDtypeStruct((n,), np.int8), 1.0)
    assert e.module_kept_var_idx == (1, 2)
    assert e.call(X, np.zeros(4, np.int8), 1.0).tolist() == [1, 1, 1, 1]


def test_exported_functions_in_exported_functions():
    inner = exported()
    m, = export.symbolic_shape("m")
    outer = export.export(jax.jit(lambda x: inner.call(x, Y)[0] * x.shape[0]))(
        jax.ShapeDtypeStruct((2 * m, 3), np.float32))
    assert outer.out_avals[0].str_short() == "float32[2*m,2]"
    for e in (outer, export.deserialize(outer.serialize(vjp_order=1))):
        np.testing.assert_allclose(e.call(X), 2 * np.sin(X) @ Y, rtol=1e-6)
        np.testing.assert_allclose(
            jax.grad(lambda x: e.call(x).sum())(X), 4 * np.cos(X), rtol=1e-5)  # noqa: B023
    fixed = export.export(jax.jit(lambda x: inner.call(x, Y)[0]))(X)
    assert fixed.uses_global_constants and not exported(symbolic=False).uses_global_constants
    square = export.export(jax.jit(lambda x: x))(
        jax.ShapeDtypeStruct(export.symbolic_shape("k, k"), np.float32))
    with pytest.raises(ValueError, match="Found inconsistency"):
        export.export(jax.jit(square.call))(jax.ShapeDtypeStruct((m, 3), np.float32))


def test_two_calls_in_one_program():
    e, f = exported(), exported(False)
    got = jax.jit(lambda x, y: e.call(x, y)[0] + e.call(x[:1], y)[0] + f.call(x, y)[0])(X, Y)
    want = np.sin(X) @ Y
    np.testing.assert_allclose(got, 2 * want + want[:1], rtol=1e-6)


def test_keyword_arguments_and_constants():
    table = jnp.arange(100.0)
    e = export.export(jax.jit(lambda x, *, scale: x * scale + table))(
        np.float32(1), scale=np.float32(2))
    e = export.deserialize(e.serialize())
    np.testing.assert_array_equal(e.call(np.float32(3), scale=np.float32(2)), 6 + np.arange(100.0))


@pytest.mark.parametrize("dtype", [
    "bool", "int4", "int8", "uint32", "bfloat16", "float16", "float8_e4m3fn", "complex64"])
def test_dtypes(dtype):
    x = np.zeros((2, 3), getattr(ml_dtypes, dtype, dtype))
    e = export.export(jax.jit(lambda v: v[::-1]))(
        jax.ShapeDtypeStruct(export.symbolic_shape("n, 3"), x.dtype))
    out = export.deserialize(e.serialize()).call(x)
    assert out.dtype == x.dtype and out.shape == x.shape


def test_wide_dtypes():
    with jax.enable_x64(True):
        e = export.export(jax.jit(lambda x: x * x.shape[0]))(
            jax.ShapeDtypeStruct(export.symbolic_shape("n"), np.float64))
        assert export.deserialize(e.serialize()).call(np.ones(3)).dtype == np.float64


def test_keys():
    e = export.export(jax.jit(lambda k, x: (jax.random.split(k), jax.random.normal(k, x.shape))))(
        jax.random.key(0), jax.ShapeDtypeStruct(export.symbolic_shape("n"), np.float32))
    e = export.deserialize(e.serialize())
    keys, values = e.call(jax.random.key(7), np.ones(3, np.float32))
    assert (jax.random.key_data(keys) == jax.random.key_data(
        jax.random.split(jax.random.key(7)))).all()
    np.testing.assert_array_equal(values, jax.random.normal(jax.random.key(7), (3,)))


def test_linear_algebra():
    matrix = np.eye(3, dtype=np.float32) * 4
    e = export.export(jax.jit(jnp.linalg.cholesky))(matrix)
    np.testing.assert_allclose(export.deserialize(e.serialize()).call(matrix), np.eye(3) * 2)
    e = export.export(jax.jit(jnp.linalg.cholesky))(
        jax.ShapeDtypeStruct(export.symbolic_shape("n, n"), np.float32))
    np.testing.assert_allclose(e.call(matrix), np.eye(3) * 2)


Point = namedtuple("Point", "x y")


def test_weak_types_are_kept():
    e = export.export(jax.jit(lambda x: x * 2))(1.0)
    assert e.in_avals[0].weak_type
    assert export.deserialize(e.serialize()).in_avals == e.in_avals
    assert e.call(np.float32(2)).dtype == np.float32


def test_arguments_of_two_scopes_are_refused_before_the_trace():
    shapes = [jax.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32) for _ in range(2)]
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        export.export(jax.jit(lambda x, y: x + y))(*shapes)


def test_references_of_the_function_itself():
    @jax.jit
    def doubled(x):
        ref = jax.new_ref(x)
        ref[...] *= 2 * x
        return ref[...]

    exported = export.export(doubled, platforms=["cpu", "tpu"])(X)
    np.testing.assert_allclose(exported.call(X), 2 * X * X)
    np.testing.assert_allclose(jax.grad(lambda x: exported.call(x).sum())(X), 4 * X)


def test_references_from_outside_are_refused():
    ref = jax.new_ref(X)
    with pytest.raises(NotImplementedError, match="takes or closes over mutable references"):
        export.export(jax.jit(lambda r: r[...]))(ref)
    with pytest.raises(NotImplementedError, match="takes or closes over mutable references"):
        export.export(jax.jit(lambda x: ref[...] + x))(X)
