"""A program in each of its forms, from the jaxpr to machine code."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from emit_hlo.tables import LOCS, NAMES
from lowering.program import has_symbols
from pyjx import configuration, jaxlib_api
from pyjx.core.evaluation import all_eqns
from pyjx.core.frames import Frame, own_frame, shown_path
from pyjx.core.jaxpr import ClosedJaxpr, Literal, subjaxprs
from pyjx.core.records import Field, of_field
from pyjx.inspect import figures
from pyjx.inspect.comparison import with_user_names
from pyjx.inspect.platforms import Platform, UnavailableError, platform, stablehlo_versions
from pyjx.lazy import deferred
from pyjx.runtime import compile as compiler
from pyjx.runtime.costs import Costs, cost_of, unsized
from pyjx.runtime.jit import jit, spec_of
from pyjx.runtime.memory import Memory, memory_of
from pyjx.runtime.meshes import set_mesh
from pyjx.runtime.stages import Compiled, Lowered, Traced
from pyjx.tree_util import tree_leaves
from pyjx.version import PYJX_VERSION

viewer = deferred("pyjx.viewer")  # its assets, for this form alone
mosaic_calls = deferred("pyjx.experimental.pallas.mosaic_calls")
ranking = deferred("pyjx.viewer.ranking")
jaxprs = deferred("pyjx.viewer.jaxprs")

# What XLA writes while it compiles, by the end of the file's name.
_ENDS = {"llvm": ".ir-with-opt.ll", "ptx": ".ptx", "object": ".o"}


class Kernels:
    """The files that XLA wrote while it compiled a program, by the name of the kernel.

    Attributes:
      llvm, ptx: texts. object: object files, of the CPU.
      optimised: HLO after XLA's optimisations.
    """

    __slots__ = ("llvm", "object", "optimised", "ptx")

    def __init__(self, folder: str) -> None:
        self.llvm: dict[str, bytes] = {}
        self.ptx: dict[str, bytes] = {}
        self.object: dict[str, bytes] = {}
        self.optimised = ""
        for name in sorted(os.listdir(folder), key=_order):
            if name.endswith("after_optimizations.txt"):
                self.optimised = Path(folder, name).read_text(encoding="utf-8")
            for form, end in _ENDS.items():
                if name.endswith(end):
                    getattr(self, form)[_kernel(name, end)] = Path(folder, name).read_bytes()

    def text(self, form: str) -> str:
        """The texts of all kernels, each after a line with its name."""
        mark = ";" if form == "llvm" else "//"
        found = {n: t.decode(errors="replace") for n, t in getattr(self, form).items()}
        return "\n".join([f"{mark} kernel {n}\n{t.rstrip()}\n" for n, t in found.items()
                          if t.strip()])

    def assembly(self, platform: str) -> str:
        """The machine code, disassembled by a tool that is installed."""
        if platform == "cuda":
            return self._of_ptx()
        tool = _tool("llvm-objdump", "objdump")
        parts = []
        for name, data in self.object.items():
            code = _run([tool, "-d", "-r", "--no-show-raw-insn"], data, ".o")
            body = code[code.find("Disassembly"):]
            parts.append(f"# kernel {name}\n{body.rstrip()}\n")
        return "\n".join(parts)

    def _of_ptx(self) -> str:
        assembler, disassembler = _tool("ptxas"), _tool("nvdisasm", "cuobjdump")
        parts = []
        for name, data in self.ptx.items():
            target = re.search(rb"^\.target\s+(\w+)", data, re.MULTILINE)
            if target is None:
                continue
            with tempfile.TemporaryDirectory() as folder:
                source, binary = (Path(folder, n) for n in ("kernel.ptx", "kernel.cubin"))
                source.write_bytes(data)
                subprocess.run([assembler, f"-arch={target[1].decode()}", source, "-o", binary],
                               check=True, capture_output=True)
                flags = ["-sass"] if disassembler.endswith("cuobjdump") else ["-c"]
                code = subprocess.run([disassembler, *flags, binary], check=True,
                                      capture_output=True, text=True).stdout
            parts.append(f"// kernel {name}\n{code.rstrip()}\n")
        return "\n".join(parts)


def _order(name: str) -> list[Any]:
    """Numbers in a name by their value."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _kernel(name: str, end: str) -> str:
    """`module_0001.jit_f.NAME.ir-with-opt.ll` without what is not the name."""
    _, module, *parts = name.removesuffix(end).split(".")
    return ".".join(parts).removeprefix("obj-file.") or module


