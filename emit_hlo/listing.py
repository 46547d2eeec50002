"""What the command says of itself: help, lists, completion."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from typing import Any

from emit_hlo import arguments, tables

_HEAD = """\
usage: emit-hlo TARGET [ARGSPEC ...] [options]

Show what a Python function becomes on its way to XLA: for the processor, for GPUs and for TPUs,
without the hardware.

target:
  package.module:function   file.py:function   module:Class.method
  -c 'lambda x: x + 1'      an expression; jax, jnp, lax and np are there
  file.mlir .mlirbc .hlo    a program; - reads one from the standard input

arguments, one for each parameter:
  f32[8,128]  bf16[2]  i32[]  8x128xf32    types, as JAX or as MLIR writes them
  bf16[B,128]  f32[2*B]                    with symbolic sizes
  key[]  key<fry>[4]                       keys of random numbers
  3.5                                      a Python number
  =3  ='relu'                              a static value, known while tracing
  (f32[2], f32[3])  {w: f32[4,4], b: f32[4]}   trees
  @batch.npz  @array.npy  @module:make     data, or what a function returns; one such argument alone
                                           may be all: a tuple by position, a dict by name
  x=f32[3]  x=3.5  x==3  x=@module:make    by name, behind those by position
  none given: defaults, annotations, or `example_args` of the module
"""

_EXAMPLES = """\
examples:
  emit-hlo model.py:loss 'f32[4]' 'f32[8,4]' --grad
  emit-hlo model.py:loss 'f32[4]' 'f32[8,4]' --emit hlo-opt --platform tpu:v5e:2x2
  emit-hlo -c 'lambda x: jnp.sum(jnp.sin(x))' 'f32[B,128]' --emit jaxpr
  emit-hlo model.py:step 'f32[4]' 'f32[8,4]' -o out/            every kind, in a folder
  emit-hlo model.py:loss 'f32[4]' 'f32[8,4]' --diff HEAD~1      against an older version
  emit-hlo model.py:loss 'f32[4]' 'f32[8,4]' --expect loss.mlir against a file, in CI

exit status:
  0 fine   1 differs, or a check failed   2 usage, or a file that cannot be read or written
  3 an error of the program, or of its import   4 an operation has no lowering   5 XLA refuses it
  6 the platform is not available   7 a check that can tell nothing   130 interrupted
