"""Members of types, variables, interpreters and debug infos that libraries use.

What is expected is what JAX 0.12 gives.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import pyjx as jax
import pyjx.compat  # which gives classes what libraries ask of them
from pyjx import numpy as jnp
from pyjx.core import avals
from pyjx.experimental import hijax
from pyjx.extend import core as jex
from pyjx.interpreters import ad
from pyjx.interpreters import partial_eval as pe

P = jax.P
AVAL = jax.typeof(jnp.ones((4, 3)))


@pytest.mark.parametrize(("derived", "text"), [
    (lambda a: a.dec_rank(4, 0), "float32[3]"),
    (lambda a: a.dec_rank(4, None), "float32[4,3]"),
    (lambda a: a.dec_rank(3, 1), "float32[4]"),
    (lambda a: a.dec_rank(3, -1), "float32[4]"),
    (lambda a: a.inc_rank(5, 0), "float32[5,4,3]"),
    (lambda a: a.inc_rank(5, 2), "float32[4,3,5]"),
    (lambda a: a.inc_rank(5, None), "float32[4,3]"),
    (lambda a: a.update(weak_type=True).normalize(), "float32[4,3]"),
    (lambda a: a.update_weak_type(True), "~float32[4,3]"),
    (lambda a: a.update(dtype=np.int32).to_ct_aval(), "float0[4,3]"),
    (lambda a: a.update_manual_axis_type(a.mat), "float32[4,3]"),
])
def test_types_made_of_a_type(derived, text):
    assert str(derived(AVAL)) == text


def test_what_arrays_are_made_of():
    assert AVAL.lo_ty() == [AVAL] and AVAL.lower_val(1) == [1] and AVAL.raise_val(1) == 1
    assert AVAL.raise_val2(AVAL.lower_val2(1)) == 1
    assert AVAL.lo_ty_qdd(None) == [AVAL]
    assert (AVAL.is_high, AVAL.has_qdd, AVAL.leading_axis_spec()) == (False, False, 0)
    np.testing.assert_array_equal(AVAL.vspace_add(jnp.ones((4, 3)), jnp.ones((4, 3))), 2)
    with pytest.raises(ValueError, match=r"axis 0 of float32\[4,3\] has not the size 5"):
        AVAL.dec_rank(5, 0)


@pytest.mark.parametrize(("derived", "text"), [
    (lambda a, m: a.shard(m, frozenset("xy"), True, P("x")), "float32[2,3]{V:x}"),
    (lambda a, m: a.shard(m, frozenset("xy"), False, P("x")), "float32[2,3]"),
    (lambda a, m: a.shard(m, frozenset("xy"), True, P("x")).unshard(m, True, P("x")),
     "float32[4@x,3]"),
    (lambda a, m: a.unshard(m, False, P("x")), "float32[8@x,3]"),
    (lambda a, m: a.unshard(m, True, P("x")), "float32[8@x,3]"),
    (lambda a, m: a.reshard(jax.NamedSharding(m, P("x"))), "float32[4@x,3]"),
    (lambda a, m: a.nospec(m, False, ("x", "y")), "P(('x', 'y'),)"),
    (lambda a, m: a.nospec(m, True, ("x", "y")), "P()"),
])
def test_types_on_a_mesh(derived, text):
    mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"), (jax.sharding.AxisType.Explicit,) * 2)
    with jax.sharding.use_abstract_mesh(mesh):
        assert str(derived(AVAL, mesh)) == text


def test_a_type_of_a_library_says_what_it_lacks():
    class Own(avals.AbstractValue):
        pass

    own = Own()
    for method, args in (("to_tangent_aval", ()), ("to_ct_aval", ()), ("at_least_vspace", ()),
                         ("dec_rank", (1, 0)), ("inc_rank", (1, 0)), ("update", ()),
                         ("reshard", (None,)), ("unshard", (None, True, P()))):
        with pytest.raises(NotImplementedError, match="Own must override"):
            getattr(own, method)(*args)
    assert own.lo_ty() == [own] and own.normalize() is own and own.str_short() == "Own()"
    assert own.vspace_add(1, 2) == 3


def test_debug_infos():
    info = jax.api_util.debug_info("jit", lambda a, b: (a, b), (1, 2), {})
    assert info.filter_arg_names([True, False]) == ("a",)
    assert info.safe_arg_names(2) == ("a", "b")
    with pytest.raises(AssertionError):
        info.assert_arg_names(3)
    done = info.set_result_paths((1, 2))
    assert done.result_paths == ("result[0]", "result[1]")
    assert done.filter_result_paths([True, False]) == ("result[0]",)
    assert done.resolve_result_paths().safe_result_paths(2) == done.result_paths
    with pytest.raises(AssertionError):
        done.assert_result_paths(3)
    unknown = done.with_unknown_names()
    assert unknown.arg_names is unknown.result_paths is None
    assert unknown.safe_arg_names(2) == ("", "")
    assert info.replace_func_name("g").func_name == "g"


def test_variables_and_literals():
    jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    context = jax.core.JaxprPpContext()
    x, two = jaxpr.jaxpr.invars[0], jaxpr.eqns[1].invars[1]
    assert x.pretty_print(context) == "a" and two.pretty_print(context) == "2.0:f32[]"
    assert two.pretty_print(context, print_dtype=False) == "2.0"
    assert two.hash == hash(two.val) and jax.core.DropVar(x.aval).pretty_print(context) == "_"
    y = jaxpr.eqns[0].outvars[0]
    context.suggest_same_var_names([y], [x])
    assert y.pretty_print(context) == "a"
    assert jaxpr.in_aval_qdds == jaxpr.in_avals and jaxpr.jaxpr.consts == []
    eqn = jaxpr.eqns[0].replace([two])
    assert eqn.invars == [two] and eqn.primitive is jaxpr.eqns[0].primitive
    assert list(jex.subjaxprs(jax.make_jaxpr(jax.jit(jnp.sin))(1.0).jaxpr))
    assert jaxpr.jaxpr.pretty_print(print_shapes=False) == "{ lambda ; a. let b = sin a; c = mul " \
        "b 2.0 in (c,) }"


def test_tracers_and_interpreters():
    seen = []

    def f(x):
        trace = x._trace
        assert trace.is_valid() and not trace.requires_low
        assert trace.full_raise(1.0) == 1.0
        with pytest.raises(AttributeError, match=r"Use `jax\.typeof"):
            x.memory_space  # noqa: B018
        seen.append((trace, x.full_lower() is x, x.get_referent() is x))
        return x * 2

    jax.jit(f)(1.0)
    jax.jvp(f, (1.0,), (1.0,))
    jax.vmap(f)(jnp.ones(3))
    assert [s[1] for s in seen] == [True] * 3
    assert not any([s[0].is_valid() for s in seen])
    with pytest.raises(jax.errors.UnexpectedTracerError):
        leaked = []
        jax.jit(lambda x: leaked.append(x) or x)(1.0)
        jax.jit(lambda x: x._trace.full_raise(leaked[0]))(2.0)


def test_tracers_have_the_methods_of_a_type_of_a_library():
    class Temperature(avals.AbstractValue):
        sum = hijax.aval_method(lambda self, times=1: ("sum", times))
        T = hijax.aval_property(lambda self: "turned")
        scaled = hijax.aval_method(lambda self, by: (self, by))
        unit = hijax.aval_property(lambda self: "K")

    tracer = jax.core.Tracer(None, Temperature())
    assert (tracer.sum(times=3), tracer.T, tracer.unit) == (("sum", 3), "turned", "K")
    assert tracer.scaled(2) == (tracer, 2)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tracer.nothing  # noqa: B018

    def f(x):
        lines = iter(jnp.sum.__doc__.splitlines())  # which has further sections, in this order
        assert x.sum.__name__ == "sum" and all(
            [line in lines for line in x.sum.__doc__.splitlines()])
        with pytest.raises(AttributeError, match="not available on traced array"):
            x.device  # noqa: B018
        return x.T.sum(0)

    assert jax.jit(f)(jnp.ones((2, 3))).shape == (2,)


def test_tracers_of_arrays_pay_nothing_for_types_of_libraries():
    # Python reads each attribute of a class more slowly that has a hook for those it has not.
    assert not hasattr(jax.core.Tracer, "__getattr__")

    def f(x):
        assert inspect.signature(x.std) == inspect.signature(jnp.ones(3).std)
        assert "order" in inspect.signature(x.reshape).parameters
        assert not hasattr(x, "get") and not hasattr(x, "of_a_type_defined_below")
        return x

    jax.make_jaxpr(f)(1.0)

    class Named(avals.AbstractValue):
        get = hijax.aval_method(lambda self: "got")
        of_a_type_defined_below = hijax.aval_property(lambda self: 3)
        std = hijax.aval_method(lambda self: "own")

    tracer = jax.core.Tracer(None, Named())
    assert (tracer.get(), tracer.of_a_type_defined_below, tracer.std()) == ("got", 3, "own")
    jax.make_jaxpr(f)(1.0)
    assert jax.jit(lambda ref: ref.get())(jax.new_ref(jnp.float32(2))) == 2


def test_recorded_values():
    array = jnp.arange(3.0)

    def f(x):
        y = x + 1
        assert (x.parent, x.val.aval) == (None, x.aval) and y.parent.primitive.name == "add"
        assert x.get_const() is None and y._trace.stage_value(array).get_const() is array
        return y

    jax.jit(f)(array)


def test_pairs_of_forward_mode():
    def f(x):
        assert x._trace.to_primal_tangent_pair(x) == (2.0, 3.0)
        assert type(x._trace.to_primal_tangent_pair(5.0)[1]) is ad.Zero
        return x

    jax.jvp(f, (2.0,), (3.0,))


def test_unknown_values_know_their_equations():
    def f(x):
        y = jnp.sin(x)
        assert x.recipe is None and y.recipe.primitive.name == "sin" and len(y.parents) == 1
        return [y]

    pe.trace_to_jaxpr_nounits(f, [pe.PartialVal.unknown(jax.typeof(1.0))])


def test_contexts_know_what_they_are():
    from pyjx.extend import source_info_util as where

    stack = where.new_name_stack("outer")
    with where.set_name_stack(stack) as inside:
        assert inside is stack
        scope = where.extend_name_stack("inner")
        with scope:
            assert (scope.name, str(scope.prev)) == ("inner", "outer")
    with jex.take_current_trace() as trace:
        setting = jex.set_current_trace(trace)
        with setting:
            assert setting.trace is trace and setting.prev is trace and not setting.check_leaks
    info = where.new_source_info().replace(name_stack=stack)
    assert info.name_stack is stack
    context = where.user_context(None, name_stack=stack)
    with context:
        names = [str(e.source_info.name_stack) for e in jax.make_jaxpr(jnp.sin)(1.0).eqns]
    assert names == [""] or names == ["outer"]
