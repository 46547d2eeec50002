"""Pages of the API reference: one for each public module, with all its names.

Public names load when they are used, so the pages are made of the packages' own lists of names. The
docstrings are plain text with `code` in single backticks; here they become reStructuredText.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from made_pages import write

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "reference"
NAMES = ROOT / "tests" / "public_names.txt"


# Types of jaxlib and of others that come without a docstring, and aliases of types.
DESCRIBED = {
    "Backend": "A client of XLA: one platform with its devices.",
    "Buffer": "An operand or a result of a buffer callback, where it lies in memory.",
    "DictKey": "A step of the path to a leaf: the key of a dictionary.",
    "ExecutionContext": "What a buffer callback knows of the call that it is part of.",
    "ExecutionStage": "When a foreign function is called: to be made, prepared or run.",
    "FlattenedIndexKey": "A step of the path to a leaf: its position among the children of a node.",
    "GSPMDSharding": "A sharding as XLA's partitioner says it, without a mesh.",
    "GetAttrKey": "A step of the path to a leaf: the name of an attribute.",
    "InitFn": "From parameters to the state of an optimizer.",
    "JaxIrContext": "A context of MLIR, in which operations are built.",
    "LoweringRule": "A function that builds the operations of a primitive.",
    "NamedSharding": "How an array is cut: a mesh, and for each dimension the mesh axes it is cut "
                     "along (a `PartitionSpec`).",
    "ParamsFn": "From the state of an optimizer to parameters.",
    "ProfileOptions": "What the profiler records.",
    "PyTreeDef": "The structure of a pytree, without its leaves.",
    "Schedule": "From the number of a step to a step size.",
    "SequenceKey": "A step of the path to a leaf: the index in a list or tuple.",
    "Sharding": "How an array lies on devices; the class of all of them.",
    "SingleDeviceSharding": "An array lies on one device, whole.",
    "Token": "A value that orders effects in a program.",
    "UpdateFn": "From a step, gradients and the state of an optimizer to its new state.",
    "Value": "An operand or result of an operation in a program's text.",
    "Wrapped": "A function that `jit` has compiled.",
    "iinfo": "The limits of an integer type: `bits`, `min`, `max`.",
}


def public_modules() -> dict[str, list[str]]:
    """The public names of each public module, submodules left out."""
    found = {}
    for name in re.findall(r"^jax[.\w]*$", NAMES.read_text(encoding="utf-8"), re.MULTILINE):
        own = name.replace("jax", "pyjx", 1)
        try:
            module = importlib.import_module(own)
        except ImportError:
            continue  # not there yet
        names = [n for n in dir(module) if not n.startswith("_")]
        members = [n for n in names if not isinstance(getattr(module, n), ModuleType)]
        if members:
            found[own] = members
    return found


def kind(value: Any) -> str:
    if inspect.isclass(value):
        return "class"
    return "function" if callable(value) else "data"


def signature(value: Any) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""


def text_of(value: Any, name: str = "") -> str:
    """The docstring, unless it is that of the type of a value."""
    doc = getattr(value, "__doc__", None) or ""
    if not inspect.isclass(value) and doc == type(value).__doc__ and not callable(value):
        doc = ""
    return inspect.cleandoc(doc) or DESCRIBED.get(name, "")


def escaped(line: str) -> str:
    """A line of a docstring, its `code` and all that reStructuredText would read as markup."""
    parts = re.split(r"(``.+?``|`[^`]+`)", line)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = "``" + part.strip("`") + "``"
            if i + 1 < len(parts) and re.match(r"\w", parts[i + 1]):
                parts[i] += "\\ "
        else:
            parts[i] = re.sub(r"([\\*|_`])", r"\\\1", part)
    return re.sub(r"^(\s*)\.\. ", r"\1\\.. ", "".join(parts))  # no directive, no footnote


NAMING = ("Args", "Raises", "Attributes")  # what names each thing, and says what it is
SECTIONS = (*NAMING, "Returns", "Yields")


def as_rst(text: str) -> list[str]:
    """A docstring as reStructuredText: paragraphs, indented code, examples, lists of arguments."""
    out: list[str] = []
    section = ""
    blocks = re.split(r"\n\s*\n", text)
    for block in blocks:
        lines = block.split("\n")
        head = lines[0].strip().rstrip(":")
        if head in SECTIONS and lines[0].strip().endswith(":") and not lines[0].startswith(" "):
            section = head
            out += [f"**{head}**", "", *(arguments if head in NAMING else prose)(lines[1:]), ""]
            continue
        indent = len(lines[0]) - len(lines[0].lstrip())
        if any(line.strip().startswith(">>>") for line in lines):
            first = next(i for i, line in enumerate(lines) if line.strip().startswith(">>>"))
            out += [escaped(line.strip()) for line in lines[:first]]
            out += ["", ".. code-block:: pycon", "",
                    *["    " + line for line in textwrap_dedent(lines[first:])], ""]
        elif section and indent:  # goes on
            out += [*(arguments if section in NAMING else prose)(lines), ""]
        elif indent:
            out += [".. code-block:: none", "", *["    " + s for s in textwrap_dedent(lines)], ""]
        elif any(re.match(r"(\* |- |\d+\. )", line) for line in lines):
            out += [*listed(lines), ""]
        else:  # a paragraph; what is indented below it is code
            end = next((i for i, line in enumerate(lines) if line.startswith(" ")), len(lines))
            whole = re.sub(r"`[^`]+`", lambda m: m[0].replace("\n", " "), "\n".join(lines[:end]))
            out += [*[escaped(line) for line in whole.split("\n")], ""]
            if end < len(lines):
                out += as_rst("\n".join(lines[end:]))
    return out


def textwrap_dedent(lines: list[str]) -> list[str]:
    margin = min((len(s) - len(s.lstrip()) for s in lines if s.strip()), default=0)
    return [s[margin:] for s in lines]


def listed(lines: list[str]) -> list[str]:
    """A list, whose lines that go on are indented below its items."""
    out = [""]
    for line in lines:
        mark = re.match(r"\s*(\* |- |\d+\. )", line)
        out.append(f"{mark[1]}{escaped(line[mark.end():])}" if mark else
                    f"  {escaped(line.strip())}" if len(out) > 1 else escaped(line))
    return out


def prose(lines: list[str]) -> list[str]:
    return [escaped(line.strip()) for line in lines]


def arguments(lines: list[str]) -> list[str]:
    """`name: text` as a list."""
    out = []
    lines = textwrap_dedent(lines)
    for line in lines:
        if line.startswith(" ") or not line.strip():
            out.append(f"  {escaped(line.strip())}")
            continue
        name, colon, rest = line.partition(": ")
        if colon and re.fullmatch(r"[*\w, .]+", name):
            out.append(f"- ``{name}``: {escaped(rest)}")
        elif line.endswith(":") and re.fullmatch(r"[*\w, .]+:", line):
            out.append(f"- ``{line[:-1]}``:")
        else:
            out.append(("  " if out else "") + escaped(line))
    return out


def entry(module: str, name: str, value: Any) -> list[str]:
    """The directive that describes one name."""
    what = kind(value)
    shown = signature(value) if what != "data" else ""
    body = as_rst(text_of(value, name))
    if what == "class":
        for attribute, member in sorted(vars(value).items()):
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if attribute.startswith("_") or not callable(function) or not text_of(function):
                continue
            is_property = isinstance(member, property)
            body += [f".. py:{'property' if is_property else 'method'}:: {attribute}"
                     f"{'' if is_property else signature(function)}", "",
                     *["   " + line for line in as_rst(text_of(function))], ""]
    return [f".. py:{what}:: {name}{shown}", f"   :module: {module}", "",
            *["   " + line for line in body], ""]


def page(module: str, names: list[str]) -> str:
    loaded = importlib.import_module(module)
    lines = [f"``{module}``", "=" * (len(module) + 4), "", *as_rst(inspect.getdoc(loaded) or "")]
    values = {name: getattr(loaded, name) for name in names}
    for title, wanted in (("Functions", "function"), ("Classes", "class"), ("Values", "data")):
        chosen = [n for n in names if kind(values[n]) == wanted]
        if chosen:
            lines += [title, "-" * len(title), ""]
        if wanted == "data":
            lines += [line for n in chosen for line in value_entry(module, n, values[n])]
        else:
            lines += [line for n in chosen for line in entry(module, n, values[n])]
    return "\n".join(lines) + "\n"


def value_entry(module: str, name: str, value: Any) -> list[str]:
    shown = repr(value)
    short = [f"``{shown}``"] if len(shown) < 60 and "\n" not in shown and "`" not in shown else []
    return [f".. py:data:: {name}", f"   :module: {module}", "",
            *["   " + line for line in short or [f"A ``{type(value).__name__}``."]], ""]


def write_pages(app: Sphinx) -> None:
    modules = public_modules()
    wanted = {f"{module}.rst": page(module, names) for module, names in modules.items()}
    wanted["index.rst"] = "\n".join([
        "API reference", "=============", "",
        "Names and signatures are JAX's. Each name is described where programs find it; with",
        "``import pyjx as jax`` it is ``jax.NAME`` there.", "",
        ".. toctree::", "   :maxdepth: 1", "", *[f"   {module}" for module in modules], ""])
    write(Path(app.srcdir) / FOLDER, wanted, ".rst")


def setup(app: Sphinx) -> dict[str, Any]:
    sys.setrecursionlimit(10_000)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
