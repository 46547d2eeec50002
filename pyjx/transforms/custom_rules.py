"""Functions with derivatives that the user gives: `custom_jvp`, `custom_vjp`, `custom_gradient`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.trace import Tracer, eager_trace, state, trace_to_jaxpr
from pyjx.engine.custom_derivative_calls import (
    CustomVJPException,
    SymbolicZero,
    custom_jvp_call_p,
    custom_lin_p,
    custom_vjp_call_p,
    tangent_result,
    zero_tangent,
)
from pyjx.engine.tangents import Zero
from pyjx.transforms.arguments import check_values, flatten, name_of, source_of
from pyjx.tree_util import register_pytree_node

_COPIED = ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__")


class _Custom:
    """What custom_jvp and custom_vjp share: the function and how its arguments are read."""

    fun: Callable[..., Any]
    nondiff_argnums: tuple[int, ...]
    _kind: str

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()) -> None:
        self.fun = fun
        self.__wrapped__ = fun
        for attribute in _COPIED:
            value = getattr(fun, attribute, None)
            if value is not None:
                setattr(self, attribute, value)
        if not hasattr(self, "__name__"):
            self.__name__ = name_of(fun)
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        self.nondiff_argnums = tuple(numbers)
        if nondiff_argnames:
            names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
            self.nondiff_argnums = _with_names(fun, self.nondiff_argnums, names)
        self._signature: Any = None
        code = getattr(fun, "__code__", None)
        # The number of positional arguments, where reading them needs no more than to count.
        self._plain = -1
        if code is not None and not code.co_kwonlyargcount and not code.co_flags & 0x0C:
            self._plain = code.co_argcount - hasattr(fun, "__self__")

    def __getattr__(self, name: str) -> Any:
        if name == "fun":
            raise AttributeError(name)
        return getattr(self.fun, name)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with default values for those that are not given."""
        if not kwargs and len(args) == self._plain:
            return args
        import inspect

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
            raise TypeError(
                f"The input arguments to the {self._kind}-decorated function {self.__name__} could "
                f"not be resolved to positional-only arguments. Binding failed with the error:\n{e}"
            ) from None
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"The input arguments to the {self._kind}-decorated function {self.__name__} could "
                "not be resolved to positional-only arguments. The following arguments are "
                f"keyword-only: {sorted(bound.kwargs)}"
            )
        return bound.args  # type: ignore[no-any-return]

    def _split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Differentiable arguments, and the others."""
        if not self.nondiff_argnums:
            return args, ()
        numbers = {i if i >= 0 else i + len(args) for i in self.nondiff_argnums}
        if numbers and not 0 <= min(numbers) <= max(numbers) < len(args):
            raise ValueError(
                f"{self._kind}: nondiff_argnums={self.nondiff_argnums} are out of range for "
                f"{len(args)} arguments of {self.__name__}"
            )
        return (tuple([x for i, x in enumerate(args) if i not in numbers]),
                tuple([args[i] for i in sorted(numbers)]))

    def _joined(self, dynamic: Sequence[Any], static: tuple[Any, ...]) -> list[Any]:
        """The inverse of `_split`."""
        merged = list(dynamic)
        if static:
            n = len(dynamic) + len(static)
            numbers = sorted([i if i >= 0 else i + n for i in self.nondiff_argnums])
            for i, x in zip(numbers, static, strict=True):
                merged.insert(i, x)
        return merged


def _with_names(fun: Any, numbers: tuple[int, ...], names: Sequence[str]) -> tuple[int, ...]:
    import inspect

    parameters = list(inspect.signature(fun).parameters)
    for name in names:
        if name not in parameters:
            raise ValueError(f"nondiff_argnames: {name_of(fun)} has no argument named {name!r}")
    return tuple(sorted({*numbers, *[parameters.index(n) for n in names]}))


class _FlatFun:
    """The function on leaves."""

    __slots__ = ("in_tree", "out_avals", "out_tree", "owner", "static")

    def __init__(self, owner: _Custom, in_tree: Any, static: tuple[Any, ...]) -> None:
        self.owner = owner
        self.in_tree = in_tree
        self.static = static
        self.out_tree: Any = None  # set by whichever of function and rule runs first
        self.out_avals: list[Any] = []

    @property
    def __name__(self) -> str:
        return self.owner.__name__

    def __call__(self, *leaves: Any) -> list[Any]:
        args = self.in_tree.unflatten(leaves)
        outs, self.out_tree = flatten(self.owner.fun(*self.owner._joined(args, self.static)))
        check_values(outs)
        self.out_avals = [get_aval(x) for x in outs]
        return outs  # type: ignore[no-any-return]


# -- custom_jvp ------------------------------------------------------------------------------------


class custom_jvp(_Custom):
    """A function whose derivative is given by a rule, for forward and reverse mode.

    Args:
      fun: the function; arguments and results are pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are not differentiated, such as functions
        or options. The rule gets them first, in order of position.

    >>> import pyjx as jax
    >>> @jax.custom_jvp
    ... def square(x):
    ...     return x * x
    >>> @square.defjvp
    ... def square_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return square(x), 2 * x * t
    >>> float(jax.grad(square)(3.0))
    6.0
    """

    _kind = "custom_jvp"

    jvp: Callable[..., Any] | None = None
    symbolic_zeros: bool = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule, `(primals, tangents) -> (outputs, output tangents)`; usable as decorator.

        Args:
          jvp: takes two tuples as long as the differentiable arguments, after the
            non-differentiable arguments if there are any.
          symbolic_zeros: tangents that are zero are given as `SymbolicZero` and not as arrays.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule for each argument, `(tangent, output, *primals) -> output tangent`.

        None stands for an argument that the output does not depend on.

        Raises:
          TypeError: there are non-differentiable arguments.

        >>> import pyjx as jax
        >>> @jax.custom_jvp
        ... def product(x, y):
        ...     return x * y
        >>> product.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: x * t)
        >>> float(jax.grad(product)(3.0, 5.0))
        5.0
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Any, tangents: Any) -> Any:
            out = self(*primals)
            outs, tree = flatten(out)
            total: list[Any] = [None] * len(outs)
            for rule, t in zip(jvps, tangents, strict=False):
                if rule is None or type(t) is SymbolicZero:
                    continue
                parts = flatten(rule(t, out, *primals))[0]
                total = [p if s is None else s + p for s, p in zip(total, parts, strict=True)]
            return out, tree.unflatten([
                zero_tangent(x) if t is None else t for x, t in zip(outs, total, strict=True)
            ])

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {self.__name__} using defjvp."
            )
        args = self._positional(args, kwargs)
        dynamic, static = self._split(args)
        if static and any(isinstance(x, Tracer) for x in flatten(static)[0]):
            static = tuple(map(_constant, static))
        leaves, in_tree = flatten(dynamic)
        if state.dynamic is eager_trace and not any(isinstance(x, Tracer) for x in leaves):
            check_values(leaves)
            return self.fun(*self._joined(dynamic, static))
        check_values(leaves)
        fun = _FlatFun(self, in_tree, static)
        outs = custom_jvp_call_p.bind(
            *leaves, call_jaxpr=fun, jvp_jaxpr_fun=_FlatJvp(fun), num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
        return fun.out_tree.unflatten(outs)


class _FlatJvp:
    """A custom_jvp function's rule on leaves."""

    __slots__ = ("fun", "jvp")

    def __init__(self, fun: _FlatFun) -> None:
        self.fun = fun
        self.jvp: Any = fun.owner.jvp  # type: ignore[attr-defined]

    @property
    def __name__(self) -> str:
        return name_of(self.jvp)

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        fun = self.fun
        unflatten = fun.in_tree.unflatten
        result = self.jvp(*fun.static, unflatten(primals), unflatten(tangents))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {fun.__name__} must produce a pair "
                "(list or tuple of length two) representing primal and tangent outputs, but got "
                f"{result}."
            )
        outs, tree = flatten(result[0])
        out_tangents, tangent_tree = flatten(result[1])
        if tree != tangent_tree:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {fun.__name__} must produce primal "
                "and tangent outputs with equal container (pytree) structures, but got "
                f"{tree} and {tangent_tree} respectively."
            )
        if fun.out_tree is None:
            fun.out_tree = tree
        elif fun.out_tree != tree:
            self._raise_other_tree(tree, outs)
        return outs, [self._checked(x, t) for x, t in zip(outs, out_tangents, strict=True)]

    @staticmethod
    def _checked(primal: Any, tangent: Any) -> Any:
        check_values([primal])
        aval = get_aval(primal)
        expected = aval.to_tangent_aval()
        tangent = tangent_result(tangent)
        if type(tangent) is not Zero:
            check_values([tangent])
        found = tangent.aval if type(tangent) is Zero else get_aval(tangent)
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding "
                f"shapes and dtypes. Expected {expected.str_short()} (tangent type of "
                f"{aval.str_short()}) but got {found.str_short()}."
            )
        return tangent

    def check(self, outs: Sequence[Any], expected: Sequence[Any]) -> None:
        """Raise TypeError unless the rule's outputs are of the types of the function's."""
        found = [get_aval(x) for x in outs]
        if any(f.shape != e.shape or f.dtype != e.dtype
               for f, e in zip(found, expected, strict=True)):
            self._raise_output("and in particular with leaves of the same shape/dtype",
                               "shapes/dtypes of", found, expected, self.fun.out_tree,
                               "output shapes/dtypes of")

    def _raise_other_tree(self, tree: Any, outs: Sequence[Any]) -> None:
        expected = self.fun.out_avals or ["*"] * self.fun.out_tree.num_leaves
        self._raise_output("and in particular of the same container/pytree structure",
                           "container/pytree structure", [get_aval(x) for x in outs], expected,
                           tree, "output container/pytree structure")

    def _raise_output(self, what: str, rule_had: str, found: Sequence[Any],
                      expected: Sequence[Any], tree: Any, fun_had: str) -> None:
        name = self.fun.__name__
        texts = [_shorts(tree, found), _shorts(self.fun.out_tree, expected)]
        raise TypeError(
            f"Custom JVP rule {self.__name__} for function {name} must produce a pair (list or "
            "tuple of length two) where the first element represents the primal output (equal in "
            f"value to the output of the custom_jvp-decorated function {name}, {what}), but "
            f"instead the JVP rule output's first element had {rule_had}:\n    {texts[0]}\nwhile "
            f"the custom_jvp-decorated function {name} had {fun_had}:\n    {texts[1]}"
        )


