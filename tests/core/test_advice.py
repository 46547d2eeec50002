"""What is added to errors that Python and C++ raise of calls, and what is said of values that no
program takes."""

import dataclasses
import functools
import importlib
import inspect
import io
import math
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, random
from pyjx.core import advice, frames
from pyjx.core.value_texts import shortened
from pyjx.experimental import checkify
from pyjx.scipy import special as scipy_special
from pyjx.test_util import check_vjp
from tests.mistakes import mistake
from tests.test_guards import ROOT, public_callables

X = jnp.ones((2, 3))


class Model:
    """An object with arrays, whose class is no pytree."""

    def __init__(self):
        self.weight = X

    def __call__(self, x):
        return x * self.weight

    @jax.jit
    def method(self, x):
        return x * self.weight

    @functools.partial(jax.jit, static_argnames=("options", "kind"))
    def configured(x, options=None, kind=0):
        return x


def traced(call):
    """A call as a function that is traced makes it."""
    return lambda: jax.make_jaxpr(lambda x: call())(1.0)


# -- keywords --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "given", "meant"), [
    (lambda: jnp.sum(X, axes=0), "axes", "axis"), (lambda: jnp.sum(X, dim=0), "dim", "axis"),
    (lambda: jnp.mean(X, dims=0), "dims", "axis"), (lambda: X.sum(dim=0), "dim", "axis"),
    (lambda: jnp.max(X, 0, keepdim=True), "keepdim", "keepdims"),
    (lambda: jnp.linalg.norm(X, dim=0), "dim", "axis"),
    (lambda: jax.nn.softmax(X, dim=0), "dim", "axis"),
    (lambda: jax.scipy.special.logsumexp(X, dim=0), "dim", "axis"),
    (lambda: jax.jit(lambda x, alpha=1: x)(1.0, alhpa=2), "alhpa", "alpha"),
    (traced(lambda: jax.jit(abs, static_argname="x")), "static_argname", "static_argnames"),
    (traced(lambda: jax.vmap(abs, in_axis=0)), "in_axis", "in_axes"),
    (traced(lambda: random.normal(random.key(0), size=(3,))), "size", "shape"),
    (traced(lambda: random.uniform(random.key(0), low=3)), "low", "minval"),
    (traced(lambda: lax.scan(lambda c, x: (c, x), 0.0, X, len=2)), "len", "length"),
    (traced(lambda: jnp.zeros(shape=3, dtpye=int)), "dtpye", "dtype"),
    (traced(lambda: jax.custom_vjp(abs, nondiff_argnum=0)), "nondiff_argnum", "nondiff_argnums"),
    (traced(lambda: jax.ShapeDtypeStruct((), dtpe=int)), "dtpe", "dtype"),
    (traced(lambda: X.at[0].set(1, mod="drop")), "mod", "mode"),
    (traced(lambda: jax.jit(abs).lower(1.0).compile(compiler_option={})),
     "compiler_option", "compiler_options"),
])
def test_a_keyword_that_is_not_known_is_told_the_nearest(call, given, meant):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).endswith(
        f"got an unexpected keyword argument {given!r}. Did you mean {meant!r}?")


def test_arguments_that_another_function_has_passed_on_are_no_ones_of_the_call():
    with pytest.raises(TypeError, match="takes 1 positional argument but 7 were given\n") as error:
        check_vjp(jnp.sin, functools.partial(jax.vjp, jnp.sin), jnp.ones(7))
    advice.complete(error.value)


def test_where_none_is_near_the_arguments_are_listed():
    with pytest.raises(TypeError, match=r"'what'\. The arguments are tree, is_leaf"):
        traced(lambda: jax.tree.leaves(1, what=2))()
    with pytest.raises(TypeError, match=r"'what'\. The arguments are out_ct"):
        traced(lambda: jax.vjp(jnp.sin, 1.0)[1](1.0, what=2))()
    with pytest.raises(TypeError) as caught:
        jnp.sum(X, what=2)
    assert "'what'. The arguments are a, axis, dtype, out, keepdims, " in str(caught.value)


def test_all_public_functions_name_the_keyword_that_was_meant():
    """As the handler of a function that is traced, or the hook for what nobody catches, asks."""
    asked, unhelped = 0, []
    for name, function in public_callables():
        body = inspect.unwrap(function)
        if not isinstance(body, types.FunctionType) or body.__name__.startswith("<"):
            continue
        known = [p.name for p in inspect.signature(body).parameters.values()
                 if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and len(p.name) > 4]
        for argument in known:
            with pytest.raises(TypeError) as caught:
                jax.tree.leaves(1, what=2)
            caught.value.args = (f"{body.__qualname__}() got an unexpected keyword argument "
                                 f"'{argument}_'",)
            advice.complete(caught.value)
            asked += 1
            if not str(caught.value).endswith(f". Did you mean '{argument}'?"):
                unhelped.append((name, str(caught.value)))
    assert not unhelped
    assert asked > 1000


