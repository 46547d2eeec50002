"""Functions whose derivative is given by a forward and a backward rule: `custom_vjp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pyjx import configuration
from pyjx.core.avals import (
    AbstractValue,
    ShapedArray,
    cotangent_aval,
    get_aval,
    is_ref_type,
    is_valid_value,
)
from pyjx.core.prefixes import two_structures
from pyjx.core.records import Field, Record, of_field
from pyjx.core.references import is_ref, shared
from pyjx.core.source_info import at_own_lines
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.engine import logs
from pyjx.engine.batching import bind_function
from pyjx.engine.custom_derivative_calls import SymbolicZero, custom_vjp_call_p, tangent_result
from pyjx.engine.functions import (
    check_values,
    flatten,
    leaf_paths,
    name_of,
    raise_bad_result,
    short_types,
    source_of,
    tree_text,
)
from pyjx.engine.moves import as_cotangent
from pyjx.engine.remat_calls import bind_custom_remat, bind_remat_opt
from pyjx.engine.tangents import Zero, add_tangents
from pyjx.engine.types import TreeDef
from pyjx.errors import UnexpectedTracerError
from pyjx.guards import guard
from pyjx.runtime.signature import leaf_names, parameters_of
from pyjx.transforms.arguments import check_callable
from pyjx.transforms.custom_jvp import Cotangents, CustomFun, CustomFunction, R
from pyjx.tree_util import keystr, tree_flatten_with_path, tree_map, tree_structure

# -- gradient accumulators -------------------------------------------------------------------------


class GradAccum:
    """Where a backward rule puts the cotangent of an operand, which is of the type `aval`."""

    aval: Any

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        raise NotImplementedError(f"{type(self).__name__} must override accum")

    def freeze(self) -> Any:
        """The sum; nothing is added any more."""
        raise NotImplementedError(f"{type(self).__name__} must override freeze")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"


class NullAccum(GradAccum):
    """For an operand whose cotangent nobody asks for."""

    def accum(self, x: Any) -> None:
        """Nothing is kept."""

    def freeze(self) -> Any:
        return Zero(self.aval)


class ValAccum(GradAccum):
    """A sum that is a value.

    >>> import pyjx as jax
    >>> from pyjx.experimental.hijax import ValAccum
    >>> total = ValAccum(jax.typeof(1.0))
    >>> total.accum(2.0)
    >>> total.accum(3.0)
    >>> float(total.freeze())
    5.0
    """

    def __init__(self, aval: AbstractValue, val: Any = None) -> None:
        super().__init__(aval)
        self.val = val

    def accum(self, x: Any) -> None:
        """Add a cotangent.

        Raises:
          TypeError: it is not an array.
          ValueError: it is of another shape.
        """
        if is_nothing(self.aval, x):
            return
        self.val = x if self.val is None else tree_map(add_tangents, self.val, x)

    def freeze(self) -> Any:
        return Zero(self.aval) if self.val is None else self.val


def is_nothing(aval: Any, x: Any) -> bool:
    """Whether a cotangent stands for zeros; raises unless it is one of the type."""
    if x is None or type(x) is Zero:
        return True
    if type(aval) is ShapedArray:
        check_values([x])
        found = get_aval(x)
        if found.shape != aval.shape:
            raise ValueError(
                f"Expected cotangent type {aval.str_short()} but got {found.str_short()}")
    return False


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


# How a rule with accumulators is registered, for errors.
ACCUMS_CONVENTION = "defvjp_with_accums, and so must return None or a dict"


class RematRules(Record):
    """What `defremat` sets."""

    fwd: Callable[..., Any]
    rem: Callable[..., Any]
    bwd: Callable[..., Any]
    with_logs: bool


@guard
class custom_vjp(CustomFunction[R]):
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
    ...
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
    remat_rules: RematRules | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"remat_rules": self.remat_rules, **super().__getstate__()}

    def defvjp(self, fwd: Callable[..., tuple[R, Any]], bwd: Callable[..., Cotangents],
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
          optimize_remat: in a `checkpoint` function, run the function itself in the forward pass,
            and `fwd` in the backward pass only. Worth it where `fwd` is one call from which nothing
            can be left out, such as a kernel.
          generic_batching: accepted; the rules are batched operation by operation.
        """
        check_callable(fwd)
        check_callable(bwd)
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat
        self.generic_batching = generic_batching
        self.with_logs = self.with_accums = False

    def defvjp_with_logs(self, fwd: Callable[..., tuple[R, Any]],
                         bwd: Callable[..., tuple[Cotangents, Any]], symbolic_zeros: bool = False,
                         optimize_remat: bool = False, generic_batching: bool = False) -> None:
        """As `defvjp`, where `bwd` returns a pair: the cotangents, and a dict of named pytrees that
        it logs, or None.

        The function that `vjp` returns gives the logs by its method `with_logs`; elsewhere they are
        not computed. A name that is logged twice in one backward pass is a ValueError.

        >>> import pyjx as jax
        >>> f = jax.custom_vjp(lambda x: 2 * x)
        >>> f.defvjp_with_logs(lambda x: (f(x), None), lambda _, ct: ((2 * ct,), {"ct": ct}))
        >>> float(jax.vjp(f, 3.0)[1].with_logs(5.0)[1]["ct"])
        5.0
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat, generic_batching)
        self.with_logs = True

    def defvjp_with_accums(self, fwd: Callable[..., tuple[R, Any]], bwd: Callable[..., Any],
                           symbolic_zeros: bool = False, optimize_remat: bool = False,
                           generic_batching: bool = False) -> None:
        """As `defvjp`, where `bwd(residuals, cotangent, *accumulators)` adds the cotangents of the
        arguments to accumulators, by their method `accum`.

        There is an accumulator for each leaf of the differentiable arguments. `bwd` returns None,
        or a dict of logs as with `defvjp_with_logs`.

        >>> import pyjx as jax
        >>> f = jax.custom_vjp(lambda x, y: x * y)
        >>> f.defvjp_with_accums(lambda x, y: (x * y, (x, y)),
        ...                      lambda r, ct, x, y: x.accum(ct * r[1]))
        >>> float(jax.grad(f)(2.0, 3.0))
        3.0
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat, generic_batching)
        self.with_accums = True

    def defremat(self, fwd: Callable[..., Any], rem: Callable[..., Any], bwd: Callable[..., Any],
                 generic_batching: bool = False) -> None:
        """Set the rules for `checkpoint` functions, which compute values again.

        Elsewhere the rules of `defvjp` are used; without those, `rem` follows `fwd` at once.

        Args:
          fwd: as that of `defvjp`; its residuals are kept, whatever the policy saves.
          rem: `(residuals, *arguments) -> (output, residuals)`, run in the backward pass: the
            output again, and what `bwd` needs.
          bwd: as that of `defvjp`, with the residuals that `rem` gives.
          generic_batching: accepted; the rules are batched operation by operation.

        >>> import pyjx as jax, pyjx.numpy as jnp
        >>> f = jax.custom_vjp(lambda x: jnp.exp(x))
        >>> f.defremat(lambda x: (f(x), jnp.exp(x)), lambda y, x: (y, y), lambda y, ct: (y * ct,))
        >>> float(jax.grad(jax.checkpoint(f))(0.0))
        1.0
        """
        self.remat_rules = RematRules(fwd, rem, bwd, False)
        self.generic_batching = generic_batching

    def defremat_with_logs(self, fwd: Callable[..., Any], rem: Callable[..., Any],
                           bwd: Callable[..., Any], generic_batching: bool = False) -> None:
        """As `defremat`, where `bwd` returns cotangents and logs, as with `defvjp_with_logs`."""
        self.remat_rules = RematRules(fwd, rem, bwd, True)
        self.generic_batching = generic_batching

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if (self.fwd is None or self.bwd is None) and self.remat_rules is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {self.__name__} using "
                                 f"defvjp. It is {source_of(self.fun)}. Give it its rules by "
                                 f"{self.__name__}.defvjp(fwd, bwd), where it is made.")
        args = self.positional(args, kwargs)
        dynamic, static = self.split(args)
        if static:
            for x in flatten(static)[0]:
                if isinstance(x, Tracer):
                    self._raise_nondiff_tracer(args, x)
        leaves, in_tree = flatten(dynamic)
        check_values(leaves)
        if not any([isinstance(x, Tracer) for x in leaves]):
            if state.dynamic is eager_trace:
                return self.run(custom_vjp_call_p, args)
        elif (twice := shared(leaves)) is not None:
            self._raise_shared(args, leaves[twice[0]])
        fun = CustomFun(self, in_tree, static)
        outs = bind_function(custom_vjp_call_p, leaves, {
            "call_jaxpr": fun, "fwd_jaxpr_thunk": _FlatFwd(fun),
            "bwd": self.bwd or self.remat_rules.bwd,  # type: ignore[union-attr]
            "num_consts": 0, "out_trees": None, "symbolic_zeros": self.symbolic_zeros})
        return fun.out_tree.unflatten(outs)

    def _raise_shared(self, args: tuple[Any, ...], ref: Any) -> NoReturn:
        first, second, *_ = self._places(args, lambda x: is_ref(x) and (
            x.get_referent() is ref.get_referent()))
        raise ValueError("only one reference to a mutable array may be passed as an argument to a "
                         f"function, but custom_vjp function {self.fun} got the same mutable array "
                         f"reference of type {ref.aval} at {first} and {second}.")

    def _raise_nondiff_tracer(self, args: tuple[Any, ...], tracer: Tracer) -> NoReturn:
        *_, place = self._places(args, lambda x: x is tracer)
        raise UnexpectedTracerError(
            "Found a JAX Tracer object passed as an argument to a custom_vjp function in a "
            "position indicated by nondiff_argnums as non-differentiable. Tracers cannot be passed "
            "as non-differentiable arguments to custom_vjp functions; instead, nondiff_argnums "
            "should only be used for arguments that can't be or contain JAX tracers, e.g. "
            "function-valued arguments. In particular, array-valued arguments should typically not "
            f"be indicated as nondiff_argnums. It is {place} of {source_of(self.fun)}.")

    def _places(self, args: tuple[Any, ...], which: Callable[[Any], bool]) -> list[str]:
        """The names of those leaves of the arguments."""
        leaves, tree = flatten((args, {}))
        names = leaf_names(parameters_of(self.fun), tree, ())
        return [name for name, x in zip(names, leaves, strict=True) if which(x)]


