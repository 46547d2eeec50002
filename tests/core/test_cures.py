"""What messages name in the place of what traced values, classes and objects do not take."""

import dataclasses
import functools
import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core import advice
from pyjx.core.trace import Tracer
from pyjx.experimental import checkify, pallas

pytestmark = pytest.mark.smoke  # what code looks like differs by Python's release

PAIR = jnp.ones(2)
LAYERS = [{"w": PAIR, "b": 1.0}, {"w": PAIR, "b": 2.0}]
RAGGED = [PAIR, jnp.ones(3)]
MODEL = {"layers": LAYERS, "acts": (jnp.sin, jnp.cos)}
SINE = jax.jit(jnp.sin)


def said(call, *args):
    """The message, as a program that ends with the error shows it."""
    with pytest.raises((TypeError, ValueError, AttributeError, OverflowError, IndexError,
                        NotImplementedError)) as caught:
        call(*args)
    advice.complete(caught.value)
    return str(caught.value)


def meant(code, **known):
    """What the code in a message gives."""
    return eval(code, {"jax": jax, "jnp": jnp, "lax": lax, "checkify": checkify,
                       "dataclasses": dataclasses, **known})


# -- traced values ---------------------------------------------------------------------------------


class Holder:
    def __init__(self):
        self.layers = LAYERS

    def of(self, i):
        return self.layers[i]


STACKED = ("\nTrees of one structure are one of arrays by xs = jax.tree.map(lambda *x: jnp.stack(x)"
           ", *xs): index these, jax.tree.map(lambda x: x[i], xs).")


@pytest.mark.parametrize(("call", "cure"), [
    (lambda i: LAYERS[i], STACKED), (lambda i: MODEL["layers"][i], STACKED), (Holder().of, STACKED),
    (lambda i: lax.fori_loop(0, 2, lambda j, x: x + LAYERS[j]["b"], 0.0), STACKED),
    (lambda i: lax.scan(lambda c, j: (c, LAYERS[j]), i, jnp.arange(2)), STACKED),
    (lambda i: RAGGED[i], "These have different structures or shapes. Choose between"),
    (lambda i: [LAYERS[0], PAIR].copy()[i], "jnp.asarray(xs)[i]; trees of one structure are one "),
    (lambda i: MODEL["acts"][i](1.0), "\nlax.switch chooses between functions: lax.switch(i, func"),
    (lambda i: [1, 2][i], "\nTo index numbers or arrays of one shape, make them an array: "),
])
def test_the_cure_for_an_index_is_by_what_is_indexed(call, cure):
    assert cure in said(jax.jit(call), 1)


def test_these_cures_work():
    made, indexed = re.search(r"by xs = (.*): index these, (.*)\.$", STACKED).groups()
    xs = meant(made, xs=LAYERS)
    assert jax.jit(lambda i: meant(indexed, xs=xs, i=i))(1)["b"] == 2.0
    chosen = re.search(r"lax\.switch\(.*?\]\)", said(jax.jit(lambda i: RAGGED[i]), 1))[0]
    assert jax.jit(lambda i: meant(chosen, xs=RAGGED, f=jnp.sum, i=i))(1) == 3.0


@pytest.mark.parametrize("asserted", ["(x > 0).all(), 'positive'", "x.ndim == 1 and x[0] > 0"])
def test_an_assertion_is_checked_as_the_program_runs(asserted):
    names = {}
    exec(f"def call(x):\n    assert {asserted}", names)  # pytest writes its own anew
    text = said(jax.jit(names["call"]), PAIR)
    assert "in the place of `assert`: checkify.check(x, 'message')" in text
    assert "jnp.all." not in text and "jnp.where" not in text


@pytest.mark.parametrize(("fun", "checked"), [
    (lambda x: raises_on(x), True), (lambda x: raises_later(x), False)])
def test_what_only_raises_is_checked_as_the_program_runs(fun, checked):
    assert ("checkify" in said(jax.jit(fun), PAIR)) == checked


def test_a_method_is_no_function_of_python():
    assert "asks for the value" not in said(jax.jit(lambda x: 1 if (x > 0).all() else 2), PAIR)


