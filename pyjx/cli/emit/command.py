"""The command itself, from the options to the exit status; and again whenever a source changes."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import emit_hlo
from emit_hlo.arguments import Options, Output, UsageError, instead_of
from emit_hlo.tables import NAMED
from pyjx import configuration, jaxlib_api
from pyjx.cli.emit import reports, targets, writing
from pyjx.cli.emit.messages import (
    IMPORT,
    LOWERING,
    PLATFORM,
    USAGE,
    XLA,
    CommandError,
    described,
    is_mistake,
    is_terminal,
    of_xla,
    say,
    working,
)
from pyjx.cli.emit.transformed import (
    Call,
    call_for,
    check_shardings,
    cure_here,
    jit_options,
    mesh_of,
    shown,
)
from pyjx.core import frames
from pyjx.inspect.platforms import Platform, UnavailableError, have_cpus, platform
from pyjx.inspect.program import Program, TracedProgram, UnsupportedError, read, trace
from pyjx.states import states
from pyjx.tree_util import tree_leaves


def interruptible(work: Callable[[], Any]) -> Any:
    """The result of `work`, which a Ctrl-C ends together with the process.

    XLA compiles without returning to Python, so no handler of Python's would run in its thread;
    this one waits for another thread that does the work.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
    except KeyboardInterrupt:
        leave(emit_hlo.INTERRUPTED)
    if errors:
        raise errors[0]
    return results[0]


def leave(status: int) -> None:
    """End the process without waiting for threads."""
    writing.clean_up()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    os._exit(status)


# Forms that name files, which are shown from the working directory.
_WITH_PATHS = ("stablehlo", "hlo", "hlo-opt")
# Forms for which XLA compiles the program.
_COMPILED = ("hlo-opt", "llvm", "ptx", "asm", "memory", "json", "html", "dot", "cost")
_KERNELS = ("llvm", "ptx", "asm")

# What calls the command is none of the user's: its package, `python -m` and the installed script.
for _place in (os.path.dirname(os.path.abspath(sys.modules["emit_hlo"].__file__ or "")),
               "<frozen runpy>", *[p for p in sys.argv[:1] if p.endswith(("emit-hlo", "pyjx"))]):
    frames.register_exclusion(_place)


def run(options: Options, started: float) -> int:
    """Do what the options say; the exit status."""
    imported = time.perf_counter() - started
    try:
        if options.watch:
            return watch(options)
        with _settings(options):
            return _run(options, imported)
    except Exception as error:
        return _said(error, options.verbose)


def _said(error: Exception, verbose: bool) -> int:
    """Say what went wrong; the exit status."""
    if verbose:
        traceback.print_exception(error.__cause__ or error)
    if isinstance(error, (CommandError, UsageError, UnsupportedError, UnavailableError)):
        say(str(error))
        status: int = getattr(error, "status", USAGE)
        return PLATFORM if isinstance(error, UnavailableError) else status
    if isinstance(error, MemoryError):
        say("there is not enough memory.")
        return XLA
    say(f"{type(error).__name__}: {error}\nThis is a fault of emit-hlo; -v shows where.")
    return IMPORT


@contextlib.contextmanager
def _settings(options: Options) -> Iterator[None]:
    """The flags of the options, for as long as the command runs."""
    with contextlib.ExitStack() as stack:
        if options.x64:
            stack.enter_context(configuration.enable_x64(True))
        if configuration.platforms.value is None and ":" in options.platform:
            # The devices that are described are the only ones that are wanted.
            stack.enter_context(configuration.platforms("cpu"))
        if options.outline:
            stack.enter_context(configuration.outline(options.outline))
        for name, value in options.flag:
            stack.enter_context(_flag(name, value))
        if options.mesh and options.platform == "cpu":  # before the user's program computes
            have_cpus(math.prod(options.mesh.values()))
        if not options.verbose:
            stack.enter_context(warnings.catch_warnings())
            if options.quiet:
                warnings.simplefilter("ignore")
        yield


