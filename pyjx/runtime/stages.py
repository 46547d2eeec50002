"""The stages of a jitted function, one by one: traced, lowered, compiled."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyjx import configuration, jaxlib_api
from pyjx.core.avals import get_aval, is_valid_value
from pyjx.core.dtypes import narrowed
from pyjx.core.effects import is_replaced
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.layouts import Format, Layout
from pyjx.core.options import parted
from pyjx.core.passes.literals import shown
from pyjx.core.records import EXPORT, Alike, Field, Unpickled, of_field
from pyjx.core.references import Ref, check_distinct
from pyjx.core.trace import Tracer
from pyjx.core.value_texts import array_cure, shortened
from pyjx.engine.functions import source_of
from pyjx.engine.physical import physicalize
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import TreeDef
from pyjx.guards import guard
from pyjx.jaxlib_api import Sharding
from pyjx.lazy import deferred
from pyjx.runtime import abstract, backends, dispatch
from pyjx.runtime.array import for_programs
from pyjx.runtime.jit import JitSpec, TracedCall, Wrapped, jit, reports, spec_of
from pyjx.runtime.placement import (
    Shardings,
    committed_layout,
    committed_sharding,
    placement_of,
    with_devices,
)
from pyjx.runtime.programs import compile_closed, compiled_anew
from pyjx.runtime.sharding import devices_of
from pyjx.runtime.signature import argument_differences, static_text
from pyjx.tree_util import tree_flatten, tree_map, tree_unflatten

if TYPE_CHECKING:
    from pyjx.runtime.budgets import MemoryProfile
    from pyjx.runtime.costs import Costs
    from pyjx.runtime.explain import Explanation

costs = deferred("pyjx.runtime.costs")  # few programs ask for them
budgets = deferred("pyjx.runtime.budgets")
lowering = deferred("pyjx.runtime.lower")  # with the passes, for the first program
CompilerOptions = Mapping[str, str | bool | int | float]


class ArgInfo(Alike):
    """Aval of an argument, and whether it is donated."""

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: Any, donated: bool) -> None:
        self._aval = _aval
        self.donated = donated

    shape: Field[tuple[int, ...]] = of_field("_aval.shape")
    dtype: Field[Any] = of_field("_aval.dtype")

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


class _Stage(Unpickled):
    """What every stage knows: the signature, and the shardings of arguments that are settled."""

    _instead = EXPORT
    __slots__ = ("_given", "_spec", "_traced")

    def __init__(self, spec: JitSpec, traced: TracedCall, given: Shardings) -> None:
        self._spec = spec
        self._traced = traced
        self._given = given

    in_tree: Field[Any] = of_field("_traced.in_tree")
    out_tree: Field[Any] = of_field("_traced.out_tree")

    @property
    def in_avals(self) -> Any:
        return tree_unflatten(self.in_tree, self._traced.closed.in_avals)

    @property
    def args_info(self) -> Any:
        closed = self._traced.closed
        infos = [ArgInfo(a, d) for a, d in zip(closed.in_avals, self._traced.donated, strict=True)]
        return tree_unflatten(self.in_tree, infos)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        return tuple([i for i, d in enumerate(self._traced.donated) if d])

    @property
    def out_info(self) -> Any:
        return abstract.results_of(self._traced)


@guard
class Traced(_Stage):
    """A function traced for one signature: its jaxpr.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: x + 1).trace(1.0).jaxpr
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """

    __slots__ = ()

    @property
    def jaxpr(self) -> Any:
        return shown(self._traced.closed)

    fun_name: Field[str] = of_field("_spec.name")

    @property
    def out_avals(self) -> Any:
        return tree_unflatten(self.out_tree, self._traced.closed.out_avals)

    @property
    def lojax(self) -> Traced:
        return self

    effects: Field[Any] = of_field("_traced.closed.effects")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function computes, by its jaxpr, of arguments in the place of those that it was
        traced for; static ones are left out."""
        consts, fun = self.closure_convert()
        return fun(consts, *args, **kwargs)

    def closure_convert(self) -> tuple[list[Any], Callable[..., Any]]:
        """`(consts, fun)`: the values that the function captured, and a function without any.

        `fun(consts, *args, **kwargs)` computes what the traced function does.
        """
        traced = self._traced

        def fun(consts: Any, *args: Any, **kwargs: Any) -> Any:
            leaves, tree = tree_flatten((args, kwargs))
            if tree != traced.in_tree:
                raise TypeError(
                    f"{traced.name} was traced for arguments {traced.in_tree}, called with {tree}.")
            return tree_unflatten(traced.out_tree, eval_jaxpr(traced.closed.jaxpr, consts, *leaves))

        fun.__name__ = traced.name
        return list(traced.closed.consts), fun

    def with_consts_as_arg(self) -> tuple[list[Any], Traced]:
        """The captured values, and the traced function that takes them as its first argument."""
        consts, fun = self.closure_convert()
        args, kwargs = tree_unflatten(self.in_tree, self._traced.closed.in_avals)
        avals = list(map(get_aval, consts))
        return consts, jit(fun).trace(avals, *args, **kwargs)

    def cost(self) -> Costs:
        """What the program costs, operation by operation and line by line: an estimate from the
        jaxpr, which is printed beside XLA's.

        >>> import pyjx as jax
        >>> import pyjx.numpy as jnp
        >>> cost = jax.jit(lambda x, y: jnp.sin(x @ y)).trace(jnp.ones((3, 4)), jnp.ones(4)).cost()
        >>> [(c.name, c.flops, c.transcendentals) for c in cost.by_operation]
        [('dot_general', 24.0, 0.0), ('sin', 0.0, 3.0)]
        """
        return costs.Costs(self.jaxpr, lambda: self.lower().cost_analysis())

    def memory(self, memory_budget: str | float | None = None) -> MemoryProfile:
        """What the program is expected to need of memory: over time, the largest arrays and the
        lines that make them; and, within a budget, what is computed again.

        Args:
          memory_budget: as `jit` takes it; by default that of the function.

        >>> import pyjx as jax
        >>> import pyjx.numpy as jnp
        >>> traced = jax.jit(lambda x: (jnp.sin(x) @ x).sum()).trace(jnp.ones((8, 8)))
        >>> traced.memory().peaks
        (772, 772)
        """
        t, options = self._traced, self._spec.options.compiler_options
        budget = parted(options)[0] if memory_budget is None else configuration.checked_budget(
            memory_budget, "memory")
        placement, _ = placement_of(t.closed, self._given, t.request,
                                    leaves_out=not self._spec.options.keep_unused)
        device = placement.devices[0] if placement.devices else None
        return budgets.profile(  # type: ignore[no-any-return]
            t.closed, t.name, None if budget is None else budgets.bytes_on(budget, device),
            t.donated, placement.platform, len(placement.devices) or 1)

    def physicalize(self, ctx: Any = None) -> Traced:
        """The traced function with key arrays as the integer arrays that they are."""
        t = self._traced
        physical = TracedCall(physicalize(t.closed), t.in_tree, t.out_tree, t.name, t.donated,
                              t.static, t.request)
        return Traced(self._spec, physical, self._given)

    def lower(self, *, lowering_platforms: Any = None, _private_parameters: Any = None) -> Lowered:
        """The StableHLO program, for the default backend's platform or another one.

        Args:
          lowering_platforms: one of cpu, cuda, rocm and tpu, or gpu for cuda.

        Raises:
          ValueError: there is no such platform.
          NotImplementedError: there are several, or an operation has no rule for it.
        """
        platform = None
        if lowering_platforms:
            if isinstance(lowering_platforms, str):
                lowering_platforms = (lowering_platforms,)
            if len(lowering_platforms) > 1:
                raise NotImplementedError(
                    "lower: one program for several platforms is made by `export`; got "
                    f"lowering_platforms={tuple(lowering_platforms)}")
            platform = backends.platforms_named(lowering_platforms[0], "lower")[0]
        return Lowered(self._spec, self._traced, self._given, platform)


