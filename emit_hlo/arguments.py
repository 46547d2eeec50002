"""The command line: options, their values, and what is wrong with them."""

from __future__ import annotations

import argparse
import importlib
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from emit_hlo import tables


class UsageError(Exception):
    """The command line asks for something that cannot be had: exit status 2."""


class Output(NamedTuple):
    """A kind, and the file that it goes to; None for where `-o` says."""

    kind: str
    path: str | None


class Options(argparse.Namespace):
    """The command line, read and checked as far as that goes without the program."""

    target: str | None
    specs: list[str]
    code: str | None
    emit: list[Output]
    output: str | None
    transforms: list[tuple[str, str]]
    static: list[tuple[str, str]]
    donate: list[int]
    x64: bool
    flag: list[tuple[str, str]]
    xla: list[tuple[str, str]]
    platform: str
    memory_budget: str | None
    portable: str | None
    mesh: dict[str, int] | None
    in_shardings: str | None
    out_shardings: str | None
    passes: list[str] | None
    outline: str | None
    names: str
    locs: str
    time: bool
    stats: bool
    roofline: str | None
    run: int
    check: str | None
    find: str | None
    reduce: str | None
    diff: str | None
    expect: str | None
    update: bool
    watch: bool
    open: bool
    color: str
    quiet: bool
    verbose: bool
    completion: str | None
    listed: str | None
    folder: bool = False  # whether `-o` names one
    argv: list[str]


def instead_of(name: str, known: Iterable[str], what: str = "", prefix: str = "") -> str:
    """The end of a message about a name that is not known: similar ones, or all if they are few, as
    they are written, which may be behind a `prefix`."""
    names = list(known)
    difflib = importlib.import_module("difflib")  # for messages alone
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f". Did you mean {' or '.join([prefix + n for n in near])}?"
    if len(names) <= 16:
        return f"; {what or 'there are'}: {', '.join([prefix + n for n in names])}."
    return "."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        if unknown:
            option = unknown[1].partition("=")[0]
            options = [o for o in self._option_string_actions if o.startswith("--")]
            kind = option.lstrip("-")
            cure = f". Did you mean --emit {kind}?" if kind in tables.NAMED else (
                instead_of(option, options))
            message = f"there is no option {option}{cure}"
        message = re.sub("argument (\\S+): ignored explicit argument (.*)",
                         r"\1 takes no value, got \2", message)
        raise UsageError(f"{message}\nTry 'emit-hlo --help'.")


class _Transform(argparse.Action):
    """A transformation of the function; they are applied in the order in which they are written."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        name = self.dest.replace("_", "-")
        if values and name not in tables.WITH_VALUE:
            raise UsageError(f"--{name} takes no value, got {values!r}.")
        namespace.transforms = [*namespace.transforms, (name, values)]


class _Pair(argparse.Action):
    """`NAME=VALUE`, any number of them."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        name, equals, value = values.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {values}: expected NAME=VALUE.")
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), (name, value)])


# Options whose value must stand in the same word, so that what follows is an argument.
_MAYBE_VALUED = tuple(f"--{name}" for name in tables.TRANSFORMS) + ("--run", "--passes")


def parser() -> argparse.ArgumentParser:
    """The options; `--help` is made from this, too."""
    p = _Parser(prog="emit-hlo", add_help=False, allow_abbrev=False, usage=argparse.SUPPRESS)
    p.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    p.add_argument("-h", "--help", action="store_true")
    p.add_argument("--version", action="store_true")
    p.add_argument("-c", dest="code", metavar="CODE")
    p.add_argument("--emit", action="append", default=[])
    p.add_argument("-o", "--output", metavar="PATH|DIR|-")
    for name in tables.TRANSFORMS:
        p.add_argument(f"--{name}", action=_Transform)
    p.set_defaults(transforms=[])
    for name in ("static", "flag", "xla"):
        p.add_argument(f"--{name}", action=_Pair, default=[])
    p.add_argument("--donate", action="append", default=[])
    p.add_argument("--memory-budget")
    p.add_argument("--platform", default="cpu")
    p.add_argument("--target", dest="portable")
    p.add_argument("--mesh")
    p.add_argument("--in-shardings")
    p.add_argument("--out-shardings")
    p.add_argument("--passes")
    p.add_argument("--roofline")
    p.add_argument("--run")
    p.add_argument("--reduce")
    p.add_argument("--diff")
    p.add_argument("--expect")
    for name in CHOICES:
        p.add_argument(f"--{name}", default=_CHOICE_DEFAULTS.get(name))
    p.add_argument("--list", dest="listed")
    for name in ("x64", "time", "stats", "update", "watch", "open"):
        p.add_argument(f"--{name}", action="store_true")
    p.add_argument("-q", "--quiet", action="store_true")
    p.add_argument("-v", "--verbose", action="store_true")
    return p


