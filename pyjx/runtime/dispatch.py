"""C++ callables, and the one way of a call that C++ does not know to outputs and a fast path.

Single operations on values are called so, each a small program, and programs as they are; those
with references, or values of types of libraries, on the arrays that these hold now.
"""

from __future__ import annotations

import copyreg
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pyjx import configuration, jaxlib_api
from pyjx.core.avals import AbstractRef, ShapedArray, get_aval
from pyjx.core.bounded import BoundedDict, kept
from pyjx.core.derived import derived, derived_structure
from pyjx.core.effects import is_replaced
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.layouts import Format, Layout
from pyjx.core.primitive import Primitive
from pyjx.core.records import Record
from pyjx.core.references import shared
from pyjx.core.scalars import Constant
from pyjx.core.source_info import no_source_info
from pyjx.core.trace import eager_trace, names_lines, trace_to_jaxpr
from pyjx.engine import discharge
from pyjx.engine.calls import call_params, jit_p
from pyjx.engine.moves import reshard_p
from pyjx.engine.own_types import all_made, all_parts, flags_of_parts, on_parts
from pyjx.engine.physical import closed_has_keys
from pyjx.engine.types import TreeDef
from pyjx.jaxlib_api import Sharding
from pyjx.jaxlib_pytrees import of_calls
from pyjx.lazy import deferred
from pyjx.runtime import flag_checks, ledger
from pyjx.runtime.array import ArrayImpl, DataArray
from pyjx.runtime.executable import Executable, argument, shard_argument
from pyjx.runtime.placement import NO_REQUEST, Request, committed_sharding, placement_of
from pyjx.runtime.programs import TRACES, Program, compile_closed, fast_paths, note_operation_called
from pyjx.runtime.sharding import open_sums
from pyjx.runtime.transfers import exchange_by, moved

exhaustion = deferred("pyjx.runtime.exhaustion")  # for errors

registry = jaxlib_api.pytree.default_registry()
_LEAF = registry.flatten(0)[1]
Miss = tuple[Any, Any, bool]  # outputs, fast path or None, whether C++ is to drop its entry


def compiled_callable(name: str, miss: Callable[..., Miss], key: Any,
                      fun: Callable[..., Any] | None = None, static_argnums: Sequence[int] = (),
                      static_argnames: Sequence[str] = ()) -> Any:
    """A C++ callable that asks `miss` what it does not know, and `fun` under `disable_jit`: by
    default what `miss` gives.

    Callables with equal `fun` and `key` share what C++ knows.
    """
    if fun is None:
        def fun(*args: Any, **kwargs: Any) -> Any:
            return miss(*args, **kwargs)[0]

    return jaxlib_api.make_pjit(name, fun, miss, static_argnums, static_argnames, key, of_calls,
                                shard_argument, fast_paths)


