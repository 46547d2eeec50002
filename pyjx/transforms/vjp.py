"""Reverse mode for users: `vjp`, the function that it returns, and its two halves, `fwd_and_bwd`.

`VJP.with_refs` takes for each argument where its gradient goes, or a reference. Those that it
returns are nodes of trees, without leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import AbstractRef, AbstractValue, cotangent_aval, get_aval
from pyjx.core.jaxpr import Jaxpr
from pyjx.core.open_sums import same_over_mesh
from pyjx.core.prefixes import structure_differences
from pyjx.core.records import Alike
from pyjx.core.references import is_ref
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.discharge import addupdate_p
from pyjx.engine.functions import FlatFun, check_values, flatten, source_of
from pyjx.engine.linearize import LinearProgram, LinearVar
from pyjx.engine.logs import Lost, logging
from pyjx.engine.subjaxprs import selected
from pyjx.engine.tangents import Zero, as_given, instantiate, materialized
from pyjx.engine.types import R, S, Tangent, TreeDef
from pyjx.guards import guard
from pyjx.runtime.jit import jit
from pyjx.transforms.arguments import (
    at_argnums,
    canonical_argnums,
    check_callable,
    linearized,
    prefix_of_bools,
    wanted_inputs,
)
from pyjx.transforms.linearize import LinearForm
from pyjx.tree_util import (
    keystr,
    of_each_leaf,
    register_pytree_node,
    register_static,
    tree_leaves,
    tree_structure,
)


class _Place(Alike):
    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Place):
    """The gradient is to be returned."""

    __slots__ = ()


class DontWant(_Place):
    """The gradient is not to be computed."""

    __slots__ = ()


@register_static
class GradRef(_Place):
    """Returned in place of a gradient that was added to a reference."""

    __slots__ = ()


@register_static
class DidntWant(_Place):
    """Returned in place of a gradient that was not wanted."""

    __slots__ = ()


@overload
def vjp(fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False,
        reduce_axes: Sequence[Any] = (), saveable_args: Any = True, in_nzs: Any = None
        ) -> tuple[R, VJP]: ...


@overload
def vjp(fun: Callable[..., tuple[R, S]], *primals: Any, has_aux: Literal[True],
        reduce_axes: Sequence[Any] = (), saveable_args: Any = True, in_nzs: Any = None
        ) -> tuple[R, VJP, S]: ...


@overload  # of a flag that is not known
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False,
        reduce_axes: Sequence[Any] = (), saveable_args: Any = True, in_nzs: Any = None
        ) -> Any: ...


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False,
        reduce_axes: Sequence[Any] = (), saveable_args: Any = True, in_nzs: Any = None) -> Any:
    """The outputs of a function, and the function that pulls cotangents back through it.

    For f at x the second result maps a cotangent v of f(x) to the tuple of cotangents of the
    arguments, J(x)^T v: the vector-Jacobian product.

    Args:
      fun: takes positional arguments; arguments and results are pytrees of arrays.
      *primals: the arguments.
      has_aux: `fun` returns a pair, whose second element is passed on undifferentiated.
      saveable_args: a tree of bools, a prefix of `primals`. Arguments where it is False and that
        the derivative needs are left out of the function returned; its `args_res` then has
        `NotSaveable()` in their place, to be replaced before the call.
      in_nzs: a tree of bools, a prefix of `primals`: the arguments to differentiate by, None for
        all. The cotangents of the others are zero.

    Returns:
      `(outputs, function)`, and the auxiliary data as third element with `has_aux`. The function
      is a pytree whose leaves are the values it keeps, so it may be passed to and returned from
      transformed functions. It takes one argument, a cotangent of the structure of the outputs.

    Raises:
      TypeError: `fun` is not callable, or an argument or result is not an array.

    >>> import pyjx as jax
    >>> y, pull_back = jax.vjp(lambda a, b: a * b, 2.0, 3.0)
    >>> [float(ct) for ct in pull_back(1.0)]
    [3.0, 2.0]
    """
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to vjp is deprecated")
    check_callable(fun)
    leaves, in_tree = flatten(primals)
    check_values(leaves)
    flat = FlatFun(fun, in_tree, has_aux)
    outs, program = linearized(flat, leaves, wanted_inputs(leaves, primals, in_nzs))
    pull_back = VJP(program, in_tree, flat.out_tree, [get_aval(x) for x in leaves],
                    [get_aval(x) for x in outs], leaves, fun)
    if saveable_args is not True:
        pull_back.forget(prefix_of_bools("saveable_args", saveable_args, primals))
    return flat.with_derivative(outs, pull_back)


class NotNeeded:
    """In `args_res`: the derivative does not need the argument."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NotNeeded()"