class _Text:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _shorts(tree: Any, avals: Sequence[Any]) -> str:
    return str(tree.unflatten([_Text(getattr(a, "str_short", lambda: "*")()) for a in avals]))


def _constant(tree: Any) -> Any:
    """The tree with the derivatives of its leaves cut."""
    leaves, treedef = flatten(tree)
    return treedef.unflatten([_cut(x) if isinstance(x, Tracer) else x for x in leaves])


def _identity(x: Any) -> list[Any]:
    return [x]


def _cut_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    return list(primals), [Zero.of_primal(x) for x in primals]


def _cut(x: Any) -> Any:
    return custom_jvp_call_p.bind(x, call_jaxpr=_identity, jvp_jaxpr_fun=_cut_jvp, num_consts=0,
                                  symbolic_zeros=False)[0]


_cut_jvp.check = lambda outs, expected: None  # type: ignore[attr-defined]


# -- custom_vjp ------------------------------------------------------------------------------------


class CustomVJPPrimal:
    """An argument of a forward rule with `symbolic_zeros=True`.

    `value` is the argument, `perturbed` tells whether it is being differentiated.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The tree with the values of its `CustomVJPPrimal` leaves."""
    leaves, treedef = flatten(tree, lambda x: isinstance(x, CustomVJPPrimal))
    return treedef.unflatten([x.value if isinstance(x, CustomVJPPrimal) else x for x in leaves])


