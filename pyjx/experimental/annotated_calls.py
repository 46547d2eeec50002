"""Functions whose calls are one operation, which tells XLA something: metadata, memories, hosts,
the order of operations.
"""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ContextDecorator
from functools import partial
from itertools import pairwise
from threading import get_ident
from typing import Any

from pyjx import configuration
from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import ShapedArray, get_aval, is_valid_value
from pyjx.core.effects import Effect
from pyjx.core.evaluation import bind_eqn, literal_value, read_in
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var
from pyjx.core.name_stack import thread_state
from pyjx.core.places import Space
from pyjx.core.primitive import Primitive, register
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import define_call
from pyjx.engine.metadata import items_of, xla_metadata_call_p, xla_metadata_value_p
from pyjx.engine.moves import moved
from pyjx.engine.primitives import optimization_barrier_p
from pyjx.engine.rules import done_again
from pyjx.engine.subjaxprs import batch_jaxpr, consts_as_inputs, live_inputs, part_of, selected
from pyjx.engine.types import Dims, Params, Values
from pyjx.guards import guard
from pyjx.runtime.jit import JitSpec, Options, TracedCall
from pyjx.runtime.signature import leaf_names, parameters_of
from pyjx.tree_util import broadcast_prefix, tree_map, tree_unflatten

# -- annotated calls -------------------------------------------------------------------------------


