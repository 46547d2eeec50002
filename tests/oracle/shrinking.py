"""Failing programs made small: steps removed, arguments simplified, the difference kept."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.oracle.language import (
    Assign,
    Call,
    Data,
    Expr,
    Function,
    Items,
    Program,
    Statement,
    Text,
)
from tests.oracle.values import kind_of

Same = Callable[[Sequence[Program]], list[bool]]


def size(program: Program) -> int:
    return len(program.source())


def shrunk(program: Program, same: Same, budget: int = 400, batch: int = 24,
           seconds: float = 40.0) -> Program:
    """The smallest program found that `same` still accepts; it answers for many at once."""
    end = time.monotonic() + seconds
    while budget > 0 and time.monotonic() < end:
        tried: list[Program] = []
        for candidate in candidates(program):
            if candidate.source() != program.source():
                tried.append(candidate)
        better = None
        for start in range(0, len(tried), batch):
            chunk = tried[start:start + batch]
            budget -= len(chunk)
            good = [p for p, ok in zip(chunk, same(chunk), strict=True) if ok]
            if good:
                better = min(good, key=size)
                break
            if budget <= 0 or time.monotonic() > end:
                break
        if better is None:
            return program
        program = better
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Programs that are simpler in one place, the boldest changes first."""
    body = program.body
    for i in range(len(body)):
        yield replace(program, body=body[:i] + body[i + 1:])
    if program.x64:
        yield replace(program, x64=False)
    yield from (replace(program, body=b) for b in inlined(body))
    for name, other in aliases(body):
        yield replace(program, body=tuple(
            s for s in (renamed(s, name, other) for s in body) if s is not None))
    for i, statement in enumerate(body):
        for simpler in simpler_statements(statement):
            yield replace(program, body=(*body[:i], simpler, *body[i + 1:]))
    yield from smaller_dims(program)


def aliases(body: Sequence[Statement]) -> Iterator[tuple[str, str]]:
    """The assignments of one name to another, in functions too."""
    for s in body:
        if isinstance(s, Assign) and isinstance(s.value, Text) and s.value.code.isidentifier():
            yield s.name, s.value.code
        elif isinstance(s, Function):
            yield from aliases(s.body)


def renamed(s: Statement, name: str, other: str) -> Statement | None:
    """The statement with another name in the place of `name`; nothing is left of its definition."""
    if isinstance(s, Assign):
        return None if s.name == name else Assign(s.name, renamed_in(s.value, name, other))
    if isinstance(s, Function):
        body = tuple(r for r in (renamed(b, name, other) for b in s.body) if r is not None)
        return replace(s, body=body, result=renamed_in(s.result, name, other))
    return s


def renamed_in(e: Expr, name: str, other: str) -> Expr:
    if isinstance(e, Text):
        return Text(re.sub(rf"\b{name}\b", other, e.code))
    if isinstance(e, Call):
        e = replace(e, function=re.sub(rf"\b{name}\b", other, e.function))
    return e.rebuilt(tuple(renamed_in(p, name, other) for p in e.parts))


def inlined(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    """`result = jax.jit(f)(...)` and its like replaced by a plain call of `f`."""
    last = body[-1]
    if not isinstance(last, Assign) or not isinstance(last.value, Text):
        return
    for s in body:
        if isinstance(s, Function) and f"{s.name}(" not in last.value.code.split("=")[0][:2]:
            yield (*body[:-1], Assign(last.name, Text(f"{s.name}({s.params})")))
    for s in body:
        if isinstance(s, Function) and not s.body and last.value.code == f"{s.name}({s.params})":
            yield tuple(Assign(last.name, s.result) if b is last else b for b in body if b is not s)


def simpler_statements(statement: Statement) -> Iterator[Statement]:
    if isinstance(statement, Assign):
        for value in simpler(statement.value):
            yield Assign(statement.name, value)
    elif isinstance(statement, Function):
        for i, inner in enumerate(statement.body):
            rest = statement.body[:i], statement.body[i + 1:]
            yield replace(statement, body=(*rest[0], *rest[1]))
            for other in simpler_statements(inner):
                yield replace(statement, body=(*rest[0], other, *rest[1]))
        for value in simpler(statement.result):
            yield replace(statement, result=value)
        if statement.decorators:
            yield replace(statement, decorators=statement.decorators[1:])


def simpler(e: Expr) -> Iterator[Expr]:
    """Simpler expressions in place of this one or of one of its parts."""
    yield from e.parts
    if isinstance(e, Call):
        for i in range(len(e.keywords)):
            yield replace(e, keywords=e.keywords[:i] + e.keywords[i + 1:])
        if e.args:
            yield replace(e, args=e.args[:-1])
    if isinstance(e, Items) and e.kind != "dict":
        for i in range(len(e.parts)):
            yield replace(e, parts=e.parts[:i] + e.parts[i + 1:])
    if isinstance(e, Data):
        yield from simpler_data(e)
    for i, part in enumerate(e.parts):
        for other in simpler(part):
            yield e.rebuilt((*e.parts[:i], other, *e.parts[i + 1:]))


def plain(value: Any) -> Any:
    return type(value)(1)


def simpler_data(x: Data) -> Iterator[Data]:
    if x.form in ("np", "npscalar", "list"):
        yield replace(x, form="jnp")
    if x.form in ("jnp", "np") and x.shape:
        for i, n in enumerate(x.shape):
            if n in (0, 1):
                shape = x.shape[:i] + x.shape[i + 1:]
                yield replace(x, shape=shape, values=fitted(x, shape))
    if x.dtype not in ("float32", "bool", "int32", "complex64") and x.form != "npscalar":
        dtype = "int32" if "int" in x.dtype else "float32"
        yield replace(x, dtype=dtype)
    ones = tuple(plain(v) for v in x.values)
    if ones != x.values:
        yield replace(x, values=ones)
        for i, v in enumerate(x.values):
            if v != plain(v) and len(x.values) <= 6:
                yield replace(x, values=(*x.values[:i], plain(v), *x.values[i + 1:]))


def smaller_dims(program: Program) -> Iterator[Program]:
    """A size of the arrays made smaller by one everywhere."""
    sizes = {n for s in program.body if isinstance(s, Assign) and isinstance(s.value, Data)
             for n in s.value.shape}
    for n in sorted(sizes, reverse=True):
        if n <= 0:
            continue
        body = tuple(
            Assign(s.name, cut(s.value, n)) if isinstance(s, Assign) and isinstance(
                s.value, Data) else s for s in program.body)
        yield replace(program, body=body)


def cut(x: Data, n: int) -> Data:
    shape = tuple(n - 1 if m == n else m for m in x.shape)
    if shape == x.shape:
        return x
    return replace(x, shape=shape, values=fitted(x, shape))


def fitted(x: Data, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The first values of `x`, or ones, as many as the shape holds."""
    count = math.prod(shape)
    one = {"b": True, "c": 1 + 0j, "f": 1.0}.get(kind_of(x.dtype), 1)
    return (x.values + (one,) * count)[:count]