@guard
class Lowered(_Stage):
    """A function lowered to StableHLO."""

    __slots__ = ("_call", "_closed", "_donated", "_placement", "_platform", "_program")

    def __init__(self, spec: JitSpec, traced: TracedCall, given: Shardings, platform: str | None
                 ) -> None:
        super().__init__(spec, traced, given)
        traced.check_is_whole("lower")
        if platform is None:
            _check_has_devices(given, traced)
        self._placement, _ = placement_of(traced.closed, given, traced.request, platform,
                                          not spec.options.keep_unused)
        self._closed, self._donated, self._call = traced.closed, traced.donated, None
        if is_replaced(traced.closed.effects):
            consts = traced.closed.consts
            self._call = dispatch.call_of(
                consts_as_inputs(traced.closed), (False,) * len(consts) + traced.donated)
            self._closed = self._call.discharged.jaxpr
            self._donated = self._call.donated
            if self._call.in_types is not None or self._call.out_types is not None:
                self._placement, _ = placement_of(
                    self._closed, (None,) * len(self._closed.in_avals), traced.request, platform)
        self._platform = platform or self._placement.platform
        fitted = None
        budget, _ = parted(spec.options.compiler_options)
        if budget is not None:
            devices = self._placement.devices
            fitted = budgets.Fitter(budgets.bytes_on(budget, devices[0] if devices else None))
        self._program = lowering.lower_closed(
            self._closed, spec.name, donated=self._donated, keep_unused=spec.options.keep_unused,
            platform=self._platform, fitted=fitted,
            placement=self._placement if self._placement.mesh is not None
            or self._platform == self._placement.platform else None)
        self._program.const_args[:] = map(for_programs, self._program.const_args)

    @property
    def out_info(self) -> Any:
        """The types of the results, with shardings over the devices that the program is for."""
        infos, mesh = super().out_info, self._placement.mesh
        if mesh is None:
            return infos
        return tree_map(lambda x: x.update(sharding=with_devices(x.sharding, mesh)), infos)

    @property
    def _expected_memory(self) -> MemoryProfile | None:
        """What the program that was lowered, or the one that was compiled, is expected to need;
        None where there is no budget."""
        fit = self._program.fit
        return None if fit is None else budgets.profile_of(fit)

    def _text(self, debug_info: bool) -> str:
        if not debug_info:
            return self._program.named_text()
        return self._program.located_text(names_results=True)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text: `stablehlo` (default) or `hlo`.

        With `debug_info` each operation carries the place in the source that it came from.
        """
        if dialect in (None, "stablehlo"):
            return self._text(debug_info)
        if dialect == "hlo":
            computation = jaxlib_api.to_xla_computation(self._text(debug_info))
            return jaxlib_api.hlo_text(computation.as_hlo_module(), debug_info)
        _raise_unknown_dialect(dialect)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as an MLIR module (`stablehlo`) or an XlaComputation (`hlo`)."""
        if dialect in (None, "stablehlo"):
            return jaxlib_api.parse_module(self._text(True))
        if dialect == "hlo":
            return jaxlib_api.to_xla_computation(self._program.text)
        _raise_unknown_dialect(dialect)

    def compile(self, compiler_options: dict[str, Any] | None = None, *,
                device_assignment: Any = None) -> Compiled:
        """Compile with XLA for the default device, or for those of `device_assignment`.

        `compiler_options` are XLA flags by name, on top of those given to `jit`.

        Raises:
          ValueError: these are not as many as the program was lowered for.
          RuntimeError: it was lowered over an abstract mesh, and these are not as many, or missing.
        """
        spec = self._spec
        own = dict(spec.options.compiler_options)
        options = tuple(sorted({**own, **(compiler_options or {})}.items()))
        placement = self._placement if device_assignment is None else \
            self._placement.on(tuple(device_assignment))
        if not placement.devices:
            raise RuntimeError("device_assignment cannot be `None` during compilation. Please pass "
                               "a tuple of devices to `.compile(device_assignment=)`: the program "
                               f"was lowered over {placement.mesh}.")
        program, executable = compile_closed(
            self._closed, spec.name, donated=self._donated,
            keep_unused=spec.options.keep_unused, compiler_options=options, placement=placement,
            lowered=self._program if placement.platform == self._platform else None,
        )
        if program.fitted is not None and placement.platform == self._platform:
            self._program = program.fitted  # what was lowered first may not have fitted
        return Compiled(spec, self._traced, self._given, executable, self._call)

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimates (flops, bytes accessed) of the program before optimisation; None where
        the backend makes none, as those of GPUs and TPUs."""
        return jaxlib_api.hlo_cost_analysis(backends.get_backend(), self.compiler_ir("hlo"))


def _check_has_devices(given: Shardings, traced: TracedCall) -> None:
    """ValueError where shardings name no devices, so that the platform is to be said."""
    request = traced.request
    known = [s for s in (*given, *request.in_shardings, *request.out_shardings) if s is not None]
    if (known and configuration.mesh.value is request.mesh is None
            and all([devices_of(s) is None for s in known])):
        raise ValueError("Passing lowering_platforms via jax.export or "
                         "jit(f).trace(*args).lower(lowering_platforms=...) is required when only "
                         "AbstractMesh exists in a jitted computation. Set a mesh with devices by "
                         f"jax.set_mesh, or say the platform. Got {known[0]}")


def _raise_unknown_dialect(dialect: Any) -> NoReturn:
    raise ValueError(f"unknown dialect: {dialect}; expected 'stablehlo' or 'hlo'")


def _callable_of(compiled: Compiled) -> Any:
    """The C++ callable of a compiled program, which holds it and must not be held by it."""
    reference = weakref.ref(compiled)

    def miss(*args: Any, **kwargs: Any) -> dispatch.Miss:
        compiled = reference()
        assert compiled is not None  # the caller has it
        return compiled.miss(*args, **kwargs)

    return dispatch.compiled_callable(compiled._spec.name, miss, ("compiled",))


@guard
class Compiled(_Stage):
    """A compiled program. Call it with arguments of the signature it was compiled for."""

    _instead = "jax.experimental.serialize_executable.serialize gives what can be pickled."
    __slots__ = ("__weakref__", "_call", "_executable", "_here", "_replaced")

    def __init__(self, spec: JitSpec, traced: TracedCall, given: Shardings, executable: Any,
                 replaced: dispatch.ReplacedCall | None = None) -> None:
        super().__init__(spec, traced, given)
        self._executable = executable
        self._replaced = replaced
        self._call: Any = None  # the C++ callable, made at the first call
        self._here: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._call
        if call is None:
            call = self._call = _callable_of(self)
        return call(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)

    def miss(self, *args: Any, **kwargs: Any) -> dispatch.Miss:
        """A call that C++ has not seen the like of: checked here."""
        leaves = self._leaves(args, kwargs)
        if self._replaced is not None:
            return self._run_replaced(self._replaced, leaves), None, False
        self._check_shardings(leaves)
        committed = self._is_committed(leaves)
        out, fast_path, drop = dispatch.run(
            self._executable, self._traced.closed, f"jit({self._spec.name})", leaves,
            self.out_tree, committed)
        n_given = len(tree_flatten((args, kwargs))[0])  # static arguments may be among them
        return out, fast_path if n_given == len(leaves) else None, drop

    def _run_replaced(self, call: dispatch.ReplacedCall, leaves: list[Any]) -> Any:
        closed = self._traced.closed
        check_distinct(leaves, closed.consts, lambda: closed.debug_info)
        return self.out_tree.unflatten(call.run(
            [*closed.consts, *leaves],
            lambda args: self._executable.call(args, self._is_committed(args))))

    def _is_committed(self, leaves: Sequence[Any]) -> bool:
        return (self._executable.placement.mesh is not None or self._spec.options.device is not None
                or any([committed_sharding(x) is not None for x in leaves]))

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The dynamic leaves; static arguments may be given or left out."""
        spec = self._spec
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree and (spec.options.static_argnums or spec.options.static_argnames):
            dynamic, dynamic_kw, static = spec.without_static(args, kwargs)
            leaves, tree = tree_flatten((dynamic, dynamic_kw))
            if tree == self.in_tree and static != self._traced.static:
                raise TypeError(f"{spec.name} was compiled for the static arguments "
                                f"{static_text(spec.fun, self._traced.static)}, called with "
                                f"{static_text(spec.fun, static)}.")
        if tree != self.in_tree:
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was called "
                f"with. {source_of(spec.fun)}: "
                + argument_differences(spec.fun, self.in_tree, tree, self._traced.static) + ". "
                "Give it what it was lowered for, or call the jitted function, which compiles anew."
            )
        for x in leaves:
            if isinstance(x, Tracer) and type(x) is not Ref:
                raise TypeError(
                    "Cannot apply JAX transformations to a function lowered and compiled for a "
                    f"particular signature. Detected argument of Tracer type {type(x)}. Transform "
                    "the function itself, and lower what that gives.")
        self._check_avals(leaves)
        return leaves

    def _check_shardings(self, leaves: Sequence[Any]) -> None:
        """Raise ValueError for arguments that were put elsewhere than the program takes them."""
        executable = self._executable
        if self._spec.options.device is not None:  # arguments are brought there
            return
        wrong = []
        taken = iter(executable.in_shardings)
        for i, (x, kept) in enumerate(zip(leaves, executable.kept, strict=True)):
            wanted = next(taken) if kept else None
            has = committed_sharding(x)
            if wanted is not None and has is not None and not has.is_equivalent_to(wanted, x.ndim):
                wrong.append((i, x, has, wanted))
        if wrong:
            names = self._traced.closed.debug_info.arg_names or ()
            lines = [
                f"Argument {names[i] if names else i} with shape {get_aval(x).str_short()}:\n"
                f"  Passed sharding: {has}\n  Required sharding: {wanted}"
                for i, x, has, wanted in wrong]
            raise ValueError(
                "Computation was compiled for input shardings that disagree with the shardings of "
                f"arguments passed to it. Here are the {len(wrong)} mismatches:\n"
                + "\n".join(lines) + "\nPut the arguments there by jax.device_put.")

    def _check_avals(self, leaves: list[Any]) -> None:
        wrong = []
        avals = self._traced.closed.in_avals
        names = self._traced.closed.debug_info.arg_names or tuple(map(str, range(len(avals))))
        for i, (x, expected) in enumerate(zip(leaves, avals, strict=True)):
            if not is_valid_value(x):  # which no function takes from elsewhere: it is compiled
                raise TypeError(
                    f"Argument '{names[i]}' compiled with {expected.str_short()} and called with "
                    f"{shortened(x)} of type {type(x)}, which is not a valid JAX type. "
                    f"{array_cure(x)}".rstrip())
            aval = get_aval(x)
            if not expected.describes(aval):
                wrong.append((i, expected, aval))
        if wrong:
            lines = [
                f"Argument '{names[i]}' compiled with {expected.str_short()} and called with "
                f"{aval.str_short()}" for i, expected, aval in wrong]
            cure = "Call the jitted function, which compiles anew for other types."
            if all([x.shape == y.shape and narrowed(x.dtype) == narrowed(y.dtype)
                    for _, x, y in wrong]):
                cure = ("Perhaps you are calling the compiled executable with a different "
                        "enable_x64 mode than when it was AOT compiled?")
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled. "
                f"{cure} The mismatches are:\n" + "\n".join(lines))

    @property
    def out_info(self) -> Any:
        if self._replaced is not None and self._replaced.out_types is not None:
            return super().out_info
        return tree_unflatten(self.out_tree, [
            abstract.ShapeDtypeStruct(a.shape, a.dtype, sharding=s, weak_type=a.weak_type)
            for a, s in zip(self._traced.closed.out_avals, self._out_shardings, strict=True)])

    def as_text(self) -> str:
        """The optimised HLO, with the names and the lines of this program: where the disk cache had
        one that differs in these alone, it is compiled again."""
        return "\n\n".join([m.to_string() for m in self.compiled_here().hlo_modules()])

    def compiled_here(self) -> Any:
        """jaxlib's executable as this process compiles it, also where the disk cache had it: one of
        the disk has the names of who wrote it, and XLA cannot write it again on the CPU."""
        executable, traced, other = self._executable, self._traced, self._replaced
        if executable.from_disk is None:
            return executable.loaded
        if self._here is None:
            closed, donated = (traced.closed, traced.donated) if other is None else (
                other.discharged.jaxpr, other.donated)
            self._here = compiled_anew(executable, closed, traced.name, donated,
                                       self._spec.options.keep_unused)
        return self._here.loaded

    def cost_analysis(self) -> Any:
        """XLA's estimates (flops, bytes accessed) of the optimised program."""
        try:
            analysis = self._executable.loaded.cost_analysis()
        except RuntimeError:  # some plugins do not offer it
            return None
        return analysis[0] if isinstance(analysis, list) and len(analysis) == 1 else analysis

    def memory_analysis(self) -> Any:
        """Sizes of arguments, outputs, temporaries and code, in bytes."""
        try:
            return self._executable.loaded.get_compiled_memory_stats()
        except RuntimeError:
            return None

    def runtime_executable(self) -> Any:
        """jaxlib's executable."""
        return self._executable.loaded

    @property
    def _out_shardings(self) -> list[Any]:
        n = len(self._traced.closed.out_avals)
        return self._executable.out_shardings[:n]  # new values of references come after them

    @property
    def input_shardings(self) -> Any:
        """The shardings of the arguments; None of those that the program leaves out."""
        executable = self._executable
        used = iter(executable.in_shardings)
        return tree_unflatten(self.in_tree, [
            next(used) if kept else None for kept in executable.kept])

    @property
    def output_shardings(self) -> Any:
        """The shardings of the results."""
        return tree_unflatten(self.out_tree, self._out_shardings)

    @property
    def input_formats(self) -> Any:
        """The layouts and shardings of the arguments."""
        executable = self._executable
        used = iter(zip(executable.in_layouts, executable.in_shardings, strict=True))
        return tree_unflatten(self.in_tree, [
            _format(*next(used)) if kept else Format()
            for kept in executable.kept])

    @property
    def output_formats(self) -> Any:
        """The layouts and shardings of the results."""
        shardings = self._out_shardings
        layouts = self._executable.loaded.get_output_layouts()
        first = len(layouts) - len(self._executable.out_shardings)  # a token may come before them
        layouts = layouts[first:first + len(shardings)]
        return tree_unflatten(self.out_tree, list(map(_format, layouts, shardings)))


