"""Flags: every option of `jax.config`, each also an environment variable and most a context.

A flag is a `State`, an attribute of this module named without the prefix `jax_`. Those that change
the traced or compiled program are `traced`.

>>> enable_x64.value
False
>>> with enable_x64(True):
...     enable_x64.value
...
True
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyjx import jaxlib_api
from pyjx.lazy import deferred
from pyjx.states import Budget as Budget
from pyjx.states import Context, Kind, LocalState, State, checked, states
from pyjx.states import changed_traced as changed_traced
from pyjx.states import checked_budget as checked_budget
from pyjx.states import make_user_context as make_user_context
from pyjx.states import trace_context as trace_context

logging = deferred("logging")  # slow to load, and seldom wanted
difflib = deferred("difflib")
absl_app, absl_flags = deferred("absl.app"), deferred("absl.flags")  # an optional package


class _DisableJit(State):
    """`disable_jit(disable=True)`: its argument has another name than that of the others.

    >>> import pyjx as jax
    >>> with jax.disable_jit():
    ...     jax.jit(lambda x: float(x) + 1)(1.0)
    ...
    2.0
    """

    __slots__ = ()

    def __call__(self, disable: Any = True) -> Context:
        return super().__call__(disable)


# The names of platforms, here or not, and those that stand for several; and those whose clients are
# registered.
known_platforms = {"cpu", "gpu", "cuda", "rocm", "tpu"}


def platform_meant(name: object, words: str = ". Did you mean {!r}?") -> str:
    """For messages: which platform may be meant by a name; nothing where none is like it."""
    close = difflib.get_close_matches(str(name).partition(":")[0].lower(), known_platforms, 1)
    return words.format(close[0]) if close else ""


def _checked_device(flag: str, kind: Any, optional: bool, value: Any) -> Any:
    if value is None or isinstance(value, jaxlib_api.Device) or (
            isinstance(value, str) and value in known_platforms):
        return value
    raise ValueError("jax.default_device must be passed either a Device object (e.g. "
                     "`jax.devices('cpu')[0]`) or a platform name string like 'cpu' or 'gpu', got: "
                     f"{value!r}{platform_meant(value)}")


def _checked_count(flag: str, kind: Any, optional: bool, value: Any) -> Any:
    count = checked(flag, kind, optional, value)
    if count is not None and count < 1 and count != -1:
        raise ValueError(f"{flag} must be a number of devices, 1 or more, or -1 for what XLA_FLAGS "
                         f"says; got {value}.")
    return count


def _checked_bytes(least: int, flag: str, kind: Kind, optional: bool, value: object) -> int | None:
    count: int | None = checked(flag, kind, optional, value)
    if count is not None and count < least:
        unbounded = ", or -1 for no bound" if least < 0 else ""
        raise ValueError(f"{flag} must be a number of bytes, 0 or more{unbounded}; got {value}.")
    return count


def _checked_budget(flag: str, kind: Any, optional: bool, value: Any) -> Any:
    text = checked(flag, kind, optional, value)
    if text is not None:
        checked_budget(text, flag)
    return text


def _checked_limit(flag: str, kind: Kind, optional: bool, value: object) -> int | None:
    """Bytes, as those of a budget; kept as a number."""
    if value is None:
        return None
    try:
        limit = checked_budget(value, flag)
    except (TypeError, ValueError):
        limit = 0.0
    if isinstance(limit, int):
        return limit
    raise ValueError(f"{flag} is bytes, an int or a text such as '12GiB' or '500MB', and more than "
                     f"nothing; got {value!r}.")


DUMP_MODES = ("stablehlo", "jaxpr", "eqn_count_pprof")


def _checked_modes(flag: str, kind: Kind, optional: bool, value: object) -> str | None:
    text: str | None = checked(flag, kind, optional, value)
    for mode in (text or "").split(","):
        if mode.strip() not in ("", *DUMP_MODES):
            raise ValueError(f"{flag}: expected some of {', '.join(DUMP_MODES)}, separated by "
                             f"commas; got {mode.strip()!r}")
    return text


def _checked_regex(flag: str, kind: Kind, optional: bool, value: object) -> str | None:
    text: str | None = checked(flag, kind, optional, value)
    try:
        re.compile(text or "")
    except re.error as error:
        raise ValueError(f"{flag}: {text!r} is no regular expression: {error}.") from None
    return text


# --- what a change of some flags does besides ----------------------------------------------------


def _mirror(field: str) -> Callable[[Any, bool], None] | None:
    """The hook that keeps jaxlib 0.7's own copy of a state."""
    if jaxlib_api.HAS_CONFIG_STATES:
        return None
    return lambda value, local: jaxlib_api.mirror_config_state(field, value, local)


