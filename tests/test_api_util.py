import functools

import numpy as np
import pytest

import pyjx as jax
from pyjx import api_util
from pyjx.extend import linear_util as lu

structure = jax.tree.structure


def f(x, y, *, k=1):
    return {"s": x + y, "k": (k,)}


def test_functions_of_leaves():
    flat, tree = api_util.flatten_fun(f, structure(((1, 2), {"k": 3})))
    with pytest.raises(ValueError, match="when the function has been called"):
        tree()
    assert flat.call_wrapped(1, 2, 3) == [3, 3]
    assert tree() == structure({"s": 0, "k": (0,)})
    again, tree = api_util.flatten_fun_nokwargs(api_util.WrappedFun(f, f), structure((1, 2)))
    assert again.call_wrapped(1, 2) == [1, 3]
    jaxpr = jax.make_jaxpr(lambda x: flat.call_wrapped(x, x, x))(1.0)
    assert len(jaxpr.out_avals) == 2


def test_what_cannot_be_flattened():
    for flatten in (api_util.flatten_fun, api_util.flatten_fun_nokwargs):
        for given in ((), (structure(1),) * 2):
            with pytest.raises(TypeError, match=rf"{flatten.__name__}: expected one static .*"
                                                rf"got {len(given)}"):
                flatten(f, *given)
        with pytest.raises(TypeError, match="Expected a callable value, got 3"):
            flatten(3)


def test_what_flattened_functions_keep():
    flat, tree = api_util.flatten_fun(lambda x: [x] * len(x), structure((((1,),), {})),
                                      use_eq_store=True, unk_names=True)
    assert flat.debug_info.arg_names is None
    flat.call_wrapped(3)
    flat.call_wrapped(4)
    assert tree() == structure([(1,)])
    different = iter([1, [1, 2]])
    flat, tree = api_util.flatten_fun_nokwargs(lambda: next(different), structure(()),
                                               use_eq_store=True)
    flat.call_wrapped()
    with pytest.raises(lu.StoreException):
        flat.call_wrapped()


def test_argnums_partial():
    def tuple_of(*args):
        return args

    for numbers, dynamic in ((0, (1,)), ((0, 2), (1, 3)), (-1, (3,)), ((2, 0), (3, 1))):
        g, given = api_util.argnums_partial(tuple_of, numbers, (1, 2, 3))
        assert given == dynamic and g.call_wrapped(*given) == (1, 2, 3)
    with pytest.raises(ValueError, match="argument \\(index 1\\) of type <class 'list'> for "
                                         "function tuple_of is non-hashable"):
        api_util.argnums_partial(tuple_of, 0, (1, [2]))
    g, given = api_util.argnums_partial(tuple_of, 0, (1, [2]), require_static_args_hashable=False)
    assert g.call_wrapped(5) == (5, [2])
    with pytest.raises(ValueError, match="but got value 5 for len\\(args\\) == 2"):
        api_util.argnums_partial(tuple_of, 5, (1, 2))


def test_flatten_axes():
    tree = structure((1, {"a": 2, "b": (3, 4)}))
    for axes, flat in ((0, [0] * 4), (None, [None] * 4), ((0, {"a": 1, "b": None}),
                                                         [0, 1, None, None])):
        assert api_util.flatten_axes("in_axes", tree, axes) == flat
    with pytest.raises(ValueError, match="in_axes specification must be a tree prefix of the"):
        api_util.flatten_axes("in_axes", tree, (0, {"a": 1}))
    with pytest.raises(ValueError, match="wrapped in a tuple representing the argument list"):
        api_util.flatten_axes("in_axes", tree, (0, 1, 2), tupled_args=True)
    both = structure(((1, 2), {"a": 1}))
    assert api_util.flatten_axes("in_axes", both, ((0, 1), {"a": 0}), kws=True) == [0, 1, 0]


def test_donation():
    tree = structure(((1, {"a": 2, "b": 3}), {"k": 3, "l": [1, 2]}))
    assert api_util.donation_vector((1,), ("k",), tree) == (False, True, True, True, False, False)
    assert api_util.donation_vector((1,), (), structure((1, [2])), kws=False) == (False, True)
    assert api_util.rebase_donate_argnums((3, 4, 0), (1,)) == (0, 2, 3)
    with pytest.raises(ValueError, match=r"`static_argnums` \[1\] and `donate_argnums` \[1\]"):
        api_util.rebase_donate_argnums((1,), (1,))


def test_safe_map():
    assert api_util.safe_map(lambda a: a, iter([1, 2])) == [1, 2]
    with pytest.raises(ValueError, match=r"safe_map\(\) argument 2 is shorter than argument 1"):
        api_util.safe_map(lambda a, b: a + b, [1, 2], [3])


def test_shaped_abstractify():
    for x in (1, 1.0, True, np.zeros(2), jax.numpy.ones(2)):
        assert api_util.shaped_abstractify(x) == jax.numpy.asarray(x).aval
    aval = api_util.shaped_abstractify(jax.ShapeDtypeStruct((2,), "float32"))
    assert (aval.shape, aval.dtype) == ((2,), np.float32)
    for x in ("a", [1]):
        with pytest.raises(TypeError, match="Cannot interpret value of type"):
            api_util.shaped_abstractify(x)


def g(a, b=2, *args, c, **kw):
    pass


@pytest.mark.parametrize(("fun", "args", "kwargs", "options", "names"), [
    (g, (1, {"x": 2}), {"c": 3}, {}, ("a", "b['x']", "c")),
    (g, (1, {"x": 2}, 5), {"c": 3, "z": 4}, {}, ("a", "b['x']", "args[0]", "c", "kw['z']")),
    (g, (1, {"x": 2}), {"c": 3}, {"static_argnums": (0,)}, ("b['x']", "c")),
    (g, (1, {"x": 2}), {"c": 3}, {"static_argnames": ("c",)}, ("a", "b['x']")),
    (functools.partial(g, 1), (2,), {}, {}, ("b",)), (None, (2,), {}, {}, ("args[0]",)),
])
def test_debug_info(fun, args, kwargs, options, names):
    info = api_util.debug_info("jit", fun, args, kwargs, **options)
    assert info.arg_names == names and info.traced_for == "jit"
    assert ("test_api_util.py" in info.func_src_info) is (fun is not None)
    assert api_util.debug_info("jit", fun, args, kwargs, sourceinfo="me").func_src_info == "me"
