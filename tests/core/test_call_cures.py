"""What messages say of how functions are called: which argument comes first, which are functions,
what a rule is given, what may be static, and what flattens a class."""

import dataclasses
import functools
import inspect
import re
import subprocess
import sys
import traceback
from types import MappingProxyType

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core import advice
from pyjx.experimental import checkify, io_callback, pallas, sparse
from pyjx.experimental.ode import odeint
from pyjx.scipy.optimize import minimize
from pyjx.scipy.sparse import linalg
from tests.mistakes import mistake

pytestmark = pytest.mark.smoke  # what code looks like differs by Python's release

V = jnp.arange(3.0)


# -- functions and values --------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "cure"), [
    (lambda: lax.map(V, lambda x: x), "got Array([0., 1., 2.], dtype=float32). The order of the "
     "arguments is map(f, xs)."),
    (lambda: lax.scan(0.0, lambda c, x: (c, x), V), "got 0.0. The order of the arguments is "
     "scan(f, init, xs)."),
    (lambda: lax.while_loop(0, lambda x: x < 3, lambda x: x + 1), "callable. cond_fun is 0. The "
     "order of the arguments is while_loop(cond_fun, body_fun, init_val)."),
    (lambda: lax.fori_loop(lambda i, x: x, 0, 3, 1.0), "body_fun is 3. The order of the arguments "
     "is fori_loop(lower, upper, body_fun, init_val)."),
    (lambda: lax.cond(True, 1.0, lambda x: x, lambda x: x), "true_fun is 1.0. The order of the "
     "arguments is cond(pred, true_fun, false_fun, *operands)."),
    (lambda: lax.switch([jnp.sin, jnp.cos], 0, 1.0), "branches is 0. The order of the arguments is "
     "switch(index, branches, *operands)."),
    (lambda: lax.associative_scan(V, jnp.add), "The order of the arguments is "
     "associative_scan(fn, elems)."),
    (lambda: jax.pure_callback(V, np.sin, V), "The order of the arguments is "
     "pure_callback(callback, result_shape_dtypes, *args)."),
    (lambda: io_callback(None, print, V), "The order of the arguments is "
     "io_callback(callback, result_shape_dtypes, *args)."),
    (lambda: jax.tree.map({"a": 1}, lambda x: x), "The order of the arguments is "
     "tree_map(f, tree, *rest)."),
    (lambda: lax.cond(True, 1.0, 2.0), "jnp.where(pred, x, y) chooses between values."),
    (lambda: lax.switch(1, [1.0, 2.0]), "jnp.asarray(branches)[index] chooses between values."),
    (lambda: lax.switch(1, {0: abs, 1: abs}), "list(branches.values())."),
    (lambda: lax.switch(1, abs, abs), "They are one, as in switch(index, [f, g], *operands)."),
    (lambda: jax.grad(1.0), "Give the function itself, not what it returns."),
    (lambda: lax.scan((0.0, 1.0), 0.0, V), "Give the function itself, not what it returns."),
    (lambda: lax.scan(lambda c, x: (c, x), V, 0.0), "or is init in lax.scan(f, init, xs)."),
    (lambda: lax.scan(lambda c, x: (c, x, x), 1.0, V), "got (float32[], float32[], float32[])."),
    (lambda: lax.map(lambda x: "a", V), "traced for map returned a value of type <class 'str'>, "),
    (lambda: lax.while_loop(lambda x: x < 3, lambda x: x + 1, V), "Take jnp.any or jnp.all of it"),
    (lambda: lax.while_loop(lambda x: x + 1, lambda x: x < 3, 0),
     "condition: while_loop(cond_fun, body_fun, init_val)."),
    (lambda: lax.while_loop(lambda x: {"n": x["n"] + 1}, lambda x: x["n"] < 3, {"n": 0}),
     "condition: while_loop(cond_fun, body_fun, init_val)."),
    (lambda: lax.while_loop(lambda x: x[0], lambda x: x, (3, 1)), "compare, as in x != 0."),
    (lambda: lax.while_loop(lambda n: n & 1, lambda n: n >> 1, 7), "compare, as in x != 0."),
    (lambda: lax.while_loop(lambda b: 1, lambda b: ~b, True), "compare, as in x != 0."),
    (lambda: minimize(lambda x: (x.sum(), x), V, method="BFGS"), "must return a scalar, but got "
     "(float32[], float32[3]); return it alone, and compute what else there is of result.x."),
    (lambda: jnp.apply_along_axis(V, jnp.sum, 0), "The order of the arguments is "
     "apply_along_axis(func1d, axis, arr, *args)."),
    (lambda: jnp.fromfunction((3,), lambda i: i), "arguments is fromfunction(function, shape)."),
    (lambda: minimize(V, lambda x: x.sum(), method="BFGS"), "arguments is minimize(fun, x0)."),
    (lambda: odeint(V, lambda y, t: y, V), "order of the arguments is odeint(func, y0, t, *args)."),
    (lambda: odeint(lambda t, y: y, V, V[:2]), "got [()]. It is called as func(y, t, *args)."),
    (lambda: odeint(lambda y: y, V, V[:2]), "It is called as func(y, t, *args)."),
    *[(functools.partial(solve, V, lambda x: x), f"arguments is {solve.__name__}(A, b).")
      for solve in (linalg.cg, linalg.gmres, linalg.bicgstab)],
    (lambda: minimize(lambda x: x, V, method="BFGS"), "a scalar, but got float32[3]; reduce it, "
     "as by jnp.sum. The function is <lambda> at "),
])
def test_what_is_no_function_is_told_the_order_or_what_serves(call, cure):
    assert cure in mistake(call)


