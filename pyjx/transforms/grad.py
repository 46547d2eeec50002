"""Gradients for users, `grad` and `value_and_grad`, and whole derivatives, by mapping `jvp` or
`vjp` over the vectors of a basis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NoReturn

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import AbstractRef, ShapedArray, cotangent_aval, get_aval, is_ref_type
from pyjx.core.explicit import with_dim
from pyjx.core.frames import is_internal
from pyjx.core.places import UNIFORM
from pyjx.core.primitive import cast_like
from pyjx.core.scalars import scalar_of
from pyjx.core.specs import PartitionSpec
from pyjx.core.trace import eager_trace, ensure_compile_time_eval, state
from pyjx.core.value_texts import in_short, shortened_text
from pyjx.engine.axes import broadcast_in_dim_p
from pyjx.engine.functions import FlatFun, check_values, flatten, of_transformation, source_of
from pyjx.engine.linearize import LinearProgram
from pyjx.engine.logs import logging
from pyjx.engine.moves import lying_as, made_to_lie, mesh_of_array
from pyjx.engine.primitives import cast, iota_p
from pyjx.engine.tangents import TO_BE_LINEAR, Zero, full_aval, materialized
from pyjx.engine.types import P, R, TreeDef
from pyjx.guards import guard
from pyjx.jaxlib_api import NamedSharding
from pyjx.lazy import deferred
from pyjx.runtime.jit import jit
from pyjx.runtime.signature import leaf_names, parameters_of
from pyjx.transforms.arguments import (
    at_argnums,
    canonical_argnums,
    check_callable,
    is_inexact,
    linearized,
    wraps,
)
from pyjx.transforms.linearize import jvp
from pyjx.transforms.vjp import vjp
from pyjx.transforms.vmap import vmap
from pyjx.tree_util import tree_leaves

custom_rules = deferred("pyjx.transforms.custom_vjp")  # for errors


# -- gradients -------------------------------------------------------------------------------------

_GRAD_DOC = (
    "Gradient of {{fun}} with respect to positional argument(s) {argnums}. Takes the same "
    "arguments as {{fun}} but returns the gradient, which has the same shape as the arguments at "
    "positions {argnums}.")
_VALUE_AND_GRAD_DOC = (
    "Value and gradient of {{fun}} with respect to positional argument(s) {argnums}. Takes the "
    "same arguments as {{fun}} but returns a two-element tuple where the first element is the "
    "value of {{fun}} and the second element is the gradient, which has the same shape as the "
    "arguments at positions {argnums}.")


def grad(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
         memory_budget: str | float | None = None) -> Callable[P, Any]:
    """A function that computes the gradient of a scalar function.

    Args:
      fun: returns a scalar of a floating dtype, or a pair of one and auxiliary data with
        `has_aux`. The arguments at `argnums` are pytrees of arrays.
      argnums: position or positions of the arguments to differentiate by. Keyword arguments are
        constants.
      has_aux: `fun` returns a pair whose second element is passed on undifferentiated.
      holomorphic: `fun` is complex and complex differentiable; the result is its complex
        derivative. Without it the gradient by a complex argument z = x + iy of a real function f
        is df/dx - i df/dy.
      allow_int: integer and boolean arguments are allowed; their gradients have dtype float0.
      memory_budget: the function is jitted, within so much memory, as `jit` takes it. In a program
        around it this part is planned by itself.

    Returns:
      A function of the same arguments. It returns the gradient by the argument at `argnums`, or a
      tuple of gradients if that is a sequence, and with `has_aux` a pair of that and the auxiliary
      data.

    Raises:
      TypeError: the inputs or outputs are not of the dtypes above, the output is not a scalar, or
        there are too few positional arguments.

    >>> import pyjx as jax
    >>> float(jax.grad(lambda x: x * x)(3.0))
    6.0
    """
    value_and_grad_of = _value_and_grad(
        "grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    if has_aux:
        def grad_f(*args: Any, **kwargs: Any) -> Any:
            (_, aux), g = value_and_grad_of(*args, **kwargs)
            return g, aux
    else:
        def grad_f(*args: Any, **kwargs: Any) -> Any:
            return value_and_grad_of(*args, **kwargs)[1]

    return _within(memory_budget, wraps(fun, grad_f, _GRAD_DOC.format(argnums=argnums)))


def value_and_grad(fun: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False,
                   reduce_axes: Sequence[Any] = (), memory_budget: str | float | None = None
                  ) -> Callable[P, tuple[R, Any]]:
    """A function that computes both a scalar function and its gradient.

    Arguments and errors are those of `grad`.

    Returns:
      A function that returns `(value, gradient)`, or `((value, aux), gradient)` with `has_aux`.

    >>> import pyjx as jax
    >>> value, gradient = jax.value_and_grad(lambda x: x * x)(3.0)
    >>> float(value), float(gradient)
    (9.0, 6.0)
    """
    inner = _value_and_grad(
        "value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    return _within(memory_budget, wraps(fun, inner, _VALUE_AND_GRAD_DOC.format(argnums=argnums)))


def _within(memory_budget: str | float | None, fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function, jitted within so much memory if that is bounded."""
    return fun if memory_budget is None else jit(fun, memory_budget=memory_budget)


