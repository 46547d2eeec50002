"""From a lowered program to its executable, through the disk cache.

With floats of 6 bits XLA's compiler for CPU moves them and converts to them; asked for anything
else it fails, or ends the process, so programs are looked through first."""

from __future__ import annotations

import math
import os
import pickle
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from lowering.program import LoweredProgram
from lowering.types import CLOSE, OPEN
from pyjx import configuration as config
from pyjx import jaxlib_api
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import nbytes
from pyjx.core.bounded import BoundedDict
from pyjx.core.evaluation import all_eqns, holds_jaxprs
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.core.options import CompilerEffortLevel
from pyjx.lazy import deferred
from pyjx.monitoring import timed
from pyjx.runtime import backends, cache, ledger
from pyjx.runtime.dumps import proto
from pyjx.runtime.executable import DescribedExecutable, Executable
from pyjx.runtime.foreign_functions import families_in, lacking_functions, register_targets
from pyjx.runtime.placement import Placement
from pyjx.states import traced_flags

host_calls = deferred("pyjx.runtime.host_calls")  # callbacks, which few programs have
shield = deferred("pyjx.runtime.shield")  # for what is compiled anew
solving = deferred("pyjx.core.symbolic.solving")  # for a message

LoadedExecutable = jaxlib_api.LoadedExecutable
CompilerOptions = Mapping[str, str | bool | int | float]

_options = BoundedDict(256, "compiler options")  # by everything they are made of


def compile(program: LoweredProgram | str | bytes, **options: Any) -> Any:
    """As `compile_or_load`, without saying where it came from."""
    return compile_or_load(program, **options)[0]


def compile_or_load(program: LoweredProgram | str | bytes, *, devices: Sequence[Any] | None = None,
                    num_replicas: int = 1, num_partitions: int | None = None,
                    compiler_options: CompilerOptions | None = None,
                    host_callbacks: Sequence[Callable[..., Any]] = (),
                    propagate_to_parameters: Sequence[bool] = (),
                    propagate_to_outputs: Sequence[bool] = (),
                    subject: tuple[str, ClosedJaxpr | None] = ("a program", None)
                   ) -> tuple[Any, bool | str]:
    """Compile StableHLO and load it on devices; and whether the disk cache had it, or why it could
    not have it.

    Args:
      program: a lowered program, or MLIR text or bytecode with the entry `main`.
      devices: the devices to run on, replica by replica; by default the default device.
      num_replicas: copies of the program.
      num_partitions: devices of one copy; by default all devices are partitions.
      compiler_options: XLA flags by name, such as `{"xla_cpu_enable_fast_math": True}`.
      host_callbacks: Python functions that a text calls by index.
      propagate_to_parameters, propagate_to_outputs: for each parameter (output) whether the
        partitioner may choose its sharding.
      subject: what errors say of the program.

    Raises:
      JaxRuntimeError: XLA rejects the program or an option.
      TypeError: a compiler option is not a string, bool, int or float.
    """
    device_tuple = (backends.default_device(),) if devices is None else tuple(devices)
    if num_partitions is None:
        num_partitions = len(device_tuple) // num_replicas
    text = program.text if isinstance(program, LoweredProgram) else program
    options = compile_options(device_tuple, num_replicas, num_partitions, compiler_options,
                              propagate_to_parameters, propagate_to_outputs,
                              names_meshes=isinstance(text, str) and "sdy.mesh" in text)
    client = device_tuple[0].client
    device_list = jaxlib_api.DeviceList(device_tuple)
    families = program.custom_calls if isinstance(program, LoweredProgram) else families_in(program)
    if families:
        register_targets(families, client.platform)
    try:
        if jaxlib_api.is_compile_only(client):
            return jaxlib_api.compile_only(client, cache.source(program), device_list, options
                                           ), "it is for devices that are elsewhere"
        not_kept = _why_not_kept(program, client, device_tuple, host_callbacks)
        entry = None if not_kept else cache.entry_for(client, program, device_tuple, options)
        if entry is not None:
            executable = entry.load(client, device_list, options, host_callbacks)
            if executable is not None:
                if config.compilation_cache_check_contents.value:
                    entry.verify(executable, lambda: backend_compile_and_load(
                        client, cache.source(program), device_list, options, host_callbacks))
                return executable, True
        start, module = time.perf_counter(), cache.source(program)

        def compiled() -> Any:
            return backend_compile_and_load(client, module, device_list, options, host_callbacks)

        def request() -> dict[str, Any]:
            return {"text": module, "options": options.SerializeAsString(),
                    "platform": client.platform, "ids": [d.id for d in device_tuple],
                    "n_devices": len(client.local_devices()),
                    "n_callbacks": len(host_callbacks)}

        guards = entry is not None or config.compile_in_child.value
        executable = compiled() if not guards else shield.guarded(
            None if entry is None else entry.note, shield.Subject(*subject), compiled, request)
        if entry is not None:
            entry.store(client, executable, time.perf_counter() - start)
        return executable, False if entry is not None else not_kept or "the cache is off"
    except (jaxlib_api.JaxRuntimeError, ValueError) as error:
        raise _of_unknown_sizes(program) or _cleaned(error) from None


