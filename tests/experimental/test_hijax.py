"""Operations and types of a library's own. Values and derivatives are those of JAX 0.12."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.core.effects import no_effects
from pyjx.experimental import EArray, hijax

X = jnp.arange(3.0)


class Base(hijax.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x):
        return jnp.sin(x)


class ByJvp(Base):
    def jvp(self, primals, tangents):
        return self(*primals), 10 * tangents[0]

    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp
    lin, linearized = hijax.linearize_from_jvp


class ByVjp(Base):
    def vjp_fwd(self, nzs, x):
        return self(x), x

    def vjp_bwd_retval(self, res, ct):
        return (100 * ct * res,)


class ByAccumulators(ByVjp):
    vjp_bwd_retval = hijax.HiPrim.vjp_bwd_retval

    def vjp_bwd(self, res, ct, accum):
        accum.accum(60 * ct * res)
        accum.accum(40 * ct * res)


class ByLin(Base):
    def lin(self, nzs, x):
        return self(x), x

    def linearized(self, res, t):
        return 7 * res * t

    jvp = hijax.jvp_from_lin
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin


class ByBatch(Base):
    def batch(self, axis_data, args, dims):
        return 1000 * jnp.sin(args[0]) + axis_data.size, dims[0]


@pytest.mark.parametrize(("kind", "slope"), [
    (Base, np.cos(X)), (ByJvp, 10 * np.ones(3)), (ByVjp, 100 * np.asarray(X)),
    (ByAccumulators, 100 * np.asarray(X)), (ByLin, 7 * np.asarray(X)), (ByBatch, np.cos(X))])
def test_operations(kind, slope):
    def f(x):
        return kind(jax.typeof(x))(x)

    for run in (f, jax.jit(f)):
        np.testing.assert_allclose(run(X), np.sin(X), rtol=1e-6)
        np.testing.assert_allclose(jax.grad(lambda x, run=run: run(x).sum())(X), slope, rtol=1e-6)
    if kind not in (ByVjp, ByAccumulators):
        np.testing.assert_allclose(jax.jvp(f, (X,), (X,))[1], slope * X, rtol=1e-6)
    if kind in (Base, ByBatch):
        expected = 1000 * np.sin(X) + 3 if kind is ByBatch else np.sin(X)
        np.testing.assert_allclose(jax.vmap(f)(X), expected, rtol=1e-5)
    else:  # without the rule nobody knows what its derivative is then
        with pytest.raises(NotImplementedError, match=r"for vmap support.*must implement `batch`"):
            jax.vmap(f)(X)
    assert f(X.astype(jnp.bfloat16)).dtype == jnp.bfloat16


def test_rules_that_are_missing():
    class Bare(hijax.HiPrim):
        in_avals, out_aval = (jax.typeof(X),), jax.typeof(X)

    with pytest.raises(NotImplementedError, match="Bare must override expand"):
        Bare()(X)
    with pytest.raises(TypeError, match="takes 1 operands, got 2"):
        Bare()(X, X)
    with pytest.raises(TypeError, match="pair of rules"):
        hijax.vjp_from_jvp()


def test_batches():
    class Axis:
        name, size = None, 3

    rows = jnp.arange(6.0).reshape(2, 3)
    front, = hijax.bdims_at_front(Axis, [rows], [1])
    np.testing.assert_array_equal(front, rows.T)
    shared, = hijax.bdims_at_front(Axis, [jnp.ones(2)], [None])
    assert shared.shape == (3, 2)
    assert hijax.unmap_avals(Axis, [jax.typeof(jnp.ones(2))], [1])[0].shape == (2, 3)
    mapped = hijax.vmap_rule(Axis, lambda x, y: x * y, (1, None), 1)
    np.testing.assert_array_equal(mapped(rows, jnp.ones(2)), rows)
    summed = hijax.vmap_rule(Axis, lambda x: x, (1,), None, sum_match=True)
    np.testing.assert_array_equal(summed(rows), rows.sum(1))


def test_accumulators():
    aval = jax.typeof(X)
    for accum in (hijax.ValAccum(aval), hijax.RefAccum(aval)):
        assert type(accum.freeze()) is hijax.Zero
        accum.accum(X)
        accum.accum(hijax.Zero(aval))
        accum.accum(X)
        np.testing.assert_array_equal(accum.freeze(), 2 * X)
    nothing = hijax.NullAccum(aval)
    nothing.accum(X)
    assert type(nothing.freeze()) is hijax.Zero


def test_types_are_of_classes():
    with pytest.raises(TypeError, match="must be a class"):
        hijax.register_hitype(3, lambda x: x)


def test_primitives_by_name():
    class Twice(hijax.HiPrimitive):
        def abstract_eval(self, x):
            return x, no_effects

        def to_lojax(self, x):
            return 2 * x

        def jvp(self, primals, tangents):
            return self.bind(*primals), 2 * hijax.instantiate_zeros(tangents[0])

    twice_p = Twice("twice_of_hijax_test")
    np.testing.assert_array_equal(jax.jit(twice_p.bind)(X), 2 * X)
    assert jax.grad(twice_p.bind)(3.0) == 2
    assert "twice_of_hijax_test" in str(jax.make_jaxpr(twice_p.bind)(1.0))
    assert twice_p.is_high(jax.typeof(1.0)) is False and not twice_p.is_effectful({})


def test_arrays_of_extended_dtypes():
    keys = jax.random.split(jax.random.key(1), 2)
    made = EArray(jax.typeof(keys), jax.random.key_data(keys))
    assert isinstance(made, EArray) and made.dtype == keys.dtype
    assert jax.random.normal(made[0]) == jax.random.normal(keys[0])
    with pytest.raises(NotImplementedError, match="those of random keys"):
        EArray(jax.typeof(X), X)
    with pytest.raises(ValueError, match="another shape"):
        EArray(jax.typeof(keys), jax.random.key_data(keys)[0])


def test_parameters_are_attributes_and_recording_has_a_say():
    class Scaled(hijax.HiPrim):
        def __init__(self, x, *, by):
            self.in_avals, self.out_aval, self.params = (jax.typeof(x),), jax.typeof(x), {"by": by}
            super().__init__()

        def expand(self, x):
            return self.by * x

        def staging(self, trace, source_info, *args):
            if self.by > 2:
                raise NotImplementedError("only eager")
            return super().staging(trace, source_info, *args)

    assert Scaled(1.0, by=3)(2.0) == 6
    assert jax.jit(lambda x: Scaled(x, by=2)(x))(2.0) == 4
    with pytest.raises(NotImplementedError, match="only eager"):
        jax.jit(lambda x: Scaled(x, by=3)(x))(2.0)


def test_classes_keep_their_own_attributes():
    class Boxed:
        def __init__(self, x):
            self.x = x

        def __getattr__(self, name):
            if name == "x":
                raise AttributeError(name)
            return getattr(self.x, name)

    @dataclass(frozen=True)
    class BoxedType(hijax.HiType):
        part: jax.core.ShapedArray

        def lo_ty(self):
            return [self.part]

        def lower_val(self, val):
            return [val.x]

        def raise_val(self, x):
            return Boxed(x)

    hijax.register_hitype(Boxed, lambda v: BoxedType(jax.typeof(v.x)))
    assert Boxed(X).shape == X.shape


def test_zeros_and_what_is_known_of_values():
    from pyjx.experimental import cur_qdd

    np.testing.assert_array_equal(hijax.Zero(jax.typeof(X)).instantiate(), np.zeros(X.shape))

    class Cell:
        held = ()

        def cur_qdd(self):
            return tuple(map(jax.typeof, self.held))

    cell = Cell()
    assert cur_qdd(cell) == ()
    cell.held = (X,)
    assert jax.jit(lambda x: x * len(cur_qdd(cell)))(2.0) == 2
    with pytest.raises(TypeError, match="nothing is known but its type"):
        cur_qdd(X)


def test_what_is_known_is_asked_of_types_by_methods():
    alone, of_value = (["self"], None), (["self", "val"], None)
    for name, parameters in {"is_writer": alone, "lo_ty": alone, "read_loval": of_value,
                             "read_loval_in": of_value, "read_loval_out": of_value,
                             "new_from_loval": (["self"], "lo_vals")}.items():
        method = getattr(hijax.AvalQDD, name)
        assert (method.__name__, bool(inspect.getdoc(method))) == (name, True)
        assert inspect.getfullargspec(method)[:2] == parameters