@pytest.mark.parametrize(("call", "shown"), [
    (lambda x: print("x", float(x)), True), (lambda x: f"{float(x):.3f}", True),
    (lambda x: print(
        f"step {int(x)}"), True), (lambda x: jnp.ones(int(x)), False),
])
def test_what_is_printed_is_shown_as_the_program_runs(call, shown):
    text = said(jax.jit(call), 1.0)
    assert ("jax.debug.print('{x}', x=x)" in text) == shown
    assert ("as static" in text) != shown


# -- bodies of loops -------------------------------------------------------------------------------


def noted(call):
    with pytest.raises((TypeError, IndexError)) as caught:
        call()
    return getattr(caught.value, "__notes__", [])


class Model:
    def step(self, carry, x):
        return carry["a"], x


SCANNED = ("scan calls <lambda> as f(carry, x), here with x=float32[2], layer=[{'w': float32[]}]. "
           "Not a list is scanned, but each of its arrays: stack them, xs = jax.tree.map(lambda *x:"
           " jnp.stack(x), *xs).")


@pytest.mark.parametrize(("call", "note"), [
    (lambda: lax.fori_loop(0, 2, lambda x, i: x.at[i].set(1), PAIR),
     "fori_loop calls <lambda> as body_fun(i, value), here with x=int32[], i=float32[2]. The "
     "arguments are exchanged: let it be lambda i, x: ..."),
    (lambda: jax.jit(lambda y: lax.scan(lambda x, c: (c[0], x), (y, y), PAIR))(PAIR[0]),
     "scan calls <lambda> as f(carry, x), here with x=(float32[], float32[]), c=float32[]. "
     "The arguments are exchanged: let it be lambda c, x: ..."),
    (lambda: lax.scan(lambda x, layer: (x * layer["w"], 0), PAIR, [{"w": PAIR}]), SCANNED),
    (lambda: lax.scan(Model().step, [PAIR, PAIR], PAIR),
     "scan calls step as f(carry, x), here with carry=[float32[2], float32[2]], x=float32[]."),
    (lambda: lax.scan(functools.partial(Model.step, 1), 1.0, PAIR),
     "scan calls step as f(carry, x), here with carry=float32[], x=float32[]."),
    (lambda: lax.scan(lambda c, x: (c["a"], x), 1.0, [PAIR, PAIR]),
     "scan calls <lambda> as f(carry, x), here with c=float32[], x=[float32[], float32[]]."),
    (lambda: lax.scan(lambda c, x: (c + x, 0), 1.0, [PAIR, jnp.ones((2, 3))]),
     "scan calls <lambda> as f(carry, x), here with c=float32[], x=[float32[], float32[3]]."),
    (lambda: lax.map(lambda r, k=2: r["a"], PAIR), "map calls <lambda> as f(x), here with "
     "r=float32[]."),
])
def test_what_the_body_of_a_loop_was_given_is_told_once(call, note):
    assert noted(call).count(note) == 1


def test_other_functions_in_bodies_are_not_told_of():
    def within(x):
        return x["a"]

    assert not [note for note in noted(lambda: lax.scan(
        lambda c, x: (within(c), x), 0.0, PAIR)) if "here with" in note]


def test_these_layers_are_scanned():
    layers = meant(re.search(r"xs = (.*)\.$", SCANNED)[1], xs=LAYERS)
    assert lax.scan(lambda x, layer: (x * layer["w"], 0), PAIR, layers)[0].shape == (2,)


# -- classes and objects ---------------------------------------------------------------------------


@pytest.mark.parametrize(("flatten", "unflatten"), [
    (lambda: ((), None), lambda aux, children: None),
    (lambda node, more: ((), None), lambda aux, children: None),
    (lambda node: ((1.0,), None), lambda children: None)])
@pytest.mark.parametrize("call", [
    lambda x: jax.tree.map(lambda y: y, x), lambda x: jax.tree.map(lambda y: y, x, is_leaf=abs_),
    lambda x: jax.tree.unflatten(jax.tree.structure(x), jax.tree.leaves(x)),
    lambda x: lax.scan(lambda c, _: (c, 0), x, PAIR), lambda x: SINE(x), jax.grad(lambda x: 1.0)])
def test_how_what_a_class_is_registered_with_is_called(flatten, unflatten, call):
    kind = type("Kind", (), {})
    jax.tree_util.register_pytree_node(kind, flatten, unflatten)
    text = said(call, kind())
    assert text.endswith("called as flatten(node), which gives (children, aux), and unflatten("
                         "aux, children).") and "is_leaf(" not in text


