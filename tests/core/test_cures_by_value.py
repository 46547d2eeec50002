"""That a cure in a message is one for the value that came: what it names can be done with that."""

import collections
import dataclasses
import enum
import re
import types
import zlib
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, random
from pyjx.experimental import checkify, pjit
from tests.core.test_cures import said

pytestmark = pytest.mark.smoke  # what code looks like differs by Python's release

V = jnp.arange(3.0)
PAIRS = [(0.5, jnp.ones(2)), (0.5, jnp.zeros(2))]
KEYS = random.split(random.key(0))
RECORDS = np.array([(1, 2.0), (3, 4.0)], dtype=[("a", int), ("b", float)])


def meant(text, pattern, **known):
    """What the code in a message gives."""
    return eval(re.search(pattern, text)[1], {"jax": jax, "jnp": jnp, "lax": lax, **known})


# -- keys, and Python's functions ------------------------------------------------------------------


@pytest.mark.parametrize("call", [
    lambda: KEYS[0] + KEYS[1], lambda: -KEYS[0], lambda: KEYS[0] > KEYS[1], lambda: KEYS[0] ^ KEYS,
    lambda: jnp.maximum(*KEYS), lambda: lax.add(*KEYS), lambda: abs(KEYS[0]), lambda: KEYS[0] * 2,
    lambda: jnp.sin(KEYS), lambda: jnp.sum(KEYS), lambda: jnp.sort(KEYS), lambda: float(KEYS[0]),
    lambda: jnp.dot(*KEYS), lambda: jax.jit(lambda k: k + k)(KEYS), lambda: KEYS[0] + V,
    lambda: jnp.asarray(KEYS[0], float)])
def test_keys_are_not_told_to_be_converted_to_numbers(call):
    text = said(call)
    assert "Convert:" not in text and text.count("Keys hold no numbers: jax.random.key_data(") == 1
    for other in re.findall(r"jax\.random\.\w+\(.*?\)", text):
        eval(other, {"jax": jax, "key": KEYS[0], "number": 1})


def traced_max(a, b):
    return max((a, 1), (b, 2))


def of_python(function):
    return lambda x: function(x)


BY_KEY = "compare what tells them apart, with key=lambda t: t[0]"


@pytest.mark.parametrize(("call", "cure"), [
    (lambda: max(PAIRS), BY_KEY), (lambda: min(*PAIRS), BY_KEY), (lambda: sorted(PAIRS), BY_KEY),
    (lambda: sorted(zip([1, 1], [V, V + 1], strict=True)), BY_KEY),
    (lambda: jax.jit(lambda x: max((1, x), (1, 2 * x)))(1.0), BY_KEY),
    (lambda: jax.jit(traced_max)(1.0, 2.0), "argmax(jnp.asarray([t[0] for t in xs])) tells"),
    (lambda: jax.jit(lambda x, y: sorted([(x, 1), (y, 2)]))(1.0, 2.0), "i = jnp.argsort("),
    (lambda: max(V, V), "use jnp.maximum(x, y)"), (lambda: max([V, V]), "jnp.max(jnp.asarray("),
    (lambda: jax.jit(lambda x, y: min([x, y]))(1.0, 2.0), "use jnp.min(jnp.asarray(xs))."),
    (lambda: jax.jit(lambda x, y: any([x, y]))(1.0, 2.0), "use jnp.any(jnp.asarray(xs))."),
    (lambda: jax.jit(lambda x: all(y > 0 for y in (x, x)))(1.0), "jnp.all(jnp.asarray(list(xs)))"),
    (lambda: jax.jit(lambda x: sorted(x))(V), "use jnp.sort(x)."),
])
def test_functions_of_python_are_told_by_what_they_were_given(call, cure):
    text = said(call)
    assert cure in text
    assert "argmax" not in text or "traced" in text


def test_a_list_that_sorts_itself_is_told_as_sorted_is():
    pairs = [*PAIRS]
    assert f"of tuples with arrays {BY_KEY}." in said(lambda: pairs.sort())
    pairs.sort(key=lambda t: t[0])


