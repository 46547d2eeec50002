"""Jaxprs as Python: a file that imports jax and numpy alone, and computes what a program does."""

from __future__ import annotations

import builtins
import enum
import inspect
import keyword
import sys
import textwrap
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.evaluation import all_eqns, program_of
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.printer import letters
from pyjx.core.specs import PartitionSpec
from pyjx.engine import decompose
from pyjx.extend.core import primitives
from pyjx.inspect.bad_values import place_text
from pyjx.inspect.straight import line_of
from pyjx.runtime.sharding import NamedSharding

_MOST_INLINE = 64  # elements of an array that is written out


class UnwritableError(TypeError):
    """A program holds what no Python text stands for.

    Ways out: the message names what it is; `export.export(f)(x).serialize()` writes programs as
    bytes.
    """


def python_file(closed: ClosedJaxpr, args: Sequence[Any] | None, about: str) -> str:
    """The text of a file with the function `program` and its `args`, which runs one on the other.

    Args:
      closed: a program without constants.
      args: NumPy arrays; None where whoever runs the text gives them.
      about: the first lines, which say what the program is.

    Raises:
      UnwritableError: a parameter of an operation has no text.
    """
    writer = _Writer()
    body = writer.function("program", closed, [])
    avals = [v.aval for e in all_eqns(closed) for v in (*e.invars, *e.outvars)]
    wide = any([getattr(a, "dtype", np.dtype(bool)) in _WIDE for a in (*avals, *closed.in_avals)])
    devices = max([v.size for v in writer.meshes], default=1)
    head = [f'"""{about}"""', "", "import jax", "import numpy as np", "from jax import lax"]
    if writer.imports:
        head.append(f"from jax.extend.core.primitives import {', '.join(sorted(writer.imports))}")
    head += [*sorted(writer.others), ""]
    if wide:
        head.append('jax.config.update("jax_enable_x64", True)')
    if devices > 1:
        head += ["if jax.default_backend() == 'cpu':",
                 f'    jax.config.update("jax_num_cpu_devices", {devices})']
    head += [*writer.functions, "", *body, ""]
    if args is not None:
        head += ["", "args = [", *[f"    {array_text(x)}," for x in args], "]", "",
                 'if __name__ == "__main__":', "    print(jax.jit(program)(*args))"]
    return "\n".join(head) + "\n"


_WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


def array_text(x: Any) -> str:
    """An array as the expression that makes it: written out where it is small or one number."""
    array = np.asarray(x)
    kind = str(array.dtype)
    dtype = f'"{kind}"' if array.dtype.kind in "biufc" else f'jax.numpy.dtype("{kind}")'
    data = np.ascontiguousarray(array).tobytes()
    first = data[:array.itemsize]
    if array.ndim and data == first * array.size:  # by their bits: -0.0 is no 0.0
        return (f"np.zeros({array.shape}, {dtype})" if not any(first) else
                f"np.full({array.shape}, {_number(np.asarray(array.flat[0]))}, {dtype})")
    if array.size <= _MOST_INLINE:
        return f"np.array({_numbers(array)}, {dtype})"
    return f'np.frombuffer(bytes.fromhex("{data.hex()}"), {dtype}).reshape({array.shape})'


def _numbers(array: Any) -> str:
    return f"[{', '.join(map(_numbers, array))}]" if array.ndim else _number(array)


def _number(x: Any) -> str:
    value = x.item() if x.dtype.kind in "biuc" else float(x)
    if isinstance(value, complex):
        return f"complex({_number(x.real)}, {_number(x.imag)})"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return repr(value)