@pytest.mark.parametrize("call", [
    lambda x: jax.tree.map(lambda y: y, x), lambda x: jax.jit(lambda b: b.count)(x)])
def test_a_field_that_is_dropped_has_a_default(call):
    kind = dataclasses.make_dataclass("Bandit", ["count", "arms"])
    jax.tree_util.register_dataclass(kind, ["count"], [], drop_fields=["arms"])
    text = said(call, kind(PAIR, 4))
    assert text.endswith("argument: 'arms'. A node of register_dataclass is made again of its "
                         "data_fields and meta_fields alone: name the field there, or give it a "
                         "default.")


@pytest.mark.parametrize("call", [lambda: SINE(), lambda: jax.nn.relu(1.0, 2.0),
                                  lambda: jax.jit(lambda x: (lambda: x)(x))(1.0)])
def test_other_functions_are_not_told_to_be_of_a_class(call):
    assert "pytree" not in said(call)


def abs_(x):
    return False


class Trainer:
    @functools.partial(jax.jit, static_argnums=0)
    def static(self, x, y):
        return x

    @jax.jit
    def traced(self, x, y):
        return x

    @functools.partial(jax.jit, static_argnums=0)
    def of_options(options, x):
        return x


@pytest.mark.parametrize(("call", "name"), [
    (lambda x: Trainer.static(x, x), "static"), (lambda x: Trainer.traced(x, x), "traced")])
def test_a_method_that_is_called_on_its_class_lacks_an_object(call, name):
    text = said(call, PAIR)
    assert text.endswith(f"call it on an object, as in Trainer(...).{name}(...).")
    assert "leave this one out" not in text


def test_other_calls_of_a_class_lack_no_object():
    trainer = Trainer()
    for call in (lambda x: Trainer.traced(trainer, x), lambda x: Trainer.of_options(x, x)):
        assert "on an object" not in said(call, PAIR)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: PAIR.at[0].nothing(1), "'nothing'. It has add, apply, "),
    (lambda: PAIR.at[0].multipy(1), "Did you mean: 'multiply'?"),
    (lambda: jax.make_jaxpr(jnp.sin)(1.0)(2.0), "Use jax.extend.core.jaxpr_as_fun(x)(...)."),
    (lambda: SINE.lower(1.0)(2.0), "'Lowered' object is not callable. Use x.compile()(...)."),
    (lambda: jax.export.export(SINE)(1.0)(2.0), "object is not callable. Use x.call(...)."),
])
def test_what_an_object_has_is_told(call, words):
    assert words in said(call)


def test_objects_of_others_are_not_told_of():
    kind = type("Exported", (), {"__module__": "users"})
    assert not re.search("Use |It has", said(lambda: kind()(1)) + said(lambda: kind().a))


# -- what was given --------------------------------------------------------------------------------


HELD = []


@jax.jit
def leaking(x):
    HELD[:] = [x]
    return x


@functools.partial(jax.tree_util.register_dataclass, data_fields=["x", "name"], meta_fields=[])
@dataclasses.dataclass
class Layer:
    x: jax.Array
    name: str


@jax.custom_jvp
def scaled(x, eps):
    return x * eps


def rule_of(rule):
    fun = jax.custom_jvp(lambda x, y: x * y)
    fun.defjvp(rule)
    return fun


def raises_on(x):
    if jnp.isnan(x).any():
        raise ValueError("nan")
    return x


def raises_later(x, strict=True):
    if x.sum() > 0:
        x = x + 1
        if strict:
            raise ValueError("positive")
    return x


def stores(value, shape=(8,)):
    def kernel(x_ref, out_ref):
        out_ref[...] = value
    out = jax.ShapeDtypeStruct(shape, jnp.float32)
    return lambda: pallas.pallas_call(kernel, out_shape=out, interpret=True)(PAIR)


def cut(x, n):
    return x[:n]


CLOSED = jax.make_jaxpr(lambda x: x * 2)(1.0)
scaled.defjvps(lambda t, x: t * x, None)
FLAG = "with jax.config.update('jax_enable_x64', True)"
FIELD = "dataclasses.field(metadata=dict(static=True))"


