"""Handlers around public functions: whatever leaves one shows the user's frames alone."""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import io
import json
import opcode
import os
import pickle
import re
import subprocess
import sys
import traceback
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, export, guards
from pyjx.core.frames import is_internal, is_of_foundation
from pyjx.example_libraries import optimizers
from pyjx.experimental import checkify, pallas, roofline, sparse
from pyjx.flatten_util import ravel_pytree

X = jnp.ones((2, 3))
KEY = jax.random.key(0)
MESH = jax.make_mesh((1,), ("x",))
LOWERED = jax.jit(jnp.sin).lower(1.0)
ROOT = Path(__file__).parents[1]
PUBLIC = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8")


def internal_frames(call):
    """The library's frames that a user sees of an error; None where there is no error."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            call()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        return [f"{Path(f.filename).name}:{f.name}" for f in frames if is_internal(f.filename) or (
            is_of_foundation(f.filename) and Path(f.filename).name not in ("enum.py", "typing.py"))]
    return None


# -- all public functions --------------------------------------------------------------------------

# Where calls act on the process, or parse its command line; and modules of names alone.
APART = re.compile(r"jax\.(distributed|profiler|monitoring|tools|collect_profile)|pallas|mosaic|"
                   r"jax2tf|extend\.backend|compilation_cache|array_serialization")
ACTING = {"breakpoint", "clear_backends", "clear_caches", "live_arrays"}
MISTAKES = ["a", object(), None, [X, "a"], {"k": 1.5}]


def public_callables():
    found = {}
    for section in re.split(r"\n\n+", PUBLIC.split("\n", 1)[1]):
        module, _, names = section.strip().partition("\n")
        if APART.search(module):
            continue
        for name in names.split():
            with contextlib.suppress(ImportError, AttributeError):
                value = getattr(importlib.import_module(module.replace("jax", "pyjx", 1)), name)
                own = str(getattr(value, "__module__", None) or "pyjx").startswith("pyjx")
                if callable(value) and own and name not in ACTING:
                    found.setdefault(id(value), (f"{module}.{name}", value))
    return [*found.values()]


def required(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return 1
    return sum([p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                for p in parameters])


def fails(*_, **__):
    raise KeyError("mine")


def arguments(count):
    for mistake in MISTAKES:
        yield [mistake] * count, mistake
    for mistake in (X, "a"):
        yield [fails, *[X] * (count - 1)], mistake
        yield [lambda x, *_: x, *[mistake] * (count - 1)], mistake


def survey():
    """The functions that show frames of the library for some mistake, and how many mistakes there
    were."""
    failed, seen = {}, 0
    for name, function in public_callables():
        for given, mistake in arguments(required(function)):
            def call(function=function, given=given, mistake=mistake):
                result = function(*given)
                if callable(result) and not isinstance(result, type):
                    result(mistake)

            frames = internal_frames(call)
            seen += frames is not None
            if frames:
                failed[name] = frames
    return failed, seen


# -- objects that functions return -----------------------------------------------------------------


def failing_check(x):
    checkify.check(x > 0, "must be positive")


def with_vjp():
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (x, None), lambda _, g: (g,))
    return f


RETURNED = {
    "array": lambda: X, "at": lambda: X.at, "updates": lambda: X.at[0], "key": lambda: KEY,
    "keys": lambda: jax.random.split(KEY), "impl": lambda: jax.random.key_impl(KEY),
    "dtype": lambda: KEY.dtype, "jitted": lambda: jax.jit(abs),
    "traced": lambda: jax.jit(jnp.sin).trace(1.0), "lowered": lambda: LOWERED,
    "compiled": lambda: LOWERED.compile(), "info": lambda: jax.tree.leaves(LOWERED.args_info)[0],
    "cost": lambda: jax.jit(jnp.sin).trace(1.0).cost(), "explained": lambda: jax.jit(abs).explain(),
    "jaxpr": lambda: jax.make_jaxpr(jnp.sin)(1.0),
    "eqn": lambda: jax.make_jaxpr(jnp.sin)(1.0).eqns[0],
    "type": lambda: jax.typeof(X), "struct": lambda: jax.ShapeDtypeStruct((2,), "float32"),
    "vjp": lambda: jax.vjp(jnp.sin, 1.0)[1], "linear": lambda: jax.linearize(jnp.sin, 1.0)[1],
    "transposed": lambda: jax.linear_transpose(lambda x: 2 * x, 1.0), "grad": lambda: jax.grad(abs),
    "custom_jvp": lambda: jax.custom_jvp(jnp.sin), "custom_vjp": with_vjp, "mesh": lambda: MESH,
    "abstract mesh": lambda: MESH.abstract_mesh, "spec": lambda: jax.P("x"),
    "sharding": lambda: jax.NamedSharding(MESH, jax.P("x")), "one device": lambda: X.sharding,
    "shard": lambda: X.addressable_shards[0], "layout": lambda: X.format,
    "reference": lambda: jax.new_ref(X), "reference at": lambda: jax.new_ref(X).at,
    "part": lambda: jax.new_ref(X).at[0], "exported": lambda: export.export(jax.jit(jnp.sin))(1.0),
    "size": lambda: export.symbolic_shape("a, b")[0], "scope": export.SymbolicScope,
    "sum": lambda: export.symbolic_shape("a, b")[0] + 1, "slice": lambda: jax.ds(0, 2),
    "error": lambda: checkify.checkify(failing_check)(-1.0)[0],
    "checked": lambda: checkify.checkify(jnp.sin),
    "unravel": lambda: ravel_pytree({"a": X})[1],
    "mixed": lambda: ravel_pytree({"a": X, "b": 1})[1],
    **{kind: lambda kind=kind: getattr(sparse, kind).fromdense(X)
       for kind in ("BCOO", "BCSR", "COO", "CSR")},
    "structure": lambda: jax.tree.structure([1]), "path": lambda: jax.tree_util.DictKey("a"),
    "rotation": jax.scipy.spatial.transform.Rotation.identity, "mgrid": lambda: jnp.mgrid,
    "vectorized": lambda: jnp.vectorize(abs), "ufunc": lambda: jnp.add, "r_": lambda: jnp.r_,
    "density": lambda: jax.scipy.stats.gaussian_kde(jnp.arange(6.0)), "flags": lambda: jax.config,
    "named": lambda: jax.named_scope("a"), "flag": lambda: jax.enable_x64(False),
    "initializer": lambda: jax.nn.initializers.normal(), "stand-in": lambda: pallas,
    "partial": lambda: jax.tree_util.Partial(abs), "optimizer": lambda: optimizers.sgd(1.0),
    "cost of a program": lambda: roofline.roofline(jnp.sin)(X)[1],
}
OPERATORS = ("__call__ __getitem__ __setitem__ __delitem__ __add__ __mul__ __matmul__ __pow__ "
             "__lt__ __eq__ __len__ __iter__ __enter__ __contains__ __hash__ __bool__ __int__")
ENDING = {"delete", "clear_cache", "parse_flags_with_absl", "config_with_absl", "update"}


def members(value):
    if not isinstance(value, types.ModuleType):
        yield from [name for name in dir(value) if name[0] != "_" and name not in ENDING]
    yield from [name for name in OPERATORS.split() if hasattr(type(value), name)]
    yield "no_such_name"


def survey_of_returned():
    failed, seen = {}, 0
    for name, make in RETURNED.items():
        value = make()
        for member in members(value):
            for given in ([], ["a"], [None], ["a", "a"], [object(), {}], [None] * 3):
                def call(value=value, member=member, given=given):
                    found = getattr(value, member)
                    return found(*given) if callable(found) else None

                frames = internal_frames(call)
                seen += frames is not None
                if frames:
                    failed[f"{name}.{member}"] = frames
    return failed, seen


@pytest.mark.parametrize("kind", ["", "_of_returned"])
def test_nothing_public_shows_frames_of_the_library(kind, tmp_path):
    """Nor do functions that functions return, and methods of the objects. In a process of its own,
    as some calls register what they are given, or write files."""
    code = f"import json, tests.test_guards as here; print(json.dumps(here.survey{kind}()))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=tmp_path, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    failed, seen = json.loads(done.stdout.splitlines()[-1])
    assert failed == {}
    assert seen > (3000 if kind else 10_000)


@pytest.mark.parametrize("call", [
    lambda: X.reshape(7), lambda: X.mT.astype("zz"), lambda: X[{}], lambda: X @ jnp.ones(7),
    lambda: X.at[0].set("a"), lambda: X.foo, lambda: float(X), lambda: [1][X], lambda: 3 in X,
    lambda: KEY[3, 4], lambda: jax.new_ref(X)[9, 9, 9], lambda: LOWERED.compile("x"),
    lambda: LOWERED.compile()("a"), lambda: jax.vjp(jnp.sin, 1.0)[1](3, 4),
    lambda: jax.linearize(jnp.sin, 1.0)[1]("a"), lambda: jax.NamedSharding(MESH, 5),
    lambda: jax.custom_gradient(3)(X), lambda: jnp.no_such_name, lambda: jnp.add.at(X, 1),
    lambda: jax.config.update("a", 1), lambda: jax.enable_x64("a"), lambda: jax.set_mesh(3),
    lambda: jax.named_scope(3).__enter__(), lambda: jax.jit(jnp.sin).explain(3),
    lambda: jax.nn.initializers.he_normal()(KEY, (2,)), lambda: jax.tree.unflatten(3, 4),
    lambda: jax.export.export(jax.jit(jnp.sin))(1.0).call("a"),
])
def test_methods_results_and_attributes_show_no_frames_of_the_library(call):
    assert internal_frames(call) == []


@pytest.mark.parametrize("name", [
    "pyjx.extend.bindings", "pyjx.compat.core", "pyjx.compat.mlir_values", "pyjx.compat.pickles",
    "pyjx.compat", "pyjx.ffi", "pyjx.interpreters.mlir", "pyjx.numpy", "pyjx.random.keys",
    *[f"pyjx.experimental.array_serialization.{m}" for m in ("serialization", "tensorstore_impl")],
])
def test_modules_that_look_names_up_show_no_frames_where_there_is_none(name):
    module = importlib.import_module(name)
    assert internal_frames(lambda: module.no_such_name) == []


def test_errors_of_the_users_own_show_where_they_were_raised():
    def fails(_):
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        jax.tree.map(fails, [1])
    names = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert names == [inspect.currentframe().f_code.co_name, "fails"]


def test_frames_of_pythons_library_show_where_the_user_calls_it():
    def reads(_):
        return json.loads("{")

    for call in (lambda: jax.jit(reads)(1), lambda: jax.tree.map(reads, [1])):
        with pytest.raises(json.JSONDecodeError) as caught:
            call()
        names = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
        assert names[-4:] == ["reads", "loads", "decode", "raw_decode"]
    assert internal_frames(lambda: jax.tree.map(json.loads, ["{"])) == []


def test_the_call_is_noted_where_the_message_names_no_function():
    with pytest.raises(TypeError) as caught:
        jax.lax.conv(1, 2, 3, padding=4)
    assert caught.value.__notes__[0].startswith("The call was conv(lhs=1, rhs=2, window_strides=3")


# -- the handler -----------------------------------------------------------------------------------


def handles(x, mode=""):
    total = 0
    try:
        with contextlib.suppress(KeyError):
            total = 1 / x
            total += sum([k for k in (3, 4) if k / x])
            if mode == "lost":
                raise KeyError
    except ZeroDivisionError:
        try:
            {}[1]
        except KeyError:
            total = 7
        if mode == "again":
            raise
    finally:
        total += 1
    if mode == "define":
        return lambda: x + "a"
    return total + "a" if mode == "after" else total


def guarded_copy(function):
    copy = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                              function.__defaults__, function.__closure__)
    copy.__module__ = "pyjx.of_this_test"
    return guards.guard(copy)


@pytest.mark.parametrize("mode", ["", "lost", "again", "after"])
@pytest.mark.parametrize("x", [0, 2, "a"])
def test_a_guarded_function_does_what_it_did(mode, x, monkeypatch):
    seen = []
    monkeypatch.setattr(guards.leaving, "work", seen.append)

    def outcome(function):
        try:
            return function(x, mode)
        except Exception as error:
            assert sys.exception() is error
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__)][1:]
            return type(error), str(error), type(error.__context__), lines

    expected = outcome(handles)
    assert seen == []
    assert outcome(guarded_copy(handles)) == expected
    assert len(seen) == isinstance(expected, tuple)
    assert sys.exception() is None


def test_a_call_that_succeeds_runs_the_same_instructions():
    copy = guarded_copy(handles)
    assert copy.__code__.co_code.startswith(handles.__code__.co_code)
    assert copy(2) == handles(2)
    assert guards.guard(copy).__code__ is copy.__code__


def test_functions_within_functions_are_guarded(monkeypatch):
    seen = []
    monkeypatch.setattr(guards.leaving, "work", seen.append)
    inner = guarded_copy(handles)(2, "define")
    with pytest.raises(TypeError):
        inner()
    assert len(seen) == 1


def test_functions_with_arguments_given_are_guarded():
    copy = types.FunctionType(handles.__code__, handles.__globals__)
    copy.__module__ = "pyjx.of_this_test"
    given = guards.guard(functools.partial(copy, 2))
    assert guards.is_guarded(given.func.__code__)
    assert given("") == handles(2, "")


def test_code_with_many_constants():
    many = eval(f"lambda x: [{', '.join([f'x + {i}.5' for i in range(400)])}]")
    copy = guarded_copy(many)
    assert copy(1) == many(1)
    with pytest.raises(TypeError, match="unsupported operand"):
        copy(None)


def test_what_ends_a_process_passes(monkeypatch):
    monkeypatch.setattr(guards.leaving, "work", lambda error: pytest.fail("of no error"))
    with pytest.raises(SystemExit):
        guarded_copy(lambda: (_ for _ in ()).throw(SystemExit))()


def test_generators_and_functions_of_others_stay_as_they_are():
    def gives():
        yield 1

    codes = gives.__code__, handles.__code__
    gives.__module__ = "pyjx.of_this_test"
    guards.guard(gives)
    guards.guard(handles)
    assert (gives.__code__, handles.__code__) == codes


def test_the_constant_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(guards.leaving)) is guards.leaving


def traced_lines(function, *args):
    """The lines that a debugger is told, of the frames of the function's file."""
    seen = []

    def trace(frame, event, _):
        if frame.f_code.co_filename == function.__code__.co_filename:
            seen.append((event, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(Exception):
            function(*args)
    finally:
        sys.settrace(before)
    return seen


@pytest.mark.parametrize("mode", ["lost", "again", "after"])
@pytest.mark.parametrize("x", [0, "a"])
def test_debuggers_are_told_the_lines_of_an_error_that_passes(mode, x):
    own = traced_lines(handles, x, mode)
    seen = traced_lines(guarded_copy(handles), x, mode)
    assert None not in [line for _, line in seen]
    assert [pair for pair in seen if pair[0] != "line"] == [
        pair for pair in own if pair[0] != "line"]


def test_the_stack_can_be_read_while_an_error_is_looked_at():
    class Curious(Exception):
        def add_note(self, _):
            self.lines = [frame.lineno for frame in inspect.stack()]

    with pytest.raises(Curious) as caught:
        jax.tree.map(lambda _: (_ for _ in ()).throw(Curious), [1])
    assert None not in caught.value.lines


@pytest.mark.parametrize("change", [
    lambda m: m.setattr(sys, "version_info", (3, 14)),
    lambda m: m.setitem(opcode.opmap, "UNARY_NEGATIVE", opcode.opmap["UNARY_NOT"]),
    lambda m: m.delitem(opcode.opmap, "PUSH_EXC_INFO"),
])
def test_functions_stay_as_they_are_where_python_has_other_instructions(change, monkeypatch):
    assert guards._tried()
    change(monkeypatch)
    assert not guards._tried()
    monkeypatch.setattr(guards, "_handler", b"")
    assert guarded_copy(handles).__code__ is handles.__code__


def test_code_of_another_file_that_is_equal_stays_of_that_file():
    first, second = [
        compile("def f(x):\n    return g(x)\n", file, "exec").co_consts[0] for file in "ab"]
    assert first == second
    assert guards._code_with_handler(first).co_filename == "a"
    assert guards._code_with_handler(second).co_filename == "b"


# -- errors of classes that refuse to be changed ---------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Unchangeable(Exception):
    value: int


class Refuses(Exception):
    def __setattr__(self, name, value):
        raise RuntimeError(name)

    def add_note(self, note):
        raise RuntimeError(note)

    def with_traceback(self, tb):
        raise RuntimeError


@pytest.mark.parametrize("make", [lambda: Unchangeable(3), Refuses])
@pytest.mark.parametrize("mode", ["quiet_remove_frames", "remove_frames", "tracebackhide"])
@pytest.mark.parametrize("call", [
    lambda f: jax.tree.map(f, [1]), lambda f: jax.grad(f)(1.0), lambda f: jax.vjp(f, 1.0)])
def test_errors_that_cannot_be_changed_come_out_as_they_are(make, mode, call):
    def user(_):
        try:
            jnp.ones(3)["a"]
        except Exception:
            raise make()  # noqa: B904  with a context to be filtered

    with configuration.traceback_filtering(mode), pytest.raises(
            (Unchangeable, Refuses)) as caught:
        call(user)
    if mode == "quiet_remove_frames":
        assert [f.name for f in traceback.extract_tb(caught.value.__traceback__)][2:] == ["user"]


def test_errors_near_the_limit_of_recursion_come_out_as_they_are():
    class Mine(Exception):
        pass

    def leaf(_):
        ran.append(1)
        raise Mine

    def nested(depth):
        return nested(depth - 1) if depth else jax.tree.map(leaf, [1])

    found, ran = [], []

    def all_depths():
        room = sys.getrecursionlimit() - len(inspect.stack(0))
        for depth in range(room - 60, room):
            ran.clear()
            try:
                nested(depth)
            except Exception as error:
                found.append((bool(ran), type(error)))

    # In a thread, which counts from the start what is called.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(all_depths).result()
    assert {(True, Mine), (False, RecursionError)} <= {*found}
    # In Python 3.11 there is one depth at which the handler cannot call anything.
    assert found.count((True, RecursionError)) <= (sys.version_info < (3, 12))