# -- static arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "instead"), [
    ([1], "give a tuple in"), ([{"w": X}], "holds arrays, which are no static"),
    ({"a": 1}, "give a frozen dataclass, or tuple(sorted(d.items())) of values with a hash in"),
    ({1}, "give a frozenset in"), (X, "Arrays are no static arguments"),
    (np.ones(2), "Arrays are no static arguments"),
    (type("Own", (), {"__eq__": lambda s, o: True})(), "has __eq__ and no __hash__. Give it both"),
])
def test_static_arguments_that_cannot_be_hashed_are_named_and_have_a_cure(value, instead):
    configured = Model.configured
    calls = [lambda x: configured(x, options=value), lambda x: Model.configured(x, value)]
    for call in calls:
        with pytest.raises(ValueError, match="Non-hashable static arguments") as caught:
            jax.tree.map(call, 1.0)
        assert "configured as options, whose static arguments are: options, " in str(caught.value)
        assert instead in str(caught.value) and " at 0x" not in str(caught.value)
    for call in (lambda: configured.lower(1.0, options=value),  # which Python looks up
                 lambda: jax.make_jaxpr(lambda x: configured(x, options=value))(1.0)):
        with pytest.raises(ValueError, match="'options' of configured") as caught:
            call()
        assert str(caught.value).count(instead) == 1


@pytest.mark.parametrize("held", [[1], {1}, X])
def test_a_static_argument_that_holds_what_has_no_hash_is_told_what_it_holds(held):
    options = dataclasses.make_dataclass("Options", ["field"], frozen=True)(held)
    with pytest.raises(ValueError, match="Non-hashable static arguments") as caught:
        jax.tree.map(lambda x: Model.configured(x, options), 1.0)
    assert f"It holds a value of type {type(held).__name__}. " in str(caught.value)
    assert "@dataclasses" not in str(caught.value).partition("It holds")[2]


@pytest.mark.parametrize(("transformed", "cure", "cured"), [
    *[(lambda f, of=of: of(f, argnums=1)(1.0, 2.0), "It is differentiated: differentiate by other "
       "arguments (argnums of grad)", lambda f, of=of: of(f, argnums=0)(1.0, 2.0))
      for of in (jax.grad, jax.value_and_grad, jax.jacrev, jax.jacfwd, jax.hessian)],
    (lambda f: jax.grad(f, argnums=(0, 1))(1.0, 2.0), "differentiate by other arguments",
     lambda f: jax.grad(f, argnums=(0,))(1.0, 2.0)),
    (lambda f: jax.vmap(f)(X[0], X[0]), "let in_axes be None for it",
     lambda f: jax.vmap(f, in_axes=(0, None))(X[0], 2.0)),
    (lambda f: jax.jit(f)(1.0, 2.0), "let it be static there, too, if that is jit",
     lambda f: jax.jit(f, static_argnums=1)(1.0, 2.0)),
    (lambda f: lax.scan(lambda c, n: (f(c, n), n), 1.0, X[0]), "leave this one out of static_arg",
     lambda f: lax.scan(lambda c, n: (f.__wrapped__(c, n), n), 1.0, X[0])),
])
def test_a_static_argument_that_is_traced_is_named_with_what_can_be_done(transformed, cure, cured):
    @functools.partial(jax.jit, static_argnames=["n"])
    def power(x, n):
        return x**n

    with pytest.raises(ValueError, match="Non-hashable static arguments") as caught:
        transformed(power)
    text = str(caught.value)
    assert "as n, whose" in text or "the static argument 1 of power" in text
    assert cure in text and "out of static_argnums and static_argnames." in text
    cured(power)


def test_two_static_arguments_that_cannot_be_hashed_are_told_apart():
    f, one, other = jax.jit(lambda x, a, b: x, static_argnames=("a", "b")), [1], {2}
    for given, name in (((one, other), "a"), (("a", other), "b"), ((one, [1]), "a")):
        with pytest.raises(ValueError, match="Non-hashable static arguments") as caught:
            jax.tree.map(lambda x, a=given[0], b=given[1]: f(x, a, b), 1.0)
        assert f"as {name}, whose static arguments are: a, b. " in str(caught.value)


@pytest.mark.parametrize(("call", "meant"), [
    (lambda: jnp.einsum("bqhd,bkhd->bhqk", jnp.ones((2, 8, 4, 3)), jnp.ones((2, 8, 4, 5))), None),
    (lambda: lax.scan(lambda c, x: ({"hiden": c["hidden"]}, x), {"hidden": 0.0}, X), None),
    (lambda: jax.tree.map(jnp.add, {"kernel": 1.0}, {"kernal": 1.0}), None),
    (lambda: jax.NamedSharding(jax.make_mesh((1, 1), ("data", "model")), jax.P("models")), None),
    (lambda: jnp.pad(X, 1, mode="reflct"), "reflect"),
])
def test_no_word_of_the_users_is_told_to_be_meant(call, meant):
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as caught:
        call()
    assert re.findall("Did you mean '(.*)'", str(caught.value)) == [meant] * bool(meant)


@pytest.mark.parametrize("call", [
    lambda tree: jax.tree.map(lambda x: x, tree),
    lambda tree: lax.scan(lambda c, _: (c, 0), tree, X)])
def test_what_registered_functions_take_is_not_told_of_others(call):
    kind = type("Kind", (), {})
    jax.tree_util.register_pytree_node(kind, lambda tree: ((1.0,), None), lambda children: kind())
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given") as caught:
        call(kind())
    assert "It is called as" not in str(caught.value)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jnp.linspace(0, 1, steps=5), "Did you mean 'num'?"),
    (lambda: random.exponential(random.key(0), scale=2.0), "The arguments are key, shape, dtype,"),
    (lambda: jax.vmap(jnp.sin, axis=0), "Did you mean 'in_axes'?"),
    (lambda: jax.tree.map(float, {"lr": ["a"]}), "could not convert string to float: 'a'"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, ["a"]), "at position 2. That is the argument xs"),
    (lambda: lax.map(jnp.sin, ["a"]), "to map at position 1. That is the argument xs[0]"),
    (lambda: lax.stop_gradient(lambda x: x), "is not a valid JAX type.\nFrames"),
    (lambda: jax.vmap(lambda x, k=None: x)(X, k=1.0), "bind what is the same for all examples by"),
])
def test_what_is_said_of_an_argument_is_true(call, words):
    with pytest.raises((TypeError, ValueError)) as caught:
        jax.tree.map(lambda _: call(), 0)
    assert words in "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "must be a function" not in str(caught.value)


