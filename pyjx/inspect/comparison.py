"""Differences between programs that are not the names of their values, and these names as the
user's program has them.
"""

from __future__ import annotations

import ast
import difflib
import linecache
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from pyjx.core.frames import Frame, frame_at, user_code
from pyjx.core.jaxpr import DebugInfo, JaxprEqn
from pyjx.core.records import Record

# -- names of values -------------------------------------------------------------------------------

_RESULT = re.compile(r"^\s*%(\d+)(?::\d+)? = \"?(?:\w+\.)?(\w+)")
_VALUE = re.compile(r"%(\d+|arg\d+)\b")


def with_user_names(text: str, program: Any, debug: DebugInfo) -> str:
    """The text of a lowered program, its values named after the variables that they were
    assigned to, and its arguments after the function's parameters.

    A value on the way to that of a variable `h` is `h.add`, and what the derivative makes of it
    `d_h`.
    """
    arg_names = debug.arg_names
    parts = re.split(r"^(?=  func\.func )", text, flags=re.MULTILINE)
    functions = program._module.functions
    named = [parts[0]]
    for part, function in zip(parts[1:], functions, strict=True):
        names = _names_of(function.block, debug)
        if function.name == "main" and arg_names is not None:
            kept = [n for n, k in zip(arg_names, program.kept, strict=True) if k]
            first = len(function.params) - len(kept)
            given = [*[f"constant{i}" for i in range(first)], *kept]
            names.update({f"arg{i}": n for i, n in enumerate(given)})
        unique = _unique(names)
        named.append(_VALUE.sub(lambda m: f"%{unique.get(m[1], m[1])}", part))  # noqa: B023
    return "".join(named)


def _names_of(block: Any, debug: DebugInfo) -> dict[str, str]:
    """The wanted name of each value that an operation of a block gives."""
    found: dict[str, tuple[str, str]] = {}  # value -> variable, operation
    for start, stop, eqn, _ in block.marks:
        variable = variable_of(eqn, debug)
        if variable is None:
            continue
        for i in range(start, stop):
            result = _RESULT.match(block.lines[i])
            if result is not None and result[1] not in found:
                found[result[1]] = variable, result[2]
    last = {variable: value for value, (variable, _) in found.items()}
    return {value: variable if last[variable] == value else f"{variable}.{operation}"
            for value, (variable, operation) in found.items()}


def _unique(names: dict[str, str]) -> dict[str, str]:
    taken: dict[str, int] = {}
    made = {}
    for value, wanted in names.items():
        clean = re.sub(r"[^\w.$-]+", ".", wanted).strip(".") or "value"
        if clean[0].isdigit():
            clean = f"_{clean}"
        count = taken.get(clean, 0)
        taken[clean] = count + 1
        made[value] = f"{clean}_{count}" if count else clean
    return made


def variable_of(eqn: JaxprEqn, debug: DebugInfo) -> str | None:
    """The variable that the value of an equation was assigned to, or was on the way to, in the
    function that was traced or in those it calls."""
    traced = debug.func_name, debug.func_filename
    for code, offset in user_code(eqn.source_info.traceback):  # innermost first
        frame = frame_at(code, offset)
        names = _assigned(frame)
        if names is not None:
            stack = str(eqn.source_info.name_stack)
            return f"d_{names}" if "transpose(" in stack else names
        if (code.co_name, code.co_filename) == traced:
            break  # what it returns has no name here
    return None


def _assigned(frame: Frame) -> str | None:
    """The name that the statement of a frame assigns; None where it returns."""
    statement = _statement_at(frame.file_name, frame.start_line)
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = list(_target_names(targets, frame, statement.value))
        return "_".join(names) or None
    return None


def _target_names(targets: Iterable[ast.expr], frame: Frame, value: ast.expr | None
                  ) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(
                target.elts) == len(value.elts):
            for name, part in zip(target.elts, value.elts, strict=True):
                if _within(frame, part):
                    yield from _target_names([name], frame, part)
        elif isinstance(target, (ast.Tuple, ast.List)):
            yield from _target_names(target.elts, frame, None)
        elif isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            yield ast.unparse(target)