class PlacedCall(Primitive):
    """A call whose parameter `spaces` says for each result the memory that it is left in; batches
    of results are left where the results are, and what else is derived has its results where they
    are made, which None says of all."""

    __slots__ = ("spaces",)

    def __init__(self, name: str, spaces: str) -> None:
        super().__init__(name, multiple_results=True, cached=False,
                         printed=lambda params: sorted(params.items()))
        self.spaces = spaces
        self.define(batch_axis=self._batched)
        define_call(self, lambda params, origins, linear: {**params, spaces: None})
        self.holder.dce = self._some_results

    def bind(self, *operands: Any, **params: Any) -> Any:
        if params[self.spaces] is None:
            params[self.spaces] = tuple([a.memory_space for a in params["jaxpr"].out_avals])
        return super().bind(*operands, **params)

    def _batched(self, trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
        batched = batch_jaxpr(params["jaxpr"], tuple(dims), trace.axis)
        params["jaxpr"] = consts_as_inputs(batched.jaxpr)
        return self.bind(*batched.jaxpr.consts, *operands, **params), batched.dims

    def _some_results(self, eqn: JaxprEqn, used: tuple[bool, ...]) -> JaxprEqn:
        """The equation without the results that are not used."""
        closed, spaces = eqn.params["jaxpr"], eqn.params[self.spaces]
        live = live_inputs(closed, used)
        part = part_of(closed, used, live)
        if part is closed:
            return eqn
        left = None if spaces is None else tuple(selected(spaces, used))
        return eqn.replace(
            invars=selected(eqn.invars, live), outvars=selected(eqn.outvars, used),
            params={**eqn.params, "jaxpr": part, self.spaces: left}, effects=part.effects)


def staged_call(primitive: Primitive, f: Callable[..., Any], *,
                of_trace: Callable[[TracedCall], Params] = lambda traced: {}, **params: Any
                ) -> Callable[..., Any]:
    """`f` as calls of a primitive, which holds its program as the parameter `jaxpr`; it is traced
    once for each signature, so its program is written once.

    Args:
      of_trace: the parameters that depend on what was traced.
      params: the other parameters.
    """
    spec = JitSpec(f, Options(traced_for=primitive.name))

    @functools.wraps(f)
    @guard
    def called(*args: Any, **kwargs: Any) -> Any:
        traced, leaves = spec.trace(args, kwargs)
        closed = traced.closed
        own = of_trace(traced)
        outs = primitive.bind(*closed.consts, *leaves, jaxpr=consts_as_inputs(closed), **params,
                              **own)
        if isinstance(primitive, PlacedCall):
            outs = [in_memory_of(x, space)
                    for x, space in zip(outs, own[primitive.spaces], strict=True)]
        return tree_unflatten(traced.out_tree, outs)

    return called


def in_memory_of(x: ArrayLike, space: Space) -> Any:
    """A value in this memory, if it is one of arrays."""
    aval = get_aval(x)
    if type(aval) is not ShapedArray or space is Space.Any or aval.memory_space is space:
        return x
    return moved(x, space)


def spread(what: str, given: Any, n: int) -> tuple[Any, ...]:
    """One for each of `n` results.

    Raises:
      ValueError: there are more or fewer.
    """
    found = tuple(given) if isinstance(given, Sequence) else (given,) * n
    if len(found) != n:
        raise ValueError(f"{what} has {len(found)} entries for {n} results")
    return found


class MetadataContext(ContextDecorator):
    """A context, or a decorator, whose operations have metadata for XLA."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.metadata = metadata
        self._saved: defaultdict[int, list[Any]] = defaultdict(list)  # by thread

    def _recreate_cm(self) -> MetadataContext:
        return MetadataContext(self.metadata)

    def __call__(self, func: Any) -> Any:
        function = super().__call__(func)
        for stage in ("lower", "trace", "eval_shape"):  # those of a jitted function
            method = getattr(func, stage, None)
            if method is not None:
                setattr(function, stage, super().__call__(method))
        return function

    def __enter__(self) -> None:
        items = dict(items_of(dict(self.metadata)))
        stacks = thread_state.name_stack, thread_state.program
        thread_state.name_stack, thread_state.program = [s.annotated(items) for s in stacks]
        flag = configuration.xla_metadata.swap_local(thread_state.program.metadata)
        self._saved[get_ident()].append((stacks, flag))

    def __exit__(self, *exc: object) -> None:
        stacks, flag = self._saved[get_ident()].pop()
        thread_state.name_stack, thread_state.program = stacks
        configuration.xla_metadata.set_local(flag)


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Give operations metadata: those that `x` is the result of or, without it, those made in the
    context, or by the function that this decorates.

    Args:
      x: a pytree of arrays.
      kwargs: names and values; values are strings, bools or numbers.

    >>> import pyjx as jax
    >>> from pyjx.experimental.xla_metadata import set_xla_metadata
    >>> @jax.jit
    ... def f(x):
    ...     with set_xla_metadata(_my_tag="first"):
    ...         return jax.numpy.sin(x)
    ...
    >>> '_my_tag = "first"' in f.lower(1.0).as_text()
    True
    """
    if x is None:
        return MetadataContext(kwargs)
    return tree_map(partial(xla_metadata_value_p.bind, xla_metadata_kvs=items_of(kwargs)), x)


def fuse_limit() -> MetadataContext:
    """A context over whose border XLA is not to fuse operations."""
    return MetadataContext({"FUSE_LIMIT": True})


def must_fuse_call(identifier: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: XLA is to fuse all operations of a call of the function."""
    return lambda f: xla_metadata_call(f, MUST_FUSE=identifier)  # type: ignore[no-any-return]


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Any:
    """A function whose calls have metadata, and those of its derivatives.

    Args:
      f: a function of pytrees; without it this is a decorator.
      meta: names and values; values are strings, bools or numbers.

    >>> import pyjx as jax
    >>> from pyjx.experimental.xla_metadata import xla_metadata_call
    >>> f = xla_metadata_call(lambda x: jax.numpy.sin(x) * 2, tag="block")
    >>> float(jax.grad(f)(0.0))
    2.0
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(f: Any = None, /, metadata: Mapping[str, Any] | None = None, *,
                       ad_metadata: Any = "same") -> Any:
    """As `xla_metadata_call`, with the metadata as a dict.

    Args:
      ad_metadata: that of the linear part of derivatives: "same", "drop" for none, or a dict.

    Raises:
      TypeError: there is no metadata.
      ValueError: `ad_metadata` is none of these.
    """
    if isinstance(f, Mapping) and metadata is None:
        f, metadata = None, f
    if metadata is None:
        raise TypeError("xla_metadata_call2: metadata must be a dict, got None")
    if not isinstance(ad_metadata, Mapping) and ad_metadata not in ("same", "drop"):
        raise ValueError("xla_metadata_call2: ad_metadata must be 'same', 'drop' or a dict, got "
                         f"{ad_metadata!r}")
    if f is None:
        return partial(xla_metadata_call2, metadata=metadata, ad_metadata=ad_metadata)
    linear = items_of(dict(ad_metadata)) if isinstance(ad_metadata, Mapping) else ad_metadata
    return staged_call(xla_metadata_call_p, f, xla_metadata=items_of(dict(metadata)),
                       ad_metadata=linear)


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: calls of the function are in a group of this name.

    >>> import pyjx as jax
    >>> from pyjx.experimental.scheduling_groups import scheduling_group
    >>> f = jax.jit(scheduling_group("first")(jax.numpy.sin))
    >>> 'scheduling_group = "first"' in f.lower(1.0).as_text()
    True
    """
    return xla_metadata_call(scheduling_group=name)  # type: ignore[no-any-return]


_TYPES = "`device_host`, `device`, `tpu_sparsecore`, and `gpu_stream:#`"


compute_on_p = register(PlacedCall("compute_on", "out_memory_spaces"))


def _check(compute_type: str) -> str:
    if compute_type not in ("device_host", "device", "tpu_sparsecore") and not re.fullmatch(
            r"gpu_stream:\d+", compute_type):
        raise ValueError(f"Invalid compute type {compute_type}. Current supported values are "
                         f"{_TYPES}.")
    return compute_type


def compute_on(f: Any = None, *, compute_type: str | None = None, out_memory_spaces: Any = None,
               compiler_options: Mapping[str, Any] | None = None) -> Any:
    """A function that is computed elsewhere, as part of a program for devices.

    A program for a CPU computes it where all the rest is.

    Args:
      f: a function of pytrees; without it this is a decorator. A compute type in its place gives
        a context, or a decorator, whose operations are computed there.
      compute_type: "device_host" for the CPU of the device, "device", "tpu_sparsecore", or
        "gpu_stream:#" with the number of a stream.
      out_memory_spaces: a prefix tree of the memories that the results are left in.
      compiler_options: for XLA, by name.

    Raises:
      ValueError: there is no such compute type.
      TypeError: there is none, or there are no memories.

    >>> import pyjx as jax
    >>> from pyjx.experimental.compute_on import compute_on
    >>> on_host = compute_on(lambda x: x + 1, compute_type="device_host",
    ...                      out_memory_spaces=jax.memory.Space.Device)
    >>> float(jax.jit(on_host)(1.0))
    2.0
    """
    if isinstance(f, str):
        kind = {"device_host": "host"}.get(_check(f), f)
        return MetadataContext({"_xla_compute_type": kind})
    if compute_type is None or out_memory_spaces is None:
        raise TypeError("compute_on: compute_type and out_memory_spaces must be given")
    _check(compute_type)
    if f is None:
        return partial(compute_on, compute_type=compute_type, out_memory_spaces=out_memory_spaces,
                       compiler_options=compiler_options)
    options = None if compiler_options is None else json.dumps(
        dict(compiler_options), sort_keys=True)
    return staged_call(
        compute_on_p, f, of_trace=partial(_memories, "out_memory_spaces", out_memory_spaces),
        compute_type=compute_type, compiler_options_json=options)


def _memories(name: str, spaces: Any, traced: TracedCall) -> Params:
    tree = traced.out_tree
    return {name: tuple(broadcast_prefix(spaces, tree_unflatten(tree, [0] * tree.num_leaves)))}


def compute_on2(f: Callable[..., Any] | None = None, *, compute_type: str, out_memory_spaces: Any,
                compiler_options: Mapping[str, Any] | None = None) -> Any:
    """As `compute_on` of a function."""
    return compute_on(f, compute_type=compute_type, out_memory_spaces=out_memory_spaces,
                      compiler_options=compiler_options)


fused_p = register(PlacedCall("fused_call", "out_spaces"))


def fused(*, out_spaces: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the operations of the function are to be one kernel, on operands in any memory.

    Args:
      out_spaces: for each result the memory that it is left in.

    Raises:
      ValueError: there are more or fewer than results, when the function is called.

    >>> import pyjx as jax
    >>> from pyjx.experimental.fused import fused
    >>> f = fused(out_spaces=(jax.memory.Space.Device,))(lambda x: x * x)
    >>> float(jax.grad(f)(3.0))
    6.0
    """

    def decorated(f: Callable[..., Any]) -> Callable[..., Any]:
        call = staged_call(fused_p, f, of_trace=partial(_spaces, out_spaces))

        @functools.wraps(f)
        def called(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = tree_map(_on_device, (args, kwargs))
            return call(*args, **kwargs)

        return called

    return decorated


def _on_device(x: ArrayLike) -> Any:
    """An operand for the kernel, in whose program no memory is told from another."""
    return in_memory_of(x, Space.Device) if is_valid_value(x) else x


def _spaces(out_spaces: Any, traced: TracedCall) -> Params:
    return {"out_spaces": spread("fused: out_spaces", out_spaces, traced.out_tree.num_leaves)}


# -- the order of operations -----------------------------------------------------------------------


def _ordered(env: dict[Var, Any], names: Sequence[Var]) -> None:
    """Put values behind a barrier: what follows comes after all of them."""
    if len(names) > 1:
        env.update(zip(names, optimization_barrier_p.bind(*[env[v] for v in names]), strict=True))


def _run(*operands: Any, jaxpr: ClosedJaxpr, enforce: bool, strict_in: bool, strict_out: bool,
         exclude_mask: tuple[bool, ...]) -> list[Any]:
    """Run a program; before each operation stands a barrier for the values that are still used."""
    program = jaxpr.jaxpr
    used = read_in(program)
    given = zip((*program.constvars, *program.invars), (*jaxpr.consts, *operands), strict=True)
    env = {v: x for v, x in given if v in used}
    excluded = {v for v, out in zip(program.invars, exclude_mask, strict=True) if out}

    def read(atom: Any) -> Any:
        return literal_value(atom) if isinstance(atom, Literal) else env[atom]

    for k, (eqn, ends) in enumerate(zip(program.eqns, program.last_uses(), strict=True)):
        if enforce and (k or strict_in):
            _ordered(env, [v for v in env if v not in excluded])
        outs = bind_eqn(eqn, list(map(read, eqn.invars)))
        env.update(zip(eqn.outvars, outs, strict=True))
        for v in ends:
            del env[v]
    if enforce and strict_out:
        _ordered(env, list(dict.fromkeys([v for v in program.outvars if isinstance(v, Var)])))
    return list(map(read, program.outvars))


def _derived(params: Params, origins: Dims, linear: bool) -> Params:
    mask = params["exclude_mask"]
    return {**params, "exclude_mask": tuple([i is not None and mask[i] for i in origins])}


program_order_p = register(Primitive(
    "program_order", multiple_results=True, cached=False, decomposition=_run, outlined=False,
    printed=lambda params: sorted(params.items())))
define_call(program_order_p, _derived)


def program_order(f: Any = None, *, enforce: bool, strict_in_out: bool | tuple[bool, bool] = False,
                  exclude_argnames: str | Sequence[str] | None = None) -> Any:
    """A function whose operations, and those of its derivatives, run one after the other as they
    stand in it: so a program says which communication overlaps with which computation.

    Args:
      f: a function of pytrees; without it this is a decorator.
      enforce: whether the order is kept; without it nothing changes.
      strict_in_out: whether all arguments come before the first operation, and all results after
        the last; a pair for each of the two.
      exclude_argnames: arguments that nothing has to wait for.

    >>> import pyjx as jax
    >>> from pyjx.experimental.overlap import program_order
    >>> f = jax.jit(program_order(lambda x: jax.numpy.sin(x) * jax.numpy.cos(x), enforce=True))
    >>> f.lower(1.0).as_text().count("optimization_barrier")
    2
    """
    if f is None:
        return partial(program_order, enforce=enforce, strict_in_out=strict_in_out,
                       exclude_argnames=exclude_argnames)
    strict = (strict_in_out,) * 2 if isinstance(strict_in_out, bool) else tuple(strict_in_out)
    excluded = (exclude_argnames,) if isinstance(exclude_argnames, str) else exclude_argnames or ()

    def mask(traced: TracedCall) -> Params:
        leaves, n = traced.in_tree.num_leaves, len(traced.closed.consts)
        names = leaf_names(parameters_of(f), traced.in_tree, None) if excluded else [""] * leaves
        return {"exclude_mask": (
            *[False] * n, *[x.replace(".", "[").partition("[")[0] in excluded for x in names])}

    return staged_call(program_order_p, f, of_trace=mask, enforce=enforce, strict_in=strict[0],
                       strict_out=strict[1])


class _Order(Effect):
    """It has no result, and is kept."""

    repeatable = True

    def __repr__(self) -> str:
        return "ControlDependency"


_effects = frozenset({_Order()})


def _shape(src: ShapedArray, dst: ShapedArray) -> list[ShapedArray]:
    return []


control_dep_p = done_again(register(Primitive(
    "control_dep", shape_rule=_shape, impl=lambda src, dst: [],
    effects=lambda params: _effects, multiple_results=True)))


def control_dep(src: Any, dst: Any) -> None:
    """Let the operation that gives `dst` run after the one that gives `src`, on GPUs.

    Both are arrays. Elsewhere programs keep their own order, and nothing changes.

    >>> import pyjx as jax
    >>> from pyjx.experimental.control_deps import control_dep
    >>> @jax.jit
    ... def f(x):
    ...     y, z = jax.numpy.sin(x), jax.numpy.cos(x)
    ...     control_dep(y, z)
    ...     return y + z
    ...
    >>> float(f(0.0))
    1.0
    """
    control_dep_p.bind(src, dst)


def schedule(ops: Sequence[Any]) -> None:
    """Let the operations that give these arrays run one after the other."""
    for src, dst in pairwise(ops):
        control_dep(src, dst)
