"""Backends: which platforms there are, their devices, and why another platform is missing.

A backend starts when it is first needed. Accelerators are PJRT plugins, shared libraries found by
their path (the Python packages around some of them import jax). Platforms in order of preference:
tpu, cuda, rocm, cpu; the flag `jax_platforms` ("cpu", "cuda,cpu", "gpu") overrides it.
"""

from __future__ import annotations

import copyreg
import ctypes
import glob
import math
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pyjx import configuration as config
from pyjx import jaxlib_api
from pyjx.core import avals
from pyjx.core.bounded import kept
from pyjx.core.frames import is_of_handler, warn
from pyjx.core.records import Record
from pyjx.runtime.processes import group
from pyjx.states import State

Client = jaxlib_api.Client
Device = jaxlib_api.Device

# What users call a platform, and the platforms that this may mean.
ALIASES: dict[str, tuple[str, ...]] = {"gpu": ("cuda", "rocm")}
# What a device of a platform calls its platform.
_PUBLIC_NAMES = {"cuda": "gpu", "rocm": "gpu"}


class Plugin(Record):
    """A PJRT plugin: where its library may lie below an entry of sys.path, and its hardware."""

    platform: str
    libraries: tuple[str, ...]
    device_files: tuple[str, ...]
    hardware: str


_PLUGINS = (
    Plugin("tpu", ("libtpu/libtpu.so",), ("/dev/accel*", "/dev/vfio/[0-9]*"), "TPU"),
    Plugin(
        "cuda",
        ("jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"),
        ("/dev/nvidia[0-9]*", "/dev/dxg", "/dev/nvhost-gpu"),
        "NVIDIA GPU",
    ),
    Plugin(
        "rocm",
        ("jax_plugins/xla_rocm7/xla_rocm_plugin.so", "jax_plugins/xla_rocm60/xla_rocm_plugin.so"),
        ("/dev/kfd",),
        "AMD GPU",
    ),
)

jaxlib_api.set_shaped_array(avals.ShapedArray)

# Where there is no TPU, libtpu need not ask a metadata server what machine this is, which it would
# do for minutes, nor be in one process only. Nothing here makes `has_hardware` see a TPU.
_NO_TPU = {
    "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_WORKER_HOSTNAMES": "localhost",
}

_lock = threading.RLock()
_clients: dict[str, Any] = {}  # by platform, those that have started
_failures: dict[str, str] = {}  # by platform, why it did not start
_default_client: Any = None
_plugin_apis: dict[str, Any] = {}


# ---- processes ----------------------------------------------------------------------------


def _warn_of_fork() -> None:
    """A forked child has none of XLA's threads: its first computation would wait for ever."""
    if _clients:
        warn(
            "os.fork() was called after a backend had started. The child has none of its threads "
            "and is likely to deadlock where it uses arrays. Start processes with the method "
            "'spawn' or 'forkserver' of multiprocessing, or before the first computation.",
            RuntimeWarning)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_warn_of_fork)


# ---- finding plugins ----------------------------------------------------------------------


def _library(plugin: Plugin) -> str | None:
    """The path of the plugin's shared library, or None where it is not installed."""
    if plugin.platform == "tpu" and os.environ.get("TPU_LIBRARY_PATH"):
        return os.environ["TPU_LIBRARY_PATH"]
    for folder in sys.path:
        for library in plugin.libraries:
            path = os.path.join(folder or ".", library)
            if os.path.isfile(path):
                return path
    return None


def plugin_library(platform: str) -> str | None:
    """The path of the PJRT library of `platform` ("tpu", "cuda"...), or None."""
    return next((_library(p) for p in _PLUGINS if p.platform == platform), None)


def load_plugin(platform: str) -> Any:
    """The C API of a plugin; needs no device, so topologies can be made of it.

    Raises:
      RuntimeError: the plugin is not installed.
    """
    with _lock:
        if platform not in _plugin_apis:
            path = plugin_library(platform)
            if path is None:
                raise RuntimeError(f"The PJRT plugin of {platform} is not installed.")
            if platform == "cuda":
                _find_cuda_libraries(path)
            _plugin_apis[platform] = jaxlib_api.load_plugin(platform, path)
        return _plugin_apis[platform]