@pytest.mark.parametrize(("call", "cure"), [
    (lambda: jnp.int32(2 ** 40), f"to 2147483647: use jnp.int64 {FLAG} or a float."),
    (lambda: jnp.array([2 ** 40], dtype=jnp.int32), f"use jnp.int64 {FLAG} or a float."),
    (lambda: jnp.uint8(300), "uint8, which holds 0 to 255: use jnp.int16 or a float."),
    (lambda: jnp.int8(-200), "use jnp.int16 or a float."),
    (lambda: jnp.int8(70_000), "use jnp.int32 or a float."),
    (lambda: jnp.uint32(2 ** 63), f"to 4294967295: use jnp.uint64 {FLAG} or a float."),
    (lambda: jnp.uint32(-1), "to 4294967295: use jnp.int32 or a float."),
    (lambda: jnp.uint8(-1), "to 255: use jnp.int8 or a float."),
    (lambda: jnp.int32(3_000_000_000), "to 2147483647: use jnp.uint32 or a float."),
    (lambda: jnp.array([1, 3_000_000_000]), "jax_enable_x64', True); floats are larger"),
    (lambda: jnp.arange(3) + 3_000_000_000, "jax_enable_x64', True); floats are larger"),
    (lambda: jnp.array(2 ** 70), "to 2147483647: use a float."),
    (lambda: PAIR.std(-1, False), "as in keepdims=False"),
    (lambda: jax.jit(lambda x: Layer(x, "a"))(PAIR), FIELD),
    (lambda: jnp.array([2 ** 40]), f". Integers have 64 bits {FLAG}; floats are larger without."),
    (lambda: jax.grad(scaled)(1.0, 2.0), "called as rule(tangent, output, x, eps)."),
    (lambda: jax.grad(rule_of(lambda x, t: (x[0] * x[1], t)))(1.0, 2.0),
     "It is called as rule(primals, tangents), with a tuple of one for each argument of"),
    (lambda: jax.jit(lambda c: c.x)(Layer(PAIR, "a")), FIELD),
    (lambda: jax.vmap(lambda c: c.x)(Layer(PAIR, "a")), FIELD),
    (lambda: jax.grad(lambda c: c.x.sum())(Layer(PAIR, "a")), "meta_fields of register_dataclass"),
    (lambda: jax.eval_shape(cut, PAIR, 1), "jax.eval_shape(lambda x: f(x, 2), x)."),
    (lambda: jax.eval_shape(cut, PAIR, 1), " for eval_shape. This"),
    (lambda: jax.make_jaxpr(cut)(PAIR, 1), "jax.make_jaxpr(f, static_argnums=1)(x, 2)."),
    (lambda: jax.make_jaxpr(cut)(PAIR, 1), " for make_jaxpr. This"),
    (lambda: jax.jit(cut)(PAIR, 1), "static_argnums or static_argnames of jit"),
    (lambda: pallas.BlockSpec(lambda i: (i,), (4,)),
     ">. The order of the arguments is BlockSpec(block_shape, index_map)."),
    (lambda: jax.core.eval_jaxpr(CLOSED, 1.0), "eval_jaxpr(closed.jaxpr, closed.consts, *args)."),
    (stores(jnp.zeros(9)), "part: store a part of the value, or let the reference have its shape"),
    (stores(jnp.zeros(8), (2, 8)), "part: jnp.broadcast_to gives it."),
    (stores(jnp.zeros((2, 4))), "part: jnp.reshape or jnp.transpose gives it."),
    (lambda: lax.scan(lambda c, x: (c, x), PAIR), "scan(f, init, xs) has init alone: give xs, or"),
    (lambda: jax.nn.one_hot(jnp.arange(3), num_classes=PAIR), "integer, got Array([1., 1.], "),
    (lambda: PAIR.mean(-1, True), "as in keepdims=True"),
    (lambda: PAIR.max(-1, True), "as in keepdims=True."),
    (lambda: setattr(PAIR, "shape", (1, 2)), "setter. Arrays stay as they are: make another one, "
     "such as x = x.reshape(shape) or x = x.astype(dtype)."),
    (lambda: jax.jit(lambda x: setattr(x, "T", x))(PAIR), ". Arrays stay as they are"),
    (lambda: lax.switch(1.0, [abs, abs], 1.0), "Make it one: jnp.asarray(index).astype(int)."),
    (lambda: jax.jit(cut, static_argnames=("nn",)), "It takes ['x', 'n']."),
    (lambda: jax.jit(Holder.of, static_argnames=("slef",)), "Did you mean 'self'?"),
    (lambda: jax.grad(PAIR), "grad: fun must be a function, got Array([1., 1.], "),
    (lambda: jax.tree.map(lambda x, y: x, [1, 2], (1, 2)), "they are of this structure "
     "by jax.tree.unflatten(jax.tree.structure(tree), jax.tree.leaves(other))."),
    (lambda: bool(PAIR), "or a.all(); to choose for each element use jnp.where(condition, x, y)"),
    (lambda: {PAIR: 1}, "give x.item() of a number, tuple(x.tolist()) of a vector, or (x.shape, "
     "x.dtype, x.tobytes())."),
    (lambda: jax.jit(raises_on)(PAIR), "`raise`: checkify.check(~x, 'message'), and call err"),
])
def test_the_cure_is_by_what_was_given(call, cure):
    assert cure in said(call)