# -- what functions are given ----------------------------------------------------------------------


def with_rule(rule):
    f = jax.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(rule)
    return lambda: jax.grad(f)(2.0)


def with_rules(fwd, bwd, of=lambda act, x: act(x), **options):
    f = jax.custom_vjp(of, **options)
    f.defvjp(fwd, bwd)
    return lambda: jax.grad(f, argnums=1)(jnp.sin, 1.0)


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: lambda x: f(x), jax.checkpoint])
def test_rules_that_take_tuples_for_arrays(transform):
    f = jax.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda x, t: (x * 2, t * 2))
    said = mistake(lambda: jax.grad(transform(f))(1.0))
    assert "as in (x,), (t,) = primals, tangents." in said
    assert "has_aux=True" in mistake(lambda: jax.grad(lambda x: (jax.nn.relu(x), x))(1.0))


class Pair:
    def __init__(self, x, n):
        self.x, self.n = x, n


jax.tree_util.register_pytree_node(
    Pair, lambda pair: ((pair.x,), pair.n), lambda xs, aux: Pair(*xs, aux))


@jax.tree_util.register_pytree_node_class
class Third(Pair):
    def tree_flatten(self):
        return (self.x,), self.n

    @classmethod
    def tree_unflatten(cls, children, other):
        return cls(*children, other)


def unflatten_all(x, n):
    return x[n.first]


@pytest.mark.parametrize("call", [
    lambda f, x: jax.tree.map(f, x), lambda f, x: jax.jit(f)(x), lambda f, x: jax.vmap(f)(x),
    lambda f, x: jax.grad(f)(x), lambda f, x: jax.tree.unflatten(jax.tree.structure(x), [f]),
])
def test_exchanged_arguments_of_what_unflattens(call):
    assert "with (aux, children), here with xs=3, aux=(" in mistake(lambda: call(abs, Pair(V, 3)))
    assert "exchanged: let it be lambda aux, xs: ..." in mistake(lambda: call(abs, Pair(V, 3)))
    assert "exchanged: let it be tree_unflatten(cls, other, children)." in mistake(
        lambda: call(abs, Third(V, 3)))
    assert "(aux, children)" not in mistake(lambda: jax.jit(unflatten_all)(V, 3))


def by_path(path, x):
    return path["a"]


def indexed(values, i):
    return values.at[i].set(1.0)


def member(p, i):
    return p.w * i


@pytest.mark.parametrize(("call", "note"), [
    (lambda: lax.fori_loop(0, 2, indexed, V), "body_fun(i, value), here with values=int32[], "
     "i=float32[3]. The arguments are exchanged: let it be indexed(i, values)."),
    (lambda: lax.fori_loop(0, 2, member, V), "exchanged: let it be member(i, p)."),
    (lambda: lax.scan(lambda x, carry: (carry["a"], x), {"a": 0.0}, V),
     "exchanged: let it be lambda carry, x: ..."),
    (with_rules(lambda act, x: (act(x), {"x": x}), lambda act, g, res: (g * res["x"],),
                nondiff_argnums=(0,)), "custom_vjp calls <lambda> as bwd(act, residuals, "
     "cotangent), here with act=sin, g={'x': float32[]}, res=float32[]."),
    (with_rules(lambda x, act: (act(x), x), lambda act, r, g: (g,), nondiff_argnums=(0,)),
     "custom_vjp calls <lambda> as fwd(act, x), here with x=sin, act=float32[]. The arguments are "
     "exchanged: let it be lambda act, x: ..."),
    (with_rules(lambda x: (x, x), lambda r, g: (g,), nondiff_argnums=(0,)),
     "It is called as fwd(act, x)."),
    (with_rule(lambda x, t: (x.shape, t)), "custom_jvp calls <lambda> as rule(primals, tangents), "
     "here with x=(float32[],), t=(float32[],). Each is a tuple of one for each argument: let it "
     "begin with (x,), (t,) = x, t."),
    (lambda: jax.tree.map_with_path(by_path, {"a": 1}), "calls by_path as f(path, leaf), here "
     "with path=(<DictKey>,), x=1."),
    (lambda: lax.associative_scan(lambda a, b: a["x"], V), "associative_scan calls <lambda> as "
     "fn(a, b), here with a=float32[1], b=float32[1]."),
    (lambda: jax.vjp(jnp.add, (1.0, 2.0)), "by vjp(fun, *primals)."),
    (lambda: jax.eval_shape(lambda x: x)(1.0), "It is called as fun(*args) by "
     "eval_shape(fun, *args)."),
])
def test_what_a_function_was_given_is_told(call, note):
    assert note in mistake(call)


