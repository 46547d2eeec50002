"""Errors of much used functions: the operation, the argument, what was expected, and one cure."""

import functools
import inspect
import operator
import pickle
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, random
from pyjx.experimental import checkify, mesh_utils
from pyjx.flatten_util import ravel_pytree

X = np.arange(6, dtype=np.float32).reshape(2, 3)
KEY = random.key(0)

@jax.custom_vjp
def with_rule(x):
    return x * x


def pair(x):
    return (x * x, x), x


with_rule.defvjp(pair, lambda x, ct: (2 * x * ct,))

CASES = {
    "one_hot": (lambda: jax.nn.one_hot(X.astype(int), 3.5), TypeError,
                "one_hot: num_classes must be an integer, got 3.5: 'float' object cannot be"),
    "one_hot-negative": (lambda: jax.nn.one_hot(X.astype(int), -1), TypeError,
                         "one_hot: num_classes, the size of the new axis, must be nonnegative"),
    "split": (lambda: random.split(KEY, 2.5), TypeError, "split: num must be an integer, got 2.5"),
    "split-None": (lambda: random.split(None), TypeError,
                   "split: unexpected PRNG key type <class 'NoneType'>. A key is made of a seed"),
    "fold_in": (lambda: random.fold_in(KEY, "a"), TypeError,
                "fold_in: data must be an integer, got 'a'"),
    "key": (lambda: random.key("a"), TypeError, "PRNG key seed must be an integer; got 'a'"),
    "normal": (lambda: random.normal(0, (2,)), TypeError,
               "If that is a seed, make a key of it: jax.random.key(0)"),
    "uniform-dtype": (lambda: random.uniform(KEY, (2,), 3, 1), TypeError,
                      "as a data type in uniform. uniform takes a dtype there, such as 'float32'; "
                      "give what else it takes by keyword"),
    "uniform-bound": (lambda: random.uniform(KEY, minval=1, maxval=(2, 3)), TypeError,
                      "uniform: maxval must be a number or an array, got (2, 3)"),
    "randint-order": (lambda: random.randint(KEY, 0, 10, (3,)), TypeError,
                      "randint: maxval must be a number or an array, got (3,) of type <class "
                      "'tuple'>. The order of the arguments is randint(key, shape, minval, maxv"),
    "permutation": (lambda: random.permutation(KEY, 2.5), TypeError,
                    "permutation: x must be an integer or at least 1-dimensional, got a scalar of"),
    "at-set": (lambda: jnp.asarray(X).at[0].set(jnp.ones(2)), ValueError,
               "must broadcast to x[index], of shape (3,) here"),
    "at-mode": (lambda: jnp.asarray(X).at[0].set(1, mode="foo"), ValueError,
                "Unknown gather mode \"foo\". The modes are 'clip', 'fill', 'drop'"),
    "float-index": (lambda: jnp.asarray(X)[1.5], TypeError,
                    "got indexer with type float64. Round it and make it integers"),
    "concatenate": (lambda: jnp.concatenate(X, X), TypeError,
                    "concatenate: axis must be an integer, but an array or a tuple was given"),
    **{name: (functools.partial(getattr(jnp, name), X, X), TypeError,
              f"The arrays are one sequence, as in {name}((a, b)).")
       for name in ("vstack", "hstack", "dstack")},
    "vstack-traced": (lambda: jax.jit(jnp.vstack)(X, X), ValueError,
                      "The arrays are one sequence, as in vstack((a, b))."),
    "where-two": (lambda: jnp.where(X > 0, X), TypeError,
                  "got <class 'NoneType'> at position 2. Give y too, as in where(condition, x, y)"),
    "histogram-negative": (lambda: jnp.histogram(X, bins=-1), IndexError,
                           "histogram: bins must be a number of bins, which is not negative"),
    "histogram-negative-two": (lambda: jnp.histogram(X, bins=-2), ValueError,
                               "histogram: bins must not be negative, got -2"),
    "histogram-float": (lambda: jnp.histogram(X, 2.5), TypeError,
                        "histogram: bins must be an integer, got 2.5"),
    "arange-int": (lambda: jnp.arange(0, 10, 0), ZeroDivisionError,
                   "arange: step must not be 0: division by zero"),
    "arange-float": (lambda: jnp.arange(0, 10, 0.0), ZeroDivisionError, "step must not be 0"),
    "jit-static": (lambda: jax.jit(abs, static_argnums="x"), TypeError,
                   "static_argnums must be positions of arguments, integers, got 'x': 'str' obj"),
    "jit-donate": (lambda: jax.jit(abs, donate_argnums=1.5), TypeError,
                   "The arguments of fun come in a call of their own"),
    "polyfit": (lambda: jnp.polyfit(jnp.ones(3), jnp.ones(4), 1), TypeError,
                "expected x and y to have same length, got shapes (3,) and (4,)"),
    "take-floats": (lambda: jnp.take(X, X), ValueError,
                    "take: indices must have an integer type, got float32"),
    "resize": (lambda: jax.image.resize(X, (4, 4), "nearst"), ValueError,
               "Unknown resize method \"nearst\". The methods are 'nearest', 'linear', "),
    "norm-matrix": (lambda: jnp.linalg.norm(X, ord="fr"), ValueError,
                    "Invalid order 'fr' for matrix norm. The orders are 'fro', 'nuc', 1, -1, 2, "),
    "norm-vector": (lambda: jnp.linalg.norm(X[0], ord="fr"), ValueError,
                    "Invalid order 'fr' for vector norm. It is a number or infinity"),
    "pad-mode": (lambda: jnp.pad(X, 1, mode="mirror"), NotImplementedError,
                 "'mirror' for np.pad. The modes are 'constant', 'empty', 'edge', 'wrap', "),
    "config": (lambda: jax.config.update("jax_enable_x32", True), AttributeError,
               "Unrecognized config option: jax_enable_x32. Similar ones are jax_enable_x64"),
    "config-far": (lambda: jax.config.update("foo", True), AttributeError,
                   "Unrecognized config option: foo. python -m pyjx explain lists them."),
    "sum": (lambda: jnp.sum(X, axis=1.5), TypeError, "axis must be an integer, got 1.5"),
    "zeros": (lambda: jnp.zeros(2, 3), TypeError,
              "give the shape as one tuple, as in zeros((n, 3))"),
    "add": (lambda: jnp.asarray(X) + jnp.ones(4), ValueError,
            "add: Incompatible shapes for broadcasting: shapes=[(2, 3), (4,)]"),
    "where": (lambda: jnp.where(X > 0, X, jnp.ones(4)), ValueError,
              "where: Incompatible shapes for broadcasting (condition, x and y)"),
    "linspace": (lambda: jnp.linspace(0, 1, 2.5), TypeError,
                 "linspace: num must be an integer, got 2.5"),
    "eye": (lambda: jnp.eye("a"), TypeError, "eye: N must be an integer, got 'a'"),
    "array-split": (lambda: jnp.split(X, 4), ValueError,
                    "split was to cut axis 0, of size 2, in 4 parts"),
    "percentile": (lambda: jnp.percentile(X, [50]), TypeError,
                   "percentile requires ndarray or scalar arguments, got <class 'list'> at "
                   "position 1"),
    "nanmedian": (lambda: jnp.nanmedian([1.0]), TypeError, "nanmedian requires ndarray"),
    "median-out": (lambda: jnp.median(X, out=X), ValueError, "jax.numpy.median does not support"),
    "quantile-method": (lambda: jnp.quantile(X, 0.5, method="best"), ValueError,
                        "quantile: method can only be 'linear', 'lower', 'higher', 'midpoint'"),
    "det": (lambda: jnp.linalg.det(X), ValueError,
            "Argument to det() must have shape [..., n, n], got (2, 3)"),
    "symmetric_product": (lambda: jax.lax.linalg.symmetric_product(X, jnp.eye(3)), ValueError,
                          "a rectangular matrix of shape (n, m) and a square matrix of shape (n, n)"
                          ". Got shapes (2, 3) and (3, 3)."),
    "solve-vector": (lambda: jnp.linalg.solve(jnp.eye(4), jnp.ones(3)), ValueError,
                     "got shapes (4, 4) and (3,)"),
    "cho_solve": (lambda: jax.scipy.linalg.cho_solve(jnp.eye(3), jnp.ones(3)), ValueError,
                  "cho_solve: c_and_lower must be the pair that cho_factor(a) returns, got"),
    "lu_solve": (lambda: jax.scipy.linalg.lu_solve(None, jnp.ones(3)), TypeError,
                 "lu_solve: lu_and_piv must be the pair that lu_factor(a) returns, got NoneType"),
    "where-jit": (lambda: jax.jit(jnp.where)(X), jax.errors.ConcretizationTypeError,
                  "give their number as size, or x and y."),
    "at-call": (lambda: jnp.asarray(X).at(0), TypeError, "as in x.at[index].set(value)"),
    "at-item": (lambda: jnp.asarray(X).at.__setitem__(0, 3), TypeError,
                "Use x = x.at[index].set(value)"),
    "at-method": (lambda: jnp.asarray(X).at.set(3), AttributeError,
                  "index it first, as in x.at[index].set(...)"),
    "at-iadd": (lambda: operator.iadd(jnp.asarray(X).at[0], 3), TypeError,
                "unsupported operand type(s) for +=: '_IndexUpdateRef' and 'int'. x.at[index] is "
                "no array: x.at[index].get() is one, and for x[index] += y there is x = x.at["),
    "reshape-unknown": (lambda: jnp.reshape(X, (-1, -1)), TypeError,
                        "can only specify one unknown axis size with a `-1` value, got (-1, -1)"),
    "einsum-count": (lambda: jnp.einsum("ij,jk", X), ValueError,
                     "Number of einsum subscripts, 2, must be equal to the number of operands, 1."),
    "einsum-arrays": (lambda: jnp.einsum(jnp.asarray(X), jnp.asarray(X)), ValueError,
                      "einsum: subscripts are a string, or follow each operand as a list of"),
    "like-strings": (lambda: jnp.zeros_like(np.array(["a"])), TypeError,
                     "with dtype <U1 is not a valid JAX array type"),
    "promoted-arrays": (lambda: jnp.promote_types(X, "int8"), TypeError,
                        "Cannot construct a dtype from an array"),
    "distribution-complex": (lambda: jax.scipy.stats.expon.pdf(X * 1j), TypeError,
                             "does not support complex-valued inputs."),
    "axis-traced": (lambda: jax.jit(lambda i: jnp.sum(X, i))(0),
                    jax.errors.ConcretizationTypeError, "decide the shape of its result."),
    "pickled": (lambda: jax.jit(pickle.dumps)(1.0), jax.errors.ConcretizationTypeError,
                "a traced value cannot be pickled."),
    "print-name": (lambda: jax.debug.print("{x} {y}", x=1), KeyError,
                   "the format asks for name 'y', and given were 0 by position and ['x']"),
    "print-position": (lambda: jax.debug.print("{} {}", 1), IndexError,
                       "the format asks for index 1, and given were 1 by position"),
    "grad-pair": (lambda: jax.grad(lambda x: (x, x))(1.0), TypeError, "use has_aux=True"),
    "grad-None": (lambda: jax.grad(lambda x: None)(1.0), TypeError,
                  "Output was None. The function must return its value"),
    "grad-list": (lambda: jax.grad(lambda x: [x])(1.0), TypeError, "use jax.jacobian"),
    "grad-argnums": (lambda: jax.grad(lambda x: x, argnums="x"), TypeError,
                     "grad: argnums must be a sequence of integers"),
    "grad-keyword": (lambda: jax.grad(lambda x: x)(x=1.0), TypeError,
                     "argnums counts from 0, without arguments given by keyword"),
    "checkpoint": (lambda: jax.checkpoint(lambda x: x, policy="dots"), TypeError,
                   "checkpoint: policy must be None or a function"),
    "checkpoint-maker": (
        lambda: jax.checkpoint(lambda x: x, policy=jax.checkpoint_policies.save_only_these_names),
        TypeError, "save_only_these_names makes a policy and must be called"),
    "vmap": (lambda: jax.vmap(lambda x, y: x)(X, 1.0), ValueError,
             "It is argument y; where it is the same for all examples, its entry of in_axes is"),
    "dictionary-keys": (lambda: jax.tree.map(abs, [{1: 1, "a": 2}]), ValueError,
                        "these [1, 'a'] cannot be ('<' not supported between instances of 'str' and"
                        " 'int'). Let all be of one type, such as str."),
    "traced-key": (lambda: jax.jit(lambda x: {x: 1})(1.0), TypeError,
                   "A traced value cannot be a key of a dictionary or in a set"),
    "traced-member": (lambda: jax.grad(lambda x: x in {1, 2})(1.0), TypeError,
                      "let names or positions be the keys, and to look it up index an array by it"),
    "map-None": (lambda: jax.tree.map(lambda a, b: a, {"a": None}, {"a": 2}), ValueError,
                 "None is a node without leaves; is_leaf=lambda x: x is None makes it a leaf."),
    "map-to-None": (lambda: jax.tree.map(lambda a, b: a, [[1]], [None]), ValueError,
                    "but the full tree has a value of type\n    <class 'NoneType'>.\nThe full"),
    "spec-axis": (lambda: jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("y")), ValueError,
                  "is not found in mesh: ('x',). A spec names axes of its mesh, or None."),
    "arange-text": (lambda: jnp.arange("3"), TypeError,
                    "arange: start, stop and step must be numbers, got '3'."),
    "arange-texts": (lambda: jnp.arange(0, "3"), TypeError, "must be numbers, got 0, '3'."),
    "index-float": (lambda: jnp.asarray(X)[1.0], TypeError, "or int(i) for a number."),
    "key-iterated": (lambda: list(KEY), TypeError,
                     "made of it by split: first, second = jax.random.split(key)."),
    "keys-unpacked": (lambda: jax.jit(tuple)(KEY), TypeError, "jax.random.split(key)"),
    "fold_in-swapped": (lambda: random.fold_in(3, KEY), TypeError,
                        "The key comes first: fold_in(key, ...)."),
    "normal-swapped": (lambda: random.normal((3,), KEY), TypeError,
                       "The key comes first: normal(key, ...)."),
    "raw-key-swapped": (lambda: random.normal((3,), random.PRNGKey(0)), TypeError,
                        "The key comes first: normal(key, ...)."),
    "choice-swapped": (lambda: random.choice(X, KEY), TypeError,
                       "The key comes first: choice(key, ...)."),
    "devices": (lambda: jax.make_mesh((999,), ("x",)), ValueError,
                "The CPU is 999 devices with JAX_NUM_CPU_DEVICES=999 in the environment, or by jax."
                "config.update('jax_num_cpu_devices', 999) before anything is computed."),
    "pmap-devices": (lambda: jax.pmap(abs)(np.ones(999)), ValueError,
                     "JAX_NUM_CPU_DEVICES=999 in the environment"),
    "mesh_utils-devices": (lambda: mesh_utils.create_device_mesh((999,)), ValueError,
                           "JAX_NUM_CPU_DEVICES=999 in the environment"),
    "devices-few": (lambda: jax.config.update("jax_num_cpu_devices", -3), ValueError,
                    "jax_num_cpu_devices must be a number of devices, 1 or more, or -1 for"),
    "devices-none": (lambda: jax.config.update("jax_num_cpu_devices", 0), ValueError,
                     "jax_num_cpu_devices must be a number of devices, 1 or more, or -1 for"),
    "einsum-three": (lambda: jnp.einsum("ij,jk,kl", X, X.T, jnp.ones((4, 5))), ValueError,
                     "Operand 1, 'jk' of shape (3, 2), has size 2 along 'k', and operand 2, 'kl' of"
                     " shape (4, 5), has 4."),
    "einsum-one": (lambda: jnp.einsum("ij,jk,kj", X, X.T[:, :1], jnp.ones((4, 5))), ValueError,
                   "Operand 0, 'ij' of shape (2, 3), has size 3 along 'j', and operand 2, 'kj' of "
                   "shape (4, 5), has 5."),
    "dtype-misspelt": (lambda: jnp.zeros(3, "flaot32"), TypeError,
                       "data type 'flaot32' not understood in zeros. Did you mean 'float32'?"),
    "dtype-misspelt-cast": (lambda: jnp.asarray(X).astype("bfloat61"), TypeError,
                            "Did you mean 'bfloat16'?"),
    "list": (lambda: jnp.sum([1, 2]), TypeError, "That is the argument a. Make an array of"),
    "take-mode": (lambda: jnp.take(X, 1, mode="bad"), ValueError,
                  "The modes are 'fill', 'clip' and 'wrap'."),
    "cond-array": (lambda: lax.cond(X > 0, abs, abs, X), TypeError,
                   "jnp.where(pred, x, y) chooses element by element."),
    "unravel": (lambda: ravel_pytree({"a": X, "b": 1.0})[1](jnp.ones(3)), ValueError,
                "unravel: Sum of sizes 7 must be equal to dimension 0 of the operand shape [3]: "
                "expected is a vector of 7 elements, for the leaves of shapes (2, 3), ()."),
    "unravel-matrix": (lambda: ravel_pytree({"a": X})[1](X), ValueError,
                       "operand shape [2, 3]: expected is a vector of 6 elements"),
    "text-as-number": (lambda: jnp.array([1, "b"], float), ValueError,
                       "could not convert string to float: 'b'"),
    "segments": (lambda: jax.jit(jax.ops.segment_max)(X[0], jnp.arange(3)),
                 jax.errors.ConcretizationTypeError, "segment_max() `num_segments` argument. Give "
                 "it as a static number: segment_max(data, segment_ids, num_segments=n).\n"),
    "bins": (lambda: jax.jit(lambda n: jnp.histogram(X, n))(3), jax.errors.ConcretizationTypeError,
             "their number must be static, or give the edges as an array.\n"),
    "segments-traced": (lambda: jax.jit(jax.ops.segment_sum)(X[0], jnp.arange(3), 3),
                        jax.errors.ConcretizationTypeError, "static_argnames"),
    "size-traced": (lambda: jax.jit(lambda n: jnp.nonzero(X, size=n))(3),
                    jax.errors.ConcretizationTypeError, "static_argnames"),
    "shape-of-data": (lambda: jnp.zeros(jnp.ones(3)), TypeError, "Did you mean its .shape?"),
    "text-as-bfloat16": (lambda: jnp.array(["b"], jnp.bfloat16), ValueError,
                         "could not convert string to float: 'b'"),
    "grad-in-vmap": (lambda: jax.vmap(jax.grad(jnp.argmax))(X), TypeError,
                     "grad requires real-valued outputs (output dtype that is a sub-dtype of"),
    "rule-output": (lambda: jax.grad(with_rule)(1.0), TypeError, "Output was (float32[], 1.0). "
                    "That is what pair at "),
    "eval-shape": (lambda: jax.eval_shape(abs, "a"), TypeError, "or bind it by functools.partial"),
    "one-start": (lambda: lax.dynamic_slice(X[0], 1, (2,)), ValueError,
                  "must be a 1D sequence, got a scalar: give one for each axis"),
    "bound": (lambda: jax.random.uniform(jax.random.key(0), (3,), maxval=X[:, 0]), TypeError,
              "(3,), (2,), the second of maxval."),
    "keys-beside-numbers": (lambda: jnp.stack([jax.random.key(0), 1.0]), ValueError,
                            "Keys promote to their own dtype alone."),
    "vmap-out": (lambda: jax.vmap(lambda x: x, out_axes=3)(X), ValueError,
                 "vmap out_axes: axis 3 is out of bounds for array of dimension 2"),
}