def _guard(field: str) -> Callable[[Any, bool], None]:
    return lambda value, local: jaxlib_api.set_guard(field, value, local)


_log_handlers: dict[str, Any] = {}  # of loggers that flags have shown, by name


def _show_log(name: str, level: str | None) -> None:
    """Messages of a logger, from this level on, go to stderr; None: not by us any more."""
    logger = logging.getLogger(name)
    handler = _log_handlers.pop(name, None)
    if handler is not None:
        logger.removeHandler(handler)
    logger.setLevel(level or logging.NOTSET)
    if level is not None:
        handler = _log_handlers[name] = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(
            "{levelname}:{asctime}:{name}:{lineno}: {message}", style="{"))
        logger.addHandler(handler)


def _set_logging_level(value: Any, local: bool) -> None:
    if value in (None, "NOTSET"):
        if "pyjx" in _log_handlers:
            _show_log("pyjx", None)
    else:
        _show_log("pyjx", value)


def _log_modules(value: Any, local: bool) -> None:
    """Debug messages of the named modules go to stderr."""
    wanted = {name.strip() for name in (value or "").split(",")} - {""}
    for name in {*_log_handlers} - wanted - {"pyjx"}:
        _show_log(name, None)
    for name in wanted:
        _show_log(name, "DEBUG")


# --- the flags -----------------------------------------------------------------------------------

_GUARD_LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_LEVELS = ("UNKNOWN", "O0", "O1", "O2", "O3")
_MATMUL_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64")
_PRNG_IMPLS = ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")


_on = partial(State, kind=bool, default=True)
_off = partial(State, kind=bool, default=False)
_int = partial(State, kind=int)
_float = partial(State, kind=float)
_str = partial(State, kind=str)

# Types, precision and promotion.
enable_x64 = _off("jax_enable_x64", traced=True, on_change=_mirror("enable_x64"),
                  help="64-bit types are available; without it they are narrowed to 32 bits.")
explicit_x64_dtypes = State("jax_explicit_x64_dtypes", ("warn", "error", "allow"), "warn",
                            traced=True,
                            help="What asking for a 64-bit dtype does while x64 is off.")
numpy_dtype_promotion = State("jax_numpy_dtype_promotion", ("standard", "strict"), "standard",
                              traced=True, help="strict: only weak types promote implicitly.")
numpy_rank_promotion = State("jax_numpy_rank_promotion", ("allow", "warn", "raise"), "allow",
                             traced=True, help="What broadcasting of unequal ranks does.")
default_matmul_precision = State(
    "jax_default_matmul_precision", _MATMUL_PRECISIONS, None, traced=True,
    help="Precision of matrix products and convolutions that were given none.")
allow_f16_reductions = _on("jax_allow_f16_reductions", traced=True,
                           help="Sums of 16-bit floats are allowed.")
check_static_indices = _off("jax_check_static_indices", traced=True,
                            help="Static indices out of bounds raise an error.")

dynamic_shapes = State("jax_dynamic_shapes", ("off", "auto"), "off",
                       help="With auto, a jitted function whose arguments changed a size twice is "
                            "traced once for all sizes and runs padded, as with jit's option "
                            "dynamic, where padding cannot be seen.")

# Random numbers.
default_prng_impl = State("jax_default_prng_impl", _PRNG_IMPLS, "threefry2x32", traced=True,
                          help="Generator of keys that name none.")
enable_custom_prng = _off("jax_enable_custom_prng", traced=True, help="PRNGKey returns typed keys.")
legacy_prng_key = State("jax_legacy_prng_key", ("allow", "warn", "error"), "allow",
                        help="What passing a raw uint32 key does.")
threefry_partitionable = _on("jax_threefry_partitionable", traced=True,
                             help="Bits of threefry do not depend on how an array is cut.")
high_dynamic_range_gumbel = _off("jax_high_dynamic_range_gumbel", traced=True,
                                 help="gumbel draws from more of the values of its dtype.")
random_seed_offset = _int("jax_random_seed_offset", default=0, traced=True,
                          help="Added to every seed.")
debug_key_reuse = _off("jax_debug_key_reuse", traced=True,
                       help="A random key that is used twice raises an error.")

# Debugging.
disable_jit = _DisableJit("jax_disable_jit", bool, False, on_change=_mirror("disable_jit"),
                          help="jit runs the Python function, op by op.")
debug_nans = _off("jax_debug_nans", traced=True,
                  help="A NaN in a result of an operation raises an error; arrays that are made of "
                       "host values, as by `full`, may hold some.")
debug_infs = _off("jax_debug_infs", traced=True,
                  help="An inf in a result of an operation raises an error; arrays that are made "
                       "of host values, as by `full`, may hold some.")
