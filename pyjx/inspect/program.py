"""A program in each of its forms, from the jaxpr to machine code."""

from __future__ import annotations

import importlib
import re
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from lowering.program import has_symbols
from pyjx import configuration, jaxlib_api
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.inspect import figures
from pyjx.inspect.compiler_times import PassTime, watched
from pyjx.inspect.documents import document
from pyjx.inspect.kernels import Kernels
from pyjx.inspect.naming import with_user_names
from pyjx.inspect.platforms import Platform, platform
from pyjx.inspect.versions import stablehlo_versions
from pyjx.runtime import compile as compiler
from pyjx.runtime.costs import Costs
from pyjx.runtime.jit import jit
from pyjx.runtime.stages import Compiled, Lowered, Traced

_TRITON = "xla_gpu_enable_triton_gemm"


class UnsupportedError(ValueError):
    """There is no such form of this program, or on this platform."""


class Program:
    """A program in each of its forms; each is made when it is asked for.

    Attributes:
      name: of the function.
      platform: what it is for.
      seconds: how long each step took, by its name.
      xla_seconds: XLA's own passes, where `watch_compiler` was called before it compiled.
      notes: what was done otherwise than asked for, and why.
    """

    def __init__(self, name: str, platform: Platform, compiler_options: Mapping[str, Any]) -> None:
        self.name = name
        self.platform = platform
        self.seconds: dict[str, float] = {}
        self.xla_seconds: list[PassTime] = []
        self.notes: list[str] = []
        self._watches = False
        self._compiler_options = dict(compiler_options)
        self._instead: dict[str, Any] = {}  # options that XLA needs, besides those asked for
        self._keeps_kernels = False

    # -- forms that differ between functions and files

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The traced program."""
        raise UnsupportedError(f"{self.name} was read from a file, which has no jaxpr; it begins "
                               "with stablehlo")

    def stablehlo(self, *, names: str = "ssa", locs: str = "none") -> str:
        """The program that XLA is given, as text.

        Args:
          names: `ssa` for numbers, `user` for the names of the user's variables.
          locs: `none`, or `line` or `stack` for places in the source.
        """
        raise NotImplementedError

    def _compile(self, options: Mapping[str, Any]) -> Any:
        """The executable, with these options of XLA's."""
        raise NotImplementedError

    @property
    def cost(self) -> Costs:
        """What it costs, by operation and by source line: an estimate from the jaxpr."""
        return Costs(self.jaxpr, lambda: self.xla_cost)

    # -- forms that all have

    def timed(self, step: str, work: Callable[[], Any]) -> Any:
        """The result of `work`, whose seconds are noted."""
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start

    def bytecode(self, version: str = "") -> bytes:
        """StableHLO as a portable artifact for a version such as `1.0.0`; `min` is the oldest that
        there is, and none the newest.

        Raises:
          UnsupportedError: the version cannot express the program, or is none.
        """
        oldest, newest = stablehlo_versions()
        wanted = {"": newest, "min": oldest}.get(version, version)
        if not _number(oldest) <= _number(wanted) <= _number(newest):
            raise UnsupportedError(f"StableHLO {wanted}: this jaxlib writes programs for {oldest} "
                                   f"to {newest}")
        try:
            return jaxlib_api.artifact_for(self.stablehlo(), wanted)
        except ValueError as error:
            raise UnsupportedError(
                f"StableHLO {wanted} cannot express the program: "
                f"{str(error).splitlines()[0] if str(error) else 'an operation is newer'}"
            ) from None

    @cached_property
    def _computation(self) -> Any:
        text = self.timed("text", lambda: self.stablehlo(locs="line"))
        return self.timed("parse", lambda: jaxlib_api.to_xla_computation(text))

    @property
    def hlo(self) -> str:
        """HLO before XLA's optimisations."""
        self._check_static("HLO")
        return jaxlib_api.hlo_text(self._computation.as_hlo_module(), False)

    @property
    def hlo_proto(self) -> bytes:
        """The same as a protocol buffer, an `HloModuleProto`."""
        self._check_static("HLO")
        return self._computation.as_serialized_hlo_module_proto()

    def _check_static(self, what: str) -> None:
        if self.is_symbolic:
            raise UnsupportedError(f"{what} has no symbolic sizes; give numbers for them, or ask "
                                   "for jaxpr, stablehlo or bytecode")

    @property
    def is_symbolic(self) -> bool:
        """Whether sizes are symbols."""
        return False

    def keep_kernels(self) -> None:
        """Let XLA tell its kernels when it compiles, because they will be asked for."""
        self._keeps_kernels = True

    def watch_compiler(self) -> None:
        """Let XLA tell how long its passes take when it compiles."""
        self._watches = True

    def _compiled(self, more: Mapping[str, Any] = types.MappingProxyType({})) -> Any:
        """The executable; `more` are options besides those that were asked for."""
        options = {**self._compiler_options, **self._instead, **more}
        try:
            return self._built(options)
        except jaxlib_api.JaxRuntimeError as error:
            if (self.platform.name != "cuda" or self.platform.is_here or _TRITON in options
                    or not jaxlib_api.lacks_tiles(error)):
                raise
        self._instead = {_TRITON: False}
        self.notes.append(
            "without the GPU to try them on, XLA finds no tiles for Triton's kernels; this is "
            f"compiled without them ({_TRITON}=false).")
        return self._built({**options, **self._instead})

    def _built(self, options: Mapping[str, Any]) -> Any:
        if not self._watches:
            return self._compile(options)
        made, self.xla_seconds = watched(lambda: self._compile(options))
        return made

    @cached_property
    def executable(self) -> Any:
        """jaxlib's executable."""
        self._check_static("what is compiled")
        if self._keeps_kernels:
            return self._compiled_with_kernels[0]
        return self.timed("compile", self._compiled)

    @cached_property
    def _compiled_with_kernels(self) -> tuple[Any, Kernels]:
        self._check_static("what is compiled")
        with tempfile.TemporaryDirectory(prefix="emit-hlo-") as folder:
            dump = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True,
                    **jaxlib_api.KERNEL_DUMP_OPTIONS}
            made = self.timed("compile", lambda: self._compiled(dump))
            return made, Kernels(folder)

    @property
    def hlo_opt(self) -> str:
        """HLO after XLA's optimisations, with places in the source."""
        try:
            return "\n\n".join([m.to_string() for m in self.executable.hlo_modules()])
        except jaxlib_api.JaxRuntimeError:  # jaxlib 0.7, of GPUs that are not here
            return self._compiled_with_kernels[1].optimised

    @property
    def kernels(self) -> Kernels:
        """What XLA's backend made of each kernel."""
        if self.platform.name == "tpu":
            raise UnsupportedError("the code of TPUs is not told by their compiler; hlo-opt is the "
                                   "last form there is")
        return self._compiled_with_kernels[1]

    @property
    def llvm(self) -> str:
        """LLVM's code of each kernel, optimised."""
        return self.kernels.text("llvm")

    @property
    def ptx(self) -> str:
        """PTX of each kernel."""
        if self.platform.name != "cuda":
            raise UnsupportedError(f"there is no PTX on {self.platform.name}; --platform cuda:h100 "
                                   "has some")
        return self.kernels.text("ptx")

    @property
    def assembly(self) -> str:
        """The machine code of each kernel, disassembled by a tool that is installed."""
        return self.kernels.assembly(self.platform.name)

    @property
    def memory(self) -> figures.Memory | None:
        """Bytes of the compiled program; None where XLA does not say."""
        try:
            return figures.memory_of(self.executable.get_compiled_memory_stats())
        except RuntimeError:
            return None

    @property
    def xla_cost(self) -> dict[str, float]:
        """XLA's own estimate; empty where it has none."""
        if self.is_symbolic:
            return {}
        try:
            found = self.executable.cost_analysis()
        except RuntimeError:  # some plugins do not offer it
            return {}
        found = found[0] if isinstance(found, list) else found
        return {k: float(v) for k, v in sorted((found or {}).items()) if "{" not in k}

    def statistics(self, kind: str = "stablehlo") -> Counter[str]:
        """How many operations of each kind there are, in a jaxpr, StableHLO or HLO."""
        if kind == "jaxpr":
            return figures.counted_jaxpr(self.jaxpr.jaxpr)
        return figures.counted_text(str(self.emit(kind)))

    def emit(self, kind: str, **options: Any) -> str | bytes:
        """A form by its name on the command line; `options` are those of `stablehlo` and
        `bytecode`.

        Raises:
          UnsupportedError: there is none.
          UnavailableError: it takes what is not installed.
        """
        if kind not in _FORMS:
            raise UnsupportedError(f"there is no form {kind!r}; there are {', '.join(_FORMS)}")
        made: str | bytes = _FORMS[kind](self, **options)
        return made

    def __repr__(self) -> str:
        return f"<Program {self.name} for {self.platform}>"


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _page(program: Program) -> str:
    viewer = importlib.import_module("pyjx.viewer.document")  # its assets, for this form alone
    traced = isinstance(program, TracedProgram)
    static = not program.is_symbolic
    return str(viewer.page(
        program.name, jaxpr=program.jaxpr if traced else None,
        stablehlo=program.stablehlo(locs="stack"), hlo=program.hlo_opt if static else None,
        cost=_xla_figures(program) if static else None))