@guard
def _value_and_grad(name: str, fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool,
                    holomorphic: bool, allow_int: bool, reduce_axes: Sequence[Any]
                   ) -> Callable[..., Any]:
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes argument to {name} is deprecated")
    check_callable(fun)
    numbers = canonical_argnums(name, argnums)

    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        f, dynamic = at_argnums(fun, numbers, args, kwargs)
        leaves, in_tree = flatten(dynamic)
        check_values(leaves)
        wanted = _differentiable(leaves, holomorphic, allow_int,
                                 lambda: _input_names(fun, numbers, args))
        flat = FlatFun(f, in_tree, has_aux, fun)
        outs, program = linearized(flat, leaves, wanted)
        aval = _scalar_aval(fun, outs, flat.out_tree, holomorphic, program)
        with logging():
            try:
                cotangents = program.backward([_one(outs[0], aval)])
            except (NotImplementedError, TypeError) as error:
                if TO_BE_LINEAR in str(error):
                    for rule in dict.fromkeys([source_of(x.jvp) for x in _rules_of_user(program)]):
                        error.add_note(f"A rule of custom_jvp in it is {rule}: what it gives must "
                                       "be linear in the tangents.")
                raise
        gradients = in_tree.unflatten([
            materialized(Zero.cotangent_of(get_aval(x)) if g is None else g)
            for g, x in zip(cotangents, leaves, strict=True)])
        g = gradients[0] if isinstance(numbers, int) else gradients
        return flat.unflatten(outs), g

    return value_and_grad_f


def _one(out: Any, aval: ShapedArray) -> Any:
    """The cotangent of an output, on its devices where types alone say that those are several."""
    one, mesh = scalar_of(aval, 1), mesh_of_array(out)
    if mesh is None or not mesh.explicit_axes or configuration.mesh.value is not None:
        return one
    return made_to_lie(one, NamedSharding(mesh.abstract_mesh, PartitionSpec()), mesh)


def _differentiable(leaves: Sequence[Any], holomorphic: bool, allow_int: bool,
                    names: Callable[[], Sequence[str]]) -> list[bool] | None:
    """Which inputs of `grad` have a derivative; None stands for all. `names` are for errors.

    Raises:
      TypeError: one has not, and should.
    """
    all_wanted = True
    for i, x in enumerate(leaves):
        aval = get_aval(x)
        if is_ref_type(aval):
            raise TypeError("grad cannot differentiate with respect to a Ref-typed argument, "
                            "because the gradient for a ref must itself be accumulated into a ref. "
                            "Instead, use `jax.vjp` and bind a gradient ref using the returned VJP "
                            "function's `with_refs` method. (Ref arguments not selected by grad's "
                            "argnums are fine: they are not differentiated.)")
        if aval.is_high:
            continue
        dtype = aval.dtype
        if dtype in dtypes.complex_dtypes:
            continue
        if holomorphic:
            raise _not_complex("grad", "inputs", dtype)
        if dtype not in dtypes.floating_dtypes:
            if not allow_int:
                raise_not_inexact("grad", dtype, names()[i])
            all_wanted = False
    return None if all_wanted else [is_inexact(x) for x in leaves]