def _reduce(fn: Callable[..., Any]) -> Any:
    """A callable that a module has under its name is pickled as that name, as functions are. The
    names of a script are its own: cloudpickle takes its functions along for another process."""
    module: str = getattr(fn, "__module__", None) or "__main__"
    if module == "__main__":
        return fn.__reduce_ex__(4)
    found: Any = sys.modules.get(module)
    name: str = getattr(fn, "__qualname__", "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is fn else fn.__reduce_ex__(4)


copyreg.pickle(jaxlib_api.PjitFunction, _reduce)


def compile_and_run(closed: ClosedJaxpr, name: str, leaves: Sequence[Any], out_tree: TreeDef, *,
                    request: Request = NO_REQUEST, label: str = "", is_operation: bool = False,
                    **options: Any) -> Miss:
    """Run a jaxpr on flat arguments, where `request` and these say.

    `options` go to `compile_closed`; `label` is what errors call the program; that of
    a single operation need not stay loaded.
    """
    if names_lines():
        options.pop("donated", None)  # the program may have to run again
    placement, committed = placement_of(
        closed, tuple([committed_sharding(x) for x in leaves]), request,
        leaves_out=not (is_operation or options.get("keep_unused")))
    program, executable = compile_closed(closed, name, placement=placement,
                                         is_operation=is_operation, **options)
    return run(executable, closed, label or name, leaves, out_tree, committed,
               program if is_operation else None)


def run(executable: Executable, closed: ClosedJaxpr, label: str, leaves: Sequence[Any],
        out_tree: TreeDef, committed: bool, operation: Program | None = None) -> Miss:
    """Run an executable, the compiled `closed`, on flat arguments."""
    if configuration.no_execution.value:
        program = label if label.startswith("jit(") else f"jit({label})"
        raise RuntimeError(f"JAX tried to execute function {program}, but the no_execution config "
                           "option is set")
    laid_out = _laid_out(executable, leaves)
    watches_keys = configuration.debug_key_reuse.value and closed_has_keys(closed)
    if watches_keys:
        flag_checks.check_call(closed, leaves)
    limited = configuration.memory_limit.value is not None
    if limited:
        exhaustion.check(executable, closed, label, leaves)
    timed = configuration.report.value and not executable.was_run
    start = time.perf_counter() if timed else 0.0
    try:
        outs = executable.call(laid_out, committed)
    except jaxlib_api.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise exhaustion.completed(error, closed, label, executable.device) from error.__cause__
    if limited:
        exhaustion.note(outs)
    if start:
        for x in outs:
            x.block_until_ready()
        executable.was_run = True
        ledger.note_run(closed, label, time.perf_counter() - start)
    if watches_keys:
        flag_checks.note_call(closed, leaves, outs)
    out = out_tree.unflatten(outs)
    checked = watches_keys or names_lines()
    if checked:
        flag_checks.check_results(closed, label, leaves, outs)
    mistaken = any([isinstance(x, Constant) for x in leaves])  # by C++, for NumPy's scalars
    fast = (laid_out is leaves and not checked and not mistaken and not limited
            and all([type(x) is ArrayImpl or isinstance(x, DataArray) for x in outs]))
    if operation is not None and not note_operation_called(operation, fast):
        return out, None, fast or mistaken
    if not fast:
        return out, None, mistaken
    if any([type(x) is not ArrayImpl for x in outs]):
        out_tree = of_calls.flatten(out)[1]
    return out, executable.fast_path(out_tree, committed), mistaken


def _laid_out(executable: Executable, leaves: Sequence[Any]) -> Sequence[Any]:
    """The arguments, with those laid out anew whose elements stand in another order in memory than
    the program wants, and those moved that several other devices have: C++ can do neither."""
    out: list[Any] | None = None
    asked = executable.placement.in_layouts
    settled = iter(zip(executable.in_layouts, executable.in_shardings, strict=True))
    for i, keep in enumerate(executable.kept):
        if keep:
            (layout, sharding), x = next(settled), leaves[i]
            if type(x) is ArrayImpl:
                x._check_if_deleted()  # C++ would crash
                if _is_elsewhere(x._sharding, sharding):
                    out = list(leaves) if out is None else out
                    out[i] = x = moved(x, sharding)
            elif asked and asked[i] is not None:  # a host value
                x = argument(x, executable.in_avals[i], sharding)
            if type(x) is not ArrayImpl or layout is None:
                continue
            if x._pjrt_layout != layout and not Layout.from_pjrt_layout(layout).is_of(x):
                if asked and isinstance(asked[i], Layout) and x is leaves[i] and x._committed:
                    _raise_other_layout(asked[i], x)
                out = list(leaves) if out is None else out
                out[i] = formatted(x, Format(Layout.from_pjrt_layout(layout), x.sharding))
    return leaves if out is None else out


def _is_elsewhere(old: Any, new: Any) -> bool:
    return bool(old.num_devices > 1 and old._internal_device_list != new._internal_device_list)


def _raise_other_layout(asked: Layout, x: Any) -> NoReturn:
    raise ValueError(
        "Layout passed to jit does not match the layout on the respective arg. Got jit layout: "
        f"{asked},\narg layout: {Layout.for_array(x)} for arg type: {x.aval.str_short()}. Put it "
        "there with device_put(x, Format(layout, sharding)).")


def formatted(x: Any, wanted: Format) -> Any:
    """An array laid out otherwise on its devices, which may exchange parts."""
    return _formatter(wanted)(x)


@kept(1024)
def _formatter(wanted: Format) -> Any:
    """The C++ callable that lays arrays out so."""

    def miss(x: Any) -> Miss:
        request = Request(out_shardings=(wanted.sharding,), moves=True)
        if wanted.layout is not None:
            request = request._replace(in_layouts=(Layout.for_array(x),),
                                       out_layouts=(wanted.layout,))
        program = _identity(x.aval.reshard(None))
        if open_sums(wanted.sharding) and not open_sums(x.sharding):
            program = _opening(x.aval, wanted.sharding)
        return compile_and_run(program, "reshard", [x], _LEAF, request=request)

    return compiled_callable("reshard", miss, ("reshard", wanted))


exchange_by(formatted)


@kept(1024)
def _identity(aval: ShapedArray) -> ClosedJaxpr:
    x = Var(aval)
    return ClosedJaxpr(Jaxpr([], [x], [x], []), [])


@kept(64)
def _opening(aval: ShapedArray, sharding: Sharding) -> ClosedJaxpr:
    """Of the devices along axes of sums that are yet to be taken one has the value, the others
    nothing."""
    target = sharding.update(mesh=sharding.mesh.abstract_mesh)
    return trace_to_jaxpr(lambda x: [reshard_p.bind(x, dst_sharding=target, concrete_mesh=None)],
                          (aval,))


# -- programs on other values than arrays -------------------------------------------------------


class ReplacedCall(Record):
    """A program on arrays, as it is called: `refs` are the inputs that are references, `written`
    those of them whose new values stand behind the `n_out` results. Inputs and results that are of
    types of libraries, among those of `in_types` and `out_types`, are parts here; None: there is
    none. Results that are references, which are parts of some, are the inputs that `given` says, or
    new ones that hold what comes in their place."""

    discharged: discharge.Discharged
    donated: tuple[bool, ...]
    refs: tuple[int, ...]
    written: tuple[int, ...]
    n_out: int
    in_types: Sequence[Any] | None
    out_types: Sequence[Any] | None
    given: dict[int, int | None]

    def run(self, operands: Sequence[Any], call: Callable[[list[Any]], Sequence[Any]]) -> list[Any]:
        """The results, where `call` runs the program on arrays. References have their new values
        then."""
        if self.in_types is not None:
            operands = all_parts(self.in_types, operands)
            if (twice := shared(operands)) is not None:
                raise ValueError(
                    "only one reference to a mutable array may be passed as an argument to a "
                    f"function, but the one of type {operands[twice[0]].aval} is part of two.")
        args = list(operands)
        for i in self.refs:
            args[i] = args[i]._refs
        outs = call(args)
        for i, new in zip(self.written, outs[self.n_out:], strict=True):
            operands[i]._refs = new
        outs = list(outs[:self.n_out])
        for i, source in self.given.items():
            outs[i] = operands[source] if source is not None else discharge.new_ref_p.bind(
                outs[i], memory_space=None, kind=None, pin=False)
        return outs if self.out_types is None else all_made(self.out_types, outs)


@derived
def pure(closed: ClosedJaxpr) -> discharge.Discharged:
    """The program on values that is compiled in the place of `closed`."""
    found = discharge.pure(on_parts(closed))
    ledger.note_replaced(closed, found.jaxpr)
    return found


@derived
def call_of(closed: ClosedJaxpr, donated: tuple[bool, ...]) -> ReplacedCall:
    """How a program is called whose inputs `donated` may be overwritten."""
    found, inner = pure(closed), on_parts(closed)
    refs = tuple([i for i, a in enumerate(inner.in_avals) if type(a) is AbstractRef])
    written = tuple([i for i, w in enumerate(found.written) if w])
    given = flags_of_parts(closed.in_avals, donated)
    taken = tuple([(d and i not in refs) or i in written for i, d in enumerate(given)])
    in_types, out_types = [
        avals if any([a.is_high for a in avals]) else None
        for avals in (closed.in_avals, closed.out_avals)]
    places = {v: i for i, v in enumerate(inner.invars)}
    returned = {i: places.get(v) for i, v in enumerate(inner.outvars)  # type: ignore[arg-type]
                if type(v.aval) is AbstractRef}
    return ReplacedCall(found, taken, refs, written, len(inner.out_avals), in_types, out_types,
                        returned)


def is_called_otherwise(closed: ClosedJaxpr) -> bool:
    """Whether a program takes, gives or closes over references, or values of types of libraries."""
    return (any([type(a) is AbstractRef or a.is_high for a in (
        *closed.in_avals, *closed.out_avals, *map(get_aval, closed.consts))]))


# -- single operations, and calls of programs, on values -----------------------------------------


def flat_callable(name: str, closed_for: Callable[[tuple[Any, ...]], ClosedJaxpr], key: Any,
                  single: bool, **options: Any) -> Callable[..., Any]:
    """A C++ callable over flat array arguments.

    `closed_for` gives the jaxpr for the avals of a call; `single` says that its one result is
    returned bare. `options` go to `compile_and_run`.
    """

    def miss(*args: Any) -> Miss:
        closed = closed_for(tuple([get_aval(x) for x in args]))
        out_tree = _LEAF if single else registry.flatten(closed.jaxpr.outvars)[1]
        return compile_and_run(closed, name, args, out_tree, **options)

    return compiled_callable(name, miss, key)  # type: ignore[no-any-return]


def operation_callable(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """The callable of one operation with these parameters."""
    programs = BoundedDict(TRACES, "programs of operations")  # by avals
    if primitive.effects is not None and is_replaced(primitive.effects(params)):
        return _replaced_callable(primitive, params)

    def closed_for(avals: tuple[Any, ...]) -> ClosedJaxpr:
        closed = programs.get(avals)
        if closed is None:
            closed = programs[avals] = single_eqn_jaxpr(primitive, avals, params)
        return closed  # type: ignore[no-any-return]

    return flat_callable(primitive.name, closed_for, (primitive.name,),
                         not primitive.multiple_results, is_operation=True)


def _replaced_callable(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """The callable of an operation that holds programs with references, or with values of types of
    libraries."""
    programs = BoundedDict(TRACES, "programs of operations")

    def run(*operands: Any) -> Any:
        given = list({id(x): x for x in operands}.values())
        places = {id(x): i for i, x in enumerate(given)}
        order = tuple([places[id(x)] for x in operands])  # a loop may have a reference twice
        avals = tuple(map(get_aval, given))
        closed = programs.get((avals, order))
        if closed is None:
            closed = programs[avals, order] = single_eqn_jaxpr(primitive, avals, params, order)
        outs = _run_jit(*given, **call_params(closed, primitive.name, len(given)))
        return outs if primitive.multiple_results else outs[0]

    return run


def single_eqn_jaxpr(primitive: Primitive, avals: tuple[Any, ...], params: dict[str, Any],
                     order: tuple[int, ...] | None = None) -> ClosedJaxpr:
    """The program of one operation; `order` says which inputs its operands are, if not all in
    turn.

    Raises:
      NotImplementedError: nothing says what the operation gives.
    """
    if primitive.shape_rule is None:
        raise NotImplementedError(
            f"Evaluation rule for '{primitive}' not implemented. Give the primitive one by "
            "`def_impl`, or let it be compiled: by `def_abstract_eval` and a lowering rule.")
    order = tuple(range(len(avals))) if order is None else order
    out = primitive.out_avals(tuple([avals[i] for i in order]), params)
    outvars = [Var(a) for a in (out if primitive.multiple_results else [out])]
    invars = [Var(a) for a in avals]
    effects = primitive.effects_of([avals[i] for i in order], params)
    eqn = JaxprEqn(primitive, [invars[i] for i in order], outvars, params, effects, no_source_info)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], effects), [])


def _run_jit(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    """Eager `jit_p`: through a C++ callable kept with the jaxpr."""
    if not jaxpr.jaxpr.effects or not is_replaced(jaxpr.jaxpr.effects):
        return _jit_callable(jaxpr, *params.items())(*args)
    call = call_of(jaxpr, params["donated_invars"])
    run_pure = _jit_callable(call.discharged.jaxpr,
                             *{**params, "donated_invars": call.donated}.items())
    return call.run(args, lambda arrays: run_pure(*arrays))


@derived_structure
def _jit_callable(closed: ClosedJaxpr, *params: tuple[str, Any]) -> Callable[..., Any]:
    given = dict(params)
    source = weakref.ref(closed)  # which holds the callable

    def closed_for(avals: tuple[Any, ...]) -> ClosedJaxpr:
        closed = source()
        assert closed is not None  # the caller has it
        return closed

    return flat_callable(given["name"], closed_for, ("jit", *params), False,
                         donated=given["donated_invars"], keep_unused=given["keep_unused"],
                         compiler_options=given["compiler_options_kvs"])


jit_p.define(impl=_run_jit)
eager_trace.compiler = operation_callable