@pytest.mark.parametrize("rule", [
    "{}(jnp.sin(x), jnp.cos(x) * t)", "{}(x * x, 2 * x * t)", "{}(x + 1.0, t)"])
def test_a_rule_begins_as_its_note_says(rule):
    text = mistake(with_rule(eval("lambda x, t: " + rule.format(""), {"jnp": jnp})))
    assert "Make an array of it" not in text
    lines = "def rule(x, t):\n    {}\n    return {}"
    known = {"jnp": jnp}
    exec(lines.format(re.search(r"begin with (.*)\.", text)[1], rule.format("")), known)
    assert with_rule(known["rule"])().shape == ()


def test_no_cure_is_that_of_another_value():
    assert "astype(int)" not in mistake(lambda: lax.fori_loop(0, 2, indexed, V))
    assert "exchanged" not in mistake(lambda: lax.fori_loop(0, 2, lambda i, x: x["a"], V))
    assert "exchanged" not in mistake(lambda: lax.scan(lambda h, c: (h["a"], c), V, V))


@pytest.mark.parametrize(("call", "cure"), [
    (lambda: jax.grad(lambda x: x, argnums="x")(1.0), "as in argnums=0: names are none."),
    (lambda: jax.jacfwd(lambda x: x, argnums=("x",)), "as in argnums=0: names are none."),
    (lambda: jax.grad(jnp.sum, V), "The arguments of fun come in a call of their own: grad(fun)"),
    (lambda: jax.hessian(jnp.sum, V), "fun come in a call of their own: hessian(fun)"),
    (lambda: jax.jacobian(jnp.sum, V), "fun come in a call of their own: jacobian(fun)"),
    (lambda: jax.hessian(jnp.argmax)(V), "hessian requires real-valued outputs"),
    (lambda: jax.jit(jnp.sum, static_argnums="a"), "Names of arguments are static_argnames of j"),
    (lambda: jax.make_jaxpr(jnp.sum, 1.0), "The arguments of fun come in a call of their own."),
    (lambda: jax.jit(lambda x, *, n: x, static_argnums=1), "names alone: static_argnames='n'."),
    (lambda: jax.vmap(lambda x: x, in_axes=1)(V), "is argument x; in_axes=0 maps its first axis."),
    (lambda: jax.vmap(lambda x, y: x, in_axes=1)(V, V), "x; in_axes=0 maps its first axis."),
    (lambda: jax.vmap(lambda x, y: x, in_axes=1)(V, jnp.ones((1, 1))), "entry of in_axes is None."),
    (lambda: jax.checkpoint(policy=None),
     "it is @functools.partial(jax.checkpoint, policy=...)."),
    (lambda: lax.map(jnp.add, V, V), "The arguments are f, xs, *, batch_size."),
    (lambda: functools.partial(jax.jit, static_argname="n")(abs), "mean 'static_argnames'?"),
    (lambda: functools.partial(jax.jit, static_argname="n"), None),
    (lambda: lax.while_loop(cond=abs, body_fun=abs, init_val=0), "Did you mean 'cond_fun'?"),
    (lambda: jax.vmap(abs, axis=0), "Did you mean 'in_axes'?"),
    (lambda: V.size(0), "it is the value: V.size. That of an axis is x.shape[i]."),
    (lambda: jnp.ones((4, 3)).size(0), "it is the value: x.size. That of an axis is x.shape[i]."),
    (lambda: jnp.ones((4, 3)).shape(0), "is the value: x.shape. That of an axis is x.shape[i]."),
    (lambda: jnp.sine, "has no attribute 'sine'. Did you mean 'sin'?"),
    (lambda: jnp.sofmax, "has no attribute 'sofmax'. Use jax.nn.softmax."),
    (lambda: jnp.maxinum, "has no attribute 'maxinum'. Did you mean 'maximum'?"),
    (lambda: jax.jit(lambda x: x or 1.0)(2.0), "use jnp.where, to loop use lax.while_loop, and to "
     "combine conditions use & | ~ or jnp.logical_and and its like. If the value is the same in"),
    (lambda: jax.jit(lambda x: x or 1)(2), "argument x.\nIf the value is the same in every call, "),
    (lambda: jax.random.choice(V), "'a'. The key comes first: jax.random.choice(key, ...)."),
    (lambda: jax.random.permutation(jax.random.key(0)), "argument: 'x'"),
    (lambda: V.extend([1]), "no attribute 'extend'. Use jax.numpy.concatenate([x, y])."),
    (lambda: jax.np, "has no attribute 'np'. Use jax.numpy."),
    (lambda: jax.random.normal(jax.random.key(0), scale=2.0), "unexpected keyword argument "
     "'scale'. With these it is loc + scale * jax.random.normal(key, shape)."),
    (lambda: 1.0 in jnp.eye(2), "got arr.shape=(2, 2). Of any it is jnp.any(x == value)."),
    (lambda: plain.lower(V), "'lower'. A jitted function has it: jax.jit(f).lower(*args)"),
    (lambda: jax.nn.initializers.normal(std=0.1), "'std'. The arguments are stddev, dtype."),
    (lambda: jnp.ravel(V, order=1), "From an axis on it is x.reshape(*x.shape[:1], -1)."),
    (lambda: jnp.ravel(V, order=None), "The orders are 'C' and 'F'."),
    (lambda: jnp.sqrt(MappingProxyType({"a": V})), "dict(x) is a tree: jax.tree.map(f, dict(x)) c"),
    (lambda: jnp.sqrt({"a": V}), "argument x. It is a tree: jax.tree.map(f, x) computes f of each"),
    (lambda: jax.tree.map(jnp.add, (V,), [V]), "\nIf its leaves come in this order, "),
    (lambda: jax.tree.map(jnp.add, {"w": V}, Equal(1)), "Equal'>.\nThe full tree is rest[0]."),
    (lambda: jax.scipy.stats.normal, "has no attribute 'normal'. Use jax.scipy.stats.norm."),
    (lambda: jnp.linalg.inv(jax.scipy.linalg.cho_factor(jnp.eye(3))), "One of them is x[0]; "),
    (lambda: jax.scipy.linalg.solve_triangular((jnp.eye(3), True), V), "is the argument a. It"),
    (lambda: jax.scipy.linalg.lu_solve((jnp.eye(3), jnp.eye(3)), V), "lu_factor(a) returns, got "
     "factors of shape (3, 3) and pivots of shape (3, 3), which should be (3,)."),
    (lambda: jax.random.beta(jax.random.key(0), 2.0, "3"), "position 2. That is the argument b."),
    (lambda: jax.jit(lambda *args: not args[0])(True), "logical_not(x). If the value is the same "),
    (lambda: jax.jit(lambda x: not (x > 0))(1.0), "logical_not(x).\nMore: "),
    (lambda: jax.eval_shape(lambda x, flag: x if flag else -x, 1.0, True), "\nBind an argument "),
    (lambda: jax.make_jaxpr(lambda x, flag: x if flag else -x)(1.0, True), "\nLet an argument "),
    (lambda: jax.hess, "has no attribute 'hess'. Did you mean 'hessian'?"),
    (lambda: jax.jvps, "has no attribute 'jvps'. Did you mean 'jvp'?"),
    (lambda: lax.dynamic_slice_update, "Did you mean 'dynamic_update_slice'?"),
    (lambda: jax.gradient, ". Use jax.grad; of differences between elements jax.numpy.gradient."),
    (lambda: jax.scipy.stats.norm.rvs, "no attribute 'rvs'. Use jax.random.normal(key, shape)."),
    (lambda: lax.dynamic_update_slice(V, V.astype(int), (0,)), "jnp.asarray(update, 'float32')."),
    (lambda: lax.pad(V, 0, [(1, 1, 0)]), "that of operand, as in jnp.asarray(y, x.dtype)."),
    (lambda: jax.jit(lambda x: not x)(True), "use ~x of Booleans, or jnp.logical_not(x)."),
    *[(functools.partial(jax.jit(f), V), f"The size argument of jnp.{f.__name__} must")
      for f in (jnp.argwhere, jnp.flatnonzero)],
    (lambda: jax.custom_vjp(abs, nondiff_argnum=0), "custom_vjp() got an unexpected keyword "
     "argument 'nondiff_argnum'. Did you mean 'nondiff_argnums'?"),
    (lambda: sparse.BCOO(jnp.eye(2), shape=(2, 2)), "tuple (data, indices), got float32[2,2]. "
     "BCOO.fromdense(x) makes one of a dense array and BCOO.from_scipy_sparse(x)"),
    (lambda: sparse.BCSR((V, V), shape=(2, 2)), "must be a tuple (data, indices, indptr), got"),
    *[(functools.partial(lax.conv, x, x, (1, 1), "SAME"), f"got {x.ndim - 2} and 2. A window has "
       f"two axes less than the operands, which have rank {x.ndim} here: window_strides is as for "
       "rank 4") for x in (jnp.ones((1, 1)), jnp.ones((1, 1, 1)))],
    (lambda: pallas.pallas_call(abs, V, in_specs=pallas.BlockSpec((3,)))(V), "). Give a list: "
     "in_specs=[spec]."),
    (lambda: jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.ones((2, 3, 2))),
     "are 2 and 3 respectively. split_axis=1 has that size; the operand's"),
    (lambda: jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.ones((2, 4))),
     "are 2 and 4 respectively. With tiled=True the latter"),
    (lambda: jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.ones((2, 4, 2))),
     "are 2 and 4 respectively. split_axis=1 has that size. With tiled=True the latter"),
    (lambda: jnp.ones(2, "fp16"), "Did you mean 'float16'?"),
    (lambda: V.astype("f32"), "Did you mean 'float32'?"),
    (lambda: jnp.vmap, "Use jax.vmap."), (lambda: lax.jit, "Use jax.jit."),
    (lambda: jax.io_callback, "Use jax.experimental.io_callback."),
    (lambda: jax.custom_vmap, "Use jax.custom_batching.custom_vmap."),
    (lambda: jax.debug_print, "Use jax.debug.print."),
])
def test_what_was_meant_by_a_wrong_call(call, cure):
    if cure is None:
        call()
    else:
        assert cure in mistake(call)