def _input_names(fun: Callable[..., Any], numbers: int | tuple[int, ...], args: Sequence[Any]
                 ) -> list[str]:
    """What is said of each leaf of the arguments that are differentiated, if it has no derivative:
    its name, such as `params['w']`, and what has one."""
    chosen = [i % len(args) for i in ((numbers,) if isinstance(numbers, int) else numbers)]
    # the others may be what is no pytree
    given = tuple([x if i in chosen else 0 for i, x in enumerate(args)])
    tree = flatten((given, {}))[1]
    left = iter(leaf_names(parameters_of(fun), tree, ()))
    own = [list(islice(left, child.num_leaves)) for child in tree.children()[0].children()]
    return [_integer_input(name, x, args[i]) for i in chosen
            for name, x in zip(own[i], flatten(args[i])[0], strict=True)]


def _integer_input(name: str, x: Any, argument: Any) -> str:
    def holds(node: Any) -> bool:  # a node whose children have no names, but attributes
        return any([value is x for value in getattr(node, "__dict__", {}).values()])

    node = next(filter(holds, tree_leaves(argument, is_leaf=holds)), None)
    if node is not None and name.endswith("]"):
        of = name.rpartition("[")[0]
        name = f"{of}.{next(k for k, value in vars(node).items() if value is x)}"
        if cure := getattr(node, "_cure_for_grad", None):  # as sparse arrays have
            return f" The input is {name}: {cure.format(of)}"
    if isinstance(x, int):
        return f" The input is {name}, which is {x!r}: write {float(x)!r}."
    aval = get_aval(x)
    cure = "" if dtypes.is_extended(aval.dtype) else f": {name}.astype(float) has a gradient"
    of_bool = aval.dtype == np.bool_
    # an argument of what is traced, which may be Python's: arrays of Booleans have no other type
    if getattr(x, "_eqn", x) is None and aval.shape == () and (aval.weak_type or of_bool):
        cure = (f", as Python's {'bool' if of_bool else 'int'} is: outside of the traced function "
                f"write it as a float, such as 1.0, or float({name})")
    indices = " Indices stay out of argnums." * bool(aval.shape and cure and not of_bool)
    return f" The input is {name}, of type {aval.str_short()}{cure}.{indices}"


def raise_not_inexact(name: str, dtype: DTypeLike, which: str = "") -> NoReturn:
    """Say that `name` cannot differentiate by an input of this dtype; `which` tells more of it."""
    raise TypeError(f"{name} requires real- or complex-valued inputs (input dtype that is a "
                    f"sub-dtype of np.inexact), but got {dtypes.name(dtype)}. If you want to use "
                    f"Boolean- or integer-valued inputs, use vjp or set allow_int to True.{which}")


def _scalar_aval(fun: Callable[..., Any], outs: Sequence[Any], out_tree: TreeDef,
                 holomorphic: bool, program: LinearProgram) -> ShapedArray:
    """The aval of the output of a function that `grad` may differentiate; `program`, its
    derivative, is for errors."""
    if out_tree.num_nodes != 1 or len(outs) != 1:
        out = shortened_text(in_short(out_tree.unflatten(outs)), 300)
        raise TypeError(f"Gradient only defined for scalar-output functions. Output was {out}."
                        f"{_of(fun, _cure(out_tree, outs))}{_rule_that_gave(out_tree, program)}")
    aval = get_aval(outs[0])
    if aval.shape:
        cure = "reduce the output to a scalar with output.sum()"
        if aval.size == 1:
            at = ", ".join(["0"] * len(aval.shape))
            cure = f"extract the scalar with output.reshape(()) or output[{at}], {cure}"
        summed = _SUM if of_transformation(fun)[0] else ""
        raise TypeError("Gradient only defined for scalar-output functions. Output had shape: "
                        f"{aval.shape}. To get the gradient, {cure}, or use jax.jacobian to "
                        f"differentiate a function with a non-scalar output.{_of(fun)}{summed}")
    check_output_dtype("grad", fun, out_tree, aval.dtype, holomorphic)
    return aval