def backend_compile_and_load(backend: Any, module: str | bytes, executable_devices: Any,
                             options: Any, host_callbacks: Sequence[Any] = ()) -> Any:
    """Let XLA compile a program. All programs that are not found in the disk cache come by here,
    where tools that watch or forbid compilation look."""
    return jaxlib_api.compile_and_load(backend, module, executable_devices, options, host_callbacks)


def compile_alone() -> None:
    """Compile what comes by the standard input, in a child that is to find out whether the compiler
    ends it (runtime/shield.py)."""
    request = pickle.loads(sys.stdin.buffer.read())  # of the process that started this one
    client = backends.get_backend(request["platform"])
    by_id = {d.id: d for d in client.devices()}
    register_targets(families_in(request["text"]), client.platform)
    backend_compile_and_load(
        client, request["text"], jaxlib_api.DeviceList(tuple([by_id[i] for i in request["ids"]])),
        jaxlib_api.CompileOptions.ParseFromString(request["options"]),
        [lambda *args: ()] * request["n_callbacks"])


def _why_not_kept(program: LoweredProgram | str | bytes, client: Any, devices: tuple[Any, ...],
                  host_callbacks: Sequence[Any]) -> str:
    """Why a program cannot be kept on disk; empty if it can."""
    if isinstance(program, LoweredProgram) and (
            "custom_partitioning" in program.custom_calls or program.inspections):
        return "to compile it calls Python functions of this process"
    # With several devices it ends the process with jaxlib 0.10.
    on_one_cpu = client.platform == "cpu" and len(devices) == 1
    return "" if not host_callbacks or (on_one_cpu and jaxlib_api.LOADS_HOST_CALLS) else \
        "it calls the host, as kept programs can on one CPU, with jaxlib 0.9 and later"


def compile_options(devices: tuple[Any, ...], num_replicas: int = 1, num_partitions: int = 1,
                    compiler_options: CompilerOptions | None = None,
                    propagate_to_parameters: Sequence[bool] = (),
                    propagate_to_outputs: Sequence[bool] = (), names_meshes: bool = False) -> Any:
    """The CompileOptions of XLA for the flags in force; cached, so not to be changed.
    `names_meshes` says that the program does, even if it is for one device."""
    overrides = _checked_options(compiler_options) if compiler_options else ()
    levels = {name: value for name, value in overrides if name in _EFFORT_LEVELS}
    if levels:
        overrides = tuple([pair for pair in overrides if pair[0] not in levels])
    effort = (levels.get("optimization_level", config.optimization_level.value),
              levels.get("memory_fitting_level", config.memory_fitting_level.value),
              config.exec_time_optimization_effort.value, config.memory_fitting_effort.value,
              config.disable_most_optimizations.value, config.use_shardy_partitioner.value,
              config.xla_profile_version.value,
              _xla_cache_folder() if devices[0].platform == "gpu" else "")
    key = (devices, num_replicas, num_partitions, overrides, tuple(propagate_to_parameters),
           tuple(propagate_to_outputs),
           names_meshes or num_partitions > 1, effort)
    options = _options.get(key)
    if options is None:
        options = _options[key] = _make_options(*key)
    return options


