"""Functions jitted with `dynamic`: one program a bucket, under every transformation."""

import copy
import math
import pickle
import threading
import time
from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export
from pyjx.dynamic import buckets
from pyjx.dynamic.buckets import bucket
from pyjx.experimental import checkify


def rows(n, m=4):
    return np.random.default_rng(n).normal(size=(n, m)).astype(np.float32)


def n_programs(fun):
    return sum(len(t.programs) for t in fun.explain().traces)


@partial(jax.jit, dynamic={"x": ("n",)})
def doubled(x):
    return 2 * x


def attend(x, w):
    return jax.nn.softmax(x @ w @ x.T) @ x


W = rows(4)
dynamic = jax.jit(attend, dynamic={"x": ("n", None)})


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
def test_one_program_runs_for_all_sizes_of_a_bucket(make):
    fun = jax.jit(lambda x, w: attend(x, w), dynamic={"x": ("n", None)})
    fun(make(rows(2)), W)
    before = len(fun.explain().traces), n_programs(fun)
    for n in range(1, 20):
        x = make(rows(n))
        out = fun(x, W)
        assert isinstance(out, jax.Array) and out.shape == (n, 4)
        np.testing.assert_allclose(out, attend(x, W), rtol=2e-5, atol=1e-6)
    assert len(fun.explain().traces) == before[0]
    assert n_programs(fun) == before[1] + 2  # 16 and 32
    fun.clear_cache()
    fun(rows(3), W)
    assert len(fun.explain().traces) == before[0] + 1


@pytest.mark.parametrize("n", [3, 8, 9])
def test_transformations_compose_in_any_order(n):
    x = rows(n)

    def both(transform, *args):
        for one, other in zip(jax.tree.leaves(transform(dynamic)(*args)),
                              jax.tree.leaves(transform(attend)(*args)), strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=3e-4, atol=3e-5)

    def loss(fun):
        return lambda x, w: (jnp.sin(fun(x, w)) * x).sum()

    both(lambda f: jax.grad(loss(f), argnums=(0, 1)), x, W)
    both(lambda f: jax.jit(jax.grad(loss(f))), x, W)
    both(lambda f: jax.vmap(f, (0, None)), np.stack([x, 2 * x]), W)
    both(lambda f: jax.vmap(jax.grad(loss(f)), (0, None)), np.stack([x, 2 * x]), W)
    both(lambda f: jax.grad(lambda x, w: jax.vmap(loss(f), (0, None))(x, w).sum()),
         np.stack([x, 2 * x]), W)
    both(lambda f: lambda *a: jax.jvp(f, a, a), x, W)
    both(lambda f: jax.hessian(loss(f), argnums=1), x, W)
    both(lambda f: lambda x, w: jax.vjp(f, x, w)[1](x), x, W)
    both(lambda f: lambda x, w: jax.jit(jax.vjp(f, x, w)[1])(x), x, W)
    both(lambda f: lambda x, w: jax.linearize(f, x, w)[1](x, w), x, W)
    both(lambda f: jax.checkpoint(f), x, W)
    both(lambda f: lambda x, w: jax.grad(lambda w: f(x, w).sum())(w), x, W)  # it closes over x


def test_a_gradient_of_a_dynamic_function_is_dynamic():
    fun = jax.jit(lambda x, w: jnp.tanh(x @ w).sum(), dynamic={"x": ("n", None)})
    for n in range(1, 9):
        jax.grad(fun, argnums=1)(rows(n), W)
    assert n_programs(fun) <= 3  # what is known, and what is linear


def test_a_dynamic_function_calls_another():
    inner = jax.jit(lambda x: x - x.mean(0), dynamic={"x": ("k", None)})
    outer = jax.jit(lambda x: inner(x).std(0) + inner(x[1:]).sum(), dynamic={"x": ("n", None)})
    for n in (6, 7, 8):
        x = rows(n)
        np.testing.assert_allclose(outer(x), (x - x.mean(0)).std(0), rtol=1e-4, atol=1e-5)
    assert n_programs(outer) == 1