def load_compiler(platform: str) -> Any:
    """As `load_plugin`, to compile for devices that are only described.

    Raises:
      RuntimeError: the plugin is not installed.
    """
    if platform == "tpu" and not has_hardware(platform):
        for variable, value in _NO_TPU.items():
            os.environ.setdefault(variable, value)
    return load_plugin(platform)


def _find_cuda_libraries(plugin_path: str) -> None:
    """Load the CUDA libraries of the `nvidia-*` wheels, which the loader finds by soname only."""
    nvidia = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(plugin_path))), "nvidia")
    for name in ("cudart", "nvrtc", "nvJitLink", "cublasLt", "cublas", "cufft", "cusparse",
                 "cusolver", "cupti", "cudnn", "nccl", "nvshmem_host"):
        for path in sorted(glob.glob(f"{nvidia}/*/lib/lib{name}.so.*")):
            try:
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            except OSError:  # a missing dependency shows up, with its name, in the plugin's error
                continue


def _has_hardware(plugin: Plugin) -> bool:
    if any(glob.glob(pattern) for pattern in plugin.device_files):
        return True
    if plugin.platform == "tpu":
        return _google_pci_device() or "TPU_WORKER_ID" in os.environ
    return False


def has_hardware(platform: str) -> bool:
    """Whether there seems to be a device of a platform, its plugin installed or not."""
    return any([_has_hardware(p) for p in _PLUGINS if p.platform == platform])


def _google_pci_device() -> bool:
    for path in glob.glob("/sys/bus/pci/devices/*/vendor"):
        try:
            with open(path) as f:
                if f.read().strip() == "0x1ae0":
                    return True
        except OSError:
            continue
    return False


# ---- starting backends --------------------------------------------------------------------


def for_more(devices: Sequence[Any], count: int) -> str:
    """How a message ends that there are too few devices: how the CPU becomes so many."""
    if len(devices) >= count or any([d.platform != "cpu" for d in devices]):
        return "."
    return (f". The CPU is {count} devices with JAX_NUM_CPU_DEVICES={count} in the environment, or "
            f"by jax.config.update('jax_num_cpu_devices', {count}) before anything is computed.")


def _make_cpu_client() -> Any:
    count = config.num_cpu_devices.value
    client = jaxlib_api.make_cpu_client(count if count > 0 else _device_count_of_xla_flags(),
                                        asynchronous=config.cpu_enable_async_dispatch.value,
                                        **_group_options())
    config.num_cpu_devices.settle(
        "jax_num_cpu_devices config should be updated before backends are initialized i.e. before "
        "any JAX operation is executed. You should initialize this config immediately after "
        "`import jax`.")
    return client


def _group_options() -> dict[str, Any]:
    """What makes the CPUs of a group of processes devices of one client."""
    client = group.client
    if client is None:
        return {}
    return {
        "distributed_client": client, "node_id": group.process_id,
        "num_nodes": group.num_processes,
        "collectives": jaxlib_api.make_cpu_collectives(
            config.cpu_collectives_implementation.value, client),
        "get_local_topology_timeout_minutes": config.cpu_get_local_topology_timeout_minutes.value,
        "get_global_topology_timeout_minutes":
            config.cpu_get_global_topology_timeout_minutes.value,
    }


def _device_count_of_xla_flags() -> int | None:
    flag = "--xla_force_host_platform_device_count="
    for word in reversed(os.environ.get("XLA_FLAGS", "").split()):
        if word.startswith(flag):
            return _number(word.removeprefix(flag), f"{flag[:-1]} of XLA_FLAGS", least=1)
    return None


def _number(text: str, where: str, kind: type[int | float] = int, least: int = 0) -> Any:
    """The number that a part of the environment says."""
    with suppress(ValueError):
        number = kind(text)
        if number >= least:
            return number
    article = "an integer" if kind is int else "a number"
    raise ValueError(f"{where} must be {article}, {least} or more, got {text!r}. Correct it, or "
                     "leave it out")


