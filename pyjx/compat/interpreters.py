"""Interpreters of other libraries: the class that they derive from, and the parameters of loops.

A library handles an operation as its JAX has it: the parameters that loops have here are told as
those of that version, and taken as such when the library binds the operation again. Nothing below
knows of it: the primitives of loops get a class that translates once a library asks for `Trace`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from pyjx import version
from pyjx.compat.callables import nones, pack
from pyjx.compat.given_members import bind_with_trace
from pyjx.core import trace as core_trace
from pyjx.core.primitive import Primitive
from pyjx.lax.loops import while_p
from pyjx.lax.scans import scan_p

Params = dict[str, Any]


class _AnyTrace(type):
    """All interpreters are instances of the class that libraries derive theirs from."""

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, core_trace.Trace) if cls is Trace else super().__instancecheck__(x)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, core_trace.Trace) if cls is Trace else super().__subclasscheck__(
            kind)


class Trace(core_trace.Trace, metaclass=_AnyTrace):
    """An interpreter. Subclasses say what an operation means, by `process_primitive`."""

    __slots__ = ()

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: Params) -> Any:
        dialect = DIALECTS.get(primitive)
        return self.process_primitive(
            primitive, operands, params if dialect is None else dialect.told(params))

    def process_primitive(self, primitive: Primitive, tracers: Sequence[Any], params: Params, /
                          ) -> Any:
        """What an operation means."""
        raise NotImplementedError(f"{type(self).__name__} must override process_primitive")

    # Functions with derivative rules of their own come to `process_primitive` as operations, too,
    # and calls as calls of programs. An interpreter may have these methods, which nothing calls.

    def process_call(self, call_primitive: Primitive, f: Callable[..., Any], tracers: Sequence[Any],
                     params: Params, /) -> Any:
        self._refuse_functions("process_call")

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable[..., Any], jvp: Any,
                                tracers: Sequence[Any], /, *, symbolic_zeros: bool) -> Any:
        self._refuse_functions("process_custom_jvp_call")

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable[..., Any],
                                fwd: Callable[..., Any], bwd: Callable[..., Any],
                                tracers: Sequence[Any], /, *, out_trees: Any, symbolic_zeros: bool
                               ) -> Any:
        self._refuse_functions("process_custom_vjp_call")

    def _refuse_functions(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__}.{method}: operations that hold functions "
                                  "hold programs here; bind the primitive, whose rules run them")


class Dialect(NamedTuple):
    """The parameters of an operation as libraries know them.

    Attributes:
      told: what a library gets for the parameters here.
      taken: the parameters here, of what a library gives.
    """

    told: Callable[[Params], Params]
    taken: Callable[[Params], Params]


def _without(params: Params, *names: str) -> Params:
    return {name: value for name, value in params.items() if name not in names}


def _told_scan(params: Params) -> Params:
    """Which operands are consts, carry and xs, and which results carry and ys, is told by two
    numbers here, and from 0.11 on by two trees whose leaves tell nothing."""
    if version.numbers(version.__version__) < (0, 11):
        return params
    closed, n_consts, n_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    xs = nones(len(closed.in_avals) - n_consts - n_carry)
    ys = nones(len(closed.out_avals) - n_carry)
    return {**_without(params, "num_consts", "num_carry", "_split_transpose"),
            "ft_in": pack((nones(n_consts), nones(n_carry), xs)),
            "ft_out": pack((nones(n_carry), ys))}


def _taken_scan(params: Params) -> Params:
    if "ft_in" not in params:
        return params
    consts, carry, _ = params["ft_in"].unpack()
    return {"_split_transpose": False, **_without(params, "ft_in", "ft_out"),
            "num_consts": len(consts), "num_carry": len(carry)}


def _told_while(params: Params) -> Params:
    """Libraries need not know of the bound of a loop where there is none."""
    return params if params["max_steps"] is not None else _without(params, "max_steps")


def _taken_while(params: Params) -> Params:
    return params if "max_steps" in params else {**params, "max_steps": None}


DIALECTS = {scan_p: Dialect(_told_scan, _taken_scan), while_p: Dialect(_told_while, _taken_while)}


class _Translating(Primitive):
    """An operation that is bound by parameters of a dialect, too."""

    __slots__ = ()

    def bind(self, *operands: Any, **params: Any) -> Any:
        return super().bind(*operands, **DIALECTS[self].taken(params))

    def bind_with_trace(self, trace: Any, operands: Sequence[Any], *avals_and_params: Any) -> Any:
        return bind_with_trace(self, trace, operands, DIALECTS[self].taken(avals_and_params[-1]))


for _primitive in DIALECTS:
    _primitive.__class__ = _Translating
