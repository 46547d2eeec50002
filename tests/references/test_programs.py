"""References in programs: jit, loops, branches, jaxprs, stages, errors."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax


def ref_of(*values):
    return jax.new_ref(jnp.array(values, jnp.float32))


# -- jit -------------------------------------------------------------------------------------------


def test_an_argument_is_written_in_place():
    @jax.jit
    def f(ref, x):
        ref[0] += x
        return ref[...] * 2

    ref = ref_of(1, 2)
    for i in range(3):
        assert f(ref, 1.0).tolist() == [4 + 2 * i, 4]
    assert ref[...].tolist() == [4, 2]


def test_trees_of_references_and_arrays():
    @jax.jit
    def step(state, x):
        state["w"][...] = state["w"][...] * x["scale"]
        state["n"][...] += 1
        return state["w"][...].sum()

    state = {"w": ref_of(1, 2), "n": jax.new_ref(0)}
    assert float(step(state, {"scale": jnp.float32(3)})) == 9
    assert float(step(state, {"scale": jnp.float32(3)})) == 27
    assert int(state["n"][...]) == 2


def test_a_reference_that_is_closed_over():
    ref = ref_of(1, 2)

    @jax.jit
    def f(x):
        ref[1] = x
        return ref[...].sum()

    assert float(f(5.0)) == 6
    ref[0] = 10.0
    assert float(f(6.0)) == 16
    assert ref[...].tolist() == [10, 6]
    assert float(jax.jit(lambda x: f(x) + 1)(7.0)) == 18
    assert ref[...].tolist() == [10, 7]


def test_it_is_traced_once():
    traces = []

    @jax.jit
    def f(ref):
        traces.append(1)
        ref[...] = ref[...] + 1

    a, b = ref_of(1), ref_of(2)
    for ref in (a, b, a):
        f(ref)
    assert len(traces) == 1 and a[...].tolist() == [3] and b[...].tolist() == [3]


def test_references_of_its_own_take_the_fast_path():
    traces = []

    @jax.jit
    def f(x):
        traces.append(1)
        ref = jax.new_ref(jnp.zeros_like(x))
        for i in range(3):
            ref[i] = x[i] * i
        return jax.freeze(ref)

    x = jnp.arange(1.0, 4.0)
    assert f(x).tolist() == f(x).tolist() == [0, 2, 6]
    assert len(traces) == 1 and f._cache_size() == 1


def test_nested_calls_and_disable_jit():
    inner = jax.jit(lambda ref, x: ref.addupdate(x, 0))

    @jax.jit
    def outer(ref):
        inner(ref, 1.0)
        inner(ref, ref[0])
        own = jax.new_ref(0.0)
        jax.jit(lambda r: r.at[...].set(5.0))(own)
        return own[...]

    ref = ref_of(1, 0)
    assert float(outer(ref)) == 5 and ref[...].tolist() == [4, 0]
    with jax.disable_jit():
        assert float(outer(ref)) == 5 and ref[...].tolist() == [10, 0]


def test_stages():
    lowered = jax.jit(lambda ref, x: ref.at[0].set(x)).lower(ref_of(0, 0), 1.0)
    assert "tf.aliasing_output" in lowered.as_text()
    compiled = lowered.compile()
    ref = ref_of(1, 2)
    assert compiled(ref, 33.0) is None and ref[...].tolist() == [33, 2]
    closed_over = jax.jit(lambda x: ref[0] * x).lower(1.0).compile()
    assert float(closed_over(2.0)) == 66
    ref[0] = 1.0
    assert float(closed_over(2.0)) == 2


def test_eval_jaxpr_and_eval_shape():
    def f(ref, x):
        ref[...] = ref[...] * x
        return ref[0]

    closed = jax.make_jaxpr(f)(ref_of(2, 3), 1.0)
    ref = ref_of(2, 3)
    assert jax.core.eval_jaxpr(closed.jaxpr, closed.consts, ref, 5.0)[0] == 10
    assert ref[...].tolist() == [10, 15]
    assert jax.eval_shape(f, ref, 1.0).shape == () and ref[...].tolist() == [10, 15]


def test_integers_out_of_bounds_are_moved():
    ref = ref_of(1, 2, 3)
    read = jax.jit(lambda r, i: r[i])
    assert [float(read(ref, i)) for i in (7, -1, -4, -5, -9)] == [3, 3, 1, 1, 1]
    assert read(ref, jnp.array([7, -1, -5])).tolist() == [3, 3, 1]
    jax.jit(lambda r, i: r.at[i].set(9.0))(ref, 7)
    assert ref[...].tolist() == [1, 2, 9]
    jax.jit(lambda r, i: jax.ref.addupdate(r, i, 1.0))(ref, -4)
    assert ref[...].tolist() == [2, 2, 9]


def test_known_integers_beside_many_count_from_the_end():
    x = jnp.arange(12.0).reshape(3, 4)

    def f(ref):
        ref[jnp.array([1, 2]), jnp.int32(-1)] = jnp.array([50.0, 60.0])
        return ref[jnp.array([0, 1]), jnp.int32(-2)]

    for run in (f, jax.jit(f)):
        ref = jax.new_ref(x)
        assert run(ref).tolist() == [2, 6]
        assert ref[...].tolist() == [[0, 1, 2, 3], [4, 5, 6, 50], [8, 9, 10, 60]]


def test_writes_at_many_integers_leave_out_those_out_of_bounds():
    ref = ref_of(1, 2, 3)
    ref[jnp.array([9, 0, -4])] = jnp.array([10.0, 20.0, 30.0])
    assert ref[...].tolist() == [20, 2, 3]
    jax.ref.addupdate(ref, jnp.array([9, -1, -4]), jnp.array([10.0, 20.0, 30.0]))
    assert ref[...].tolist() == [20, 2, 23]


# -- loops and branches ----------------------------------------------------------------------------


def test_scan():
    ref = ref_of(0, 0, 0, 0)

    def body(c, i):
        ref[i] = c
        return c + ref[0] + 1, ref[i]

    def run():
        return lax.scan(body, 1.0, jnp.arange(4))

    last, ys = run()
    assert float(last) == 9 and ys.tolist() == ref[...].tolist() == [1, 3, 5, 7]
    ref[...] = jnp.zeros(4)
    last, ys = jax.jit(run)()
    assert float(last) == 9 and ys.tolist() == ref[...].tolist() == [1, 3, 5, 7]


def test_scan_over_the_elements_of_a_reference():
    def body(c, row):
        row[...] = c * 2
        return c + 1, row[0]

    ref = jax.new_ref(jnp.zeros((3, 2)))
    _, ys = lax.scan(body, jnp.ones(2), ref)
    assert ref[...].tolist() == [[2, 2], [4, 4], [6, 6]] and ys.tolist() == [2, 4, 6]
    _, ys = jax.jit(lambda r: lax.scan(lambda c, row: (c, row[1]), 0, r))(ref)
    assert ys.tolist() == [2, 4, 6]


def test_fori_while_and_map():
    ref = ref_of(1, 2, 3)

    def double(i, c):
        ref[i] *= 2
        return c

    lax.fori_loop(0, 3, double, 0)
    jax.jit(lambda n: lax.fori_loop(0, n, double, 0))(2)
    assert ref[...].tolist() == [4, 8, 6]

    def body(i):
        ref.addupdate(1.0, i)
        return i + 1

    assert int(lax.while_loop(lambda i: ref[i] < 5, body, 0)) == 1
    assert ref[...].tolist() == [5, 8, 6]
    lax.map(lambda i: ref.at[i].set(0.0), jnp.arange(2))
    assert ref[...].tolist()[:2] == [0, 0]


def test_a_condition_reads_and_writes():
    ref = ref_of(0, 5)
    assert float(lax.while_loop(lambda c: c < ref[1], lambda c: c + 1, 0.0)) == 5

    def holds(i):
        ref[0] = ref[0] + 1
        return i < 3

    def body(i):
        ref[1] = ref[0]
        return i + 1

    assert int(jax.jit(lambda: lax.while_loop(holds, body, 0))()) == 3
    assert ref[...].tolist() == [4, 3]


def test_cond_and_switch():
    ref = ref_of(1, 2)

    def set_first():
        ref[0] = 5.0
        return ref[1]

    def f(p):
        return lax.cond(p, set_first, lambda: ref[0])

    assert float(f(False)) == 1 and ref[...].tolist() == [1, 2]
    assert float(jax.jit(f)(True)) == 2 and ref[...].tolist() == [5, 2]
    lax.switch(1, [lambda r: None, lambda r: r.at[1].set(7.0), lambda r: r.at[0].set(0.0)], ref)
    assert ref[...].tolist() == [5, 7]


def test_references_made_inside_of_bodies():
    def body(c, x):
        own = jax.new_ref(c)
        own[...] += x
        return own[...], own[...] * 2

    last, ys = jax.jit(lambda: lax.scan(body, 0.0, jnp.arange(3.0)))()
    assert float(last) == 3 and ys.tolist() == [0, 2, 6]
    assert float(lax.cond(True, lambda: jax.freeze(jax.new_ref(1.0)), lambda: 2.0)) == 1


# -- jaxprs ----------------------------------------------------------------------------------------


def test_how_jaxprs_show_them():
    def f(ref, x):
        ref[...] = x
        ref[0] += 1.0
        y = ref[1:]
        z = ref.at[0:2][jnp.int32(1)]
        w = jax.ref.swap(ref, 0, 2.0)
        return y, z, w, ref[()]

    assert str(jax.make_jaxpr(f)(ref_of(1, 2, 3), jnp.ones(3))) == """\
{ lambda ; a:Ref{f32[3]} b:f32[3]. let
    a[...] <- b
    c:f32[] <- a[0]
    d:f32[] = add c 1.0:f32[]
    a[0] <- d
    e:f32[2] <- a[1:]
    f:f32[] <- a[:2][1]
    g:f32[], a[0] <- a[0], 2.0:f32[]
    h:f32[3] <- a[...]
  in (e, f, g, h) }"""


def test_how_jaxprs_show_new_ones():
    def g(x):
        q = jax.new_ref(x)
        q[...] = q[...] * 2
        q.at[1:][0] += 3.0
        jax.ref.addupdate(q, ..., x)
        return jax.freeze(q)

    assert str(jax.make_jaxpr(g)(jnp.ones(3))) == """\
{ lambda ; a:f32[3]. let
    b:Ref{f32[3]} = new_ref[kind=None memory_space=None pin=False] a
    c:f32[3] <- b[...]
    d:f32[3] = mul c 2.0:f32[]
    b[...] <- d
    e:f32[] <- b[1:][0]
    f:f32[] = add e 3.0:f32[]
    b[1:][0] <- f
    b[...] += a
    g:f32[3] = freeze b
  in (g,) }"""


def test_how_jaxprs_show_nested_ones():
    ref = ref_of(1, 2, 3)
    shown = jax.make_jaxpr(lambda p, r: lax.cond(p, lambda: r.at[0].set(1.0), lambda: None))
    assert str(shown(True, ref)) == """\
{ lambda ; a:bool[] b:Ref{f32[3]}. let
    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    cond[
      branches=(
        { lambda ; d:Ref{f32[3]}. let  in () }
        { lambda ; e:Ref{f32[3]}. let f:f32[], e[0] <- e[0], 1.0:f32[] in () }
      )
    ] c b
  in () }"""


def test_effects():
    names = lambda f, *args: {  # noqa: E731
        type(e).__name__ for e in jax.make_jaxpr(f)(*args).effects}
    ref = ref_of(1, 2)
    assert names(lambda r: r[...], ref) == {"ReadEffect"}
    assert "WriteEffect" in names(lambda r: r.at[0].set(1.0), ref)
    assert "AccumEffect" in names(lambda: ref.addupdate(1.0, 0))
    assert "WriteEffect" in names(jax.jit(lambda: ref.at[0].set(1.0)))
    assert names(lambda x: x, 1.0) == set()


def test_writes_are_not_dead_code():
    def f(ref):
        jax.jit(lambda r: (r.at[0].set(3.0), r[1])[1])(ref)

    closed = jax.make_jaxpr(f)(ref_of(1, 2))
    assert len(closed.eqns) == 1
    ref = ref_of(1, 2)
    jax.jit(f)(ref)
    assert ref[...].tolist() == [3, 2]


# -- errors ----------------------------------------------------------------------------------------


def _leak():
    kept = []
    jax.jit(lambda: kept.append(jax.new_ref(1.0)))()
    kept[0][...]


@pytest.mark.parametrize(("do", "error", "words"), [
    (lambda r: jax.jit(lambda a, b: None)(r, r), ValueError,
     "only one reference to a mutable array may be passed as an argument to a function, but when "
     r"tracing <lambda> at .* for jit the mutable array reference of type Ref\{float32\[3\]\} "
     "appeared at both a and b."),
    (lambda r: jax.jit(lambda a: (a[0], r[0]))(r), ValueError,
     "was both closed over and passed as the argument a"),
    (lambda r: lax.cond(True, lambda a, b: a[0], lambda a, b: b[0], r, r), ValueError,
     "only one reference to a mutable array may be passed"),
    (lambda r: jax.jit(lambda a: a)(r), ValueError,
     r"traced for jit returned a mutable array reference of type Ref\{float32\[3\]\}, but mutable "
     r"array references cannot be returned.\n\nThe returned mutable array was passed in as the "
     "argument a."),
    (lambda r: jax.jit(lambda a: (1, [a]))(r), ValueError,
     r"at output tree path result\[1\]\[0\], but"),
    (lambda r: jax.jit(lambda: r)(), ValueError, "was closed over by the function"),
    (lambda r: jax.jit(lambda: jax.new_ref(1.0))(), ValueError, "was created on line"),
    (lambda r: jax.make_jaxpr(lambda: jax.new_ref(1.0))(), ValueError, "cannot be returned"),
    (lambda r: jax.eval_shape(lambda: jax.new_ref(1.0)), ValueError, "cannot be returned"),
    (lambda r: lax.scan(lambda c, x: (c, None), r, None, length=2), ValueError,
     r"traced for scan returned a mutable array reference .* at output tree path result\[0\]"),
    (lambda r: lax.scan(lambda c, x: (c, r), 0, None, length=2), ValueError, "result.1."),
    (lambda r: lax.while_loop(lambda c: False, lambda c: c, r), ValueError, "cannot be returned"),
    (lambda r: lax.fori_loop(0, 3, lambda i, c: c, r), ValueError, "cannot be returned"),
    (lambda r: lax.cond(True, lambda: r, lambda: r), ValueError,
     "traced for cond returned a mutable array reference"),
    (lambda r: lax.cond(True, lambda: jax.new_ref(1.0), lambda: jax.new_ref(2.0)), ValueError,
     "was created on line"),
    (lambda r: _leak(), jax.errors.UnexpectedTracerError, r"value with type Ref\{float32\[\]\}"),
    (lambda r: jax.jit(lambda r, b: r[b])(r, jnp.array([True, False, True])),
     jax.errors.NonConcreteBooleanIndexError, "must be concrete"),
    (lambda r: jax.jit(lambda r, i: r[i:])(r, 1), jax.errors.TracerIntegerConversionError,
     "__index__"),
    (lambda r: jax.jit(lambda r: r + 1)(r), TypeError, "can't be passed where an array"),
    (lambda r: jax.jit(lambda r: r.sum())(r), TypeError, "can't be passed where an array"),
    (lambda r: jax.jit(lambda x: x.set(1))(jnp.ones(3)), AttributeError, "no attribute 'set'"),
    (lambda r: jax.jit(lambda x: x.__setitem__(0, 1.0))(jnp.ones(3)), TypeError, "immutable"),
])
def test_errors(do, error, words):
    with pytest.raises(error, match=words):
        do(ref_of(1, 2, 3))


def test_a_traced_value_may_be_stored_where_the_reference_is_closed_over():
    ref = ref_of(1, 2)
    jax.jit(lambda x: ref.at[0].set(x))(5.0)
    assert ref[...].tolist() == [5, 2]


def test_static_and_donated_references():
    ref = ref_of(1, 2)
    assert jax.jit(lambda a: a[...], static_argnums=0)(ref).tolist() == [1, 2]
    assert jax.jit(lambda a: a[...], donate_argnums=0)(ref).tolist() == [1, 2]
    assert ref[...].tolist() == [1, 2]


def test_tracers_of_references():
    def f(r):
        assert isinstance(r, jax.Ref) and r.shape == (2,) and r.dtype == np.float32
        assert str(r.aval) == "Ref{float32[2]}" and hasattr(r, "addupdate")
        return r.get(), r.at[0].get()

    assert jax.jit(f)(ref_of(1, 2))[0].tolist() == [1, 2]


def test_weak_values_become_strong():
    @jax.jit
    def f(n):
        ref = jax.new_ref(0)

        def body(i):
            ref[...] = ref[...] + i
            return i + 1

        return jax.lax.while_loop(lambda i: i < n, body, 0), ref[...]

    _, total = f(5)
    assert int(total) == 10 and not total.weak_type
