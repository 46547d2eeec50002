"""The one adapter over jaxlib: every private name of jaxlib that pyjx uses is touched here.

Supports jaxlib 0.7.2 to 0.12. Everything above imports from this module, so that a change in
jaxlib is met in one place.

jaxlib's C++ code imports a few modules of the package `jax` by itself (`jax.core` for the aval of
an array that C++ made, `jax._src.named_sharding`, `jax._src.sharding_impls`). Where jax is
installed this would import it in silence, so this module answers those imports with pyjx's own
objects, once; `jax_imports` blocks the one that is looked up for every array.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import importlib
import os
import re
import threading
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyjx.jax_imports import answering, watch
from pyjx.lazy import deferred

# Before jaxlib is loaded: only warnings and errors of XLA's C++ log reach the user.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import jaxlib
from jaxlib import _jax

ir = deferred("jaxlib.mlir.ir")  # the bindings of MLIR are large
extension = deferred("jaxlib.mlir._mlir_libs._jax_mlir_ext")

try:
    from jaxlib import _hlo
except ImportError:  # jaxlib < 0.8 has these classes in _jax
    _hlo = _jax

JAXLIB_RELEASE: str = jaxlib.__version__  # with a fourth number, if it has one
JAXLIB_VERSION: tuple[int, ...] = tuple(int(p) for p in jaxlib.__version__.split(".")[:3])

# C++ classes and modules, by the name that every supported version has.
Config = _jax.config.Config
pytree = _jax.pytree
guard_lib = _jax.guard_lib
Traceback = _jax.Traceback

Client = _jax.Client
Device = _jax.Device
DeviceList = _jax.DeviceList
Memory = _jax.Memory
DeviceAssignment = _jax.DeviceAssignment
CompileOptions = _jax.CompileOptions
LoadedExecutable = _jax.LoadedExecutable
ArrayImpl = _jax.ArrayImpl
ArrayBase = _jax.Array
Sharding = _jax.Sharding
SingleDeviceSharding = _jax.SingleDeviceSharding
GSPMDSharding = _jax.GSPMDSharding
HloSharding = _hlo.HloSharding
OpSharding = _hlo.OpSharding
HostBufferSemantics = _jax.HostBufferSemantics
ArrayCopySemantics = _jax.ArrayCopySemantics
PjitFunctionCache = _jax.PjitFunctionCache
PjitFunction = _jax.PjitFunction

# What callbacks on buffers are given.
Buffer = _jax.ffi.Buffer
ExecutionContext = _jax.ffi.ExecutionContext
ExecutionStage = _jax.ffi.ExecutionStage
JaxRuntimeError: type[RuntimeError] = getattr(_jax, "JaxRuntimeError", None) or _jax.XlaRuntimeError

# isinstance(x, ArrayBase) asks the C++ metaclass, which also knows tracers.
ARRAY_CLASS_KNOWS_TRACERS: bool = hasattr(_jax, "ArrayMeta")


# ---- start-up -----------------------------------------------------------------------------


def initialize(tracer_class: Any) -> None:
    """Tell C++ which class the tracers have; call it once, before the first array is made."""
    watch()
    if hasattr(_jax, "set_tracer_class"):
        _jax.set_tracer_class(tracer_class)
    if hasattr(_jax.jax_jit, "set_thread_local_state_initialization_callback"):
        _jax.jax_jit.set_thread_local_state_initialization_callback(lambda: None)


# Lets go of the Python objects that C++ has no more use for, such as callbacks of programs that are
# gone and NumPy arrays behind buffers. C++ does so by itself at the next call only.
collect_garbage: Callable[[], None] = _jax.collect_garbage


def _with_python(phase: str, info: Any, collect: Callable[[], None] = collect_garbage) -> None:
    """What goes while Python collects takes what it held along."""
    collect()


gc.callbacks.append(_with_python)


class _OwnSpecs(_jax.NamedSharding):
    """Where C++ takes specs of a class of its own alone (before 0.10.1), from which 0.9.1 lets none
    derive: the one that it is given has the spec in its only entry."""

    __slots__ = ()
    _check: Callable[..., None]
    _own_spec = _jax.NamedSharding.spec

    def __init__(self, mesh: object, spec: object, memory_kind: str | None = None,
                 _logical_device_ids: tuple[int, ...] | None = None) -> None:
        self._check(mesh, spec)
        boxed = _jax.PartitionSpec((spec, None))  # C++ makes None of entries that are empty
        super().__init__(mesh, boxed, memory_kind, _logical_device_ids)

    @property
    def spec(self) -> object:
        return self._own_spec._partitions[0][0]


NamedSharding: Any = _OwnSpecs if hasattr(_jax, "PartitionSpec") else _jax.NamedSharding
if NamedSharding is _OwnSpecs:
    _OwnSpecs.__name__ = _OwnSpecs.__qualname__ = "NamedSharding"


def set_check_pspec(check_pspec: Callable[..., None], spec: Any) -> None:
    """Let the constructor of NamedSharding call `check_pspec(mesh, spec)`.

    `spec` is any valid partition spec: C++ looks the function up once, in the first construction.
    """

    class EmptyMesh:
        size = 1
        _internal_device_list = None

    watch()
    _OwnSpecs._check = staticmethod(check_pspec)
    asked = check_pspec if NamedSharding is not _OwnSpecs else lambda mesh, spec: None
    with answering({"jax._src.named_sharding": {"check_pspec": asked}}):
        NamedSharding(EmptyMesh, spec)


_shaped_array: type | None = None


def set_shaped_array(shaped_array: type) -> None:
    """Let arrays made in C++ (by dlpack, from shards) have avals of this class."""
    global _shaped_array
    _shaped_array = shaped_array


_primed = False


def _prime_arrays(client: Any) -> None:
    """C++ looks ShapedArray up once, for the first array that it makes by itself."""
    global _primed
    if _primed or _shaped_array is None or not client.local_devices():
        return
    _primed = True
    with answering({"jax.core": {"ShapedArray": _shaped_array}}):
        buffer = np.zeros(128, np.uint8)  # aligned, or C++ warns of a copy
        start = -buffer.ctypes.data % 64
        capsule = buffer[start:start + 64].__dlpack__()
        _jax.dlpack_managed_tensor_to_buffer(capsule, client.local_devices()[0], None).aval  # noqa: B018


# ---- configuration states -----------------------------------------------------------------

unset = _jax.config.unset

# Before these setters existed (jaxlib 0.7) the three states were fields of a C++ struct.
HAS_CONFIG_STATES: bool = hasattr(_jax.jax_jit, "set_enable_x64_state")


def init_config_state(state: Any, name: str, value: Any, in_jit_key: bool,
                      in_trace_context: bool) -> None:
    """Runs the constructor of `Config` on `state`."""
    if HAS_CONFIG_STATES:
        Config.__init__(state, name, value, include_in_jit_key=in_jit_key,
                        include_in_trace_context=in_trace_context)
    else:
        Config.__init__(state, value, include_in_jit_key=in_jit_key)


# () -> the values of all states with in_trace_context, in this thread; None on jaxlib 0.7.
trace_context: Any = getattr(_jax.config, "trace_context", None)


def register_config_states(enable_x64: Any, disable_jit: Any, post_hook: Any) -> None:
    """Makes the C++ fast paths read x64, disable_jit and the post-call hook from these states.

    Mandatory before the first array or compiled call: jaxlib aborts without it.
    """
    if HAS_CONFIG_STATES:
        _jax.jax_jit.set_enable_x64_state(enable_x64)
        _jax.jax_jit.set_disable_jit_state(disable_jit)
        _jax.jax_jit.set_post_hook_state(post_hook)
    else:
        mirror_config_state("enable_x64", enable_x64.value, thread_local=False)
        mirror_config_state("disable_jit", disable_jit.value, thread_local=False)
        mirror_config_state("post_hook", post_hook.value, thread_local=False)


def mirror_config_state(field: str, value: Any, thread_local: bool) -> None:
    """Copies the value of a state to the C++ struct of jaxlib 0.7; None unsets it."""
    jit = _jax.jax_jit
    setattr(jit.thread_local_state() if thread_local else jit.global_state(), field, value)


def set_guard(field: str, level: str | None, thread_local: bool) -> None:
    """Sets the transfer or garbage-collection guard `field` to the level named `level`."""
    lib = _jax.guard_lib
    levels = (lib.GarbageCollectionGuardLevel if field == "garbage_collect_array"
              else lib.TransferGuardLevel)
    state = lib.thread_local_state() if thread_local else lib.global_state()
    setattr(state, field, None if level is None else getattr(levels, level.upper()))


class asked_for:
    """A context whose transfers of one kind, `device_put` or `device_get`, the user has asked for:
    guards that are against others let them pass."""

    __slots__ = ("_before", "_field", "_state")

    def __init__(self, kind: str) -> None:
        self._field = f"explicit_{kind}"
        self._state = _jax.guard_lib.thread_local_state()

    def __enter__(self) -> None:
        self._before = getattr(self._state, self._field)
        setattr(self._state, self._field, True)

    def __exit__(self, *exc: object) -> None:
        setattr(self._state, self._field, self._before)


def set_thread_guard(enabled: bool) -> None:
    """Switches the check that arrays stay in the thread which made them (jaxlib >= 0.8)."""
    update = getattr(_jax.guard_lib, "update_thread_guard_global_state", None)
    if update is not None:
        update(enabled)


# ---- clients ------------------------------------------------------------------------------


def make_cpu_client(num_devices: int | None = None, *, asynchronous: bool = True,
                    **distributed: Any) -> Any:
    """The PJRT client of the host. `distributed`: distributed_client, node_id, collectives..."""
    options = {k: v for k, v in distributed.items() if v is not None}
    asked = os.environ.get("NPROC")
    threads = asked
    if num_devices is not None:
        options["num_devices"] = num_devices
        if num_devices > 1 and JAXLIB_VERSION < (0, 12):
            # Queued programs with collectives starve a pool of fewer threads, and XLA then aborts.
            known = int(asked) if asked is not None and asked.isdigit() else os.cpu_count() or 1
            threads = str(max(2 * num_devices, known))
    set_environment("NPROC", threads)
    try:
        client = _jax.get_tfrt_cpu_client(asynchronous=asynchronous, **options)
    finally:
        set_environment("NPROC", asked)  # it is the user's, and that of child processes
    _prime_arrays(client)
    return client


def set_environment(name: str, value: str | None) -> None:
    """Set a variable of the environment, or remove it with None."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def make_cpu_collectives(implementation: str | None, coordination_client: Any) -> Any:
    """What operations over the CPUs of several processes communicate by; None for none.

    Raises:
      NotImplementedError: jaxlib cannot use it here.
    """
    if implementation is None:
        return None
    if implementation == "gloo":
        return _jax.make_gloo_tcp_collectives(distributed_client=coordination_client)
    if implementation == "mpi" and os.environ.get("MPITRAMPOLINE_LIB"):  # without it jaxlib exits
        collectives = _jax.make_mpi_collectives()
        collectives.Init()
        atexit.register(collectives.Finalize)
        return collectives
    need = "needs MPItrampoline: set MPITRAMPOLINE_LIB to a wrapped MPI library" \
        if implementation == "mpi" else "is not in jaxlib"
    raise NotImplementedError(f"jax_cpu_collectives_implementation={implementation!r} {need}. "
                              "'gloo', which is the default, needs nothing else.")