check_tracer_leaks = _off("jax_check_tracer_leaks", traced=True,
                          help="A tracer that outlives its trace raises an error.")
interpret_kernels = _off("jax_pyjx_interpret_kernels", traced=True,
                         help="All kernels of pallas are interpreted, as with interpret=True.")
one_device_meshes = _off(
    "jax_pyjx_one_device_meshes", traced=True,
    help="shard_map runs on one device, as if each axis of its mesh had the size 1.")
pallas_enable_debug_checks = _off(
    "jax_pallas_enable_debug_checks", traced=True,
    help="pallas.debug_check checks what it is given, as checkify.check does.")
enable_checks = _off("jax_enable_checks", help="Checks every jaxpr that is made.")
no_tracing = _off("jax_no_tracing", help="Tracing raises an error.")
no_execution = _off("jax_no_execution", traced=True, help="Running a program raises an error.")
log_compiles = _off("jax_log_compiles", help="Logs each compilation as a warning.")
explain_cache_misses = _off("jax_explain_cache_misses",
                            help="Logs why a function was traced again.")
log_checkpoint_residuals = _off("jax_log_checkpoint_residuals",
                                help="Logs what each checkpoint function keeps.")
logging_level = State(
    "jax_logging_level", ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), "NOTSET",
    on_change=_set_logging_level, help="Messages of this package from this level on go to stderr.")
debug_log_modules = _str("jax_debug_log_modules", default="", on_change=_log_modules,
                         help="Modules, separated by commas, whose debug messages go to stderr.")
traceback_filtering = State(
    "jax_traceback_filtering",
    ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"), "auto",
    help="How frames of this package are hidden from the traceback of an error.")
tracer_error_num_traceback_frames = _int("jax_tracer_error_num_traceback_frames", default=5,
                                         help="Frames that errors about a traced value show of "
                                              "where it was made.")
traceback_in_locations_limit = _int("jax_traceback_in_locations_limit", default=100,
                                    help="Frames of the Python stack in the locations of "
                                         "operations; negative for all.")
include_full_tracebacks_in_locations = _on("jax_include_full_tracebacks_in_locations",
                                           help="Locations of operations hold the user's stack, "
                                                "and not only its innermost frame.")
hlo_source_file_canonicalization_regex = _str(
    "jax_hlo_source_file_canonicalization_regex", default=None, check=_checked_regex,
    help="What this regular expression matches is left out of file names in locations.")
pprint_use_color = _on("jax_pprint_use_color",
                       help="Jaxprs printed by pretty_print() have colours in terminals and "
                            "notebooks.")
experimental_unsafe_xla_runtime_errors = _off(
    "jax_experimental_unsafe_xla_runtime_errors", traced=True,
    help="checkify.check raises inside compiled programs that are not functionalized.")
dump_ir_to = _str("jax_dump_ir_to", default="",
                  help="Folder to which programs are written as they are lowered; empty for none.")
dump_ir_modes = _str("jax_dump_ir_modes", default="stablehlo", check=_checked_modes,
                     help="Which forms are written: stablehlo, jaxpr, eqn_count_pprof, separated "
                          "by commas.")
include_debug_info_in_dumps = _on("jax_include_debug_info_in_dumps",
                                  help="Operations of written programs have their places in the "
                                       "source.")

# Guards.
transfer_guard_host_to_device = State("jax_transfer_guard_host_to_device", _GUARD_LEVELS, None,
                                      on_change=_guard("host_to_device"),
                                      help="What an implicit transfer to a device does.")
transfer_guard_device_to_device = State("jax_transfer_guard_device_to_device", _GUARD_LEVELS,
                                        None, on_change=_guard("device_to_device"),
                                        help="What an implicit transfer between devices does.")
transfer_guard_device_to_host = State("jax_transfer_guard_device_to_host", _GUARD_LEVELS, None,
                                      on_change=_guard("device_to_host"),
                                      help="What an implicit transfer to the host does.")
transfer_guard = State("jax_transfer_guard", _GUARD_LEVELS, None,
                       group=(transfer_guard_host_to_device, transfer_guard_device_to_device,
                              transfer_guard_device_to_host),
                       help="Sets the guards of all three directions of a transfer.")
array_garbage_collection_guard = State(
    "jax_array_garbage_collection_guard", ("allow", "log", "fatal"), None,
    on_change=_guard("garbage_collect_array"),
    help="What an array does that only Python's garbage collector frees.")
thread_guard = _off(
    "jax_thread_guard", on_change=lambda value, local: jaxlib_api.set_thread_guard(bool(value)),
    help="Programs over several processes are launched by one thread only, else an error is "
         "raised.")

# Devices and backends.
default_device = State("jax_default_device", str, None, traced=True, check=_checked_device,
                       help="A device, or the name of a platform, for arrays committed to none.")