def _make_options(devices: tuple[Any, ...], num_replicas: int, num_partitions: int,
                  overrides: tuple[tuple[str, Any], ...], to_parameters: tuple[bool, ...],
                  to_outputs: tuple[bool, ...], is_spread: bool, effort: tuple[Any, ...]) -> Any:
    (level, memory_level, time_effort, memory_effort, fewer_passes, shardy, profile,
     cache_folder) = effort
    if num_replicas * num_partitions != len(devices):
        raise ValueError(f"compile: {num_replicas} replicas of {num_partitions} partitions need "
                         f"{num_replicas * num_partitions} devices, got {len(devices)}.")
    options = jaxlib_api.CompileOptions()
    options.num_replicas = num_replicas
    options.num_partitions = num_partitions
    ids = np.array([d.id for d in devices]).reshape(num_replicas, num_partitions)
    options.device_assignment = jaxlib_api.DeviceAssignment.create(ids)
    options.profile_version = profile
    build = options.executable_build_options
    build.use_spmd_partitioning = is_spread
    build.use_shardy_partitioner = is_spread and shardy
    if to_parameters:
        build.allow_spmd_sharding_propagation_to_parameters = list(to_parameters)
    if to_outputs:
        build.allow_spmd_sharding_propagation_to_output = list(to_outputs)
    jaxlib_api.set_effort(build, level, memory_level, time_effort, memory_effort)
    if fewer_passes:
        debug = build.debug_options
        debug.xla_backend_optimization_level = 0
        debug.xla_llvm_disable_expensive_passes = True
        debug.xla_test_all_input_layouts = False
    if cache_folder:
        _cache_inside_xla(build.debug_options, cache_folder)
    if overrides:
        options.env_option_overrides = [pair for pair in overrides if pair[0] != _LOOPS]
    extra = [pair for pair in overrides if pair[0] == _LOOPS]
    return _with_extra_options(options, extra) if extra else options


# XLA's CPU compiler makes one kernel of a loop whose iteration reads and writes fewer bytes, and
# holds nothing that needs a library: of others each operation is a kernel of its own, or a call, of
# 20 to 800 ns. With 64 kB no loop was slower that benchmarks/small.py and loops over 16 to 260,000
# numbers have; with more, some that use several threads are.
_LOOPS = "xla_cpu_small_while_loop_byte_threshold"


def _loops_as_kernels(source: LoweredProgram, platform: str) -> dict[str, int]:
    """The compiler option that says which loops of a program are small, if it has loops and the
    user's own flags do not say it. None are where barriers or the device count, which such kernels
    do not know: XLA would abort the process."""
    n_bytes = jaxlib_api.LOOP_BYTES
    none = source.keeps_barriers or (
        not jaxlib_api.KERNELS_KNOW_DEVICES and "stablehlo.partition_id" in source.text)
    return {_LOOPS: 0 if none else n_bytes} if (
        n_bytes is not None and platform == "cpu" and "stablehlo.while" in source.text
        and (config.small_kernels.value or none)
        and _LOOPS not in os.environ.get("XLA_FLAGS", "")) else {}


# How wide the vectors are that XLA's CPU compiler makes: of 256 bits also where the processor knows
# 512, as the first of those ran slower with them; those that count bits in vectors, too, do not. Of
# 100,000 floats 512 bits halve the time of a function such as `exp`, 14 us; but where elements lie
# apart, 20 to 50 us may be added.
_WIDTH = "xla_cpu_prefer_vector_width"
_FAR = "transpose|pad|gather|scatter|dot_general(?!.* = \\[\\] x \\[\\])|convolution|custom_call"
_TERMS = re.compile(rf"stablehlo\.(?:({_FAR})|(?:exponential|log|tanh|power)\w*)\b.*")
_SIZES = re.compile(r"tensor<((?:\d+x)+)")


def _wide_vectors(text: str, platform: str) -> dict[str, int]:
    """The compiler option for vectors as wide as the processor's, if the program gains by them."""
    if (platform != "cpu" or not jaxlib_api.WIDE_VECTORS
            or not any(["avx512_vpopcntdq" in fact for fact in cache.cpu_facts()])
            or _WIDTH in os.environ.get("XLA_FLAGS", "")):
        return {}
    gain = 0
    for term in _TERMS.finditer(text):
        size = max([math.prod(map(int, shape[:-1].split("x")))
                    for shape in _SIZES.findall(term[0])], default=1)
        gain += -3 * size if term[1] else size
    return {_WIDTH: 512} if gain >= 0 else {}


def _disabled_passes(text: str, platform: str, loop_bytes: Any) -> dict[str, str]:
    """The compiler option that names the passes which are to be left out, if there are any: the one
    by which XLA would look through optimization barriers, and what flags say.

    Barriers are looked through where the program has loops, unless they count more than that small
    loops are one kernel each.
    """
    option = "xla_disable_hlo_passes"
    if option in os.environ.get("XLA_FLAGS", ""):
        return {}
    passes = [] if config.compiler_enable_remat_pass.value else ["rematerialization"]
    if (jaxlib_api.CPU_BARRIER_PASS is not None and platform == "cpu"
            and "stablehlo.optimization_barrier" in text
            and (loop_bytes == 0 or ("stablehlo.while" not in text
                 and "stablehlo.case" not in text))):
        passes.append(jaxlib_api.CPU_BARRIER_PASS)
    return {option: ",".join(passes)} if passes else {}