@pytest.mark.parametrize("name", CASES)
def test_messages(name):
    call, error, message = CASES[name]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert message in str(caught.value)


def no_pair(carry, x):
    return carry


def grows(carry, *_):
    return (carry, carry), None


def wider(carry, *_):
    return jnp.stack([carry, carry])


def always_two(*_):
    return True, True


@pytest.mark.parametrize(("fun", "call"), [
    (no_pair, lambda: lax.scan(no_pair, 0.0, X)), (grows, lambda: lax.scan(grows, 0.0, X)),
    (wider, lambda: lax.scan(lambda c, x: (wider(c), x), 0.0, X)),
    (wider, lambda: lax.while_loop(lambda c: True, wider, 0.0)),
    (always_two, lambda: lax.while_loop(always_two, abs, 0.0)),
    (no_pair, lambda: lax.while_loop(functools.partial(no_pair, 3), abs, 0.0)),
    (wider, lambda: lax.fori_loop(0, 3, lambda i, c: wider(c), 0.0)),
    (grows, lambda: lax.fori_loop(0, 3, grows, 0)),
    (grows, lambda: lax.cond(True, grows, abs, 0.0))])
def test_loops_and_branches_name_the_users_function(fun, call):
    with pytest.raises(TypeError) as caught:
        call()
    place = f"at {__file__}:"
    assert place in str(caught.value)
    assert f"{fun.__name__} {place}" in str(caught.value) or f"<lambda> {place}" in str(
        caught.value)