def test_frames_that_are_compiled_are_of_the_user_but_for_those_of_numpy_and_scipy():
    files = ["numpy/random/mtrand.pyx", "scipy/special/_f.pyx", "/home/me/fast.pyx", "mine/x.pyx"]
    assert [frames.is_of_foundation(file) for file in files] == [True, True, False, False]


# -- errors that nobody catches --------------------------------------------------------------------


def test_errors_that_nobody_catches_are_completed_and_shown_by_the_hook_of_before(tmp_path):
    code = """
import sys
sys.excepthook = lambda kind, error, tb: print("seen", kind.__name__, error)
import pyjx as jax
def f(x, options):
    return x
f = jax.jit(f, static_argnames="options")
{}
"""
    for last, said in (
            ("jax.jit(f, static_argname='x')", "Did you mean 'static_argnames'?"),
            ("f(1.0, options=[1])", "It was given to f as options, whose static argument"),
            ("f(1.0, options=[2] * 999)", "<class 'list'>, [2, 2, 2"),
            ("raise ValueError('mine')", "seen ValueError mine"),
            ("raise TypeError(1, 2)", "seen TypeError (1, 2)")):
        program = tmp_path / "program.py"
        program.write_text(code.format(last), encoding="utf-8")
        done = subprocess.run([sys.executable, program], capture_output=True, text=True,
                              timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert said in done.stdout and len(done.stdout) < 700 and not done.stderr
    for last, said in (("jax.jit(f, dynmic={})", "Did you mean 'dynamic'?"),
                       ("jax.random.split(jax.random.key(0), nm=3)", "Did you mean 'num'?"),
                       ("f(1.0, options=[1])", "It was given to f as options, whose")):
        done = subprocess.run([sys.executable, "-c", code.format(last)], capture_output=True,
                              text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert said in done.stdout, done  # there is no source to read the call in


CONSOLE = """
import code
class Window(code.InteractiveConsole):
    said = ""
    def write(self, text):
        self.said += text
window = Window({})
for line in ("import pyjx as jax", "1 / 0", "jax.jit(abs, static_argname='x')", "def (",
             "jax.numpy.ones(3)[0.5]"):
    window.push(line)
print(window.said)
"""
IDLE = """
from idlelib import run
class Handler:
    class console:
        getvar = staticmethod(lambda name: False)
executive = run.rpc.objecttable["exec"] = run.Executive.__new__(run.Executive)
executive.rpchandler, executive.locals, run.sys.stderr = Handler, {}, run.sys.stdout
for line in ("import pyjx as jax", "1 / 0", "jax.jit(abs, static_argname='x')"):
    executive.runcode(compile(line, "<idle>", "exec"))
"""


@pytest.mark.parametrize("program", [CONSOLE, IDLE], ids=["console", "idle"])
def test_consoles_show_errors_themselves_and_without_frames_of_their_own(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert not done.stderr, done
    assert "Did you mean 'static_argnames'?" in done.stdout
    assert done.stdout.count("ZeroDivisionError") == 1
    assert done.stdout.count("SyntaxError: ") == (program == CONSOLE)
    assert set(re.findall('File "(.*?)"', done.stdout)) <= {"<console>", "<idle>"}


def test_a_hook_of_the_users_is_asked_before_a_console_writes():
    program = CONSOLE.replace("import code", "import code, sys\n"
                              "sys.excepthook = lambda kind, error, tb: print('seen', error)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stdout.count("seen") == 4 and "Did you mean 'static_argnames'?" in done.stdout


def test_notebooks_complete_errors_too_and_show_the_users_lines_alone():
    pytest.importorskip("IPython")
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
for cell in ("import pyjx as jax, pyjx.numpy as jnp", "jax.jit(abs, static_argname='x')",
             "f = jax.jit(lambda x, o: x, static_argnums=1)\\nf(1.0, [2])",
             "jnp.sum(jnp.ones(3), dim=0)", "jnp.ones(3) + jnp.ones(2)", "1 / 0"):
    shell.run_cell(cell)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    said = done.stdout + done.stderr
    for words in ("Did you mean 'static_argnames'?", "It was given to f, whose static arguments",
                  "Did you mean 'axis'?", "incompatible shapes for broadcasting",
                  "ZeroDivisionError: division by zero"):
        assert words in said
    assert str(Path(jax.__file__).parent) not in said and "skipping hidden" not in said


# -- inner functions, and those of C++ and other libraries -----------------------------------------


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jax.scipy.stats.norm.pdf("x"), "norm.pdf requires"),
    (lambda: jax.scipy.stats.chi2.pdf("x", 2), "chi2.pdf requires"),
    (lambda: jax.nn.initializers.he_normal(in_axis="x")(random.key(0), (3, 3)), "he_normal: in_"),
    (lambda: lax.approx_max_k(1.5, 1), "approx_max_k operand must have"),
    (lambda: lax.approx_max_k(X, 1, reduction_dimension=7), "approx_max_k: reduction_dimension"),
    (lambda: jnp.inner(X, X, precision="x"), "inner: Precision"),
    (lambda: jnp.fft.fftfreq(4, jnp.ones(7)), "fftfreq got incompatible"),
    (lambda: jax.remat(abs, memory_budget="x")(1.0), "remat: memory_budget"),
    (lambda: jnp.polymul(X, X), r"polymul\(\) only"),
    (lambda: jax.vmap(jnp.add)(X, jnp.ones((2, 7))), "add got"),  # which the user gave
    (lambda: lax.reciprocal("x"), "argument to reciprocal .* position 0. That is the argument x. "),
    (lambda: lax.fori_loop(0, 3, lambda i, c: c, "x"), "ion 3. That is the argument init"),
    (lambda: lax.concatenate(["x", X], 0), r"the argument operands\[0\]. Argument 'x' is not"),
    (lambda: jax.vjp(abs, "x"), r"JAX type \(primals\[0\] is 'x'\)\. The function may"),
    (lambda: jnp.sum(X, initial=(1, 2)), r"valid JAX type \(initial is \(1, 2\)\)\. Make an"),
    (lambda: jax.jit("x"), r"^jit: fun must be a function, got 'x' \(Expected a callable value, "),
    (lambda: jax.inspect.find(3, x=X), "find: fun must be a function, got 3"),
    (lambda: jax.inspect.check_rules(lambda x: x, 1.0, y=3), "check_rules .* keyword argument 'y'"),
    (lambda: jnp.unique(X, return_index="x", size=7, fill_value="x"), "That is the argument fill"),
    (lambda: jnp.polyint(X), r"polyint: p must be an array of rank 1, got shape \(2, 3\)"),
    (lambda: jax.tree.map(abs, 1, is_leaf="x"), "tree_map: is_leaf must be a function or None, got "
     r"'x' \(flatten\(\): leaf_predicate must be Callable"),
    (lambda: jax.tree.unflatten(jax.tree.structure(1), 3), "leaves must be a sequence, got 3"),
    (lambda: jax.tree_util.register_pytree_node([], abs, abs), r"\(nodetype is \[\]\)"),
    (lambda: jax.tree_util.treedef_tuple("x"), "treedefs must be a sequence, got 'x'"),
    (lambda: jax.profiler.start_server("x"), "start_server: port must be an integer, got 'x'"),
    (lambda: jnp.finfo("x"), r"finfo: .* \(dtype is 'x'\)"),
    (lambda: jnp.iinfo(float), r"integer data type 'f': .* float64 are told by jnp.finfo"),
    (lambda: jnp.iinfo(jnp.bfloat16), "the limits of bfloat16 are told by jnp.finfo"),
    (lambda: jnp.iinfo(1.5), "the limits of float64 are told by jnp.finfo"),
    (lambda: jnp.iinfo(bool), "iinfo: Invalid .* 'b'"),
    (lambda: jnp.finfo(X.astype(int)), "the limits of int32 are told by jnp.iinfo"),
    (lambda: jnp.finfo("int4"), "the limits of int4 are told by jnp.iinfo"),
    (lambda: jnp.printoptions(precision="x"), r"printoptions: precision .*\(kwargs is"),
    (lambda: jnp.printoptions(foo=1), r"printoptions\(\) got an unexpected keyword .*'foo'"),
    (lambda: importlib.import_module("pyjx.experimental.host_callback"), "cannot import 'host_c"),
])
def test_what_is_within_is_told_of_what_was_called(call, words):
    with pytest.raises(Exception, match=words) as caught:
        call()
    files = [tb.tb_frame.f_code.co_filename for tb in frames.tracebacks_of(caught.value)]
    assert not any([frames.is_internal(f) or "/numpy/" in f or "ml_dtypes" in f for f in files])


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jax.tree_util.SequenceKey(), "SequenceKey() missing 1 required posi"),
    (lambda: jax.tree_util.GetAttrKey(1), "GetAttrKey(): name must be str, got 'int' object"),
    (lambda: jax.devices()[0].memory(3), "memory(): kind must be str, got 'int' object"),
    (lambda: jax.tree.structure(1).unflatten(3), "unflatten(): arg must be Iterable"),
    (lambda: jax.profiler.TraceAnnotation(3), "TraceAnnotation(): arg0 must be str, got 'int' obj"),
])
def test_what_is_called_in_cpp_is_told_as_python_tells_it(call, words):
    with pytest.raises(TypeError) as caught:
        call()
    advice.complete(caught.value)  # as the hook for what nobody catches does
    assert str(caught.value).startswith(words)