class NotSaveable:
    """In `args_res`: the argument was not kept, and must be put here before the call."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NotSaveable()"


@guard
class VJP:
    """The function that pulls a cotangent of the outputs back to cotangents of the arguments.

    Attributes:
      in_tree, out_tree: structures of the arguments and of the outputs.
      args_res: the list of the arguments, with `NotNeeded()` for each array that the derivative
        does not need as it is. It may be assigned; None stands for an argument that is taken out,
        and put back before the call.
      opaque_residuals: the other values kept from the forward pass.
      structured_residuals: those that have a structure of their own; none here.
      jaxpr: the derivative that is transposed, as a program of residuals and tangents.
      out_nzs: which outputs depend on the arguments, a tree of bools.
      fun: what makes the program that is run of the values that are kept. One that calls it may be
        put in its place, for this object.
    """

    __slots__ = ("__weakref__", "_args", "_form", "_fun", "_opaque", "_program", "_state",
                 "in_tree", "out_tree")

    def __init__(self, program: LinearProgram, in_tree: TreeDef, out_tree: TreeDef,
                 in_avals: Sequence[Any], out_avals: Sequence[Any], args: Sequence[Any],
                 fun: Callable[..., Any]) -> None:
        self._program: LinearProgram | None = program
        self.in_tree = in_tree
        self.out_tree = out_tree
        self._state = in_avals, out_avals, args, fun
        self._form: LinearForm | None = None
        self._fun: Callable[[Sequence[Any]], LinearProgram] | None = None
        self._args: list[Any] = []
        self._opaque: list[Any] = []

    def __call__(self, out_ct: Any, *extra: Any) -> Any:
        return self._pulled(out_ct, extra)[0]

    def with_refs(self, *destinations: Any) -> Callable[[Any], Any]:
        """A function of a cotangent that puts the gradients where `destinations` say.

        There is one for each argument leaf, in a structure like that of the arguments: a reference,
        to which the gradient is added (its place in the result is `jax.ad.GradRef()`),
        `jax.ad.DontWant()`, or anything else, such as `jax.ad.GradValue()`, for a gradient that is
        returned. Arguments that are references need references: what is in them is the cotangent of
        what the function leaves in the argument, and is replaced by that of what it found there.

        Raises:
          ValueError: the structure is another one.

        >>> import pyjx as jax
        >>> _, pull_back = jax.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> total = jax.new_ref(10.0)
        >>> result = pull_back.with_refs(total, jax.ad.GradValue())(1.0)
        >>> total, result
        (Ref(13., dtype=float32), (GradRef(), Array(2., dtype=float32, weak_type=True)))
        """
        leaves, tree = flatten(destinations)
        name, in_avals, _ = self._ends()
        if tree != self.in_tree:
            _raise_bad_destinations(name())
        for i, (d, aval) in enumerate(zip(leaves, in_avals, strict=True)):
            if _is_inexact_ref(aval) and not is_ref(d) and type(d) is not DontWant:
                _raise_no_gradient_ref(name(), i)
        return partial(self._pulled_into, leaves)

    def _pulled_into(self, destinations: list[Any], out_ct: Tangent, *extra: Any) -> Any:
        """The call of the function that `with_refs` gives."""
        in_avals = self._ends()[1]
        refs = [d for d, a in zip(destinations, in_avals, strict=True)
                if _is_inexact_ref(a) and is_ref(d)]
        ref_cts = [d[...] if is_ref(d) else Zero.cotangent_of(a.inner_aval)
                   for d, a in zip(destinations, in_avals, strict=True) if _is_inexact_ref(a)]
        in_cts = self._in_cts(out_ct, extra, ref_cts)[0]
        results: list[Any] = []
        for ct, d, aval in zip(in_cts, destinations, in_avals, strict=True):
            if is_ref(d):
                if any(d is r for r in refs):
                    d[...] = instantiate(Zero(d.aval.inner_aval) if ct is None else ct)
                elif ct is not None and type(ct) is not Zero:
                    addupdate_p.bind(d, ct, indexers=())
                results.append(GradRef())
            elif type(d) is DontWant:
                results.append(DidntWant())
            else:
                results.append(materialized(_value_of(ct, aval)))
        return self.in_tree.unflatten(results)

    def with_logs(self, out_ct: Tangent, *extra: Any) -> tuple[Any, dict[Any, Any]]:
        """The cotangents of the arguments, and what backward rules have logged.

        The rules are those of `custom_vjp` functions given by `defvjp_with_logs`. Logs of mapped
        functions have the batch axis in front.

        Raises:
          ValueError: two rules log under one name.
          NotImplementedError: a rule inside a bounded while loop or a custom_vmap function logs.
        """
        cotangents, log = self._pulled(out_ct, extra)
        lost = [key for key, value in log.items() if type(value) is Lost]
        if lost:
            raise NotImplementedError(
                f"with_logs: {', '.join(map(repr, lost))} is logged inside a while loop or a "
                "custom_vmap function, whose logs do not leave it. Log outside of it, or use scan.")
        return cotangents, log

    def _pulled(self, out_ct: Tangent, extra: tuple[Any, ...]) -> tuple[Any, dict[Any, Any]]:
        name, in_avals, _ = self._ends()
        for i, a in enumerate(in_avals):
            if _is_inexact_ref(a):
                _raise_no_gradient_ref(name(), i)
        in_cts, log = self._in_cts(out_ct, extra, ())
        return self.in_tree.unflatten(as_given(
            map(_value_of, in_cts, in_avals), tree_leaves(out_ct))), log

    def _in_cts(self, out_ct: Tangent, extra: tuple[Any, ...], ref_cts: Sequence[Any]
                ) -> tuple[list[Any], dict[Any, Any]]:
        """Cotangents of the arguments, and the log; `ref_cts` are those of the arguments that are
        references, afterwards."""
        name, _, out_avals = self._ends()
        if extra:
            _raise_splatted(name(), 1 + len(extra))
        cotangents, tree = flatten(out_ct)
        if tree != self.out_tree:
            _raise_other_tree(name(), self.out_tree, out_ct)
        check_values(cotangents, "cotangents")
        cotangents = of_each_leaf(_checked, "cotangent", out_ct, cotangents, out_avals)
        program = self._program
        if program is None:
            program = self._filled()
        with logging() as log:
            in_cts = program.backward([*cotangents, *ref_cts])
        return in_cts, log

    def _ends(self) -> tuple[Callable[[], str], Sequence[Any], Sequence[Any]]:
        form = self._form
        if form is not None:
            return lambda: form.name, form.in_avals, form.out_avals
        in_avals, out_avals, _, fun = self._state
        return lambda: source_of(fun), in_avals, out_avals

    def _separated(self) -> LinearForm:
        """Take the residuals out of the program."""
        if self._form is None:
            assert self._program is not None
            program = self._program.pruned()
            in_avals, out_avals, args, fun = self._state
            residuals = program.residuals(args)
            ids = {id(r) for r in residuals}
            arg_ids = {id(x) for x in args}
            leaves = [x if id(x) in ids else NotNeeded() for x in args]
            self._args = list(self.in_tree.unflatten(leaves))
            self._opaque = [r for r in residuals if id(r) not in arg_ids]
            # An argument given twice fills its holes from its last place.
            order = [*leaves, *self._opaque]
            self._form = LinearForm(program.abstracted(order), self.in_tree, self.out_tree,
                                    in_avals, out_avals, source_of(fun))
            self._program = None
        return self._form

    def _filled(self) -> LinearProgram:
        fun = self.fun
        values = [*self._arg_leaves(), *self._opaque]
        if any(type(x) is NotSaveable for x in values):
            raise ValueError("vjp: args_res has NotSaveable() entries, or None; put the arguments "
                             "there before calling the function")
        return fun(values)

    @property
    def fun(self) -> Callable[[Sequence[Any]], LinearProgram]:
        return self._fun or self._separated()

    @fun.setter
    def fun(self, fun: Callable[[Sequence[Any]], LinearProgram]) -> None:
        self._separated()
        self._fun = fun

    def forget(self, saveable: Sequence[bool]) -> None:
        """Drop the arguments that may not be kept."""
        self._separated()
        self._args = list(self.in_tree.unflatten([
            x if keep or type(x) is NotNeeded else NotSaveable()
            for x, keep in zip(self._arg_leaves(), saveable, strict=True)]))

    def _arg_leaves(self) -> list[Any]:
        """What stands for each leaf of the arguments."""
        leaves: list[Any] = []
        for subtree, value in zip(self.in_tree.children(), self._args, strict=True):
            if value is None or _is_missing(value):
                missing = NotSaveable() if value is None else value
                leaves += [missing] * subtree.num_leaves
                continue
            given, tree = flatten(value, _is_missing)
            if tree != subtree:
                raise ValueError(f"vjp: args_res has an argument of the structure {tree}, expected "
                                 f"{subtree}, that of the argument given to vjp")
            leaves += given
        return leaves

    @property
    def args_res(self) -> list[Any]:
        self._separated()
        return self._args

    @args_res.setter
    def args_res(self, values: Sequence[Any]) -> None:
        self._separated()
        n = len(self.in_tree.children())
        if len(values) != n:
            raise ValueError(f"vjp: args_res has {n} entries, one for each argument, got "
                             f"{len(values)}")
        self._args = list(values)

    @property
    def opaque_residuals(self) -> list[Any]:
        self._separated()
        return self._opaque

    @opaque_residuals.setter
    def opaque_residuals(self, values: Sequence[Any]) -> None:
        self._separated()
        self._opaque = list(values)

    @property
    def structured_residuals(self) -> list[Any]:
        return []

    @property
    def jaxpr(self) -> Jaxpr:
        form = self._separated()
        leaves = self._arg_leaves()
        needed = [type(x) is not NotNeeded for x in leaves]
        n = len(self._opaque) + sum(needed)
        invars = form.program.invars

        def pushed(*values: Any) -> list[Any]:
            given = iter(values[:n])
            residuals = [next(given) if flag else None for flag in needed]
            tangents = iter(values[n:])
            return list(map(instantiate, form.program.filled([*residuals, *given]).forward(
                [None if v is None else next(tangents) for v in invars])))

        return trace_to_jaxpr(pushed, [
            *selected(form.in_avals, needed), *map(get_aval, self._opaque),
            *[v.aval for v in invars if v is not None]]).jaxpr

    def replace(self, **changes: Any) -> VJP:
        """The function with other values for some of `args_res` and `opaque_residuals`.

        Raises:
          TypeError: another name is given.

        >>> import pyjx as jax
        >>> pull_back = jax.vjp(lambda x, y: x * y, jax.numpy.ones(2), jax.numpy.ones(2))[1]
        >>> [ct.tolist() for ct in pull_back.replace(args_res=[2.0, 3.0])(jax.numpy.ones(2))]
        [[3.0, 3.0], [2.0, 2.0]]
        """
        form = self._separated()
        values = {"args_res": self._args, "opaque_residuals": self._opaque}
        for name in changes.keys() - values.keys():
            raise TypeError(f"vjp: replace() takes args_res and opaque_residuals, got {name!r}")
        values |= changes
        new = _unflatten_vjp(form, ([], []))
        new.args_res = values["args_res"]
        new.opaque_residuals = values["opaque_residuals"]
        return new

    @property
    def out_nzs(self) -> Any:
        program = self._program or self._separated().program
        return self.out_tree.unflatten([type(x) is LinearVar for x in program.outs])

    def __repr__(self) -> str:
        return (f"VJP(fun={self._ends()[0]()}, in_tree={self.in_tree}, out_tree={self.out_tree}, "
                f"args_res={self.args_res}, opaque_residuals={self.opaque_residuals})")


def _checked(ct: Any, aval: AbstractValue) -> Any:
    """The cotangent, if it is one of an output of this type."""
    expected = cotangent_aval(aval)
    if expected.is_float0:
        return Zero(expected)
    found = get_aval(ct)
    if not expected.describes(found) or not same_over_mesh(found, expected):
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{found.str_short()}, but expected {expected.str_short()} because the "
            f"corresponding output of the differentiated function had JAX type {aval.str_short()}")
    return ct


def _value_of(ct: Tangent, aval: AbstractValue) -> Any:
    """A cotangent, a zero among them. One of a reference of integers there is not."""
    if type(aval) is AbstractRef:
        return DidntWant()
    return Zero.cotangent_of(aval) if ct is None else ct


def _is_inexact_ref(aval: AbstractValue) -> bool:
    """Whether values of this type are references that are differentiated."""
    return type(aval) is AbstractRef and dtypes.issubdtype(aval.dtype, np.inexact)


def _is_missing(x: Any) -> bool:
    return type(x) is NotNeeded or type(x) is NotSaveable


def _flatten_vjp(f: VJP) -> tuple[Any, Any]:
    form = f._separated()
    return (f._args, f._opaque), form


def _unflatten_vjp(form: LinearForm, children: Any) -> VJP:
    f = object.__new__(VJP)
    f._program = None
    f.in_tree = form.in_tree
    f.out_tree = form.out_tree
    f._form = form
    f._fun = None
    f._args, f._opaque = children
    return f


register_pytree_node(VJP, _flatten_vjp, _unflatten_vjp)
register_pytree_node(NotNeeded, lambda x: ((), None), lambda aux, children: NotNeeded())
register_pytree_node(NotSaveable, lambda x: ((), None), lambda aux, children: NotSaveable())


# -- errors ----------------------------------------------------------------------------------------


def _raise_bad_destinations(name: str) -> None:
    raise ValueError(
        "unexpected tree structure in the arguments to a VJP function's `with_refs` method.\n\nThe "
        "arguments to `with_refs` must match the pytree structure of the primal arguments of the "
        f"differentiated function {name}, with one entry for each array argument. Each entry must "
        "be a `Ref` (to accumulate this argument's gradient into the ref in-place), a "
        "`jax.ad.GradValue()` (to have this argument's gradient returned as a value) or a "
        "`jax.ad.DontWant()` (to skip computing it).")


def _raise_no_gradient_ref(name: str, i: int) -> None:
    raise ValueError(
        f"the argument at position args[{i}] of the differentiated function {name} is Ref-typed, "
        "so its gradient must be accumulated into a ref, but no gradient ref was provided. Bind "
        "one using the VJP function's `with_refs` method before applying it, as in "
        "`f_vjp.with_refs(grad_ref)(ct)`. Or, to skip computing this argument's gradient, pass "
        "`jax.ad.DontWant()` in place of a gradient ref.")


def _raise_splatted(name: str, n: int) -> None:
    raise TypeError(
        f"The function returned by `jax.vjp` applied to {name.split(' ')[0]} was called with {n} "
        "arguments, but functions returned by `jax.vjp` must be called with a single argument "
        "corresponding to the single value returned by the function being differentiated (even if "
        "that returned value is a tuple or other container).\nFor a function that returns a pair, "
        "call it as f_vjp((a, b)) and not as f_vjp(a, b).")


def _raise_other_tree(name: str, out_tree: TreeDef, cotangent: Tangent) -> None:
    details = "".join([
        f"\n  * out{keystr(path)} was a {one} in the original output, but a {other} here, so {why}."
        for path, one, other, why in structure_differences(out_tree, tree_structure(cotangent))])
    raise ValueError("unexpected tree structure.\n\nThe argument to a VJP function returned by "
                     "`jax.vjp` must match the pytree\nstructure of the differentiated function "
                     f"{name}.\n\nBut the tree structures differ:{details}")


def fwd_and_bwd(fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of a function, compiled one by one.

    Args:
      fun: arguments and results are pytrees of arrays.
      argnums: position or positions of the arguments to differentiate by.
      has_aux: `fun` returns a pair, whose second element is passed on undifferentiated.
      jitted: compile both.

    Returns:
      `(fwd, bwd)`. `fwd` takes the arguments of `fun` and returns `(output, residuals)`, and the
      auxiliary data as third element with `has_aux`. `bwd` takes the residuals and a cotangent of
      the output, and returns the cotangent of the argument at `argnums`, or a tuple of cotangents.

    Raises:
      TypeError: `fun` is not callable.

    >>> import pyjx as jax
    >>> fwd, bwd = jax.fwd_and_bwd(lambda x, y: x * y, 0)
    >>> out, residuals = fwd(2.0, 3.0)
    >>> float(out), float(bwd(residuals, 1.0))
    (6.0, 3.0)
    """
    check_callable(fun)
    numbers = canonical_argnums("fwd_and_bwd", argnums)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        f, dynamic = at_argnums(fun, numbers, args, kwargs)
        return vjp(f, *dynamic, has_aux=has_aux)

    def bwd(residuals: Callable[[Any], Any], outgrad: Any) -> Any:
        cotangents = residuals(outgrad)
        return cotangents[0] if isinstance(numbers, int) else cotangents

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
