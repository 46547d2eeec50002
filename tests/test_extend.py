"""What libraries build on: primitives of their own, rules, interpreters, wrapped functions."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import pyjx as jax
from pyjx import api_util, version
from pyjx import numpy as jnp
from pyjx.compat import partial_evaluation
from pyjx.compat import values as compat_values
from pyjx.experimental import layout
from pyjx.extend import core as jex
from pyjx.extend import linear_util as lu
from pyjx.interpreters import ad, batching, mlir, xla
from pyjx.interpreters import partial_eval as pe


def cube_primitive(lowering):
    cube_p = jex.Primitive("cube_of_test")
    cube_p.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[cube_p] = lambda primals, tangents: (
        cube_p.bind(*primals), 3 * primals[0] ** 2 * ad.instantiate_zeros(tangents[0]))
    batching.primitive_batchers[cube_p] = lambda operands, dims: (cube_p.bind(*operands), dims[0])
    mlir.register_lowering(cube_p, lowering)
    return cube_p


def as_function(x):
    return x * x * x


def as_operations(ctx, x):
    (aval,) = ctx.avals_in
    from jaxlib.mlir.dialects import stablehlo

    square = stablehlo.multiply(x, x)
    one = mlir.ir_constant(np.ones(aval.shape, aval.dtype))
    return [stablehlo.multiply(stablehlo.multiply(square, x), one)]


def as_both(ctx, x):
    return mlir.lower_fun(as_function, multiple_results=False)(ctx, x)


@pytest.mark.parametrize("lowering", [
    mlir.lower_fun(as_function, multiple_results=False), as_operations, as_both])
def test_a_primitive_of_a_library(lowering):
    cube_p = cube_primitive(lowering)
    cube_p.def_impl(lambda x: xla.apply_primitive(cube_p, x))
    x = jnp.arange(4.0)
    np.testing.assert_allclose(cube_p.bind(x), x ** 3)
    np.testing.assert_allclose(jax.jit(lambda x: cube_p.bind(x) + 1)(x), x ** 3 + 1)
    np.testing.assert_allclose(jax.grad(lambda x: cube_p.bind(x).sum())(x), 3 * x ** 2)
    np.testing.assert_allclose(jax.vmap(cube_p.bind)(x), x ** 3)
    assert ad.primitive_jvps[cube_p] is cube_p.jvp
    assert cube_p in batching.primitive_batchers
    assert "cube_of_test" in str(jax.make_jaxpr(cube_p.bind)(1.0))


def test_a_linear_primitive():
    double_p = jex.Primitive("double_of_test")
    double_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(double_p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    ad.deflinear2(double_p, lambda ct, x: [double_p.bind(ct)])
    batching.defvectorized(double_p)
    assert jax.grad(double_p.bind)(3.0) == 2
    assert jax.jit(jax.jacfwd(double_p.bind))(3.0) == 2
    assert ad.is_undefined_primal(ad.UndefinedPrimal(jax.typeof(1.0)))


@pytest.mark.parametrize("of", [ad.Zero, ad.UndefinedPrimal])
def test_what_rules_are_given_for_no_value_is_a_pytree_without_leaves(of):
    """So functions may take it and return it, whatever transforms them."""
    one = of(jax.core.ShapedArray((2,), jnp.float32))
    leaves, tree = jax.tree.flatten({"a": one, "b": 3})
    assert leaves == [3]
    again = jax.tree.unflatten(tree, [4])["a"]
    assert type(again) is of and again.aval == one.aval
    other = of(jax.core.ShapedArray((3,), jnp.float32))
    assert jax.tree.structure(one) != jax.tree.structure(other)
    x = jnp.arange(3.0)
    for out, through in [jax.vmap(lambda x: (x, one))(x), jax.jit(lambda x: (x, one))(x),
                         jax.jvp(lambda x: (x, one), (x,), (x,))[1],
                         jax.lax.scan(lambda c, x: (c + x, one), 0.0, x),
                         jax.vmap(lambda x, z: (x, z))(x, one)]:
        assert isinstance(out, jax.Array)
        assert type(through) is of and through.aval == one.aval
    assert len(jax.make_jaxpr(lambda x: (x, one))(x).out_avals) == 1


def test_a_lowering_rule_for_gpus():
    only_p = jex.Primitive("only_on_gpus_of_test")
    only_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(only_p, mlir.lower_fun(lambda x: jnp.sin(x), multiple_results=False),
                           platform="gpu")
    traced = jax.jit(only_p.bind).trace(1.0)
    for platform in ("cuda", "rocm"):
        assert "sine" in traced.lower(lowering_platforms=(platform,)).as_text()
    with pytest.raises(NotImplementedError, match="only_on_gpus_of_test"):
        traced.lower()


def test_rules_of_the_axis_in_both_signatures():
    size_p = jex.Primitive("size_of_test")
    size_p.def_abstract_eval(lambda x: x)
    size_p.def_impl(lambda x: x)
    batching.fancy_primitive_batchers[size_p] = lambda axis, operands, dims: (
        operands[0] * axis.size, dims[0])
    np.testing.assert_array_equal(jax.vmap(size_p.bind)(jnp.ones(3)), 3)
    batching.axis_primitive_batchers[size_p] = lambda size, name, trace, operands, dims: (
        operands[0] + size, dims[0])
    np.testing.assert_array_equal(jax.vmap(size_p.bind)(jnp.ones(3)), 4)


def test_rules_of_the_library_are_read_as_functions():
    from pyjx.lax import cond_p, mul_p

    out, tangent = ad.primitive_jvps[mul_p]([2.0, 3.0], [1.0, ad.Zero(jax.typeof(3.0))])
    assert (out, tangent) == (6, 3)
    assert cond_p in ad.primitive_jvps
    out, dim = batching.primitive_batchers[mul_p]([jnp.arange(3.0), 2.0], [0, None])
    assert dim == 0 and out.tolist() == [0, 2, 4]
    with pytest.raises(KeyError):
        ad.primitive_transposes[jex.Primitive("without")]


def test_calls():
    jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    out, = jex.primitives.closed_call_p.bind(jnp.array(1.0), call_jaxpr=jaxpr)
    np.testing.assert_allclose(out, 2 * np.sin(1.0), rtol=1e-6)


def test_the_state_of_tracing():
    here = jex.get_opaque_trace_state()
    assert here == jex.get_opaque_trace_state(convention="flax")
    seen = []

    def f(x):
        seen.append((jex.get_opaque_trace_state() == here, jex.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                     jex.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                     jex.unsafe_get_axis_names_DO_NOT_USE()))
        return x

    f(1.0)
    jax.jit(f)(1.0)
    jax.grad(f)(1.0)
    jax.vmap(f, axis_name="i")(jnp.ones(2))
    assert seen == [(True, False, False, []), (False, True, False, []), (False, False, False, []),
                    (False, False, True, ["i"])]
    states = []
    jax.grad(lambda x: states.append(jex.get_opaque_trace_state()) or x)(1.0)
    gc.collect()
    assert states[0] != jex.get_opaque_trace_state()


class Counter(jax.core.Trace):
    def __init__(self, parent):
        super().__init__()
        self.parent_trace = parent
        self.names = []

    def process_primitive(self, primitive, tracers, params):
        self.names.append(primitive.name)
        values = [x.val if isinstance(x, Counted) else x for x in tracers]
        out = primitive.bind_with_trace(self.parent_trace, values, [None] * len(values), params)
        return jax.tree.map(lambda v: Counted(self, v), out)


class Counted(jax.core.Tracer):
    def __init__(self, trace, val):
        super().__init__(trace, jax.typeof(val))
        self.val = val


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.grad])
def test_an_interpreter_of_a_library(around):
    names = []

    def f(x):
        with jex.take_current_trace() as parent:
            trace = Counter(parent)
            with jex.set_current_trace(trace):
                out = jax.lax.mul(jax.lax.sin(Counted(trace, x)), 2.0)
        names[:] = trace.names
        return out.val

    around(f)(1.0)
    assert names == ["sin", "mul"]


class Reader(Counter):
    """Binds operations again by the parameters that it is given, as libraries do."""

    def __init__(self, parent, by_trace):
        super().__init__(parent)
        self.by_trace = by_trace
        self.params = {}

    def process_primitive(self, primitive, tracers, params):
        self.params[primitive.name] = params
        if self.by_trace:
            return super().process_primitive(primitive, tracers, params)
        values = [x.val if isinstance(x, Counted) else x for x in tracers]
        with jex.set_current_trace(self.parent_trace):
            out = primitive.bind(*values, **params)
        return jax.tree.map(lambda v: Counted(self, v), out)


@pytest.mark.parametrize("by_trace", [False, True])
@pytest.mark.parametrize("told", ["0.10.2", "0.12.0"])
def test_interpreters_get_loops_as_the_version_has_them(told, by_trace, monkeypatch):
    monkeypatch.setattr(version, "__version__", told)
    with jex.take_current_trace() as parent:
        trace = Reader(parent, by_trace)
        with jex.set_current_trace(trace):
            x = Counted(trace, jnp.arange(3.0))
            c, ys = jax.lax.scan(lambda c, y: (c + y, (c, y)), 1.0, x)
            last = jax.lax.while_loop(lambda c: c < 9, lambda c: 2 * c, c)
    assert (c.val, last.val) == (4, 16) and ys[0].val.tolist() == [1, 1, 2]
    assert set(trace.params["while"]) == {
        "cond_nconsts", "cond_jaxpr", "body_nconsts", "body_jaxpr"}
    params = trace.params["scan"]
    if told == "0.10.2":
        assert (params["num_consts"], params["num_carry"]) == (0, 1) and "ft_in" not in params
    else:
        assert set(params) == {"jaxpr", "length", "reverse", "unroll", "ft_in", "ft_out"}
        assert [g.vals for g in params["ft_in"].update([1, 2]).unpack()] == [(), (1,), (2,)]
        assert list(map(len, params["ft_out"].unpack())) == [1, 2]


def test_all_interpreters_are_instances_of_the_class_that_libraries_derive_from():
    seen = []
    jax.jit(lambda x: seen.append(x._trace))(1.0)
    jax.grad(lambda x: (seen.append(x._trace), x)[1])(1.0)
    assert all(isinstance(t, jax.core.Trace) and issubclass(type(t), jax.core.Trace) for t in seen)
    assert issubclass(Reader, jax.core.Trace) and not isinstance(1, jax.core.Trace)
    assert not any(isinstance(t, Reader) for t in seen) and not issubclass(type(seen[0]), Reader)


def test_transformations_of_wrapped_functions():
    @lu.transformation_with_aux
    def scaled(factor, *args):
        out = yield args, {}
        yield factor * out, "aux"

    fun, aux = scaled(lu.wrap_init(lambda x: x + 1), 10)
    with pytest.raises(lu.StoreException):
        aux()
    assert fun.call_wrapped(2) == 30 and aux() == "aux"
    flat, _ = api_util.flatten_fun_nokwargs(
        lu.wrap_init(lambda d: d["a"] * 2), jax.tree.structure(({"a": 1},)))
    assert lu.transformation2(lambda f, n, *xs: f(*xs) + [n])(flat, 5).call_wrapped(3) == [6, 5]
    assert lu.merge_linear_aux(lambda: 1, lu.Store()) == (True, 1)


def test_partial_evaluation():
    def f(x, y):
        return [x * 2, jax.jit(lambda a, b: (a + 1, a * b))(x, y)[1], y]

    known, unknown = pe.PartialVal.known(3.0), pe.PartialVal.unknown(jax.typeof(jnp.ones(2)))
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(lu.wrap_init(f), [known, unknown])
    assert outs[0].is_known() and outs[0].get_known() == 6
    assert [p.is_known() for p in outs] == [True, False, False]
    results = jax.core.eval_jaxpr(jaxpr, consts, jnp.array([1.0, 2.0]))
    assert [r.tolist() for r in results] == [[3, 6], [1, 2]]

    closed = jax.make_jaxpr(lambda x, y: (jnp.sin(x) * y, jnp.cos(x)))(1.0, 2.0)
    first, second, unknowns, residuals = pe.partial_eval_jaxpr_nounits(
        closed, [False, True], False)
    assert unknowns == [True, False] and len(residuals) == 1
    cos, *saved = jax.core.eval_jaxpr(first.jaxpr, first.consts, 1.0)
    (product,) = jax.core.eval_jaxpr(second.jaxpr, second.consts, *saved, 2.0)
    np.testing.assert_allclose([cos, product], [np.cos(1.0), 2 * np.sin(1.0)], rtol=1e-6)
    live, kept = pe.dce_jaxpr(closed.jaxpr, [False, True])
    assert kept == [True, False] and len(live.eqns) == 1


def test_partial_evaluation_keeps_the_rules_of_custom_vjp():
    @jax.custom_vjp
    def both(x, y):
        return {"first": jnp.sin(x), "second": jnp.cos(y)}

    both.defvjp(lambda x, y: (both(x, y), None),
                lambda _, ct: (10 * ct["first"], 100 * ct["second"]))

    def f(x, y):
        given = both(x, jax.nn.relu(y))  # of custom_jvp, relu is what it computes
        return [given["first"], given["second"]]

    pvals = [pe.PartialVal.known(3.0), pe.PartialVal.unknown(jax.typeof(jnp.ones(2)))]
    for function in (f, jax.jit(f)):
        jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(lu.wrap_init(function), pvals)
        assert not any(p.is_known() for p in outs)
        assert [e.primitive.name for e in jaxpr.eqns] == ["max", "custom_vjp_call"]
        outs = jax.core.eval_jaxpr(jaxpr, consts, jnp.array([-1.0, 2.0]))
        np.testing.assert_allclose(outs[0], np.sin(3.0), rtol=1e-6)
        np.testing.assert_allclose(outs[1], np.cos([0.0, 2.0]), rtol=1e-6)
        slopes = jax.grad(lambda y, j=jaxpr, c=consts: jax.core.eval_jaxpr(j, c, y)[1].sum())(
            jnp.array([-1.0, 2.0]))
        assert slopes.tolist() == [0, 100]


def test_derivatives_of_programs():
    closed = jax.make_jaxpr(lambda x, y: x * y)(1.0, 2.0)
    derived, nonzero = partial_evaluation.jvp_jaxpr(closed, [True, False], False)
    assert nonzero == [True]
    assert jax.core.eval_jaxpr(derived.jaxpr, derived.consts, 3.0, 4.0, 1.0) == [12, 4]
    cts = ad.backward_pass(closed.jaxpr, True, (), [ad.UndefinedPrimal(jax.typeof(1.0)), 2.0],
                           [jnp.array(1.0)])
    assert cts[0] == 2

    @jax.custom_vjp
    def logged(x):
        return 3 * x

    logged.defvjp_with_logs(lambda x: (3 * x, None), lambda _, ct: ((3 * ct,), {"ct": ct}))
    closed = jax.make_jaxpr(jax.linearize(logged, 1.0)[1])(1.0)
    cts, logs = ad.backward_pass(closed.jaxpr, True, (), [ad.UndefinedPrimal(jax.typeof(1.0))],
                                 [jnp.array(2.0)], return_logs=True)
    assert cts[0] == 6 and logs == {"ct": 2}


def test_a_struct_may_be_a_result_of_a_function_that_is_only_described():
    struct = jax.ShapeDtypeStruct((2,), jnp.float32)
    assert jax.eval_shape(lambda: struct) == struct
    assert jax.eval_shape(lambda x: (x, struct), struct) == (struct, struct)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.jit(lambda: struct)()


def test_shapes_of_what_is_no_array():
    with pytest.warns(DeprecationWarning, match="shape requires ndarray or scalar arguments"):
        assert jnp.shape(None) == ()


def test_dtypes_without_infinity():
    assert compat_values.supports_inf(jnp.float32)
    assert not compat_values.supports_inf(jnp.float8_e4m3fn)


def test_values_known_and_unknown():
    assert partial_evaluation.PartialVal.known(1.0).get_aval() == jax.typeof(1.0)


def test_zeros_at_a_tree():
    zeros = jax.custom_derivatives.zero_from_primal({"a": 1.0, "b": [jnp.ones(2)]})
    assert zeros["a"] == 0 and zeros["b"][0].tolist() == [0, 0]


def test_a_rule_knows_the_mesh_axes_of_its_axis():
    seen_p = jex.Primitive("spmd_of_test")
    seen_p.def_abstract_eval(lambda x: x)
    seen_p.def_impl(lambda x: x)
    found = []

    def rule(axis, operands, dims):
        found.append((axis.spmd_name, axis.explicit_mesh_axis))
        return operands[0], dims[0]

    batching.fancy_primitive_batchers[seen_p] = rule
    jax.vmap(seen_p.bind, spmd_axis_name="data")(jnp.ones(3))
    jax.vmap(seen_p.bind)(jnp.ones(3))
    assert found == [("data", None), (None, None)]


def test_to_take_a_rule_away_leaves_the_other():
    both_p = jex.Primitive("both_of_test")
    batching.fancy_primitive_batchers[both_p] = lambda axis, operands, dims: (operands[0], dims[0])
    with pytest.raises(KeyError):
        del batching.axis_primitive_batchers[jex.Primitive("without_of_test")]
    batching.primitive_batchers.pop(both_p, None)
    assert both_p in batching.fancy_primitive_batchers


def test_results_are_kept_as_long_as_the_function():
    calls = []

    @lu.cache
    def count(fun, x):
        calls.append(x)
        return fun.call_wrapped(x)

    def double(x):
        return 2 * x

    fun = lu.wrap_init(double)
    assert [count(fun, 1), count(lu.wrap_init(double), 1), count(fun, 2)] == [2, 2, 4]
    assert calls == [1, 2]
    with jax.enable_x64(True):
        assert count(fun, 1) == 2
    assert calls == [1, 2, 1]
    dead = weakref.ref(double)
    del double, fun
    gc.collect()
    assert dead() is None


def test_results_are_kept_for_each_size_of_a_named_axis():
    trace = lu.cache(lambda fun, aval: pe.trace_to_jaxpr_dynamic(fun, [aval]))
    fun = lu.wrap_init(lambda x: [x * jax.lax.psum(1, "i")])

    def through_program(x):
        jaxpr, _, consts = trace(fun, jax.typeof(x))
        return jax.core.eval_jaxpr(jaxpr, consts, x)[0]

    for n in (3, 5):
        assert jax.vmap(through_program, axis_name="i")(jnp.ones(n)).tolist() == [n] * n


def test_kept_results_fill_the_stores():
    @lu.transformation_with_aux2
    def with_name(f, store, name, *args):
        store.store(name)
        return f(*args)

    run = lu.cache(lambda fun, x: fun.call_wrapped(x))

    def one_more(x):
        return x + 1

    for _ in range(2):
        fun, aux = with_name(lu.wrap_init(one_more), "first")
        assert (run(fun, 1), aux()) == (2, "first")
    named, _ = with_name(lu.wrap_init(one_more, {"x": 1}), "first")
    assert (named.params, named.transforms[0][1]) == ((("x", 1),), ("first",))
    assert "with_name" in repr(named) and "one_more" in repr(named)
    info = jax.api_util.debug_info("jit", one_more, (1,), {})
    assert named.replace_debug_info(info).with_unknown_names().debug_info.arg_names is None


def test_auxiliary_output_of_forward_mode():
    fun = ad.jvp(lu.wrap_init(lambda x: ([x * x], ["aux"])), has_aux=True)
    outs, tangents, aux = fun.call_wrapped([3.0], [1.0])
    assert (outs[0], tangents[0], aux) == (9, 6, ["aux"])


def test_forward_mode_of_a_function_at_operands():
    outs, tangents, aux = ad.jvp(lambda x, y: ([x * x, y], "aux"), [3.0, 4], [1.0, ad.Zero(
        jax.typeof(4).to_tangent_aval())], has_aux=True, instantiate=[True, False])
    assert (outs, tangents[0]) == ([9, 4], 6)
    assert type(tangents[1]) is ad.Zero and aux == list("aux")
    names = str(jax.make_jaxpr(lambda x: ad.jvp(lambda x: [jnp.sin(x)], [x], [x])[1])(1.0)
                .pretty_print(name_stack=True))
    assert "jvp" in names


def test_mapped_functions_say_where_results_have_the_axis():
    axis = batching.AxisData("i", 3, None, None)
    fun, dims = batching.batch_subtrace(
        lu.wrap_init(lambda x, y: [x + y, y], debug_info=jax.api_util.debug_info(
            "f", lambda x, y: x, (1, 2), {})),
        object(), axis, lambda: (0, None), use_eq_store=True, unk_names=True)
    for _ in range(2):
        outs = fun.call_wrapped(jnp.arange(3), 1)
    assert outs[0].tolist() == [1, 2, 3] and list(dims()) == [0, None]
    assert fun.debug_info.arg_names is None
    with pytest.raises(TypeError, match=r"batch_subtrace: expected three static .* got 1"):
        batching.batch_subtrace(fun, axis)
    with pytest.raises(TypeError, match="expected a function that is wrapped by"):
        batching.batch_subtrace(jnp.sin, axis)


def lowered(rule, *args):
    """What an operation with this lowering rule gives, from a jitted function."""
    p = jex.Primitive(f"lowered_of_test_{id(rule)}")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, rule)
    return jax.jit(p.bind)(*args)


def test_rules_run_programs():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) + jnp.arange(3.0))(jnp.ones(3))

    def by_parts(ctx, x):
        outs, tokens = mlir.jaxpr_subcomp(
            ctx.module_context, closed.jaxpr, ctx.name_stack, mlir.TokenSet(),
            [mlir.ir_constant(np.asarray(c)) for c in closed.consts], x, dim_var_values=(),
            const_lowering={})
        assert len(tokens) == 0
        return outs

    def by_call(ctx, x):
        return mlir.core_call_lowering(ctx, x, name="inner", call_jaxpr=closed)

    def by_function(ctx, x):
        from jaxlib.mlir.dialects import func

        f = mlir.lower_jaxpr_to_fun(ctx.module_context, "own", closed, [], num_const_args=0,
                                    in_avals=closed.in_avals, out_avals=closed.out_avals)
        consts = [mlir.ir_constant(np.asarray(c)) for c in closed.consts]
        return func.CallOp(mlir.flatten_ir_types([mlir.aval_to_ir_type(a) for a in ctx.avals_out]),
                           mlir.ir.FlatSymbolRefAttr.get(f.name.value), [*consts, x]).results

    x = jnp.ones(3)
    for rule in (by_parts, by_call, by_function):
        np.testing.assert_allclose(lowered(rule, x), np.sin(1) + np.arange(3.0), rtol=1e-6)


def test_what_rules_are_told():
    kept = []

    class Resource:
        pass

    def rule(ctx, x):
        module = ctx.module_context
        assert module.platforms == ("cpu",) and module.get_backend().platform == "cpu"
        assert module.new_channel() != module.new_channel()
        assert ctx.replace(avals_in=()).avals_in == () and not ctx.is_forward_compat()
        assert ctx.avals_in[0].shape == (3,) and ctx.jaxpr_eqn_ctx.compute_type is None
        ctx.set_tokens_out(mlir.TokenSet([("effect", 1)]))
        assert ctx.tokens_out.effects() == {"effect"}
        resource = Resource()
        kept.append(weakref.ref(resource))
        module.add_keepalive(resource)
        return [x]

    f = jex.Primitive("kept_of_test")
    f.def_abstract_eval(lambda x: x)
    mlir.register_lowering(f, rule)
    jitted = jax.jit(lambda x: f.bind(x))
    jitted(jnp.ones(3))
    gc.collect()
    assert kept[0]() is not None
    del jitted
    jax.clear_caches()
    gc.collect()
    assert kept[0]() is None


def test_two_primitives_of_one_name():
    first, second = jex.Primitive("twin_of_test"), jex.Primitive("twin_of_test")
    for p in (first, second):
        p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(first, lambda ctx, x: [x])
    assert jax.jit(first.bind)(1.0) == 1
    with pytest.raises(NotImplementedError, match="another primitive of this name"):
        jax.jit(second.bind)(1.0)
    mlir.register_lowering(second, lambda ctx, x: [x])
    assert jax.jit(second.bind)(2.0) == 2


def test_lowering_rules_for_platforms_that_there_are_not():
    with pytest.raises(NotImplementedError, match=r"platform abacus\. Known platforms are cpu,"):
        mlir.register_lowering(jex.Primitive("nowhere_of_test"), lambda ctx, x: [x],
                               platform="abacus")


def test_the_latest_lowering_rule_counts():
    def as_itself(ctx, x):
        return [x]

    doubled = mlir.lower_fun(lambda x: 2 * x, multiple_results=False)
    for i, rules in enumerate([(as_itself, doubled), (doubled, as_itself),
                               (as_itself, doubled, as_itself), (doubled, as_itself, doubled)]):
        p = jex.Primitive(f"latest_of_test_{i}")
        p.def_abstract_eval(lambda x: x)
        for rule in rules:
            mlir.register_lowering(p, rule)
        assert jax.jit(p.bind)(3.0) == (6 if rules[-1] is doubled else 3)


def test_values_and_types_of_mlir():
    class Meters:
        def __init__(self, n):
            self.n = n

    mlir.register_constant_handler(Meters, lambda val, aval: mlir.ir_constant(np.float32(val.n)))

    def rule(ctx, x):
        from jaxlib.mlir.dialects import stablehlo

        (two,) = mlir.ir_constants(Meters(2))
        (shape,) = mlir.aval_to_ir_types(ctx, ctx.avals_in[0])
        assert str(shape) == "tensor<3xf32>" and str(mlir.token_type()) == "!stablehlo.token"
        assert str(mlir.shape_tensor(ctx, [3, 4]).type) == "tensor<2xi32>"
        size = stablehlo.get_dimension_size(x, mlir.i64_attr(0))
        assert str(mlir.shape_tensor(ctx, [size, 4]).type) == "tensor<2xi32>"
        assert isinstance(x, mlir.Value) and len(mlir.TokenSet.create(["io"])) == 1
        wide = stablehlo.broadcast_in_dim(shape, two, mlir.dense_int_array([]))
        return [stablehlo.multiply(x, wide)]

    np.testing.assert_array_equal(lowered(rule, jnp.arange(3.0)), [0, 2, 4])


def test_modules():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(jnp.ones(3))
    module, keepalive, callbacks, state = mlir.lower_jaxpr_to_module(
        "mine", closed, num_const_args=0, in_avals=closed.in_avals, out_avals=closed.out_avals,
        ordered_effects=[], platforms=["cpu"], backend=None, donated_args=[False],
        axis_context=mlir.ShardingContext(1), lowering_parameters=mlir.LoweringParameters())
    assert "stablehlo.sine" in mlir.module_to_string(module) and not keepalive and not callbacks
    assert not state.uses_dim_vars and mlir.module_to_bytecode(module).startswith(b"ML")
    other = mlir.lower_jaxpr_to_module("other", closed, platforms=["cpu"]).module
    assert mlir.merge_mlir_modules(module, "inner", other) == "inner"
    assert mlir.merge_mlir_modules(module, "inner", mlir.lower_jaxpr_to_module(
        "other", closed, platforms=["cpu"]).module) == "inner_0"
    assert module.operation.verify() and str(module).count("stablehlo.sine") == 3


def test_programs_as_libraries_look_into_them():
    from pyjx.interpreters import pxla

    lowered = jax.jit(lambda x, *, y: {"a": jnp.sin(x) + y}).lower(jnp.ones(3), y=2.0)
    computation = pxla.MeshComputation(lowered)
    assert "stablehlo.sine" in computation.as_text() and computation.stablehlo() is not None
    assert computation.compile_args["global_in_avals"] and computation.const_args == []
    program = computation.compile()
    (out,) = program.call(jnp.zeros(3), 3.0)
    np.testing.assert_array_equal(out, 3)
    assert [a.shape for a in program.in_avals] == [(3,), ()] and len(program.out_avals) == 1
    assert len(program.input_shardings()) == 2 and len(program.output_formats()) == 1
    assert program.runtime_executable() is program.xla_executable
    options = pxla.create_compile_options(None, False, [True], [True], None, jax.devices()[:1], {})
    assert options.num_partitions == 1
    from pyjx.extend import backend

    assert backend.get_compile_options(1, 1).num_replicas == 1


def test_dead_code_of_library_primitives():
    call_p = jex.CallPrimitive("dead_of_test")
    pe.dce_rules[call_p] = pe.dce_jaxpr_call_rule
    closed = jax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(1.0, 2.0)
    program = jax.make_jaxpr(lambda x, y: call_p.bind(x, y, call_jaxpr=closed)[0])(1.0, 2.0)
    live, used = pe.dce_jaxpr(program.jaxpr, [True])
    assert used == [True, False] and "cos" not in str(live)
    assert pe.dce_rules[call_p] is pe.dce_jaxpr_call_rule
    from pyjx.lax import cond_p

    assert cond_p in pe.dce_rules


@pytest.mark.parametrize("used", [[False, True], [True, False]])
def test_dead_code_of_an_operation_that_reads_one_variable_twice(used):
    inner = jax.jit(lambda x, y: (x * 2, y * 3))
    (eqn,) = jax.make_jaxpr(lambda x: inner(x, x))(1.0).jaxpr.eqns
    kept, live = pe.dce_rules[eqn.primitive](used, eqn)
    assert kept == used and live.invars == eqn.invars[:1] and len(live.outvars) == 1


def test_rules_of_partial_evaluation():
    def rule(trace, x):
        out = pe.JaxprTracer(trace, pe.PartialVal.unknown(x.aval), None)
        out.recipe = pe.new_eqn_recipe(trace, [x], [out], twice_p, {}, frozenset(),
                                       source_info_util.new_source_info())
        return out

    from pyjx.extend import source_info_util

    twice_p = jex.Primitive("partial_of_test")
    twice_p.def_abstract_eval(lambda x: x)
    pe.custom_partial_eval_rules[twice_p] = rule
    jaxpr, outs, _ = pe.trace_to_jaxpr_nounits(
        lambda x: [twice_p.bind(x)], [pe.PartialVal.unknown(jax.typeof(1.0))])
    assert "partial_of_test" in str(jaxpr) and not outs[0].is_known()


def test_generators_of_a_library():
    from pyjx.extend import random as jexr

    base = jexr.threefry_prng_impl
    mine = jexr.define_prng_impl(
        key_shape=(2,), seed=base.seed, split=base.split, random_bits=base.random_bits,
        fold_in=base.fold_in, name="mine_of_test", tag="m")
    ours, theirs = jax.random.key(3, impl=mine), jax.random.key(3)
    np.testing.assert_array_equal(jax.random.normal(ours, (3,)), jax.random.normal(theirs, (3,)))
    assert jax.random.key(3, impl=jax.random.key_impl(ours)).dtype == ours.dtype
    told = jax.random.key_impl(ours)
    assert told == mine and hash(told) == hash(mine) and copy.deepcopy(mine) == mine
    assert repr(told) == "PRNGSpec('mine_of_test')" and type(told).__name__ == "PRNGSpec"
    assert str(mine) == "m" and mine != "mine_of_test" and mine != jexr.threefry_prng_impl
    for key in (jax.random.wrap_key_data(jax.random.key_data(ours), impl=told),
                jexr.seed_with_impl(mine, 3), jexr.random_seed(3, mine)):
        assert jax.random.key_impl(key) == mine
    assert jax.random.PRNGKey(3, impl=mine).tolist() == jax.random.key_data(theirs).tolist()
    assert jax.random.key_impl(jax.random.key(0, impl=jexr.rbg_prng_impl)) == "rbg"
    # The figures are those of the reference implementation's test vectors.
    zero = jexr.threefry_2x32((np.uint32(0), np.uint32(0)), np.zeros(2, np.uint32))
    assert [hex(int(n)) for n in zero] == ["0x6b200159", "0x99ba4efe"]
    odd = jexr.threefry_2x32((np.uint32(1), np.uint32(2)), np.arange(3, dtype=np.uint32))
    assert odd.shape == (3,) and odd.dtype == np.uint32
    with pytest.raises(TypeError, match="must be of type uint32"):
        jexr.threefry_2x32((0, 0), np.zeros(2))


def test_bindings_of_mlir():
    from pyjx.extend import lowering
    from pyjx.extend import mlir as bindings

    assert bindings.ir.Context is lowering.JaxIrContext
    assert bindings.dialects.arith is not None and bindings.passmanager is not None
    assert lowering.upstream_dialects is not None
    text = jax.jit(jnp.sin).lower(1.0).as_text()
    assert bindings.serialize_portable_artifact(text, "1.0.0", False)


def test_changing_programs():
    from pyjx.extend import xla as changing

    with pytest.raises(NotImplementedError, match=r"extend\.xla"):
        changing.register_hlo_module_transformation(
            lambda module: None, name="none", platforms="tpu")


def test_foreign_calls_of_libraries():
    rule = jax.ffi.ffi_lowering("lapack_spotrf_ffi")
    p = jex.Primitive("potrf_of_test")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, **_: [x, jax.core.ShapedArray((), "int32")])
    mlir.register_lowering(p, rule)
    text = jax.jit(lambda x: p.bind(x, uplo=np.uint8(ord("L")))).lower(jnp.eye(2)).as_text()
    assert "lapack_spotrf_ffi" in text and "uplo = 76 : i8" in text.replace("ui8", "i8")
    q = jex.Primitive("layouts_of_test")
    q.def_abstract_eval(lambda x: x)
    mlir.register_lowering(q, jax.ffi.ffi_lowering(
        "t", operand_layouts=[layout.Layout((1, 0))], result_layouts=[(1, 0)]))
    text = jax.jit(q.bind).lower(jnp.ones((2, 3))).as_text()
    assert "operand_layouts = [dense<[0, 1]>" in text and "result_layouts = [dense<[1, 0]>" in text


def test_call_primitives_of_libraries():
    p = jex.Primitive("registered_of_test")
    jex.register_call_primitive_rules(p)
    closed = jax.make_jaxpr(lambda x: 3 * x)(1.0)
    assert jax.grad(lambda x: p.bind(x, call_jaxpr=closed)[0])(1.0) == 3
    with pytest.raises(NotImplementedError, match="Transpose rule"):
        jex.eval_jaxpr_transpose(p, [1.0], 1.0, call_jaxpr=closed)
    assert isinstance(jax.core.CallPrimitive("call_of_test"), jex.Primitive)


def test_all_primitives_say_what_bind_takes():
    closed = jax.make_jaxpr(lambda x: jax.nn.relu(x) + jax.lax.cumsum(x))(jax.numpy.ones(3))
    for eqn in closed.eqns:
        assert eqn.primitive.get_bind_params(eqn.params) == eqn.params


def test_members_for_libraries_are_there_from_the_start():
    program = """import pyjx as jax
closed = jax.make_jaxpr(jax.lax.sin)(1.0)
closed.eqns[0].primitive.get_bind_params, closed.jaxpr.with_consts, closed.in_avals[0].vspace_add"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_few_programs_use_is_not_imported_with_the_rest():
    program = """import sys, pyjx
seldom = ("compat.pickles", "engine.key_reuse", "random.keys", "runtime.explain", "transforms.vmap")
assert not [name for name in seldom if f"pyjx.{name}" in sys.modules]"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_implementations_may_be_called_and_replaced():
    calls = []
    for primitive, args, want in ((jax.lax.sin_p, (1.0,), np.sin(1.0)),
                                  (jax.lax.add_p, (1.0, 2.0), 3.0)):
        before = primitive.impl
        assert float(before(*args)) == pytest.approx(want)
        try:
            primitive.def_impl(lambda *xs, **kw: calls.append(1) or before(*xs, **kw))  # noqa: B023
            assert float(primitive.bind(*args)) == pytest.approx(want)
        finally:
            primitive.impl = None
        assert float(primitive.bind(*args)) == pytest.approx(want)
    assert len(calls) == 2
