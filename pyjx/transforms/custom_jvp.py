"""Functions with rules that the user gives: how they stand for theirs and read their arguments, and
those with a forward rule for the derivative, `custom_jvp`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar

from pyjx.core.avals import get_aval, is_ref_type, is_valid_value
from pyjx.core.integers import as_ints
from pyjx.core.prefixes import two_structures
from pyjx.core.primitive import Primitive
from pyjx.core.records import Field, of_field
from pyjx.core.source_info import at_own_lines
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.core.value_texts import counted, own_call
from pyjx.engine.batching import bind_function
from pyjx.engine.custom_derivative_calls import (
    FlatRule,
    SymbolicZero,
    custom_jvp_call_p,
    tangent_result,
    zero_from_primal,
)
from pyjx.engine.forward import refuse_captured_tangents
from pyjx.engine.functions import (
    FlatFun,
    check_values,
    flatten,
    name_of,
    raise_bad_result,
    short_types,
    source_of,
    tree_text,
)
from pyjx.engine.tangents import Zero
from pyjx.engine.types import TreeDef
from pyjx.guards import guard
from pyjx.runtime import signature
from pyjx.transforms.arguments import check_callable

# -- functions with custom rules -------------------------------------------------------------------

R = TypeVar("R")
Cotangents: TypeAlias = tuple[Any, ...] | list[Any]


class PositionalFunction(Generic[R]):
    """A function that stands for another one, and takes all arguments by position.

    What it has no attribute for, such as the `defjvp` of a function inside, is that one's.
    """

    fun: Callable[..., Any]
    __name__: str
    __qualname__: str
    _kind: str

    def __init__(self, fun: Callable[..., R]) -> None:
        check_callable(fun)
        self.fun = fun
        # What `jit` traces it to holds it, by its rules: together they go.
        self.jit_traces: dict[Any, Any] = {}
        self.__wrapped__ = fun
        signature.take_names(self, fun, name_of(fun))
        self._signature: Any = None
        code = getattr(fun, "__code__", None)
        # The number of positional arguments, where reading them needs no more than to count.
        self._plain = -1
        if code is not None and not code.co_kwonlyargcount and not code.co_flags & 0x0C:
            self._plain = code.co_argcount - hasattr(fun, "__self__")

    def __getstate__(self) -> dict[str, Any]:
        """What is the user's, by jax's names; what is known of it is found anew."""
        return {name: value for name, value in vars(self).items()
                if name not in ("_plain", "_signature", "jit_traces")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        PositionalFunction.__init__(self, state["fun"])
        vars(self).update(state)

    if not TYPE_CHECKING:  # which are to find a name that is misspelt
        def __getattr__(self, name):
            if name == "fun" or not hasattr(self.fun, name):
                raise AttributeError(f"{self._kind!r} object has no attribute {name!r}")
            return getattr(self.fun, name)

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with default values for those that are not given."""
        if not kwargs and len(args) == self._plain:
            return args
        if self._signature is None:
            try:
                self._signature = inspect.signature(self.fun)
            except (TypeError, ValueError):
                self._signature = False
        if not self._signature:
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as e:
            self._raise_unbound(str(e))
        bound.apply_defaults()
        named = [name for name in bound.kwargs if name in kwargs]
        if named:
            self._raise_unbound("The following keyword arguments could not be resolved to "
                                f"positions: {', '.join(named)}\nLet the function take each by "
                                "position, too, without a * before.")
        return bound.args  # type: ignore[no-any-return]

    def _raise_unbound(self, why: str) -> NoReturn:
        if "self" in list(inspect.signature(self.fun).parameters)[:1]:
            own = getattr(self.fun, "__qualname__", self.__name__).rpartition("<locals>.")[2]
            why += f"\nIt is no method, so its object is to be given: {own}(object, ...)."
        raise TypeError(f"The input arguments to the {self._kind}-decorated function "
                        f"{self.__name__} could not be resolved to positional-only arguments. "
                        f"Binding failed with the error:\n{why}") from None