def _gpu_options(platform: str) -> dict[str, Any]:
    """Memory is taken as it is needed, unless the user's XLA_PYTHON_CLIENT_* variables differ."""
    env = os.environ
    options: dict[str, Any] = {}
    allocator = env.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
    if allocator not in ("default", "platform", "bfc", "cuda_async"):
        raise ValueError("XLA_PYTHON_CLIENT_ALLOCATOR must be one of default, platform, bfc and "
                         f"cuda_async, got {allocator!r}.")
    if allocator != "default":
        options["allocator"] = allocator
    preallocate = env.get("XLA_PYTHON_CLIENT_PREALLOCATE", "false").lower()
    options["preallocate"] = preallocate in ("1", "t", "true", "y", "yes", "on")
    if env.get("XLA_PYTHON_CLIENT_MEM_FRACTION"):
        name = "XLA_PYTHON_CLIENT_MEM_FRACTION"
        options["memory_fraction"] = _number(env[name], name, float)
    if env.get("XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB"):
        name = "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB"
        options["collective_memory_size"] = _number(env[name], name) << 20
    devices = config.rocm_visible_devices if platform == "rocm" else config.cuda_visible_devices
    if devices.value and devices.value != "all":
        options["visible_devices"] = [
            _number(i, f"Each part of {devices.flag}") for i in devices.value.split(",")]
    if group.client is not None:
        options["node_id"] = group.process_id
        options["num_nodes"] = group.num_processes
        if group.partition_index is not None:
            options["partition_index"] = group.partition_index
    topology = config.mock_gpu_topology.value
    if topology or config.mock_num_gpu_processes.value:  # a client that has no GPUs but says so
        if topology:  # slices x hosts x GPUs of each
            options["mock_gpu_topology"] = topology
            options["num_nodes"] = math.prod([
                _number(n, "Each part of jax_mock_gpu_topology") for n in topology.split("x")[:2]])
        else:
            options["num_nodes"] = config.mock_num_gpu_processes.value
        options["enable_mock_nccl"] = True
    return options


def _client_options(platform: str) -> dict[str, Any]:
    options = _gpu_options(platform) if platform in ("cuda", "rocm") else {}
    extra = config.pjrt_client_create_options.value
    for item in extra.split(";") if extra else ():  # "name:value;name:value"
        name, _, value = item.partition(":")
        options[name] = int(value) if value.lstrip("-").isdigit() else value
    return options


_factories: dict[str, tuple[Callable[[], Any], int]] = {}  # of clients, with priorities


def add_factory(platform: str, factory: Callable[[], Any], priority: int, quietly: bool) -> None:
    """Let `factory` make the client of a platform; one that is not to fail quietly starts now."""
    _factories[platform] = factory, priority
    config.known_platforms.add(platform)
    if not quietly and _start(platform, explicit=True) is None:
        raise RuntimeError(f"Unable to initialize backend '{platform}': {_failures[platform]}")


def _start(platform: str, explicit: bool) -> Any:
    """The client of one platform, or None with the reason in `_failures`."""
    if platform in _clients:
        return _clients[platform]
    try:
        if platform == "cpu":
            client = _make_cpu_client()
        elif platform in _factories:
            client = _factories[platform][0]()
        else:
            plugin = next((p for p in _PLUGINS if p.platform == platform), None)
            if plugin is None:
                _failures[platform] = (
                    f"pyjx knows no such platform{config.platform_meant(platform)}")
                return None
            if _library(plugin) is None:
                _failures[platform] = f"its plugin ({plugin.libraries[0]}) is not installed"
                return None
            if not explicit and not _has_hardware(plugin):
                _failures[platform] = f"its plugin is installed, but no {plugin.hardware} was found"
                return None
            load_plugin(platform)
            client = jaxlib_api.make_plugin_client(
                platform, _client_options(platform), group.client)
    except Exception as error:
        if is_of_handler(error):
            raise
        if not isinstance(error, (RuntimeError, OSError)):  # of a variable, or of a flag
            raise RuntimeError(f"Unable to initialize backend '{platform}': {error}.") from None
        _failures[platform] = f"it failed to start: {error}"
        return None
    _failures.pop(platform, None)
    _clients[platform] = client
    return client


def _requesting() -> State | None:
    """The flag that says which platforms to start; None if none does."""
    flags = config.platforms, config.platform_name, config.xla_backend
    return next((flag for flag in flags if flag.value), None)


def _names(flag: State) -> tuple[str, ...]:
    return tuple(name.strip() for name in flag.value.split(","))


def _is_requested(platform: str) -> bool:
    flag = _requesting()
    return flag is None or any(platform in ALIASES.get(name, (name,)) for name in _names(flag))