platforms = State("jax_platforms", str, None,
                  help="Names of the platforms to start, separated by commas; the first is the "
                       "default.")
platform_name = _str("jax_platform_name", default="",
                     help="The default platform, where jax_platforms does not say it.")
xla_backend = _str("jax_xla_backend", default="", help="As jax_platform_name; an older name.")
num_cpu_devices = _int("jax_num_cpu_devices", default=-1, check=_checked_count,
                       help="How many devices the CPU is; -1: as XLA_FLAGS says, or one. To "
                            "be set before devices are used.")
cpu_enable_async_dispatch = _on("jax_cpu_enable_async_dispatch",
                                help="Calls of programs on the CPU return before they have ended.")
cpu_collectives_implementation = State("jax_cpu_collectives_implementation",
                                       ("gloo", "mpi", "megascale"), "gloo", optional=True,
                                       help="By what processes on CPUs exchange arrays.")
cpu_get_local_topology_timeout_minutes = _int(
    "jax_cpu_get_local_topology_timeout_minutes", default=2,
    help="How long a process waits for what others say of their devices.")
cpu_get_global_topology_timeout_minutes = _int(
    "jax_cpu_get_global_topology_timeout_minutes", default=5,
    help="How long a process waits for the devices of all.")
cuda_visible_devices = _str("jax_cuda_visible_devices", default="all",
                            help="Numbers of the NVIDIA GPUs that are used, separated by commas, "
                                 "or `all`.")
rocm_visible_devices = _str("jax_rocm_visible_devices", default="all",
                            help="Numbers of the AMD GPUs that are used, separated by commas, or "
                                 "`all`.")
mock_gpu_topology = _str("jax_mock_gpu_topology", default="",
                         help="Slices x hosts x GPUs of a cluster that is only pretended, for "
                              "compiling.")
mock_num_gpu_processes = _int("mock_num_gpu_processes", default=0,
                              help="Processes of a cluster of GPUs that is only pretended.")
pjrt_client_create_options = _str("jax_pjrt_client_create_options", default=None,
                                  help="Options for the client of a device platform: "
                                       "name:value;name:value.")

# Compilation and its persistent cache.
optimization_level = State("jax_optimization_level", _LEVELS, "UNKNOWN", traced=True,
                           help="How hard XLA tries to make programs fast.")
memory_fitting_level = State("jax_memory_fitting_level", _LEVELS, "O2", traced=True,
                             help="How hard XLA tries to make programs fit the memory.")
exec_time_optimization_effort = _float("jax_exec_time_optimization_effort", default=0.0,
                                       traced=True,
                                       help="As jax_optimization_level, as a number from -1 to 1.")
memory_fitting_effort = _float("jax_memory_fitting_effort", default=0.0, traced=True,
                               help="As jax_memory_fitting_level, as a number from -1 to 1.")
disable_most_optimizations = _off("jax_disable_most_optimizations", traced=True,
                                  help="Programs compile quickly and run slowly.")
compiler_enable_remat_pass = _on("jax_compiler_enable_remat_pass",
                                 help="XLA may compute values again where memory is short.")
xla_profile_version = _int("jax_xla_profile_version", default=0,
                           help="The version of a remote profile that XLA compiles by.")
enable_compilation_cache = _on("jax_enable_compilation_cache",
                               help="The persistent compilation cache may be used.")
compilation_cache_dir = _str("jax_compilation_cache_dir", default=None,
                             help="Directory of the persistent compilation cache.")
compilation_cache_max_size = _int("jax_compilation_cache_max_size", default=-1,
                                  help="Bytes of that cache beyond which the oldest programs go; "
                                       "-1 for the bound of jax_pyjx_cache_max_bytes.")
compilation_cache_check_contents = _off("jax_compilation_cache_check_contents",
                                        help="Each program found on disk is compiled again and "
                                             "compared, once in a process.")
compilation_cache_include_metadata_in_key = _off("jax_compilation_cache_include_metadata_in_key",
                                                 help="Programs of other places in the source are "
                                                      "other programs for that cache.")
persistent_cache_enable_xla_caches = _str(
    "jax_persistent_cache_enable_xla_caches", default="xla_gpu_per_fusion_autotune_cache_dir",
    help="Which of XLA's own caches for GPUs are kept beside the programs: names, or `all`.")
persistent_cache_min_compile_time_secs = _float(
    "jax_persistent_cache_min_compile_time_secs", default=1.0,
    help="Programs that compile in less are not kept, where this is set.")
persistent_cache_min_entry_size_bytes = _int("jax_persistent_cache_min_entry_size_bytes", default=0,
                                             help="Programs that are smaller are not kept.")