def load_plugin(platform: str, library: str) -> Any:
    """Load and initialise a PJRT plugin; returns its C API, for `make_topology`."""
    loaded = _jax.pjrt_plugin_loaded(platform)
    api = None if loaded else _jax.load_pjrt_plugin(platform, library, None)
    if not _jax.pjrt_plugin_initialized(platform):
        _jax.initialize_pjrt_plugin(platform)
    return api


def make_plugin_client(platform: str, options: Mapping[str, Any], distributed_client: Any = None
                       ) -> Any:
    """The PJRT client of a loaded plugin."""
    client = _jax.get_c_api_client(platform, dict(options), distributed_client)
    _prime_arrays(client)
    return client


def make_topology(api: Any, name: str, options: Mapping[str, Any]) -> Any:
    """A description of devices that need not be present, for ahead-of-time compilation."""
    return _jax.get_c_api_topology(api, name, dict(options))


def serialize_topology(devices: Sequence[Any]) -> bytes:
    """The topology of devices as bytes."""
    if not hasattr(_jax.DeviceTopology, "serialize"):
        raise NotImplementedError(f"jaxlib {JAXLIB_RELEASE} does not serialize topologies; "
                                  "0.11 and later do.")
    return _jax.get_topology_for_devices(devices).serialize()


def deserialize_topology(data: bytes) -> Any:
    """The inverse of `serialize_topology`."""
    if not hasattr(_jax.DeviceTopology, "deserialize"):
        raise NotImplementedError(f"jaxlib {JAXLIB_RELEASE} does not read topologies; 0.11 and "
                                  "later do.")
    return _jax.DeviceTopology.deserialize(data)