def _xla_figures(program: Program) -> dict[str, float | str]:
    """XLA's figures, as the page shows them."""
    cost: dict[str, float | str] = {
        k: v for k, v in program.xla_cost.items() if k in ("flops", "bytes accessed",
                                                           "transcendentals")}
    memory = program.memory
    if memory is not None:
        cost["temporary bytes"] = float(memory.temp)
    return cost


def _graph(program: Program) -> str:
    viewer = importlib.import_module("pyjx.viewer.graphviz")  # for this form alone
    return str(viewer.dot(program.jaxpr if isinstance(program, TracedProgram)
                          else program.stablehlo()))


def _costs(program: Program) -> str:
    cost = program.cost
    head = f"{'line':60} {'times':>8} {'flops':>12} {'transc.':>12} {'bytes':>14}"
    rows = [f"{c.name[-60:]:60} {c.times:8} {c.flops:12.0f} {c.transcendentals:12.0f} "
            f"{c.bytes:14.0f}" for c in cost.by_line]
    return "\n".join([str(cost), "", head, *rows])


def _memory(program: Program) -> str:
    memory = program.memory
    if memory is None:
        raise UnsupportedError(f"XLA does not tell the memory of programs for {program.platform}")
    return str(memory)


_FORMS: dict[str, Callable[..., str | bytes]] = {
    "jaxpr": lambda p: str(p.jaxpr),
    "stablehlo": lambda p, **options: p.stablehlo(**options),
    "bytecode": lambda p, version="": p.bytecode(version),
    "hlo": lambda p: p.hlo,
    "hlo-proto": lambda p: p.hlo_proto,
    "hlo-opt": lambda p: p.hlo_opt,
    "llvm": lambda p: p.llvm,
    "ptx": lambda p: p.ptx,
    "asm": lambda p: p.assembly,
    "dot": _graph,
    "html": _page,
    "cost": _costs,
    "memory": _memory,
    "json": document,
}


