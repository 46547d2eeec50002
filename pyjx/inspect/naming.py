"""StableHLO's values under the names that they have in the user's program."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from pyjx.core.frames import Frame, frame_at, user_code
from pyjx.core.jaxpr import DebugInfo, JaxprEqn

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
