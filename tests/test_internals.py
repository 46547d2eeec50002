"""The names that libraries import beyond the public ones exist under the alias."""

from __future__ import annotations

import importlib
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import alias
from pyjx.core import dtypes as pyjx_dtypes

NAMES = [line for line in Path(__file__).with_name("internals.txt").read_text().splitlines()
         if line and not line.startswith("#")]


def find(name: str) -> Any:
    """What `name` is, the module being the longest prefix that can be imported."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(alias.module_name(".".join(parts[:n])))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists(name: str) -> None:
    find(name)


@pytest.mark.parametrize("name", [
    n for n in NAMES if n.startswith("jax._src") and n.split(".")[-2] == n.split(".")[-1]])
def test_a_function_is_not_hidden_by_its_module(name: str) -> None:
    assert callable(find(name))


@pytest.mark.parametrize("name", ["jax._src.core.no_such", "jax._src.no_such", "jax.lib.no_such"])
def test_others_are_plainly_unknown(name: str) -> None:
    with pytest.raises((AttributeError, ImportError)):
        find(name)


def test_a_sharding_is_made_canonical_over_an_abstract_mesh():
    canonical = find("jax._src.sharding_impls.canonicalize_sharding")
    mesh, auto = (jax.make_mesh((1,), ("x",), axis_types=(kind,))
                  for kind in (jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto))
    along = canonical(jax.NamedSharding(mesh, jax.P("x")), "f")
    assert along == jax.NamedSharding(mesh.abstract_mesh, jax.P("x"))
    assert along.mesh._any_axis_explicit and not auto._any_axis_explicit
    assert canonical(None, "f") is None
    assert canonical(jax.typeof(jax.numpy.ones(3)).sharding, "f") is None
    for error, sharding in [(ValueError, jax.P("x")), (TypeError, "x"),
                            (ValueError, jax.NamedSharding(auto, jax.P("x")))]:
        with pytest.raises(error):
            canonical(sharding, "f")


def test_caches_know_the_flags_that_traces_depend_on():
    util = importlib.import_module("pyjx.compat.util")
    calls: list[Any] = []

    def note(x: Any, *args: Any) -> int:
        calls.append(args)
        return len(calls)

    for cache in (util.memoize, util.cache(), util.weakref_lru_cache,
                  util.weakref_lru_cache(maxsize=None)):
        calls.clear()
        noted, key = cache(note), jax.tree_util.Partial(note)
        assert [noted(key), noted(key), noted(key, 3), noted(key, 3)] == [1, 1, 2, 2]
        with jax.enable_x64(True):
            assert [noted(key), noted(key)] == [3, 3]
        assert noted(key) == 1 and noted.cache_info().misses == 3
        noted.cache_clear()
        assert noted(key) == 4
    calls.clear()
    noted = util.cache(max_size=1, trace_context_in_key=False)(note)
    with jax.enable_x64(True):
        assert noted(0) == 1
    assert [noted(0), noted(1), noted(0)] == [1, 2, 3]
    by_size = util.cache(trace_context_in_key=lambda: len(calls))(note)
    assert [by_size(0), by_size(0)] == [4, 5]


def test_a_weak_cache_keeps_no_argument_alive():
    util = importlib.import_module("pyjx.compat.util")

    class Program:
        pass

    names = util.weakref_lru_cache(lambda program, suffix: type(program).__name__ + suffix)
    program = Program()
    assert names(program, "s") == "Programs"
    gone = weakref.ref(program)
    del program
    assert gone() is None and names.cache_info().currsize == 0
    with pytest.raises(TypeError, match="weak reference"):
        names(1, "s")


def test_names_of_functions_and_modules():
    util = importlib.import_module("pyjx.compat.util")

    @util.set_module("elsewhere")
    class Thing:
        pass

    assert Thing.__module__ == "elsewhere"
    assert util.fun_qual_name(partial(Thing.__init__, 1)) == "object.__init__"
    assert util.canonicalize_axis_tuple(None, 2) == (0, 1)
    assert util.canonicalize_axis_tuple(-1, 2) == (1,)
    assert util.canonicalize_axis_tuple((0, 0), 2, allow_duplicate=True) == (0, 0)
    with pytest.raises(ValueError, match=r"repeated axis: \(0, -2\)"):
        util.canonicalize_axis_tuple((0, -2), 2)
    assert util.split_list_checked([1, 2, 3], [1, 2]) == [[1], [2, 3]]
    with pytest.raises(AssertionError):
        util.split_list_checked([1, 2, 3], [1, 1])


@pytest.mark.parametrize("value, dtype, safe", [
    ("int32", "float16", True), ("float32", "int32", False), (1, "float16", True),
    (1.0, "int8", False), (True, "int8", True), ("int32", 1, True)])
def test_safe_casts(value: Any, dtype: Any, safe: bool) -> None:
    assert find("jax._src.dtypes.safe_to_cast")(value, dtype) is safe


def test_dtypes_by_category_and_of_scalars():
    dtypes = find("jax._src.dtypes")
    assert len(dtypes._jax_types) == len(set(dtypes._jax_types)) == len(pyjx_dtypes.all_dtypes)
    assert [t.name for t in dtypes._signed_types[-4:]] == ["int8", "int16", "int32", "int64"]
    assert {t.name for t in dtypes._intn_dtypes} >= {"int2", "int4", "uint2", "uint4"}
    assert all(t.name.startswith("float8") for t in dtypes._float8_dtypes)
    assert dtypes._int4_dtype == "int4"
    assert [dtypes.default_types[kind]().name for kind in "biufc"] == [
        "bool", "int32", "uint32", "float32", "complex64"]
    assert dtypes._dtype_and_weaktype(1) == (np.int32, True)
    assert dtypes.coerce_to_array(1).dtype == "int32"
    assert dtypes.coerce_to_array([1.5]).dtype == "float64"
    with pytest.raises(OverflowError):
        dtypes.scalar_type_to_dtype(int, 2 ** 40)
    with jax.enable_x64(True):
        assert dtypes.scalar_type_to_dtype(int, 2 ** 40) == dtypes.jax_dtype(int) == "int64"
    key = jax.random.key(0).dtype
    assert dtypes.jax_dtype(key) is key and dtypes.jax_dtype(None) == "float32"
    assert not dtypes._issubclass(3, int) and dtypes._issubclass(bool, int)


def test_arguments_of_functions_of_numpys_names():
    util = find("jax._src.numpy.util")
    one, two = util.ensure_arraylike("f", 1, np.ones(2))
    assert one.weak_type and two.dtype == "float32" and util.ensure_arraylike("f") == ()
    assert util.ensure_arraylike("f", 1).shape == ()
    with pytest.raises(TypeError, match="f requires ndarray or scalar arguments"):
        util.ensure_arraylike("f", [1])
    util.check_arraylike_or_none("f", None, 1)
    with pytest.raises(TypeError, match="ndarray, scalar, or None arguments"):
        util.check_arraylike_or_none("f", [1])
    util.check_no_float0s("f", 1)
    with pytest.raises(TypeError, match="Called f with a float0 array"):
        util.check_no_float0s("f", np.zeros(2, jax.dtypes.float0))
    key = jax.random.key(0)
    util.check_for_prngkeys("f", key, key)
    with pytest.raises(TypeError, match="f does not accept dtypes int32, key<fry>"):
        util.check_for_prngkeys("f", 1, key)
    device = jax.devices()[0]
    on_it = jax.sharding.SingleDeviceSharding(device)
    choose = util.choose_device_or_out_sharding
    assert choose(device, None, "f") == choose(None, on_it, "f") == on_it
    assert choose(None, None, "f") is None
    with pytest.raises(ValueError, match="f"):
        choose(device, on_it, "f")


def test_what_functions_of_lax_are_built_on():
    lax = find("jax._src.lax.lax")
    assert lax._convert_element_type(np.ones(2), weak_type=True).weak_type
    assert lax._convert_element_type(1j, np.dtype("float32"),
                                     warn_on_complex_to_real_cast=False).dtype == "float32"
    assert lax._eye(np.dtype("int32"), (2, 3), 1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert lax._tri(np.dtype("int32"), (2, 3), 0).tolist() == [[1, 0, 0], [1, 1, 0]]
    assert lax._delta("int32", (2, 2, 1), (0, 1)).tolist() == [[[1], [0]], [[0], [1]]]
    assert lax._const(np.ones(2, np.int8), 3).dtype == "int8"
    assert lax._zero(np.ones(2, np.int8)).tolist() == [0, 0] and lax._one(np.float32(2)) == 1
    assert lax._iscomplex(np.complex64(1)) and not lax._iscomplex(1.0)
    assert lax._try_broadcast_shapes((2, 1), (1, 3), name="f") == (2, 3)
    for other in [(3,), (1, 2)]:
        with pytest.raises(TypeError, match="f got incompatible shapes for broadcasting"):
            lax._try_broadcast_shapes((2,), other, name="f")
    with pytest.raises(TypeError, match="asarray: expected ArrayLike"):
        lax.asarray([1])
    assert jax.lax.add is lax.add and find("jax._src.lax.lax").sub is jax.lax.sub


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_factors_of_matrices(trans: int) -> None:
    linalg = find("jax._src.lax.linalg")
    a = np.array([[1, 2j], [3, 4]], np.complex64)
    factors, _, order = linalg.lu(a)
    for b in (np.array([1, 2], np.complex64), np.eye(2, dtype=np.complex64)):
        x = linalg.lu_solve(factors, order, b, trans=trans)
        np.testing.assert_allclose([a, a.T, a.conj().T][trans] @ x, b, atol=1e-5)
    packed, taus = linalg.geqrf(a)
    q = linalg.householder_product(packed, taus)
    np.testing.assert_allclose(q @ np.triu(packed), a, atol=1e-5)
    packed, columns, taus = linalg.geqp3(a, np.zeros(2, np.int32))
    q = linalg.householder_product(packed, taus)
    np.testing.assert_allclose(q @ np.triu(packed), a[:, columns - 1], atol=1e-5)
    assert linalg.symmetrize(a).tolist() == [[1, 1.5 + 1j], [1.5 - 1j, 4]]


def test_zeros_of_types():
    ad_util = find("jax._src.ad_util")
    zeros = ad_util.zeros_like_aval(jax.typeof(np.ones(2, np.int8)))
    assert zeros.dtype == "int8" and zeros.tolist() == [0, 0]
    assert find("jax._src.public_test_util.check_close") is jax.test_util.check_close
