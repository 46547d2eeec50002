"""The printed form of jaxprs.

    { lambda c:f32[4]; a:f32[3,4] b:f32[4]. let d:f32[3,4] = add a c in (d,) }

Constants stand before the semicolon, arguments after it. Variables are named in the order in
which they appear: a to z, then ba, bb and so on. Nested jaxprs that are used more than once are
printed once, in front, outer ones first.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes, source_info
from pyjx.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, print_by, subjaxprs
from pyjx.core.records import Record

WIDTH = 80

# Parameters that are left out where they are None: they say nothing more.
_SILENT_NONE = frozenset({"accuracy", "max_steps", "out_dtype"})


def without_address(name: str, params: dict[str, Any]) -> list[tuple[str, Any]]:
    """The parameters as they are printed, that of the name without addresses of objects."""
    shown = re.sub(r"\b0x[0-9a-f]+", "0xXXXXXXXXXXXX", str(params[name]))
    return sorted({**params, name: shown}.items())


class JaxprPpSettings(Record):
    """What is shown of a jaxpr.

    >>> import pyjx as jax
    >>> jax.core.JaxprPpSettings(print_shapes=False).print_shapes
    False
    """

    print_shapes: bool = True
    source_info: bool = False
    name_stack: bool = False
    custom_pp_eqn_rules: bool = True
    print_effects: bool = False


class JaxprPpContext:
    """Letters for variables, and names for shared jaxprs.

    Args:
      var_names: letters that some variables have already.

    >>> import pyjx as jax
    >>> x = jax.make_jaxpr(lambda x: x)(1.0).jaxpr.invars[0]
    >>> context = jax.core.JaxprPpContext()
    >>> x.pretty_print(context), context.var_names[x]
    ('a', 'a')
    """

    shared_jaxprs: dict[Jaxpr, str]

    def __init__(self, var_names: dict[Var, str] | None = None) -> None:
        self.var_names = {} if var_names is None else var_names
        self.shared_jaxprs = {}
        self._count = 0

    @property
    def shared_jaxpr_names(self) -> set[str]:
        """The names that are taken."""
        return set(self.shared_jaxprs.values())

    def name(self, v: Var) -> str:
        """The letter of a variable: the next one if it has none."""
        name = self.var_names.get(v)
        while name is None:
            name = letters(self._count)
            self._count += 1
            if name in self.shared_jaxpr_names:
                name = None
            else:
                self.var_names[v] = name
        return name

    def literal(self, literal: Literal, print_dtype: bool) -> str:
        """The value of a literal, and its type."""
        text = literal_text(literal)
        return f"{text}:{literal.aval.str_short(short_dtypes=True)}" if print_dtype else text

    def suggest_same_var_names(self, for_vars: Sequence[Any], like_vars: Sequence[Any]) -> None:
        """Let variables that have no letter yet have that of others."""
        for new, old in zip(for_vars, like_vars, strict=True):
            if isinstance(new, Var) and isinstance(old, Var) and new not in self.var_names:
                self.var_names[new] = self.name(old)


def letters(n: int) -> str:
    """n in base 26 with the digits a to z.

    >>> [letters(n) for n in (0, 25, 26)]
    ['a', 'z', 'ba']
    """
    name = ""
    while True:
        n, digit = divmod(n, 26)
        name = chr(ord("a") + digit) + name
        if not n:
            return name


class Printer:
    """Writes jaxprs; it keeps the names that it has given."""

    def __init__(self, settings: JaxprPpSettings = JaxprPpSettings()) -> None:  # noqa: B008
        self.names = JaxprPpContext()
        self.depth = 0  # of the jaxpr that is being printed
        self.print_shapes = settings.print_shapes
        self.source_info = settings.source_info
        self.name_stack = settings.name_stack
        self.concise = settings.custom_pp_eqn_rules
        self.print_effects = settings.print_effects

    # -- atoms

    def binder(self, v: Var) -> str:
        name = "_" if isinstance(v, DropVar) else self.names.name(v)
        return f"{name}:{v.aval.str_short(short_dtypes=True)}" if self.print_shapes else name

    def atom(self, v: Any) -> str:
        if isinstance(v, Literal):
            return self.names.literal(v, self.print_shapes)
        return self.names.name(v)

    # -- jaxprs

    def jaxpr(self, jaxpr: Jaxpr, indent: int, label: int = 0) -> str:
        """The text, for a place `indent` columns from the left, after a label of so many more."""
        name = self.names.shared_jaxprs.get(jaxpr)
        return self._whole(jaxpr, indent, label) if name is None else name

    def _whole(self, jaxpr: Jaxpr, indent: int, label: int) -> str:
        self.depth += 1
        head = self._head(jaxpr, indent, label)
        used = {v for e in jaxpr.eqns for v in e.invars}.union(jaxpr.outvars)
        eqns = [self.eqn(e, indent + 4, used) for e in jaxpr.eqns]
        outs = [self.atom(v) for v in jaxpr.outvars]
        self.depth -= 1
        comma = "," if len(outs) == 1 else ""
        tail = f"in ({', '.join(outs)}{comma}) }}"
        if not (self.source_info or self.name_stack):
            line = f"{head} {'; '.join(eqns)} {tail}"
            if "\n" not in line and len(line) + indent + label <= WIDTH:
                return line
        if eqns and (self.source_info or self.name_stack):
            eqns = self._annotated(jaxpr.eqns, eqns)
        pad = " " * indent
        body = "".join([f"\n{pad}    {e}" for e in eqns or [""]])
        tail = self._wrapped("in (", [f"{o}," for o in outs[:-1]] + outs[-1:], indent + 2, "")
        return f"{head}{body}\n{pad}  {tail}{comma}) }}"

    def _head(self, jaxpr: Jaxpr, indent: int, label: int) -> str:
        """`{ lambda constants; arguments. let`, on as few lines as it fits."""
        lines = ["{ lambda "]
        column = indent + label + len(lines[0])
        for separator, variables in (("; ", jaxpr.constvars), (". let", jaxpr.invars)):
            for i, v in enumerate(variables):
                text = self.binder(v)
                if i:
                    name = len(text.partition(":")[0])
                    if column + 1 + name > WIDTH + 1:
                        lines.append(" " * (indent + 4))
                        column = indent + 4
                    else:
                        lines[-1] += " "
                        column += 1
                lines[-1] += text
                column += len(text)
            lines[-1] += separator
            column += len(separator)
        return "\n".join(lines)

    def _annotated(self, eqns: Sequence[JaxprEqn], texts: list[str]) -> list[str]:
        first_lines = [t.split("\n", 1)[0] for t in texts]
        width = max(map(len, first_lines))
        out = []
        for eqn, text, first in zip(eqns, texts, first_lines, strict=True):
            notes = []
            if self.source_info:
                notes.append(source_info.summarize(eqn.source_info))
            if self.name_stack:
                notes.append(f"[{eqn.source_info.name_stack}]")
            out.append(f"{first:<{width}} # {' '.join(notes)}{text[len(first):]}")
        return out

    def eqn(self, eqn: JaxprEqn, indent: int, used: set[Any] | None = None) -> str:
        operands = [self.atom(v) for v in eqn.invars]
        results = []
        for v in eqn.outvars:
            named = eqn.primitive.text is not None and self.depth > 1
            if used is not None and v not in used and not named:
                shape = f":{v.aval.str_short(short_dtypes=True)}" if self.print_shapes else ""
                results.append(f"_{shape}")
            else:
                results.append(self.binder(v))
        lhs = " ".join(results)
        start = f"{lhs} = " if results else ""
        if self.concise and eqn.primitive.text is not None:
            return eqn.primitive.text(eqn, operands, results)  # type: ignore[no-any-return]
        name = eqn.primitive.name
        if self.print_effects and eqn.effects:
            name += f"{{{', '.join(sorted(map(str, eqn.effects)))}}}"
        shown = self._shown(eqn)
        if not shown:
            return self._wrapped(f"{start}{name}", operands, indent)
        self._name_call(eqn)
        items = [f"{k}={self.value(v, indent + 2, len(k) + 1)}" for k, v in shown]
        line = f"{start}{name}[{' '.join(items)}]"
        text = f"{line} {' '.join(operands)}"
        if "\n" not in text and len(text) + indent <= WIDTH:
            return text
        if "\n" not in line and len(line) + indent <= WIDTH:
            return self._wrapped(line, operands, indent)
        pad = " " * indent
        body = "".join([f"\n{pad}  {item}" for item in items])
        return self._wrapped(f"{start}{name}[{body}\n{pad}]", operands, indent)

    def _shown(self, eqn: JaxprEqn) -> list[tuple[str, Any]]:
        """The parameters that are printed."""
        printed = eqn.primitive.printed
        if self.concise and printed is not None:
            return printed(eqn.params)
        return [(key, value) for key, value in sorted(eqn.params.items())
                if not (self.concise and value is None and key in _SILENT_NONE)]

    def _name_call(self, eqn: JaxprEqn) -> None:
        """Let the variables of a called jaxpr have the names of the operands and results."""
        if not eqn.primitive.is_call or not self.concise:
            return
        called = eqn.params["jaxpr"].jaxpr
        if called in self.names.shared_jaxprs:
            return
        of = self.names.var_names
        given: set[str] = set()
        if len(called.invars) == len(eqn.invars):
            for inner, outer in zip(called.invars, eqn.invars, strict=True):
                if type(outer) is not Literal and inner not in of:
                    name = self.names.name(outer)  # type: ignore[arg-type]
                    if name not in given:
                        of[inner] = name
                        given.add(name)
        for v, outer in zip(called.outvars, eqn.outvars, strict=True):
            if type(v) is not Literal and v not in of:
                of[v] = of.get(outer, "_")  # type: ignore[index]

    def _wrapped(self, head: str, operands: list[str], indent: int, space: str = " ") -> str:
        """Operands after `head` and a space, on as few lines as they fit."""
        if not operands:
            return head + space
        lines = [head]
        column = indent + len(head.rsplit("\n", 1)[-1]) if "\n" not in head else \
            len(head.rsplit("\n", 1)[-1])
        for i, operand in enumerate(operands):
            if not i:
                lines[-1] += space + operand
                column += len(space) + len(operand)
            elif column + len(operand.rstrip(",")) > WIDTH:
                lines.append(" " * (indent + 2) + operand)
                column = indent + 2 + len(operand)
            else:
                lines[-1] += " " + operand
                column += 1 + len(operand)
        return "\n".join(lines)

    def value(self, value: Any, indent: int, label: int = 0) -> str:
        if isinstance(value, (ClosedJaxpr, Jaxpr)):
            return self.jaxpr(value.jaxpr, indent, label)
        if isinstance(value, tuple) and any(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
            pad = " " * indent
            items = "".join([f"\n{pad}  {self.value(v, indent + 2)}" for v in value])
            return f"({items}\n{pad})"
        return value_text(value)

    # -- shared jaxprs

    def name_shared(self, jaxpr: Jaxpr) -> None:
        """Let nested jaxprs that are used more than once have names."""
        taken: dict[str, int] = {}
        for shared, name in _shared_jaxprs(jaxpr):
            name = "lambda" if name == "<lambda>" else name or "jaxpr"
            n = taken.get(name, 0)
            taken[name] = n + 1
            self.names.shared_jaxprs[shared] = f"{name}{n}" if n else name

    def program(self, jaxpr: Jaxpr) -> str:
        self.name_shared(jaxpr)
        definitions = []
        self.depth = 1
        for shared, name in self.names.shared_jaxprs.items():
            head = f"let {name} = "
            definitions.append(f"{head}{self._whole(shared, 0, len(head))} in\n")
        self.depth = 0
        return "".join(definitions) + self._whole(jaxpr, 0, 0)


def _shared_jaxprs(jaxpr: Jaxpr) -> list[tuple[Jaxpr, str]]:
    """Nested jaxprs that are used more than once, with their names, outer ones first."""
    counts: dict[Jaxpr, int] = {}
    names: dict[Jaxpr, str] = {}
    queue = deque([jaxpr])
    while queue:
        for eqn in queue.popleft().eqns:
            for sub in subjaxprs(eqn):
                counts[sub] = counts.get(sub, 0) + 1
                if counts[sub] == 1:
                    names[sub] = str(eqn.params.get("name", ""))
                    queue.append(sub)
    return [(j, names[j]) for j, n in counts.items() if n > 1]


def literal_text(literal: Literal) -> str:
    """The value as Python writes it, whatever its dtype."""
    value = literal.val
    if getattr(literal.aval, "shape", ()):
        return "[...]"
    dtype = getattr(literal.aval, "dtype", None)
    if dtype is None or dtype == dtypes.float0 or dtypes.is_extended(dtype):
        return str(value)
    if dtype == np.bool_:
        return str(bool(value))
    if dtypes.issubdtype(dtype, np.integer):
        return str(int(value))
    rounded = np.asarray(value, dtype)
    if dtypes.issubdtype(dtype, np.complexfloating):
        return str(complex(rounded))
    return str(float(rounded))


def value_text(value: Any) -> str:
    """A parameter as it is printed."""
    if isinstance(value, np.dtype):
        return dtypes.name(value)
    if isinstance(value, type) and issubclass(value, np.generic):
        return dtypes.name(np.dtype(value))
    if callable(value) and not isinstance(value, type) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)


def jaxpr_to_string(jaxpr: Jaxpr, *, source_info: bool = False, print_shapes: bool = True,
                    custom_pp_eqn_rules: bool = True, name_stack: bool = False,
                    print_effects: bool = False, use_color: bool | None = None, **_: Any) -> str:
    """The printed form of a jaxpr, with colours for a terminal where `use_color` is set; None:
    where the output goes to one and the flag `jax_pprint_use_color` allows them."""
    text = Printer(JaxprPpSettings(print_shapes, source_info, name_stack, custom_pp_eqn_rules,
                                    print_effects)).program(jaxpr)
    if use_color is None:
        use_color = configuration.pprint_use_color.value and _shows_colors()
    return _colored(text) if use_color else text


def _shows_colors() -> bool:
    """Whether what is printed is read in a terminal or a notebook."""
    shell = sys.modules.get("IPython")
    if shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell":
        return True
    return sys.stdout is not None and sys.stdout.isatty()


_KEYWORDS = r"(?<![\w.=\"'])(?:lambda|let|in)(?= |$)"
_TYPES = r":[a-z]\w*(?:<\w+>)?\[[^\]\n]*\]|:Ref\{[^}\n]*\}"


def _colored(text: str) -> str:
    """Keywords bold and blue, types magenta, by the escape sequences of terminals."""
    text = re.sub(_TYPES, "\x1b[35m\\g<0>\x1b[39m", text)
    return re.sub(_KEYWORDS, "\x1b[34;1m\\g<0>\x1b[39;22m", text, flags=re.MULTILINE)


def eqn_to_string(eqn: JaxprEqn) -> str:
    """The printed form of one equation, with names of its own."""
    return Printer().eqn(eqn, 0)


print_by(jaxpr_to_string, eqn_to_string)
