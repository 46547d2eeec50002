"""`Traced.cost()`: what a program costs, counted on its jaxpr, beside XLA's figures."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export, jaxlib_api, lax
from pyjx.experimental import pallas as pl
from pyjx.experimental.custom_partitioning import custom_partitioning
from pyjx.experimental.roofline import roofline
from pyjx.runtime.costs import Costs, arithmetic, cost_of
from pyjx.sharding import AbstractMesh, AxisType
from pyjx.sharding import PartitionSpec as P


def cost(f, *args):
    return jax.jit(f).trace(*args).cost()


def rows(f, *args):
    return {c.name: c for c in cost(f, *args).by_operation}


A, B = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)


def test_products():
    product = rows(jnp.matmul, A, B)["dot_general"]
    assert product.flops == 2 * 3 * 4 * 5 and product.bytes == 4 * (12 + 20 + 15)
    assert rows(jnp.matmul, A.astype(complex), B.astype(complex))["dot_general"].flops == 480
    batched = rows(jax.vmap(jnp.matmul), np.stack([A] * 7), np.stack([B] * 7))
    assert batched["dot_general"].flops == 7 * 120
    x, w = np.ones((2, 3, 8, 8), np.float32), np.ones((5, 3, 3, 3), np.float32)
    assert rows(lambda x, w: lax.conv(x, w, (1, 1), "VALID"), x, w)[
        "conv_general_dilated"].flops == 2 * (2 * 5 * 6 * 6) * 27


def test_elementwise_functions_and_reductions():
    found = cost(lambda x: jnp.sum(jnp.exp(x) * x + 1), A)
    assert (found.total.flops, found.total.transcendentals) == (12 + 12 + 11, 12)
    assert found.exact and not found.unknown
    assert cost(lambda x: x.T.reshape(2, 6)[:, :3], A).total.flops == 0


LINE, PLANE = np.ones(100, np.float32), np.ones((16, 16), np.float32)


def twice(a, b):
    return a + b * 2


def both(a, b):
    return a[0] + b[0], a[1] * jnp.exp(b[1])


@pytest.mark.parametrize(("f", "args", "n"), [
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "VALID"), (LINE,), 98 * 2),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME"), (PLANE,), 256 * 8),
    (lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1)), (PLANE,), 225 * 3),
    (lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2)), (PLANE,), 64 * 3),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "SAME", (2,), (3,)), (LINE,),
     199 * 2),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (100,), (1,), ((99, 0),)), (LINE,), 100 * 99),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (199,), (1,), ((99, 99),)), (LINE,), 99),
    (lambda x: lax.reduce_window(x, 0.0, twice, (3,), (1,)), (LINE,), 98 * 2 * 2),
    (lambda x: lax.reduce_window((x, x), (0.0, 0.0), both, (3,), (1,)), (LINE,), 98 * 2 * 3),
    (lambda x: lax.reduce(x, 0.0, twice, (0,)), (LINE,), 99 * 2),
    (lambda x: lax.reduce((x, x), (0.0, 0.0), both, (1,)), (PLANE,), 16 * 15 * 3),
    (lambda x: x.at[jnp.array([1, 1, 2])].apply(lambda v: jnp.sin(v) * 2 + 1), (LINE,), 3 + 3 + 9),
    (lambda x: x.at[jnp.array([1, 1, 2])].add(1.0), (LINE,), 3 + 2 * 3),
    (lambda x: lax.reduce(x[:0], 0.0, twice, (0,)), (LINE,), 0),
    *[(lambda x, y=y: x ** y, (LINE,), 100 * n)
      for y, n in ((1, 0), (2, 1), (7, 4), (15, 6), (16, 4), (-1, 1), (-3, 3))]])
def test_what_combines_elements_or_multiplies_them_counts_as_often_as_it_runs(f, args, n):
    found = cost(f, *args)
    assert found.total.flops + found.total.transcendentals == n
    xla = found.xla()
    if any(c.name.startswith("scatter") for c in found.by_operation):
        n += 3  # XLA clamps the indices
    assert n == pytest.approx(sum([xla.get(k, 0.0) for k in ("flops", "transcendentals")]),
                              rel=0.01)


def test_rooflines_and_rows_of_json_count_programs_on_elements():
    closed = jax.make_jaxpr(lambda x: lax.reduce(x, 0.0, twice, (0,)))(LINE)
    assert cost_of(closed.eqns[0]).flops == 99 * 2
    assert roofline(lambda x: lax.reduce(x, 0.0, twice, (0,)))(LINE)[1].unfused_flops == 99 * 2


def test_gradients_of_windows_select_and_add():
    def loss(x, strides):
        return jnp.sum(lax.reduce_window(x, -np.inf, lax.max, (2, 2), strides, "VALID"))

    for strides, windows in (((2, 2), 64), ((1, 1), 225)):
        found = rows(jax.grad(lambda x, s=strides: loss(x, s)), PLANE)
        assert found["select_and_scatter_add"].flops == windows * 3 + windows


def test_what_has_no_formula_counts_as_what_it_is_made_of():
    matrix = np.eye(8, dtype=np.float32)
    # LU, which rows were swapped, their number (and two operations for its sign), the diagonal
    assert cost(jnp.linalg.det, matrix).total.flops == pytest.approx(
        2 / 3 * 8**3 + 8 + 7 + 3 + 7 + 1)
    sums = cost(lax.cumlogsumexp, LINE)
    assert sums.by_operation[0].name == "cumlogsumexp" and sums.xla()["flops"] == pytest.approx(
        sums.total.flops, rel=0.2)
    assert sums.total.transcendentals == 3 * 100 == sums.xla()["transcendentals"]
    groups = np.array([2, 1], np.int32)
    product = rows(lambda x, y: lax.ragged_dot(x, y, groups), A, np.ones((2, 4, 5), np.float32))
    # all rows with each matrix, three operations for a mask of these, where groups begin and end
    assert product["ragged_dot_general"].flops == 2 * (2 * 3 * 4 * 5) + 3 * (2 * 3 * 4) + 2 + 2


def test_what_an_operation_is_made_of_may_be_a_loop_that_counts_once():
    """Or have operations that nobody knows, or be a function that is called on elements."""
    made = cost(lax.igamma, LINE, LINE)
    assert not made.exact and made.by_operation[0].name == "igamma"
    assert "loops that nobody can count run once" in str(made) and "branches" not in str(made)
    branching = cost(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), LINE)
    assert not branching.exact and str(branching).endswith("of branches the dearest one runs")

    def steps(x):
        return lax.while_loop(lambda c: c < 3.0, lambda c: c + 1.0, x)

    def repeated(a, b):
        return a + steps(b)

    found = cost(lambda x: lax.reduce(x, 0.0, repeated, (0,)), LINE)
    assert not found.exact and found.total.flops == 99 * 3
    assert not cost(lambda x: x.at[jnp.array([1, 2])].apply(steps), LINE).exact
    assert cost(lambda x: x.at[jnp.array([1, 2])].apply(jnp.sin), LINE).exact

    def counting(x_ref, out_ref):
        out_ref[...] = steps(x_ref[0, 0]) + x_ref[...]

    for interpret in (True, False):
        call = pl.pallas_call(counting, out_shape=PLANE, interpret=interpret)
        assert not Costs(jax.jit(call).trace(PLANE).jaxpr, dict).exact


def test_loops_count_as_often_as_they_run():
    found = rows(lambda x: lax.scan(lambda c, a: (c + jnp.sin(a), c), 0.0, x)[0], np.ones(9, "f4"))
    assert found["sin"].times == 9 and found["sin"].transcendentals == 9
    nested = rows(lambda x: lax.fori_loop(
        0, 3, lambda i, c: lax.fori_loop(0, 4, lambda j, d: d * 2, c), x), 1.0)
    assert nested["mul"].times == 12
    unknown = cost(lambda n: lax.while_loop(lambda c: c < n, lambda c: c * 2, 1.0), 5.0)
    assert not unknown.exact and unknown.total.times == 2
    assert "loops that nobody can count run once" in str(unknown)


@pytest.mark.parametrize("figure", [
    lambda f, x: cost(f, x).total.transcendentals,
    lambda f, x: roofline(f)(x)[1].unfused_flops])
def test_what_is_called_again_is_counted_once(figure):
    """Two calls at each of thirty levels are a thousand million."""
    def twice(inner):
        return lambda x: inner(inner(x))

    f = jnp.sin
    for _ in range(30):
        f = twice(jax.jit(f))
    assert figure(f, 1.0) == 2**30


def test_branches_count_as_the_dearest():
    found = rows(lambda p, x: lax.cond(p, lambda x: x @ x, lambda x: x + 1, x), True,
                 np.ones((3, 3), np.float32))
    assert "dot_general" in found and "add" not in found


def test_calls_are_looked_into():
    inner = jax.jit(lambda x: jnp.sin(x) + 1)
    assert rows(lambda x: inner(x) + jax.checkpoint(inner)(x), A)["sin"].times == 2
    assert rows(jax.grad(lambda x: jnp.sum(inner(x))), A)["cos"].transcendentals == 12


@pytest.mark.parametrize(("f", "n"), [
    (jnp.linalg.cholesky, 512 / 3 + 2 * 64),  # and it is made symmetric
    (lambda x: jnp.linalg.eigh(x)[0], 9 * 512 + 2 * 64),
    (lambda x: lax.linalg.schur(x)[0], 25 * 512), (lax.linalg.hessenberg, 10 / 3 * 512),
    (lambda x: lax.linalg.tridiagonal(x)[0], 4 / 3 * 512),
    (lambda x: jnp.linalg.solve(x, x), 2 / 3 * 512 + 2 * 512),
    (lambda x: jax.scipy.linalg.qr(x, pivoting=True), 2 * (4 / 3 * 512)),
    (lambda x: lax.top_k(x, 3), 64),
])
def test_linear_algebra(f, n):
    assert cost(f, np.eye(8, dtype=np.float32)).total.flops == pytest.approx(n)


def test_xla_and_the_estimate_agree():
    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    found = cost(jax.value_and_grad(loss), np.ones((64, 32), "f4"), np.ones((16, 64), "f4"))
    xla = found.xla()
    assert found.total.flops == pytest.approx(xla["flops"], rel=0.05)
    # the tangent alone: its derivative is a series
    assert found.total.transcendentals == xla["transcendentals"] == 16 * 32
    lines = str(found).splitlines()
    assert lines[0].split() == ["operation", "times", "flops", "transc.", "bytes"]
    assert lines[1].startswith("dot_general") and "by XLA" in lines[-1]


def test_backends_that_do_not_count(monkeypatch):
    def analysis(client, module):
        raise jax.errors.JaxRuntimeError(
            "UNIMPLEMENTED: PJRT C API does not support GetHloCostAnalysis")

    module = jaxlib_api._jax
    if not hasattr(module, "hlo_module_cost_analysis"):
        module = jaxlib_api._hlo
    monkeypatch.setattr(module, "hlo_module_cost_analysis", analysis)
    traced = jax.jit(jnp.sin).trace(1.0)
    assert traced.lower().cost_analysis() is None
    assert traced.cost().xla() == {} and "by XLA" not in str(traced.cost())


def test_lines_of_the_user():
    def f(x):
        y = x @ x
        return jnp.sin(y)

    first, second = cost(f, np.ones((3, 3), np.float32)).by_line
    line = f.__code__.co_firstlineno
    assert first.name == f"{__file__}:{line + 1}" and second.name == f"{__file__}:{line + 2}"
    assert first.flops == 54 and second.transcendentals == 9


def double(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2.0


def kernel(x, interpret=True):
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(double, out_shape=x, interpret=interpret, grid=4, in_specs=[rows],
                          out_specs=rows)(x)


@custom_partitioning
def partitioned(x):
    return jnp.sin(x) * 2 + 1


partitioned.def_partition(partition=lambda *args: None, sharding_rule="i -> i",
                          infer_sharding_from_operands=lambda *args: None)


@pytest.mark.parametrize(("f", "x", "lines"), [
    (kernel, np.ones((32, 128), "f4"), [(double, 1), (kernel, 2)]),
    (jax.vmap(kernel), np.ones((2, 32, 128), "f4"), [(double, 1), (kernel, 2)]),
    (partial(kernel, interpret=False), np.ones((32, 128), "f4"), [(kernel, 2)])])
def test_what_is_made_late_has_the_line_of_the_operation(f, x, lines):
    traced = jax.jit(f).trace(x)
    where = {f"{__file__}:{g.__code__.co_firstlineno + n}" for g, n in lines}
    assert {c.name for c in traced.cost().by_line} == where


def test_partitioned_functions_count():
    found = rows(lambda x: partitioned(x) + 1, LINE)["custom_partitioning"]
    assert (found.flops, found.transcendentals) == (200, 100)


def test_foreign_code_is_named():
    def f(x):
        jax.debug.print("{}", x)
        return jax.pure_callback(np.sin, x, x) + 1

    assert cost(f, np.ones(3, np.float32)).unknown == ("pure_callback",)


def test_devices_are_told():
    """What each device of a `shard_map` does counts, and XLA's figures are of one."""
    mesh = AbstractMesh((2, 4), ("i", "j"), (AxisType.Auto,) * 2)

    def f(x):
        return jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("i", "j"), out_specs=P("i", "j"))(x)

    def g(x):
        inner = jax.shard_map(jnp.sin, axis_names={"j"}, in_specs=P("j"), out_specs=P("j"))
        return jax.shard_map(inner, mesh=mesh, axis_names={"i"}, in_specs=P("i"),
                             out_specs=P("i"))(x)

    for h in (f, g):
        closed = jax.jit(h).trace(np.ones((8, 8), np.float32)).jaxpr
        found = Costs(closed, dict)
        assert (found.devices, found.total.transcendentals) == (8, 64)
        assert "what all 8 devices do, together" in str(found)
    assert cost(jnp.sin, LINE).devices == 1 and "devices" not in str(cost(jnp.sin, LINE))
    several = str(Costs(jax.make_jaxpr(jnp.sin)(LINE), lambda: {"flops": 3.0}, 4))
    assert "by XLA, on one device" in several and "what all 4 devices do, together" in several