# -- values that no program takes ------------------------------------------------------------------

PYTREE = "Its class may be a pytree, whose arrays are traced (jax.tree_util.register_pytree_node)"
SCOPE = "the function may take it from the enclosing scope"


def scale(x):
    return x * 2


STATIC = ("jit", "lower", "make_jaxpr", "eval_shape")  # have arguments that are not traced
TAKES = {
    "jit": lambda v: jax.jit(lambda v: 1)(v), "lower": lambda v: jax.jit(lambda v: 1).lower(v),
    "grad": lambda v: jax.grad(lambda v: 1.0)(v), "vmap": lambda v: jax.vmap(lambda v: 1)(v),
    "jvp": lambda v: jax.jvp(lambda v: v, (v,), (v,)), "vjp": lambda v: jax.vjp(lambda v: v, v),
    "linearize": lambda v: jax.linearize(lambda v: v, v),
    "jacfwd": lambda v: jax.jacfwd(lambda v: v)(v), "hessian": lambda v: jax.hessian(abs)(v),
    "make_jaxpr": lambda v: jax.make_jaxpr(lambda v: 1)(v),
    "eval_shape": lambda v: jax.eval_shape(lambda v: 1, v),
    "checkpoint": lambda v: jax.checkpoint(lambda v: 1)(v),
    "scan": lambda v: lax.scan(lambda c, x: (c, x), v, X),
    "while_loop": lambda v: lax.while_loop(lambda c: True, lambda c: c, v),
    "fori_loop": lambda v: lax.fori_loop(0, 2, lambda i, c: c, v),
    "cond": lambda v: lax.cond(True, abs, abs, v), "map": lambda v: lax.map(abs, v),
    "custom_gradient": lambda v: jax.custom_gradient(lambda v: (v, lambda g: (g,)))(v),
}


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("value", [Model(), scale, jnp.sin, "text"],
                         ids=["object", "function", "jitted", "text"])