# ---- programs -----------------------------------------------------------------------------


def compile_and_load(client: Any, program: Any, devices: Any, options: Any,
                     host_callbacks: Sequence[Any] = ()) -> Any:
    """Compile StableHLO (text, bytecode or an MLIR module) for a `DeviceList`.

    Programs with host callbacks must be MLIR modules: newer versions take no text there.
    """
    functions = [list(host_callbacks)] if host_callbacks else []
    if functions and isinstance(program, (str, bytes)) and JAXLIB_VERSION >= (0, 8):
        program = parse_module(program)
    try:
        return client.compile_and_load(program, devices, options, *functions)
    except (JaxRuntimeError, TypeError):
        raise
    # Where a signal's exception ends the wait (jaxlib 0.10), a thread goes on to compile, and needs
    # what it was given, also while Python ends.
    except BaseException:
        for x in (client, program, devices, options, functions):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
        raise


def transferring_callback(client: Any, fun: Callable[..., Any], sent: Sequence[Any],
                          received: Sequence[Any], send_channels: Sequence[int],
                          receive_channels: Sequence[int]) -> Any:
    """A host callback whose arguments and results travel by channels; `sent` and `received` have
    their shapes and dtypes."""
    shape = getattr(_jax, "Shape", None) or _hlo.Shape

    def shapes(avals: Sequence[Any]) -> list[Any]:
        return [shape.array_shape(a.dtype, tuple(a.shape)) for a in avals]

    return client.make_python_callback_from_host_send_and_recv(
        fun, shapes(sent), shapes(received), list(send_channels), list(receive_channels))