def test_keys_and_empty_arrays():
    key = jax.random.key(0)
    assert cost(lambda k: jax.random.normal(k, (3,)), key).total.flops > 3
    assert cost(lambda x: x + 1, np.ones((0, 3), np.float32)).total.flops == 0


@pytest.mark.parametrize("fun", [lambda x: x.T, lambda x: jnp.sin(x) @ x.T])
def test_sizes_must_be_known(fun):
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("b, 4"), "float32")
    with pytest.raises(TypeError, match=r"cost: the sizes of float32\[b,4\] in \w+ are not known"):
        jax.jit(fun).trace(shape).cost()


def test_what_says_where_values_lie_computes_nothing():
    mesh = jax.make_mesh((1,), ("d",), axis_types=(AxisType.Auto,))
    place = jax.sharding.NamedSharding(mesh, P("d"))
    found = cost(lambda x: lax.with_sharding_constraint(x, place), LINE)
    assert [c.name for c in found.by_operation] == ["sharding_constraint"]
    assert found.total.flops == 0
    explicit = jax.make_mesh((1,), ("d",), axis_types=(AxisType.Explicit,))
    with jax.set_mesh(explicit):
        assert rows(lambda x: jax.reshard(x, P("d")), LINE)["reshard"].flops == 0


def test_what_an_equation_runs_counts_as_often_as_it_runs_by_itself():
    def last(f, *args):
        return jax.make_jaxpr(f)(*args).jaxpr.eqns[-1]

    x = jnp.ones((8, 8))
    for length in (0, 3):
        found = arithmetic(last(lambda x, n=length: lax.scan(
            lambda c, _: (c @ c, None), x, length=n)[0], x))
        assert found.amounts == (length * 2 * 8**3, 0.0)
    found = arithmetic(last(lambda p, x: lax.cond(p, lambda x: x @ x, lambda x: x, x), True, x))
    assert found.amounts == (2 * 8**3, 0.0) and found.guesses  # the dearest branch