def _flag(name: str, value: str) -> Any:
    state = states.get(name, states.get(f"jax_{name}"))
    if state is None:
        near = instead_of(name, [s.removeprefix("jax_") for s in states])
        raise UsageError(f"--flag {name}: there is no such flag{near}")
    try:
        if state.kind in (int, float):
            return state(state.kind(value))  # type: ignore[operator]
        return state(value)
    except ValueError as error:
        raise UsageError(f"--flag {name}={value}: {error}") from None


def _run(options: Options, imported: float) -> int:
    outputs = _places(options)
    program = program_for(options)
    program.seconds = {"import": imported, **program.seconds}
    if options.diff is not None:
        return reports.against(options, program, lambda: str(form(
            program, options.emit[0].kind, options)))
    if options.expect is not None:
        return reports.expect(options, form(program, options.emit[0].kind, options))
    status = _emit_all(options, program, outputs)
    if options.run or options.check or options.find:
        # These lower what they run, as a whole or in parts, and tell no mistake of the program.
        lowered(program, options)
    status = max(status, reports.report(options, program))
    tell_files()
    return status


def program_for(options: Options, specs: Sequence[str] | None = None) -> Program:
    """The program that the command line names."""
    if options.target is not None and targets.is_program(options.target):
        return _program_in_file(options)
    with _users_output():
        function, name = _function(options)
        call = call_for(function, name, options.specs if specs is None else specs, options.static,
                        options.transforms, bool(options.donate or options.in_shardings))
        if changed := targets.narrowed(tree_leaves((call.args, call.kwargs))):
            say(f"note: {changed} here, as 64-bit types are off; --x64 has them.", options.quiet)
        mesh = mesh_of(options)
        where = mesh[1] if mesh else _platform(options.platform)
        return _traced(options, call, name, where, mesh[0] if mesh else None)


def _platform(text: str) -> Platform:
    try:
        return platform(text)
    except (ValueError, OSError) as error:
        raise CommandError(f"--platform {text}: {error}") from None


def _program_in_file(options: Options) -> Program:
    assert options.target is not None
    given = [name for name, used in (
        ("arguments", options.specs), ("transformations", options.transforms),
        ("--static", options.static), ("--donate", options.donate), ("--mesh", options.mesh),
        ("--passes", options.passes), ("--run", options.run), ("--check", options.check),
        ("--find", options.find), ("--reduce", options.reduce)) if used]
    if given:
        verb = "is" if given[0].startswith("--") else "are"
        raise UsageError(f"{options.target} holds a program, not a function: {given[0]} {verb} for "
                         "functions. Name the one that the program was made of.")
    content = targets.read_program(options.target)
    name = "program" if options.target == "-" else os.path.basename(options.target).split(".")[0]
    try:
        return read(content, name, platform=_platform(options.platform),
                    compiler_options=_xla_options(options))
    except ValueError as error:
        shown = "standard input" if options.target == "-" else options.target
        raise CommandError(f"{shown} is no program: {of_xla(error)}") from None


def _xla_options(options: Options) -> dict[str, Any]:
    """XLA's options; of truth values it takes Python's alone."""
    truth = {"true": True, "false": False}
    return {name: truth.get(value.lower(), value) for name, value in options.xla}


def _function(options: Options) -> tuple[Any, str]:
    if options.code is not None:
        function, name = targets.evaluate(options.code), "-c"
    else:
        assert options.target is not None
        function, name = targets.load_function(options.target), options.target
    if not callable(function):
        kind = "a module" if isinstance(function, ModuleType) else (
            f"of type {type(function).__name__}")
        raise CommandError(f"{name!r} is {kind}, not a function.")
    if type(function) is type:  # those of numbers, which convert, have a type of their own
        methods = [f"{name}.{n}" for n, m in vars(function).items()
                   if callable(m) and (n[0] != "_" or n == "__call__")]
        hint = f"; name a method of it, such as {methods[-1]}" if methods else ""
        raise CommandError(f"{name!r} is a class, not a function{hint}.")
    return function, name