def plain(x):
    return x


def test_an_array_given_by_name_was_not_meant_for_another_argument():
    text = mistake(lambda: lax.scan(lambda c, _: (c, None), V, length=V))
    assert "length must be an integer" in text and "is one tree" not in text
    assert "xs is one tree" in mistake(lambda: lax.scan(lambda c, _: (c, None), V, V, V))


def test_cures_of_others_are_not_told():
    """Neighbours of calls that have a cure, which does not serve them."""
    key = jax.random.key(0)
    for call, cure in ((lambda: plain.lower(), "A jitted function"),
                       (lambda: jax.random.choice(jax.random.split(key)[0], replace=False),
                        "The key comes first"),
                       (lambda: jax.random.split(jax.random.fold_in(key, 1), 2, 3, 4),
                        "The key comes first")):
        assert cure not in mistake(call)

    def raises():
        raise ValueError("the account was deleted or donated")

    assert mistake(raises) == "the account was deleted or donated"


@pytest.mark.parametrize(("program", "end"), [
    ("import pyjx.as_jax, jax\njax.numpy.sofmax", "has no attribute 'sofmax'. Use jax.nn.softmax."),
    ("import pyjx as jax\nname, key = 'bob', jax.random.key(0)\njax.random.normal(3, (2,))",
     "If that is a seed, make a key of it: jax.random.key(3)")])