def _within(frame: Frame, node: ast.expr) -> bool:
    at = (frame.start_line, frame.start_column)
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return (node.lineno, node.col_offset) <= at < end


@lru_cache(maxsize=4096)
def _statement_at(file_name: str, line: int) -> ast.stmt | None:
    """The innermost statement of a line."""
    found = None
    for node in _statements(file_name):
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            found = node  # later ones are inside earlier ones
    return found


@lru_cache(maxsize=64)
def _statements(file_name: str) -> tuple[ast.stmt, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(file_name)))
    except (SyntaxError, ValueError):
        return ()
    return tuple([n for n in ast.walk(tree) if isinstance(n, ast.stmt)])


# -- differences -----------------------------------------------------------------------------------

# Names of values, which differ from text to text: those of MLIR and HLO, and a jaxpr's letters.
_MLIR = re.compile(r"%[\w.$-]+")
_HLO_DEFINED = re.compile(
    r"^\s*(?:ROOT )?%?([\w.-]+) = |^(?:ENTRY )?%?([\w.-]+) [({]", re.MULTILINE)
_HLO_NAME = re.compile(r"(?<![\w.\"-])%?[A-Za-z_][\w.-]*")
_LETTERS = re.compile(r"\b([a-z]+):(?:[a-z]+\d*|key<\w+>)(?:<\w+>)?\[")
_WORD = re.compile(r"(?<![\w.:\"'=-])[a-z]+(?![\w(=\"'.<-]|\[[a-z_]+=)")
_MODULE = re.compile(r"\A(module |HloModule )[@\w.$-]+")  # its name is that of the function
# What says where an operation came from, and not what it does.
_PLACES = re.compile(r",? metadata=\{[^{}]*\}| loc\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\)")
_TABLES = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*\n?", re.MULTILINE)
_ALIASES = re.compile(r"^#loc\d* = .*\n?", re.MULTILINE)


class Difference(Record):
    """How two texts differ; true where they do, and printed as `text`.

    Attributes:
      text: a unified diff, the names of the second renamed to those of the first.
      removed, added: how many lines.
    """

    text: str
    removed: int
    added: int

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)

    def __str__(self) -> str:
        return self.text


def without_places(text: str) -> str:
    """A program's text without where its operations come from."""
    return _ALIASES.sub("", _TABLES.sub("", _PLACES.sub("", text))).strip("\n")


def diff(first: str, second: str, names: tuple[str, str] = ("first", "second"), context: int = 3
         ) -> Difference:
    """How two texts of programs differ, after renumbering and without places in the source.

    Args:
      first, second: texts of jaxprs, StableHLO or HLO, both of one kind.
      names: what the two are called in the head of the diff, a pair.
      context: lines around what differs.

    Returns:
      A `Difference`: false where they are the same, and printed as a unified diff.

    Raises:
      TypeError: one of them is no text.

    >>> from pyjx import inspect
    >>> first = "%0 = sine %arg0\\n%1 = add %0, %0"
    >>> bool(inspect.diff(first, "%7 = sine %x\\n%8 = add %7, %7"))
    False
    >>> print(inspect.diff(first, "%0 = cosine %arg0\\n%1 = add %0, %0"))
    --- first
    +++ second
    @@ -1,2 +1,2 @@
    -%0 = sine %arg0
    +%0 = cosine %arg0
     %1 = add %0, %0
    """
    for text in (first, second):
        if not isinstance(text, str):
            raise TypeError("inspect.diff: expected the texts of two programs, such as "
                            f"str(program.jaxpr) or program.stablehlo(), got {type(text).__name__}")
    ours, theirs = (_MODULE.sub(r"\1program", without_places(t)).split("\n")
                    for t in (first, second))
    if ours == theirs:
        return Difference("", 0, 0)
    pattern = _pattern(first)
    known: list[frozenset[str] | None] = [None, None]
    if pattern is not _MLIR:
        known = [_defined(text, pattern) for text in (first, second)]
    renamed = _renamed(ours, theirs, pattern, known)
    lines = list(difflib.unified_diff(ours, renamed, names[0], names[1], n=context, lineterm=""))
    return Difference("\n".join(lines), _count(lines, "-"), _count(lines, "+"))