def _traced(options: Options, call: Call, name: str, where: Platform, mesh: Any) -> TracedProgram:
    asked = jit_options(options, call, mesh)
    with working(f"tracing {name}", options.quiet):
        try:
            program = trace(call.function, *call.args, platform=where, mesh=mesh,
                            compiler_options=_xla_options(options), jit_options=asked,
                            **call.kwargs)
        except KeyboardInterrupt:
            raise
        except SystemExit as error:
            raise CommandError(f"{name} ended the process while it was traced (exit status "
                               f"{error.code}).", IMPORT) from None
        except BaseException as error:
            check_shardings(error, options)
            given = ", ".join([*map(shown, call.args),
                               *[f"{k}={shown(v)}" for k, v in call.kwargs.items()]])
            raise CommandError(f"{described(error, f'tracing {name}')}\n"
                               f"  for ({given}){cure_here(error, call, options.transforms)}",
                               IMPORT) from error
    if options.memory_budget:
        program.check_static("what is fitted into a --memory-budget")
    return program


@contextlib.contextmanager
def _users_output() -> Iterator[None]:
    """What the user's program writes to the standard output goes to stderr, that of C++ and of
    processes it starts, too."""
    saved = None
    try:
        sys.stdout.flush()
        saved = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):  # no such descriptor
        pass
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)


# ---- output -------------------------------------------------------------------------------


def _places(options: Options) -> list[Output]:
    """Where each kind goes; that it can go there is checked before any work."""
    path = options.output
    folder = path is not None and path != "-" and (
        path.endswith(("/", os.sep)) or os.path.isdir(path))
    here = [o for o in options.emit if o.path is None]
    if path is not None and path != "-" and len(here) > 1 and not folder:
        if os.path.exists(path):
            raise UsageError(f"-o {path}: {len(here)} kinds need a folder, and this is a file.")
        folder = True
    if folder and len(here) == 1 and not any("--emit" in word for word in options.argv):
        options.emit = here = [Output(k, None) for k in NAMED]
    for output in options.emit:
        writing.check_writable(output.path)
    if folder:
        assert path is not None
        writing.make_folder(path)
    else:
        writing.check_writable(path)
        for o in here:
            if NAMED[o.kind].binary and path in (None, "-") and is_terminal(sys.stdout):
                raise UsageError(f"{o.kind} is bytes; -o FILE writes them to a file.")
    options.folder = folder
    return options.emit


def _emit_all(options: Options, program: Program, outputs: Sequence[Output]) -> int:
    if any([o.kind in _KERNELS for o in outputs]):
        program.keep_kernels()
    if options.time:
        program.watch_compiler()
    several = len([o for o in outputs if o.path is None]) > 1
    refused: dict[str, list[str]] = {}  # forms, by why there are none
    for number, output in enumerate(outputs, 1):
        of = f" ({number} of {len(outputs)} forms)" if len(outputs) > 1 else ""
        try:
            made = form(program, output.kind, options, of)
        except (UnsupportedError, UnavailableError) as error:
            if len(outputs) == 1:
                raise
            refused.setdefault(str(error), []).append(output.kind)
            continue
        path = output.path
        if path is None and options.folder:
            assert options.output is not None
            path = writing.path_in_folder(options.output, output.kind, program.name)
        elif path is None:
            path = options.output
        if several and path in (None, "-"):
            if NAMED[output.kind].binary:
                continue
            writing.write(f"==== {output.kind}\n", path)
        writing.write(_for_stdout(options, made) if path in (None, "-") else made, path)
    for why, kinds in refused.items():
        say(f"note: no {', '.join(kinds)}: {why}", options.quiet)
    if options.open:
        reports.open_page(options, program)
    return 0


def _for_stdout(options: Options, made: str | bytes) -> str | bytes:
    if isinstance(made, str) and writing.is_colored(options.color, sys.stdout):
        return writing.colored(made, writing.PROGRAM)
    return made


def form(program: Program, kind: str, options: Options, of: str = "") -> str | bytes:
    """A form of the program, which is one `of` several; what fails says so by its exit status."""
    with _users_output():
        made = _formed(program, kind, options, of)
    return made if isinstance(made, bytes) else made.rstrip("\n") + "\n"