raise_persistent_cache_errors = _off("jax_raise_persistent_cache_errors",
                                     help="Errors of reading and writing the persistent cache are "
                                          "raised, not logged.")
captured_constants_warn_bytes = _int("jax_captured_constants_warn_bytes", default=2000000000,
                                     help="Bytes of captured constants from which on a program "
                                          "warns; -1 for never.")
captured_constants_report_frames = _int("jax_captured_constants_report_frames", default=0,
                                        help="Frames that this warning shows of where each was "
                                             "captured; -1 for all.")
use_simplified_jaxpr_constants = _off("jax_use_simplified_jaxpr_constants",
                                      help="What `make_jaxpr` and `trace` give has captured "
                                           "arrays where they are used, and no constants.")
eager_constant_folding = _off("eager_constant_folding", traced=True,
                              help="What does not depend on arguments is computed while a function"
                                   " is traced.")
export_calling_convention_version = _int("jax_export_calling_convention_version", default=10,
                                         help="The version that exported programs are called by.")
export_ignore_forward_compatibility = _off(
    "jax_export_ignore_forward_compatibility", environ="JAX_EXPORT_IGNORE_FORWARD_COMPATIBILIY",
    help="Accepted, without effect: exported programs are always written for the oldest supported "
         "reader.")

# Transformations.
disable_bwd_checks = _off("jax_disable_bwd_checks",
                          help="Shapes that backward rules of custom_vjp give are not checked.")
mutable_array_checks = _on("jax_mutable_array_checks",
                           help="Passing one reference twice to a function is an error.")

# Sharding and distribution.
use_shardy_partitioner = _on("jax_use_shardy_partitioner", traced=True,
                             help="Programs over several devices are cut by Shardy.")
auto_pcast = _on("jax_auto_pcast", traced=True,
                 help="Operands that vary along other axes of a mesh are cast to vary alike. "
                      "Carries of loops are without it, too, where JAX refuses them.")
remove_size_one_mesh_axis_from_type = _off(
    "jax_remove_size_one_mesh_axis_from_type", traced=True,
    help="Axes of size 1 are left out of the shardings in types.")
disallow_mesh_context_manager = _off("jax_disallow_mesh_context_manager",
                                     help="Entering a mesh by `with` is an error: set_mesh is the "
                                          "way.")
distributed_verify_secure_credentials = _off("jax_distributed_verify_secure_credentials",
                                             help="distributed.initialize raises rather than using"
                                                  " insecure channels.")
enable_recoverability = _off("jax_enable_recoverability",
                             help="Processes go on where others have failed.")
enable_preemption_service = _on("jax_enable_preemption_service",
                                help="Processes are told when they are about to be stopped.")
check_proxy_envs = _on("jax_check_proxy_envs",
                       help="distributed.initialize warns of proxies in the environment.")
mtls_ca_file = _str("jax_mtls_ca_file", default=None,
                    help="Certificates that processes trust, of the coordination service.")
mtls_cert_file = _str("jax_mtls_cert_file", default=None, help="The certificate of this process.")
mtls_key_file = _str("jax_mtls_key_file", default=None,
                     help="The key of this process's certificate.")
mtls_peer_uri_prefix = _str("jax_mtls_peer_uri_prefix", default=None,
                            help="How the URI in a peer's certificate begins.")

