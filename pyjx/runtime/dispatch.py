"""Running programs: a jaxpr's executable, the C++ fast path, and eager operations through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import lowering.module
from pyjx import configuration, jaxlib_api
from pyjx.core import avals as avals_module
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, no_effects
from pyjx.core.passes import prepare
from pyjx.core.primitive import Primitive
from pyjx.core.source_info import no_source_info
from pyjx.core.trace import collector_paused, eval_jaxpr, set_eager
from pyjx.engine.calls import jit_p
from pyjx.engine.physical import physicalize
from pyjx.runtime import array as _array  # noqa: F401  (makes the C++ array class pyjx's)
from pyjx.runtime import backends
from pyjx.runtime import compile as compiler
from pyjx.runtime.sharding import single_device_sharding

ArrayImpl = jaxlib_api.ArrayImpl
avals_module.aval_makers.setdefault(ArrayImpl, lambda x: x.aval)
registry = jaxlib_api.pytree.default_registry()
shared_cache = jaxlib_api.pjit_cache(8192)


class Executable:
    """A compiled program with what is needed to call it.

    `kept` says which arguments of the jaxpr the program takes; the others are not used. Before
    them it takes `const_args`, the constants that were too large to write into its text.
    """

    __slots__ = ("_handlers", "const_args", "device", "in_avals", "kept", "loaded",
                 "logical_out_avals", "out_avals", "sharding")

    def __init__(self, loaded: Any, closed: ClosedJaxpr, kept: list[bool],
                 const_args: list[Any], device: Any) -> None:
        self.loaded = loaded
        self.in_avals = closed.in_avals
        self.logical_out_avals = closed.out_avals
        self.kept = kept
        self.device = device
        self.sharding = single_device_sharding(device)
        self.const_args = [self.put(c, get_aval(c)) for c in const_args]
        self.out_avals = [physical_aval(a) for a in closed.out_avals]
        self._handlers: dict[bool, list[Any]] = {}

    def put(self, x: Any, aval: ShapedArray) -> Any:
        """The argument as an array on the program's device."""
        if type(x) is ArrayImpl:
            if x.sharding == self.sharding:
                x._check_if_deleted()
                return x
            return _array_on(x, self.sharding, self.device)
        physical = getattr(x, "_base_array", None)
        if physical is not None:  # an array of an extended dtype, such as PRNG keys
            return self.put(physical, get_aval(physical))
        if aval.dtype == dtypes.float0:
            x, aval = False, physical_aval(aval)
        host = np.asarray(x, dtype=aval.dtype)
        if host.shape != aval.shape:
            host = np.broadcast_to(host, aval.shape)
        return jaxlib_api.batched_device_put(aval, self.sharding, [host], [self.device], False)

    def handlers(self, committed: bool) -> list[Any]:
        handlers = self._handlers.get(committed)
        if handlers is None:
            handlers = self._handlers[committed] = [
                jaxlib_api.result_handler(a, self.sharding, committed) for a in self.out_avals
            ]
        return handlers

    def call(self, args: Sequence[Any], committed: bool = False) -> list[Any]:
        """Run on flat arguments; results are arrays."""
        operands = [self.put(x, a)
                    for x, a, keep in zip(args, self.in_avals, self.kept, strict=True) if keep]
        results = self.loaded.execute_sharded([*self.const_args, *operands])
        outs = results.consume_with_handlers(self.handlers(committed))
        return [wrap_extended(o, a) for o, a in zip(outs, self.logical_out_avals, strict=True)]

    def fast_path(self, out_tree: Any, committed: bool) -> Any:
        """What C++ needs to make the next call itself."""
        n = len(self.const_args) + sum(self.kept)
        outs = self.out_avals
        return jaxlib_api.FastPath(
            self.loaded, out_tree, [self.sharding] * n, [self.sharding] * len(outs), outs,
            [committed] * len(outs), self.kept, [None] * n, self.const_args,
        )


def physical_aval(aval: Any) -> Any:
    """The aval of the buffer behind a value: key arrays are arrays of unsigned integers, and
    arrays of dtype float0 are lowered as booleans."""
    if isinstance(aval, ShapedArray):
        if dtypes.is_extended(aval.dtype):
            return aval.dtype.physical_aval(aval)
        if aval.dtype == dtypes.float0:
            return ShapedArray(aval.shape, np.bool_)
    return aval


def wrap_extended(x: Any, aval: Any) -> Any:
    if isinstance(aval, ShapedArray):
        if dtypes.is_extended(aval.dtype):
            return aval.dtype.from_physical(x)
        if aval.dtype == dtypes.float0:
            return np.zeros(aval.shape, dtypes.float0)
    return x