def _start_default() -> Any:
    """Start the platform that is preferred among those present."""
    global _default_client
    with _lock:
        if _default_client is not None:
            return _default_client
        flag = _requesting()
        if flag is None:
            _default_client = _start_best()
            if group.client is not None:  # all processes must meet to start the CPUs, so at once
                _start("cpu", explicit=True)
            return _default_client
        for name in (names := _names(flag)):  # each of them must start
            clients = [_start(p, explicit=True) for p in ALIASES.get(name, (name,))]
            client = next((c for c in clients if c is not None), None)
            if client is None:
                platform = ALIASES.get(name, (name,))[0]
                raise RuntimeError(
                    f"Unable to initialize backend '{platform}': {_failures[platform]} (platforms "
                    f"requested: {','.join(names)}; leave out {flag.flag}={flag.value!r}, or "
                    f"{flag.environ} in the environment, to choose a backend automatically)")
            _default_client = _default_client or client
        return _default_client


def _start_best() -> Any:
    for platform in sorted(_factories, key=lambda p: -_factories[p][1]):
        if _factories[platform][1] > 0:
            client = _start(platform, explicit=False)
            if client is not None:
                return client
    for plugin in _PLUGINS:
        client = _start(plugin.platform, explicit=False)
        if client is not None:
            return client
    _warn_of_unused_hardware()
    client = _start("cpu", explicit=True)
    if client is None:
        raise RuntimeError(f"Unable to initialize backend 'cpu': {_failures['cpu']}")
    return client


def _warn_of_unused_hardware() -> None:
    for plugin in _PLUGINS:
        if plugin.platform in _failures and _library(plugin) and _has_hardware(plugin):
            warn(
                f"A {plugin.hardware} may be present, but pyjx falls back to the CPU: "
                f"{_failures[plugin.platform]}")


def started() -> dict[str, Any]:
    """The clients that have started, by what users call their platforms."""
    return {public_name(client): client for client in _clients.values()}


def report() -> dict[str, str]:
    """Why each platform that is not in use is missing, by its name (`cpu` always starts)."""
    with _lock:
        if _requesting() is None:
            for plugin in _PLUGINS:
                _start(plugin.platform, explicit=False)
        return dict(_failures)


# ---- queries ------------------------------------------------------------------------------


def platforms_named(name: str, caller: str) -> tuple[str, ...]:
    """The platforms that users mean by a name, as lowering rules call them: gpu is cuda or rocm.

    Raises:
      ValueError: there is no such platform.
    """
    known = config.known_platforms
    found = (name,) if name in known - set(ALIASES) else ALIASES.get(name.lower(), (name.lower(),))
    if found[0] not in known:
        raise ValueError(f"{caller}: unknown platform {name!r}; the platforms are "
                         f"{', '.join(sorted(known))}{config.platform_meant(name) or '.'}")
    return found


def public_name(client: Any) -> str:
    """"cpu", "gpu" or "tpu"."""
    return _PUBLIC_NAMES.get(client.platform, client.platform)


def get_backend(backend: str | Any | None = None) -> Any:
    """The client of a platform (by default the preferred one), started if necessary.

    Args:
      backend: None, a platform's name ("cpu", "gpu", "cuda", "tpu"), or a client.

    Raises:
      RuntimeError: there is no such platform here; the text says why.
    """
    if backend is None:
        return _default_client or _start_default()
    if not isinstance(backend, str):
        if not hasattr(backend, "devices"):
            raise TypeError(f"backend must be the name of a platform, such as 'cpu', got "
                            f"{backend!r}")
        return backend
    default = _default_client or _start_default()
    wanted = ALIASES.get(backend, (backend,))
    with _lock:
        for platform in wanted:
            if platform in _clients:
                return _clients[platform]
            if _is_requested(platform) or platform == "cpu":
                client = _start(platform, explicit=False)
                if client is not None:
                    return client
            elif (flag := _requesting()) is not None:
                _failures[platform] = f"it is not in {flag.flag}={flag.value!r}"
    present = sorted({public_name(default), *map(public_name, _clients.values())})
    why = "".join(f"\n  {p}: {_failures[p]}" for p in wanted if p in _failures)
    if backend in ALIASES:
        raise RuntimeError(
            f"Unknown backend: '{backend}' requested, but no platforms that are instances of "
            f"{backend} are present. Platforms present are: {','.join(present)}{why}")
    raise RuntimeError(f"Unknown backend {backend}. Available backends are {present}{why}")


