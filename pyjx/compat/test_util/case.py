"""The test case that compares arrays with their dtypes, and runs functions compiled and not."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, ClassVar

import numpy as np
from absl.testing import parameterized

import pyjx
from pyjx.compat.deprecations import is_accelerated
from pyjx.compat.test_util import counters
from pyjx.compat.test_util.comparison import (
    Tolerance,
    assert_near,
    for_numpy,
    is_sequence,
    tolerance,
)
from pyjx.compat.test_util.settings import global_config_context, thread_local_config_context
from pyjx.compat.test_util.warning_contexts import raise_on_warnings
from pyjx.core import dtypes

__all__ = ["JIT_IMPLEMENTATION", "BufferDonationTestCase", "JaxTestCase"]


@wraps(pyjx.jit)
def _jit(*args: Any, **kwargs: Any) -> Any:
    return pyjx.jit(*args, **kwargs)


def _noop(fun: Callable[..., Any], *_: Any, **__: Any) -> Any:
    return fun


_jit._name, _noop._name = "jit", "noop"  # type: ignore[attr-defined]
JIT_IMPLEMENTATION = (_jit, _noop)


def _dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


class JaxTestCase(parameterized.TestCase):
    """A test case whose methods compare arrays.

    Its tests run with strict promotion of dtypes and ranks, checks of jaxprs and whole tracebacks;
    `with_config` changes that for a class or a test.
    """

    _default_thread_local_config: ClassVar[dict[str, Any]] = {
        "jax_enable_checks": True,
        "jax_numpy_dtype_promotion": "strict",
        "jax_numpy_rank_promotion": "raise",
        "jax_traceback_filtering": "off",
        "jax_legacy_prng_key": "error",
    }
    _default_global_config: ClassVar[dict[str, Any]] = {}

    def setUp(self) -> None:
        super().setUp()
        self.enter_context(thread_local_config_context(**self._default_thread_local_config))
        self.enter_context(global_config_context(**self._default_global_config))
        # The same draws each time, others for each test.
        self._rng = np.random.RandomState(zlib.adler32(self._testMethodName.encode()))

    def rng(self) -> np.random.RandomState:
        """The source of the test's random numbers."""
        return self._rng

    # -- comparisons -------------------------------------------------------------------------------

    def assertDtypesMatch(self, actual: Any, desired: Any, *,
                          canonicalize_dtypes: bool = True) -> None:
        """The dtypes are equal; as 32-bit ones where 64-bit types are off, if that is asked."""
        kinds = [_dtype(x) for x in (actual, desired)]
        if canonicalize_dtypes:
            kinds = [dtypes.canonicalize_dtype(t, allow_extended_dtype=True) for t in kinds]
        self.assertEqual(*kinds)

    def assertArraysEqual(self, actual: Any, desired: Any, *, check_dtypes: bool = True,
                          err_msg: str = "", allow_object_dtype: bool = False,
                          verbose: bool = True) -> None:
        """Dtypes and elements are equal; nan equals nan, and a number an array that is full of it.

        Raises:
          AssertionError: they are not.
          TypeError: they are arrays of objects, or keys.
        """
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        ours, expected = for_numpy(actual), for_numpy(desired)
        if not allow_object_dtype and object in (ours.dtype, expected.dtype):
            raise TypeError("Elements that are objects may compare in any way: see assertAllClose, "
                            "or give allow_object_dtype=True.")
        np.testing.assert_array_equal(ours, expected, err_msg=err_msg, verbose=verbose)

    def assertArraysAllClose(self, actual: Any, desired: Any, *, check_dtypes: bool = True,
                             atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = ""
                             ) -> None:
        """Shapes and dtypes are equal, and elements as near as their dtypes have it."""
        self.assertEqual(np.shape(actual), np.shape(desired))
        kinds = [np.asarray(x).dtype for x in (actual, desired)]
        absolute, relative = [max(tolerance(t, given) for t in kinds) for given in (atol, rtol)]
        assert_near(np.asarray(actual), np.asarray(desired), absolute, relative, err_msg)
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)

    def assertAllClose(self, actual: Any, desired: Any, *, check_dtypes: bool = True,
                       atol: Tolerance = None, rtol: Tolerance = None,
                       canonicalize_dtypes: bool = True, err_msg: str = "") -> None:
        """Arrays, numbers, and dictionaries and sequences of them, are near each other.

        Raises:
          AssertionError: they are not.
          TypeError: they cannot be compared.
        """
        options: dict[str, Any] = {
            "check_dtypes": check_dtypes, "atol": atol, "rtol": rtol,
            "canonicalize_dtypes": canonicalize_dtypes, "err_msg": err_msg}
        if isinstance(actual, dict):
            self.assertIsInstance(desired, dict)
            self.assertEqual(set(actual), set(desired))
            for key, value in actual.items():
                self.assertAllClose(value, desired[key], **options)
        elif is_sequence(actual) and not hasattr(actual, "__array__"):
            self.assertTrue(is_sequence(desired) and not hasattr(desired, "__array__"),
                            f"Expected a sequence, got {desired}")
            self.assertEqual(len(actual), len(desired))
            for one, other in zip(actual, desired, strict=True):
                self.assertAllClose(one, other, **options)
        elif hasattr(actual, "__array__") or np.isscalar(actual):
            self.assertTrue(hasattr(desired, "__array__") or np.isscalar(desired),
                            f"Expected an array or a number, got {desired}")
            if check_dtypes:
                self.assertDtypesMatch(actual, desired, canonicalize_dtypes=canonicalize_dtypes)
            self.assertArraysAllClose(np.asarray(actual), np.asarray(desired), check_dtypes=False,
                                      atol=atol, rtol=rtol, err_msg=err_msg)
        elif actual != desired:
            raise TypeError((type(actual), type(desired)))

    def assertMultiLineStrippedEqual(self, expected: str, what: str) -> None:
        """The texts are equal but for the space around their lines and lines of space."""
        def stripped(text: str) -> str:
            return re.sub(r"\s*\n\s*", "\n", text.strip())

        self.assertEqual(stripped(expected), stripped(what))

    def assertNoWarnings(self) -> AbstractContextManager[None]:
        """A context in which a warning is an error."""
        return raise_on_warnings()

    def assertDeprecationWarnsOrRaises(self, deprecation_id: str, message: str, *,
                                       error_class: type[Exception] = ValueError) -> Any:
        """A context that expects the warning of what is deprecated, or the error that it is."""
        if is_accelerated(deprecation_id):
            return self.assertRaisesRegex(error_class, message)
        return self.assertWarnsRegex(DeprecationWarning, message)

    # -- functions ---------------------------------------------------------------------------------

    def _CheckAgainstNumpy(self, numpy_reference_op: Callable[..., Any],
                           lax_op: Callable[..., Any], args_maker: Callable[[], Any],
                           check_dtypes: bool = True, tol: Tolerance = None,
                           atol: Tolerance = None, rtol: Tolerance = None,
                           canonicalize_dtypes: bool = True) -> None:
        """Both functions give the same of the arguments that `args_maker` gives."""
        args = args_maker()
        ours, expected = lax_op(*args), numpy_reference_op(*args)
        self.assertAllClose(expected, ours, check_dtypes=check_dtypes,
                            atol=tol if atol is None else atol, rtol=tol if rtol is None else rtol,
                            canonicalize_dtypes=canonicalize_dtypes)

    def _CompileAndCheck(self, fun: Callable[..., Any], args_maker: Callable[[], Any], *,
                         check_dtypes: bool = True, tol: Tolerance = None,
                         rtol: Tolerance = None, atol: Tolerance = None,
                         check_cache_misses: bool = True) -> None:
        """The function gives the same compiled; called again it neither compiles operations anew
        nor, compiled, runs its Python."""
        near: dict[str, Any] = {"check_dtypes": check_dtypes, "atol": tol if atol is None else atol,
                                "rtol": tol if rtol is None else rtol}
        args = args_maker()
        calls = 0

        def counted(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            return fun(*args)

        expected = fun(*args)
        with counters.count_primitive_compiles() as compiled:
            again = fun(*args)
        if check_cache_misses:
            self.assertEqual(compiled(), 0, "The second call compiled operations.")
        self.assertAllClose(again, expected, **near)
        jitted = pyjx.jit(counted)
        self.assertAllClose(expected, jitted(*args), **near)
        self.assertGreater(calls, 0, "The compiled function was not traced.")
        calls = 0
        args = args_maker()
        self.assertAllClose(fun(*args), jitted(*args), **near)
        self.assertEqual(calls, 0, "The compiled function was traced again.")

    def assertCacheMisses(self, func: Callable[[], Any], *, cpp: int | None = None,
                          tracing: int | None = None, lowering: int | None = None) -> None:
        """A call of `func` asks Python, traces and lowers so many times; None does not count."""
        with counters.count_pjit_cpp_cache_miss() as misses, \
                counters.count_jit_tracing_cache_miss() as traced, \
                counters.count_jit_and_pmap_lowerings() as lowered:
            func()
        for name, expected, count in (("cpp", cpp, misses), ("tracing", tracing, traced),
                                      ("lowering", lowering, lowered)):
            if expected is not None:
                self.assertEqual(count(), expected, name)


class BufferDonationTestCase(JaxTestCase):
    """A test case for functions whose arguments are donated."""

    def assertDeleted(self, x: Any) -> None:
        self.assertTrue(x.is_deleted())

    def assertNotDeleted(self, x: Any) -> None:
        self.assertFalse(x.is_deleted())
