"""What explains traces: of several causes each is told with its cure, and these can be taken."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration
from pyjx.cli import report
from pyjx.runtime import explain, ledger


@pytest.fixture(autouse=True)
def empty_ledger() -> Iterator[None]:
    ledger.clear()
    yield
    ledger.clear()


def line_near(offset: int) -> int:
    """The number of a line near that of the caller."""
    return sys._getframe(1).f_lineno + offset


def advice(function: str) -> list[str]:
    """What would shorten a function, the dearest first."""
    return [why for name, _, why in report._advice(explain.explain()).rows if name == function]


def step(p: Any, b: Any) -> Any:
    return p - 0.1 * jnp.tanh(b).mean()


def made_anew_with_another_shape() -> None:
    for i in range(12):
        jax.jit(lambda p, b: step(p, b))(jnp.ones(10), jnp.ones(32 + i))


def another_shape_and_static_value() -> None:
    def scaled(p: Any, b: Any, scale: float) -> Any:
        return p - scale * b.mean()

    f = jax.jit(scaled, static_argnums=2)
    for i in range(12):
        f(jnp.ones(10), jnp.ones(32 + i), 0.1 * i)


SEVERAL: list[tuple[Callable[[], None], str, str, list[str]]] = [
    (made_anew_with_another_shape, "<lambda>", "function and shape",
     ["a function made anew by the same code: make and transform the function once",
      "b: f32[42] -> f32[43]: pad the argument to one of a few shapes"]),
    (another_shape_and_static_value, "scaled", "shape and static number",
     ["b: f32[42] -> f32[43]: pad the argument to one of a few shapes",
      f"scale: {0.1 * 10} -> {0.1 * 11}: pass the value as an array"]),
]


@pytest.mark.parametrize(("program", "function", "kinds", "causes"), SEVERAL)
def test_all_causes_of_the_same_traces_are_told(program: Callable[[], None], function: str,
                                                kinds: str, causes: list[str]) -> None:
    program()
    (told,) = advice(function)
    assert told.startswith("traced again 11 times, ")
    assert all([cause in told for cause in causes]), told


@pytest.mark.parametrize(("program", "function", "kinds", "causes"), SEVERAL)
def test_the_warning_tells_all_causes(program: Callable[[], None], function: str, kinds: str,
                                      causes: list[str]) -> None:
    names = ("jax_pyjx_retraces_warn_count", "jax_pyjx_retraces_warn_seconds")
    before = [jax.config.read(name) for name in names]
    for name, value in zip(names, (10, 0.0), strict=True):
        jax.config.update(name, value)
    try:
        with pytest.warns(jax.RetraceWarning) as caught:
            program()
    finally:
        for name, value in zip(names, before, strict=True):
            jax.config.update(name, value)
    (text,) = [str(w.message) for w in caught]
    assert f"Mostly the cause was: {kinds}. Now " in text
    for cause in causes:
        change, _, cure = cause.rpartition(": ")
        assert f"Now {change}. Cure: {cure}" in text


def test_causes_with_one_cure_are_told_once() -> None:
    f = jax.jit(lambda weights: sum([w.sum() for w in weights]))
    for n in (3, 4, 5):
        f([jnp.ones(n)] * 20)
    (told,) = advice("<lambda>")
    assert told == (f"traced again 2 times, weights[0]: f32[4] -> f32[5], and 19 more: "
                    f"{explain.CURES['shape']}")


def test_jitted_objects_of_one_function_share_what_is_told() -> None:
    def double(x: Any) -> Any:
        return x * 2

    a, b = jax.jit(double), jax.jit(double, donate_argnums=0)
    assert str(b.explain()) == "double: not traced yet"
    for n in (3, 4, 5):
        a(jnp.ones(n))
    shared = ", of all that is jitted of its code"
    assert not a.explain().is_shared and shared not in str(a.explain())
    assert b.explain().is_shared and b.explain().n_traces == 3
    assert str(b.explain()).splitlines()[0].endswith(f"3 traces, 3 programs (0 from disk){shared}")
    b(jnp.ones(6))
    for f in (a, b):
        assert f.explain().n_traces == 4 and shared in str(f.explain())
    assert not jax.jit(double).explain().traces[0].changes


def test_traces_with_other_options_are_no_causes() -> None:
    def double(x: Any) -> Any:
        return x * 2

    a, b = jax.jit(double), jax.jit(double, dynamic={"x": ("n",)})
    for f, x in ((a, jnp.ones(3)), (a, jnp.ones(4)), (b, jnp.ones(5)), (a, jnp.ones((3, 3), int))):
        f(x)
    other, named = "jitted with other options: ", "jit(..., dynamic): None -> {'x': \"('n',)\"}"
    lines = [[line.partition("test_causes.py:")[2].partition(" ")[2] for line in str(
        f.explain()).splitlines() if line[:3].strip().isdigit()] for f in (a, b)]
    assert lines == [
        ["first trace (x: f32[3])", "x: f32[3] -> f32[4]", f"{other}{named}",
         "x: f32[4] -> i32[3,3]"],
        [f"{other}first trace (x: f32[3])", f"{other}x: f32[3] -> f32[4]",
         named, f"{other}x: f32[4] -> i32[3,3]"]]
    assert b.explain().is_shared and [t.is_own for t in b.explain().traces] == [
        False, False, True, False]
    assert [h.retraces for h in ledger.histories() if h.name == "double"][-1] == 2


KEY = jax.random.key(0)
X = jnp.linspace(0.0, 1.0, 1231)
CALLED: dict[str, Callable[[], Any]] = {
    "permutation": lambda: jax.random.permutation(KEY, 1231),
    "choice": lambda: jax.random.choice(KEY, 1231, (3,), replace=False),
    "split": lambda: jax.random.split(KEY, 1231),
    "histogram": lambda: jnp.histogram(X),
    "unique": lambda: jnp.unique(X),
    "diag": lambda: jnp.diag(X[:231]),
    "std": lambda: X.std(),
    "var": lambda: jnp.var(X),
    "hanning": lambda: jnp.hanning(1231),
    "insert": lambda: jnp.insert(X, 1, 2.0),
    "repeat": lambda: jnp.repeat(X, 2),
    "einsum": lambda: jnp.einsum("i,i", X, X),
    "lstsq": lambda: jnp.linalg.lstsq(jnp.ones((1231, 2)), X),
    "polyfit": lambda: jnp.polyfit(X, X, 2),
    "roots": lambda: jnp.roots(X[:31]),
    "dot_product_attention": lambda: jax.nn.dot_product_attention(*[jnp.ones((1, 231, 2, 4))] * 3),
    "welch": lambda: jax.scipy.signal.welch(X),
    "ufunc.reduce": lambda: jnp.logaddexp.reduce(X),
    "sinh": lambda: jax.tree.map(jnp.sinh, [X]),
    "nextafter": lambda: jnp.nextafter(X, X),
    "sub": lambda: 1 - X,
    "x.at[...].set": lambda: X.at[0].set(1.0),
}


@pytest.mark.parametrize("name", CALLED)
def test_operations_are_named_by_what_was_called(name: str) -> None:
    CALLED[name]()
    names = [row[0] for row in jax.explain().operations]
    assert name in names and not {*names} - {name, "ones", "getitem", "broadcast_in_dim"}, names


def test_operations_of_many_sizes_are_told_apart(monkeypatch: Any) -> None:
    """As jit compiles each size apart, too."""
    monkeypatch.setattr(report, "_SHORT", 0.0)
    jax.config.update("jax_pyjx_report", True)
    try:
        for i in range(20):
            jax.random.permutation(KEY, 700 + i)
        line = line_near(-1)
        jnp.nextafter(X[:701], X[:701])
    finally:
        jax.config.update("jax_pyjx_report", False)
    told = advice("operations outside of jit")
    assert [why for why in told if why.startswith("permutation was compiled for 20 sizes at ")
            and f"test_causes.py:{line}: jit a function that has them all" in why], told
    (others,) = [why for why in told if why.startswith("jit the function that calls ")]
    assert "nextafter" in others and "permutation" not in others


def test_few_operations_are_known(monkeypatch: Any) -> None:
    monkeypatch.setattr(ledger, "OPERATIONS", 2)
    jax.config.update("jax_pyjx_report", True)
    try:
        jnp.sinh(X[:3])
        jnp.cosh(X[:3])
        jnp.nextafter(X[:3], X[:3])
    finally:
        jax.config.update("jax_pyjx_report", False)
    assert len(ledger.operation_sizes()) == len(ledger.operation_lines()) == 2


class Opaque:
    pass


NUMBERS = [1, 1.5, True, 2j, np.float32(2), -1e-7, float("nan")]
OTHERS = [None, "relu", "another function", (1, 2), Opaque(), jnp.tanh, int, np.dtype("float32")]


@pytest.mark.parametrize("value", NUMBERS + OTHERS, ids=lambda x: repr(x).partition(" at 0x")[0])
def test_the_cure_suits_a_static_value(value: Any) -> None:
    f = jax.jit(lambda x, cfg: x, static_argnums=1)
    f(1.0, "tanh")
    f(1.0, value)
    (told,) = advice("<lambda>")
    is_number = any([value is x for x in NUMBERS])
    assert explain.CURES["static number" if is_number else "static"] in told
    assert not is_number or "pass the value as an array" in told


ROLES = [("static number", np.float32(1), np.float32(2)), ("static number", 2.5, "relu"),
         ("static", (*range(100), 1), (*range(100), 2)), ("static", "a" * 99, "a" * 98 + "b"),
         ("static object", Opaque(), Opaque()), ("static", "another function", "other")]


@pytest.mark.parametrize(("kind", "first", "second"), ROLES, ids=range(6))
def test_the_kind_of_a_static_value_is_not_read_off_its_text(kind: str, first: Any, second: Any
                                                             ) -> None:
    f = jax.jit(lambda x, cfg: x, static_argnums=1)
    for value in (first, second, first):
        f(1.0, value)
    (change,) = f.explain().traces[1].changes
    assert explain.cure_for(change) == explain.CURES[kind]


def test_a_function_that_is_static_is_made_once() -> None:
    f = jax.jit(lambda x, g: g(x), static_argnums=1)
    for _ in range(2):
        f(1.0, lambda x: x)
    (told,) = advice("<lambda>")
    assert told.endswith(f"that does not equal it: {explain.CURES['static function']}")


def test_all_causes_of_another_program_are_told(run_python: Callable[[str], str]) -> None:
    printed = run_python("""