def test_what_is_no_array_has_cures_and_no_address(name, value):
    with pytest.raises((TypeError, ValueError)) as caught:
        TAKES[name](value)
    text = "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert " at 0x" not in text
    assert not isinstance(value, Model) or PYTREE in text
    other = "mark the argument as static" if name in STATIC else SCOPE[4:]
    assert other in text and ("the enclosing scope" in text) == (name not in STATIC)


def test_a_jitted_method_hears_how_its_object_is_given():
    with pytest.raises(TypeError, match="at path self") as caught:
        Model().method(1.0)
    assert "static_argnums=0 for a method, if its object does not change" in str(caught.value)
    assert PYTREE in str(caught.value)


@pytest.mark.parametrize("call", [
    lambda: jax.jit(lambda x: Model())(1.0), lambda: jax.pure_callback(3, Model(), X),
    lambda: jnp.sin(Model()), lambda: lax.switch(0, [Model], Model(), Model()),
    lambda: jax.debug.callback(3), lambda: jax.device_put(Model()), lambda: random.split(Model()),
    lambda: jax.custom_jvp(Model())(1.0), lambda: jnp.zeros(3, dtype=Model()),
    lambda: X.at[Model()].set(1), lambda: X[Model()], lambda: jnp.asarray(Model()),
    lambda: jax.jit(3), lambda: jax.vmap(scale, in_axes=Model())(X), lambda: jax.set_mesh(Model()),
    lambda: lax.full((2,), Model()), lambda: jax.tree.map(scale, [1], Model()),
    lambda: jax.sharding.NamedSharding(Model(), None), lambda: jax.config.update(Model(), 1),
])
def test_no_message_has_an_address(call):
    with pytest.raises(Exception) as caught:
        call()
    assert " at 0x" not in str(caught.value)


@pytest.mark.parametrize("call", [
    lambda: re.split("a", "bab", cuont=1),
    lambda: jax.jit(scale)(jnp.ones(2), nothing=1),
])
def test_functions_of_others_are_not_taken_for_those_of_the_library(call):
    with pytest.raises(TypeError) as caught:
        call()
    assert "axis" not in str(caught.value) and "sizes" not in str(caught.value)


def test_messages_are_completed_once():
    with pytest.raises(ValueError, match="Let all be of one type") as caught:
        jax.tree.map(lambda x: x, {1: 2.0, "a": 3.0})
    text = str(caught.value)
    advice.complete(caught.value)
    assert str(caught.value) == text


def test_messages_of_the_user_stay_as_they_are():
    def fails(x):
        raise TypeError("f() got an unexpected keyword argument 'x' at 0x1234")

    with pytest.raises(TypeError) as caught:
        jax.jit(fails)(1.0)
    assert str(caught.value) == "f() got an unexpected keyword argument 'x' at 0x1234"


@pytest.mark.parametrize("call", [
    lambda: jnp.asarray(2 ** 40), lambda: jnp.array([2 ** 40]), lambda: jnp.arange(3) + 2 ** 40,
    lambda: jnp.where(True, 2 ** 40, 1), lambda: jax.device_put(2 ** 40),
    lambda: jnp.array(3).at[()].set(2 ** 40), lambda: jax.jit(jnp.negative)(-2 ** 40)])
def test_integers_that_32_bits_do_not_hold(call):
    with pytest.raises(OverflowError, match=r"int32\. Integers have 64 bits with jax\.config"):
        call()
    with jax.enable_x64(True):
        assert int(np.max(call())) >= 2 ** 40
    with pytest.raises(OverflowError, match="for int8, which holds -128 to 127: use "):
        jnp.array(1000, "int8")


@pytest.mark.parametrize("mesh", ["x", jax.P(), [1]])
def test_what_is_no_mesh_is_told_where_cpp_asks_for_its_size(mesh):
    with pytest.raises((AttributeError, TypeError)) as caught:
        jax.NamedSharding(mesh, jax.P())
    advice.complete(caught.value)  # as the hook for what nobody catches does
    assert re.match(r"NamedSharding: mesh (must|cannot) be ", str(caught.value))
    assert shortened(mesh) in str(caught.value)


def loss(params, x):
    return (params["w"] * x).sum()