CHOICES = {
    "outline": ("on", "off", "auto"),
    "names": tables.NAMES,
    "locs": tables.LOCS,
    "check": tables.CHECKS,
    "find": tables.FINDS,
    "color": ("auto", "always", "never"),
    "completion": ("bash", "zsh", "fish"),
}
_CHOICE_DEFAULTS = {"names": "ssa", "locs": "none", "color": "auto"}
LISTS = ("kinds", "platforms", "passes", "transforms", "chips")


def parse(argv: Sequence[str]) -> Options | str:
    """The options of a command line; `help` or `version` where that is asked for.

    Raises:
      UsageError: the command line makes no sense.
    """
    words = [f"{w}=" if w in _MAYBE_VALUED else w for w in argv]
    options = parser().parse_intermixed_args(words, Options())
    options.argv = list(argv)
    if options.help or options.version:
        return "help" if options.help else "version"
    for name, choices in CHOICES.items():
        _one_of(f"--{name}", getattr(options, name), choices)
    _one_of("--list", options.listed, LISTS)
    if options.listed or options.completion:
        return options
    _read_words(options)
    _read_values(options)
    _check_together(options)
    return options


def _one_of(option: str, value: str | None, choices: Iterable[str]) -> None:
    if value is not None and value not in choices:
        raise UsageError(f"{option} {value}: there is no {value!r}{instead_of(value, choices)}")


def _read_words(options: Any) -> None:
    words = options.words
    if options.code is not None:
        options.target, options.specs = None, words
    elif not words:
        raise UsageError("which function? emit-hlo TARGET [ARGSPEC ...], such as\n"
                         "  emit-hlo model.py:loss 'f32[8,128]' --grad\nTry 'emit-hlo --help'.")
    else:
        options.target, options.specs = words[0], words[1:]


def _read_values(options: Any) -> None:
    options.donate = [_number("--donate", n) for text in options.donate for n in text.split(",")]
    if options.run is not None:
        options.run = _number("--run", options.run or "1", least=1)
    options.run = options.run or 0
    if options.passes is not None:
        options.passes = [p for p in options.passes.split(",") if p] or list(tables.PASSES)
        for name in options.passes:
            _one_of("--passes", name, tables.PASSES)
    if options.mesh is not None:
        options.mesh = _mesh(options.mesh)
    if options.portable is not None and not re.fullmatch(r"min|\d+\.\d+\.\d+", options.portable):
        raise UsageError(f"--target {options.portable}: expected a version of StableHLO such as "
                         "1.0.0, or min.")
    if options.roofline is not None:
        chip_of(options.roofline)
    _check_platform(options.platform)
    given = [o for text in options.emit for o in _outputs(text)]
    options.emit = given or _kinds_for(options)


def _number(option: str, text: str, least: int = 0) -> int:
    if not re.fullmatch(r"\d+", text) or int(text) < least:
        raise UsageError(f"{option} {text}: expected a number of {least} or more.")
    return int(text)


def _mesh(text: str) -> dict[str, int]:
    axes: dict[str, int] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*([1-9]\d*)\s*", part)
        if not found:
            raise UsageError(f"--mesh {text}: expected axes such as x=4,y=2, got {part!r}.")
        if found[1] in axes:
            raise UsageError(f"--mesh {text}: axis {found[1]} is given twice.")
        axes[found[1]] = int(found[2])
    return axes


def chip_of(text: str) -> tables.Chip:
    """The chip that `--roofline` names."""
    if text in tables.CHIPS:
        return tables.CHIPS[text]
    try:
        flops, bandwidth = map(float, text.split(","))
        if flops > 0 and bandwidth > 0:
            return tables.Chip(flops, bandwidth)
    except ValueError:
        pass
    raise UsageError(f"--roofline {text}: expected a chip, or operations and bytes a second such "
                     f"as 197e12,819e9{instead_of(text, tables.CHIPS, 'chips are')}")