import numpy as np, pyjx as jax, pyjx.numpy as jnp
from pyjx.runtime import explain
jax.config.update("jax_num_cpu_devices", 3)
f, x = jax.jit(lambda x: x * 2), jnp.ones(4)
mesh = jax.sharding.Mesh(np.array(jax.devices()[1:]), ("d",))
f(x), f(jax.device_put(x, jax.NamedSharding(mesh, jax.P("d"))))
((why, cure, _),) = explain.compiled_again(f.explain().traces[0])
print(why, cure == explain.CURES["device"] + "; " + explain.CURES["shardings"])
""")
    assert printed == (
        "device cpu:0 -> cpu:1 and shardings of one device -> (P('d',)) over d=2 True\n")


def test_the_nearest_trace_counts_shape_and_dtype_apart() -> None:
    f = jax.jit(lambda x: x * 2)
    f(jnp.ones(3))
    f(jnp.float32(1))
    with jax.enable_x64(True):
        f(jnp.ones(3))
    assert f.explain().traces[-1].cause == (
        "x: f32[3] -> f64[3]; jax_enable_x64: default -> True")
    f(jnp.ones(4))
    assert f.explain().traces[-1].cause == "x: f32[3] -> f32[4]"
    g = jax.jit(lambda x: x * 2)
    g(jnp.ones(3))
    g(jnp.int32(1))
    (change,) = g.explain().traces[-1].changes
    assert change.kind == "rank and dtype"
    assert explain.cure_for(change).startswith("convert the argument to one dtype, and give it")


def test_a_default_that_is_given_is_another_trace() -> None:
    """So it is a cause by itself."""
    f = jax.jit(lambda x, n=1: x * n, static_argnames="n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(1.0), f(1.0, n=1), f(1.0, 1)
    assert [t.cause for t in f.explain().traces[1:]] == [
        "n: 1 by default -> 1", "n: by keyword -> by position"]


def test_a_place_is_one_of_the_users() -> None:
    """Where a function of the library is defined, in whichever of its wrappers, is none."""
    def own(x: Any) -> Any:
        return x

    f = jax.jit(lambda x, act: act(x), static_argnames="act")
    for act in (jax.nn.gelu, own, jax.nn.softmax):
        f(jnp.ones(3), act=act)
    placed = f"own ({__file__}:{own.__code__.co_firstlineno})"
    assert [t.cause.replace(own.__qualname__, "own") for t in f.explain().traces[1:]] == [
        f"act: gelu -> {placed}", f"act: {placed} -> softmax"]


@pytest.mark.parametrize("tool", [jax.inspect.find, jax.inspect.check_rules, jax.inspect.compare,
                                  jax.inspect.trace, jax.viewer.show])
def test_what_tools_look_at_is_no_call(tool: Callable[..., Any]) -> None:
    inner = jax.jit(lambda x: jnp.sin(x), inline=False)
    f = jax.jit(lambda x: inner(x).sum())
    tool(f, jnp.ones(4))
    f(jnp.ones(3))
    assert [h.retraces for h in ledger.histories() if h.name == "<lambda>"][-1] == 0
    tool(f, jnp.ones(5))
    f(jnp.ones((2, 2)))
    found = f.explain()
    assert found.n_traces == 2
    assert [(t.number, t.cause) for t in found.traces] == [
        (0, "looked at"), (1, "first trace"), (0, "looked at"), (2, "x: f32[3] -> f32[2,2]")]
    name = f"{tool.__module__.split('.')[1]}.{tool.__name__}"
    assert [t.tool for t in found.traces] == [name, "", name, ""]
    assert not any(t.within for t in found.traces)
    assert [(t.within, t.tool) for t in inner.explain().traces] == [
        ("<lambda>", t.tool) for t in found.traces]
    assert f"within {name}: looked at (x: f" in str(found)
    assert all("[4]" not in why and "[5]" not in why for why in advice("<lambda>"))


def test_a_trace_of_a_tool_that_calls_run_by_is_told_to_be() -> None:
    f = jax.jit(lambda x: jnp.cos(x).sum())
    jax.inspect.find(f, jnp.ones(4))
    assert not report._lines()[0].rows
    f(jnp.ones(4))
    assert len(report._lines()[0].rows) == 1
    assert f.explain().n_traces == 0 and f.explain().n_programs == 1
    assert "looked at (x: f32[4])" in str(f.explain())
    assert "calls for the same run by this trace" in str(f.explain())


def test_no_warning_comes_while_a_tool_traces() -> None:
    f = jax.jit(lambda x: jnp.cos(x).sum())
    with configuration.retraces_warn_count(0), warnings.catch_warnings():
        warnings.simplefilter("error", jax.RetraceWarning)
        for n in (3, 4):
            f(jnp.ones(n))
        with configuration.retraces_warn_seconds(0.0):
            jax.inspect.find(f, jnp.ones(5))
            with pytest.raises(jax.RetraceWarning):
                f(jnp.ones(6))


def test_options_that_differ_at_their_end_are_others() -> None:
    n, m = jax.export.symbolic_shape("n, m")

    def total(x: Any, y: Any) -> Any:
        return x.sum() + y.sum()

    for last in (n, m):
        f = jax.jit(total, dynamic={"x": ("a" * 70, n), "y": (last,)})
        f(jnp.ones((3, 4)), jnp.ones(4))
    (change,) = f.explain().traces[-1].changes
    assert "'y': '(n,)'" in change.before and "'y': '(m,)'" in change.after, change


@pytest.mark.parametrize(("calls", "cause"), [
    ([(8, 128), (3, 5), (8, 64)], "x: f32[8,128] -> f32[8,64]"),
    ([(8, 4, 4), (3, 5, 5), (8, 4, 5)], "x: f32[8,4,4] -> f32[8,4,5]"),
])
def test_the_nearest_trace_has_the_most_dimensions_in_common(calls: Any, cause: str) -> None:
    f = jax.jit(lambda x: x + 1)
    for shape in calls:
        f(jnp.ones(shape))
    assert f.explain().traces[-1].cause == cause


def test_a_weak_type_is_nearer_than_another_dtype() -> None:
    f = jax.jit(lambda x: x + 1)
    for x in (jnp.float32(1), 1, 1.0):
        f(x)
    assert f.explain().traces[-1].cause == "x: f32[] -> weak f32[]"


# -- pytrees of the user's -------------------------------------------------------------------------


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    w: jax.Array
    b: jax.Array
    act: Any = dataclasses.field(metadata={"static": True}, default=None)


@jax.tree_util.register_pytree_with_keys_class
class Keyed:
    def __init__(self, w: Any, aux: Any) -> None:
        self.w, self.aux = w, aux

    def tree_flatten_with_keys(self) -> Any:
        return [(jax.tree_util.GetAttrKey("w"), self.w)], self.aux

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Keyed:
        return cls(*children, aux)


@pytest.mark.parametrize("make", [
    lambda i: Model(jnp.ones(2), jnp.ones(2), lambda x: x + i),
    lambda i: Keyed(jnp.ones(2), object()),
    lambda i: {"layers": [Keyed(jnp.ones(2), type("Options", (), {})())]},
], ids=["function", "object", "within"])
def test_metadata_that_do_not_equal_are_told(make: Callable[[int], Any]) -> None:
    f = jax.jit(lambda tree: jax.tree.leaves(tree)[0])
    kept = [make(i) for i in range(3)]
    for tree in kept:
        f(tree)
    for trace in f.explain().traces[1:]:
        assert "whose data besides arrays do not equal its" in trace.cause
        assert [explain.cure_for(c) for c in trace.changes] == [explain.CURES["metadata"]]
    for _ in range(2):  # the cure
        f(kept[0])
    assert f.explain().n_traces == 3


@pytest.mark.parametrize(("make", "name"), [
    (lambda n: Model(jnp.ones(2), jnp.ones(n)), "tree.b"),
    (lambda n: Keyed(jnp.ones(n), 1), "tree.w"),
    (lambda n: [Keyed({"x": jnp.ones(n)}, 1)], "tree[0].w['x']"),
])
def test_leaves_of_the_users_classes_have_their_names(make: Callable[[int], Any], name: str
                                                      ) -> None:
    f = jax.jit(lambda tree: jax.tree.leaves(tree)[0])
    for n in (2, 3):
        f(make(n))
    assert f.explain().traces[1].cause == f"{name}: f32[2] -> f32[3]"