def check_not_started() -> None:
    """A process joins others before it has a backend.

    Raises:
      RuntimeError: a backend has started already.
    """
    if _clients:
        raise RuntimeError("jax.distributed.initialize() must be called before any JAX calls that "
                           "might initialise the XLA backend. This includes any computation, but "
                           "also calls to jax.devices, jax.device_put, and others.")


def devices(backend: str | Any | None = None) -> list[Any]:
    """All devices of a backend, those of other processes included.

    >>> import pyjx as jax
    >>> jax.devices("cpu")[0]
    CpuDevice(id=0)
    """
    return get_backend(backend).devices()


def local_devices(process_index: int | None = None, backend: str | Any | None = None,
                  host_id: int | None = None) -> list[Any]:
    """The devices of one process, by default of this one.

    Raises:
      ValueError: `process_index` is not the index of a process.

    >>> import pyjx as jax
    >>> jax.devices()[0] in jax.local_devices()
    True
    """
    client = get_backend(backend)
    index = host_id if process_index is None else process_index
    if index is None:
        return client.local_devices()
    if index not in process_indices(client):
        cure = f". A platform is given as backend={index!r}" * isinstance(index, str)
        raise ValueError(f"Unknown process_index {index}{cure}")
    return [d for d in client.devices() if d.process_index == index]


def device_count(backend: str | Any | None = None) -> int:
    """The number of all devices of a backend.

    >>> import pyjx as jax
    >>> jax.device_count() == len(jax.devices())
    True
    """
    return int(get_backend(backend).device_count())


def local_device_count(backend: str | Any | None = None) -> int:
    """The number of devices of this process.

    >>> import pyjx as jax
    >>> jax.local_device_count() == len(jax.local_devices())
    True
    """
    return int(get_backend(backend).local_device_count())


def process_index(backend: str | Any | None = None) -> int:
    """The index of this process in its group; 0 when there is one process.

    >>> import pyjx as jax
    >>> jax.process_index()
    0
    """
    return int(get_backend(backend).process_index())


def process_indices(backend: str | Any | None = None) -> list[int]:
    """The indices of all processes of the group, in order.

    >>> import pyjx as jax
    >>> jax.process_index() in jax.process_indices()
    True
    """
    return sorted({d.process_index for d in devices(backend)})


def process_count(backend: str | Any | None = None) -> int:
    """The number of processes of the group.

    >>> import pyjx as jax
    >>> jax.process_count()
    1
    """
    return max(process_indices(backend)) + 1


def default_backend() -> str:
    """The name of the preferred platform: "cpu", "gpu" or "tpu".

    >>> import pyjx as jax
    >>> jax.default_backend() in ("cpu", "gpu", "tpu")
    True
    """
    return public_name(get_backend())


def _find_device(platform: str, number: int) -> Any:
    """The device of a pickled reference."""
    for device in devices(platform):
        if device.id == number:
            return device
    raise ValueError(f"There is no device {number} of platform {platform} in this process.")


copyreg.pickle(Device, lambda d: (_find_device, (d.client.platform, d.id)))


@kept(64)
def _first_local_device(platform: str) -> Any:
    return local_devices(backend=platform)[0]


_first_default_device: Any = None


def default_device() -> Any:
    """The device of arrays that are committed to none: that of the flag, or the first one."""
    global _first_default_device
    device = config.default_device.value
    if device is None:
        if _first_default_device is None:
            _first_default_device = get_backend().local_devices()[0]
        return _first_default_device
    return _first_local_device(device) if isinstance(device, str) else device


# The libtpu that was released with a jaxlib.
LIBTPU = {"0.7.2": "0.0.23", "0.8.0": "0.0.24", "0.8.2": "0.0.32", "0.9.0": "0.0.34",
           "0.9.2": "0.0.37", "0.10.0": "0.0.40", "0.10.1": "0.0.41", "0.10.2": "0.0.42",
           "0.11.0": "0.0.44", "0.12.0": "0.0.50", "0.12.0.1": "0.0.50"}


def libtpu_requirement() -> str:
    """What pip is to install for a TPU: the libtpu of the time of this jaxlib."""
    release = jaxlib_api.JAXLIB_RELEASE
    minor = release[:release.index(".", 2) + 1]
    known = LIBTPU.get(release) or next((v for k, v in LIBTPU.items() if k.startswith(minor)), None)
    return f"'libtpu=={known}.*'" if known else "libtpu"
