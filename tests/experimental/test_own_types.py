"""Values of types that a library brings, as operands of programs under every transformation.

What is expected is what the same program gives on the arrays that the values are made of, and, of
quantised arrays, whose derivative is that of what they stand for, what JAX 0.12 gives.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.core.effects import has_types
from pyjx.experimental import hijax

P = jax.P
HERE = jax.sharding.AxisType.Auto

# -- a pair of values, whose tangents are pairs ----------------------------------------------------


@dataclass(frozen=True)
class Both(hijax.MappingSpec):
    """Both parts are mapped along this axis."""

    axis: Any


@dataclass(frozen=True)
class OnMesh(hijax.HiPspec):
    parts: tuple[Any, ...]

    def to_lo(self):
        return [part for spec in self.parts for part in spec.to_lo()]

    def to_tangent_spec(self):
        return OnMesh(tuple([spec.to_tangent_spec() if isinstance(spec, hijax.HiPspec) else spec
                             for spec in self.parts]))

    def to_ct_spec(self):
        return self.to_tangent_spec()


@dataclass(frozen=True)
class PairType(hijax.HiType):
    first: Any
    second: Any

    def of(self, change):
        return PairType(change(self.first), change(self.second))

    def lo_ty(self):
        return [self.first, self.second]

    def lower_val(self, pair):
        return [pair.first, pair.second]

    def raise_val(self, first, second):
        return Pair(first, second)

    def to_tangent_aval(self):
        return self.of(lambda a: a.to_tangent_aval())

    def to_ct_aval(self):
        return self.of(lambda a: a.to_ct_aval())

    def dec_rank(self, size, spec):
        return self.of(lambda a: a.dec_rank(size, spec if a.is_high else spec.axis))

    def inc_rank(self, size, spec):
        return self.of(lambda a: a.inc_rank(size, spec if a.is_high else spec.axis))

    def leading_axis_spec(self):
        return Both(0)

    def shard(self, mesh, manual_axes, check_vma, spec):
        return PairType(*[a.shard(mesh, manual_axes, check_vma, s)
                          for a, s in zip(self.lo_ty(), spec.parts, strict=True)])

    def unshard(self, mesh, check_vma, spec):
        return PairType(*[a.unshard(mesh, check_vma, s)
                          for a, s in zip(self.lo_ty(), spec.parts, strict=True)])

    def nospec(self, mesh, check_vma, all_names):
        return OnMesh((P(tuple(all_names)),) * 2)

    @hijax.aval_method
    def swapped(self):
        return pair(part(self, 1), part(self, 0))


@dataclass(frozen=True)
class Pair:
    first: Any
    second: Any

    swapped = PairType.swapped.fun


hijax.register_hitype(Pair, lambda p: PairType(jax.typeof(p.first), jax.typeof(p.second)))


class MakePair(hijax.HiPrim):
    def __init__(self, first, second):
        self.in_avals, self.out_aval = (first, second), PairType(first, second)
        self.params = {}
        super().__init__()

    def expand(self, first, second):
        return Pair(first, second)

    def jvp(self, primals, tangents):
        return pair(*primals), pair(*map(hijax.instantiate_zeros, tangents))

    def transpose(self, ct, *accums):
        for i, accum in enumerate(accums):
            if isinstance(accum, hijax.GradAccum):
                accum.accum(part(ct, i))

    def batch(self, axis_data, args, dims):
        return pair(*hijax.bdims_at_front(axis_data, args, dims)), Both(0)


class Part(hijax.HiPrim):
    def __init__(self, kind, *, i):
        self.in_avals, self.out_aval = (kind,), kind.second if i else kind.first
        self.params = {"i": i}
        super().__init__()

    def expand(self, p):
        return p.second if self.i else p.first

    def jvp(self, primals, tangents):
        return part(primals[0], self.i), part(hijax.instantiate_zeros(tangents[0]), self.i)

    def transpose(self, ct, accum):
        kind = accum.aval.of(lambda a: a)
        parts = [ct if i == self.i else hijax.instantiate_zeros(hijax.Zero(a))
                 for i, a in enumerate(kind.lo_ty())]
        accum.accum(pair(*parts))

    def batch(self, axis_data, args, dims):
        return part(args[0], self.i), dims[0] if self.out_aval.is_high else dims[0].axis


def pair(first, second):
    return MakePair(jax.typeof(first), jax.typeof(second))(first, second)


def part(p, i):
    return Part(jax.typeof(p), i=i)(p)


# -- a quantised array, whose tangents are arrays --------------------------------------------------


@dataclass(frozen=True)
class QuantisedType(hijax.HiType):
    shape: tuple[int, ...]

    def lo_ty(self):
        return [jax.core.ShapedArray(self.shape, np.int8),
                jax.core.ShapedArray(self.shape[:-1], np.float32)]

    def lower_val(self, q):
        return [q.numbers, q.scale]

    def raise_val(self, numbers, scale):
        return Quantised(numbers, scale)

    def to_tangent_aval(self):
        return jax.core.ShapedArray(self.shape, np.float32)

    def dec_rank(self, size, spec):
        assert self.shape[spec.axis] == size
        return QuantisedType((*self.shape[:spec.axis], *self.shape[spec.axis + 1:]))

    def inc_rank(self, size, spec):
        return QuantisedType((*self.shape[:spec.axis], size, *self.shape[spec.axis:]))

    def leading_axis_spec(self):
        return Both(0)


@dataclass(frozen=True)
class Quantised:
    numbers: Any
    scale: Any


hijax.register_hitype(Quantised, lambda q: QuantisedType(q.numbers.shape))


class Quantise(hijax.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), QuantisedType(aval.shape), {}
        super().__init__()

    def expand(self, x):
        scale = jnp.max(jnp.abs(x), -1) / 127
        return Quantised(jnp.round(x / scale[..., None]).astype(np.int8), scale)

    def vjp_fwd(self, nzs, x):
        return quantise(x), None

    def vjp_bwd_retval(self, res, ct):
        return (ct,)

    def jvp(self, primals, tangents):
        return quantise(*primals), tangents[0]

    def batch(self, axis_data, args, dims):
        return quantise(args[0]), Both(dims[0])


class Dequantise(hijax.HiPrim):
    def __init__(self, kind):
        self.in_avals, self.params = (kind,), {}
        self.out_aval = jax.core.ShapedArray(kind.shape, np.float32)
        super().__init__()

    def expand(self, q):
        return q.numbers.astype(np.float32) * q.scale[..., None]

    def vjp_fwd(self, nzs, q):
        return dequantise(q), None

    def vjp_bwd(self, res, ct, accum):
        accum.accum(ct)

    def jvp(self, primals, tangents):
        return dequantise(*primals), tangents[0]

    def batch(self, axis_data, args, dims):
        return dequantise(*args), dims[0].axis


def quantise(x):
    return Quantise(jax.typeof(x))(x)


def dequantise(q):
    return Dequantise(jax.typeof(q))(q)


# -- a value that can be written -------------------------------------------------------------------


@dataclass(frozen=True)
class CellType(hijax.HiType):
    ref: Any

    def lo_ty(self):
        return [self.ref]

    def lower_val(self, cell):
        return [cell.ref]

    def raise_val(self, ref):
        return Cell(ref)


@dataclass(frozen=True)
class Cell:
    ref: Any


hijax.register_hitype(Cell, lambda c: CellType(jax.typeof(c.ref)))


class MakeCell(hijax.HiPrim):
    def __init__(self, ref):
        self.in_avals, self.out_aval, self.params = (ref,), CellType(ref), {}
        super().__init__()

    def expand(self, ref):
        return Cell(ref)


class RefOf(hijax.HiPrim):
    def __init__(self, kind):
        self.in_avals, self.out_aval, self.params = (kind,), kind.ref, {}
        super().__init__()

    def expand(self, cell):
        return cell.ref


def cell_of(x):
    ref = jax.new_ref(x)
    return MakeCell(jax.typeof(ref))(ref)


def ref_of(cell):
    return RefOf(jax.typeof(cell))(cell)


def count(cell):
    ref = ref_of(cell)
    ref[...] += 1
    return ref[...]


# -- values, derivatives and batches ---------------------------------------------------------------

X = jnp.arange(6.0).reshape(2, 3) + 1
Y = jnp.cos(X)


def of_pair(p):
    return jnp.sin(part(p, 0)) * part(p.swapped(), 0)


def of_arrays(x, y):
    return jnp.sin(x) * y


def through_pair(x, y):
    return of_pair(pair(x, y))


def through_nested(x, y):
    inner = pair(pair(x, y), pair(y, x))
    return of_pair(part(inner, 0)) + 0 * part(part(inner, 1), 0)


def through_scan(x, y):
    last, ys = jax.lax.scan(lambda c, _: (pair(part(c, 0), part(c, 1) * 2), part(c, 1)),
                            pair(x, y), length=3)
    return of_pair(last) / 8 + 0 * ys.sum(0)


def through_scanned(x, y):
    _, out = jax.lax.scan(lambda c, p: (c, p.swapped()), 0, pair(x, y), length=len(x))
    return of_pair(out.swapped())


def through_while(x, y):
    state = jax.lax.fori_loop(0, 3, lambda _, p: pair(part(p, 0), part(p, 1) * 2), pair(x, y))
    return of_pair(state) / 8


def through_cond(x, y):
    return of_pair(jax.lax.cond(len(x) > 0, lambda p: p.swapped(), lambda p: p,
                                pair(y, x)))


def through_jit(x, y):
    return of_pair(jax.jit(lambda p: p.swapped())(pair(y, x)))


def through_remat(x, y):
    return jax.checkpoint(of_pair)(pair(x, y))


@jax.custom_jvp
def with_jvp(p):
    return of_pair(p)


@with_jvp.defjvp
def _rule(primals, tangents):
    return jax.jvp(of_pair, primals, tangents)


@jax.custom_vjp
def with_vjp(p):
    return of_pair(p)


with_vjp.defvjp(lambda p: (of_pair(p), p), lambda p, ct: jax.vjp(of_pair, p)[1](ct))

ROUTES = [through_pair, through_nested, through_scan, through_scanned, through_while, through_cond,
          through_jit, through_remat, lambda x, y: with_jvp(pair(x, y)),
          lambda x, y: with_vjp(pair(x, y))]


def same(found, expected):
    found, expected = map(jax.tree.leaves, (found, expected))
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("route", ROUTES)
def test_pairs_in_between(route):
    repeats = route in (through_while, through_scan, through_scanned)
    for run in (lambda f: f, jax.jit):
        same(run(route)(X, Y), of_arrays(X, Y))
        same(run(jax.grad(lambda x, y: route(x, y).sum(), (0, 1)))(X, Y),
             jax.grad(lambda x, y: of_arrays(x, y).sum(), (0, 1))(X, Y))
        if route is not ROUTES[-1]:  # which has no forward mode
            same(run(lambda x, y: jax.jvp(route, (x, y), (y, x)))(X, Y),
                 jax.jvp(of_arrays, (X, Y), (Y, X)))
        if route is not through_scanned:  # whose elements would be mapped
            same(run(jax.vmap(route))(X, Y), of_arrays(X, Y))
    if not repeats and route is not through_nested:  # nobody can repeat a pair
        same(jax.vmap(route, (0, None))(X, Y[0]), of_arrays(X, Y[0]))
        same(jax.vmap(jax.grad(lambda x, y: route(x, y).sum()))(X, Y),
             jax.grad(lambda x, y: of_arrays(x, y).sum())(X, Y))


def test_a_size_that_is_made_of_one_is_told_so():
    with pytest.raises(TypeError, match=r"Shapes must be 1D sequences(?s:.*) made of an array"):
        jax.jit(lambda p: jnp.zeros(part(p, 0)))(pair(jnp.int32(1), jnp.int32(2)))


def test_pairs_as_arguments_and_results():
    p = Pair(X, Y)
    kind = jax.typeof(p)
    flip = jax.jit(lambda p: p.swapped())
    assert isinstance(flip(p), Pair) and jax.tree.leaves(p) == [p]
    same(flip(p).first, Y)
    same(jax.jit(lambda: p)().second, Y)
    same(jax.jit(lambda x: of_pair(p) * x)(2.0), 2 * of_arrays(X, Y))
    same(flip.lower(p).compile()(p).first, Y)
    assert "@main" in flip.lower(kind).as_text()
    assert jax.eval_shape(flip, p) == PairType(kind.second, kind.first)
    assert str(jax.make_jaxpr(flip)(p).jaxpr.eqns[0].outvars[0].aval) == str(kind.of(lambda a: a))
    assert jax.make_jaxpr(flip)(p).jaxpr.is_high and not jax.make_jaxpr(jnp.sin)(X).jaxpr.is_high
    donating = jax.jit(lambda p: pair(part(p, 0) + 1, part(p, 1)), donate_argnums=0)
    given = Pair(X + 0, Y + 0)
    same(donating(given).first, X + 1)
    assert given.first.is_deleted()
    slope = jax.grad(lambda p: of_pair(p).sum())(p)
    same((slope.first, slope.second), jax.grad(lambda x, y: of_arrays(x, y).sum(), (0, 1))(X, Y))
    out, tangent = jax.jvp(lambda p: p.swapped(), (p,), (Pair(Y, X),))
    same((out.first, tangent.first), (Y, X))
    _, pull = jax.vjp(lambda p: p.swapped(), p)
    same(pull(Pair(X, Y))[0].second, X)
    _, push = jax.linearize(of_pair, p)
    same(push(Pair(Y, X)), jax.jvp(of_arrays, (X, Y), (Y, X))[1])
    unused = jax.grad(lambda p: part(p, 0).sum())(p)
    same(unused.second, 0 * X)
    mapped = jax.vmap(lambda p: p.swapped(), Both(0), Both(0), axis_size=2)
    same(mapped(p).first, Y)
    same(jax.vmap(of_pair, (Both(1),), 1, axis_size=3)(p), of_arrays(X, Y))
    total = kind.vspace_add(kind.vspace_zero(), p)
    same((total.first, total.second), (X, Y))


def straight(f):
    """What a program of quantised arrays comes to, whose derivatives ignore the rounding."""
    return lambda x: f(x + jax.lax.stop_gradient(dequantise(quantise(x)) - x))


def test_quantised_arrays_and_their_gradients():
    def f(q):
        return jnp.sin(dequantise(q))

    def g(x):
        return f(quantise(x))

    q, expected = quantise(X), straight(jnp.sin)
    assert jax.typeof(q).to_tangent_aval() is jax.typeof(X) and q.numbers.dtype == np.int8
    for run in (lambda f: f, jax.jit):
        same(run(g)(X), expected(X))
        slope = run(jax.grad(lambda q: f(q).sum()))(q)
        assert slope.dtype == np.float32
        same(slope, jax.grad(lambda x: expected(x).sum())(X))
        same(run(jax.grad(lambda x: g(x).sum()))(X), slope)
        same(run(jax.grad(lambda q: jax.checkpoint(f)(q).sum()))(q), slope)
        same(run(lambda q: jax.jvp(f, (q,), (X,)))(q), jax.jvp(expected, (X,), (X,)))
        same(run(jax.vmap(g))(X), expected(X))
        same(run(jax.jacrev(g))(X), jax.jacrev(expected)(X))
        same(run(jax.jacfwd(g))(X), jax.jacfwd(expected)(X))
        same(run(jax.jvp)(jax.grad(lambda x: g(x).sum()), (X,), (X,))[1]
             if run is not jax.jit else jax.jit(
                 lambda x: jax.jvp(jax.grad(lambda x: g(x).sum()), (x,), (x,))[1])(X),
             jax.jvp(jax.grad(lambda x: expected(x).sum()), (X,), (X,))[1])
    _, pull = jax.vjp(g, X)
    same(pull(X)[0], jax.vjp(expected, X)[1](X)[0])
    same(jax.grad(lambda x: jax.lax.scan(
        lambda c, q: (c + f(q).sum(), None), 0.0, quantise(x), length=2)[0])(X),
        jax.grad(lambda x: expected(x).sum())(X))
    looped = jax.lax.while_loop(lambda q: dequantise(q).sum() < 100,
                                lambda q: quantise(2 * dequantise(q)), q)
    same(dequantise(looped), 8 * dequantise(q))
    same(jax.grad(lambda x: jax.lax.switch(
        1, [f, lambda q: 2 * dequantise(q)], quantise(x)).sum())(X), jnp.full_like(X, 2))
    params = {"w": q, "b": jnp.ones(3)}
    slopes = jax.jit(jax.grad(lambda p, x: (x @ dequantise(p["w"]) + p["b"]).sum()))(
        params, jnp.ones((4, 2)))
    same(slopes, {"w": jnp.full((2, 3), 4.0), "b": jnp.full(3, 4.0)})


def test_cells_that_are_written():
    cell = Cell(jax.new_ref(jnp.float32(1)))
    assert jax.jit(count)(cell) == 2 and jax.jit(count)(cell) == 3
    assert jax.jit(lambda: count(cell))() == 4
    assert count(cell) == 5
    total, _ = jax.jit(lambda c: jax.lax.scan(
        lambda s, _: (s + count(c), None), 0.0, length=3))(cell)
    assert total == 6 + 7 + 8
    assert jax.lax.cond(True, count, lambda c: 0.0, cell) == 9
    assert jax.lax.fori_loop(0, 2, lambda _, s: s + count(cell), 0.0) == 10 + 11
    assert jax.jit(lambda x: count(cell_of(x)))(1.0) == 2
    compiled = jax.jit(count).lower(cell).compile()
    assert compiled(cell) == 12 and cell.ref[...] == 12
    made = jax.jit(lambda x: cell_of(x * 2))(jnp.float32(3))
    assert made.ref[...] == 6 and count(made) == 7
    assert jax.jit(lambda x: count(jax.jit(cell_of)(x)))(1.0) == 2
    assert jax.jit(lambda c: c)(cell).ref is cell.ref
    with pytest.raises(ValueError, match=r"only one reference.*part of two"):
        jax.jit(lambda a, b: count(a) + count(b))(cell, cell)


def test_operations_say_what_they_need_of_results():
    class Dropped(hijax.HiPrim):
        def __init__(self, aval, which=(True, True)):
            self.in_avals, self.out_aval = (aval, aval), (aval, aval)
            self.params = {"which": which}
            super().__init__()

        def expand(self, x, y):
            return [f(z) if w else z for w, f, z in zip(
                self.which, (jnp.sin, jnp.cos), (x, y), strict=True)]

        def dce(self, used_outs, live_ins):
            return (*used_outs, Dropped(self.in_avals[0], used_outs))

    class Listed(Dropped):
        def expand(self, x, y):
            return tuple(super().expand(x, y))

        def dce(self, used_outs, live_ins):
            return (*used_outs, Listed(self.in_avals[0], used_outs))

    text = jax.jit(lambda x: Listed(jax.typeof(x))(x, x)[0]).lower(X).as_text()
    assert "sine" in text and "cosine" not in text
    with pytest.raises(TypeError, match=r"Dropped.expand: expected a result of the structure"):
        Dropped(jax.typeof(X))(X, X)
    assert Listed(jax.typeof(X)) == Listed(jax.typeof(X)) != Listed(jax.typeof(X), (True, False))
    assert "Listed[which=(True, True)]" in str(jax.make_jaxpr(Listed(jax.typeof(X)))(X, X))


def test_pairs_on_devices():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(HERE,))
    on, whole = OnMesh((P("i"), P("i"))), OnMesh((P(), P()))
    p = Pair(X, Y)
    for run, check in itertools.product((lambda f: f, jax.jit), (False, True)):
        mapped = partial(jax.shard_map, mesh=mesh, check_vma=check)
        f = mapped(of_pair, in_specs=on, out_specs=P("i"))
        same(run(f)(p), of_arrays(X, Y))
        slope = run(jax.grad(lambda p, f=f: f(p).sum()))(p)
        same(slope.first, jax.grad(lambda x: of_arrays(x, Y).sum())(X))
        same(run(lambda p, f=f: jax.jvp(f, (p,), (Pair(Y, X),)))(p),
             jax.jvp(of_arrays, (X, Y), (Y, X)))
        same(run(mapped(lambda p: p.swapped(), in_specs=on, out_specs=on))(p).first, Y)
        same(run(mapped(lambda p: part(p, 0), in_specs=whole, out_specs=P()))(p), X)
        same(run(mapped(lambda x: x * part(p, 1), in_specs=P(), out_specs=P()))(X), X * Y)
    with pytest.raises(TypeError, match=r"in_specs: expected a HiPspec"):
        jax.shard_map(of_pair, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(p)
    with pytest.raises(ValueError, match=r"result of type Quantised.* does not by its type"):
        jax.shard_map(lambda x: dequantise(quantise(x)), mesh=mesh, in_specs=P("i"),
                      out_specs=P("i"))(X)


REFUSED = [
    (lambda p: jnp.sin(p), TypeError, r"sin requires ndarray or scalar arguments, got .*Pair"),
    (lambda p: jax.jit(jnp.sin)(p), TypeError, r"PairType.* has no 'dtype'.*no arrays"),
    (lambda p: jax.jit(lambda p: p + 1)(p), TypeError, r"PairType.*no arrays"),
    (lambda p: jax.jit(lambda p: p.nothing)(p), AttributeError, "nothing"),
    (lambda p: jax.export.export(jax.jit(of_pair))(p), NotImplementedError,
     r"export: of_pair takes.*a type of a library, PairType"),
    (lambda p: jax.jit(of_pair, in_shardings=jax.sharding.SingleDeviceSharding(
        jax.devices()[0]))(p), NotImplementedError, "in_shardings.*PairType"),
    (lambda p: jax.vmap(of_pair)(p), ValueError, r"vmap.*PairType.*MappingSpec"),
    (lambda p: jax.vmap(lambda p: p.swapped(), Both(0), axis_size=2)(p), ValueError,
     r"vmap out_axes: 0 .*PairType.*along Both\(axis=0\)"),
    (lambda p: jax.vmap(of_pair, Both(0))(p), ValueError, "axis_size must be specified"),
    (lambda p: jax.lax.scan(lambda c, p: (c, None), 0, p), ValueError,
     r"scan: the type PairType.*Say it by `length`"),
    (lambda p: jax.jvp(of_pair, (p,), (X,)), TypeError, r"jax.jvp do not match.*PairType"),
    (lambda p: jax.vjp(lambda p: p.swapped(), p)[1](X), ValueError, r"argument to VJP.*PairType"),
    (lambda p: jax.jit(lambda c: jax.pure_callback(lambda c: X, X, c))(p), NotImplementedError,
     r"'pure_callback' takes no values of the type PairType"),
    (lambda p: jax.vmap(lambda x, p: jax.lax.scan(
        lambda c, _: (pair(part(c, 0) * x, part(c, 1)), None), p, length=2)[0],
        (0, None), Both(0))(X[:, 0], Pair(X[0, 0], X[0, 0])), NotImplementedError,
     r"vmap: a value of type PairType.* is one for all examples"),
    (lambda p: jax.linearize(lambda x: dequantise(quantise(x)), X)[1](X), NotImplementedError,
     r"for linearize support.*`lin`"),
    (lambda p: jax.vmap(through_scanned)(X[None], Y[None]), NotImplementedError,
     r"vmap: values of type PairType.* are the elements of a loop"),
    (lambda p: jax.lax.scan(lambda p, _: (X, None), p, length=2), TypeError,
     r"input carry p has type PairType.*so the types do not match"),
    (lambda p: MakePair(X, X)((X, X), X), TypeError, "MakePair: expected operands of the struct"),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_what_is_refused(i):
    run, kind, message = REFUSED[i]
    with pytest.raises(kind, match=f"(?s){message}"):
        run(Pair(X, Y))


def test_programs_without_such_values_know_nothing_of_them():
    assert not has_types(jax.make_jaxpr(lambda x: jax.lax.scan(
        lambda c, x: (c + x, x), 0.0, x))(jnp.ones(3)).effects)
    assert not has_types(jax.jit(of_arrays).trace(X, Y).effects)


# -- a value that stands for an array --------------------------------------------------------------


class ScaledType(PairType):
    """Of pairs of an array and a scale, which arrays' operations take as their product."""

    def raise_val(self, first, second):
        return Scaled(first, second)

    __jax_array__ = hijax.aval_method(lambda self: scaled_array(self))

    def _mul(self, tracer, other):
        return scaled_array(tracer) * other

    def _rmul(self, tracer, other):
        return other * scaled_array(tracer)


@dataclass(frozen=True)
class Scaled(Pair):
    def __jax_array__(self):
        return self.first * self.second


hijax.register_hitype(Scaled, lambda p: ScaledType(jax.typeof(p.first), jax.typeof(p.second)))


class ScaledArray(hijax.HiPrim):
    def __init__(self, kind):
        self.in_avals, self.out_aval, self.params = (kind,), kind.first, {}
        super().__init__()

    def expand(self, p):
        return p.first * p.second


def scaled_array(p):
    return ScaledArray(jax.typeof(p))(p)


@pytest.mark.parametrize("f", [
    jnp.sin, jnp.zeros_like, jnp.sum, lambda p: jnp.add(p, 1), lambda p: jnp.stack([p, p]),
    lambda p: jnp.ones(2) @ p, lambda p: X * p, lambda p: p * X, lambda p: jnp.dot(p, X.T),
    lambda p: jax.nn.relu(p), jnp.asarray])
def test_values_that_stand_for_arrays(f):
    p = Scaled(X, jnp.float32(2))
    if f is not jnp.asarray:
        same(jax.jit(f)(p), f(2 * X))
    if getattr(f, "__name__", "") != "<lambda>":
        same(f(p), f(2 * X))
