"""What tests ask of the device that they run on, and those that depend on it."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np

from pyjx import configuration, jaxlib_api
from pyjx.core.dtypes import canonicalize_dtype, finfo
from pyjx.runtime import backends

__all__ = [
    "device_kind_match", "device_supports_buffer_donation", "device_under_test", "dtypes",
    "get_tpu_version", "is_asan", "is_cloud_tpu", "is_cuda_compute_capability_at_least",
    "is_cuda_compute_capability_equal", "is_cuda_version_at_least", "is_device_cuda",
    "is_device_oneapi", "is_device_rocm", "is_device_tpu", "is_device_tpu_at_least",
    "is_gil_disabled", "is_msan", "is_optimized_build", "is_running_under_pytest",
    "is_sanitized", "is_tsan", "jaxlib_version", "num_float_bits", "numpy_version",
    "parse_version", "pattern_search", "pytest_mark_if_available", "request_cpu_devices",
    "run_on_devices", "skip_on_devices", "skip_on_flag", "skip_under_pytest",
    "supported_dtypes", "test_device_matches",
]


def device_under_test() -> str:
    """The platform that tests run on: the environment variable JAX_TEST_DUT, or the default one.

    >>> device_under_test()
    'cpu'
    """
    return os.environ.get("JAX_TEST_DUT") or backends.get_backend().platform


def _tags() -> set[str]:
    """What the platform is called: a GPU by its maker's software, too."""
    names = {device_under_test()}
    if "gpu" in names:
        version = getattr(backends.get_backend(), "platform_version", "")
        names |= {maker for maker in ("cuda", "rocm", "oneapi") if maker in version}
    return names


def test_device_matches(device_types: Iterable[str]) -> bool:
    """Whether tests run on one of the platforms.

    >>> test_device_matches(["cpu", "tpu"]), test_device_matches(["gpu"])
    (True, False)
    """
    assert not isinstance(device_types, str), (
        f"device_types is a list of platforms; got the text {device_types!r}")
    return not _tags().isdisjoint(device_types)


test_device_matches.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for a test


def is_device_cuda() -> bool:
    """Whether tests run on NVIDIA's GPUs."""
    return test_device_matches(["cuda"])


def is_device_rocm() -> bool:
    """Whether tests run on AMD's GPUs."""
    return test_device_matches(["rocm"])


def is_device_oneapi() -> bool:
    """Whether tests run on Intel's GPUs."""
    return test_device_matches(["oneapi"])


def device_kind_match(device_patterns: str | Sequence[str]) -> str | None:
    """The first of the regular expressions that the kind of the device has, or None."""
    return pattern_search(device_patterns, backends.devices()[0].device_kind)


def pattern_search(patterns: str | Sequence[str], string: str) -> str | None:
    """The first of the regular expressions that a string has, or None.

    >>> pattern_search(["b+", "a"], "abc")
    'b+'
    """
    each = (patterns,) if isinstance(patterns, str) else patterns
    return next((pattern for pattern in each if re.search(pattern, string)), None)


# Kinds of TPUs whose names do not end in their variants.
_TPU_KINDS = {"5e": "TPU v5 lite", "5p": "TPU v5$", "6e": "TPU v6 lite", "7x": "TPU7x",
              "8i": "TPU8i"}


def get_tpu_version() -> int:
    """The version of the TPU that tests run on.

    Raises:
      ValueError: it is no TPU, or not known.
    """
    if not test_device_matches(["tpu"]):
        raise ValueError("Device is not TPU")
    kind = backends.devices()[0].device_kind
    found = re.match(r"TPU\D*(\d+)", kind)
    if found is None:
        raise ValueError(f"Device kind {kind} is not supported")
    return int(found[1])


def is_device_tpu(version: int | None = None, variant: str = "") -> bool:
    """Whether tests run on TPUs, of a version, and a variant such as `e`, if they are given."""
    if version is None or not test_device_matches(["tpu"]):
        return test_device_matches(["tpu"])
    name = f"{version}{variant}"
    return device_kind_match(_TPU_KINDS.get(name, f"TPU v{name}")) is not None