def test_these_cures_of_tuples_can_be_taken():
    text = said(jax.jit(traced_max), 1.0, 2.0)

    def chosen(*xs):
        i = meant(text, r"i = (.*?\]\)\))", xs=xs)
        stacked = meant(text, r" xs = (.*?): index", xs=xs)
        return meant(text, r"index these, (.*?)\.\n", i=i, xs=stacked)
    assert jax.jit(lambda a, b: chosen((a, 1), (b, 2)))(1.0, 2.0) == (2.0, 2)
    assert max(PAIRS, key=lambda t: t[0]) is PAIRS[0]
    xs = [V[0], 3.0, V[1]]
    assert jnp.max(jnp.asarray(xs)) == 3.0


# -- methods, positions, classes and dtypes --------------------------------------------------------


@pytest.mark.parametrize(("name", "other"), [
    ("minus", "subtract"), ("substract", "subtract"), ("plus", "add"), ("increment", "add"),
    ("times", "multiply"), ("mult", "multiply"), ("truediv", "divide"), ("pow", "power"),
    ("minimum", "min"), ("update", "set"), ("assign", "set"), ("multipy", "multiply"),
    ("index_add", "add")])
def test_an_update_is_suggested_by_what_it_means(name, other):
    assert said(lambda: getattr(V.at[0], name)(1)).endswith(f"Did you mean: '{other}'?")


@pytest.mark.parametrize(("call", "position", "name"), [
    (lambda: jax.tree.map(jnp.sin, {"a": "x"}), 0, "tree['a']"),
    (lambda: jax.tree.map(jnp.add, {"a": "x"}, {"a": 1}), 0, "tree['a']"),
    (lambda: jax.tree.map(jnp.add, [1], ["x"]), 1, "rest[0][0]"),
    (lambda: jnp.stack([V, "x"]), 1, "arrays[1]")])
def test_a_position_is_that_of_the_function_that_is_named(call, position, name):
    assert f"at position {position}. That is the argument {name}" in said(call)


class Own(dict):
    pass


class Several(list):
    pass


class Color(enum.Enum):
    RED = 1


class Model:
    pass


NODE = "made one by jax.tree_util.register_pytree_node."


@dataclasses.dataclass
class Params:
    w: Any


@dataclasses.dataclass(frozen=True)
class Config:
    depth: int = 2


def test_a_dataclass_is_registered_first_and_one_that_is_hashed_is_static():
    static, pytree = "mark the argument as static", "(jax.tree_util.register_dataclass)"
    text = said(lambda: jax.jit(lambda p: p.w)(Params(V)))
    assert pytree in text and text.index(pytree) < text.index("If the function needs it as it is")
    text = said(lambda: jax.jit(lambda c: c.depth)(Config()))
    assert text.index(static) < text.index(pytree)
    jax.tree_util.register_dataclass(Params, ["w"], [])
    assert jax.jit(lambda p: p.w)(Params(V)).shape == V.shape


@pytest.mark.parametrize(("value", "cure"), [
    (Own(a=1.0), f"Of arrays dict(x) is a pytree; Own itself is {NODE}"),
    (Several([1.0]), f"Of arrays list(x) is a pytree; Several itself is {NODE}"),
    (types.MappingProxyType({"a": 1.0}), "Of arrays dict(x) is a pytree."),
    ({1.0}, "Of arrays list(x) is a pytree."), ({"a": V}.values(), " list(x) is a pytree."),
    (map(abs, [1.0]), "list(x) is a pytree."), (collections.deque([1.0]), "list(x) is a pytree."),
    (Color.RED, ""), ("text", ""), (Model(), "(jax.tree_util.register_pytree_node)."),
])
@pytest.mark.filterwarnings("ignore:Python iterable")
def test_what_a_value_is_made_a_pytree_by_is_what_takes_its_class(value, cure):
    for call in (lambda: jax.jit(lambda x: x)(value), lambda: jax.jit(lambda: value)()):
        text = said(call)
        assert text.endswith(cure)
        assert ("Its class may be a pytree" in text) == (type(value) is Model)
    if made := re.search(r"(dict|list)\(x\)", cure):
        jax.jit(lambda x: x)(eval(made[0], {"x": value}))
    if NODE in cure:
        jax.tree_util.register_pytree_node(
            type("Kind", (type(value),), {}), lambda x: ((*x,), None), lambda _, children: children)


@pytest.mark.filterwarnings("ignore:Python iterable")
def test_a_generator_is_told_to_be_a_list():
    assert said(jax.jit(lambda x: (y for y in [x])), 1.0).endswith("list(x) is a pytree.")


@pytest.mark.parametrize(("given", "told_as_shape"), [
    ("int33", False), ("flot32", False), (3, True), ((2, 2), True), (2.5, False)])
