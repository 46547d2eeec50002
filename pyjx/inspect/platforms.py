"""What programs are compiled for: devices that are here, or that are only described; versions of
StableHLO."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyjx import configuration, jaxlib_api
from pyjx.core.records import Record
from pyjx.runtime import backends


class UnavailableError(RuntimeError):
    """What was asked for needs something that is not installed, or not here.

    Ways out: the message names what to install, or how many devices there are.
    """


class Platform(Record):
    """Where a program is to run.

    Attributes:
      name: `cpu`, `cuda` or `tpu`.
      kind: the kind of device, such as `h100` or `v5e`; empty for what is here.
      devices: devices to compile for.
      is_here: whether programs can run on them.
    """

    name: str
    kind: str
    devices: tuple[Any, ...]
    is_here: bool

    def __str__(self) -> str:
        return f"{self.name}:{self.kind}" if self.kind else self.name

    def with_devices(self, n_devices: int) -> Platform:
        """The same with so many devices, which are made where that is still possible: CPU devices
        if none have been used, and those that are only described.

        Raises:
          UnavailableError: there are too few.
        """
        if len(self.devices) < n_devices:
            return platform(str(self), n_devices)
        return self._replace(devices=self.devices[:n_devices])


PIP = {"cuda": "jax-cuda13-pjrt", "tpu": "libtpu"}
DEFAULT_TOPOLOGY = "v5e:2x2"
DEFAULT_GPU = "h100"

_GPU = """gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: {shared_memory} threads_per_core_limit: 2048 core_count: {cores}
  fpus_per_core: {fpus} block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 memory_bandwidth: {bandwidth} l2_cache_size: {l2}
  clock_rate_ghz: {clock} device_memory_size: {memory}
  shared_memory_per_block_optin: {optin}
  cuda_compute_capability {{ major: {major} minor: 0 {feature} }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 }}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 patch: 0 }}
device_description_str: "{name}"
"""
_HOPPER = {"shared_memory": 233472, "cores": 132, "fpus": 128, "l2": 52428800, "clock": 1.98,
           "optin": 232448, "major": 9, "feature": "feature_extension: ACCELERATED_FEATURES"}
GPUS: dict[str, Mapping[str, Any]] = {
    "h100": {**_HOPPER, "bandwidth": 3352320000000, "memory": 84978434048,
             "name": "NVIDIA H100 80GB HBM3"},
    "h200": {**_HOPPER, "bandwidth": 4800000000000, "memory": 150109880320,
             "name": "NVIDIA H200"},
    "a100": {"shared_memory": 167936, "cores": 108, "fpus": 64, "l2": 41943040, "clock": 1.41,
             "optin": 166912, "major": 8, "feature": "", "bandwidth": 2039000000000,
             "memory": 84974239744, "name": "NVIDIA A100-SXM4-80GB"},
}


def platform(text: str = "cpu", n_devices: int = 1) -> Platform:
    """The platform of a name such as `cpu`, `cuda`, `cuda:h100`, `tpu` or `tpu:v5e:2x2`.

    With a kind of device it is compiled for and need not be here; `cuda:FILE` names a file with the
    text of XLA's GpuTargetConfigProto. Without one the devices that are here are taken, or if there
    are none an H100 or TPU v5e is.

    Raises:
      UnavailableError: the plugin is not installed, or there are too few devices.
      ValueError: there is no such platform or kind.

    >>> from pyjx import inspect
    >>> inspect.platform("cpu").name
    'cpu'
    """
    name, _, kind = text.partition(":")
    if name not in ("cpu", "cuda", "tpu") or (name == "cpu" and kind):
        raise ValueError(f"platform: expected cpu, cuda, cuda:KIND or tpu:TOPOLOGY, got {text!r}")
    if name == "cpu":
        have_cpus(n_devices)
        return _here(name, backends.devices("cpu"), n_devices)
    if backends.plugin_library(name) is None:
        raise UnavailableError(f"to compile for {text} without its hardware takes its compiler, "
                               f"which is not installed: pip install {_requirement(name)}")
    if not kind and backends.has_hardware(name):
        try:
            return _here(name, backends.devices(name), n_devices)
        except RuntimeError:  # it is there, and cannot be used
            pass
    if name == "tpu":
        return _tpu(kind or DEFAULT_TOPOLOGY, n_devices)
    return _gpu(kind or DEFAULT_GPU, n_devices)


def _requirement(name: str) -> str:
    """What pip is to install: the compiler of the time of this jaxlib."""
    if name == "tpu":
        return backends.libtpu_requirement()
    return f"{PIP[name]}=={jaxlib_api.JAXLIB_RELEASE}"


def have_cpus(n_devices: int) -> None:
    """Let the CPU be so many devices, unless it has started, or a flag says how many it is."""
    chosen = configuration.num_cpu_devices.value > 0 or "cpu" in backends.started()
    if n_devices > 1 and not chosen:
        configuration.config.update("jax_num_cpu_devices", n_devices)


def _here(name: str, devices: Any, n_devices: int) -> Platform:
    if len(devices) < n_devices:
        raise UnavailableError(f"{n_devices} devices are needed; {name} has {len(devices)} here"
                               f"{backends.for_more(devices, n_devices)}")
    return Platform(name, "", tuple(devices[:n_devices]), True)


def _described(name: str, kind: str, topology: str, options: dict[str, Any], n_devices: int
               ) -> Platform:
    try:
        made = jaxlib_api.make_topology(backends.load_compiler(name), topology, options)
    except (jaxlib_api.JaxRuntimeError, RuntimeError) as error:
        raise UnavailableError(f"{name}:{kind}: the compiler knows no such device: "
                               f"{str(error).splitlines()[0]}") from None
    devices = made._make_compile_only_devices()
    if len(devices) < n_devices:
        raise UnavailableError(f"{n_devices} devices are needed; {name}:{kind} has {len(devices)}")
    return Platform(name, kind, tuple(devices[:n_devices]), False)


def _tpu(kind: str, n_devices: int) -> Platform:
    # On a machine with TPUs, another process may hold them.
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    if ":" not in kind:
        kind += ":2x2x1" if kind in ("v4", "v5p", "tpu7x") else ":2x2"
    return _described("tpu", kind, kind, {}, n_devices)


def _gpu(kind: str, n_devices: int) -> Platform:
    known = GPUS.get(kind.lower())
    if known is not None:
        config = _GPU.format(**known)
    else:
        with open(kind, encoding="utf-8") as file:
            config = file.read()
        if "gpu_device_info" not in config:
            raise ValueError(f"platform: {kind} is no text of a GpuTargetConfigProto, which begins "
                             "with gpu_device_info {")
    options = {"topology": f"1x1x{n_devices}", "target_config": config}
    return _described("cuda", kind, "", options, n_devices)


def stablehlo_versions() -> tuple[str, str]:
    """The oldest and the newest version of StableHLO that this jaxlib writes programs for.

    >>> from pyjx import inspect
    >>> inspect.stablehlo_versions()[0]
    '0.9.0'
    """
    stablehlo = jaxlib_api.mlir_bindings().stablehlo
    return stablehlo.get_minimum_version(), stablehlo.get_current_version()