@pytest.mark.parametrize(("call", "where"), [
    (lambda p: jax.grad(loss)(p, X), "params"), (lambda p: jax.hessian(loss)(p, X), "params"),
    (lambda p: jax.value_and_grad(loss, 1)({"w": X}, p), "x"),
    (lambda p: jax.grad(loss, argnums=(0, 1))({"w": X}, p), "x"),
    (lambda p: jax.jacrev(loss)(p, X), "params"), (lambda p: jax.vjp(loss, p, X), "params"),
    (lambda p: jax.linearize(loss, p, X), "params"),
    (lambda p: jax.vmap(loss)(p, x=X), "params"), (lambda p: jax.remat(loss)(p, X), "params"),
    (lambda p: jax.jvp(loss, (p, X), (p, X)), r"primals\[0\]"),
    (lambda p: lax.scan(lambda c, x: (c, x), p, X), "init"),
    (lambda p: lax.while_loop(lambda c: False, lambda c: c, p), "init_val"),
    (lambda p: lax.cond(True, lambda c: c, lambda c: c, p), r"operands\[0\]"),
    (lambda p: jax.device_put(p), "x"),
])
@pytest.mark.parametrize("leaf", ["adam", np.array(["adam"])])
def test_leaves_that_are_no_arrays_are_told_by_argument_and_path(call, where, leaf):
    with pytest.raises(TypeError, match=rf"{where}\['name'\]\.") as caught:
        call({"w": X, "name": leaf})
    assert "cannot be" not in str(caught.value)


def test_a_text_is_to_be_static_as_an_argument_and_not_within_one():
    for call, cure in ((lambda: jax.jit(loss)("sgd", X), "as it is, mark the argument as static"),
                       (lambda: jax.jit(lambda *args: 1)(X, "sgd"), "mark the argument as static"),
                       (lambda: jax.jit(loss)({"w": X, "name": "sgd"}, X), "take it out of the")):
        with pytest.raises(TypeError, match="is not an array of numbers") as caught:
            call()
        assert cure in str(caught.value)


def test_masked_arrays_are_told_by_argument_and_path():
    with pytest.raises(ValueError, match=r"^numpy masked .* to loss at .* at path params\['w'\]"):
        jax.grad(loss)({"w": np.ma.array([1.0])}, X)


# -- arrays that are gone --------------------------------------------------------------------------


@pytest.mark.parametrize("call", [
    lambda p: jax.jit(loss)(p, X), lambda p: jax.grad(loss)(p, X),
    lambda p: jax.vmap(loss)(p, X[0]), lambda p: jax.value_and_grad(jax.jit(loss))(p, X)])
def test_deleted_leaves_are_told_by_argument_and_path(call):
    gone = jnp.ones(3)
    gone.delete()
    with pytest.raises(RuntimeError, match=r"^Array has been deleted") as caught:
        call({"w": gone})
    notes = [note for note in caught.value.__notes__ if note.startswith("It was passed to ")]
    assert notes == [f"It was passed to loss at {__file__}:{loss.__code__.co_firstlineno} at path "
                     "params['w']."]


@pytest.mark.parametrize("donated", [0, (0, 1)])
@pytest.mark.parametrize("known", [False, True])
def test_arrays_that_are_given_twice_and_donated_are_told_by_their_paths(donated, known):
    def step(params, state):
        return jax.tree.map(jnp.sin, (params, state))

    jitted = jax.jit(step, donate_argnums=donated)
    for _ in range(2 if known else 0):  # to C++, which then runs no Python
        a, b, mu = jnp.ones((3, 3))
        jitted({"w": jnp.ones(3)}, {"a": a, "b": b, "mu": {"w": mu}})
    x, y = jnp.ones((2, 3))
    other = jnp.ones(3) if donated else y  # which may be given twice where it is not donated
    params, state = {"w": x}, {"a": y, "b": other, "mu": {"w": x}}
    with pytest.raises((RuntimeError, ValueError), match="donate") as caught:
        jitted(params, state)
    advice.complete(caught.value)  # as the hook does what shows an error that nobody catches
    assert re.search(r"\nparams\['w'\] and state\['mu'\]\['w'\] of step at .* are one array, "
                     r"which .*: pass jnp\.copy\(x\) as one", str(caught.value))


def test_what_users_say_at_length_stays_whole():
    said = "word " * 400 + "\n" * 40 + "END"
    error, _ = checkify.checkify(lambda x: checkify.check(x > 0, said))(-1.0)
    with pytest.raises(ValueError) as caught:
        error.throw()
    assert said in str(caught.value)


@pytest.mark.parametrize(("function", "words"), [
    (lambda x: max(x, 0.0), "Python's `max` asks for the value: use jnp.maximum(x, y).\n"),
    (lambda x: max(x, 2 * x, key=abs), None), (max, None),
    (lambda x: sorted([x, 2 * x]), "`sorted` asks for the value: use jnp.sort(x) of an array, "
     "jnp.sort(jnp.asarray(list(xs))) of several.\n"),
    (lambda x: x in (1, 2), "`in` asks for the value: use jnp.isin(x, jnp.asarray((1, 2))).\n"),
    (lambda x: math.sqrt(x), "`math.sqrt` asks for the value: use jnp.sqrt.\n"),
    (lambda x: 1 if x > 0 else 2, None),
])
def test_pythons_functions_that_ask_for_a_value_have_those_of_arrays(function, words):
    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        jax.jit(function)(*[1.0] * (2 if function is max else 1))
    assert words in str(caught.value) if words else "asks for the" not in str(caught.value)
    assert ("jnp.where" in str(caught.value) or "static" in str(caught.value)) == (words is None)