def test_a_shape_is_not_what_has_no_sizes(given, told_as_shape):
    assert ("A shape is for" in said(lambda: V.view(given))) == told_as_shape


@pytest.mark.parametrize("call", [jnp.array, jnp.sin, jax.device_put, jax.jit(lambda x: x)])
@pytest.mark.parametrize(("value", "dtypes"), [
    (RECORDS, ["int", "float"]), (RECORDS[["a"]], ["int"]), (RECORDS[0], ["int", "float"]),
    (np.zeros(2, "V4"), ["uint8"])])
def test_records_have_fields_of_numbers(call, value, dtypes):
    text = said(call, value)
    assert "np.unique" not in text
    assert str(jnp.array(meant(text, r"numbers: (x[\[.].*?[\])])", x=value)).dtype).startswith(
        dtypes[0])
    assert ("all in a tree" in text) == (len(dtypes) > 1)
    if tree := re.search(r"in a tree: ({.*?})", text):
        assert set(jax.device_put(eval(tree[1], {"x": value}))) == {"a", "b"}


# -- calls -----------------------------------------------------------------------------------------


def identity(x):
    return x


def error(x):
    return checkify.checkify(identity)(x)


class Texts:
    def __jax_array__(self):
        return "x"


ONE = "The arrays are one sequence, as in {}((a, b))."
OWN = "The arguments of fun come in a call of their own: {0}(fun)(x)."
WIDE = "Integers have 64 bits with jax.config.update('jax_enable_x64', True)"
SEQUENCE = "The values are one sequence, as in array([1, 2])"
MESH = "jax.make_mesh((4, 2), ('x', 'y')) takes the sizes of the axes."
CHECKED = "check the derivative, as in checkify.checkify(jax.grad(f))."


@pytest.mark.parametrize(("call", "cure"), [
    (lambda: jnp.stack(*[V, V, V]), ONE.format("stack")),
    (lambda: jnp.stack(V, V, V, V), ONE.format("stack")),
    (lambda: jnp.stack(V, V, V, axis=0), ONE.format("stack")),
    (lambda: jnp.concatenate(V, 0, V), ONE.format("concatenate")),
    (lambda: jnp.hstack(*[V, V, V]), ONE.format("hstack")),
    (lambda: jnp.stack([V, V], 0, V), "take the result, as in x = jnp.stack(...)."),
    (lambda: jnp.sum(V, out=np.zeros(())), "take the result, as in x = jnp.sum(...)."),
    (lambda: jax.vmap(identity, V), OWN.format("vmap")),
    (lambda: jax.vmap(identity, 1.0), OWN.format("vmap")),
    (lambda: jax.vmap(identity, [1.0, 2.0]), OWN.format("vmap")),
    (lambda: jax.vmap(identity, {"a": V}), OWN.format("vmap")),
    (lambda: jax.jit(identity, V), OWN.format("jit")),
    (lambda: jax.checkpoint(identity, V), OWN.format("checkpoint")),
    (lambda: jax.pmap(identity, V), OWN.format("pmap")),
    (lambda: jax.custom_vjp(identity, V), OWN.format("custom_vjp")),
    (lambda: checkify.checkify(identity, V), OWN.format("checkify")),
    (lambda: checkify.checkify(identity, 1.0), OWN.format("checkify")),
    (lambda: lax.associative_scan(jnp.add, [1.0, 2.0]), "of 2 leaves: give jnp.array(elems)."),
    (lambda: jax.grad(checkify.checkify(identity))(1.0), CHECKED),
    (lambda: jax.grad(error)(1.0), CHECKED),
    (lambda: jax.jacrev(checkify.checkify(identity))(1.0), CHECKED),
    (lambda: jnp.array((1, 2), (3, 4)), SEQUENCE), (lambda: jnp.array([1], [2]), SEQUENCE),
    (lambda: jnp.array(1, 2), SEQUENCE), (lambda: jnp.array([1], [2], [3]), SEQUENCE),
    (lambda: jnp.maximum(jnp.arange(3), 2 ** 40), WIDE),
    (lambda: jnp.clip(jnp.arange(3), 0, 2 ** 40), WIDE),
    (lambda: jnp.interp(2 ** 40, V, V), WIDE),
    (lambda: jnp.searchsorted(jnp.arange(3), 2 ** 40), WIDE),
    (lambda: jax.set_mesh((8,), ("x",)), MESH), (lambda: jax.set_mesh((8,)), MESH),
    (lambda: jax.sharding.use_abstract_mesh((8,), ("x",)), MESH),
])
def test_calls_have_a_cure_for_what_was_given(call, cure):
    assert cure in said(call)