class _Writer:
    """The text of a program, and what it needs before."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.others: set[str] = set()
        self.functions: list[str] = []
        self.meshes: list[Any] = []
        self._names = 0

    def name(self) -> str:
        while True:
            name = letters(self._names)
            self._names += 1
            if not keyword.iskeyword(name) and name not in ("np", "jax", "lax") and not hasattr(
                    builtins, name):
                return name

    def function(self, name: str, closed: ClosedJaxpr | Jaxpr, outer: Sequence[str],
                 result: Callable[[list[str]], str] | None = None,
                 parameters: Callable[[list[str]], list[str]] | None = None) -> list[str]:
        """The lines of a function. `outer` are the names of its first inputs, where these are
        values of the function around it; `result` and `parameters` group what it gives and takes.
        """
        jaxpr = closed.jaxpr
        if jaxpr.constvars:
            raise UnwritableError("a program within the program has constants")
        env: dict[Any, str] = dict(zip(jaxpr.invars, outer, strict=False))
        given = [self.name() for _ in jaxpr.invars[len(outer):]]
        env.update(zip(jaxpr.invars[len(outer):], given, strict=True))
        lines = [*(parameters(given) if parameters else [])]
        for eqn in jaxpr.eqns:
            lines += self.equation(eqn, env)
        outs = [self.atom(v, env) for v in jaxpr.outvars]
        lines.append(f"return {(result or _tuple)(outs)}")
        head = _parameters_of(parameters) or ", ".join(given)
        return [f"def {name}({head}):", *["    " + line for line in lines]]

    def atom(self, atom: Atom, env: dict[Any, str]) -> str:
        if not isinstance(atom, Literal):
            return env[atom]
        value = np.asarray(atom.val)
        if value.dtype.kind not in "biufc" or not getattr(atom.aval, "weak_type", False):
            return f"np.asarray({_number(value)}, {self.value(atom.aval.dtype)})"
        return _number(value)

    def equation(self, eqn: JaxprEqn, env: dict[Any, str]) -> list[str]:
        operands = [self.atom(v, env) for v in eqn.invars]
        lines, call = self.call(eqn, operands)
        names = [self.name() for _ in eqn.outvars]
        env.update(zip(eqn.outvars, names, strict=True))
        several = eqn.primitive.multiple_results
        left = ", ".join(names) + ("," if len(names) == 1 and several else "")
        line = line_of(eqn)
        where = f"  # {place_text(line)}" if line is not None else ""
        return [*lines, f"{left} = {call}{where}" if names else f"{call}{where}"]

    def call(self, eqn: JaxprEqn, operands: list[str]) -> tuple[list[str], str]:
        """The lines before an equation, and its right side."""
        name, p = eqn.primitive.name, eqn.params
        made: Any = getattr(self, f"_{name}", None) if name in _OWN else None
        if made is not None:
            found: tuple[list[str], str] = made(p, operands)
            return found
        inner = program_of(eqn.primitive, p)
        if inner is not None:
            f = f"f_{self.name()}"
            return self.function(f, inner, []), f"jax.jit({f})({', '.join(operands)})"
        given = {k: v for k, v in p.items() if v is not None and not _is_default(v)}
        plain = name.rstrip("_")
        if not given and callable(getattr(lax, plain, None)):
            return [], f"lax.{plain}({', '.join(operands)})"
        if name == "add_any":
            return [], f"lax.add({', '.join(operands)})"
        if not self.is_public(eqn) and eqn.primitive.decomposition is not None:
            f = f"f_{self.name()}"
            program = decompose.program_of(eqn, eqn.primitive.decomposition)
            only = "" if eqn.primitive.multiple_results else "[0]"
            return self.function(f, program, []), f"{f}({', '.join(operands)}){only}"
        lines: list[str] = []
        params = [f"{k}={self.value(v, lines)}" for k, v in p.items()]
        return lines, f"{self.primitive(eqn)}.bind({', '.join([*operands, *params])})"

    def is_public(self, eqn: JaxprEqn) -> bool:
        return getattr(primitives, _public(eqn), None) is eqn.primitive

    def primitive(self, eqn: JaxprEqn) -> str:
        if self.is_public(eqn):
            self.imports.add(_public(eqn))
            return _public(eqn)
        for module in list(sys.modules.values()):
            for key, value in list(vars(module).items()) if isinstance(module, ModuleType) else ():
                if value is eqn.primitive and module.__name__ != "__main__":
                    self.others.add(f"from {module.__name__} import {key}")
                    return key
        raise UnwritableError(f"no module has the primitive {eqn.primitive.name}")

    def value(self, value: Any, lines: list[str] | None = None) -> str:
        """A parameter as an expression; lines that it needs before go to `lines`."""
        kind = type(value)
        if value is None or kind in (bool, int, str, bytes):
            return repr(value)
        if kind is float:
            return _number(np.float64(value))
        if isinstance(value, enum.Enum):
            return f"lax.{kind.__name__}.{value.name}"
        if isinstance(value, np.dtype):
            text = "np.dtype" if value.kind in "biufc" else "jax.numpy.dtype"
            return f'{text}("{value}")'
        if kind in (tuple, list):
            return (_tuple if kind is tuple else _list)([self.value(v, lines) for v in value])
        if kind is dict:
            items = [f"{k!r}: {self.value(v, lines)}" for k, v in value.items()]
            return f"{{{', '.join(items)}}}"
        if isinstance(value, (Mesh, AbstractMesh)):
            return self.mesh(value)
        if isinstance(value, PartitionSpec):
            return f"jax.sharding.PartitionSpec({', '.join(map(self.value, value))})"
        if isinstance(value, NamedSharding):
            return f"jax.sharding.NamedSharding({self.mesh(value.mesh)}, {self.value(value.spec)})"
        if isinstance(value, (np.ndarray, np.generic)):
            return array_text(value)
        if isinstance(value, (ClosedJaxpr, Jaxpr)) and lines is not None:
            f = f"f_{self.name()}"
            lines += self.function(f, value, [])
            avals = ", ".join([self.struct(v.aval) for v in value.jaxpr.invars])
            return f"jax.make_jaxpr({f})({avals})" + ("" if kind is ClosedJaxpr else ".jaxpr")
        if hasattr(lax, kind.__name__) and hasattr(value, "_fields"):
            fields = zip(value._fields, value, strict=True)
            return f"lax.{kind.__name__}({', '.join([f'{k}={self.value(v)}' for k, v in fields])})"
        raise UnwritableError(f"no text stands for {value!r} of type {kind.__name__}")

    def mesh(self, mesh: Any) -> str:
        self.meshes.append(mesh)
        types = ", ".join([f"jax.sharding.AxisType.{t.name}" for t in mesh.axis_types])
        return (f"jax.make_mesh({tuple(mesh.shape.values())}, {mesh.axis_names!r}, "
                f"axis_types=({types},))")

    def struct(self, aval: Any) -> str:
        if dtypes.is_extended(aval.dtype):
            raise UnwritableError(f"a program of {aval.str_short()} within the program")
        return f"jax.ShapeDtypeStruct({tuple(aval.shape)}, {self.value(aval.dtype)})"

    # -- operations that hold programs, or are functions of jax

    def _scan(self, p: dict[str, Any], operands: list[str]) -> tuple[list[str], str]:
        a, n, body = p["num_consts"], p["num_carry"], f"body_{self.name()}"
        lines = self.function(
            body, p["jaxpr"], operands[:a],
            lambda outs: f"{_tuple(outs[:n])}, {_tuple(outs[n:])}",
            _Grouped([("carry_", n), ("row_", None)]))
        end = f"scanned_{self.name()}"
        xs = _tuple(operands[a + n:])
        lines.append(f"{end} = lax.scan({body}, {_tuple(operands[a:a + n])}, {xs}, "
                     f"length={p['length']}, reverse={p['reverse']})")
        return lines, f"(*{end}[0], *{end}[1])"

    def _while(self, p: dict[str, Any], operands: list[str]) -> tuple[list[str], str]:
        a, b = p["cond_nconsts"], p["body_nconsts"]
        cond, body = f"cond_{self.name()}", f"body_{self.name()}"
        carry = _Grouped([("carry_", None)])
        lines = self.function(cond, p["cond_jaxpr"], operands[:a], lambda outs: outs[0], carry)
        lines += self.function(body, p["body_jaxpr"], operands[a:a + b], None, carry)
        return lines, f"lax.while_loop({cond}, {body}, {_tuple(operands[a + b:])})"

    def _cond(self, p: dict[str, Any], operands: list[str]) -> tuple[list[str], str]:
        lines, names = [], []
        for branch in p["branches"]:
            names.append(f"branch_{self.name()}")
            lines += self.function(names[-1], branch, [])
        return lines, f"lax.switch({operands[0]}, {_list(names)}, {', '.join(operands[1:])})"

    def _shard_map(self, p: dict[str, Any], operands: list[str]) -> tuple[list[str], str]:
        f = f"f_{self.name()}"
        lines = self.function(f, p["jaxpr"], [])
        specs = [self.value(tuple(p[k])) for k in ("in_specs", "out_specs")]
        return lines, (f"jax.shard_map({f}, mesh={self.mesh(p['mesh'])}, in_specs={specs[0]}, "
                       f"out_specs={specs[1]}, check_vma={p['check_vma']})({', '.join(operands)})")

    def _ffi_call(self, p: dict[str, Any], operands: list[str]) -> tuple[list[str], str]:
        results = _tuple([self.struct(a) for a in p["result_avals"]])
        attributes = "".join([f", {k}={self.value(v)}" for k, v in p["attributes"]])
        return [], (f"jax.ffi.ffi_call({p['target_name']!r}, {results}, has_side_effect="
                    f"{p['has_side_effect']})({', '.join(operands)}{attributes})")

    def _pure_callback(self, p: dict[str, Any], operands: list[str]) -> tuple[list[str], str]:
        results = _tuple([self.struct(a) for a in p["result_avals"]])
        function = self.users(p["callback"].callback_func)
        given = ", ".join(operands)
        return [], f"jax.pure_callback(lambda *x: ({function}(*x),), {results}, {given})"

    def _random_seed(self, p: dict[str, Any], operands: list[str]) -> tuple[list[str], str]:
        return [], f"jax.random.key({operands[0]}, impl={p['impl'].name!r})"

    def _random_wrap(self, p: dict[str, Any], operands: list[str]) -> tuple[list[str], str]:
        return [], f"jax.random.wrap_key_data({operands[0]}, impl={p['impl'].name!r})"

    def users(self, function: Any) -> str:
        """The name of a function of the user's: its text is put in, where it uses modules alone."""
        code = getattr(function, "__code__", None)
        name = getattr(function, "__name__", "")
        known = getattr(function, "__globals__", {})
        modules = {n: known[n] for n in code.co_names if n in known} if code else {}
        if code and name.isidentifier() and not code.co_freevars and all(
                [isinstance(m, ModuleType) for m in modules.values()]):
            self.others |= {f"import {m.__name__} as {n}" if m.__name__ != n else f"import {n}"
                            for n, m in modules.items() if n not in ("np", "jax")}
            text = textwrap.dedent(inspect.getsource(function)).rstrip()
            if text not in self.functions:
                self.functions += ["", text]
            return name
        if "<" in getattr(function, "__qualname__", "<") or function.__module__ == "__main__":
            raise UnwritableError(f"the function {function!r} can't be imported by another process")
        self.others.add(f"from {function.__module__} import {name}")
        return name


_OWN = ("scan", "while", "cond", "shard_map", "ffi_call", "pure_callback", "random_seed",
        "random_wrap")

class _Grouped:
    """Parameters of a function that are tuples: their names, and how many values each has."""

    def __init__(self, groups: Sequence[tuple[str, int | None]]) -> None:
        self.groups = groups

    def __call__(self, given: list[str]) -> list[str]:
        lines, rest = [], given
        for name, n in self.groups:
            some, rest = (rest, []) if n is None else (rest[:n], rest[n:])
            if some:
                lines.append(f"{', '.join(some)}, = {name}")
        return lines


def _parameters_of(grouped: Any) -> str:
    return ", ".join([name for name, _ in grouped.groups]) if grouped else ""


def _public(eqn: JaxprEqn) -> str:
    return eqn.primitive.name.replace("-", "_") + "_p"


def _is_default(value: Any) -> bool:
    return isinstance(value, enum.Enum) and value.name == "DEFAULT"


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _list(parts: Sequence[str]) -> str:
    return f"[{', '.join(parts)}]"