def raw_platform(client: Any) -> str:
    """cuda or rocm where `client.platform` is gpu."""
    return client._raw_platform  # type: ignore[no-any-return]


def lacks_tiles(error: Exception) -> bool:
    """Whether XLA refuses a product because there is no GPU to try kernels of Triton's on."""
    return any([words in str(error) for words in ("output tile sizes", "autotune result")])


def is_compile_only(client: Any) -> bool:
    """Whether the devices of a client are only described, by a topology."""
    return type(client).__name__ == "CompileOnlyPyClient"


def compile_only(client: Any, program: str | bytes, devices: Any, options: Any) -> Any:
    """The executable of StableHLO for devices that are only described."""
    if "computation: bytes" in (client.compile.__doc__ or ""):  # jaxlib 0.7
        text = program.encode() if isinstance(program, str) else program
        return client.compile(text, devices, options)
    return client.compile(parse_module(program), devices, options)


# Whether Python functions can be given to a program that is loaded, as to one that is compiled.
LOADS_HOST_CALLS: bool = JAXLIB_VERSION >= (0, 9)


def deserialize_executable(client: Any, blob: bytes, devices: Any, options: Any,
                           host_callbacks: Sequence[Any] = ()) -> Any:
    """Load what `client.serialize_executable` gave, with the functions that it calls."""
    functions = [list(host_callbacks)] if host_callbacks else []
    return client.deserialize_executable(blob, devices, options, *functions)


def parameter_layouts(loaded: Any, count: int) -> Sequence[Any]:
    """The layouts of the last `count` parameters of a loaded program; None where it cannot say."""
    try:
        layouts = loaded.get_parameter_layouts()
    except (RuntimeError, JaxRuntimeError):  # a plugin that does not know them
        return [None] * count
    return layouts[len(layouts) - count:]  # type: ignore[no-any-return]