def test_the_gradient_is_checked_so():
    checked = meant(CHECKED, r"as in (.*)\.$", checkify=checkify, f=identity)
    assert checked(1.0)[1] == 1.0


@pytest.mark.parametrize(("name", "called"), [
    ("jax.disable_jit", "()"), ("jax.enable_x64", "(True)"), ("jax.checking_leaks", "()"),
    ("jax.named_scope", "(name)"), ("jax.set_mesh", "(mesh)"), ("jax.default_device", "(...)"),
    ("jax.profiler.TraceAnnotation", "(...)"), ("V", None), ("Own", None)])
def test_what_gives_a_context_is_called(name, called):
    names = {"jax": jax, "V": V, "Own": Own}
    exec(f"def call():\n    with {name}:\n        pass", names)
    text = said(names["call"])
    assert called is None or f"It is called, as in `with {name}{called}:`." in text
    assert ("It is called" in text) == (called is not None)


def sized(x):
    n = int(x.sum())
    return jnp.ones(n)


def test_a_size_is_told_to_be_known():
    text = said(jax.jit(sized), V)
    assert "mark what it is made of as static" in text and "x.astype(int)" in text
    chosen = meant(text, r"choose by (.*?)\.\n", size=3, n=2, x=V)
    assert chosen.tolist() == [0.0, 1.0, 0.0]
    assert "As a size" not in said(jax.jit(lambda x: int(x) + 1), 1.0)


@pytest.mark.parametrize("call", [
    lambda: jax.jit(jnp.sin).lower(1.0).compile()("x"), lambda: jnp.sin(Texts()),
    lambda: jax.export.export(jax.jit(jnp.sin))(1.0).call("x"),
    lambda: jax.vjp(jnp.sin, 1.0)[1]("x"), lambda: jax.linearize(jnp.sin, 1.0)[1]("x"),
    lambda: jax.linear_transpose(lambda x: 2 * x, 1.0)("x")])
def test_what_no_function_can_have_otherwise_is_no_closure(call):
    text = said(call)
    assert "is not a valid JAX type" in text and "closure" not in text


# -- operands, and what has another name -----------------------------------------------------------


M = jnp.ones((3, 4))
HALF = jnp.eye(2, dtype=jnp.bfloat16)
LAYER = "jax.nn.standardize(x, axis=-1) * scale + bias"