def wrong_number(result):
    def one_of_two(_, g):
        return result(g)

    f = jax.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, None), one_of_two)
    return f, one_of_two.__code__.co_firstlineno


@pytest.mark.parametrize(("result", "got"), [
    (lambda g: (g,), "one of 1: (float32[],)"), (lambda g: [g] * 3, "one of 3: "),
    (lambda g: g, "float32[]"), (lambda g: {"x": g}, "{'x': float32[]}"),
    (lambda g: (), "one of 0")])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_wrong_number_of_cotangents_is_told_with_the_rule_and_both_numbers(result, got, wrap):
    f, line = wrong_number(result)
    with pytest.raises(TypeError, match=r"^Custom VJP bwd rule must produce an output") as caught:
        wrap(jax.grad(f))(1.0, 2.0)
    assert f"\nThe rule one_of_two at {__file__}:{line}, of the function <lambda> at " in str(
        caught.value)
    assert ("is to return a tuple of 2, one for each argument that is differentiated; got "
            f"{got}") in str(caught.value)


def test_a_check_in_a_compiled_function_is_told_with_its_line_and_a_cure():
    def checks(x):
        checkify.check(x > 0, "must be positive")
        return x

    with pytest.raises(ValueError, match=r"Cannot abstractly evaluate a checkify\.check") as caught:
        jax.jit(checks)(1.0)
    assert "error, out = jax.jit(checkify.checkify(f))(x)" in str(caught.value)
    place = f"{__file__}:{checks.__code__.co_firstlineno + 1}:8"
    assert place in "".join(caught.value.__notes__)