def test_what_a_program_that_ends_with_an_error_is_told(program, end):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert end in done.stderr and "bob(" not in done.stderr, done.stderr


def test_rules_that_give_another_structure_say_for_which_argument():
    f = jax.custom_vjp(lambda n, p: p["w"] * p["b"])
    f.defvjp(lambda n, p: (p["w"], None), lambda r, g: (None, {"w": g}))
    assert ("What it gave for argument 1 is PyTreeDef({'w': *}) and not PyTreeDef({'b': *, 'w': *})"
            in mistake(lambda: jax.grad(f, argnums=1)(1.0, {"w": 1.0, "b": 2.0})))
    f = jax.custom_gradient(lambda x: (x, lambda g: (g, g)))
    text = mistake(lambda: jax.grad(f)(1.0))
    assert "The rule vjp, of" in text and "argument 0 is PyTreeDef((*, *)) and not PyTree" in text


# -- what may be static ----------------------------------------------------------------------------


class Equal:
    def __init__(self, w):
        self.w = w

    def __eq__(self, other):
        return self.w == other.w

    @functools.partial(jax.jit, static_argnums=0)
    def scaled(self, x):
        return x * self.w


def test_a_class_that_compares_without_a_hash_has_a_cure():
    assert "class Equal has __eq__ and no __hash__. Give it both, or let it be a " in mistake(
        lambda: Equal(2.0).scaled(1.0))
    kept = type("Kept", (Equal,), {"__hash__": lambda self: hash(self.w), "__eq__": Equal.__eq__})
    assert float(kept(2.0).scaled(3.0)) == 6.0
    made = dataclasses.make_dataclass("Made", ["w"], frozen=True, namespace={
        "scaled": functools.partial(jax.jit, static_argnums=0)(lambda self, x: x * self.w)})
    assert float(made(2.0).scaled(3.0)) == 6.0


def test_a_static_dictionary_goes_through_a_tuple():
    f = jax.jit(lambda x, d: x * dict(d)["a"], static_argnums=1)
    said = mistake(lambda: f(1.0, {"a": 2}))
    code, again = re.search(r"(tuple\(.*?\)\)) of .* (dict\(\.\.\.\)) makes a d", said).groups()
    assert again and float(f(1.0, eval(code, {"d": {"a": 2}}))) == 2.0


def test_compiled_programs_speak_of_x64_where_that_differs():
    compiled = jax.jit(lambda x: x + 1).lower(V).compile()
    assert "Call the jitted function, which compiles anew" in mistake(lambda: compiled(jnp.ones(4)))
    assert "enable_x64" not in mistake(lambda: compiled(jnp.ones(3, int)))
    with jax.enable_x64(True):
        assert "different enable_x64 mode" in mistake(lambda: compiled(jnp.ones(3, "float64")))