class TracedProgram(Program):
    """A Python function, traced for arguments."""

    def __init__(self, traced: Traced, platform: Platform, compiler_options: Mapping[str, Any],
                 mesh: Any = None) -> None:
        super().__init__(traced.fun_name, platform, compiler_options)
        self.traced = traced
        self.mesh = mesh

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self.traced.jaxpr  # type: ignore[no-any-return]

    @property
    def is_symbolic(self) -> bool:
        return any([has_symbols(a) for a in self.jaxpr.in_avals if hasattr(a, "shape")])

    @cached_property
    def lowered(self) -> Lowered:
        """The lowered stage."""
        platforms = None if self.mesh is not None else (self.platform.name,)
        return self.timed(  # type: ignore[no-any-return]
            "lower", lambda: self.traced.lower(lowering_platforms=platforms))

    def stablehlo(self, *, names: str = "ssa", locs: str = "none") -> str:
        lowered = self.lowered
        frames = {"none": 0, "line": 1, "stack": 100}[locs]
        program = lowered._program
        text = program.located_text(frames) if frames else program.text
        if names == "user":
            text = with_user_names(text, program, self.jaxpr.jaxpr.debug_info)
        return text

    def compiled(self) -> Compiled:
        """The compiled stage."""
        return self._stage({**self._compiler_options, **self._instead})

    def _stage(self, options: Mapping[str, Any]) -> Compiled:
        devices = None if self.mesh is not None else self.platform.devices[:1]
        with configuration.cache(False):  # a program on disk names the lines of its time
            return self.lowered.compile(dict(options), device_assignment=devices)

    def _compile(self, options: Mapping[str, Any]) -> Any:
        return self._stage(options).runtime_executable()