def test_the_spec_of_a_sharding_is_not_told_by_a_function_of_the_library():
    with pytest.raises(ValueError, match="Resource axis") as caught:
        jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("y"))
    assert "check_spec" not in "".join(caught.value.__notes__)


@pytest.mark.parametrize("call", [
    lambda: jax.jit(jnp.sin).lower("a"), lambda: jax.jit(jnp.nonzero)(X),
    lambda: jax.vjp(jnp.sin, 1.0)[1]((3.0, 4.0)), lambda: lax.cond(True, jnp.sin, jnp.shape, X),
    lambda: lax.scan(jnp.add, 0.0, X), lambda: jax.pure_callback(jnp.sin, np.zeros(7), X),
    lambda: lax.while_loop(jnp.sin, jnp.sin, X), lambda: jax.jit(jnp.reshape)(X, 3)])
def test_functions_of_the_library_are_named_without_its_files(call):
    with pytest.raises((TypeError, ValueError, jax.errors.JaxRuntimeError)) as caught:
        call()
    assert str(Path(jax.__file__).parent) not in str(caught.value)


@pytest.mark.parametrize("function", [
    jax.jit, jax.shard_map, jax.smap, jax.enable_x64, jax.ds, lax.cond, lax.switch,
    jax.tree.reduce, jax.sharding.no_collectives])