class custom_vjp(_Custom):
    """A function whose reverse-mode derivative is given by a pair of rules.

    Forward mode through it is an error.

    Args:
      fun: the function; arguments and results are pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are not differentiated, such as functions
        or options; they may not be tracers. The forward rule gets them in their places, the
        backward rule first.

    >>> import pyjx as jax
    >>> @jax.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (min(g, 1.0),))
    >>> float(jax.grad(lambda x: 5.0 * clip_gradient(x))(2.0))
    1.0
    """

    _kind = "custom_vjp"

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros: bool = False
    optimize_remat: bool = False
    generic_batching: bool = False
    with_logs: bool = False
    with_accums: bool = False

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any],
               symbolic_zeros: bool = False, optimize_remat: bool = False,
               generic_batching: bool = False) -> None:
        """Set the rules.

        Args:
          fwd: takes the arguments of the function; returns a pair of its output and of residuals,
            a tree of arrays that is kept for `bwd`.
          bwd: takes the residuals and a cotangent of the output; returns a tuple with a cotangent
            for each differentiable argument, where None stands for zero.
          symbolic_zeros: the leaves of `fwd`'s arguments are `CustomVJPPrimal`, and cotangents that
            are zero are given to `bwd` as `SymbolicZero`.
          optimize_remat: accepted; rematerialization drops unneeded forward work in any case.
          generic_batching: accepted; the rules are batched operation by operation.
        """
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat
        self.generic_batching = generic_batching

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {self.__name__} using defvjp."
            )
        args = self._positional(args, kwargs)
        dynamic, static = self._split(args)
        if static:
            for x in flatten(static)[0]:
                if isinstance(x, Tracer):
                    _raise_nondiff_tracer()
        leaves, in_tree = flatten(dynamic)
        check_values(leaves)
        if state.dynamic is eager_trace and not any(isinstance(x, Tracer) for x in leaves):
            return self.fun(*args)
        fun = _FlatFun(self, in_tree, static)
        outs = custom_vjp_call_p.bind(
            *leaves, call_jaxpr=fun, fwd_jaxpr_thunk=_FlatFwd(fun), bwd=self.bwd, num_consts=0,
            out_trees=None, symbolic_zeros=self.symbolic_zeros,
        )
        return fun.out_tree.unflatten(outs)