_SUM = " With f for it, jax.grad(lambda *args: f(*args).sum()) is the gradient of the sum."


def _of(fun: Callable[..., Any], cure: str = "") -> str:
    """Which function an output is of, after a cure, which rules of the user's have not."""
    rule = fun.fwd if isinstance(fun, custom_rules.custom_vjp) else None
    if rule is None:
        return f"{cure} The function is {''.join(of_transformation(fun))}."
    return (f" That is what {source_of(rule)} gave beside residuals, a rule of {source_of(fun)}: "
            "it must be the output of the function.")


def _rule_that_gave(out_tree: TreeDef, program: LinearProgram) -> str:
    """Which rule of custom_jvp gave what is no scalar, if one has given such a tree: whether its
    function returns one is not known, as the rule ran in its place."""
    rule = next((x for x in _rules_of_user(program) if x.fun.out_tree == out_tree), None)
    return "" if rule is None else (
        f" A rule of custom_jvp gave such an output: if {rule.fun.__name__} returns a scalar, the "
        f"rule must, too. {rule.told_call()}")


def _rules_of_user(program: LinearProgram) -> list[Any]:
    """The rules of custom_jvp that have run, but for those of the library."""
    found = []
    for rule in program.rules:
        while hasattr(rule, "of"):  # of a batch
            rule = rule.of
        code = getattr(getattr(rule, "jvp", None), "__code__", None)
        if hasattr(rule, "jvp") and not (code and is_internal(code.co_filename)):
            found.append(rule)
    return found


def _cure(out_tree: TreeDef, outs: Sequence[Any]) -> str:
    if cure := _own_cure(out_tree):
        return cure
    if out_tree.node_data() is not None and out_tree.node_data()[0] is type(None):
        return " The function must return its value."
    children = out_tree.children()
    if out_tree.node_data()[0] in (tuple, list) and len(children) == 2 and (
            children[0].num_nodes == children[0].num_leaves == 1):
        summed = "make that a scalar, as by .sum(), and " if np.shape(outs[0]) else ""
        return (" If the second element is auxiliary data and the first one the value to "
                f"differentiate, {summed}use has_aux=True.")
    if out_tree.num_leaves == 1:
        return " Let the function return the array itself, or use jax.jacobian."
    return " To differentiate several values, use jax.jacobian."


def _own_cure(out_tree: TreeDef) -> str:
    """What a class says of itself as an output, or the first one, as checkify's errors do."""
    for tree in [out_tree, *out_tree.children()[:1]]:
        node = tree.node_data()
        if node and hasattr(node[0], "_cure_for_output"):
            return f" {node[0]._cure_for_output}"
    return ""


def check_output_dtype(name: str, fun: Callable[..., Any], out_tree: TreeDef, dtype: DTypeLike,
                       holomorphic: bool) -> None:
    """Raise TypeError unless reverse mode `name` may differentiate an output of this dtype, which
    is one of those in `out_tree`."""
    if dtype in (dtypes.complex_dtypes if holomorphic else dtypes.floating_dtypes):
        return
    of = _of(fun, _own_cure(out_tree))
    if holomorphic:
        raise _not_complex(name, "outputs", dtype, of)
    cure = "For differentiation of functions with integer outputs"
    if dtype in dtypes.complex_dtypes:
        cure = ("For holomorphic differentiation, pass holomorphic=True. For differentiation of "
                "non-holomorphic functions involving complex outputs")
    raise TypeError(f"{name} requires real-valued outputs (output dtype that is a sub-dtype of "
                    f"np.floating), but got {dtypes.name(dtype)}. {cure}, use jax.vjp directly.{of}"
                   )