def _with_extra_options(options: Any, extra: Sequence[tuple[str, Any]]) -> Any:
    """The options with entries of the map `xla_backend_extra_options` of the message DebugOptions,
    which Python cannot set; a message behind another is merged with it.
    (xla/pjrt/proto/compile_options.proto, xla/xla.proto)"""
    options.executable_build_options.debug_options  # noqa: B018 - makes it, from XLA's flags
    entries = b"".join([proto(500, proto(1, name.encode()) + proto(2, str(value).encode()))
                        for name, value in extra])
    more = proto(3, proto(3, entries))
    return jaxlib_api.CompileOptions.ParseFromString(options.SerializeAsString() + more)


_XLA_CACHES = ("xla_gpu_kernel_cache_file", "xla_gpu_per_fusion_autotune_cache_dir")


def _xla_cache_folder() -> str:
    """Where XLA keeps what it found out about a GPU; empty: nowhere."""
    folder = cache.folder() if config.persistent_cache_enable_xla_caches.value else None
    return "" if folder is None else os.path.join(folder, "xla")


def _cache_inside_xla(debug_options: Any, folder: str) -> None:
    """Switch on those of XLA's own caches that the flag names; `all` names all."""
    text = config.persistent_cache_enable_xla_caches.value
    wanted = _XLA_CACHES if text == "all" else [w.strip() for w in text.split(",")]
    for name in _XLA_CACHES:
        if name in wanted:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            setattr(debug_options, name, os.path.join(folder, name))
            if name == "xla_gpu_kernel_cache_file":
                debug_options.xla_gpu_enable_llvm_module_compilation_parallelism = True


def _checked_options(options: CompilerOptions) -> tuple[tuple[str, Any], ...]:
    checked = []
    for name, value in options.items():
        if not isinstance(name, str):
            raise TypeError(f"compiler_options: the name of an option is a str, got {name!r}")
        if isinstance(value, np.generic):
            value = value.item()
        if name in _EFFORT_LEVELS:
            value = _effort_level(name, value)
        if not isinstance(value, (str, bool, int, float)):
            raise TypeError(f"compiler_options: the value of {name!r} is a str, bool, int or "
                            f"float, got {value!r} of type {type(value).__name__}")
        checked.append((name, value))
    return tuple(sorted(checked))


_EFFORT_LEVELS = ("optimization_level", "memory_fitting_level")


def _effort_level(name: str, value: Any) -> str:
    """The name of a level, which the value is or names."""
    if isinstance(value, CompilerEffortLevel):
        return value.name
    if value in CompilerEffortLevel.__members__:
        return str(value)
    raise ValueError(f"compiler_options: {name!r} is one of {list(CompilerEffortLevel.__members__)}"
                     f" or a member of jax.CompilerEffortLevel, got {value!r}")


# ---- errors -------------------------------------------------------------------------------

# What XLA adds to the error of any text that does not parse.
_NOISE = (
    r"\s*(Failed to (parse|deserialize)[^.\n]*using StableHLO v[^\n]*|"
    r"[^\n]*this could indicate forward incompatibility[^\n]*)")


def _of_unknown_sizes(program: LoweredProgram | str | bytes) -> Exception | None:
    """What is wrong with a program of symbolic dimensions, which XLA does not know."""
    if not isinstance(program, LoweredProgram):
        return None
    dim = re.search(f"{OPEN}(.*?){CLOSE}", program.text)
    if dim is not None:
        name = re.search(r"\b(?!(?:mod|floordiv|max|min)\b)[A-Za-z_]\w*", dim[1])
        return solving.UnexpectedDimVar(  # type: ignore[no-any-return]
            f"Encountered dimension variable '{name and name[0]}' that is not appearing in the "
            "shapes of the function arguments. Sizes of programs that run have to be numbers: "
            "symbolic dimensions are for jax.export, eval_shape and make_jaxpr.")
    return ValueError(
        "Error refining shapes: the program's arguments have symbolic dimensions. Lower it for "
        "arguments whose sizes are numbers, or give it to jax.export.") if program.is_dynamic \
        else None