def test_signatures_show_what_is_not_given(function):
    assert "0x" not in str(inspect.signature(function))


@pytest.mark.parametrize(("call", "line"), [
    *[(kind, f"The problem arose with the `{kind.__name__}` function. To change its "
       f"dtype, try using `x.astype({kind.__name__})`.") for kind in (int, float, complex)],
    *[(operator.methodcaller(name), f"The problem arose with the `{name}` function.")
      for name in ("tolist", "tobytes", "item")],
])
def test_what_needs_a_value_says_so_and_casts_say_how_a_dtype_changes(call, line):
    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        jax.jit(call)(1)
    assert str(caught.value).split("\n")[1] == line


@pytest.mark.parametrize("call", [
    lambda axis: jnp.sum(X, axis), lambda axis: jnp.expand_dims(X, axis),
    lambda axis: jnp.flip(X, axis), lambda axis: jnp.trapezoid(X, axis=axis),
    lambda axis: jnp.partition(X, 1, axis), lambda axis: jnp.cross(X, X, axis=axis),
    lambda axis: jnp.roll(X, 1, axis), lambda axis: jnp.moveaxis(X, axis, 0),
    lambda axis: jnp.squeeze(X[None], axis), lambda axis: jnp.transpose(X, axis),
    lambda axis: jnp.unique(X, axis=axis, size=2), lambda axis: jnp.tile(X, axis)])
def test_traced_axes_are_said_to_be_traced(call):
    with pytest.raises(jax.errors.ConcretizationTypeError, match="decide the shape of its result"):
        jax.jit(call)(0)


@pytest.mark.parametrize(("name", "call"), [
    ("zeros", lambda s: jnp.zeros(3, out_sharding=s)),
    ("asarray", lambda s: jnp.asarray(jnp.asarray(X), out_sharding=s)),
    ("einsum", lambda s: jnp.einsum("ij->i", X, out_sharding=s)),
    ("matmul", lambda s: jnp.matmul(X, X.T, out_sharding=s)),
    ("repeat", lambda s: jnp.repeat(X, 2, out_sharding=s)),
    ("bincount", lambda s: jnp.bincount(X.astype(int)[0], out_sharding=s)),
    ("histogram", lambda s: jnp.histogram(X, out_sharding=s)),
    ("percentile", lambda s: jnp.percentile(X, 50, out_sharding=s)),
    ("reshape", lambda s: jnp.reshape(X, 6, out_sharding=s)),
    ("broadcast_to", lambda s: jnp.broadcast_to(X, (4, 2, 3), out_sharding=s)),
    ("x.at[index].get", lambda s: jnp.asarray(X).at[0].get(out_sharding=s)),
    ("x.at[index].add", lambda s: jnp.asarray(X).at[0].add(1, out_sharding=s)),
    ("x.at[index].apply", lambda s: jnp.asarray(X).at[0].apply(jnp.sin, out_sharding=s)),
    ("broadcast_in_dim",
     lambda s: jax.lax.broadcast_in_dim(X, (4, 2, 3), (1, 2), out_sharding=s)),
    ("broadcasted_iota", lambda s: jax.lax.broadcasted_iota("int32", (3,), 0, out_sharding=s)),
    ("empty", lambda s: jax.lax.empty((3,), "float32", out_sharding=s)),
    ("reshard", lambda s: jax.reshard(X, s)),
])
@pytest.mark.parametrize("given", [
    3, jax.sharding.SingleDeviceSharding(jax.devices()[0]), jax.devices()[0]],
    ids=["number", "single", "device"])
def test_an_out_sharding_is_over_a_mesh(name, call, given):
    with pytest.raises(TypeError) as caught:
        call(given)
    assert (f"`out_sharding` argument of {name} only supports instances of `NamedSharding` or "
            f"`PartitionSpec`. Got {given!r} of type: {type(given)}.") in str(caught.value)


@pytest.mark.parametrize(("name", "call"), [
    *[(name, functools.partial(getattr(jnp, name), 3)) for name in ("zeros", "ones", "empty")],
    *[(name, functools.partial(getattr(jnp, name), X)) for name in (
        "array", "asarray", "zeros_like", "ones_like")],
    ("full", functools.partial(jnp.full, 3, 1)),
    ("full_like", functools.partial(jnp.full_like, X, 1)),
    ("arange", functools.partial(jnp.arange, 3)), ("arange", functools.partial(jnp.arange, 1.0, 3)),
])
@pytest.mark.parametrize("sharding", [jax.P(), 3])
def test_a_device_and_an_out_sharding_exclude_each_other(name, call, sharding):
    with pytest.raises(ValueError, match=f"^{name}: Only one of `device` or `out_sharding` can be"):
        call(device=jax.devices()[0], out_sharding=sharding)


def test_values_of_an_update_are_named():
    for value in ("a", None):
        with pytest.raises((TypeError, ValueError)) as caught:
            jnp.asarray(X).at[0].set(value)
        assert "given to x.at[index].set" in caught.value.__notes__[0]


# -- JAX's words: tests/messages.txt ---------------------------------------------------------------

_ROWS = [row.split(" => ") for row in (Path(__file__).parent / "messages.txt").read_text(
    ).splitlines() if not row.startswith("#")]
_V = jnp.arange(3.0)


def _ragged(ragged, group, sizes=(2,)):
    dims = jax.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), ragged, group)
    return jax.lax.ragged_dot_general(jnp.ones((6, 2)), jnp.ones((2, 2, 3)), jnp.ones(sizes, int),
                                      dims)