ROWS = np.ones((10, 3), "f4")


@pytest.mark.parametrize(("function", "words"), [
    (lambda i: ROWS[i], "of one shape, make them an array: jnp.asarray(ROWS)[i]; lax.switch cho"),
    (lambda i: [1, 2][i], "lax.switch chooses between functions. If the value"),
    (lambda i: ROWS[i:i + 2], "use lax.dynamic_slice_in_dim(jnp.asarray(ROWS), start, size). If "),
    (lambda i: jnp.asarray(ROWS)[i * 2:(i + 1) * 2], "lax.dynamic_slice_in_dim(x, start, size, ax"),
    (lambda i: [0 for _ in range(i)], "number of times use lax.fori_loop or lax.while_loop. If"),
    (lambda i: "a" * i, "the argument i.\nIf the value is the same"),
    (lambda i: np.zeros((i, 2)), "the argument i.\nIf the value is the same"),
    (lambda i: np.arange(i), "In place of np.arange use jax.numpy.arange; or run it outside of the "
     "traced function. A size must be known as it is traced, like a static argument"),
    (lambda i: np.linalg.norm(i), "In place of np.linalg.norm use jax.numpy.linalg.norm;"),
    (lambda i: np.exp2(i), "use jax.numpy.exp2; or run it outside of the traced function.\nMore"),
    (lambda i: scipy.special.erf(i), "place of scipy.special.erf use jax.scipy.special.erf;"),
    (lambda i: np.random.normal(i), "NumPy draws once, as it is traced: draw by jax.random, with"),
    (lambda i: np.savez(io.BytesIO(), i), "argument i.\nSave what the traced function returns."),
    (lambda i: jnp.save(io.BytesIO(), i), "argument i.\nSave what the traced function returns."),
    (lambda i: "%.1f" % i,  # noqa: UP031
     "the argument i.\nWhile the function is traced, the array has no value."),
    (lambda i: np.zeros(3).__setitem__(0, i), "setting an array element with a sequence.\nThe err"),
    (lambda i: [0, 1].__setitem__(i, 5), "the argument i.\nIf the value is the same"),
    (lambda i: [i] * i, "; to repeat it, use Python's int, as a static argument is"),
    (lambda i: [i] @ jnp.ones(3), "; make it an array with jnp.asarray"),
])
def test_what_asks_for_a_traced_value_has_what_serves_in_its_place(function, words):
    with pytest.raises((TypeError, IndexError, ValueError)) as caught:
        jax.jit(function)(1)
    assert words in str(caught.value)
    assert "`float` function" not in str(caught.value)


@pytest.mark.parametrize(("function", "words"), [
    (lambda x: x if np.max(x) > 1.0 else -x, "use jnp.where"),
    (lambda x: x if np.any(x < 0) else -x, "use jnp.where"),
    (lambda x: np.any(x) and np.all(x), "jnp.logical_and"),
    (lambda x: [i for i in range(3) if np.any(x > i)], "use jnp.where"),
    (lambda x: np.sum(x).item(), "convert what the traced function returns"),
    (lambda x: scipy.stats.norm(0.0, 1.0).logpdf(x), "use jax.scipy.stats.norm.logpdf(x, ...),"),
    (lambda x: scipy.stats.norm.pdf(x).sum(), "use jax.scipy.stats.norm.pdf(x, ...), with"),
    (lambda x: scipy.stats.multivariate_normal.logpdf(x, np.zeros(3)),
     "use jax.scipy.stats.multivariate_normal.logpdf(x, ...), with"),
    (lambda x: scipy.stats.foldnorm.pdf(x, 2.0), "distributions compute with values: run it outs"),
    (lambda x: np.ones((2, 3)) @ list(x), "a list of traced values: give jnp.asarray(x)"),
    (lambda x: np.ones(3) + [x[0], x[1], x[2]], "a list of traced values: give jnp.asarray(x)"),
    (lambda x: np.sin(list(x)), "In place of np.sin use jax.numpy.sin;")])
def test_functions_of_numpy_are_blamed_for_what_they_ask_themselves(function, words):
    with pytest.raises(TypeError) as caught:
        jax.jit(function)(jnp.ones(3))
    said = str(caught.value)
    assert words in said and "_core" not in said
    assert ("jax.numpy." in said) == ("jax.numpy." in words)


def test_the_index_of_a_number_is_left_out():
    for call in (lambda: jnp.float32(1.0)[0], lambda: jax.vmap(lambda x: x[0])(jnp.ones(3))):
        with pytest.raises(IndexError, match=r"0-dimensional.* leave the index out") as caught:
            call()
        assert "x[jnp.array([i, j])]" not in str(caught.value)


OF_SIZES = "If the value is the same in every call, or takes few different ones, mark the argument"
GRIDS = [
    lambda n: jnp.mgrid[:n, :n], lambda n: jnp.mgrid[n:7], lambda n: jnp.ogrid[0:n],
    lambda n: jnp.ogrid[:n, :n], lambda n: jnp.r_[0:n], lambda n: jnp.r_[0:n, 5],
    lambda n: jnp.c_[0:n, 0:n], lambda n: jnp.mgrid[0.0:1.0:n * 1j], lambda n: jnp.arange(2 * n)]