# -- classes that are pytrees ----------------------------------------------------------------------


@pytest.mark.parametrize("flatten", [
    lambda node: (node.w, node.w), lambda node: node.w, lambda node: (node.w, None),
    lambda node: (None, (node.w,)), lambda node: (node.w,)])
@pytest.mark.parametrize("call", [
    jax.jit(lambda node: node.w), lambda node: jax.tree.map(jnp.sin, node), jax.tree.leaves])
def test_what_flattens_a_class_returns_a_pair(flatten, call):
    kind = type("Node", (Equal,), {"__hash__": object.__hash__})
    jax.tree_util.register_pytree_node(kind, flatten, lambda _, w: kind(*w))
    assert "return ((x, ...), aux): the children in a tuple, also a single" in mistake(
        lambda: call(kind(1.0)))


def test_a_dataclass_of_the_library_shows_no_frame_of_its_own():
    with pytest.raises(TypeError) as caught:
        pallas.BlockSpec(lambda i: i, (4,))
    assert [f.filename for f in traceback.extract_tb(caught.value.__traceback__)] == [__file__]


def test_of_mapped_checks_the_first_that_fails_is_told():
    def checked(x, y):
        checkify.check(x < 3, "{x} {y}", x=x, y=y)

    error, _ = checkify.checkify(jax.vmap(checked))(jnp.array([0, 7, 4]), jnp.array([5, 4, 3]))
    assert error.get().startswith("7 4 ")


# -- kernels, checks and linear functions ----------------------------------------------------------


def run(kernel, **options):
    options = {"grid": (1,), "interpret": True, **options}
    return lambda: pallas.pallas_call(kernel, out_shape=V, **options)(V)


def branching(x_ref, o_ref):
    if pallas.program_id(0) == 0:
        o_ref[...] = x_ref[...]


def slicing(x_ref, o_ref):
    i = pallas.program_id(0)
    o_ref[...] = x_ref[i:i + 3]


def squared(p, t):
    return p[0], t[0] ** 2


def absolute(p, t):
    return p[0], jnp.abs(t[0])


@pytest.mark.parametrize(("call", "cure"), [
    (run(branching), "depends on the place in the grid. The value came"),
    (run(branching), "function of no arguments, decorated by pl.when(condition)."),
    (run(slicing), "A part of known size is x_ref[pl.ds(start, size)]."),
    (run(branching, grid=(1.0,)), "pallas_call: grid must be an integer, got 1.0"),
    (lambda: checkify.check(V > 0, "a"), "Take jnp.all or jnp.any of it."),
    (lambda: checkify.check(1.0, "a"), "It is True or False: compare it."),
    (lambda: checkify.check(True, "{}", 1.0), "and give jnp.asarray(x) of a number."),
    (with_rule(squared), "and a rule of jax.custom_jvp in the tangents."),
    (with_rule(absolute), "and a rule of jax.custom_jvp in the tangents."),
    (lambda: jax.jvp(jnp.sin, V, V), "as in jvp(fun, (x,), (t,))."),
    (lambda: jax.jvp(jnp.negative, (1,), (1,)), "no other: give the primal as a float."),
    (lambda: lax.fori_loop(0, 3.0, lambda i, x: x, V), "of one dtype, such as int(x)."),
    (lambda: jax.jit(lambda f: f(1))(functools.partial(jnp.add, 1)), "jax.tree_util.Partial of "),
    (lambda: jax.tree_util.register_dataclass(Equal), "put @dataclass below."),
    (lambda: jax.grad(lambda x: x)(jnp.ones((1, 1))), "output.reshape(()) or output[0, 0], "),
    (lambda: jax.jit("{:.2f}".format)(V), "jax.debug.print('{x}', x=x)."),
    (lambda: jax.jit("{:.2f}".format)(1.0), "jax.debug.print('{x:.2f}', x=x)."),
])
def test_what_else_serves_is_told(call, cure):
    assert cure in mistake(call)


def test_kernels_take_what_their_messages_say():
    def kernel(x_ref, o_ref):
        @pallas.when(pallas.program_id(0) == 0)
        def _():
            o_ref[...] = x_ref[pallas.ds(pallas.program_id(0), 3)]

    assert run(kernel)().tolist() == V.tolist()


def test_classes_of_the_library_are_not_to_be_registered():
    text = mistake(lambda: jax.jit(lambda x: x.at[0])(V))
    assert "IndexUpdateRef" in text and "register_dataclass" not in text