_NAMES = {
    "jax": jax, "jnp": jnp, "lax": jax.lax, "np": np, "random": random, "P": jax.P,
    "operator": operator, "partial": functools.partial,
    "jx": lambda f, *args: jax.jit(f)(*args), "NamedSharding": jax.sharding.NamedSharding,
    "mesh": lambda n: jax.make_mesh((n,), ("x",)),
    "x": jnp.asarray(X), "v": _V, "i": jnp.arange(3), "sq": jnp.eye(3), "c": _V * 1j,
    "s": jnp.float32(1), "b": _V > 0, "u8": jnp.arange(3, dtype="uint8"), "k": KEY, "nx": X,
    "f0": np.zeros((), jax.dtypes.float0), "ragged": _ragged,
}


@pytest.mark.parametrize(("call", "error", "words"), _ROWS, ids=[row[0] for row in _ROWS])
def test_errors_have_the_type_and_the_words_of_jax(call, error, words):
    with pytest.raises(Exception) as caught:
        exec(call, dict(_NAMES))
    kind = getattr(jax.errors, error, None)  # whose own name is another one before jaxlib 0.8
    assert type(caught.value) is kind or type(caught.value).__name__ == error, repr(caught.value)
    assert words in " ".join(str(caught.value).split())


A, B = np.ones((3, 4), np.float32), np.ones((5, 6), np.float32)
_SUMMED = ("dot_general requires contracting dimensions to have the same shape, got (4,) and (5,). "
           "Axis 1 of the first operand, of shape (3, 4), has size 4, and axis 0 of the second, of "
           "shape (5, 6), has size 5; they are summed over together and must be equal.")
_AXES = "counted from the last one, axes must have one size or size 1."

WHOLE = {
    "add": (lambda: jnp.asarray(A) + jnp.ones(5), ValueError,
            "add: Incompatible shapes for broadcasting: shapes=[(3, 4), (5,)]. Axis -1 has the "
            f"sizes 4 and 5; {_AXES}"),
    "add-one-rank": (lambda: jnp.asarray(A) + B, TypeError,
                     "add got incompatible shapes for broadcasting: (3, 4), (5, 6). Axis -1 has "
                     f"the sizes 4 and 6; {_AXES}"),
    "where": (lambda: jnp.where(A > 0, jnp.ones(5), 0), ValueError,
              "where: Incompatible shapes for broadcasting (condition, x and y): "
              f"shapes=[(3, 4), (5,), ()]. Axis -1 has the sizes 4 and 5; {_AXES}"),
    "matmul": (lambda: jnp.asarray(A) @ B, TypeError, f"matmul: {_SUMMED}"),
    "dot": (lambda: jnp.dot(A, B), TypeError, f"dot: {_SUMMED}"),
    "tensordot": (lambda: jnp.tensordot(A, B, 1), TypeError, f"tensordot: {_SUMMED}"),
    "dot_general": (
        lambda: jax.lax.dot_general(A, B, (((1,), (0,)), ((), ()))), TypeError, _SUMMED),
    "einsum": (lambda: jnp.einsum("ij,jk", A, B), ValueError,
               "Size of label 'j' for operand 1 (5) does not match previous terms (4). Operand 0, "
               "'ij' of shape (3, 4), has size 4 along 'j', and operand 1, 'jk' of shape (5, 6), "
               "has 5."),
    "reshape": (lambda: jnp.asarray(A).reshape(5, 3), TypeError,
                "cannot reshape array of shape (3, 4) (size 12) into shape (5, 3) (size 15)"),
    "stack": (lambda: jnp.stack([A, B]), ValueError,
              "All input arrays must have the same shape. Got (3, 4), (5, 6)."),
    "grad-vector": (lambda: jax.grad(jnp.cumsum)(jnp.ones(3)), TypeError,
                    "Gradient only defined for scalar-output functions. Output had shape: (3,). "
                    "To get the gradient, reduce the output to a scalar with output.sum(), or use "
                    "jax.jacobian to differentiate a function with a non-scalar output. The "
                    "function is cumsum."),
    "vmap-sizes": (lambda: jax.vmap(lambda x, y: x + y)(jnp.ones(3), jnp.ones(4)), ValueError,
                   "vmap got inconsistent sizes for array axes to be mapped:\n"
                   "  * one axis had size 3: axis 0 of argument x of type float32[3];\n"
                   "  * one axis had size 4: axis 0 of argument y of type float32[4]\n"
                   "What all examples share, such as weights, has None in in_axes."),
    "squeeze": (lambda: jnp.squeeze(A, 0), ValueError,
                "squeeze: cannot select an axis to squeeze out which has size not equal to one, "
                "got shape=(3, 4) and dimensions=(0,)"),
    "psum": (lambda: jax.lax.psum(1.0, "i"), NameError,
             "psum: Found an unbound axis name: i. The named axes here are []; `vmap` or "
             "`pmap(..., axis_name='i')`, or `shard_map` over a mesh with such an axis, makes "
             "one."),
    "key": (lambda: random.normal(3), TypeError,
            "JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and "
            "dtype attributes. Got 3. If that is a seed, make a key of it: jax.random.key(3)."),
    "key-mapped": (lambda: jax.vmap(random.normal)(random.PRNGKey(0)), TypeError,
                   "JAX encountered invalid PRNG key data: expected key_data.ndim >= 1; got ndim=0."
                   " A raw key has the shape (2,): to map over keys, split one by "
                   "jax.random.split(key, n)."),
    "key-int32": (lambda: random.normal(jnp.array([1, 2])), TypeError,
                  "JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got "
                  "dtype=int32. Keys are made by jax.random.key(seed)."),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_messages(name):
    call, error, message = WHOLE[name]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def test_traced_values_name_the_argument_and_the_line():
    def zeros(n):
        return jnp.zeros(n)

    with pytest.raises(TypeError) as caught:
        jax.jit(zeros)(3)
    line = zeros.__code__.co_firstlineno
    assert str(caught.value) == (
        "Shapes must be 1D sequences of concrete values of integer type, got "
        "(JitTracer(~int32[]),).\n"
        "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions, "
        "and pass Python's int there: arrays cannot be static.\n"
        f"The error occurred while tracing the function zeros at {__file__}:{line} for jit. This "
        "concrete value was not available in Python because it depends on the value of the "
        "argument n.")


def test_bodies_of_control_flow_name_the_argument_and_the_line():
    def body(state, x):
        return (state if state["done"] else {"done": True}), x

    line = body.__code__.co_firstlineno
    with pytest.raises(TypeError) as caught:
        jax.lax.scan(body, {"done": False}, jnp.arange(3))
    assert str(caught.value).split("\n")[1] == (
        f"The error occurred while tracing the function body at {__file__}:{line} for scan. This "
        "concrete value was not available in Python because it depends on the value of the "
        "argument state['done'].")
    for call in (
        lambda f: jax.lax.while_loop(f, f, 0),
        lambda f: jax.lax.cond(True, f, f, 0),
        lambda f: jax.lax.custom_root(f, 0.0, lambda g, y: y, lambda g, y: y),
        lambda f: jax.closure_convert(f, 0),
    ):
        with pytest.raises(TypeError, match=f"function chosen at .*:{line + 20} for .*argument k"):
            call(chosen)


def chosen(k):
    return k if k else -k


def test_donated_arrays_say_how_they_went():
    x = jnp.ones(3) * 2
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    with pytest.raises(RuntimeError) as caught:
        np.asarray(x)
    assert str(caught.value) == "Array has been deleted with shape=float32[3]."
    assert caught.value.__notes__[0] == (
        "It was donated to a jitted function (donate_argnums, donate_argnames), or its delete() "
        "was called. Use what the function returned, or pass a copy.")


@pytest.mark.parametrize("call", [
    lambda: jnp.zeros(3, "float64"), lambda: jnp.asarray(A, np.float64),
    lambda: jnp.asarray(A).astype("int64"), lambda: jnp.arange(3, dtype=np.int64),
    lambda: random.normal(KEY, (2,), np.float64), lambda: jax.jit(
        lambda x: x.astype(np.float64))(A)])
def test_64_bit_types_are_refused_where_wanted(call):
    """The strict mode for 64-bit types: an error in place of narrowing with a warning."""
    old = jax.config.jax_explicit_x64_dtypes
    jax.config.update("jax_explicit_x64_dtypes", "error")
    try:
        with pytest.raises(ValueError, match=r"^Explicitly requested dtype (float64|int64) ?.*is "
                           "not available"):
            call()
    finally:
        jax.config.update("jax_explicit_x64_dtypes", old)


def test_rules_that_give_no_pair_show_types_and_no_elements():
    f = jax.custom_jvp(jnp.sin)
    f.defjvp(lambda primals, tangents: jnp.zeros(3))
    with pytest.raises(TypeError, match=r"must produce a pair .* but got float32\[3\]\."):
        jax.jvp(f, (1.0,), (1.0,))
    f.defjvp(lambda primals, tangents: (jnp.zeros(3), "x", 2))
    with pytest.raises(TypeError, match=r"but got \(float32\[3\], 'x', 2\)\."):
        jax.jvp(f, (1.0,), (1.0,))


def test_a_linearized_function_says_what_it_got():
    _, f = jax.linearize(jnp.sin, 1.0)
    with pytest.raises(TypeError, match=r"linearized function: .*expected .* got .*Pass a tangent"):
        f(1.0, 2.0)


def test_equations_of_wrong_types_name_operation_and_operand():
    closed = jax.make_jaxpr(lambda x: jax.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)))(1.0)
    (eqn,) = closed.eqns
    wrong = closed.jaxpr.replace(eqns=[eqn.replace(invars=eqn.invars[::-1])])
    with pytest.raises(TypeError, match=r"condition of while: operand 0 is of type ~float32"):
        eqn.primitive.holder.check(wrong.eqns[0])