def test_attributes_of_librarys_types_are_not_set_either(monkeypatch):
    monkeypatch.setattr(Tracer, "T", lambda self: self)  # as types of libraries have it
    assert "is read-only. Arrays stay as they are" in said(
        lambda: jax.jit(lambda x: setattr(x, "T", x))(PAIR))


@pytest.mark.parametrize("call", [
    lambda: jnp.round(PAIR, 2, True), lambda: jnp.cumsum(PAIR, 0, None, True),
    lambda: jnp.take(PAIR, 0, 0, True), lambda: jnp.zeros(3, True), lambda: PAIR.astype(True)])
def test_no_flag_is_named_that_a_function_has_not(call):
    assert "keepdims" not in said(call)


@pytest.mark.parametrize("call", [jax.jit(lambda x: x), jax.jit(lambda x: {"a": "b"})])
@pytest.mark.parametrize("tree", [{"a": "b"}, (1.0, "b")])
def test_containers_have_no_static_fields(call, tree):
    assert "static field" not in said(call, tree)


@pytest.mark.parametrize("call", [
    float, int, bool, complex, np.asarray, "{:.2f}".format, range, jnp.zeros, lambda x: [1][x],
    lambda x: x.item(), lambda x: int(x[None, None]), lambda x: PAIR[:x]])
@pytest.mark.parametrize("value", [1.0, 1, [1.0, 2.0]])
def test_a_leaked_value_has_one_cure(call, value):
    leaking(jnp.asarray(value))
    text = said(call, HELD[0])
    assert "Return the value from the function; do not store it" in text
    assert "astype" not in text and "NumPy's arrays, whose" not in text and "a.any()" not in text


def test_what_was_given_otherwise_works():
    for kind, number in ((jnp.uint8, 300), (jnp.uint8, -1), (jnp.int32, 3_000_000_000)):
        other = re.search(r"use (jnp\.\w+) or", said(kind, number))[1]
        assert int(meant(other)(number)) == number
    checked, throws = re.search(r"(checkify\.check\(.*?\)), and call err, out = (.*?)\.\.\.\); err",
                                said(jax.jit(raises_on), PAIR)).groups()
    err, _ = meant(f"{throws}x)", x=PAIR / 0 * 0,
                   f=lambda x: meant(checked, x=jnp.isnan(x).any()))
    assert "message" in err.get()
    field = re.search(r"dataclasses\.field\(.*?\)\)", said(SINE, Layer(PAIR, "a")))[0]
    kind = type("Named", (), {"__annotations__": {"x": "Array", "name": "str"},
                              "name": meant(field)})
    named = jax.tree_util.register_dataclass(dataclasses.dataclass(kind))(PAIR, name="a")
    assert jax.jit(lambda c: c.x)(named).shape == (2,)