def _array_on(x: Any, sharding: Any, device: Any) -> Any:
    x._check_if_deleted()
    if len(x.sharding.device_set) > 1:
        raise ValueError(
            f"A program for one device got an array that is spread over "
            f"{len(x.sharding.device_set)} devices (sharding {x.sharding})."
        )
    if x.committed and x.sharding.device_set != sharding.device_set:
        raise ValueError(
            "Received incompatible devices for jitted computation: the program runs on "
            f"{device}, an argument of shape {x.aval.str_short()} is committed to "
            f"{next(iter(x.sharding.device_set))}."
        )
    return jaxlib_api.batched_device_put(x.aval, sharding, [x], [device], x.committed)


def device_of(args: Sequence[Any]) -> tuple[Any, bool]:
    """Where a program on `args` runs: the device that one is committed to, or the default one."""
    for x in args:
        x = getattr(x, "_base_array", x)
        if type(x) is ArrayImpl and x.committed:
            return next(iter(x.sharding.device_set)), True
    return backends.default_device(), False


def compile_closed(
    closed: ClosedJaxpr, name: str, *, donated: Sequence[bool] = (), keep_unused: bool = False,
    compiler_options: Any = (), device: Any = None, lowered: tuple[Any, list[bool]] | None = None,
) -> Executable:
    """The executable of a jaxpr for a device; kept with the jaxpr.

    `lowered` is what `lower_closed` gave for the same program, if it is at hand.
    """
    device = backends.default_device() if device is None else device
    key = ("executable", name, tuple(donated), keep_unused, compiler_options, device,
           configuration.outline.value)
    found = closed.memo.get(key)
    if found is None:
        module, kept = lowered or lower_closed(
            closed, name, donated=donated, keep_unused=keep_unused, platform=device.platform)
        if configuration.log_compiles.value:
            _log(f"Compiling jit({name}) with global shapes and types {closed.in_avals}.")
        loaded = compiler.compile(module.text, devices=(device,),
                                  compiler_options=dict(compiler_options) or None)
        found = Executable(loaded, closed, kept, module.const_args, device)
        closed.memo[key] = found
    return found  # type: ignore[no-any-return]


def lower_closed(closed: ClosedJaxpr, name: str, *, donated: Sequence[bool] = (),
                 keep_unused: bool = False, platform: str = "cpu",
                 locations: bool = False) -> tuple[Any, list[bool]]:
    """The module of a jaxpr, and which of its arguments the module takes."""
    with collector_paused():
        module, kept = _lower_closed(closed, name, donated, keep_unused, platform, locations)
    if module.unused_donations and not locations:
        _warn_of_unused(module.unused_donations)
    return module, kept


def _lower_closed(closed: ClosedJaxpr, name: str, donated: Sequence[bool], keep_unused: bool,
                  platform: str, locations: bool) -> tuple[Any, list[bool]]:
    mode = configuration.outline.value
    outline = mode == "on" or (mode == "auto" and platform == "cpu")
    prepared = prepare(physicalize(closed), outline=outline)
    jaxpr = prepared.jaxpr
    kept = [True] * len(jaxpr.invars)
    if not keep_unused:
        used = {v for e in jaxpr.eqns for v in e.invars if type(v) is not Literal}
        used.update(v for v in jaxpr.outvars if type(v) is not Literal)
        kept = [v in used for v in jaxpr.invars]
    if not all(kept):
        invars = [v for v, k in zip(jaxpr.invars, kept, strict=True) if k]
        prepared = prepared.replace(jaxpr=jaxpr.replace(invars=invars))
        donated = [d for d, k in zip(donated, kept, strict=False) if k]
    frames = configuration.traceback_in_locations_limit.value if locations else 0
    module = lowering.module.lower(prepared, name, platform=platform, donated=donated,
                                   locations=frames)
    return module, kept


def _warn_of_unused(avals: Sequence[Any]) -> None:
    import warnings

    shapes = ", ".join([a.str_short() for a in avals])
    warnings.warn(
        f"Some donated buffers were not usable: {shapes}.\nThe memory of a donated argument is "
        "for a result of the same shape and dtype, or at least of the same number of elements.",
        stacklevel=2,
    )


def _log(message: str) -> None:
    import logging

    logging.getLogger(__name__).warning(message)


# -- results that are not numbers ------------------------------------------------------------------


def checks_results() -> bool:
    """Whether the results of each program are looked at; then none takes the C++ path."""
    return bool(configuration.debug_nans.value or configuration.debug_infs.value)


def check_results(closed: ClosedJaxpr, name: str, args: Sequence[Any], outs: Sequence[Any]
                  ) -> None:
    """Raise FloatingPointError if a result is NaN (`debug_nans`) or infinite (`debug_infs`).

    The program is run once more, operation by operation, to say which one made it.
    """
    kind = next(filter(None, map(_not_a_number, outs)), None)
    if kind is None:
        return
    if len(closed.eqns) > 1 and not any(getattr(x, "is_deleted", bool)() for x in args):
        eval_jaxpr(closed.jaxpr, closed.consts, *args)
    raise FloatingPointError(f"invalid value ({kind}) encountered in {name}")