@pytest.mark.parametrize("jitted", [False, True])
def test_the_warning_of_a_lossy_update_names_the_users_line(jitted):
    x = jnp.arange(3)

    def update(x):
        return x.at[0].set(1.5)

    with pytest.warns(FutureWarning, match="incompatible types") as caught:
        (jax.jit(update) if jitted else update)(x)
    line = update.__code__.co_firstlineno + 1
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line)]


def test_keys_used_twice_show_a_cure_and_no_frames():
    with jax.debug_key_reuse(True):
        key = random.key(0)
        random.normal(key)
        with pytest.raises(jax.errors.KeyReuseError, match=r"jax\.random\.split") as caught:
            random.normal(key)
    assert len(caught.traceback) == 1


MESH = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))


@pytest.mark.parametrize("call", {
    "dtype": lambda: jnp.zeros(3, "float64"),
    "dtype-deep": lambda: random.normal(KEY, (2,), "float64"),
    "like": lambda: jnp.zeros_like(A, "float64"),
    "host": lambda: jnp.asarray(A * 1j, "float32"),
    "cast": lambda: jax.lax.convert_element_type(jnp.ones(2) * 1j, "float32"),
    "update": lambda: jnp.ones(2).at[0].set(1j),
    "jit": lambda: jax.jit(lambda x: jnp.sum(x, dtype="float64"))(A),
    "real": lambda: (jnp.ones(2) * 1j).astype("float32"),
    "shape": lambda: jnp.shape({}),
    "mesh": lambda: (MESH.__enter__(), MESH.__exit__(None, None, None)),
}.items(), ids=lambda item: item[0])
def test_warnings_name_the_users_line(call):
    line = call[1].__code__.co_firstlineno
    with pytest.warns(Warning) as caught:
        call[1]()
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, line)}


def _failing(x):
    raise ValueError("mine")