def is_device_tpu_at_least(version: int) -> bool:
    """Whether tests run on TPUs of a version or a later one."""
    return test_device_matches(["tpu"]) and get_tpu_version() >= version


def is_cloud_tpu() -> bool:
    """Whether tests run on TPUs: all that jaxlib reaches are in the cloud."""
    return test_device_matches(["tpu"])


def _capability() -> tuple[int, ...]:
    found = getattr(backends.devices()[0], "compute_capability", "0") if is_device_cuda() else "0"
    return tuple(map(int, str(found).split(".")))


def is_cuda_compute_capability_at_least(capability: str) -> bool:
    """Whether the device is an NVIDIA GPU of the compute capability, such as "9.0", or above."""
    return is_device_cuda() and _capability() >= tuple(map(int, capability.split(".")))


def is_cuda_compute_capability_equal(capability: str) -> bool:
    """Whether the device is an NVIDIA GPU of the compute capability, such as "9.0"."""
    return is_device_cuda() and _capability() == tuple(map(int, capability.split(".")))


def is_cuda_version_at_least(major: int, minor: int) -> bool:
    """Whether tests run on NVIDIA's GPUs with such a version of CUDA or a later one."""
    found = re.search(r"cuda (\d+)", getattr(backends.get_backend(), "platform_version", ""))
    return is_device_cuda() and found is not None and int(found[1]) >= 1000 * major + 10 * minor


def request_cpu_devices(nr_devices: int) -> None:
    """Let the CPU have so many devices; tests that need more are skipped where it is too late."""
    if configuration.num_cpu_devices.value < nr_devices:
        with suppress(RuntimeError):  # a client has started
            configuration.num_cpu_devices.update(nr_devices)


# -- skipping --------------------------------------------------------------------------------------


def _only_where(runs: Callable[[], bool], reason: Callable[[], str]) -> Callable[[Any], Any]:
    """A decorator of tests, or of classes of them, that are skipped where `runs` says no.

    It is asked when a test begins: no client is started before."""

    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            set_up = test.setUp  # type: ignore[attr-defined]

            @functools.wraps(set_up)
            def checked(self: Any) -> None:
                if not runs():
                    self.skipTest(reason())
                set_up(self)

            test.setUp = checked  # type: ignore[attr-defined]
            return test

        @functools.wraps(test)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not runs():
                self.skipTest(reason())
            return test(self, *args, **kwargs)

        return run

    return decorate


def run_on_devices(*enabled_devices: str, skip_reason: str | None = None) -> Callable[[Any], Any]:
    """A decorator: the test, or the class of tests, runs on these platforms only."""
    return _only_where(lambda: test_device_matches(enabled_devices),
                       lambda: skip_reason or f"Runs on {', '.join(enabled_devices)} only, not on "
                                              f"{device_under_test()}.")


def skip_on_devices(*disabled_devices: str, skip_reason: str | None = None
                    ) -> Callable[[Any], Any]:
    """A decorator: the test, or the class of tests, is skipped on these platforms."""
    return _only_where(lambda: not test_device_matches(disabled_devices),
                       lambda: skip_reason or f"Does not run on {device_under_test()}.")


def device_supports_buffer_donation() -> Callable[[Any], Any]:
    """A decorator: the test runs on platforms where arrays are donated to programs."""
    return run_on_devices("cpu", "gpu", "tpu")


def skip_on_flag(flag_name: str, skip_value: Any) -> Callable[[Any], Any]:
    """A decorator: the test is skipped while a flag of `jax.config` has a value."""
    return _only_where(lambda: configuration.config.read(flag_name) != skip_value,
                       lambda: f"Does not run where {flag_name} is {skip_value!r}.")


def skip_under_pytest(reason: str) -> Callable[[Any], Any]:
    """A decorator: the test is skipped where pytest runs it."""
    return _only_where(lambda: not is_running_under_pytest(), lambda: reason)


def is_running_under_pytest() -> bool:
    """Whether pytest runs the tests."""
    return "pytest" in sys.modules