@pytest.mark.parametrize("make", GRIDS)
def test_the_sizes_of_grids_are_static_arguments(make):
    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        jax.jit(make)(5)
    assert f"\n{OF_SIZES}" in str(caught.value)
    assert "lax." not in str(caught.value) and "by jax.numpy" not in str(caught.value)
    assert jax.tree.leaves(jax.jit(make, static_argnums=0)(5))
    with pytest.raises(jax.errors.ConcretizationTypeError, match="let in_axes be None for an arg"):
        jax.vmap(make)(jnp.arange(3))


@pytest.mark.parametrize(("make", "name"), [
    (lambda n: np.mgrid[:n, :n], "mgrid"), (lambda n: np.mgrid[:n], "mgrid"),
    (lambda n: np.ogrid[:n, 0:3], "ogrid"), (lambda n: np.r_[0:n], "r_"),
    (lambda n: np.c_[0:n, 0:n], "c_")])
def test_in_place_of_numpys_grids_are_those_of_arrays(make, name):
    with pytest.raises((TypeError, AttributeError)) as caught:
        jax.jit(make)(5)
    assert (f"\nIn place of np.{name} use jax.numpy.{name}; or run it outside of the traced "
            "function. A size must be known as it is traced,") in str(caught.value)
    assert "the value of the argument n." in str(caught.value)


def test_what_is_no_grid_is_told_as_before():
    with pytest.raises(AttributeError) as caught:
        jax.jit(lambda n: np.mgrid["a":3, :2])(5)  # type: ignore[misc]
    assert str(caught.value) == "'tuple' object has no attribute 'step'"


def written_to(x, rows):
    out = np.zeros(3)
    out[slice(3) if rows else 0] = x
    return out


def stored_at(i):
    listed = [1, 2, 3]
    listed[i] = 5
    return listed


@pytest.mark.parametrize("rows", [False, True])
def test_arrays_of_numpy_that_are_written_to_are_to_be_of_jax(rows):
    with pytest.raises((ValueError, TypeError)) as caught:
        jax.jit(written_to, static_argnames="rows")(jnp.ones(3) if rows else 1.0, rows)
    assert ("\nNumPy's arrays hold no value that is traced: make this one by jax.numpy, and write "
            "out = out.at[slice(3) if rows else 0].set(value).") in str(caught.value)
    assert caught.value.__cause__ is None and "the argument x." in str(caught.value)
    assert rows or isinstance(caught.value.__context__, jax.errors.ConcretizationTypeError)
    with pytest.raises(TypeError, match=r"\nLists take no index .* as static") as caught:
        jax.jit(stored_at)(1)


@pytest.mark.parametrize(("call", "argument"), [
    (lambda b: X.sum(keepdims=b), "keepdims' of sum"), (lambda b: jnp.sum(X, b), "axis' of sum"),
    (lambda b: lax.scan(lambda c, y: (c, y), 0.0, X, reverse=b), "reverse' of scan"),
    (lambda b: lax.cumsum(X, reverse=b), "reverse' of cumsum"),
    (lambda b: lax.map(jnp.sin, X, batch_size=b), "batch_size' of map"),
    (lambda b: random.choice(random.key(0), X, replace=b), "replace' of choice"),
    (lambda b: jnp.linalg.eigh(jnp.eye(2), symmetrize_input=b), "symmetrize_input' of eigh"),
    (lambda b: jnp.meshgrid(X[0], X[0], sparse=b), "sparse' of meshgrid"),
    (lambda b: jnp.concatenate([X, X], axis=b), "axis' of concatenate"),
    (lambda b: jax.nn.standardize(X, axis=b), "axis' of standardize"),
    (lambda b: jnp.append(X, X, axis=b), "axis' of append"),
    (lambda b: jnp.split(X, b), "indices_or_sections' of split"),
    (lambda b: scipy_special.multigammaln(X + 4, b), "d' of multigammaln"),
    (lambda b: jnp.pad(X, (0, b + 1)), "pad_width' of pad"), (lambda b: jnp.eye(b), "N' of eye"),
    (lambda b: lax.top_k(X, b), "k' of top_k"), (lambda b: jax.grad(jnp.sum, b)(X), "argnums' of"),
])
def test_a_part_of_the_program_that_is_traced_is_named_and_may_be_static(call, argument):
    with pytest.raises(TypeError) as caught:
        jax.jit(call)(1)
    said = str(caught.value)
    assert f"Argument '{argument}" in said and "mark the argument it comes from as static" in said
    assert not [word for word in ("jnp.where", "To index", "by jax.numpy", "`eq`") if word in said]
    jax.jit(call, static_argnums=0)(0 if "axis" in argument or "argnums" in argument else 1)


@pytest.mark.parametrize("call", [
    lambda: random.uniform(3, minval=jnp.zeros((2,), np.uint32)),
    lambda: random.normal(5, np.array([2, 3], np.uint32)),
    lambda: random.randint("k", (2,), jnp.array([0, 1], np.uint32), 4),
])
def test_bounds_and_shapes_are_no_keys_that_came_late(call):
    with pytest.raises(TypeError, match=r"make a key|made of a seed") as caught:
        call()
    assert "comes first" not in str(caught.value)


def test_faults_in_advice_fail_its_tests(monkeypatch):
    monkeypatch.setattr(advice, "note_leaf", lambda exc: {}[type(exc)])
    with pytest.raises(KeyError):
        mistake(lambda: jnp.ones(3).at[0].Set(1))