def test_trees_names_and_expressions():
    @jax.jit
    def plain(batch, mask, *rest, scale):
        return (batch["x"] * mask).sum() * scale, [batch["y"] + r.sum() for r in rest]

    fun = jax.jit(plain.__wrapped__, dynamic={
        "batch": {"x": ("2*n",), "y": None}, "mask": "2*n", "rest": ("m", None)})
    for n, m in ((1, 3), (4, 9)):
        args = ({"x": np.ones(2 * n, "f"), "y": np.ones(3, "f")}, np.arange(2 * n), rows(m),
                rows(m))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
                     fun(*args, scale=2.0), plain(*args, scale=2.0))
    with pytest.raises(ValueError, match=r"dimension 0 of mask is 4, and 2 was expected.*'2\*n'"):
        fun({"x": np.ones(2), "y": np.ones(3)}, np.ones(4), scale=1.0)
    with pytest.raises(ValueError, match=r"shape \(\)\. A number has none; a list of numbers is"):
        jax.jit(lambda x: x[0], dynamic={"x": ("n",)})([1.0, 2.0])
    with pytest.raises(ValueError, match="names 2 dimensions"):
        jax.jit(lambda x: x, dynamic={"x": ("n", None)})(np.ones(3))
    with pytest.raises(ValueError, match="no prefix of the tree"):
        jax.jit(lambda x: x, dynamic={"x": {"a": ("n",)}})([np.ones(3)])


def test_options_are_checked():
    with pytest.raises(ValueError, match="dynamic names 'y', which is no parameter"):
        jax.jit(lambda x: x, dynamic={"y": ("n",)})
    with pytest.raises(TypeError, match="must be a dict"):
        jax.jit(lambda x: x, dynamic=("n",))
    for policy in ("pow3", 0, -1, 2.5, True, [], [0], ["a"], {"n": [3, -1]}):
        with pytest.raises(ValueError, match=r"dynamic_policy must be .*; got "):
            jax.jit(lambda x: x, dynamic={"x": ("n",)}, dynamic_policy=policy)
    with pytest.raises(ValueError, match="speaks of 'm', which is no name in"):
        jax.jit(lambda x: x, dynamic={"x": ("2*n",)}, dynamic_policy={"n": 4, "m": 8})
    with pytest.raises(ValueError, match=r"gives 4\.5 for the size 3 of the dimension 'n'"):
        jax.jit(lambda x: x, dynamic={"x": ("n",)}, dynamic_policy=lambda n: 1.5 * n)(np.ones(3))
    for policy in (8, np.array([8, 16])):
        with pytest.raises(ValueError, match="of no use without `dynamic`"):
            jax.jit(lambda x: x, dynamic_policy=policy)
    with pytest.raises(ValueError, match="dynamic names 'k', which is a static argument"):
        jax.jit(lambda x, k: x, dynamic={"k": ("n",)}, static_argnums=1)
    with pytest.raises(ValueError, match=r"has 3\.5, where it may have tuples"):
        jax.jit(lambda x: x, dynamic={"x": (3.5, None)})
    with pytest.raises(ValueError, match=r"Expected list, got .*float32\[3,4\].*such as \('n'"):
        jax.jit(lambda x: x, dynamic={"x": ["n", None]})(np.ones((3, 4), "f"))
    (n,), (m,) = export.symbolic_shape("n"), export.symbolic_shape("m")
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes in dynamic of jit"):
        jax.jit(lambda x: x, dynamic={"x": (n, m)})


def test_options_are_no_others():
    def fun(x):
        return x * 2

    x = np.ones(5, "f")
    plain, one, two, three = jax.jit(fun), *[
        jax.jit(fun, dynamic={"x": (name,)}, dynamic_policy=policy)
        for name, policy in (("n", "pow2"), ("m", 6), ("m", 10))]
    for called in (plain, one, two, three, plain, one):
        np.testing.assert_array_equal(called(x), 2 * x)
    assert [[b.bounds for b in f.explain().buckets] for f in (one, two, three)] == [
        [{"n": 8}], [{"m": 6}], [{"m": 10}]]