@pytest.mark.parametrize(("call", "note"), [
    (lambda: jnp.sum(X, axis=7), "The call was sum(float32[2,3], axis=7)."),
    (lambda: jax.jit(lambda x: jnp.sum(x, 7))(X), "The call was sum(float32[2,3], 7)."),
    (lambda: jax.nn.softmax(jnp.asarray(X), axis=(0, 5)),
     "The call was softmax(float32[2,3], axis=(0, 5))."),
    (lambda: jnp.moveaxis(X, [0], [4]), "The call was moveaxis(float32[2,3], [0], [4])."),
    (lambda: jnp.sum(X, axis=jnp.cos), "The call was sum(float32[2,3], axis=cos)."),
    (lambda: jnp.apply_over_axes(jnp.sum, X, [5]),
     "The call was apply_over_axes(func=sum, a=float32[2,3], axes=[5])."),
    (lambda: jnp.einsum("ij->ijk", X),
     "The call was einsum('ij->ijk', float32[2,3])."),
    (lambda: jax.scipy.signal.welch(X, nperseg=[3]), None),  # the message names it
    (lambda: jax.lax.map(_failing, X), None),
    (lambda: jax.lax.scan(lambda c, x: (jnp.sum(c, axis=1), x), 0.0, X),
     "The call was sum(float32[], axis=1)."),
    (lambda: jnp.add(X, jnp.ones(4)), None),  # the message names it
    (lambda: jnp.apply_along_axis(_failing, 0, X), None),  # the user's own
])
def test_the_call_is_shown_where_the_message_names_no_function(call, note):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    notes = [n for n in getattr(caught.value, "__notes__", []) if n.startswith("The call")]
    assert notes == ([] if note is None else [note])


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: jnp.pad(X, 1, constant_values=(1, 2, 3)), ValueError,
     "jnp.pad: constant_values has unsupported shape (3,). Valid shapes are (2, 2), (1, 2), (2,), "
     "(1,), or ()."),
    (lambda: jnp.pad(X, 1, mode="mean", stat_length=(1, 2, 3)), ValueError,
     "jnp.pad: stat_length with nd=2 has unsupported shape (3,). Valid shapes are (2, 2), (1, 2), "
     "(2,), (1,), or ()."),
    (lambda: jax.lax.exp(1.0, accuracy="high"), NotImplementedError,
     "exp: Accuracy 'high' not supported: accuracy must be None, an AccuracyMode or a "
     "Tolerance."),
    *[(functools.partial(jax.make_mesh, sizes, ("x",)), ValueError,
       f"`axis_sizes` passed to `make_mesh` should be a sequence of ints. Got {sizes!r}; each axis "
       "has at least one device.") for sizes in ("a", (None,), (-1,), (0,), (1.5,))],
])
def test_a_message_says_a_thing_once(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("call", [
    lambda large: jax.grad(jnp.sum)(large.tolist()[0] * 1000),
    lambda large: jax.vmap(lambda x: x)(large),
    lambda large: jax.lax.exp(1.0, accuracy=large),
    lambda large: jax.lax.cumsum(X, axis=large),
    lambda large: jax.linearize(lambda x: x, "a" * 1000),
])
def test_a_message_shows_the_first_of_a_large_argument(call):
    with pytest.raises((TypeError, NotImplementedError)) as caught:
        call(np.array(["abc"] * 300))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("call", [
    lambda i: X[int(i[0])], lambda i: range(i[0]), lambda i: X[:i[0]], lambda i: jnp.tile(X, i)])
def test_who_is_told_to_make_an_argument_static_hears_that_arrays_cannot_be(call):
    with pytest.raises((TypeError, IndexError), match="arrays cannot be static"):
        jax.jit(call)(np.arange(3))


@pytest.mark.parametrize(("value", "cure"), [
    ("a", "mark the argument as static (static_argnums or static_argnames of jit), or bind it "
     "by functools.partial."),
    (np.array(["a"]), "let it come from the enclosing scope, not from an argument: as it cannot be "
     "hashed, it cannot be a static one either."),
    ({1, 2}, "let it come from the enclosing scope, not from an argument"),
])
def test_what_cannot_be_hashed_is_not_said_to_be_static(value, cure):
    with pytest.raises(TypeError) as caught:
        jax.jit(lambda x: 1)(value)
    assert cure in str(caught.value)


@pytest.mark.parametrize("name", [
    "sum", "nansum", "nanprod", "nanmean", "mean", "var", "std", "nanvar", "nanstd", "cumsum",
    "nancumsum", "nancumprod", "corrcoef", "cov", "identity", "eye", "trace"])
def test_warnings_of_dtypes_name_the_function(name):
    given = 3 if name in ("identity", "eye") else X
    with pytest.warns(UserWarning, match=f"float64 requested in {name} is not available") as caught:
        getattr(jnp, name)(given, dtype="float64")
    assert len(caught) == 1


ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "amax": "max", "amin": "min",
    "around": "round", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert", "bitwise_right_shift": "right_shift", "conj": "conjugate",
    "degrees": "rad2deg", "divide": "true_divide", "mod": "remainder", "pow": "power",
    "radians": "deg2rad"}


@pytest.mark.parametrize(("name", "other"), ALIASES.items())
def test_functions_with_two_names(name, other):
    function = getattr(jnp, name)
    assert function.__name__ == function.__qualname__ == name
    assert function.__doc__.startswith(f"Alias of `jax.numpy.{other}`.")
    args = (X.astype(int) + 1, 1)[:2 if "shift" in name or name in (
        "atan2", "divide", "mod", "pow") else 1]
    if name.startswith("a") and name[1] in "cst":
        args = (X[:1, 1:2], *args[1:])
    for f in (function, jax.jit(function)):
        np.testing.assert_array_equal(f(*args), getattr(jnp, other)(*args))


@pytest.mark.parametrize("call", [jnp.unique, jnp.nonzero, jnp.argwhere, jnp.bincount, jnp.where,
                                  lambda x: jnp.repeat(x, x), lambda x: jax.ops.segment_sum(x, x)])
def test_what_asks_for_a_static_size_does_not_ask_for_static_arguments_too(call):
    with pytest.raises(jax.errors.ConcretizationTypeError, match="static") as caught:
        jax.jit(call)(jnp.arange(3))
    assert "static_argnums" not in str(caught.value)