def _format(pjrt_layout: Any, sharding: Sharding | None) -> Format:
    return Format(None if pjrt_layout is None else Layout.from_pjrt_layout(pjrt_layout), sharding)


def trace(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    traced, leaves = spec.trace(*abstract.describe_arguments(spec, args, kwargs))
    layouts = tuple(map(committed_layout, leaves))
    if any(layouts):  # what is lowered takes arguments that stand in memory as these do
        asked = traced.request.in_layouts or (None,) * len(layouts)
        traced = traced.but(traced.request._replace(in_layouts=tuple(
            [has if wants is None else wants for has, wants in zip(layouts, asked, strict=True)])))
    return Traced(spec, traced, tuple(map(committed_sharding, leaves)))


def taking(traced: Traced, in_tree: TreeDef) -> Traced:
    """The traced function, whose leaves come in arguments of this structure."""
    return Traced(traced._spec, traced._traced.but(in_tree=in_tree), traced._given)


def lower(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
    return trace(spec, args, kwargs).lower()


def eval_shape(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return trace(spec, args, kwargs).out_info


def _method(stage: Callable[..., Any]) -> Callable[..., Any]:
    """A method of jitted functions for a function of their spec."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return stage(spec_of(self), args, kwargs)

    method.__name__ = stage.__name__
    method.__doc__ = getattr(Wrapped, stage.__name__).__doc__
    return guard(method)


def clear_cache(self: Any) -> None:
    """Forget the traces and programs of this function."""
    spec = spec_of(self)
    spec.traces.clear()
    if spec.padded is not None:
        spec.padded.clear()
    self._clear_cache()


def explain(self: Any) -> Explanation:
    """What the function was traced for, why again, and what that cost.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: x).explain().n_traces
    0
    """
    return reports.explain_function(spec_of(self))  # type: ignore[no-any-return]


jaxlib_api.PjitFunction.__doc__ = """A jitted function, as `jax.jit` returns it.

A call traces it for arguments of new shapes and dtypes, compiles the program and runs it; later
calls with such arguments run what there is. `trace` and `lower` stop on the way, and
`lower(...).compile()` gives the program itself.
"""
jaxlib_api.PjitFunction.explain = guard(explain)
jaxlib_api.PjitFunction.trace = _method(trace)
jaxlib_api.PjitFunction.lower = _method(lower)
jaxlib_api.PjitFunction.eval_shape = _method(eval_shape)
jaxlib_api.PjitFunction.clear_cache = clear_cache