def test_dimensions_that_are_given_stay_as_they_are():
    n, = export.symbolic_shape("n", constraints=["n >= 3"])
    for k in range(4, 7):
        fun = jax.jit(lambda x, k=k: x[:3] * (2 if x.shape[0] == k else 1), dynamic={"x": (n,)})
        assert [fun(np.ones(size, "f")).tolist() for size in (5, 6)] == [
            [1 + (k == 5)] * 3, [1 + (k == 6)] * 3]
    assert n.scope.assumed is None
    looked_up = jax.jit(lambda x: x * {x.shape[0]: 2}[x.shape[0]])
    assert export.export(looked_up)(jax.ShapeDtypeStruct((n,), "float32")).in_avals[0].shape == (n,)


def test_policies():
    assert [bucket("pow2", "n", n) for n in (1, 8, 9, 64, 65)] == [8, 8, 16, 64, 128]
    assert bucket({"n": 10}, "n", 11) == 20 and bucket({"n": 10}, "m", 11) == 16
    assert [bucket([4, 16], "n", n) for n in (3, 5, 17)] == [4, 16, 32]
    fun = jax.jit(lambda x: x.sum(), dynamic={"x": ("n",)}, dynamic_policy=lambda n: n - n % 2)
    with pytest.raises(ValueError, match="gives the bucket 2 for the size 3"):
        fun(np.ones(3))
    shapes = []
    fun = jax.jit(lambda x: jax.pure_callback(
        lambda v: (shapes.append(v.shape), v.sum())[1], jax.ShapeDtypeStruct((), "float32"), x),
        dynamic={"x": ("n",)}, dynamic_policy=5)
    assert fun(np.ones(7, "f")) == 7 and shapes == [(7,)]  # callbacks get true sizes


def test_sizes_for_which_the_trace_does_not_hold_run_unpadded():
    fun = jax.jit(lambda x: jnp.linspace(0.0, 1.0, x.shape[0]) * x, dynamic={"x": ("n",)})
    for n in (0, 1, 2, 7):
        np.testing.assert_allclose(fun(np.ones(n, "f")), np.linspace(0, 1, n), rtol=1e-6)
    fun = jax.jit(lambda x: jnp.roll(x[1:], 1), dynamic={"x": ("n",)})
    for n in (1, 2, 5):
        np.testing.assert_array_equal(fun(np.arange(n)), np.roll(np.arange(1, n), 1))
    n, = export.symbolic_shape("n", constraints=["n >= 3", "n <= 10"])
    fun = jax.jit(lambda x: x[:3].sum() + x.sum(), dynamic={"x": (n,)})
    for size in (2, 3, 9, 10, 12):
        assert fun(np.ones(size, "f")) == min(size, 3) + size


def test_sizes_that_a_trace_took_for_others_run_unpadded():
    fun = jax.jit(lambda x: x.squeeze(), dynamic={"x": ("n", None)})
    for n in (1, 2, 1, 5):
        assert fun(np.ones((n, 3))).shape == np.ones((n, 3)).squeeze().shape

    def by_size(x, y):
        return x.sum() if x.shape[0] == 3 or x.shape == y.shape else x.sum() + y.sum()

    fun = jax.jit(by_size, dynamic={"x": ("n",), "y": ("m",)})
    for n, m in ((2, 4), (3, 4), (4, 4), (5, 4), (3, 3)):
        x, y = np.ones(n, "f"), np.ones(m, "f")
        assert fun(x, y) == by_size(x, y)