class CustomFunction(PositionalFunction[R]):
    """What custom_jvp and custom_vjp share: arguments that are not differentiated."""

    nondiff_argnums: tuple[int, ...]
    nondiff_argnames: tuple[str, ...] = ()

    def __init__(self, fun: Callable[..., R], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()) -> None:
        super().__init__(fun)
        numbers: Any = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        try:
            self.nondiff_argnums = as_ints(self._kind, "nondiff_argnums", numbers)
        except TypeError as error:
            cure = own_call(self._kind)
            if type(numbers) is str or callable(numbers):
                cure = ("Names are nondiff_argnames, and rules given by methods: f.defjvp(jvp), "
                        "f.defvjp(fwd, bwd).")
            raise TypeError(f"{str(error).removesuffix('.')}. {cure}") from None
        if nondiff_argnames:
            names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
            self.nondiff_argnames = tuple(names)
            self.nondiff_argnums = _with_names(fun, self.nondiff_argnums, names)

    def split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Differentiable arguments, and the others."""
        if not self.nondiff_argnums:
            return args, ()
        numbers = {i if i >= 0 else i + len(args) for i in self.nondiff_argnums}
        if numbers and not 0 <= min(numbers) <= max(numbers) < len(args):
            raise ValueError(f"{self._kind}: nondiff_argnums={self.nondiff_argnums} are out of "
                             f"range for {counted(len(args), 'argument')} of {self.__name__}")
        return (tuple([x for i, x in enumerate(args) if i not in numbers]),
                tuple([args[i] for i in sorted(numbers)]))

    def joined(self, dynamic: Sequence[Any], static: tuple[Any, ...]) -> list[Any]:
        """The inverse of `split`."""
        merged = list(dynamic)
        if static:
            n = len(dynamic) + len(static)
            numbers = sorted([i if i >= 0 else i + n for i in self.nondiff_argnums])
            for i, x in zip(numbers, static, strict=True):
                merged.insert(i, x)
        return merged

    def run(self, primitive: Primitive, args: Sequence[Any]) -> Any:
        """The function itself, where no argument is traced.

        Raises:
          CustomVJPException: it closes over a value that is differentiated.
          TypeError: it returns what is no array.
        """
        result = self.fun(*args)
        outs, tree = flatten(result)
        if not all(map(is_valid_value, outs)):
            raise_bad_result(f"function {source_of(self.fun)}", tree, outs)
        if state.level:
            refuse_captured_tangents(primitive, self.fun, outs)
        return result


def _with_names(fun: Callable[..., Any], numbers: tuple[int, ...], names: Sequence[str]
               ) -> tuple[int, ...]:
    parameters = list(inspect.signature(fun).parameters)
    for name in names:
        if name not in parameters:
            raise ValueError(f"nondiff_argnames: {name_of(fun)} has no argument named {name!r}")
    return tuple(sorted({*numbers, *[parameters.index(n) for n in names]}))


class CustomFun(FlatFun):
    """The function on the leaves of its differentiable arguments.

    `out_tree` and `out_avals` are set by whichever of function and rule runs first.
    """

    __slots__ = ("out_avals", "owner", "static")

    def __init__(self, owner: CustomFunction, in_tree: TreeDef, static: tuple[Any, ...]) -> None:
        fun: Callable[..., Any] = owner.fun
        if static:
            def fun(*dynamic: Any) -> Any:
                return owner.fun(*owner.joined(dynamic, static))
        super().__init__(fun, in_tree)
        self.owner = owner
        self.static = static
        self.out_avals: list[Any] = []

    __name__: Field[str] = of_field("owner.__name__")

    def check(self, outs: list[Any]) -> None:
        super().check(outs)
        self.out_avals = [get_aval(x) for x in outs]
        for aval in self.out_avals:
            if is_ref_type(aval):
                raise ValueError(f"{self.owner._kind} primal function {self.owner.fun} returned a "
                                 f"mutable array reference of type {aval}, but references cannot "
                                 "be returned. Return its value: `ref[...]`.")


# -- forward rules ---------------------------------------------------------------------------------


@guard
class custom_jvp(CustomFunction[R]):
    """A function whose derivative is given by a rule, for forward and reverse mode.

    Args:
      fun: the function; arguments and results are pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are not differentiated, such as functions
        or options. The rule gets them first, in order of position.

    >>> import pyjx as jax
    >>> @jax.custom_jvp
    ... def square(x):
    ...     return x * x
    ...
    >>> @square.defjvp
    ... def square_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return square(x), 2 * x * t
    ...
    >>> float(jax.grad(square)(3.0))
    6.0
    """

    _kind = "custom_jvp"

    jvp: Callable[..., Any] | None = None
    symbolic_zeros: bool = False

    def defjvp(self, jvp: Callable[..., tuple[R, Any]], symbolic_zeros: bool = False
               ) -> Callable[..., tuple[R, Any]]:
        """Set the rule, `(primals, tangents) -> (outputs, output tangents)`; usable as decorator.

        Args:
          jvp: takes two tuples as long as the differentiable arguments, after the
            non-differentiable arguments if there are any.
          symbolic_zeros: tangents that are zero are given as `SymbolicZero` and not as arrays.
        """
        check_callable(jvp)
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule for each argument, `(tangent, output, *primals) -> output tangent`.

        None stands for an argument that the output does not depend on.

        Raises:
          TypeError: there are non-differentiable arguments.
          ValueError: when it is differentiated, if there are not as many rules as arguments.

        >>> import pyjx as jax
        >>> @jax.custom_jvp
        ... def product(x, y):
        ...     return x * y
        ...
        >>> product.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: x * t)
        >>> float(jax.grad(product)(3.0, 5.0))
        5.0
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Any, tangents: Any) -> Any:
            if len(jvps) != len(tangents):
                raise ValueError(
                    f"defjvps gave {counted(len(jvps), 'rule')} to the custom_jvp function "
                    f"{self.__name__}, which has {counted(len(tangents), 'argument')} here. Give "
                    "one rule for each argument; "
                    "None stands for one that the output does not depend on.")
            out = self(*primals)
            outs, tree = flatten(out)
            total: list[Any] = [None] * len(outs)
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is None or type(t) is SymbolicZero:
                    continue
                parts = flatten(rule(t, out, *primals))[0]
                total = [p if s is None else s + p for s, p in zip(total, parts, strict=True)]
            return out, tree.unflatten([
                zero_from_primal(x) if t is None else t for x, t in zip(outs, total, strict=True)])

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if self.jvp is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {self.__name__} using "
                                 f"defjvp. It is {source_of(self.fun)}. Give it its rule by "
                                 f"{self.__name__}.defjvp(jvp), where it is made.")
        args = self.positional(args, kwargs)
        dynamic, static = self.split(args)
        if static and any(isinstance(x, Tracer) for x in flatten(static)[0]):
            static = tuple(map(_constant, static))
        leaves, in_tree = flatten(dynamic)
        if state.dynamic is eager_trace and not any(isinstance(x, Tracer) for x in leaves):
            check_values(leaves)
            return self.run(custom_jvp_call_p, self.joined(dynamic, static))
        check_values(leaves)
        fun = CustomFun(self, in_tree, static)
        outs = bind_function(custom_jvp_call_p, leaves, {
            "call_jaxpr": fun, "jvp_jaxpr_fun": _FlatJvp(fun), "num_consts": 0,
            "symbolic_zeros": self.symbolic_zeros})
        return fun.out_tree.unflatten(outs)


class _FlatJvp:
    """A custom_jvp function's rule on leaves."""

    __slots__ = ("fun", "jvp")

    def __init__(self, fun: CustomFun) -> None:
        self.fun = fun
        self.jvp: Any = fun.owner.jvp  # type: ignore[attr-defined]

    @property
    def __name__(self) -> str:
        return name_of(self.jvp)

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        fun = self.fun
        unflatten = fun.in_tree.unflatten
        result = at_own_lines(self.jvp, *fun.static, unflatten(primals), unflatten(tangents))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {fun.__name__} must produce a pair "
                "(list or tuple of length two) representing primal and tangent outputs, but got "
                f"{tree_text(result)}. The rule is {source_of(self.jvp)}.")
        outs, tree = flatten(result[0])
        out_tangents, tangent_tree = flatten(result[1])
        if tree != tangent_tree:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {fun.__name__} must produce primal "
                "and tangent outputs with equal container (pytree) structures, but got "
                + two_structures("{} and {} respectively", tree, tangent_tree) +
                f". {self.told_call()}")
        if fun.out_tree is None:
            fun.out_tree = tree
        elif fun.out_tree != tree:
            self._raise_other_tree(tree, outs)
        out_tangents = list(map(tangent_result, out_tangents))
        for found in (outs, [0 if type(x) is Zero else x for x in out_tangents]):
            if not all(map(is_valid_value, found)):
                raise_bad_result(f"the rule {source_of(self.jvp)} of custom_jvp", tree, found)
        return outs, [self._checked(x, t) for x, t in zip(outs, out_tangents, strict=True)]

    def told_call(self) -> str:
        """How the rule is called, for messages."""
        unpacked = {1: "(x,), (t,)", 2: "(x, y), (tx, ty)"}.get(len(self.fun.in_tree.children()))
        said = f", as in {unpacked} = primals, tangents" if unpacked else ""
        return (f"The rule is {source_of(self.jvp)}. It is called as rule(primals, tangents), with "
                f"a tuple of one for each argument of {self.fun.__name__}{said}.")

    def _checked(self, primal: Any, tangent: Any) -> Any:
        aval = get_aval(primal)
        expected = aval.to_tangent_aval()
        found = tangent.aval if type(tangent) is Zero else get_aval(tangent)
        if not expected.describes(found):
            raise TypeError("Custom JVP rule must produce primal and tangent outputs with "
                            f"corresponding shapes and dtypes. Expected {expected.str_short()} "
                            f"(tangent type of {aval.str_short()}) but got {found.str_short()}. "
                            f"The rule is {source_of(self.jvp)}.")
        return tangent

    def check(self, outs: Sequence[Any], expected: Sequence[Any]) -> None:
        """Raise TypeError unless the rule's outputs are of the types of the function's."""
        found = [get_aval(x) for x in outs]
        if not all(e.describes(f) for f, e in zip(found, expected, strict=True)):
            self._raise_output("and in particular with leaves of the same shape/dtype",
                               "shapes/dtypes of", found, expected, self.fun.out_tree,
                               "output shapes/dtypes of")

    def _raise_other_tree(self, tree: TreeDef, outs: Sequence[Any]) -> None:
        expected = self.fun.out_avals or ["*"] * self.fun.out_tree.num_leaves
        self._raise_output("and in particular of the same container/pytree structure",
                           "container/pytree structure", [get_aval(x) for x in outs], expected,
                           tree, "output container/pytree structure")

    def _raise_output(self, what: str, rule_had: str, found: Sequence[Any],
                      expected: Sequence[Any], tree: Any, fun_had: str) -> None:
        name = self.fun.__name__
        texts = [short_types(tree, found), short_types(self.fun.out_tree, expected)]
        raise TypeError(
            f"Custom JVP rule {self.__name__} for function {name} must produce a pair (list or "
            "tuple of length two) where the first element represents the primal output (equal in "
            f"value to the output of the custom_jvp-decorated function {name}, {what}), but "
            f"instead the JVP rule output's first element had {rule_had}:\n    {texts[0]}\nwhile "
            f"the custom_jvp-decorated function {name} had {fun_had}:\n    {texts[1]}\n"
            f"{self.told_call()}")


def _constant(tree: Any) -> Any:
    """The tree with the derivatives of its leaves cut."""
    leaves, treedef = flatten(tree)
    return treedef.unflatten([_cut(x) if isinstance(x, Tracer) else x for x in leaves])


def _identity(x: Any) -> list[Any]:
    return [x]


def _cut_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    return list(primals), [Zero.of_primal(x) for x in primals]


_cutting = FlatRule(_cut_jvp, _cut_jvp)


def _cut(x: Any) -> Any:
    return custom_jvp_call_p.bind(x, call_jaxpr=_identity, jvp_jaxpr_fun=_cutting, num_consts=0,
                                  symbolic_zeros=False)[0]
