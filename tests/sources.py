"""The source as data: its modules, what each imports, and the figures that tests hold down."""

from __future__ import annotations

import ast
import functools
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parent.parent
PATHS = sorted(
    path for package in ("emit_hlo", "pyjx", "lowering") for path in (ROOT / package).rglob("*.py"))
# Operations that stand for all others where it is counted how many files know one by its name.
OPERATIONS = ("expm1", "reduce_max", "cumsum", "sort", "dot_general", "gather")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Import(NamedTuple):
    """What one statement, call or attribute may load: in each group, the first name that is one of
    a module counts."""

    node: ast.AST
    inside: bool  # a function
    names: Sequence[Sequence[str]]


class Module(NamedTuple):
    path: Path
    name: str
    text: str
    nodes: list[ast.AST]
    imports: list[Import]

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


def is_for_types_alone(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def names_of(node: ast.AST, package: str, aliases: dict[str, str]) -> list[list[str]]:
    """The names that a node may load a module by, best first, one list for each that it loads."""
    if not isinstance(node, (ast.Import, ast.ImportFrom, ast.Call, ast.Attribute)):
        return []
    match node:
        case ast.Import(names):
            return [[a.name] for a in names]
        case ast.ImportFrom(module, names, level):
            base = module or ""
            if level:
                base = ".".join([*package.split(".")[:len(package.split(".")) - level + 1],
                                 *base.split(".")]).rstrip(".")
            aliases.update({a.asname or a.name: f"{base}.{a.name}" for a in names})
            return [[f"{base}.{a.name}", base] for a in names]
        case (ast.Call(func=ast.Name(called), args=arguments)
              | ast.Call(func=ast.Attribute(attr=called), args=arguments)
              ) if called in ("import_module", "__import__", "deferred"):
            first = arguments[0] if arguments else None
            return [[first.value] if isinstance(first, ast.Constant) else []]
        case ast.Attribute(value=ast.Name(owner), attr=attribute) if owner in aliases:
            return [[f"{aliases[owner]}.{attribute}"]]
    return []


def imports_of(tree: ast.Module, package: str) -> list[Import]:
    aliases: dict[str, str] = {}  # of names that were imported
    found = []

    def visit(node: ast.AST, inside: bool) -> None:
        if names := names_of(node, package, aliases):
            found.append(Import(node, inside, names))
        below = node.orelse if is_for_types_alone(node) else ast.iter_child_nodes(node)
        inside = inside or isinstance(node, (*FUNCTIONS, ast.Lambda))
        for child in below:
            visit(child, inside)

    visit(tree, False)
    return found


@functools.cache
def modules() -> dict[str, Module]:
    found = {}
    for path in PATHS:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        name = dotted.removesuffix(".__init__")
        package = name if name != dotted else name.rpartition(".")[0]
        found[name] = Module(
            path, name, text, list(ast.walk(tree)), imports_of(tree, package))
    return found


def lazy_names() -> dict[str, str]:
    """The modules that names of packages stand for which load them when they are used."""
    found: dict[str, str] = {}
    for module in modules().values():
        if not module.is_package:
            continue
        for table in module.nodes:
            if isinstance(table, ast.Dict):
                for key, value in zip(table.keys, table.values, strict=True):
                    home = next((m for m in (f"{module.name}.{words(key)}", words(key))
                                 if m in modules()), "")
                    for entry in words(value).split() if home else ():
                        found.setdefault(f"{module.name}.{entry.partition('=')[0]}", home)
    return found


def words(node: ast.AST | None) -> str:
    """The strings of a constant, or of a literal of constants, as one string."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.Tuple(elements) | ast.List(elements) | ast.Set(elements):
            return " ".join(map(words, elements))
    return ""


@functools.cache
def imported() -> dict[str, set[str]]:
    """For each module the modules that it imports: at the top and in functions, by statements, by
    `import_module`, by `deferred`, and by names of packages that load them when they are used."""
    lazy = lazy_names()

    def home(names: Sequence[str], whole: bool) -> str:
        for name in names:
            if name in modules() or name in lazy:
                return lazy.get(name, name) if name not in modules() else name
        name = names[-1] if names and whole else ""
        while name and name not in modules():
            name = name.rpartition(".")[0]
        return name

    return {
        module.name: {home(names, not isinstance(i.node, ast.Attribute))
                      for i in module.imports for names in i.names} - {"", module.name}
        for module in modules().values()}


def circles() -> list[list[str]]:
    """Modules that import each other in a circle; packages are left out."""
    names = [m.name for m in modules().values() if not m.is_package]
    place = {name: i for i, name in enumerate(names)}
    edges = [(place[a], place[b]) for a in names for b in imported()[a] if b in place]
    rows, columns = zip(*edges, strict=True)
    graph = coo_array(([1] * len(edges), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(graph, connection="strong")
    groups = defaultdict(list)
    for name, label in zip(names, labels, strict=True):
        groups[label].append(name)
    return [group for group in groups.values() if len(group) > 1]


def small_with_one_importer() -> list[str]:
    """Modules of less than 150 lines that one other module imports."""
    importers = Counter(name for names in imported().values() for name in names)
    return [m.name for m in modules().values() if not m.is_package
            and importers[m.name] == 1 and m.text.count("\n") < 150]


def imports_inside_functions() -> dict[str, str]:
    """The place of each, and its lines with the one before, where its reason may stand."""
    found = {}
    for module in modules().values():
        lines = module.text.splitlines()
        for i in module.imports:
            if i.inside and not isinstance(i.node, ast.Attribute):
                found[f"{module.path.relative_to(ROOT)}:{i.node.lineno}"] = "\n".join(
                    lines[i.node.lineno - 2:i.node.end_lineno])
    return found


def documented(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> bool:
    first = node.body[0]
    return (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str))


def code_lines() -> int:
    """Lines that are neither blank nor comments nor documentation."""
    count = 0
    for module in modules().values():
        documentation: set[int] = set()
        for node in module.nodes:
            if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and node.body and (
                    documented(node)):
                documentation.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        count += sum(1 for number, line in enumerate(module.text.splitlines(), 1)
                     if number not in documentation and line.strip() and line.strip()[0] != "#")
    return count


def homes() -> dict[str, list[str]]:
    """The modules that define an operation's function or primitive, or hold its name as text."""
    found: dict[str, set[str]] = {operation: set() for operation in OPERATIONS}
    for module in modules().values():
        for node in module.nodes:
            named: list[str] = []
            match node:
                case ast.Constant(str(text)) if len(text) < 4000 and "\n\n" not in text:
                    named = text.split()
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    named = [name]
                case ast.Assign(targets=targets):
                    named = [t.id.removesuffix("_p") for t in targets if isinstance(t, ast.Name)]
                case ast.AnnAssign(target=ast.Name(name)):
                    named = [name.removesuffix("_p")]
            for operation in found.keys() & set(named):
                found[operation].add(module.name)
    return {operation: sorted(where) for operation, where in found.items()}


def percent_typed_any() -> float:
    """Of the parameters that have a type, how many have `Any`, or a name that stands for it."""
    nodes = [node for module in modules().values() for node in module.nodes]
    names = {"Any", *(t.id for node in nodes if isinstance(node, ast.Assign)
                      and isinstance(node.value, ast.Name) and node.value.id == "Any"
                      for t in node.targets if isinstance(t, ast.Name))}
    types = [argument.annotation for node in nodes if isinstance(node, FUNCTIONS)
             for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
             if argument.annotation is not None]
    return 100 * sum(isinstance(t, ast.Name) and t.id in names for t in types) / len(types)


def repeated_names() -> dict[str, list[str]]:
    """Names of files that several folders have."""
    folders = defaultdict(list)
    for path in PATHS:
        if not path.stem.startswith("__"):
            folders[path.stem].append(str(path.parent.relative_to(ROOT)))
    return {stem: where for stem, where in folders.items() if len(where) > 1}