# -- whole derivatives -----------------------------------------------------------------------------

_DOC = (
    "Jacobian of {{fun}} with respect to positional argument(s) {argnums}. Takes the same "
    "arguments as {{fun}} but returns the jacobian of the output with respect to the arguments at "
    "positions {argnums}.")


def jacfwd(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Callable[P, Any]:
    """A function that computes the Jacobian of `fun`, column by column, in forward mode.

    It costs one pass for each element of the argument, all in one vectorized computation: right
    for functions with at least as many outputs as inputs.

    Args:
      fun: arguments and results are pytrees of arrays.
      argnums: position or positions of the arguments to differentiate by.
      has_aux: `fun` returns a pair whose second element is passed on undifferentiated.
      holomorphic: `fun` is complex and complex differentiable.

    Returns:
      A function of the same arguments. For each output leaf of shape s and each argument leaf of
      shape t the result has an array of shape s + t: a tree with the structure of the output whose
      leaves are trees with the structure of the argument.

    Raises:
      TypeError: an input is not real (or not complex with `holomorphic`), or an output is boolean.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> jax.jacfwd(lambda x: x * x)(np.array([1.0, 2.0], "float32")).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacfwd("jacfwd", fun, argnums, has_aux, holomorphic)


def _jacfwd(name: str, fun: Callable[P, Any], argnums: int | Sequence[int], has_aux: bool,
            holomorphic: bool) -> Callable[P, Any]:
    """The function that the public one of this name, which errors tell, gives."""
    check_callable(fun)
    numbers = canonical_argnums(name, argnums)

    def jacobian_f(*args: Any, **kwargs: Any) -> Any:
        f, dynamic = at_argnums(fun, numbers, args, kwargs, forward=True)
        leaves, in_tree = flatten(dynamic)
        check_values(leaves)
        _check_forward_inputs(name, leaves, holomorphic, lambda: _input_names(fun, numbers, args))

        def push(*tangents: Any) -> Any:
            result = jvp(f, dynamic, in_tree.unflatten(tangents), has_aux)
            return result[1], ((result[0], result[2]) if has_aux else (result[0], None))

        out_tangents, (out, aux) = vmap(push, out_axes=(-1, None))(*_basis(leaves))
        outs, out_tree = flatten(out)
        for dtype in [get_aval(y).dtype for y in outs]:
            if holomorphic and dtype not in dtypes.complex_dtypes:
                raise _not_complex(name, "outputs", dtype)
            if dtype == np.bool_:
                raise TypeError(f"{name}: the function returns values of dtype bool, which have no "
                                "derivative. Return them as aux, or convert them to numbers.")
        columns = flatten(out_tangents)[0]
        one = isinstance(numbers, int)
        rows = [in_tree.unflatten(_blocks(t, y, leaves, False))
                for t, y in zip(columns, outs, strict=True)]
        jacobian = out_tree.unflatten([row[0] if one else row for row in rows])
        return (jacobian, aux) if has_aux else jacobian

    return wraps(fun, jacobian_f, _DOC.format(argnums=argnums))


def jacrev(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False, allow_int: bool = False) -> Callable[P, Any]:
    """A function that computes the Jacobian of `fun`, row by row, in reverse mode.

    It costs one backward pass for each element of the output, all in one vectorized computation:
    right for functions with fewer outputs than inputs. Arguments and results are those of
    `jacfwd`; `allow_int` allows integer and boolean arguments.

    Raises:
      TypeError: inputs or outputs are not of the dtypes that `grad` takes.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> jax.jacrev(lambda x: x * x)(np.array([1.0, 2.0], "float32")).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacrev("jacrev", fun, argnums, has_aux, holomorphic, allow_int)


def _jacrev(name: str, fun: Callable[P, Any], argnums: int | Sequence[int], has_aux: bool,
            holomorphic: bool, allow_int: bool) -> Callable[P, Any]:
    """The function that the public one of this name, which errors tell, gives."""
    check_callable(fun)
    numbers = canonical_argnums(name, argnums)

    def jacobian_f(*args: Any, **kwargs: Any) -> Any:
        f, dynamic = at_argnums(fun, numbers, args, kwargs)
        leaves, in_tree = flatten(dynamic)
        check_values(leaves)
        _check_reverse_inputs(name, leaves, holomorphic, allow_int,
                              lambda: _input_names(fun, numbers, args))
        result = vjp(f, *dynamic, has_aux=has_aux)
        outs, out_tree = flatten(result[0])
        for y in outs:
            check_output_dtype(name, fun, out_tree, get_aval(y).dtype, holomorphic)
        one = isinstance(numbers, int)
        if not outs:
            jacobian = out_tree.unflatten([])
        else:
            rows = vmap(lambda *cts: result[1](out_tree.unflatten(cts)))(
                *_basis(outs, cotangent_aval))
            by_input = [_blocks(g, x, outs, True)
                        for g, x in zip(flatten(rows)[0], leaves, strict=True)]
            by_output = [in_tree.unflatten(list(column)) for column in zip(*by_input, strict=True)]
            if not by_input:
                by_output = [in_tree.unflatten([]) for _ in outs]
            jacobian = out_tree.unflatten([g[0] if one else g for g in by_output])
        return (jacobian, result[2]) if has_aux else jacobian

    return wraps(fun, jacobian_f, _DOC.format(argnums=argnums))


def jacobian(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
             holomorphic: bool = False, allow_int: bool = False) -> Callable[P, Any]:
    """Another name for `jacrev`.

    >>> import pyjx as jax
    >>> jax.jacobian(lambda x: x * x)(jax.numpy.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacrev("jacobian", fun, argnums, has_aux, holomorphic, allow_int)


def hessian(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable[P, Any]:
    """A function that computes the second derivatives of `fun`: forward over reverse mode.

    For each output leaf of shape s and argument leaves of shapes t and u the result has an array
    of shape s + t + u, in a tree whose levels are those of the output and twice the argument's.

    Raises:
      TypeError: inputs or outputs are not of the dtypes that `grad` takes.

    >>> import pyjx as jax
    >>> float(jax.hessian(lambda x: x * x * x)(2.0))
    12.0
    """
    gradient = _jacrev("hessian", fun, argnums, has_aux, holomorphic, allow_int=False)
    return _jacfwd("hessian", gradient, argnums, has_aux, holomorphic)


# -- basis vectors ---------------------------------------------------------------------------------


def _basis(leaves: Sequence[Any], type_of: Callable[[Any], Any] = lambda aval: aval) -> list[Any]:
    """For each leaf an array of shape (n, *shape): together the n unit vectors of the whole."""
    avals = [type_of(get_aval(x)) for x in leaves]
    n = sum([a.size for a in avals])
    if n == 1 and len(avals) == 1 and avals[0].weak_type:
        return [full_aval(avals[0].update(shape=(1, *avals[0].shape)), 1)]
    basis = []
    start = 0
    for x, aval in zip(leaves, avals, strict=True):
        dtype = aval.to_tangent_aval().dtype
        if type(n) is not int:
            basis.append(_symbolic_block(n, start, aval, dtype))
            start += aval.size
            continue
        block = np.zeros((n, aval.size), dtype)
        if dtype != dtypes.float0:
            np.fill_diagonal(block[start:start + aval.size], 1)
        vectors = _array(block.reshape((n, *aval.shape)))
        if aval.place.sharding is not None:  # they lie as the value that they are changes of
            vectors = lying_as(vectors, with_dim(aval, 0, n), x)
        if aval.place.mat is not UNIFORM and dtype != dtypes.float0:  # and vary as it does
            vectors = cast_like(vectors, aval)
        basis.append(vectors)
        start += aval.size
    return basis


def _symbolic_block(n: Any, start: Any, aval: ShapedArray | AbstractRef, dtype: np.dtype[Any]
                   ) -> Any:
    """The columns of an `n` by `n` identity from `start` on that belong to a value."""
    rows = iota_p.bind(dtype=np.dtype(np.int32), shape=(n, aval.size), dimension=0, sharding=None)
    columns = iota_p.bind(dtype=np.dtype(np.int32), shape=(n, aval.size), dimension=1,
                          sharding=None)
    return (rows == columns + start).astype(dtype).reshape((n, *aval.shape))


def _array(x: np.ndarray[Any, Any]) -> Any:
    """`x` on the device, or where something is recorded as it is."""
    if x.dtype != dtypes.float0 and x.dtype != dtypes.canonicalize_dtype(x.dtype):
        with ensure_compile_time_eval(), configuration.enable_x64(True):
            return _array(x)
    if state.dynamic is not eager_trace or x.dtype == dtypes.float0:
        return x
    return broadcast_in_dim_p.bind(x, shape=x.shape, broadcast_dimensions=tuple(range(x.ndim)),
                                   sharding=None)


def _blocks(x: Any, like: Any, leaves: Sequence[Any], front: bool) -> list[Any]:
    """Cut the axis over the basis, first with `front` and else last, into one block a leaf.

    The blocks have the axes of their leaf in place of that axis, beside those of `like`, and its
    weak type.
    """
    shape = get_aval(like).shape
    if getattr(x, "dtype", None) == dtypes.float0:  # of an integer: zeros
        x = full_aval(get_aval(like).update(shape=x.shape), 0)
    elif get_aval(x).weak_type != get_aval(like).weak_type:
        x = cast(x, x.dtype, get_aval(like).weak_type)
    blocks = []
    start = 0
    for leaf in leaves:
        aval = get_aval(leaf)
        block = x
        if len(leaves) > 1:
            cut = slice(start, start + aval.size)
            block = x[cut] if front else x[..., cut]
        start += aval.size
        if aval.ndim != 1:
            block = block.reshape((*aval.shape, *shape) if front else (*shape, *aval.shape))
        blocks.append(block)
    return blocks


# -- checks ----------------------------------------------------------------------------------------


def _check_forward_inputs(name: str, leaves: Sequence[Any], holomorphic: bool,
                          names: Callable[[], list[str]]) -> None:
    for i, dtype in enumerate([get_aval(x).dtype for x in leaves]):
        if holomorphic:
            if dtype not in dtypes.complex_dtypes:
                raise _not_complex(name, "inputs", dtype)
        elif dtype not in dtypes.floating_dtypes:
            which = "" if dtype in dtypes.complex_dtypes else names()[i]
            raise TypeError(
                f"{name} requires real-valued inputs (input dtype that is a sub-dtype of "
                f"np.floating), but got {dtypes.name(dtype)}. For holomorphic differentiation, "
                "pass holomorphic=True. For differentiation of non-holomorphic functions involving "
                f"complex inputs or integer inputs, use jax.jvp directly.{which}")


def _not_complex(name: str, what: str, dtype: DTypeLike, more: str = "") -> TypeError:
    return TypeError(f"{name} with holomorphic=True requires {what} with complex dtype, but got "
                     f"{dtypes.name(dtype)}.{more}")


def _check_reverse_inputs(name: str, leaves: Sequence[Any], holomorphic: bool, allow_int: bool,
                          names: Callable[[], list[str]]) -> None:
    for i, dtype in enumerate([get_aval(x).dtype for x in leaves]):
        if holomorphic and dtype not in dtypes.complex_dtypes:
            raise _not_complex(name, "inputs", dtype)
        inexact = dtype in dtypes.floating_dtypes or dtype in dtypes.complex_dtypes
        if not inexact and (not allow_int or dtypes.is_extended(dtype)):
            raise_not_inexact(name, dtype, names()[i])