def set_effort(build_options: Any, level: str, memory_level: str, time_effort: float,
               memory_effort: float) -> None:
    """Set how hard XLA tries; the two efforts (-1 to 1) are gone from newer versions."""
    if JAXLIB_VERSION >= (0, 8):  # before, the levels could not be set from Python
        build_options.optimization_level = _EFFORT_LEVELS[level]
        build_options.memory_fitting_level = _EFFORT_LEVELS[memory_level]
    if hasattr(build_options, "exec_time_optimization_effort"):
        build_options.exec_time_optimization_effort = time_effort
        build_options.memory_fitting_effort = memory_effort


# Whether arrays on CPU may be of 6-bit floats at all.
CPU_MOVES_6_BITS: bool = JAXLIB_VERSION >= (0, 12)

# Whether XLA's check fails where one of several results is a sum over a whole mesh yet to be taken.
ABORTS_AT_OPEN_RESULTS: bool = JAXLIB_VERSION < (0, 8, 1)
# Whether a constraint makes of a value a sum that is yet to be taken; a cut one stays where it is.
OPENS_SUMS: bool = JAXLIB_VERSION >= (0, 9)
# Whether Shardy takes sums that are yet to be taken once in a loop or a branch, and again behind.
LOSES_OPEN_SUMS: bool = JAXLIB_VERSION < (0, 8)

# Whether XLA can emit the kernels of the CPU without MLIR, by `xla_cpu_use_fusion_emitters=False`.
HAS_OLDER_CPU_EMITTERS: bool = JAXLIB_VERSION < (0, 11)
# Whether XLA's vectors of 512 bits are sound: those of 16-bit floats crash in 0.10.
WIDE_VECTORS: bool = JAXLIB_VERSION >= (0, 12)
# The pass that takes barriers away on the CPU before common subexpressions are looked for.
CPU_BARRIER_PASS: str | None = "cse_barrier_expander" if JAXLIB_VERSION < (0, 12) else None
# How many bytes an iteration may move of a loop that is one kernel on the CPU; XLA itself says 492.
LOOP_BYTES: int | None = 1 << 16 if JAXLIB_VERSION < (0, 12) else None
KERNELS_KNOW_DEVICES: bool = JAXLIB_VERSION >= (0, 9)  # its number; XLA ended the process before
# Whether a call with the attribute `xla_cpu_small_call` is one, too, under a name of its own.
SMALL_CALLS: bool = JAXLIB_VERSION >= (0, 12)

# Operations for which the plugins of GPUs have no kernel in this version; the first is one of XLA's
# own then, and pyjx decomposes the second.
WITHOUT_GPU_KERNEL: frozenset[str] = frozenset(
    [name for name, since in (("cholesky", (0, 8)), ("ormqr", (0, 10))) if since > JAXLIB_VERSION])

# What makes XLA write the code of its kernels beside its dumps; earlier versions do so anyway.
KERNEL_DUMP_OPTIONS: dict[str, Any] = {"xla_dump_emitter_re": "llvm|ptx"} \
    if JAXLIB_VERSION >= (0, 11) else {}

_EFFORT_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}

_context: Any = None
_context_lock = threading.RLock()


def mlir_context() -> Any:
    """An MLIR context that knows every dialect which XLA takes. Imports the MLIR bindings."""
    global _context
    if _context is None:
        with _context_lock:
            if _context is None:
                _context = new_mlir_context()
    return _context


def new_mlir_context() -> Any:
    registry = ir.DialectRegistry()
    extension.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for name in ("stablehlo", "chlo", "sdy"):
        submodule(f"mlir.dialects.{name}").register_dialect(context)
    submodule("mlir.dialects.mhlo").register_mhlo_dialect(context)
    return context


# The modules of MLIR's Python bindings that build operations.
MlirBindings = namedtuple("MlirBindings", ("ir", "func", "stablehlo"))


def mlir_bindings() -> MlirBindings:
    """The bindings, loaded when they are asked for: they are large."""
    return MlirBindings(*[submodule(f"mlir.{name}")
                          for name in ("ir", "dialects.func", "dialects.stablehlo")])