def _check_platform(text: str) -> None:
    platform, _, rest = text.partition(":")
    if platform not in tables.PLATFORMS:
        cure = (". NVIDIA's GPUs are cuda." if platform == "gpu"
                else instead_of(platform, tables.PLATFORMS))
        raise UsageError(f"--platform {text}: there is no platform {platform!r}{cure}")
    if platform == "cpu" and rest:
        raise UsageError(f"--platform {text}: of cpu there is one kind; write cpu.")
    if platform == "tpu" and rest and rest.partition(":")[0] not in tables.TPUS:
        raise UsageError(f"--platform {text}: expected a topology such as tpu:v5e:2x2"
                         f"{instead_of(rest, tables.TPU_TOPOLOGIES, prefix='tpu:')}")
    if platform == "tpu" and rest and not re.fullmatch(r"\w+(:\d+(x\d+){1,2})?", rest):
        raise UsageError(f"--platform {text}: expected a topology such as tpu:v5e:2x2.")
    if platform == "cuda" and rest and rest.lower() not in tables.GPUS and not re.search(
            r"[./\\]", rest):
        raise UsageError(f"--platform {text}: expected a GPU, or a file with a target config"
                         f"{instead_of(rest, tables.GPUS, 'GPUs are', 'cuda:')}")


def _outputs(text: str) -> list[Output]:
    outputs = []
    for part in text.split(","):
        kind, equals, path = part.partition("=")
        if kind != "all" and kind not in tables.NAMED:
            raise UsageError(f"--emit {text}: there is no kind {kind!r}"
                             f"{instead_of(kind, (*tables.KIND_NAMES, 'all'), 'kinds are')}")
        if equals and not path:
            raise UsageError(f"--emit {text}: {kind}= lacks the path.")
        if kind == "all" and equals:
            raise UsageError(f"--emit {text}: where `all` goes is said by -o FOLDER.")
        kinds = tables.KIND_NAMES if kind == "all" else (kind,)
        outputs += [Output(k, path or None) for k in kinds]
    return list(dict.fromkeys(outputs))


def _kinds_for(options: Any) -> list[Output]:
    """What is emitted where no `--emit` says it: what the suffix of the output means."""
    path = options.output
    suffixes = {s: k.name for k in tables.KINDS for s in k.suffixes}
    if path is not None and path != "-":
        if path.endswith(("/", "\\")):
            return [Output(k, None) for k in tables.KIND_NAMES]
        for suffix in sorted(suffixes, key=len, reverse=True):
            if path.endswith(suffix):
                return [Output(suffixes[suffix], None)]
    if options.open:
        return [Output("html", None)]
    if path is None and (options.run or options.check or options.find) and not (
            options.expect or options.diff or options.time or options.stats or options.roofline
            or options.passes or options.portable):
        return []  # what comes of it is all that is asked for
    unknown = os.path.splitext(path or "")[1]
    if unknown not in ("", ".txt") and not (
            options.portable or options.reduce or options.diff or os.path.isdir(path)):
        raise UsageError(f"-o {path}: no kind has the suffix {unknown}"
                         f"{instead_of(unknown, suffixes, 'suffixes are')} --emit KIND names the "
                         "kind of any file.")
    return [Output("bytecode" if options.portable else tables.DEFAULT_KIND, None)]


def _check_together(options: Any) -> None:
    """What makes no sense together."""
    if options.update and not options.expect:
        raise UsageError("--update writes the file that --expect FILE names; there is none.")
    if options.expect and options.diff:
        raise UsageError("--expect and --diff: one of them.")
    kinds = [o.kind for o in options.emit]
    if (options.expect or options.diff) and len(kinds) > 1:
        raise UsageError("--expect and --diff compare one kind; name it by --emit.")
    if options.diff and (tables.NAMED[kinds[0]].binary or kinds[0] == "html"):
        raise UsageError(f"--diff compares texts; {kinds[0]} is none. --emit stablehlo or hlo-opt "
                         "is one.")
    if options.open and "html" not in kinds:
        raise UsageError("--open shows the page; --emit html makes it.")
    if (options.in_shardings or options.out_shardings) and not options.mesh:
        raise UsageError("shardings name the axes of a mesh: --mesh x=4,y=2.")
    if options.reduce and (options.run or options.check or options.find or options.time):
        raise UsageError("--reduce writes the program that it finds, and does nothing else; leave "
                         "--run, --check, --find and --time out.")
    runs = options.run or options.check or options.find or options.reduce
    if runs and options.platform != "cpu" and ":" in options.platform:
        raise UsageError("--run, --check, --find and --reduce run the program, and "
                         f"{options.platform} is only compiled for; leave its kind out to use "
                         "the device that is here.")
    if options.watch and options.target == "-":
        raise UsageError("--watch looks at files; the standard input is none.")