@pytest.mark.parametrize(("call", "there", "absent"), [
    (lambda: jax.jit(abs, static_argnums=[1, "n"]), "Names of arguments are static", "of fun come"),
    (lambda: jax.pmap(lambda x: x)(1.0), "without pmap", "vmap"),
    (lambda: jax.vmap(jax.random.normal)(jax.random.split(jax.random.key(0), 3), (2,)),
     "its entry of in_axes is None", "jnp.array"),
    (lambda: jax.vmap(jnp.add)(V, [1, 2, 3]), "give jnp.array of it", "in_axes is None"),
    (lambda: lax.fori_loop(0, "3", lambda i, x: x, V), "argument upper", "enclosing scope"),
    (lambda: jax.grad(lambda b: lax.custom_linear_solve(
        lambda x: 2 * x, b, lambda f, b: b / 2).sum())(V), "or symmetric=True", "bars"),
    (lambda: jax.custom_vjp(nondiff_argnums=(0,)), "partial(jax.custom_vjp, nondiff_a", "__init_"),
    (lambda: jax.ShapeDtypeStruct((3,)), "ShapeDtypeStruct() missing", "__init__"),
    (lambda: jax.tree.map(jnp.add, {"a": 1}, None), "<class 'NoneType'>.", "is_leaf"),
])
def test_cures_are_for_what_was_given(call, there, absent):
    text = mistake(call)
    assert there in text and absent not in text


def test_no_property_of_the_users_runs_again_for_a_message():
    ran = []

    class Held:
        @property
        def step(self):
            ran.append(1)
            return jax.jit(lambda x, n: x, static_argnames="n")

        @property
        def size(self):
            return ran.append(2)

        class Asked:
            def __get__(self, *_):
                return ran.append(3)

        asked = Asked()
        plain = staticmethod(jax.jit(lambda x, n: x, static_argnames="n"))

    held = Held()
    assert "give a tuple" in mistake(lambda: held.step(1.0, n=[1]))
    assert ran == [1]
    assert "given to held.plain as n, whose static" in mistake(lambda: held.plain(1.0, n=[1]))
    assert "not callable" in mistake(lambda: held.size()) and ran == [1, 2]
    assert "not callable" in mistake(lambda: held.asked()) and ran == [1, 2, 3]


class Model:
    """A class of the user's that tells of its attributes itself."""

    aval = None

    def __getattr__(self, name):
        if name == "median":
            raise AttributeError(f"no {name}. Did you mean 'weights'?", name=name, obj=self)
        raise AttributeError("module 'jax.nn' has no attribute 'sotfmax'", name=name, obj=self)


class Held:
    aval = None


@pytest.mark.parametrize(("model", "name", "text"), [
    (Model(), "median", "no median. Did you mean 'weights'?"),
    (Model(), "sotfmax", "module 'jax.nn' has no attribute 'sotfmax'"),
    (Held(), "median", "'Held' object has no attribute 'median'")])
def test_what_the_user_raises_stays_as_it_is(model, name, text):
    def asks(x):
        return getattr(model, name)

    for call in (asks, jax.jit(asks)):
        with pytest.raises(AttributeError) as caught:
            call(V)
        advice.complete(caught.value)
        assert (str(caught.value), caught.value.name, caught.value.obj) == (text, name, model)


def test_one_thing_is_meant():
    for call in (lambda: jax.config.enable_x64, lambda: jnp.sine, lambda: jax.hess):
        with pytest.raises(AttributeError) as caught:
            call()
        advice.complete(caught.value)
        shown = traceback.format_exception_only(caught.value)
        assert "".join(shown).count("Did you mean") == 1
    assert "Without brackets" not in mistake(lambda: jnp.shape(V)(0))


# -- arrays in the place of flags and numbers ------------------------------------------------------


TREE = " is one tree: (a, b) for several arrays."


def carried(c, x):
    return c, x