@pytest.mark.parametrize(("call", "cure"), [
    (lambda: V[0, 1], "are one index: x[jnp.array([i, j])]."),
    *[(call, "indexed. Leave those out that are too many, or give it more axes first") for call in (
        lambda: V[None, :, :], lambda: V[0, 1:3], lambda: V[..., 0, None, 0],
        lambda: V.at[:, 0].set(1.0), lambda: jax.jit(lambda x: x[:, 0])(V))],
    (lambda: V["a"], "keep named arrays in a dictionary, d[name][i]."),
    (lambda: V[jnp.array([True, False])], "as in x[x > 0]."),
    (lambda: M[jnp.ones(4, bool)], "It fits along axis 1: x[:, mask]."),
    (lambda: V[jnp.ones((3, 1), bool)], "A mask counts for as many axes as it has."),
    (lambda: jnp.concatenate([M, jnp.ones((3, 2))]), "They fit along dimension 1."),
    (lambda: jnp.concatenate([M, V], axis=1), "x[None] and x[:, None] have a new axis of size 1;"),
    (lambda: jnp.concatenate([M, V]), "jnp.broadcast_to(x, shape) has axes of the sizes that are"),
    (lambda: jnp.stack([M, V]), "jnp.broadcast_to(x, shape) has axes of the sizes that are needed"),
    (lambda: jnp.concatenate([V, 1.0]), "jnp.hstack joins vectors and scalars."),
    (lambda: jnp.concatenate([1.0, V]), "jnp.hstack joins vectors and scalars."),
    (lambda: jnp.concatenate([1.0, M]), "jnp.full(shape, x) makes an array of a scalar."),
    (lambda: jnp.concatenate([1.0, 2.0]), "Join them along a new axis, as in stack((a, b))."),
    (lambda: jnp.histogram(V, bins="5"), "not implemented. Give int(bins)."),
    (lambda: jnp.histogram(V, bins="fd"), "implemented. Give numpy.histogram_bin_edges(a, bins)."),
    (lambda: jnp.append(V, 1.0, axis=0), "jnp.hstack joins vectors and scalars."),
    (lambda: jnp.stack([V, 0.0]), "jnp.hstack joins vectors and scalars."),
    (lambda: jax.lax.concatenate([M, V[0]], 0), "jnp.full(shape, x) makes an array of a scalar."),
    *[(lambda f=f: f({"a": V}), "expected a sequence of arrays, got a dict. Give d.values().")
      for f in (jnp.concatenate, jnp.stack, jnp.vstack, jnp.hstack, jnp.column_stack,
                lambda d: jax.lax.concatenate(d, 0), jax.lax.stack)],
    (lambda: jax.random.wrap_key_data(jnp.array([0, 1])), "by jnp.array(words, dtype=jnp.uint32)"),
    (lambda: jax.random.wrap_key_data([0, 1]), "by jnp.array(words, dtype=jnp.uint32)"),
    (lambda: V + "1", "of a text float(text) is a number"),
    (lambda: "1" + V, "of a text float(text) is a number"),
    (lambda: jax.jit(lambda x: x < "1")(V), "of a text float(text) is a number"),
    (lambda: jnp.linalg.inv(HALF), "Convert: x.astype('float32')."),
    (lambda: jax.pmap(lambda w, x: x @ w)(M, jnp.ones((1, 3))), "such as weights, has None in "),
    (lambda: random.fold_in(KEYS[0], "layer1"), "Of a name one is zlib.crc32(name.encode())."),
    (lambda: pjit.pjit(identity, in_axis_resources=None), "Did you mean 'in_shardings'?"),
    (lambda: jnp.outer(V, V, out=V), "take the result, as in x = jnp.outer(...)."),
    (lambda: jnp.dot(V, V, out=V), "take the result, as in x = dot(...)."),
    (lambda: jax.vmap(identity, out=0), "Did you mean 'out_axes'?"),
    (lambda: jax.nn.LayerNorm, LAYER), (lambda: jnp.nditer, "Use jax.vmap"),
])
def test_what_is_refused_has_a_cure(call, cure):
    assert cure in said(call)


def test_these_cures_work():
    assert V[jnp.array([0, 1])].shape == (2,) and M[:, jnp.ones(4, bool)].shape == M.shape
    assert jnp.concatenate([M, jnp.ones((3, 2))], 1).shape == (3, 6)
    assert jnp.linalg.inv(HALF.astype("float32")).tolist() == jnp.eye(2).tolist()
    name = "layer1"
    random.fold_in(KEYS[0], eval("zlib.crc32(name.encode())", {"zlib": zlib, "name": name}))
    meant(LAYER, "(.*)", x=M, scale=1.0, bias=0.0)
    assert (V == "1") is False  # which is asked of any two objects


def test_a_symbolic_size_is_told_what_its_value_is():
    (n,) = jax.export.symbolic_shape("n")
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match=r"is jnp\.asarray"):
        int(n)
    exported = jax.export.export(jax.jit(lambda x: x * jnp.asarray(x.shape[0])))(
        jax.ShapeDtypeStruct((n,), "float32"))
    assert exported.call(V).tolist() == [0.0, 3.0, 6.0]


# -- functions that are given ----------------------------------------------------------------------


@jax.custom_jvp
def square(x):
    return x * x


@square.defjvp
def bent(primals, tangents):
    return square(*primals), tangents[0] * tangents[0]


def no_arguments():
    return 1.0


@pytest.mark.parametrize(("call", "called"), [
    (lambda: jnp.fromfunction(no_arguments, (2, 3)), "function(*indices), an array for each axis"),
    (lambda: jnp.piecewise(V, [V > 1], [no_arguments]), "fun(*args), with an element"),
    (lambda: jnp.frompyfunc(no_arguments, 2, 1)(V, V), "fun(*args), with an element"),
    (lambda: V.at[0].apply(no_arguments), "func(x) by apply(func)."),
    (lambda: jax.make_array_from_callback((3,), V.sharding, no_arguments), "data_callback(index)"),
    (lambda: jnp.vectorize(no_arguments)(V), "fun(*args), with an element of each array."),
    (lambda: jax.scipy.sparse.linalg.cg(no_arguments, V), "A(x)."),
])
def test_how_a_function_is_called_is_told(call, called):
    assert f"It is called as {called}" in said(call)