def test_a_call_that_fails_leaves_nothing_behind():
    fun = jax.jit(lambda x, y: x.sum() + y.reshape(3), dynamic={"x": ("n",)})
    with pytest.raises(TypeError, match="reshape"):
        fun(np.ones(3, "f"), np.ones(4, "f"))
    for n in range(1, 9):
        assert fun(np.ones(n, "f"), np.ones(3, "f")).tolist() == [n + 1] * 3
    assert [b.bounds for b in fun.explain().buckets] == [{"n": 8}]
    assert len(fun.explain().buckets[0].sizes) == 8


def test_a_mistake_of_the_function_is_none_of_its_sizes():
    traced = []

    def fun(x):
        traced.append(x.shape)
        if len(traced) == 1:
            raise ValueError("mine")
        return x.sum()

    fun = jax.jit(fun, dynamic={"x": ("n",)})
    with pytest.raises(ValueError, match="mine"):
        fun(np.ones(3, "f"))
    assert [fun(np.ones(n, "f")) for n in (1, 2)] == [1, 2]
    assert len(traced) == 2
    assert fun.explain().buckets[0].sizes == ({"n": 1}, {"n": 2})


def test_one_thread_traces_for_all_sizes():
    traced = []

    def fun(x):
        traced.append(x.shape)
        time.sleep(0.1)  # the other thread comes meanwhile
        return x.sum() if x.shape[0] > 1 else x[0]

    fun = jax.jit(fun, dynamic={"x": ("n",)})
    found = {}
    threads = [threading.Thread(target=lambda n=n: found.update({n: fun(np.ones(n, "f"))}))
               for n in (5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {5: 5, 6: 6}
    assert len(traced) == 2  # for sizes of at least 1, and of at least 2


def test_complex_padding_is_sorted_behind_all_numbers():
    fun = jax.jit(lambda x: (jnp.sort(x), jnp.argsort(x)), dynamic={"x": ("n",)})
    x = np.array([complex(np.nan, 5), 1, complex(1, np.nan), complex(np.nan, np.nan), 2], "F")
    for one, other in zip(fun(x), (jnp.sort(x), jnp.argsort(x)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_size_is_looked_up_by_the_library_alone():
    static = jax.jit(lambda x, n: x.sum() + n, static_argnums=1)
    fun = jax.jit(lambda x: static(x, x.shape[0]) + jnp.zeros(x.shape).sum(), dynamic={"x": ("n",)})
    assert fun(np.ones(3, "f")) == 6
    fun = jax.jit(lambda x: x * {5: 100}.get(x.shape[0], 1), dynamic={"x": ("n",)})
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match=r"'n'.*looked up in"):
        fun(np.ones(3, "f"))
    n, = export.symbolic_shape("n")
    jax.jit(lambda x: x.sum(), dynamic={"x": (n,)})(np.ones(3))
    assert {n: 3}[n] == 3  # where nothing is traced


def test_keys_static_and_donated_arguments_and_captured_arrays():
    captured = jnp.arange(4.0)

    def plain(key, x, how, y):
        noise = jax.random.normal(key, x.shape)
        return getattr(jnp, how)(x + noise, axis=0) * captured, y * 2

    fun = jax.jit(plain, dynamic={"x": ("n", None), "y": ("n",)}, static_argnums=2,
                  donate_argnames="y")
    for n, how in ((3, "sum"), (5, "max"), (6, "sum")):
        args = jax.random.key(1), rows(n), how
        y = jnp.arange(n)
        expected = plain(*args, y)
        found = fun(*args, y)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found[1], expected[1])
    keys = jax.jit(lambda keys: jax.vmap(jax.random.uniform)(keys), dynamic={"keys": ("n",)})
    some = jax.random.split(jax.random.key(0), 5)
    np.testing.assert_array_equal(keys(some), jax.vmap(jax.random.uniform)(some))


def test_sizes_that_are_called_often_have_a_program_in_which_nothing_changes(monkeypatch):
    calls = []
    found = buckets.Plan.in_one
    monkeypatch.setattr(buckets.Plan, "in_one", lambda self, *args: (
        calls.append(self), found(self, *args))[1])
    fun = jax.jit(lambda x, y: (jnp.tanh(x) / x.sum(), x @ x.T, y), dynamic={"x": ("n", None)},
                  donate_argnames="y")
    for x in (rows(5), jax.device_put(rows(5), jax.devices()[0])):
        before = fun(x, jnp.ones(3))
        monkeypatch.setattr(buckets, "OUTSIDE", math.inf)
        for _ in range(3):
            y = jnp.ones(3)
            after = fun(x, y)
            assert y.is_deleted()
            for a, b in zip(before, after, strict=True):
                np.testing.assert_array_equal(a, b)
                assert b.committed == getattr(x, "committed", False)
        monkeypatch.setattr(buckets, "OUTSIDE", 0)
    assert len(calls) == 2 and calls[0] is calls[1]  # C++ makes the other calls
    gradient = jax.grad(lambda x: fun(x, jnp.ones(3))[1].sum())(rows(5))
    np.testing.assert_allclose(gradient, 2 * np.tile(rows(5).sum(0), (5, 1)), rtol=1e-5)
    monkeypatch.setattr(buckets, "OUTSIDE", math.inf)
    fun = jax.jit(lambda k: jax.vmap(jax.random.uniform)(jax.random.wrap_key_data(k)),
                  dynamic={"k": ("m", None)})
    data = jax.random.key_data(jax.random.split(jax.random.key(0), 3))
    assert np.array_equal(fun(data), fun(data)) and len(calls) == 3
    fun = jax.jit(lambda x: (x, 2 * x, jnp.cumsum(x)), dynamic={"x": ("n",)})
    x = jnp.broadcast_to(jnp.asarray(1.0), (5,))
    for _ in range(3):
        assert [y.weak_type for y in fun(x)] == [True, True, False]
    assert len(calls) == 4


@pytest.mark.parametrize("outside", [0, math.inf])
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_donated_arguments_are_gone_whatever_their_size(monkeypatch, outside):
    monkeypatch.setattr(buckets, "OUTSIDE", outside)
    fun = jax.jit(lambda x, y: (x + 1, y.sum()), dynamic={"x": ("n",)}, donate_argnums=0)
    for n in (5, 8, 5, 5):
        x, y = jnp.ones(n), jnp.ones(n)
        assert fun(x, y)[0].sum() == 2 * n
        assert x.is_deleted() and not y.is_deleted()


def test_references_are_refused_by_name():
    with pytest.raises(TypeError, match=r"names 'r', which holds Ref\{float32\[3\]\}"):
        jax.jit(lambda r: r[...] + 1, dynamic={"r": ("n",)})(jax.new_ref(jnp.ones(3)))


def test_callbacks_have_results_of_true_sizes():
    fun = jax.jit(lambda x: jax.pure_callback(lambda v: np.ones(len(v) - 1, "f"), x, x),
                  dynamic={"x": ("n",)})
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Expected: \(5,\), Actual: \(4,\)"):
        jax.block_until_ready(fun(np.ones(5, "f")))
    fun = jax.jit(lambda x: jax.pure_callback(lambda v: np.repeat(v, 2), jax.ShapeDtypeStruct(
        (2 * x.shape[0],), "float32"), x) + 1, dynamic={"x": ("n",)})
    np.testing.assert_array_equal(fun(np.arange(3, dtype="f")), [1, 1, 2, 2, 3, 3])


def test_prints_show_true_sizes(capfd):
    def fun(x):
        jax.debug.print("{x}", x=x)
        return x.sum()

    assert jax.jit(fun, dynamic={"x": ("n",)})(np.arange(3.0)) == 3
    jax.effects_barrier()
    assert capfd.readouterr().out.split() == ["[0.", "1.", "2.]"]


def test_results_stay_where_arguments_are():
    x = jax.device_put(rows(3), jax.devices()[0])
    out = dynamic(x, W)
    assert out.committed and not dynamic(rows(3), W).committed
    assert dynamic(jnp.asarray(rows(8)), W).weak_type is False
    assert (out + 1).shape == (3, 4)


def test_copies_and_pickles():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    np.testing.assert_allclose(copy.deepcopy(dynamic)(rows(3), W), attend(rows(3), W), rtol=1e-5)


def test_it_is_a_plain_program_elsewhere():
    x = rows(3)
    np.testing.assert_allclose(jax.make_jaxpr(dynamic)(x, W).out_avals[0].shape, (3, 4))
    np.testing.assert_allclose(dynamic.lower(x, W).compile()(x, W), attend(x, W), rtol=1e-5)
    with jax.disable_jit():
        np.testing.assert_allclose(dynamic(x, W), attend(x, W), rtol=1e-5)
    with jax.debug_nans(True):  # those of the padding are none of the function's
        np.testing.assert_allclose(jax.jit(lambda x: jnp.log(x) / x, dynamic={"x": ("n",)})(
            np.ones(3, "f")), np.zeros(3))
    n = export.symbolic_shape("n, 4")
    exported = export.export(dynamic)(jax.ShapeDtypeStruct(n, "float32"), W)
    np.testing.assert_allclose(exported.call(x, W), attend(x, W), rtol=1e-5)


def test_explanations_count_buckets_and_padding():
    fun = jax.jit(lambda x: x.sum(), dynamic={"x": ("n",)})
    for n in (2, 2, 6, 12):
        fun(np.ones(n, "f"))
    small, large = fun.explain().buckets
    assert small.bounds == {"n": 8} and small.sizes == ({"n": 2}, {"n": 6}) and small.calls == 3
    assert small.padding == 1 - 10 / 24 and large.padding == 0.25
    assert "bucket n <= 16: 1 size, 1 call, 25% of its arguments padding" in str(fun.explain())


def test_checks_are_of_true_elements():
    def fun(x):
        checkify.check(jnp.all(x < 3), "too large: {n}", n=x.max())
        return jnp.log(x).sum()

    checked = jax.jit(checkify.checkify(fun, errors=checkify.float_checks | checkify.user_checks),
                      dynamic={"x": ("n",)})
    assert checked(np.ones(3, "f"))[0].get() is None  # the log of a padding zero is none of them
    assert "too large: 5.0" in checked(np.array([1, 5, 1], "f"))[0].get()
    assert "nan" in checked(-np.ones(2, "f"))[0].get()
    indexed = jax.jit(checkify.checkify(lambda x, i: (x[i], x[10]), errors=checkify.index_checks),
                      dynamic={"x": ("n",), "i": ("k",)})
    assert indexed(np.ones(11, "f"), np.array([3, -11]))[0].get() is None
    assert "index 10 is out of bounds" in indexed(np.ones(9, "f"), np.array([3, 1]))[0].get()
    assert "index 12 is out of bounds" in indexed(np.ones(11, "f"), np.array([3, 12, 1]))[0].get()


def test_sizes_that_are_given_as_numbers_are_checked():
    mean = jax.jit(lambda x: x.mean(), dynamic={"x": ("n", 5)})
    assert mean(np.ones((3, 5))) == 1
    for other in (2, 4, 7):
        with pytest.raises(ValueError, match=f"the dimension 1 of x is {other}, and 5 was expect"):
            mean(np.ones((3, other)))


def test_prints_tell_true_sizes(capsys):
    def f(x):
        jax.debug.print("{} rows, twice {n}", x.shape[0], n=2 * x.shape[0])
        return x.sum()

    total = jax.jit(f, dynamic={"x": ("n",)})
    for n in (3, 5):
        total(np.ones(n))
    jax.effects_barrier()
    assert capsys.readouterr().out == "3 rows, twice 6\n5 rows, twice 10\n"


def test_names_that_cannot_be_read_are_shown_with_their_argument():
    with pytest.raises(ValueError, match=r"jit: dynamic\['x'\] names \('n n',\): syntax error"):
        jax.jit(lambda x: x, dynamic={"x": ("n n",)})(jnp.ones(3))