class ModuleProgram(Program):
    """A program that was read from a text or from bytes."""

    def __init__(self, name: str, text: str, platform: Platform,
                 compiler_options: Mapping[str, Any]) -> None:
        super().__init__(name, platform, compiler_options)
        self._text = text

    def stablehlo(self, *, names: str = "ssa", locs: str = "none") -> str:
        return self._text

    @property
    def is_symbolic(self) -> bool:
        return "tensor<?" in self._text or "x?x" in self._text

    @property
    def cost(self) -> Costs:
        raise UnsupportedError(f"{self.name} was read from a file; costs by operation and line are "
                               "of functions. json has XLA's own estimate")

    @property
    def n_devices(self) -> int:
        """How many devices it is for."""
        return devices_of(self._text)

    def _compile(self, options: Mapping[str, Any]) -> Any:
        with configuration.cache(False):
            return compiler.compile(self._text, devices=self.platform.devices[:self.n_devices],
                                    compiler_options=dict(options) or None)


def devices_of(text: str) -> int:
    """How many devices a module is for."""
    found = re.search(r"mhlo\.num_partitions = (\d+)", text)
    return int(found[1]) if found else 1


def trace(fun: Callable[..., Any], *args: Any, platform: str | Platform = "cpu", mesh: Any = None,
          compiler_options: Mapping[str, Any] | None = None,
          jit_options: Mapping[str, Any] | None = None, **kwargs: Any) -> TracedProgram:
    """The program of a function for arguments like these.

    Args:
      fun: a function, jitted or not.
      args, kwargs: arrays, or structs that describe them.
      platform: what it is compiled for, as `platform` takes it; it need not be here.
      mesh: the axes of a mesh of devices, by name, or a mesh; shardings are among `jit_options`.
      compiler_options: XLA's flags, by name.
      jit_options: those of `jit`, for a function that is not jitted.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> program = inspect.trace(lambda x: x + 1, jax.ShapeDtypeStruct((3,), "float32"))
    >>> program.jaxpr
    { lambda ; a:f32[3]. let b:f32[3] = add a 1.0:f32[] in (b,) }
    >>> program.statistics()["stablehlo.add"]
    1
    """
    where = _platform(platform, 1 if mesh is None else mesh.size)
    jitted = fun if isinstance(fun, jaxlib_api.PjitFunction) and not jit_options else jit(
        fun, **dict(jit_options or {}))
    start = time.perf_counter()
    traced = jitted.trace(*args, **kwargs)
    made = TracedProgram(traced, where, compiler_options or {}, mesh)
    made.seconds["trace"] = time.perf_counter() - start
    return made


def _platform(given: str | Platform, n_devices: int) -> Platform:
    return platform(given, n_devices) if isinstance(given, str) else given


def read(program: str | bytes, name: str = "program", *, platform: str | Platform = "cpu",
         compiler_options: Mapping[str, Any] | None = None) -> ModuleProgram:
    """The program of a text of StableHLO or HLO, or of StableHLO's bytecode.

    Bytes must be of whom you trust: what reads them is C++ that does not stand any bytes.

    Raises:
      ValueError: it is none.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> text = inspect.trace(lambda x: x + 1, jax.ShapeDtypeStruct((3,), "float32")).stablehlo()
    >>> inspect.read(text).hlo.splitlines()[0][:19]
    'HloModule jit__lamb'
    """
    text = _module_text(program)
    return ModuleProgram(name, text, _platform(platform, devices_of(text)), compiler_options or {})


def _module_text(program: str | bytes) -> str:
    try:
        if isinstance(program, bytes):
            return _bytecode_text(program)
        if program.lstrip().startswith("HloModule"):
            return jaxlib_api.stablehlo_of_hlo(jaxlib_api.hlo_of_text(program))
        return str(jaxlib_api.parse_module(program))
    except Exception as error:
        raise ValueError(str(error)) from None


def _bytecode_text(program: bytes) -> str:
    if not program.startswith(b"ML\xefR"):
        raise ValueError("these bytes are no MLIR: they do not begin with ML\\xefR")
    if b"StableHLO_v" in program[:64]:
        return jaxlib_api.artifact_text(program)
    return str(jaxlib_api.parse_module(program))