@pytest.mark.parametrize("fun", [square, lambda x: 2 * square(x), jax.jit(square),
                                 lambda x: jax.vmap(square)(x[None])[0]])
def test_a_rule_that_is_not_linear_is_named(fun):
    with pytest.raises(TypeError, match="not linear") as caught:
        jax.grad(fun)(jnp.asarray(1.0))
    words = "operation made at" if hasattr(fun, "lower") else "A rule of custom_jvp in it is bent"
    (note,) = [x for x in caught.value.__notes__ if words in x]
    assert f"{__file__}:" in note and "bent" in note


@jax.custom_jvp
def cube(x):
    return x ** 3


@cube.defjvp
def of_a_pair(primals, tangents):
    return primals, tangents


@pytest.mark.parametrize("fun", [
    cube, lambda x: cube(x), lambda x: jax.vmap(cube)(x[None])])
def test_a_rule_that_gives_no_scalar_is_named(fun):
    words = said(lambda: jax.grad(fun)(jnp.asarray(1.0)))
    assert "if cube returns a scalar, the rule must, too. The rule is of_a_pair at" in words
    assert "as in (x,), (t,) = primals, tangents." in words


def test_a_function_runs_once_where_it_is_wrong():
    calls = []

    def two(x):
        calls.append("two")
        return x, square(x)

    def curved(x):
        calls.append("curved")
        return square(x)

    def step(x):
        calls.append("step")
        return x + 1

    for call, words in ((lambda: jax.grad(two)(1.0), "use has_aux=True. The function is two at"),
                        (lambda: jax.grad(curved)(1.0), "not linear"),
                        (lambda: jax.lax.while_loop(step, lambda x: calls.append("body"), 0),
                         "Before the body comes the condition")):
        assert words in said(call)
    assert calls == ["two", "curved", "step"]


@pytest.mark.parametrize(("outputs", "cure", "cured"), [
    (lambda x: (x.sum(), x), " use has_aux=True.", lambda f, x: jax.grad(f, has_aux=True)(x)),
    (lambda x: (x, x), " make that a scalar, as by .sum(), and use has_aux=True.",
     lambda f, x: jax.grad(lambda x: (f(x)[0].sum(), f(x)[1]), has_aux=True)(x)),
    (lambda x: (x.sum(), {}), " use has_aux=True.", lambda f, x: jax.grad(f, has_aux=True)(x)),
    (lambda x: (x.sum(),), " Let the function return the array itself,",
     lambda f, x: jax.grad(lambda x: f(x)[0])(x)),
    (lambda x: ((x, x), x), " To differentiate several values, use jax.jacobian.",
     lambda f, x: jax.jacobian(f)(x)),
], ids=["aux", "aux-of-array", "empty-aux", "one", "several"])
def test_outputs_that_are_no_scalar_have_the_cure_of_what_they_are(outputs, cure, cured) -> None:
    x = jnp.ones(3)
    assert cure in said(lambda: jax.value_and_grad(outputs)(x))
    cured(outputs, x)


class Error:
    """A class of the user's, which has the name of one of checkify's."""

    def __init__(self, x):
        self.x = x


jax.tree_util.register_pytree_node(Error, lambda e: ((e.x,), None), lambda _, xs: Error(*xs))


def test_a_function_that_gives_an_error_of_the_users_is_none_of_checkify():
    checked = jax.experimental.checkify.checkify(lambda x: x)
    assert "jax.grad(f)" not in said(lambda: jax.grad(lambda x: (Error(x), x))(1.0))
    for fun in (checked, jax.jit(checked), lambda x: checked(x)[0], lambda x: checked(x)):
        assert "checkify.checkify(jax.grad(f))" in said(lambda fun=fun: jax.grad(fun)(1.0))
    assert "checkify.checkify(jax.grad(f))" in said(lambda: jax.grad(checked, has_aux=True)(1.0))


@pytest.mark.parametrize(("mode", "given", "words"), [
    ("edge", "constant_values", "It takes none. The modes that take it are 'constant'."),
    ("constant", "end_values", "takes 'constant_values'. The modes that take it are 'linear_ramp'"),
    ("edge", "other", "It takes none.")])
def test_a_mode_is_told_for_what_another_one_takes(mode, given, words):
    assert words in said(lambda: jnp.pad(V, 1, mode=mode, **{given: 1}))