def pytest_mark_if_available(marker: str) -> Callable[[Any], Any]:
    """A decorator: the test, or the class of tests, has a mark of pytest's if that is installed."""
    try:
        import pytest  # which suites of absl do without
    except ImportError:
        return lambda test: test
    return getattr(pytest.mark, marker)  # type: ignore[no-any-return]


# -- dtypes ----------------------------------------------------------------------------------------


def supported_dtypes() -> set[Any]:
    """The dtypes that tests use on the device."""
    names = "bool int8 int16 int32 uint8 uint16 uint32 float16 float32 complex64 bfloat16"
    if test_device_matches(["gpu"]):
        names += " float8_e4m3fn float8_e5m2"
    else:
        names += " int4 uint4"
    if test_device_matches(["tpu"]):
        names += " float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz"
    elif configuration.enable_x64.value:
        names += " int64 uint64 float64 complex128"
    return {np.dtype(name).type for name in names.split()}


def num_float_bits(dtype: Any) -> int:
    """How many bits the real numbers of an inexact dtype have in arrays.

    >>> num_float_bits(np.complex64), num_float_bits(np.float64)
    (32, 32)
    """
    return int(finfo(canonicalize_dtype(dtype)).bits)


class _Dtypes:
    """Groups of dtypes, each as a list of those that the device and `jax_enable_x64` allow."""

    def supported(self, dtypes: Sequence[Any]) -> list[Any]:
        """Those that tests use on the device."""
        return [t for t in dtypes if t in supported_dtypes()]

    @property
    def custom_floats(self) -> list[Any]:
        return self.supported([ml_dtypes.bfloat16])

    @property
    def floating(self) -> list[Any]:
        return self.supported([np.float32, np.float64])

    @property
    def all_floating(self) -> list[Any]:
        return self.supported([ml_dtypes.bfloat16, np.float16, np.float32, np.float64])

    @property
    def integer(self) -> list[Any]:
        return self.supported([np.int32, np.int64])

    @property
    def all_integer(self) -> list[Any]:
        return self.supported([np.int8, np.int16, np.int32, np.int64])

    @property
    def unsigned(self) -> list[Any]:
        return self.supported([np.uint32, np.uint64])

    @property
    def all_unsigned(self) -> list[Any]:
        return self.supported([np.uint8, np.uint16, np.uint32, np.uint64])

    @property
    def complex(self) -> list[Any]:
        return self.supported([np.complex64, np.complex128])

    @property
    def boolean(self) -> list[Any]:
        return self.supported([np.bool_])

    @property
    def inexact(self) -> list[Any]:
        return self.floating + self.complex

    @property
    def all_inexact(self) -> list[Any]:
        return self.all_floating + self.complex

    @property
    def numeric(self) -> list[Any]:
        return self.floating + self.integer + self.unsigned + self.complex

    @property
    def all(self) -> list[Any]:
        return (self.all_floating + self.all_integer + self.all_unsigned + self.complex
                + self.boolean)


dtypes = _Dtypes()

# -- versions and builds ---------------------------------------------------------------------------


def parse_version(v: str) -> tuple[int, ...]:
    """The numbers that a version begins with.

    >>> parse_version("0.12.0.dev1")
    (0, 12, 0)
    """
    found = re.match(r"\d+(\.\d+)*", v)
    if found is None:
        raise ValueError(f"no version number: {v!r}")
    return tuple(map(int, found[0].split(".")))


def numpy_version() -> tuple[int, ...]:
    """The version of NumPy."""
    return parse_version(np.__version__)


def jaxlib_version() -> tuple[int, ...]:
    """The version of jaxlib."""
    return jaxlib_api.JAXLIB_VERSION


def is_sanitized() -> bool:
    """Whether jaxlib was built with a sanitizer: its wheels are not."""
    return False


is_asan = is_msan = is_tsan = is_sanitized


def is_optimized_build() -> bool:
    """Whether jaxlib was built with optimizations: its wheels are."""
    return True


def is_gil_disabled() -> bool:
    """Whether this is a Python without a global lock."""
    return not getattr(sys, "_is_gil_enabled", lambda: True)()
