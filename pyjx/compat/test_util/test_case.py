"""The test case that compares arrays with their dtypes, and runs functions compiled and not."""

from __future__ import annotations

import functools
import os
import textwrap
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import numpy as np
from absl.testing import absltest, parameterized

import pyjx
from pyjx import configuration
from pyjx.compat.test_util import counters
from pyjx.compat.test_util.comparison import Tolerance, assert_near, is_sequence, tolerance
from pyjx.core import dtypes

__all__ = [
    "JIT_IMPLEMENTATION", "BufferDonationTestCase", "JaxTestCase", "JaxTestLoader",
    "global_config_context", "ignore_warning", "set_env", "strict_promotion_if_dtypes_match",
    "thread_local_config_context", "thread_unsafe_test", "thread_unsafe_test_class",
    "with_config", "with_global_config", "with_thread_local_config",
]


# -- configuration ---------------------------------------------------------------------------------


@contextmanager
def thread_local_config_context(**kwds: Any) -> Iterator[None]:
    """A context in which flags, named as in `jax.config`, have other values in this thread."""
    with ExitStack() as stack:
        for name, value in kwds.items():
            state = getattr(configuration, name.removeprefix("jax_"))
            stack.enter_context(state(value))
        yield


@contextmanager
def global_config_context(**kwds: Any) -> Iterator[None]:
    """A context in which flags, named as in `jax.config`, have other values in all threads."""
    before = {name: pyjx.config.read(name) for name in kwds}
    try:
        for name, value in kwds.items():
            pyjx.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            pyjx.config.update(name, value)


def _with_context(context: Callable[..., Any], attribute: str, kwds: dict[str, Any]
                  ) -> Callable[[Any], Any]:
    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            setattr(test, attribute, {**getattr(test, attribute, {}), **kwds})
            return test

        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            with context(**kwds):
                return test(*args, **kwargs)

        return run

    return decorate


def with_config(**kwds: Any) -> Callable[[Any], Any]:
    """A decorator: the test, or the class of tests, runs with other values of flags."""
    return _with_context(thread_local_config_context, "_default_thread_local_config", kwds)


with_thread_local_config = with_config


def with_global_config(**kwds: Any) -> Callable[[Any], Any]:
    """As `with_config`, with values that other threads see too."""
    return _with_context(global_config_context, "_default_global_config", kwds)


def strict_promotion_if_dtypes_match(dtypes: Sequence[Any]) -> Any:
    """A context of strict promotion of dtypes if they are one, else of the standard one."""
    same = len({np.dtype(t) for t in dtypes}) == 1
    return pyjx.numpy_dtype_promotion("strict" if same else "standard")


@contextmanager
def set_env(**kwargs: str | None) -> Iterator[None]:
    """A context in which environment variables have other values; None takes one away."""
    before = {name: os.environ.get(name) for name in kwargs}

    def put(values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    put(kwargs)
    try:
        yield
    finally:
        put(before)


@contextmanager
def ignore_warning(*, message: str = "", category: type[Warning] = Warning, **kw: Any
                   ) -> Iterator[None]:
    """A context, or a decorator, in which warnings are not shown."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message, category=category, **kw)
        yield


@contextmanager
def thread_unsafe_test(condition: bool = True) -> Iterator[None]:
    """A context, or a decorator, for tests that cannot run beside others in threads: none do."""
    yield


def thread_unsafe_test_class(condition: bool = True) -> Callable[[type], type]:
    """A decorator of classes of tests that cannot run beside others in threads: none do."""
    return lambda cls: cls


# -- the test case ---------------------------------------------------------------------------------


class JaxTestLoader(absltest.TestLoader):
    """The loader of tests that programs give to `absltest.main`."""


def _uncompiled(fun: Callable[..., Any], *_: Any, **__: Any) -> Any:
    return fun


JIT_IMPLEMENTATION = (pyjx.jit, _uncompiled)


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
        kinds = [x.dtype if hasattr(x, "dtype") else dtypes.dtype(x) for x in (actual, desired)]
        if canonicalize_dtypes and not configuration.enable_x64.value:
            kinds = [dtypes.canonicalize_dtype(t) for t in kinds]
        self.assertEqual(*kinds)

    def assertArraysEqual(self, actual: Any, desired: Any, *, check_dtypes: bool = True,
                          err_msg: str = "", allow_object_dtype: bool = False,
                          verbose: bool = True) -> None:
        """Shapes, dtypes and elements are equal; nan equals nan."""
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        actual, desired = np.asarray(actual), np.asarray(desired)
        if not allow_object_dtype and object in (actual.dtype, desired.dtype):
            raise AssertionError(f"arrays of objects: {actual.dtype} and {desired.dtype}")
        self.assertEqual(actual.shape, desired.shape)
        if actual.dtype == desired.dtype == dtypes.float0:
            return
        actual, desired = [x.astype(np.float32) if x.dtype.isbuiltin == 2 else x
                           for x in (actual, desired)]
        np.testing.assert_array_equal(actual, desired, err_msg=err_msg, verbose=verbose)

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
            self.assertTrue(is_sequence(desired) and not hasattr(desired, "__array__"))
            self.assertEqual(len(actual), len(desired))
            for one, other in zip(actual, desired, strict=True):
                self.assertAllClose(one, other, **options)
        elif hasattr(actual, "__array__") or np.isscalar(actual):
            self.assertTrue(hasattr(desired, "__array__") or np.isscalar(desired))
            if check_dtypes:
                self.assertDtypesMatch(actual, desired, canonicalize_dtypes=canonicalize_dtypes)
            self.assertArraysAllClose(np.asarray(actual), np.asarray(desired), check_dtypes=False,
                                      atol=atol, rtol=rtol, err_msg=err_msg)
        elif actual != desired:
            raise TypeError((type(actual), type(desired)))

    def assertMultiLineStrippedEqual(self, expected: str, what: str) -> None:
        """The texts are equal but for indentation and space around them."""
        def stripped(text: str) -> str:
            return "\n".join(line.rstrip() for line in textwrap.dedent(text).strip().split("\n"))

        self.assertEqual(stripped(expected), stripped(what))

    @contextmanager
    def assertNoWarnings(self) -> Iterator[None]:
        """A context in which a warning is an error."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    def assertDeprecationWarnsOrRaises(self, deprecation_id: str, message: str, *,
                                       error_class: type[Exception] = ValueError) -> Any:
        """A context that expects the warning of what is deprecated."""
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
        self.assertAllClose(expected, ours, check_dtypes=check_dtypes, atol=atol or tol,
                            rtol=rtol or tol, canonicalize_dtypes=canonicalize_dtypes)

    def _CompileAndCheck(self, fun: Callable[..., Any], args_maker: Callable[[], Any], *,
                         check_dtypes: bool = True, tol: Tolerance = None,
                         rtol: Tolerance = None, atol: Tolerance = None,
                         check_cache_misses: bool = True) -> None:
        """The function gives the same compiled; called again it neither compiles operations anew
        nor, compiled, runs its Python."""
        near: dict[str, Any] = {"check_dtypes": check_dtypes, "atol": atol or tol,
                                "rtol": rtol or tol}
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