@pytest.mark.parametrize(("f", "words"), [
    (lambda x: lax.associative_scan(jnp.add, x, x), "associative_scan: reverse must be True or "
     "False, got {}. elems" + TREE),
    (lambda x: lax.scan(carried, 0.0, x, None, x), "scan: reverse must be True or False, got {}. "
     "xs" + TREE),
    (lambda x: lax.scan(carried, 0.0, x, x), "xs" + TREE),
    (lambda x: lax.scan(carried, 0, x, (x, x)), "xs" + TREE),
    (lambda x: lax.cumsum(x, 0, x), "cumsum: reverse must be True or False, got {}."),
    (lambda x: lax.index_in_dim(x, 0, 0, x), "keepdims must be True or False, got {}."),
    (lambda x: jax.random.permutation(jax.random.key(0), x, 0, x),
     "permutation: independent must be True or False, got {}."),
    (lambda x: lax.linalg.eigh(jnp.eye(3), lower=x), "eigh: lower must be True or False, got {}."),
    (lambda x: lax.map(abs, x, batch_size=x), "map: batch_size must be an integer or None, got {}"),
    (lambda x: jax.nn.one_hot(4, x), "one_hot: num_classes must be an integer, got {}"),
    (lambda x: jax.nn.one_hot(4, x), "The order of the arguments is one_hot(x, num_classes)."),
    (lambda x: jax.nn.one_hot(x, x), "one_hot: num_classes must be an integer, got {}"),
    (lambda x: lax.top_k(2, x), "top_k: k must be an integer, got {}. The order of the arguments "
     "is top_k(operand, k)."),
    (lambda x: jnp.max(x, x), "max: axis must be an integer, a sequence of integers or None, got "
     "{}. Of two arrays, element by element: jnp.maximum(x, y)."),
    (lambda x: jnp.min(x, x.astype(int)), "element by element: jnp.minimum(x, y)."),
    (lambda x: jnp.max(x[0], x[0]), "element by element: jnp.maximum(x, y)."),
    (lambda x: jnp.sum(x, x), "element by element: jnp.add(x, y)."),
    (lambda x: jnp.max(1.0, 2.0), "element by element: jnp.maximum(x, y)."),
    (lambda x: jnp.mean(x, x), "axis must be an integer, a sequence of integers or None, got {}"),
    (lambda x: jnp.argmax(x, x), ", got {}"),
    (lambda x: jnp.trace(jnp.eye(3), 0, x), "trace: axis1 must be an integer, got {}"),
    (lambda x: jnp.hamming(x), "hamming: M must be an integer, got {}"),
    (lambda x: jnp.bincount(jnp.arange(3), length=x), "length must be an integer or None, got {}"),
])
@pytest.mark.filterwarnings("ignore:jax.nn.one_hot input")
def test_arrays_are_no_flags_and_no_numbers(f, words):
    for call, shown in ((f, "Array([0., 1., 2.], dtype=float32)"),
                        (jax.jit(f), "JitTracer(float32[3])")):
        said = mistake(lambda call=call: call(V))
        assert words.format(shown) in said
        assert "truth value" not in said and "static" not in said


def test_numbers_and_axes_that_are_no_arrays_are_told_of_as_ever():
    for f in (lambda n: lax.scan(carried, 0.0, V, n), lambda n: jax.nn.one_hot(4, n),
              lambda n: jnp.max(V, n)):
        assert "static" in mistake(lambda f=f: jax.jit(f)(3))
    assert "jnp.maximum" not in mistake(lambda: jnp.max(V, 3)) + mistake(lambda: jnp.max(V, 1.5))
    assert "jnp.maximum" not in mistake(lambda: jnp.max(V, (0, 1)))


@pytest.mark.parametrize("update", [[V[:2]], ["a"], [object()]])
def test_a_list_is_exchanged_with_no_array(update):
    said = mistake(lambda: lax.dynamic_update_index_in_dim(jnp.ones((3, 4)), update, 0, 0))
    assert "That is the argument update" in said and "order of the arguments" not in said


@pytest.mark.parametrize("operand", ["x", None, object(), len, {"k": 1.0}])
def test_what_is_no_value_is_exchanged_with_none(operand):
    for call in (lambda: lax.dynamic_update_slice_in_dim(operand, V, 0, 0),
                 lambda: lax.dynamic_update_index_in_dim(operand, V, 0, 0)):
        said = mistake(call)
        assert "That is the argument operand" in said and "order of the arguments" not in said


def test_options_that_xla_does_not_know():
    for call in (lambda: jax.jit(lambda x: x, compiler_options={"xla_k": True})(V),
                 lambda: jax.jit(lambda x: x).lower(V).compile({"xla_k": True})):
        said = mistake(call)
        assert "No such compile option: 'xla_k'. The compiler_options, of jit" in said


def test_a_permutation_is_shown_as_it_was_given():
    assert "permutation (-1, -1)" in mistake(lambda: jnp.transpose(jnp.ones((2, 3)), (-1, -1)))
    assert "permutation (0,)" in mistake(lambda: jnp.transpose(jnp.ones((2, 3)), (0,)))


PARAMETERS = {name: inspect.signature(function).parameters for name in dir(jnp)
           if inspect.isroutine(function := getattr(jnp, name)) and not name.startswith("_")}


@pytest.mark.parametrize("name", [name for name, given in PARAMETERS.items() if "out" in given])
@pytest.mark.parametrize("x", [2, jnp.ones(2, int), V])
def test_an_array_to_write_to_is_refused_whatever_came_before(name, x):
    required = [p for p in PARAMETERS[name].values() if p.default is p.empty]
    for first in (x, V):  # as the order of the arguments is told after a number
        said = mistake(lambda first=first: getattr(jnp, name)(first, *[x] * (len(required) - 1),
                                                           out=V))
        assert "'out' argument" in said or "out != None: arrays are immutable" in said
        assert "order of the arguments" not in said


@pytest.mark.parametrize("n", [2, 3])
def test_a_matrix_is_no_pair_of_factors(n):
    solve = jax.scipy.linalg
    for f in (lambda a: solve.cho_solve(a, V[:n]), lambda a: solve.lu_solve(a, V[:n])):
        for call in (f, jax.jit(f)):
            said = mistake(lambda call=call: call(jnp.eye(n)))
            assert f"returns, got an array of the shape ({n}, {n}). Give (" in said
            assert "Give (c, lower)." in said or "Give (lu, piv)." in said