# Flags that programs may set, though nothing here reads them: by the reason, their defaults. A type
# stands for None, and a tuple for its first of some values.
_WITHOUT_EFFECT: dict[str, dict[str, Any]] = {
    "nn.softmax always has a derivative of its own.": {"jax_softmax_custom_jvp": False},
    "the inverse error function is always as accurate as XLA has it.": {
        "jax_accurate_erf_inv": False,
    },
    "logistic is always XLA's own operation.": {"jax_use_hlo_logistic_lowering": bool},
    "threefry is lowered to operations, which XLA fuses.": {
        "jax_threefry_gpu_kernel_lowering": False,
    },
    "the runtime knows programs by their own locations.": {
        "jax_send_traceback_to_runtime": ("off", "on", "full"),
    },
    "there are no HTML pages of jaxprs that link to sources.": {"jax_source_url_schema": str},
    "no public function of JAX reads it: jax_debug_nans and checkify find NaNs.": {
        "jax_error_checking_behavior_nan": ("ignore", "raise"),
    },
    "no public function of JAX reads it: checkify finds divisions by zero.": {
        "jax_error_checking_behavior_divide": ("ignore", "raise"),
    },
    "no public function of JAX reads it: jax_pyjx_strict_indices and checkify find such indices.": {
        "jax_error_checking_behavior_oob": ("ignore", "raise"),
    },
    "there is no client for proxy servers.": {"jax_backend_target": ""},
    "Intel's GPUs are not supported.": {"jax_oneapi_visible_devices": "all"},
    "devices are in XLA's order, which is by process.": {"jax_sort_devices_by_process_index": True},
    "eigenvalues of general matrices are computed by LAPACK on the host.": {
        "jax_use_magma": ("auto", "off", "on"),
    },
    "compilations are logged alike, whatever their size.": {
        "jax_compiler_detailed_logging_min_ops": 10,
    },
    "there is no profile-guided optimization.": {
        "jax_compilation_cache_expect_pgle": False, "jax_enable_pgle": False,
        "jax_pgle_profiling_runs": 3, "jax_pgle_aggregation_percentile": 90,
    },
    "programs of custom_partitioning are never kept on disk.": {
        "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    },
    "each process compiles, or reads the persistent cache.": {
        "jax_share_binary_between_hosts": False,
        "jax_share_binary_between_hosts_timeout_ms": 1_200_000,
    },
    "arrays of NumPy of up to 32 bytes are text of a program, other captured ones its arguments.": {
        "jax_embedded_constants_max_bytes": 32,
    },
    "what no version reads any more can't be read.": {
        "jax_export_deserialize_expired_versions": False,
    },
    "see jax_export_calling_convention_version.": {"jax_serialization_version": 0},
    "functions are always linearized directly.": {"jax_use_direct_linearize": True},
    "there is one implementation of each transformation.": {
        "jax_custom_jvp3": False, "jax_custom_vjp3": False, "jax_remat3": False,
        "jax_remat_barrier_no_cotangents": False, "jax_scan3": False,
    },
    "references are discharged before programs are lowered.": {"jax_refs_to_pins": False},
    "groups of devices are written as lists of numbers.": {"jax_use_rgv3": True},
    "arguments are always put by C++ where it can.": {"jax_use_cpp_shard_args": False},
    "a keyword of shard_map says it.": {"check_vma": False},
    "ppermute is right for axes in any order.": {"jax_raise_on_ppermute_sort_diff": True},
    "vmap of shard_map checks nothing that this would switch off.": {
        "jax_disable_vmap_shmap_error": False,
    },
    "jax_logging_level shows what processes do.": {"jax_distributed_debug": False},
    "clear_backends frees a client when its last array is gone.": {
        "jax_debug_leaked_clients_on_clear_backends": False,
    },
    "arrays go between processes by collectives.": {
        "jax_force_dcn_cross_host_transfers": False, "jax_cross_host_transfer_socket_address": "",
        "jax_cross_host_transfer_timeout_seconds": int,
        "jax_cross_host_transfer_transfer_size": int, "jax_cross_host_transport_addresses": "",
    },
    "products of sparse arrays are gathers and scatters on every platform.": {
        "jax_bcoo_cusparse_lowering": False,
    },
    "ragged products are written as dense ones, on every platform.": {
        "jax_ragged_dot_use_ragged_dot_instruction": True,
    },
    "nothing of how kernels are compiled depends on it.": {
        "jax_ragged_dot_use_gpu_pallas_triton_lowering": False, "jax_mosaic_allow_hlo": False,
        "jax_mosaic_unzip_debug_locations": True,
        "jax_pallas_auto_assign_collective_ids": ("no", "yes", "override"),
        "jax_pallas_auto_assign_collective_ids_limit": 25,
        "jax_pallas_poison_buffers": False, "jax_pallas_use_mosaic_gpu": True,
        "jax_pallas_verbose_errors": False, "jax_use_emit_pipeline_primitive": False,
    },
    "there is no jax2tf.": {
        "jax2tf_associative_scan_reductions": False, "jax2tf_default_native_serialization": True,
    },
}
for _reason, _flags in _WITHOUT_EFFECT.items():
    for _flag, _default in _flags.items():
        _kind = _default if isinstance(_default, (type, tuple)) else type(_default)
        _value = _default[0] if isinstance(_default, tuple) else (
            None if isinstance(_default, type) else _default)
        globals()[_flag.removeprefix("jax_")] = State(
            _flag, _kind, _value, help=f"Accepted, without effect: {_reason}")
softmax_custom_jvp = states["jax_softmax_custom_jvp"]
jax2tf_associative_scan_reductions = states["jax2tf_associative_scan_reductions"]

# pyjx's own.
outline = State("jax_pyjx_outline", ("auto", "on", "off"), "auto", traced=True,
                environ="PYJX_OUTLINE",
                help="Whether repeated runs of equations become functions that compile once.")
small_kernels = _on("jax_pyjx_small_kernels", traced=True, environ="PYJX_SMALL_KERNELS",
                    help="On CPU, loops over few numbers are one kernel each, products and "
                         "factorizations of small matrices are operations on their elements, and "
                         "values that stencils read are computed once.")
strict_indices = _off("jax_pyjx_strict_indices", traced=True, environ="PYJX_STRICT_INDICES",
                      help="x[i] and x.at[i] raise an error for indices that are known and out of "
                           "bounds, instead of clamping or dropping them.")
cache = _on("jax_pyjx_cache", environ="PYJX_CACHE",
            help="Keeps compiled programs on disk between processes.")
cache_dir = _str("jax_pyjx_cache_dir", default=None, environ="PYJX_CACHE_DIR",
                 help="Directory of that cache; None for the one of the user's platform.")
cache_max_bytes = _int("jax_pyjx_cache_max_bytes", default=2 << 30,
                       check=partial(_checked_bytes, 0), environ="PYJX_CACHE_MAX_BYTES",
                       help="Size beyond which the oldest programs are removed.")
compile_in_child = _off("jax_pyjx_compile_in_child", environ="PYJX_COMPILE_IN_CHILD",
                        help="Each program is compiled in a process of its own first, so that a "
                             "compiler that aborts is an error.")

programs_max_bytes = _int("jax_pyjx_programs_max_bytes", default=4 << 30,
                          check=partial(_checked_bytes, -1), environ="PYJX_PROGRAMS_MAX_BYTES",
                          help="Memory of compiled programs beyond which the oldest ones go; -1 "
                               "for no bound.")

memory_budget = _str("jax_memory_budget", default=None, traced=True, check=_checked_budget,
                     help="What a program may need of a device's memory, such as 12GiB or 75%: it "
                          "computes values again that do not fit.")
memory_limit = _str("jax_memory_limit", default=None, traced=True, check=_checked_limit,
                    help="Bytes, such as 12GiB, that the arrays of the process and the temporaries "
                         "of a program may take together; with it, arrays are known by the line "
                         "that made them.")

retraces_warn_count = _int(
    "jax_pyjx_retraces_warn_count", default=32, environ="PYJX_RETRACES_WARN_COUNT",
    help="Retraces of a function after which a warning says why, if they took long; -1 for none.")
report = _off("jax_pyjx_report", environ="PYJX_REPORT",
              help="Waits for the first run of each program, whose time `explain()` tells, and "
                   "keeps what was traced: for `python -m pyjx report`.")
retraces_warn_seconds = _float(
    "jax_pyjx_retraces_warn_seconds", default=60.0, environ="PYJX_RETRACES_WARN_SECONDS",
    help="The seconds of tracing and compiling one function that are long.")

# Not flags: which trace is current (in the key, so that a call under a trace never takes the
# compiled path of a call outside of one), and a function called after each fast call.
trace_state = LocalState("trace_state", None, in_jit_key=True)
post_hook = LocalState("post_hook", None)
# The mesh of this thread, with and without its devices; None for an empty one.
mesh = LocalState("mesh", None, in_jit_key=True)
abstract_mesh = LocalState("abstract_mesh", None, in_jit_key=True, in_trace_context=True)
# The mesh that this thread has entered as a context; None for none.
entered_mesh = LocalState("entered_mesh", None, in_jit_key=True, in_trace_context=True)
# What XLA is told of operations that are made now (experimental.xla_metadata).
xla_metadata = LocalState("xla_metadata", None, in_jit_key=True, in_trace_context=True)
# The sizes of the grid whose kernel is being traced (experimental.pallas), None for one that is
# traced: `num_programs` gives them.
kernel_grid = LocalState("kernel_grid", None, in_jit_key=True, in_trace_context=True)
# How kernels are interpreted where all are: True, or the parameters of an interpreter.
interpreter = LocalState("interpreter", True, in_jit_key=True, in_trace_context=True)
# Whether what is linearized will be cut: custom rules ask for it.
rematerializing = LocalState("rematerializing", False, in_trace_context=True)
# Whether batching leaves examples as they are that do not run (engine/lanes.py). These states are
# made here, as one more in the key of what has been traced would make it all be traced again.
keeping_lanes = LocalState("lanes", False, in_trace_context=True)

jaxlib_api.register_config_states(enable_x64, disable_jit, post_hook)


def checking_leaks() -> Context:
    """A context in which a tracer that outlives its trace raises an error.

    >>> import pyjx as jax
    >>> with jax.checking_leaks():
    ...     jax.jit(lambda x: x + 1)(1).item()
    ...
    2
    """
    return check_tracer_leaks(True)


class _Held:
    """The flag of a library on top, whose value an object of its own holds."""

    __slots__ = ("_holder", "default", "environ", "flag", "help", "kind")

    def __init__(self, flag: str, holder: Any, kind: Any, help: str) -> None:
        self.flag = flag
        self.kind = kind
        self.help = help
        self.environ = flag.upper()
        self.default = holder.value
        self._holder = holder

    @property
    def value(self) -> Any:
        return self._holder.value

    def update(self, value: Any) -> None:
        self._holder._set(value)


class Config:
    """`jax.config`: reads flags as attributes, sets them with `update`.

    >>> import pyjx as jax
    >>> jax.config.jax_numpy_rank_promotion
    'allow'
    >>> jax.config.update("jax_numpy_rank_promotion", "raise")
    >>> jax.config.jax_numpy_rank_promotion
    'raise'
    >>> jax.config.update("jax_numpy_rank_promotion", "allow")
    """

    __slots__ = ("use_absl",)

    def __init__(self) -> None:
        object.__setattr__(self, "use_absl", False)

    def update(self, name: str, val: Any) -> None:
        """Sets the global value of the flag `name`.

        Raises:
          AttributeError: there is no such flag.
          ValueError: the flag cannot take this value.
        """
        _state(name).update(val)

    def add_option(self, name: str, holder: Any, opt_type: Any, meta_args: Sequence[Any],
                   meta_kwargs: Mapping[str, Any]) -> None:
        """Makes a flag of a library on top known to `update` and `read`.

        Args:
          name: of the flag.
          holder: has its value as `value`, and sets it by `_set`.
          opt_type: the type of the value, or the values it can take.
          meta_args, meta_kwargs: as for a flag of absl; `help` among the latter is shown.

        Raises:
          ValueError: there is such a flag.
        """
        if name in states:
            raise ValueError(f"Config option {name} already defined")
        states[name] = _Held(name, holder, opt_type, str(meta_kwargs.get("help", "")))  # type: ignore[assignment]

    def read(self, name: str) -> Any:
        """The value of the flag `name`, in this thread."""
        return _state(name).value

    @property
    def values(self) -> dict[str, Any]:
        """The values of all flags, by name."""
        return {name: state.value for name, state in states.items()}

    @property
    def meta(self) -> dict[str, Any]:
        """Type and description of each flag, by name."""
        return {name: (state.kind, [], {"help": state.help}) for name, state in states.items()}

    @property
    def x64_enabled(self) -> bool:
        return bool(enable_x64.value)

    def __getattr__(self, name: str) -> Any:
        state = states.get(name)
        if state is None:
            close = _alike(name)
            raise AttributeError(f"'Config' object has no attribute {name!r}"
                                 + (f". Did you mean {close[0]!r}?" if close else ""))
        return state.value

    def __setattr__(self, name: str, value: Any) -> None:
        flags = [name] if name in states else _alike(name)
        raise AttributeError(f"flags are set with config.update({flags[0]!r}, ...), not by "
                             "assignment" if flags else f"there is no flag {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *states]

    def config_with_absl(self) -> None:
        """Makes each flag an absl flag; its value is taken when absl has parsed its flags."""
        if self.use_absl:
            return
        define: Any = {bool: absl_flags.DEFINE_bool, int: absl_flags.DEFINE_integer,
                       float: absl_flags.DEFINE_float}
        object.__setattr__(self, "use_absl", True)
        for name, state in states.items():
            if isinstance(state.kind, tuple):
                absl_flags.DEFINE_enum(name, state.value, state.kind, state.help)
            else:
                define.get(state.kind, absl_flags.DEFINE_string)(name, state.value, state.help)
        absl_app.call_after_init(lambda: self.complete_absl_config(absl_flags))

    def complete_absl_config(self, absl_flags: Any) -> None:
        """Takes over the flags given on absl's command line."""
        for name in states:
            flag = absl_flags.FLAGS[name]
            if flag.present:
                self.update(name, flag.value)

    def parse_flags_with_absl(self) -> None:
        """Parses the flags of this module in `sys.argv` by absl, leaving others alone."""
        self.config_with_absl()
        ours = [arg for arg in sys.argv[1:]
                if arg.lstrip("-").partition("=")[0].removeprefix("no") in states]
        absl_flags.FLAGS([sys.argv[0], *ours], known_only=True)
        self.complete_absl_config(absl_flags)


def _alike(name: str) -> list[str]:
    """The flag that a name is like, or has as one of its words, if there is one."""
    return difflib.get_close_matches(name, states, 1, 0.75) or [
        flag for flag in states if name.removeprefix("jax_") in flag.split("_")][:1]


def _state(name: str) -> State:
    try:
        return states[name]
    except KeyError:
        # not at the start of every program, of which difflib would take a millisecond
        close = difflib.get_close_matches(str(name), states)
        cure = f"Similar ones are {', '.join(close)}" if close else (
                "python -m pyjx explain lists them")
        raise AttributeError(f"Unrecognized config option: {name}. {cure}.") from None


config = Config()