def _tool(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    package = "the CUDA toolkit" if names[0] in ("ptxas", "nvdisasm") else "binutils or LLVM"
    raise UnavailableError(f"to show machine code takes {' or '.join(names)} of {package}, which "
                           "is not installed; ask for llvm, or for ptx on a GPU")


def _run(command: list[str], data: bytes, suffix: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"kernel{suffix}")
        path.write_bytes(data)
        done = subprocess.run([*command, path], capture_output=True, text=True)
    if done.returncode:
        raise UnavailableError(f"{os.path.basename(command[0])}: {done.stderr.strip()}")
    return done.stdout


_TRITON = "xla_gpu_enable_triton_gemm"


class UnsupportedError(ValueError):
    """There is no such form of this program, or on this platform.

    Ways out: the message names the form or the platform that there is; a program with symbolic
    sizes has more forms once it is given numbers.
    """


class Program:
    """A program in each of its forms; each is made when it is asked for.

    Attributes:
      name: of the function.
      platform: what it is for.
      seconds: how long each step took, by its name.
      xla_seconds: XLA's own passes, where `watch_compiler` was called before it compiled.
      notes: what was done otherwise than asked for, and why.
      measured: seconds of operations of `hlo_opt` by name, where `measure` ran it; the page has
        them.
    """

    def __init__(self, name: str, platform: Platform, compiler_options: Mapping[str, Any]) -> None:
        self.name = name
        self.platform = platform
        self.seconds: dict[str, float] = {}
        self.xla_seconds: list[figures.PassTime] = []
        self.notes: list[str] = []
        self.measured: dict[str, float] = {}
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

    @property
    def lowered(self) -> Lowered:
        """The lowered stage."""
        raise UnsupportedError(f"{self.name} was read from a file, which has no jaxpr to lower")

    def stablehlo(self, *, names: str = "ssa", locs: str = "none") -> str:
        """The program that XLA is given, as text.

        Args:
          names: `ssa` for numbers, `user` for the names of the user's variables.
          locs: `none`, or `line` or `stack` for places in the source.
        """
        for option, given, known in (("names", names, NAMES), ("locs", locs, LOCS)):
            if given not in known:
                raise ValueError(f"stablehlo: {option} must be one of {', '.join(known)}, got "
                                 f"{given!r}")
        return self._stablehlo(names, locs)

    def _stablehlo(self, names: str, locs: str) -> str:
        raise NotImplementedError

    def _compile(self, options: Mapping[str, Any]) -> Any:
        """The executable, with these options of XLA's."""
        raise NotImplementedError

    @property
    def cost(self) -> Costs:
        """What it costs, by operation and by source line: an estimate from the jaxpr.

        Raises:
          UnsupportedError: sizes are symbols.
        """
        self.check_static()
        return Costs(self.jaxpr, lambda: self.xla_cost, self.n_devices)

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
        self.check_static()
        return jaxlib_api.hlo_text(self._computation.as_hlo_module(), False)

    @property
    def hlo_proto(self) -> bytes:
        """The same as a protocol buffer, an `HloModuleProto`."""
        self.check_static()
        return self._computation.as_serialized_hlo_module_proto()

    def check_static(self, what: str = "what is compiled or counted") -> None:
        """Raise UnsupportedError if sizes are symbols, which `what` is asked for has not."""
        if self.is_symbolic:
            raise UnsupportedError(f"{what} has no symbolic sizes; give numbers for them"
                                   f"{self._in_numbers()}, or ask for jaxpr, stablehlo, bytecode, "
                                   "dot, html or json")

    def _in_numbers(self) -> str:
        """How they are given, where types of arguments are known."""
        return ""

    @property
    def n_devices(self) -> int:
        """How many devices it is for."""
        return 1

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
        made, self.xla_seconds = figures.watched(lambda: self._compile(options))
        return made

    @cached_property
    def executable(self) -> Any:
        """jaxlib's executable."""
        self.check_static()
        if self._keeps_kernels:
            return self._compiled_with_kernels[0]
        return self.timed("compile", self._compiled)

    @cached_property
    def _compiled_with_kernels(self) -> tuple[Any, Kernels]:
        self.check_static()
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
    def mosaic(self) -> str:
        """The modules of its Pallas kernels, as the compiler of TPUs gets them."""
        kernels = [eqn.params for eqn in all_eqns(self.jaxpr)
                   if eqn.primitive.name == "pallas_call" and not eqn.params["interpret"]] \
            if isinstance(self, TracedProgram) else []
        if not kernels:
            raise UnsupportedError(f"{self.name} has no kernels that are compiled: pallas_call "
                                   "without interpret makes them, in a Python function")
        return "\n".join(map(mosaic_calls.module_text, kernels))

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
    def memory(self) -> Memory | None:
        """Bytes of the compiled program; None where XLA does not say."""
        return memory_of(self.executable)

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

    @property
    def loops(self) -> tuple[figures.Loop, ...]:
        """The loops of the compiled program, and what each is to a CPU; empty for others."""
        return figures.loops(self.hlo_opt) if self.platform.name == "cpu" and not self.is_symbolic \
            else ()

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
    static = not program.is_symbolic
    optimised = program.hlo_opt if static else None  # compiled first: it may be planned anew
    traced = expected = None
    if isinstance(program, TracedProgram):
        traced, expected = program.traced, program.lowered._expected_memory if static else None
    return str(viewer.page(
        program.name, jaxpr=traced,
        stablehlo=program.stablehlo(locs="stack"), hlo=optimised,
        cost=_xla_figures(program) if static else None,
        measured=program.measured, balance=ranking.BALANCES[program.platform.name],
        passes=() if traced is None else jaxprs.passes(program.lowered),
        memory=expected))


def _xla_figures(program: Program) -> dict[str, float | str]:
    """XLA's figures, as the page shows them."""
    one = ", on one device" if program.n_devices > 1 else ""
    cost: dict[str, float | str] = {
        f"{k} by XLA{one}": v for k, v in program.xla_cost.items()
        if k in ("flops", "bytes accessed", "transcendentals")}
    memory = program.memory
    if memory is not None:
        cost["temporary bytes"] = float(memory.temp)
    return cost


def _graph(program: Program) -> str:
    return str(viewer.dot(program.jaxpr if isinstance(program, TracedProgram)
                          else program.stablehlo()))


def _costs(program: Program) -> str:
    cost = program.cost
    head = f"{'line':60} {'times':>8} {'flops':>12} {'transc.':>12} {'bytes':>14}"
    rows = [f"{shown_path(c.name, 60):60} {c.times:8} {c.flops:12.0f} {c.transcendentals:12.0f} "
            f"{c.bytes:14.0f}" for c in cost.by_line]
    loops = program.loops
    if loops:
        rows += ["", f"{'loop':60} {'times':>8} kernels each time", *map(str, loops)]
    return "\n".join([str(cost), "", head, *rows])


def _memory(program: Program) -> str:
    memory = program.memory
    if memory is None:
        raise UnsupportedError(f"XLA does not tell the memory of programs for {program.platform}")
    profile = program.lowered._expected_memory if isinstance(program, TracedProgram) else None
    return str(memory) if profile is None else (
        f"{memory}\n\nby the live ranges of the jaxpr, {profile}")


_FORMS: dict[str, Callable[..., str | bytes]] = {
    "jaxpr": lambda p: str(p.jaxpr),
    "stablehlo": lambda p, **options: p.stablehlo(**options),
    "bytecode": lambda p, version="": p.bytecode(version),
    "mosaic": lambda p: p.mosaic,
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
    "json": lambda p: document(p),
}


class TracedProgram(Program):
    """A Python function, traced for arguments, which are `given`, flat: values, or structs."""

    def __init__(self, traced: Traced, platform: Platform, compiler_options: Mapping[str, Any],
                 mesh: Any = None, given: Sequence[Any] = ()) -> None:
        super().__init__(traced.fun_name, platform, compiler_options)
        self.traced = traced
        self.mesh = mesh
        self.given = given

    jaxpr: Field[ClosedJaxpr] = of_field("traced.jaxpr")

    @property
    def _symbolic(self) -> list[Any]:
        return [a for a in self.jaxpr.in_avals if hasattr(a, "shape") and has_symbols(a)]

    @property
    def is_symbolic(self) -> bool:
        return bool(self._symbolic)

    def _in_numbers(self) -> str:
        given = self._symbolic[0]
        numbers = given.update(shape=[n if type(n) is int else 8 for n in given.shape])
        return (f", as in {numbers.str_short(short_dtypes=True)} for "
                f"{given.str_short(short_dtypes=True)}")

    @property
    def n_devices(self) -> int:
        if self.mesh is not None:
            return self.mesh.size  # type: ignore[no-any-return]
        return self.lowered._placement.n_devices  # of the program, which may bring a mesh

    @cached_property
    def lowered(self) -> Lowered:
        """The lowered stage."""
        platforms = None if self.mesh is not None else (self.platform.name,)
        with _over(self.mesh):
            return self.timed(  # type: ignore[no-any-return]
                "lower", lambda: self.traced.lower(lowering_platforms=platforms))

    def _stablehlo(self, names: str, locs: str) -> str:
        lowered = self.lowered
        program = lowered._program
        frames = dict(zip(LOCS, (0, 1, 100), strict=True))[locs]
        text = program.located_text(frames) if frames else program.text
        if names == "user":
            text = with_user_names(text, program, self.jaxpr.jaxpr.debug_info)
        return text

    def compiled(self) -> Compiled:
        """The compiled stage."""
        return self._stage({**self._compiler_options, **self._instead})

    def _stage(self, options: Mapping[str, Any]) -> Compiled:
        own = self.lowered._placement
        is_there = own.mesh is not None and own.devices and own.platform == self.platform.name
        devices = None if self.mesh is not None or is_there else (
            self.platform.with_devices(self.n_devices).devices)
        with configuration.cache(False):  # a program on disk names the lines of its time
            return self.lowered.compile(dict(options), device_assignment=devices)

    def _compile(self, options: Mapping[str, Any]) -> Any:
        return self._stage(options).runtime_executable()


class ModuleProgram(Program):
    """A program that was read from a text or from bytes, and the text with its locations."""

    def __init__(self, name: str, text: str, platform: Platform,
                 compiler_options: Mapping[str, Any], located: str = "") -> None:
        super().__init__(name, platform, compiler_options)
        self._text = text
        self._located = located or text

    def _stablehlo(self, names: str, locs: str) -> str:
        return self._text if locs == "none" else self._located

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
            there = self.platform.with_devices(self.n_devices)
            return compiler.compile(self._located, devices=there.devices,
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
      mesh: devices to run on, set as by `jax.set_mesh`; shardings are among `jit_options`.
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
    with _over(mesh):
        traced = jitted.trace(*args, **kwargs)
    made = TracedProgram(traced, where, compiler_options or {}, mesh,
                         tree_leaves(spec_of(jitted).without_static(args, kwargs)[:2]))
    made.seconds["trace"] = time.perf_counter() - start
    return made


def _over(mesh: Any) -> contextlib.AbstractContextManager[Any]:
    """What a program is traced and lowered in, to run on a mesh."""
    return contextlib.nullcontext() if mesh is None else set_mesh(mesh)


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
    text, located = _module_texts(program)
    return ModuleProgram(name, text, _platform(platform, devices_of(text)), compiler_options or {},
                         located)


def _module_texts(program: str | bytes) -> tuple[str, str]:
    """The text of a module, without and with the locations that it brings."""
    try:
        if isinstance(program, bytes) and not program.startswith(b"ML\xefR"):
            raise ValueError("these bytes are no MLIR: they do not begin with ML\\xefR")
        if isinstance(program, bytes) and b"StableHLO_v" in program[:64]:
            return jaxlib_api.artifact_text(program), ""
        if isinstance(program, str) and program.lstrip().startswith("HloModule"):
            return _of_hlo(program), ""
        module = jaxlib_api.parse_module(program)
        located = module.operation.get_asm(enable_debug_info=True)
        return str(module), re.sub(r'(?<!=) loc\("-":\d+:\d+\)', "", located)  # the text's own
    except Exception as error:
        raise ValueError(str(error)) from None


def _of_hlo(program: str) -> str:
    if "is_scheduled=true" in program.lstrip().partition("\n")[0]:  # C++ aborts on some
        raise ValueError("this HLO is what XLA has compiled, which it does not compile again. "
                         "Give what it was made of, such as HLO by --emit hlo; "
                         "viewer.page(title, hlo=text) shows this text as it is.")
    return jaxlib_api.stablehlo_of_hlo(jaxlib_api.hlo_of_text(program))


FORMAT = 1


def document(program: Program) -> str:
    """The program as JSON; `data` says what is in it."""
    return json.dumps(data(program), indent=2, sort_keys=True)


def data(program: Program) -> dict[str, Any]:
    """What is known of a program.

    Keys of the document, of which those that make no sense for a program are absent:

    - `format`: 1; a later number is for documents that older readers do not understand.
    - `name`, `platform`, `versions` (of `pyjx`, `jaxlib` and `stablehlo`).
    - `arguments`, `results`: for each leaf its `name`, `type` (such as `f32[8,128]`), `shape` and
      `dtype`.
    - `equations`: of the jaxpr in order, nested ones after the equation that holds them: `depth`,
      `primitive`, `inputs`, `outputs` (types), `source` (`file`, `line`, `function`; or null),
      `flops`, `transcendentals` and `bytes` of one run, where its sizes are numbers.
    - `operations`: how many there are of each kind, in `jaxpr` and `stablehlo`, and where it was
      compiled in `hlo-opt`.
    - `cost`: `total`, `by_operation` and `by_line`, each with `name`, `times`, `flops`,
      `transcendentals` and `bytes`; `exact`, `unknown`; `devices`, whose costs these are together;
      `xla`, XLA's own estimate, of one of them; `loops` that XLA compiled for a CPU, each with
      `line`, `name`, `iterations`, `kernels` of one (0: one kernel for all) and what is `apart`
      from others in kernels of its own.
    - `memory`: `argument`, `output`, `temp`, `alias`, `generated_code`, `peak`, in bytes.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> program = inspect.trace(lambda x: x + 1, jax.ShapeDtypeStruct((3,), "float32"))
    >>> inspect.data(program)["results"]
    [{'name': 'result', 'type': 'f32[3]', 'shape': [3], 'dtype': 'float32'}]
    """
    found: dict[str, Any] = {
        "format": FORMAT, "name": program.name, "platform": str(program.platform),
        "versions": {"pyjx": PYJX_VERSION, "jaxlib": jaxlib_api.JAXLIB_RELEASE,
                     "stablehlo": stablehlo_versions()[1]},
        "operations": {"stablehlo": dict(sorted(program.statistics().items()))},
    }
    if hasattr(program, "traced"):
        closed = program.jaxpr
        debug = closed.jaxpr.debug_info
        found["arguments"] = _typed(debug.arg_names, closed.in_avals, "arg")
        found["results"] = _typed(debug.result_paths, closed.out_avals, "result")
        found["equations"] = _equations(closed, 0)
        found["operations"]["jaxpr"] = dict(sorted(program.statistics("jaxpr").items()))
    if not program.is_symbolic:
        found["operations"]["hlo-opt"] = dict(sorted(program.statistics("hlo-opt").items()))
        memory = program.memory
        if memory is not None:
            found["memory"] = memory._asdict()
        if hasattr(program, "traced"):
            found["cost"] = _cost_data(program)
        else:
            found["cost"] = {"xla": program.xla_cost}
    return found


def _typed(names: Any, avals: Any, other: str) -> list[dict[str, Any]]:
    names = names or [f"{other}{i}" for i in range(len(avals))]
    return [{"name": n, "type": a.str_short(short_dtypes=True),
             "shape": [d if isinstance(d, int) else str(d) for d in getattr(a, "shape", ())],
             "dtype": str(getattr(a, "dtype", ""))} for n, a in zip(names, avals, strict=True)]


def _equations(closed: Any, depth: int, around: Frame | None = None) -> list[dict[str, Any]]:
    """`around` is the place of the operation that holds the program."""
    rows = []
    for eqn in closed.eqns:
        frame = own_frame(eqn.source_info.traceback) or around
        cost = cost_of(eqn) if unsized(eqn) is None else None
        rows.append({
            "depth": depth, "primitive": eqn.primitive.name,
            "inputs": [_type(v) for v in eqn.invars], "outputs": [_type(v) for v in eqn.outvars],
            "source": None if frame is None else {
                "file": frame.file_name, "line": frame.start_line,
                "function": frame.function_name},
            **({name: getattr(cost, name) for name in ("flops", "transcendentals", "bytes")}
               if cost is not None else {})})
        for inner in subjaxprs(eqn):
            rows += _equations(inner, depth + 1, frame)
    return rows


def _type(atom: Any) -> str:
    text = atom.aval.str_short(short_dtypes=True)
    return f"{atom.val}:{text}" if isinstance(atom, Literal) else str(text)


def _cost_data(program: Program) -> dict[str, Any]:
    cost = program.cost
    return {"total": cost.total._asdict(), "by_operation": [c._asdict() for c in cost.by_operation],
            "by_line": [c._asdict() for c in cost.by_line], "exact": cost.exact,
            "unknown": list(cost.unknown), "devices": cost.devices, "xla": program.xla_cost,
            "loops": [x._asdict() for x in program.loops]}