"""

_OUTPUT = (
    ("--emit KIND[=PATH],...", "which forms; `all` for each"),
    ("-o PATH|DIR|-", "where to; the suffix chooses the kind, a folder gets all kinds"),
    ("--names ssa|user", "name values in StableHLO after the program's variables"),
    ("--locs none|line|stack", "where operations come from, in StableHLO"),
    ("--target VERSION|min", "the version of StableHLO that reads the bytecode"),
    ("--time", "how long importing, tracing, lowering and compiling took"),
    ("--stats", "how many operations of each kind there are"),
    ("--roofline CHIP|FLOPS,BYTES", "what bounds each line: arithmetic or memory"),
    ("--passes[=NAME,...]", "the program before and after each pass"),
    ("--open", "show the page in a browser"),
    ("--color auto|always|never", "colours on the terminal, where rich is installed"),
)
_PROGRAM = (
    ("--static NAME=VALUE", "an argument that is known while tracing"),
    ("--donate N,...", "arguments whose memory results may take"),
    ("--memory-budget SIZE", "what it may need, such as 12GiB; see --emit memory"),
    ("--x64", "64-bit types"),
    ("--flag NAME=VALUE", "a flag, as jax.config names it"),
    ("--xla NAME=VALUE", "an option of XLA's compiler"),
    ("--platform NAME", "cpu (default), cuda, cuda:h100, tpu:v5e:2x2; see --list platforms"),
    ("--mesh x=4,y=2", "devices, as a mesh with these axes"),
    ("--in-shardings SPECS", "how arguments are cut, such as 'x,None; y'; `*` for not at all"),
    ("--out-shardings SPECS", "the same of results"),
    ("--outline on|off|auto", "whether repeated blocks become functions"),
)
_COMPARING = (
    ("--run[=N]", "run it (N times): results and times; with --time, by source line"),
    ("--check HOW", "compare results: interpreter, numpy-float64, eager"),
    ("--find nan|inf|subnormal", "which operation makes the first such value"),
    ("--reduce COMMAND|crash", "the least that crashes or hangs, or fails COMMAND ({}: its path)"),
    ("--diff OTHER|GIT_REV", "what differs from another target, file or version"),
    ("--expect FILE", "compare with a file; --update writes it"),
    ("--watch", "again whenever a source file changes"),
)
_OTHER = (
    ("-q, -v", "say less; say more, such as tracebacks"),
    ("--list WHAT", "kinds, platforms, passes, transforms or chips"),
    ("--completion SHELL", "a script for bash, zsh or fish"),
    ("--version", "versions of pyjx and jaxlib"),
    ("-h, --help", "this text"),
)


def text_for(options: Any) -> str:
    """What `--help`, `--version`, `--list` or `--completion` prints."""
    if options == "help":
        return help_text()
    if options == "version":
        return version_text()
    if options.completion:
        return completion(options.completion)
    return listed(options.listed)


def help_text() -> str:
    """The help."""
    transforms = [(f"--{n}[=...]" if n in tables.WITH_VALUE else f"--{n}", about)
                  for n, about in tables.TRANSFORMS.items()]
    kinds = [(f"  {k.name}", k.about) for k in tables.KINDS]
    parts = [_HEAD]
    for title, rows in (
            ("output", [_OUTPUT[0], *kinds, *_OUTPUT[1:]]),
            ("transformations, applied in the order in which they are written", transforms),
            ("program", _PROGRAM), ("running and comparing", _COMPARING), ("other", _OTHER)):
        parts.append(f"{title}:\n{_rows(rows)}")
    return "\n".join([*parts, _EXAMPLES])


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    lines = []
    for left, right in rows:
        lines.append(f"  {left:27} {right}" if len(left) < 28 else f"  {left}\n{'':30}{right}")
    return "\n".join(lines) + "\n"


def version_text() -> str:
    """The versions of pyjx and jaxlib."""
    metadata, runpy = map(importlib.import_module, ("importlib.metadata", "runpy"))  # they are slow
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    version = runpy.run_path(os.path.join(root, "pyjx", "version.py"))["PYJX_VERSION"]
    try:
        jaxlib = metadata.version("jaxlib")
    except metadata.PackageNotFoundError:
        jaxlib = "not installed"
    return f"emit-hlo of pyjx {version}, jaxlib {jaxlib}\n"


def listed(what: str) -> str:
    """The text of `--list`."""
    if what == "kinds":
        return _rows([(k.name, f"{k.about} ({k.suffixes[0]})"
                       + (f"; of {', '.join(k.platforms)}" if k.platforms else ""))
                      for k in tables.KINDS])
    if what == "platforms":
        return _rows([*tables.PLATFORMS.items(), ("TPU topologies",
                                                  " ".join(tables.TPU_TOPOLOGIES))])
    if what == "chips":
        return _rows([(name, f"{c.flops / 1e12:g} TFLOP/s (bf16), {c.bandwidth / 1e9:g} GB/s")
                      for name, c in tables.CHIPS.items()])
    return _rows((tables.PASSES if what == "passes" else tables.TRANSFORMS).items())


# ---- completion ---------------------------------------------------------------------------

_VALUES = {
    "--emit": (*tables.KIND_NAMES, "all"), "--platform": (
        *tables.PLATFORMS, *[f"cuda:{g}" for g in tables.GPUS],
        *[f"tpu:{t}" for t in tables.TPU_TOPOLOGIES]),
    "--roofline": tuple(tables.CHIPS), "--list": arguments.LISTS,
    **{f"--{name}": choices for name, choices in arguments.CHOICES.items()},
}


def completion(shell: str) -> str:
    """The script that completes options and their values."""
    options = sorted({o for a in arguments.parser()._actions for o in a.option_strings})
    if shell == "fish":
        lines = [f"complete -c emit-hlo -l {o[2:]}"
                 + (f" -x -a '{' '.join(_VALUES[o])}'" if o in _VALUES else "")
                 for o in options if o.startswith("--")]
        return "\n".join(lines) + "\n"
    cases = "\n".join([f"    {o}) COMPREPLY=($(compgen -W '{' '.join(v)}' -- \"$current\")) ;;"
                       for o, v in _VALUES.items()])
    script = f"""\
_emit_hlo() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  COMPREPLY=()
  case "$before" in
{cases}
    *) if [[ $current == -* ]]; then
         COMPREPLY=($(compgen -W '{' '.join(options)}' -- "$current"))
       else
         COMPREPLY=($(compgen -f -- "$current"))
       fi ;;
  esac
}}
complete -o nospace -F _emit_hlo emit-hlo
"""
    return f"autoload -U +X bashcompinit && bashcompinit\n{script}" if shell == "zsh" else script