def _cleaned(error: Exception) -> Exception:
    text = str(error)
    if "annotate_device_placement" in text:
        return NotImplementedError(
            f"jit: jaxlib {jaxlib_api.JAXLIB_RELEASE} compiles no program for this platform with "
            "values in another memory; 0.10.2 does for CPUs. Put them there outside of programs.")
    cleaned = re.sub(_NOISE, "", text) + lacking_functions(text)
    return error if cleaned == text else type(error)(cleaned)


# ---- programs of jaxprs -------------------------------------------------------------------


_ADDRESSABLE = 1 << 47  # bytes


def _check_results_fit(closed: ClosedJaxpr) -> None:
    """Raise what running would, before jaxlib 0.12 divides by zero compiling so long a range."""
    n_bytes = sum(map(nbytes, closed.out_avals))
    if n_bytes >= _ADDRESSABLE:
        raise jaxlib_api.JaxRuntimeError(
            f"RESOURCE_EXHAUSTED: Out of memory allocating {n_bytes} bytes.")


def compile_lowered(source: LoweredProgram, closed: ClosedJaxpr, name: str, compiler_options: Any,
                    placement: Placement) -> Executable:
    """The executable of `closed`, whose program is `source`."""
    _check_results_fit(closed)
    device = placement.devices[0]
    if device.platform == "cpu":
        check_small_floats(source.text, closed.jaxpr)
    options = {**_wide_vectors(source.text, device.platform),
               **_loops_as_kernels(source, device.platform), **dict(compiler_options)}
    options = {**_disabled_passes(source.text, device.platform, options.get(_LOOPS)), **options}
    described = jaxlib_api.is_compile_only(device.client)  # nothing runs, so nothing is called
    executable: Any = DescribedExecutable if described else Executable
    functions: Sequence[Any] = ()
    if source.host_calls and not described:
        functions, failures = host_calls.host_functions(source, placement.devices)
        executable = partial(host_calls.CallingExecutable, failures=failures)
    in_shardings = [*[placement] * len(source.const_args),
                    *compress(placement.in_shardings, source.kept)] \
        if placement.mesh is not None else ()
    with timed("/jax/core/compile/backend_compile_duration", name) as time:
        loaded, found = compile_or_load(
            source, devices=placement.devices, compiler_options=options or None,
            host_callbacks=functions,
            propagate_to_parameters=[s is None for s in in_shardings],
            propagate_to_outputs=[s is None for s in placement.out_shardings],
            subject=(name, closed))
    ledger.note_compiled(closed, name, placement, options, found, time.seconds, source.fit)
    made: Executable = executable(loaded, closed, source, placement)
    made.from_disk = (options, traced_flags()) if found is True else None
    for inspection in source.inspections:
        inspection.callback(made.sharding if inspection.chosen is None
                            else placement.named(inspection.chosen, inspection.ndim))
    return made


# ---- small floats -------------------------------------------------------------------------


_NOT_ALONE = re.compile(r"stablehlo\.(constant|concatenate) .*(f6E\w+)>")


def check_small_floats(text: str, jaxpr: Jaxpr) -> None:
    """Refuse a program for CPU, of which `text` is the StableHLO, that would end the process.

    Raises:
      TypeError: it does more with floats of 6 bits than the compiler can.
    """
    if "f6E" in text:
        _check(jaxpr)
        if found := _NOT_ALONE.search(text):
            raise _refused(f"a {found[1]}", found[2])


def _refused(what: str, dtype: DTypeLike | None) -> TypeError:
    return TypeError(f"{what} of {dtype} is not supported on CPU: jaxlib "
                     f"{jaxlib_api.JAXLIB_RELEASE} has no code for it. Compute in another dtype, "
                     "such as float8_e4m3fn or float32.")


def _check(jaxpr: Jaxpr) -> None:
    for eqn in all_eqns(jaxpr):
        read, made = ([a.dtype for a in avals if "float6_" in str(getattr(a, "dtype", ""))]
                      for avals in ([x.aval for x in eqn.invars], [x.aval for x in eqn.outvars]))
        primitive = eqn.primitive
        moves = (primitive.holder.times(eqn.params) == 1 if holds_jaxprs(eqn)
                 else primitive.moves and made)
        if (read or made) and not (moves and jaxlib_api.CPU_MOVES_6_BITS):
            raise _refused(primitive.name, (read or made)[0])