def _count(lines: Sequence[str], mark: str) -> int:
    return sum([line.startswith(mark) for line in lines[2:]])


def _pattern(text: str) -> re.Pattern[str]:
    head = text.lstrip()
    if head.startswith("HloModule"):
        return _HLO_NAME
    return _WORD if head.startswith(("{ lambda", "let ")) else _MLIR


def _defined(text: str, pattern: re.Pattern[str]) -> frozenset[str]:
    """The names of values that a text defines."""
    if pattern is _WORD:
        return frozenset(_LETTERS.findall(text))
    return frozenset([a or b for a, b in _HLO_DEFINED.findall(text)] + re.findall(
        r"([\w.-]+): \(?[a-z]+\d*\[", text))


def _scopes(lines: list[str]) -> list[str]:
    """For each line the function that it is in, whose names are its own."""
    scope, scopes = "", []
    for line in lines:
        head = re.match(r"\s*func\.func .*?@([\w.$-]+)|(?:ENTRY )?%?([\w.-]+) [({].*\{$", line)
        if head is not None:
            scope = head[1] or head[2]
        scopes.append(scope)
    return scopes


class _Names:
    """The names of values in the lines of a text."""

    def __init__(self, lines: list[str], pattern: re.Pattern[str], known: frozenset[str] | None
                 ) -> None:
        self.lines = lines
        self.scopes = _scopes(lines)
        self._pattern = pattern
        self._known = known

    def is_name(self, word: str) -> bool:
        return self._known is None or word.lstrip("%") in self._known

    def masked(self) -> list[str]:
        """The lines without names."""
        return [self._pattern.sub(lambda m: "%" if self.is_name(m[0]) else m[0], line)
                for line in self.lines]

    def on(self, i: int) -> list[tuple[str, str]]:
        """The names on a line, each with its scope."""
        return [(self.scopes[i], w) for w in self._pattern.findall(self.lines[i])
                if self.is_name(w)]

    def replaced(self, i: int, new: Callable[[tuple[str, str]], str]) -> str:
        """A line with other names."""
        return self._pattern.sub(
            lambda m: new((self.scopes[i], m[0])) if self.is_name(m[0]) else m[0], self.lines[i])


def _renamed(ours: list[str], theirs: list[str], pattern: re.Pattern[str],
             known: list[frozenset[str] | None]) -> list[str]:
    """Their lines with our names, as far as lines correspond."""
    a, b = (_Names(lines, pattern, k) for lines, k in zip((ours, theirs), known, strict=True))
    matcher = difflib.SequenceMatcher(None, a.masked(), b.masked(), autojunk=False)
    to_ours: dict[tuple[str, str], str] = {}
    taken: set[tuple[str, str]] = set()
    for tag, i, stop, j, j_stop in matcher.get_opcodes():
        if tag not in ("equal", "replace") or stop - i != j_stop - j:
            continue
        for mine, other in zip(map(a.on, range(i, stop)), map(b.on, range(j, j_stop)),
                               strict=True):
            pairs = list(zip(mine, other, strict=False))
            for x, y in pairs if tag == "equal" else pairs[:1]:
                if y not in to_ours and x not in taken:
                    to_ours[y] = x[1]
                    taken.add(x)
    names = {name for _, name in taken}

    def new(place: tuple[str, str]) -> str:
        if place not in to_ours:  # there is none of ours for it
            name = place[1]
            while name in names:
                name += "'"
            to_ours[place] = name
            names.add(name)
        return to_ours[place]

    return [b.replaced(j, new) for j in range(len(theirs))]
