"""`Ref`, a mutable reference to an array, as a value outside of programs.

It is the eager interpreter's own tracer: it holds no value that a program could contain, so a
program that closes over it takes it as an operand, as it does with tracers. Its methods of reading
and writing, lax/references.py gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx import configuration
from pyjx.core import source_info
from pyjx.core.avals import AbstractRef, is_ref_type
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.records import Field, of_field
from pyjx.core.trace import Tracer, eager_trace

# Its methods, which tracers of references have, too.
METHODS = ("addupdate", "bitcast", "get", "memory_space_cast", "reshape", "set", "swap",
           "transpose")

_BINARY = (
    "add and divmod floordiv ge gt le lshift lt matmul mod mul or pow radd rand rdivmod rfloordiv "
    "rlshift rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv rxor sub truediv xor")
_UNARY = "abs array complex float index int invert neg pos round"


class _RefType(type):
    """Tracers of references are instances of `Ref`, as tracers of arrays are of `Array`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return is_ref(instance)


class Ref(Tracer, metaclass=_RefType):
    """A mutable reference to an array, made by `new_ref`.

    `ref[...]` reads the array and `ref[...] = x` writes it; so does `ref[0]`, in part. `ref.at[i]`
    is a part of the reference. Functions under `jit`, `vmap` and kin take references and may write
    them.
    """

    __slots__ = ("_refs",)

    aval: AbstractRef  # type: ignore[assignment]

    def __init__(self, aval: AbstractRef, refs: Any) -> None:
        self._trace = eager_trace
        self.aval = aval
        self._refs = refs

    committed: Field[bool] = of_field("_refs.committed", "Whether it stays on its device.")

    sharding: Field[Any] = of_field("_refs.sharding", "On which devices its parts are.")

    format: Field[Any] = of_field("_refs.format", "How it lies in memory.")

    def unsafe_buffer_pointer(self) -> int:
        """The address of the array, which the next write may change."""
        return self._refs.unsafe_buffer_pointer()  # type: ignore[no-any-return]

    # lax/references.py replaces these two.

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedError

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:  # type: ignore[override]
        return self is other

    def __ne__(self, other: object) -> bool:  # type: ignore[override]
        return self is not other

    def __bool__(self) -> bool:
        return len(self) != 0  # the array's own truth is that of `ref[...]`

    def __repr__(self) -> str:
        return f"Ref{repr(self._refs).removeprefix('Array')}"


def _unsupported(self: Ref, other: Any) -> Any:
    return NotImplemented


def _no_array(self: Ref, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(f"A Ref of type {self.aval} is no array. Did you forget to read its value with "
                    "`ref[...]`?")


# A reference is no array: it has none of an array's operators.
for _names, _method in ((_BINARY, _unsupported), (_UNARY, _no_array)):
    for _name in _names.split():
        setattr(Ref, f"__{_name}__", _method)


def is_ref(x: Any) -> bool:
    """Whether x is a reference, or a tracer of one."""
    return isinstance(x, Tracer) and is_ref_type(x.aval)


# -- parts of them ---------------------------------------------------------------------------------


class Undivided:
    """A pytree node that stands for a part of a reference. Its leaves may be traced, but not
    divided: the part of a part of a reference is not the part of that."""

    __slots__ = ()


def check_undivided(tree: Any, divided: Sequence[bool], describe: Callable[[], DebugInfo]) -> None:
    """Raise TypeError if leaves that are divided, for examples or devices, are of a part of a
    reference."""
    for i in _undivided(tree, 0):
        if divided[i]:
            debug = describe()
            name = (debug.arg_names or ())[i] if debug.arg_names else f"argument {i}"
            raise TypeError(f"When tracing {debug.func_src_info} for {debug.traced_for}, "
                            "TransformedRefs are not allowed, but got a TransformedRef with name "
                            f"{name}. Pass the reference, and take the part of it inside.")


def _undivided(tree: Any, first: int) -> list[int]:
    """The places of leaves of parts of references; the first leaf of `tree` is at `first`."""
    node = tree.node_data()
    if node is None:
        return []
    if issubclass(node[0], Undivided):
        return list(range(first, first + tree.num_leaves))
    found = []
    for child in tree.children():
        found += _undivided(child, first)
        first += child.num_leaves
    return found


# -- what programs may not do with them ------------------------------------------------------------


def check_not_returned(closed: ClosedJaxpr, traced_for: str, path_of: Callable[[int], str]) -> None:
    """Raise ValueError if a function that was traced returns a reference.

    `path_of` says where among the results one of them is; empty for the only one.
    """
    for i, v in enumerate(closed.outvars):
        if type(v.aval) is AbstractRef:
            at = f" at output tree path {path}" if (path := path_of(i)) else ""
            raise ValueError(
                f"function {closed.debug_info.func_src_info} traced for {traced_for} returned a "
                f"mutable array reference of type {v.aval}{at}, but mutable array references "
                f"cannot be returned.\n\n{_origin(closed, v)}")


def _origin(closed: ClosedJaxpr, v: Any) -> str:
    if v in closed.constvars:
        return ("The returned mutable array was closed over by the function, rather than passed in "
                "as an argument or created inside it.")
    if v in closed.invars:
        i = closed.invars.index(v)
        names = closed.debug_info.arg_names
        return ("The returned mutable array was passed in as "
                f"{f'the argument {names[i]}' if names else f'argument number {i}'}.")
    eqn = next(e for e in closed.eqns if v in e.outvars)
    return ("The returned mutable array was created on line "
            f"{source_info.summarize(eqn.source_info)}.")


def check_distinct(refs: Sequence[Any], consts: Sequence[Any],
                   describe: Callable[[], DebugInfo]) -> None:
    """Raise ValueError if a function gets a reference as two arguments, or as one and by closing
    over it. Values that are no references do no harm. `describe` says which function is traced for
    what, and how its arguments are called."""
    if not configuration.mutable_array_checks.value:
        return
    captured = {id(c) for c in consts}
    twice = shared(refs)
    if twice is None and not any([id(x) in captured and is_ref(x) for x in refs]):
        return
    debug = describe()
    names = debug.arg_names or [f"operand {i}" for i in range(len(refs))]
    tracing = f"when tracing {debug.func_src_info} for {debug.traced_for}"
    for i, x in enumerate(refs):
        if id(x) in captured and is_ref(x):
            raise ValueError(f"{tracing}, a mutable array reference of type {x.aval} was both "
                             f"closed over and passed as the argument {names[i]}")
    if twice is not None:
        first, second = twice
        raise ValueError("only one reference to a mutable array may be passed as an argument to a "
                         f"function, but {tracing} the mutable array reference of type "
                         f"{refs[first].aval} appeared at both {names[first]} and {names[second]}.")


def shared(values: Sequence[Any]) -> tuple[int, int] | None:
    """The places of two values that are one reference, if there are any: the same one, or tracers
    of the same."""
    places: dict[int, int] = {}
    for i, x in enumerate(values):
        if is_ref(x):
            first = places.setdefault(id(x.get_referent()), i)
            if first != i:
                return first, i
    return None