class _FlatFwd:
    """A custom_vjp function's forward rules on leaves; they make the backward rule."""

    __slots__ = ("fun",)

    def __init__(self, fun: CustomFun) -> None:
        self.fun = fun

    owner: Field[custom_vjp] = of_field("fun.owner")

    @property
    def rule(self) -> Callable[..., Any]:
        owner = self.owner
        return owner.fwd or owner.remat_rules.fwd  # type: ignore[union-attr]

    @property
    def __name__(self) -> str:
        return name_of(self.rule)

    def __call__(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[Any, Any, Any]:
        owner = self.owner
        recorded = state.dynamic is not eager_trace
        tree: Any = None

        def fwd(*leaves: Any) -> tuple[list[Any], list[Any]]:
            nonlocal tree
            residuals, tree, outs = self._run("fwd", owner.fwd, leaves, nonzero)
            return residuals, outs

        bwd, with_logs = owner.bwd, owner.with_logs
        if owner.remat_rules is not None and (
                owner.fwd is None or configuration.rematerializing.value):
            bwd, with_logs = owner.remat_rules[2:]
            residuals, tree, outs = self._run_twice(owner.remat_rules, primals, nonzero, recorded)
        elif owner.optimize_remat and recorded:
            residuals, outs = bind_remat_opt(fwd, self.fun, primals)
            self.check(outs, self.fun.out_avals)
        else:
            residuals, outs = fwd(*primals)
        accumulates = owner.with_accums and bwd is owner.bwd
        pull_back = _FlatBwd(self.fun, bwd, tree, self.fun.out_tree, tuple(map(get_aval, primals)),
                             with_logs, tuple(nonzero) if accumulates else None)
        return outs, residuals, pull_back

    def _run(self, kind: str, rule: Any, leaves: Sequence[Any], nonzero: Sequence[bool],
             before: tuple[Any, ...] = ()) -> tuple[list[Any], TreeDef, list[Any]]:
        """The leaves and the tree of a rule's residuals, and the leaves of its output."""
        fun = self.fun
        if fun.owner.symbolic_zeros:  # type: ignore[attr-defined]
            leaves = [CustomVJPPrimal(x, nz) for x, nz in zip(leaves, nonzero, strict=True)]
        args = fun.owner.joined(fun.in_tree.unflatten(leaves), fun.static)
        result = at_own_lines(rule, *before, *args)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            self._raise_output(
                kind, rule,
                f"instead of a pair the {kind} rule {name_of(rule)} produced {tree_text(result)}.",
                f"(equal to those of the custom_vjp-decorated function {fun.__name__}) ")
        outs, out_tree = flatten(result[0])
        residuals, residual_tree = flatten(result[1])
        for found, tree in ((outs, out_tree), (residuals, residual_tree)):
            if not all(map(is_valid_value, found)):
                raise_bad_result(f"the {kind} rule {source_of(rule)}", tree, found)
        _check_no_refs(kind, rule, result, leaves)
        if fun.out_tree is None:
            fun.out_tree = out_tree
        elif fun.out_tree != out_tree:
            self._raise_output(
                kind, rule, f"instead the {kind} rule output's first element had "
                "container/pytree structure:\n"
                f"    {short_types(out_tree, [get_aval(x) for x in outs])}\nwhile the "
                f"custom_vjp-decorated function {fun.__name__} had output container/pytree "
                f"structure:\n    {fun.out_tree}")
        return residuals, residual_tree, outs

    def _run_twice(self, rules: RematRules, primals: Sequence[Any], nonzero: Sequence[bool],
                   recorded: bool) -> tuple[list[Any], TreeDef, list[Any]]:
        """As `_run`, by the rules for rematerialization: output of the first, residuals of the
        second."""
        saved_tree: Any = None
        tree: Any = None

        def fwd(*leaves: Any) -> tuple[list[Any], list[Any]]:
            nonlocal saved_tree
            saved, saved_tree, outs = self._run("fwd", rules.fwd, leaves, nonzero)
            return saved, outs

        def rem(saved: Sequence[Any], *leaves: Any) -> tuple[list[Any], list[Any]]:
            nonlocal tree
            residuals, tree, outs = self._run("rem", rules.rem, leaves, nonzero,
                                              (saved_tree.unflatten(saved),))
            return residuals, outs

        if recorded:
            residuals, outs = bind_custom_remat(fwd, rem, primals)
        else:
            saved, outs = fwd(*primals)
            residuals = rem(saved, *primals)[0]
        return residuals, tree, outs

    def check(self, outs: Sequence[Any], expected: Sequence[Any]) -> None:
        """Raise TypeError unless the rule's outputs are of the types of the function's."""
        found = [get_aval(x) for x in outs]
        if not all(e.describes(f) for f, e in zip(found, expected, strict=True)):
            tree = self.fun.out_tree
            self._raise_output(
                "fwd", self.rule, "instead the fwd rule output's first element had shapes/dtypes "
                f"of:\n    {short_types(tree, found)}\nwhile the custom_vjp-decorated function "
                f"{self.fun.__name__} had output shapes/dtypes of:\n"
                f"    {short_types(tree, expected)}")

    def _raise_output(self, kind: str, rule: Any, what: str, equal: str = "") -> NoReturn:
        name = self.fun.__name__
        raise TypeError(
            f"Custom VJP {kind} rule {name_of(rule)} for function {name} must produce a pair (list "
            "or tuple of length two) where the first element represents the primal output "
            f"{equal or f'(equal to the output of the custom_vjp-decorated function {name}) '}"
            "and the second element represents residuals (i.e. values stored from the forward pass "
            f"for use on the backward pass), but {what}\nThe rule is {source_of(rule)}.")


def _check_no_refs(kind: str, rule: Any, result: Any, given: Sequence[Any]) -> None:
    """Raise ValueError if a rule returns a reference that is not an argument among its residuals,
    or any in its output."""
    for path, x in tree_flatten_with_path(tuple(result))[0]:
        if not is_ref(x):
            continue
        is_output = path[0].idx == 0
        if is_output or not any([x is (y.value if type(y) is CustomVJPPrimal else y)
                                 for y in given]):
            why = (", but mutable array references cannot be returned there" if is_output else
                   " that was not an argument")
            raise ValueError(f"custom_vjp {kind} function {rule} returned a mutable array "
                             f"reference of type {x.aval} at output tree path {keystr(path)}{why}.")


_LEAF, _NONE = tree_structure(0), tree_structure(None)


class _FlatBwd(Record):
    """A custom_vjp function's backward rule on leaves, for one run of the forward rule.

    `perturbed` is that of a rule that adds cotangents to accumulators: those of arguments that are
    not differentiated forget them.
    """

    fun: CustomFun
    bwd: Any
    residual_tree: TreeDef
    out_tree: TreeDef
    in_avals: tuple[Any, ...]
    with_logs: bool
    perturbed: tuple[bool, ...] | None

    def __repr__(self) -> str:
        return self.__name__

    @property
    def __name__(self) -> str:
        return name_of(self.bwd)

    def __call__(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        fun = self.fun
        given = [*fun.static, self.residual_tree.unflatten(residuals),
                 self.out_tree.unflatten(cotangents)]
        if self.perturbed is not None:
            accumulators = [(ValAccum if p else NullAccum)(a.to_tangent_aval())
                            for a, p in zip(self.in_avals, self.perturbed, strict=True)]
            _write_log(at_own_lines(self.bwd, *given, *fun.in_tree.unflatten(accumulators)),
                       ACCUMS_CONVENTION)
            return [a.freeze() for a in accumulators]
        result = at_own_lines(self.bwd, *given)
        if self.with_logs:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError("Custom VJP bwd rule was registered with defvjp_with_logs and so "
                                f"must produce a pair (in_cts, logs), but got {tree_text(result)}.")
            result, log = result
            _write_log(log, "defvjp_with_logs, and so the second element of the pair it returns "
                            "must be None or a dict")
        in_cts, tree = flatten(tuple(result) if type(result) is list else result)
        if tree != fun.in_tree:
            in_cts = self._of_prefix(result, tree)
        return [self._checked(i, ct, a) for i, (ct, a) in
                enumerate(zip(in_cts, self.in_avals, strict=True))]

    def _of_prefix(self, result: Any, tree: Any) -> list[Any]:
        """The cotangents where the result is a prefix: a leaf of it stands for all leaves of the
        argument there, and None for zeros."""
        in_tree = self.fun.in_tree
        cts, prefix = flatten(tuple(result) if type(result) is list else result,
                              lambda x: x is None)
        dummy = in_tree.unflatten(self.in_avals)
        out: list[Any] = []
        try:
            if not isinstance(result, (tuple, list)):
                raise ValueError
            for ct, subtree in zip(cts, prefix.flatten_up_to(dummy), strict=True):
                avals = flatten(subtree)[0]
                if ct is None:
                    out += [Zero.cotangent_of(a) for a in avals]
                else:
                    out += [ct] * len(avals)
        except ValueError:
            children, got, parts = in_tree.children(), tree_text(result), []
            if isinstance(result, (tuple, list)):
                parts = [flatten(x)[1] for x in result]
                if len(parts) != len(children):
                    got = f"one of {len(result)}: {got}"
            other = [two_structures(f" What it gave for argument {i} is {{}} and not {{}}.", *both)
                     for i, both in enumerate(zip(parts, children, strict=False))
                     if both[0] not in (both[1], _LEAF, _NONE) and len(parts) == len(children)]
            raise TypeError(
                "Custom VJP bwd rule must produce an output with the same container (pytree) "
                "structure as the args tuple of the primal function, and in particular must "
                "produce a tuple of length equal to the number of arguments to the primal "
                "function, but got bwd output structure "
                + two_structures("{} for primal input structure {}", tree, in_tree) +
                f".\nThe rule {source_of(self.bwd)}, of the function "
                f"{source_of(self.fun.owner.fun)}, is to return a tuple of {len(children)}, one "
                f"for each argument that is differentiated; got {got}.{''.join(other[:1])}"
            ) from None
        return out

    def _checked(self, i: int, ct: Any, primal: Any) -> Any:
        symbolic = type(ct) is SymbolicZero
        ct = tangent_result(ct)
        if is_ref_type(primal):  # the cotangent of what it holds
            primal = primal.inner_aval
        expected = cotangent_aval(primal)
        if type(ct) is Zero:
            self._check_zero(i, ct.aval, expected, symbolic)
            return Zero(expected)
        if not is_valid_value(ct):
            raise_bad_result(f"the bwd rule {source_of(self.bwd)}, for argument {i},",
                             flatten(0)[1], [ct])
        if expected.is_float0:
            return Zero(expected)
        found = get_aval(ct)
        wrong = ("shapes" if not expected.has_shape_of(found) else
                 "manual axis types"
                 if found.place.mat != expected.place.mat else "")
        if wrong and not configuration.disable_bwd_checks.value:
            self._raise_type(i, found, primal, wrong)
        return as_cotangent(ct, primal)

    def _check_zero(self, i: int, found: Any, expected: Any, symbolic: bool) -> None:
        """Raise ValueError unless a zero, which says what it is the zero of, belongs to input i."""
        if expected.is_float0 or expected.describes(found) or (
                found.is_float0 and expected.has_shape_of(found)):
            return
        if not symbolic:
            self._raise_type(i, found, expected, "shapes")
        raise ValueError(
            "Custom VJP bwd rule produced a SymbolicZero with a shape/dtype that does not match "
            f"that of the input: at output{self._path(i)} of the rule of "
            f"{source_of(self.fun.owner.fun)} it had shape/dtype {found.str_short()}, and the "
            f"tangent of the input has {expected.str_short()}. A rule may give None in its place.")

    def _path(self, i: int) -> str:
        return leaf_paths(self.fun.in_tree)[i]

    def _raise_type(self, i: int, found: Any, primal: Any, wrong: str) -> NoReturn:
        error = ValueError(
            f"Custom VJP bwd rule attached to {source_of(self.fun.owner.fun)} must produce an "
            "output with the same type as the args tuple of the primal function, but at "
            f"output{self._path(i)} the bwd rule produced an output of type {found.str_short()} "
            f"corresponding to an input of type {primal.str_short()}, so the {wrong} do not match")
        error.argument = i  # type: ignore[attr-defined]
        raise error


def _write_log(log: Any, convention: str) -> None:
    check_log(log, convention)
    if log is not None:
        logs.write(log)


def check_log(log: Any, convention: str) -> None:
    """Raise TypeError unless a rule's log is None or a dict."""
    if log is not None and not isinstance(log, dict):
        raise TypeError(f"Custom VJP bwd rule was registered with {convention} of backward-pass "
                        f"log entries, but got {type(log).__name__}.")