def _not_a_number(x: Any) -> str | None:
    if type(x) is not ArrayImpl or not dtypes.issubdtype(x.dtype, np.inexact):
        return None
    values = np.asarray(x)
    if configuration.debug_nans.value and np.isnan(values).any():
        return "nan"
    if configuration.debug_infs.value and np.isinf(values).any():
        return "inf"
    return None


# -- eager operations ------------------------------------------------------------------------------


def shard_argument(x: Any, sharding: Any, layout: Any) -> Any:
    """Called by C++ for an argument that is not where the program wants it."""
    device = next(iter(sharding.device_set))
    if type(x) is ArrayImpl:
        return _array_on(x, sharding, device)
    aval = get_aval(x)
    return jaxlib_api.batched_device_put(
        aval, sharding, [np.asarray(x, dtype=aval.dtype)], [device], False
    )


def flat_pjit(name: str, closed_for: Callable[[tuple[Any, ...]], ClosedJaxpr], key: Any,
              single: bool, **options: Any) -> Callable[..., Any]:
    """A C++ callable over flat array arguments.

    `closed_for` gives the jaxpr for the avals of a call; `single` says that its one result is
    returned bare. `options` go to `compile_closed`.
    """

    def miss(*args: Any) -> Any:
        closed = closed_for(tuple([get_aval(x) for x in args]))
        device, committed = device_of(args)
        executable = compile_closed(closed, name, device=device, **options)
        outs = executable.call(args, committed)
        out = outs[0] if single else outs
        if checks_results():
            check_results(closed, name, args, outs)
            return out, None, False
        if any(type(x) is not ArrayImpl for x in outs):
            return out, None, False
        tree = registry.flatten(out)[1]
        return out, executable.fast_path(tree, committed), False

    def uncompiled(*args: Any) -> Any:  # what C++ calls under disable_jit
        return miss(*args)[0]

    return jaxlib_api.make_pjit(  # type: ignore[no-any-return]
        name, uncompiled, miss, [], [], key, registry, shard_argument, shared_cache
    )


EAGER_CAPACITY = 8192  # pairs of a primitive and its parameters
_eager: dict[Any, Callable[..., Any]] = {}


def apply_primitive(primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                    ) -> Any:
    """Run one operation on concrete values."""
    if primitive.impl is not None:
        return primitive.impl(*operands, **params)
    key = (primitive, *params.items()) if params else primitive
    try:
        fn = _eager[key]
    except KeyError:
        if len(_eager) >= EAGER_CAPACITY:
            del _eager[next(iter(_eager))]
        fn = _eager[key] = _eager_function(primitive, params)
    except TypeError:  # an unhashable parameter
        fn = _eager_function(primitive, params)
    return fn(*operands)


def _eager_function(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    closed: dict[Any, ClosedJaxpr] = {}

    def closed_for(avals: tuple[Any, ...]) -> ClosedJaxpr:
        if avals not in closed:
            closed[avals] = single_eqn_jaxpr(primitive, avals, params)
        return closed[avals]

    return flat_pjit(primitive.name, closed_for, (primitive.name,),
                     not primitive.multiple_results)


def single_eqn_jaxpr(primitive: Primitive, avals: tuple[Any, ...], params: dict[str, Any]
                     ) -> ClosedJaxpr:
    """The program of one operation."""
    out = primitive.out_avals(avals, params)
    outvars = [Var(a) for a in (out if primitive.multiple_results else [out])]
    invars = [Var(a) for a in avals]
    eqn = JaxprEqn(primitive, invars, outvars, params, no_effects, no_source_info)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn]), [])


def _run_jit(*args: Any, jaxpr: ClosedJaxpr, name: str, donated_invars: Any, keep_unused: bool,
             inline: bool, compiler_options_kvs: Any) -> Any:
    """Eager `jit_p`: through a C++ callable kept with the jaxpr."""
    key = ("pjit", name, donated_invars, keep_unused, compiler_options_kvs)
    fn = jaxpr.memo.get(key)
    if fn is None:
        fn = jaxpr.memo[key] = flat_pjit(
            name, lambda avals: jaxpr, key, False, donated=donated_invars,
            keep_unused=keep_unused, compiler_options=compiler_options_kvs,
        )
    return fn(*args)


jit_p.impl = _run_jit
set_eager(apply_primitive)


def clear_caches() -> None:
    """Forget the compiled programs of eager operations."""
    _eager.clear()
    shared_cache.clear()