def has_submodule(name: str) -> bool:
    """Whether jaxlib has a module of this name; nothing is imported."""
    return os.path.exists(os.path.join(os.path.dirname(jaxlib.__file__), *name.split(".")) + ".py")


def submodule(name: str) -> Any:
    """A module of jaxlib, such as `mlir.dialects.arith`; AttributeError where there is none."""
    try:
        return importlib.import_module(f"jaxlib.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"jaxlib {JAXLIB_RELEASE} has no module {name!r}") from None


def ifrt_programs() -> Any:
    """The module of programs of other runtimes, which some versions have."""
    return getattr(_jax, "ifrt_programs", None) or submodule("ifrt_programs")


def parse_module(program: str | bytes) -> Any:
    """The MLIR module of a text or bytecode."""
    with mlir_context():
        return ir.Module.parse(program)


def portable_artifact(text: str, version: str) -> bytes:
    """A StableHLO program as bytes that every reader from this version of StableHLO on takes; what
    that version does not know asks for a later one."""
    try:
        return artifact_for(text, version)
    except ValueError:
        return artifact_for(text, mlir_bindings().stablehlo.get_current_version())


def artifact_for(text: str, version: str) -> bytes:
    """As `portable_artifact`, for that version or not at all.

    Raises:
      ValueError: the version cannot express the program.
    """
    try:
        if "sdy.mesh" in text:  # Shardy's operations go in as they are
            with mlir_context():
                return mlir_bindings().stablehlo.serialize_portable_artifact(
                    parse_module(text), version, allow_other_dialects=True)
        return _jax.mlir.serialize_portable_artifact(text, version, False)
    except (RuntimeError, ValueError) as error:
        raise ValueError(str(error)) from None


def hlo_of_text(text: str) -> Any:
    """The XlaComputation of HLO text."""
    module = _hlo.hlo_module_from_text(text)
    return _hlo.XlaComputation(module.as_serialized_hlo_module_proto())


def stablehlo_of_hlo(computation: Any) -> str:
    """The StableHLO program of an HLO computation."""
    convert = getattr(_jax.mlir, "hlo_to_stablehlo", None)
    if convert is None:  # jaxlib < 0.8
        return str(_jax.mlir.xla_computation_to_mlir_module(computation))
    return str(parse_module(convert(computation.as_serialized_hlo_module_proto())))


def artifact_text(artifact: bytes) -> str:
    """The text of a portable artifact. What reads it is C++ that does not stand any bytes: they
    must be known to come from `portable_artifact`."""
    if "context" in _jax.mlir.deserialize_portable_artifact.__doc__:
        return str(_jax.mlir.deserialize_portable_artifact(artifact, mlir_context()))
    text = str(parse_module(_jax.mlir.deserialize_portable_artifact(artifact)))
    # Composites of later versions are not made static there: call what they are made of.
    composite = r'stablehlo\.composite "chlo\.[^"]*" (.*?) \{.*?decomposition = @([\w.]+).*?\} :'
    return re.sub(composite, r"func.call @\2(\1) :", text)


def refined(text: str) -> str:
    """A program whose `main` has static shapes, with all the others computed from them."""
    return str(parse_module(_jax.mlir.refine_polymorphic_shapes(
        text.encode(), enable_shape_assertions=True, validate_static_shapes=True,
        enable_shardy=False)))


def functions_of(text: str) -> dict[str, str]:
    """The functions of a module: their texts by their names."""
    module = parse_module(text)
    return {str(op.attributes["sym_name"])[1:-1]: str(op) for op in module.body.operations}


def profiler() -> Any:
    """The module of XLA's profiler."""
    return submodule("_profiler")


def profile_data() -> Any:
    """The module of the classes of profiles."""
    return submodule("_profile_data")


def to_xla_computation(program: str | bytes) -> Any:
    """The program as an (unoptimised) HLO computation."""
    return _jax.mlir.mlir_module_to_xla_computation(program, use_tuple_args=False,
                                                    return_tuple=False)


def hlo_text(module: Any, metadata: bool) -> str:
    """An HLO module as text; with `metadata` each instruction has its place in the source."""
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_metadata = metadata
    return module.to_string(options)


def hlo_cost_analysis(client: Any, computation: Any) -> dict[str, float] | None:
    """XLA's cost estimates for an HLO computation; None from a client that makes none, such as
    that of a plugin."""
    analysis = _jax if hasattr(_jax, "hlo_module_cost_analysis") else _hlo
    try:
        return analysis.hlo_module_cost_analysis(client, computation.as_hlo_module())
    except RuntimeError as error:
        if "UNIMPLEMENTED" in str(error):
            return None
        raise


def register_custom_call(name: str, handler: Any, platform: str, api_version: int = 1,
                         traits: int = 0) -> None:
    """Make a foreign function (a capsule, or a dict of capsules) known to XLA."""
    _jax.register_custom_call_target(name, handler, platform, api_version, traits)


def register_batch_partitionable(name: str) -> None:
    """Say that a foreign function maps over the leading axes of its operands."""
    _jax.register_custom_call_as_batch_partitionable(name)


def register_partitioner(name: str, propagate: Callable[..., Any], partition: Callable[..., Any],
                         infer: Callable[..., Any]) -> None:
    """Say by Python functions how calls of a foreign function are cut over devices."""
    _jax.register_custom_call_partitioner(name, propagate, partition, infer, True)


def inspection_config(callback: Callable[[Any], None]) -> str:
    """The configuration, as text of MLIR, of a call of `InspectSharding`: when the program is
    partitioned XLA calls the function with the sharding of the operand. It must live until then."""
    return "".join([f"\\{byte:02X}" for byte in _jax.encode_inspect_sharding_callback(callback)])


def include_dir() -> str:
    """The folder of jaxlib's C++ headers."""
    return os.path.join(os.path.dirname(jaxlib.__file__), "include")


def lapack_targets() -> dict[str, Any]:
    """jaxlib's LAPACK functions by name, ready for use. Imports SciPy, which brings LAPACK."""
    lapack = submodule("cpu._lapack")
    lapack.initialize()
    return lapack.registrations()  # type: ignore[no-any-return]


def sparse_targets() -> dict[str, Any]:
    """jaxlib's functions of sparse matrices on CPU, by name."""
    return submodule("cpu._sparse").registrations()  # type: ignore[no-any-return]


def register_custom_type(name: str, type_id: Any) -> None:
    """Make the state type of stateful foreign functions known to XLA."""
    register = getattr(_jax, "register_custom_type", None) or _jax.register_custom_type_id
    register(name, type_id)


# ---- dispatch -----------------------------------------------------------------------------


if "_skip_checks" in _jax.array_result_handler.__doc__:

    def result_handler(aval: Any, sharding: Any, committed: bool) -> Any:
        """What makes an Array of an executable's output buffers."""
        return _jax.array_result_handler(aval, sharding, committed, True)
else:
    result_handler = _jax.array_result_handler


# The record that C++ reads, by these names.
_FastPath = namedtuple(
    "_FastPath", "xla_executable out_pytree_def in_shardings out_shardings out_avals out_committed "
    "kept_var_bitvec in_device_local_layouts const_args")


def FastPath(xla_executable: Any, out_pytree_def: Any, in_shardings: Sequence[Any],
             out_shardings: Sequence[Any], out_avals: Sequence[Any], out_committed: Sequence[bool],
             kept_var_bitvec: Sequence[bool], in_device_local_layouts: Sequence[Any],
             const_args: Sequence[Any]) -> _FastPath:
    """What C++ needs to run a jitted call without Python.

    Args:
      xla_executable: the loaded program.
      out_pytree_def: the structure of the result.
      in_shardings, in_device_local_layouts: of the program's parameters, constants first.
      out_shardings, out_avals, out_committed: of the program's results.
      kept_var_bitvec: for each flat argument of the call, whether the program takes it.
      const_args: arrays that the program takes before the arguments.
    """
    # C++ counts the constants here too, and would read past the end without them.
    kept = [True] * len(const_args) + list(kept_var_bitvec)
    return _FastPath(xla_executable, out_pytree_def, in_shardings, out_shardings, out_avals,
                     out_committed, kept, in_device_local_layouts, const_args)


def pjit_cache(capacity: int = 4096) -> Any:
    """A cache of signatures to fast paths; it may be shared by functions."""
    return PjitFunctionCache(capacity)


def make_pjit(name: str, fun: Callable[..., Any] | None,
              cache_miss: Callable[..., tuple[Any, Any, bool]], static_argnums: Sequence[int],
              static_argnames: Sequence[str], cache_key: Any, registry: Any,
              shard_arg_fallback: Callable[[Any, Any, Any], Any], cache: Any = None) -> Any:
    """The C++ callable of a jitted function.

    `cache_miss(*args, **kwargs)` gives `(outputs, FastPath(...) or None, drop the entry)`.
    """
    if fun is not None and not type(fun).__weakrefoffset__:
        # C++ keeps an empty entry for what it cannot refer to weakly, and reads through it when
        # it meets the function, or another at its address, again
        fun = functools.partial(fun)
    return _jax.pjit(name, fun, cache_miss, static_argnums, static_argnames, cache_key, registry,
                     shard_arg_fallback, cache)


# ---- arrays -------------------------------------------------------------------------------

_ZERO_COPY = HostBufferSemantics.ZERO_COPY
_COPY_NOW = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_batched_device_put = _jax.batched_device_put


def batched_device_put(aval: Any, sharding: Any, shards: Sequence[Any], devices: Sequence[Any],
                       committed: bool = True, alias: bool = False) -> Any:
    """An array of one host (or device) buffer for each local device.

    With `alias` the array may share the memory of the host buffers for as long as it lives, so
    nobody may write to them any more. Without it they are read before the call returns.
    """
    if not alias and len(devices) > 1:
        # C++ cannot copy the same host memory to several devices during the call.
        copies = {id(s): s.copy() if isinstance(s, np.ndarray) else s for s in shards}
        shards = [copies[id(s)] for s in shards]
        alias = True
    return _batched_device_put(aval, sharding, shards, devices, committed, False,
                               _ZERO_COPY if alias else _COPY_NOW, True)


batched_block_until_ready = _jax.batched_block_until_ready


def copy_arrays(arrays: Sequence[Any], device_lists: Sequence[Any], shardings: Sequence[Any],
                semantics: Sequence[Any]) -> list[Any]:
    """Copy arrays between devices (or memories) with the same layout of shards."""
    return _jax.batched_copy_array_to_devices_with_sharding(
        arrays, device_lists, shardings, semantics)


def copy_on_device(array: Any) -> Any:
    """A copy in new buffers on the same devices, as committed as the array is."""
    sharding = array._sharding
    if not sharding.is_fully_addressable:  # C++ would copy the parts of other processes, too
        parts = [copy_on_device(part) for part in array._arrays]
        return ArrayImpl(array.aval, sharding, parts, array._committed, _skip_checks=True)
    copy = copy_arrays([array], [sharding._internal_device_list], [sharding],
                       [ArrayCopySemantics.ALWAYS_COPY])[0]
    return copy if array._committed else commit(copy, sharding, False)


def commit(array: Any, sharding: Any, committed: bool = True, aval: Any = None) -> Any:
    """The same buffers as another array, committed to its devices or not."""
    return ArrayImpl(array.aval if aval is None else aval, sharding, array._arrays, committed,
                     _skip_checks=True)


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    """A read-only NumPy view (or copy, from an accelerator) of an array with one local buffer."""
    return array._single_device_array_to_np_array_did_copy()[0]


_DLPACK_HAS_VERSION = "max_version" in (_jax.buffer_to_dlpack_managed_tensor.__doc__ or "")


def to_dlpack(array: Any, stream: Any = None, max_version: tuple[int, int] | None = None) -> Any:
    """The DLPack capsule of an array on one device."""
    if _DLPACK_HAS_VERSION:
        return _jax.buffer_to_dlpack_managed_tensor(array, stream, max_version)
    return _jax.buffer_to_dlpack_managed_tensor(array, stream)


def from_dlpack(capsule: Any, device: Any, stream: int | None = None) -> Any:
    """An array that shares the capsule's memory where alignment allows. Not yet committed."""
    return _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream)