def _raise_nondiff_tracer() -> None:
    from pyjx.errors import UnexpectedTracerError

    raise UnexpectedTracerError(
        "Found a JAX Tracer object passed as an argument to a custom_vjp function in a position "
        "indicated by nondiff_argnums as non-differentiable. Tracers cannot be passed as "
        "non-differentiable arguments to custom_vjp functions; instead, nondiff_argnums should "
        "only be used for arguments that can't be or contain JAX tracers, e.g. function-valued "
        "arguments. In particular, array-valued arguments should typically not be indicated as "
        "nondiff_argnums."
    )


class _FlatFwd:
    """A custom_vjp function's forward rule on leaves; it makes the backward rule."""

    __slots__ = ("fun", "fwd")

    def __init__(self, fun: _FlatFun) -> None:
        self.fun = fun
        self.fwd: Any = fun.owner.fwd  # type: ignore[attr-defined]

    @property
    def __name__(self) -> str:
        return name_of(self.fwd)

    def __call__(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[Any, Any, Any]:
        fun = self.fun
        leaves = primals
        if fun.owner.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, nz) for x, nz in zip(primals, nonzero, strict=True)]
        args = fun.owner._joined(fun.in_tree.unflatten(leaves), fun.static)
        result = self.fwd(*args)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            self._raise_output(f"instead of a pair the fwd rule {self.__name__} produced {result}.",
                               "(equal to those of the custom_vjp-decorated function "
                               f"{fun.__name__}) ")
        outs, out_tree = flatten(result[0])
        check_values(outs)
        residuals, residual_tree = flatten(result[1])
        check_values(residuals)
        if fun.out_tree is None:
            fun.out_tree = out_tree
        elif fun.out_tree != out_tree:
            self._raise_output(
                "instead the fwd rule output's first element had container/pytree structure:\n"
                f"    {_shorts(out_tree, [get_aval(x) for x in outs])}\nwhile the "
                f"custom_vjp-decorated function {fun.__name__} had output container/pytree "
                f"structure:\n    {fun.out_tree}"
            )
        avals = [get_aval(x) for x in primals]
        return outs, residuals, _FlatBwd(fun, residual_tree, out_tree, avals)

    def check(self, outs: Sequence[Any], expected: Sequence[Any]) -> None:
        """Raise TypeError unless the rule's outputs are of the types of the function's."""
        found = [get_aval(x) for x in outs]
        if any(f.shape != e.shape or f.dtype != e.dtype
               for f, e in zip(found, expected, strict=True)):
            tree = self.fun.out_tree
            self._raise_output(
                "instead the fwd rule output's first element had shapes/dtypes of:\n"
                f"    {_shorts(tree, found)}\nwhile the custom_vjp-decorated function "
                f"{self.fun.__name__} had output shapes/dtypes of:\n    {_shorts(tree, expected)}"
            )

    def _raise_output(self, what: str, equal: str = "") -> None:
        name = self.fun.__name__
        raise TypeError(
            f"Custom VJP fwd rule {self.__name__} for function {name} must produce a pair (list or "
            "tuple of length two) where the first element represents the primal output "
            f"{equal or f'(equal to the output of the custom_vjp-decorated function {name}) '}"
            "and the second element represents residuals (i.e. values stored from the forward pass "
            f"for use on the backward pass), but {what}"
        )