def _formed(program: Program, kind: str, options: Options, of: str) -> str | bytes:
    arguments: dict[str, Any] = {}
    for_what = f"{program.name} for {program.platform}{of}"
    if kind == "stablehlo":
        arguments = {"names": options.names, "locs": options.locs}
    elif kind == "bytecode":
        arguments = {"version": options.portable or ""}
    if kind != "jaxpr":
        with working(f"lowering {for_what}", options.quiet):
            lowered(program, options)
    if kind in _COMPILED and not program.is_symbolic and kind != "dot":
        known = len(program.notes)
        with working(f"compiling {for_what}", options.quiet):
            compiled(program)
        for note in program.notes[known:]:
            say(f"note: {note}", options.quiet)
    if kind == "html":  # which shows it
        reports.measure(options, program)
    try:
        with working(f"writing {kind} of {for_what}", options.quiet):
            text = program.emit(kind, **arguments)
    except jaxlib_api.JaxRuntimeError as error:
        raise CommandError(f"XLA refuses {program.name}: {of_xla(error)}", XLA) from error
    if kind in _WITH_PATHS and isinstance(text, str):
        text = text.replace(f'"{os.getcwd()}{os.sep}', '"')
    return text


def lowered(program: Program, options: Options) -> None:
    """Lower the program, or say why that cannot be."""
    try:
        program.stablehlo()
    except (UnsupportedError, UnavailableError):
        raise
    except jaxlib_api.JaxRuntimeError as error:  # it does not fit in its --memory-budget
        raise CommandError(str(error), XLA) from error
    except Exception as error:
        check_shardings(error, options)
        told = described(error, f"lowering {program.name} for {program.platform}",
                         program.jaxpr if isinstance(program, TracedProgram) else None)
        raise CommandError(told, IMPORT if is_mistake(error) else LOWERING) from error


def compiled(program: Program) -> Any:
    """Compile the program, or say why XLA refuses it; a Ctrl-C ends it."""
    try:
        return interruptible(lambda: program.executable)
    except (UnsupportedError, UnavailableError):
        raise
    except Exception as error:
        raise CommandError(f"XLA refuses {program.name} for {program.platform}: {of_xla(error)}",
                           XLA) from error


# -- watching --------------------------------------------------------------------------------------

_SECONDS = 0.3  # between two looks
FILES = "PYJX_EMIT_HLO_FILES"  # where a process says which files it read


def watch(options: Options) -> int:
    """Run the command in processes of its own, one after each change, until a Ctrl-C."""
    words = [w for w in options.argv if w != "--watch"]
    with tempfile.TemporaryDirectory(prefix="emit-hlo-") as folder:
        said = os.path.join(folder, "files")
        env = {**os.environ, FILES: said}
        # Before each run: a change while it goes on counts, too.
        known = _file_times(_named(options))
        while True:
            subprocess.run([sys.executable, "-m", "emit_hlo", *words], env=env)
            watched = _read(said) or _named(options)
            if not watched:
                return 2
            found = _file_times(watched)
            if not options.quiet:
                sys.stderr.write(f"emit-hlo: watching {len(watched)} files\n")
            changed = any([known.get(path, at) != at for path, at in found.items()])
            while not changed:
                time.sleep(_SECONDS)
                changed = _file_times(watched) != found
            known = _file_times(watched)


def _read(path: str) -> list[str]:
    try:
        return [line for line in Path(path).read_text(encoding="utf-8").split("\n") if line]
    except OSError:
        return []


def _named(options: Options) -> list[str]:
    """The file of the command line, where the program could not be imported."""
    target = options.target or ""
    place = target if os.path.isfile(target) else target.rpartition(":")[0]
    return [place] if os.path.isfile(place) else []


def _file_times(paths: list[str]) -> dict[str, int]:
    times = {}
    for path in map(os.path.abspath, paths):
        try:
            times[path] = os.stat(path).st_mtime_ns
        except OSError:  # an editor is replacing it
            times[path] = 0
    return times


def tell_files() -> None:
    """Say which of the user's files this process has read, if it is watched for that."""
    place = os.environ.get(FILES)
    if not place:
        return
    found = []
    installed = (os.path.dirname(os.__file__), f"{os.sep}site-packages{os.sep}")
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and os.path.isfile(path) and not path.startswith(installed[0]) \
                and installed[1] not in path:
            found.append(os.path.abspath(path))
    Path(place).write_text("\n".join(sorted(set(found))), encoding="utf-8")