@pytest.mark.parametrize(("call", "code", "known", "given"), [
    (lambda: jax.eval_shape(cut, PAIR, 1), r"jax\.eval_shape\(.*\)(?=\.)", {"f": cut, "x": PAIR},
     jax.ShapeDtypeStruct((2,), "float32")),
    (lambda: jax.make_jaxpr(cut)(PAIR, 1), r"jax\.make_jaxpr\(.*\)(?=\.)", {"f": cut, "x": PAIR},
     jax.make_jaxpr(lambda x: cut(x, 2))(PAIR)),
    (lambda: jax.core.eval_jaxpr(CLOSED, 1.0), r"eval_jaxpr\(closed.*\)",
     {"closed": CLOSED, "args": [1.0], "eval_jaxpr": jax.core.eval_jaxpr},
     "[Array(2., dtype=float32, weak_type=True)]"),
    (lambda: lax.switch(1.0, [abs, abs], 1.0), r"jnp\.asarray\(index.*\)", {"index": 1.0}, 1),
    (lambda: {PAIR: 1}, r"x\.item\(\)", {"x": PAIR[0]}, 1.0),
    (lambda: {PAIR: 1}, r"tuple\(.*?\)\)", {"x": PAIR}, (1.0, 1.0)),
    (lambda: jax.tree.map(lambda x, y: x, [1, 2], (3, 4)), r"jax\.tree\.unflatten\(.*\)",
     {"tree": [1, 2], "other": (3, 4)}, [3, 4]),
    (lambda: {jnp.ones((1, 1)): 1}, r"\(x\.shape, .*?\)\)", {"x": jnp.ones((1, 1))},
     ((1, 1), np.dtype("float32"), np.float32(1).tobytes())),
    (lambda: jax.vmap(lambda a, b: a + b, in_axes={"a": 0, "b": None})(PAIR, 1.0),
     r"(?<=in_axes=)\(.*?\)", {}, (0, None)),
    (lambda: jax.vmap(lambda d: d["a"] + d["b"], in_axes={"a": 0, "b": None})({"a": PAIR, "b": 1}),
     r"(?<=in_axes=)\(\{.*?\)", {}, ({"a": 0, "b": None},)),
])
def test_the_code_in_a_message_gives_what_was_wanted(call, code, known, given):
    assert str(meant(re.search(code, said(call))[0], **known)) == str(given)


@pytest.mark.parametrize(("of_array", "values"), [
    (lambda x: jnp.delete(jnp.arange(5), x), (1, 2)),
    (lambda x: jnp.delete(jnp.arange(3), x), (True, False, True)),
    (lambda x: jnp.repeat(jnp.arange(2), x), (1, 2)),
    (jnp.trim_zeros, (0, 1, 0))])
def test_the_static_tuple_that_an_array_is_made_of(of_array, values):
    cure = "In the function, np.asarray makes an array of a static tuple."
    assert cure in said(jax.jit(lambda x: of_array(x)), jnp.asarray(values))
    given = jax.jit(lambda x: of_array(np.asarray(x)), static_argnums=0)(values)
    assert np.array_equal(given, of_array(np.asarray(values)))


@pytest.mark.parametrize(("call", "cure"), [
    (jnp.roots, "strip_zeros=False"),
    (lambda x: jnp.polydiv(x, x, trim_leading_zeros=True), "leave it out under jit"),
    (lambda x: jnp.choose(x, [x, x]), "mode='clip'"),
    (lambda x: jnp.ravel_multi_index((x,), (5,)), "mode='clip'")])
def test_where_another_argument_serves_none_is_static(call, cure):
    text = said(jax.jit(call), jnp.arange(1, 3))
    assert cure in text and "static_arg" not in text


@pytest.mark.parametrize("body", [
    lambda x, n: sum(x for _ in range(n)), lambda x, n: [x, x, x][n], lambda x, n: jnp.zeros(n) * x,
    lambda x, n: x * jnp.arange(n).sum(), lambda x, n: x if n else -x])
def test_what_a_checkpoint_function_must_know_is_static_there(body):
    text = said(jax.checkpoint(body), 1.0, 2)
    assert text.count("Consider using the `static_argnums` parameter for `jax.remat`") == 1
    assert "remat" not in text.partition("More:")[2]
    jax.checkpoint(body, static_argnums=1)(1.0, 2)
    text = said(jax.checkpoint(lambda x, p: body(x, p["n"])), 1.0, {"n": 2})
    assert "Let the value be an argument of its own that is static." in text


@pytest.mark.parametrize("traced", [jax.eval_shape, lambda f, x: jax.make_jaxpr(f)(x)])
def test_traces_that_are_shared_are_of_jit(traced):
    def f(x):
        return x

    traced(f, 1.0)
    assert jax.jit(f).trace(1.0).jaxpr.debug_info.traced_for == "jit"


def test_properties_are_not_asked_for_the_cure():
    class Owner:
        asked = 0

        @property
        def step(self):
            Owner.asked += 1
            return Trainer

    owner = Owner()
    assert "on the class" not in said(lambda: owner.step.traced(PAIR, PAIR))