class _FlatBwd:
    """A custom_vjp function's backward rule on leaves, for one run of the forward rule."""

    __slots__ = ("bwd", "fun", "in_avals", "out_tree", "residual_tree")

    def __init__(self, fun: _FlatFun, residual_tree: Any, out_tree: Any,
                 in_avals: Sequence[Any]) -> None:
        self.fun = fun
        self.bwd: Any = fun.owner.bwd  # type: ignore[attr-defined]
        self.residual_tree = residual_tree
        self.out_tree = out_tree
        self.in_avals = in_avals

    @property
    def __name__(self) -> str:
        return name_of(self.bwd)

    def __call__(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        fun = self.fun
        result = self.bwd(*fun.static, self.residual_tree.unflatten(residuals),
                          self.out_tree.unflatten(cotangents))
        in_cts, tree = flatten(tuple(result) if type(result) is list else result)
        if tree != fun.in_tree:
            in_cts = self._without_none(result, tree)
        return [self._checked(i, ct, a) for i, (ct, a) in
                enumerate(zip(in_cts, self.in_avals, strict=True))]

    def _without_none(self, result: Any, tree: Any) -> list[Any]:
        """The cotangents where some parts of the result are None, which stands for zeros."""
        in_tree = self.fun.in_tree
        cts, prefix = flatten(tuple(result) if type(result) is list else result,
                              lambda x: x is None)
        dummy = in_tree.unflatten(self.in_avals)
        out: list[Any] = []
        try:
            if not isinstance(result, (tuple, list)):
                raise ValueError
            for ct, subtree in zip(cts, prefix.flatten_up_to(dummy), strict=True):
                avals, subtree_def = flatten(subtree)
                if ct is None:
                    out += [Zero(a.to_tangent_aval()) for a in avals]
                elif subtree_def.num_nodes == 1 and len(avals) == 1:
                    out.append(ct)
                else:
                    raise ValueError
        except ValueError:
            raise TypeError(
                "Custom VJP bwd rule must produce an output with the same container (pytree) "
                "structure as the args tuple of the primal function, and in particular must "
                "produce a tuple of length equal to the number of arguments to the primal "
                f"function, but got bwd output structure {tree} for primal input structure "
                f"{in_tree}."
            ) from None
        return out

    def _checked(self, i: int, ct: Any, primal: Any) -> Any:
        ct = tangent_result(ct)
        expected = primal.to_tangent_aval()
        if type(ct) is Zero:
            return Zero(expected)
        check_values([ct])
        if expected.dtype == dtypes.float0:
            return Zero(expected)
        found = get_aval(ct)
        if found.shape != expected.shape:
            from pyjx.tree_util import keystr, tree_flatten_with_path

            paths = tree_flatten_with_path(self.fun.in_tree.unflatten(self.in_avals))[0]
            raise ValueError(
                f"Custom VJP bwd rule attached to {source_of(self.fun.owner.fun)} must produce an "
                "output with the same type as the args tuple of the primal function, but at "
                f"output{keystr(paths[i][0])} the bwd rule produced an output of type "
                f"{found.str_short()} corresponding to an input of type {primal.str_short()}, so "
                "the shapes do not match"
            )
        return ct


# -- other forms -----------------------------------------------------------------------------------


def custom_gradient(fun: Any = None, *, with_logs: bool = False, remat: bool = False,
                    with_accums: Any = None) -> Any:
    """A `custom_vjp` function from one that returns its output and its pull-back.

    Args:
      fun: returns `(output, vjp)`, where `vjp` takes a cotangent of the output and returns a tuple
        of cotangents, one for each argument, or the cotangent alone for a single argument.

    >>> import pyjx as jax
    >>> @jax.custom_gradient
    ... def square(x):
    ...     return x * x, lambda g: (g * 10.0,)
    >>> float(jax.grad(square)(3.0))
    10.0
    """
    if fun is None:
        return lambda f: custom_gradient(f, with_logs=with_logs, remat=remat,
                                         with_accums=with_accums)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)[0]

    wrapped.__name__ = name_of(fun)
    wrapped.__doc__ = getattr(fun, "__doc__", None)
    wrapped.__wrapped__ = fun  # type: ignore[attr-defined]

    def fwd(*args: Any, **kwargs: Any) -> Any:
        out, pull_back = fun(*args, **kwargs)
        outs, out_tree = flatten(out)
        in_tree = flatten(args)[1]
        cts_tree = None

        def flat(*cotangents: Any) -> list[Any]:
            nonlocal cts_tree
            result = pull_back(out_tree.unflatten(cotangents))
            if len(args) == 1 and flatten(result)[1] != in_tree:
                result = (result,)
            cts, cts_tree = flatten(result)
            return cts  # type: ignore[no-any-return]

        closed = trace_to_jaxpr(flat, [get_aval(x).to_tangent_aval() for x in outs])
        return out, _Residuals(closed.jaxpr, cts_tree, closed.consts)

    def bwd(residuals: _Residuals, cotangent: Any) -> Any:
        from pyjx.core.trace import eval_jaxpr

        cts = eval_jaxpr(residuals.jaxpr, residuals.consts, *flatten(cotangent)[0])
        return residuals.tree.unflatten(cts)

    function = custom_vjp(wrapped)
    function.defvjp(fwd, bwd)
    return function


class _Residuals:
    """A jaxpr as residuals: its constants are the leaves."""

    __slots__ = ("consts", "jaxpr", "tree")

    def __init__(self, jaxpr: Any, tree: Any, consts: Sequence[Any]) -> None:
        self.jaxpr = jaxpr
        self.tree = tree
        self.consts = consts


register_pytree_node(_Residuals, lambda r: (r.consts, (r.jaxpr, r.tree)),
                     lambda aux, consts: _Residuals(aux[0], aux[1], consts))


def closure_convert(fun: Callable[..., Any], *example_args: Any
                    ) -> tuple[Callable[..., Any], list[Any]]:
    """Turn values that a function closes over, and that may be differentiated, into arguments.

    Args:
      fun: a function of positional arguments.
      *example_args: arguments, or types of arguments, that it will be called with.

    Returns:
      `(converted, values)`: `converted(*args, *values)` equals `fun(*args)`.

    >>> import pyjx as jax
    >>> converted, values = jax.closure_convert(lambda x: x * 2.0, 1.0)
    >>> float(converted(3.0, *values))
    6.0
    """
    from pyjx.core.trace import eval_jaxpr

    leaves, in_tree = flatten(example_args)
    out_tree = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        outs, out_tree = flatten(fun(*in_tree.unflatten(xs)))
        return outs  # type: ignore[no-any-return]

    closed = trace_to_jaxpr(flat, [get_aval(x) for x in leaves])
    assert out_tree is not None
    hoist = [_may_be_perturbed(c) for c in closed.consts]
    values = [c for c, h in zip(closed.consts, hoist, strict=True) if h]
    kept = [None if h else c for c, h in zip(closed.consts, hoist, strict=True)]
    n_values = len(values)

    def converted(*args: Any) -> Any:
        given = iter(args[len(args) - n_values:])
        flat_args, tree = flatten(args[:len(args) - n_values])
        if tree != in_tree:
            raise TypeError("closure_convert: the arguments have another tree structure than the "
                            f"example arguments: expected {in_tree}, got {tree}")
        consts = [next(given) if h else c for c, h in zip(kept, hoist, strict=True)]
        return out_tree.unflatten(eval_jaxpr(closed.jaxpr, consts, *flat_args))

    converted.__name__ = name_of(fun)
    return converted, values


def _may_be_perturbed(x: Any) -> bool:
    """Whether a constant could be under differentiation: a tracer of an inexact dtype."""
    return isinstance(x, Tracer) and x.aval.to_tangent_aval().dtype != dtypes.float0


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent at `val`: an array, or a `SymbolicZero` with `symbolic_zeros`."""
    return zero_tangent(val, symbolic_zeros)


__all__ = [
    "CustomVJPException", "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient",
    "custom_jvp", "custom_jvp_call_p", "custom_lin_p", "custom_vjp", "custom_vjp_call_p",
    "custom_vjp_primal_tree_values", "zero_from_primal",
]
