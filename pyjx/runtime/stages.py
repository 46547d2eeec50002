"""The stages of a jitted function, one by one: traced, lowered, compiled."""

from __future__ import annotations

from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.trace import Tracer
from pyjx.runtime import abstract, backends, dispatch
from pyjx.runtime.jit import JitSpec, TracedCall
from pyjx.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten


class ArgInfo:
    """Aval of an argument, and whether it is donated."""

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: Any, donated: bool) -> None:
        self._aval = _aval
        self.donated = donated

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        return self._aval.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArgInfo) and (self._aval, self.donated) == (
            other._aval, other.donated)

    def __hash__(self) -> int:
        return hash((self._aval, self.donated))

    def __repr__(self) -> str:
        return f"ArgInfo(aval={self._aval!r}, donated={self.donated})"


class _Stage:
    """What every stage knows: the signature."""

    __slots__ = ("_spec", "_traced")

    def __init__(self, spec: JitSpec, traced: TracedCall) -> None:
        self._spec = spec
        self._traced = traced

    @property
    def in_tree(self) -> Any:
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        return self._traced.out_tree

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
        avals = self._traced.closed.out_avals
        return tree_unflatten(self.out_tree, list(map(abstract.struct_of, avals)))

    @property
    def out_avals(self) -> list[Any]:
        return self._traced.closed.out_avals

    @property
    def fun_name(self) -> str:
        return self._spec.name


class Traced(_Stage):
    """A function traced for one signature: its jaxpr.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: x + 1).trace(1.0).jaxpr
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """

    __slots__ = ()

    @property
    def jaxpr(self) -> Any:
        return self._traced.closed

    @property
    def lojax(self) -> Traced:
        return self

    @property
    def effects(self) -> Any:
        return self._traced.closed.effects

    def lower(self, *, lowering_platforms: Any = None, _private_parameters: Any = None) -> Lowered:
        """The StableHLO program, for the default backend's platform or another one."""
        platform = None
        if lowering_platforms:
            if len(lowering_platforms) > 1:
                raise NotImplementedError(
                    "lower: one program for several platforms is made by `export`; got "
                    f"lowering_platforms={tuple(lowering_platforms)}"
                )
            platform = lowering_platforms[0]
        return Lowered(self._spec, self._traced, platform)


class Lowered(_Stage):
    """A function lowered to StableHLO."""

    __slots__ = ("_lowered", "_platform", "kept")

    def __init__(self, spec: JitSpec, traced: TracedCall, platform: str | None) -> None:
        super().__init__(spec, traced)
        if any(isinstance(c, Tracer) for c in traced.closed.consts):
            raise TypeError(
                f"lower: {spec.name} closes over values of an outer transformation, which are "
                "not known yet. Pass them as arguments."
            )
        self._platform = platform or (spec.device or backends.default_device()).platform
        self._lowered, self.kept = dispatch.lower_closed(
            traced.closed, spec.name, donated=traced.donated, keep_unused=spec.keep_unused,
            platform=self._platform,
        )

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text: `stablehlo` (default) or `hlo`.

        With `debug_info` each operation carries the place in the source that it came from.
        """
        if dialect in (None, "stablehlo"):
            if debug_info:
                return dispatch.lower_closed(
                    self._traced.closed, self._spec.name, donated=self._traced.donated,
                    keep_unused=self._spec.keep_unused, platform=self._platform, locations=True,
                )[0].text  # type: ignore[no-any-return]
            return self._lowered.text  # type: ignore[no-any-return]
        if dialect == "hlo":
            return str(self.compiler_ir("hlo").as_hlo_text())
        raise ValueError(f"as_text: dialect must be 'stablehlo' or 'hlo', got {dialect!r}")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as an MLIR module (`stablehlo`) or an XlaComputation (`hlo`)."""
        from pyjx import jaxlib_api

        if dialect in (None, "stablehlo"):
            return jaxlib_api.parse_module(self._lowered.text)
        if dialect == "hlo":
            return jaxlib_api.to_xla_computation(self._lowered.text)
        raise ValueError(f"compiler_ir: dialect must be 'stablehlo' or 'hlo', got {dialect!r}")

    def compile(self, compiler_options: dict[str, Any] | None = None, *,
                device_assignment: Any = None) -> Compiled:
        """Compile with XLA for the default device.

        `compiler_options` are XLA flags by name, on top of those given to `jit`.
        """
        spec = self._spec
        options = tuple(sorted({**dict(spec.compiler_options), **(compiler_options or {})}.items()))
        device = spec.device if device_assignment is None else device_assignment[0]
        executable = dispatch.compile_closed(
            self._traced.closed, spec.name, donated=self._traced.donated,
            keep_unused=spec.keep_unused, compiler_options=options, device=device,
        )
        return Compiled(spec, self._traced, executable)

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimates (flops, bytes accessed) of the program before optimisation."""
        from pyjx import jaxlib_api

        return jaxlib_api.hlo_cost_analysis(
            backends.get_backend(), self.compiler_ir("hlo"))  # type: ignore[no-any-return]


class Compiled(_Stage):
    """A compiled program. Call it with arguments of the signature it was compiled for."""

    __slots__ = ("_executable", "_fast")

    def __init__(self, spec: JitSpec, traced: TracedCall, executable: Any) -> None:
        super().__init__(spec, traced)
        self._executable = executable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        spec = self._spec
        dynamic, dynamic_kw, _ = spec.split(args, kwargs)
        if spec.static_argnums and len(dynamic) + 0 != len(self.in_tree.children()[0].children()):
            dynamic = args  # called without the static arguments
        leaves, tree = tree_flatten((dynamic, dynamic_kw))
        if tree != self.in_tree:
            raise TypeError(
                f"Function compiled with input pytree does not match the input pytree it was "
                f"called with: {spec.name} was compiled with {self.in_tree}, called with {tree}."
            )
        if any(isinstance(x, Tracer) for x in leaves):
            raise TypeError(
                f"Cannot apply JAX transformations to a function lowered and compiled for a "
                f"particular signature: {spec.name} was called with a tracer."
            )
        self._check_avals(leaves)
        _, committed = dispatch.device_of(leaves)
        outs = self._executable.call(leaves, committed)
        return tree_unflatten(self.out_tree, outs)

    call = __call__

    def _check_avals(self, leaves: list[Any]) -> None:
        wrong = []
        for i, (x, expected) in enumerate(
            zip(leaves, self._traced.closed.in_avals, strict=True)
        ):
            aval = get_aval(x)
            if aval.shape != expected.shape or aval.dtype != expected.dtype:
                wrong.append((i, expected, aval))
        if wrong:
            paths = tree_flatten_with_path(self.args_info)[0]
            lines = [
                f"Argument {keystr(paths[i][0])} compiled with {expected.str_short()} and called "
                f"with {aval.str_short()}" for i, expected, aval in wrong
            ]
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled. "
                "The mismatches are:\n" + "\n".join(lines)
            )

    def as_text(self) -> str:
        """The optimised HLO."""
        return "\n\n".join([m.to_string() for m in self._executable.loaded.hlo_modules()])

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
    def input_shardings(self) -> Any:
        sharding = self._executable.sharding
        return tree_unflatten(self.in_tree, [sharding] * len(self._traced.closed.in_avals))

    @property
    def output_shardings(self) -> Any:
        sharding = self._executable.sharding
        return tree_unflatten(self.out_tree, [sharding] * len(self._traced.closed.out_avals))

    @property
    def input_formats(self) -> Any:
        return self.input_shardings

    @property
    def output_formats(self) -> Any:
        return self.output_shardings


def trace(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    traced, _ = spec.trace(*abstract.describe_arguments(spec, args, kwargs))
    return Traced(spec, traced)


def lower(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
    return trace(spec, args, kwargs).lower()


def eval_shape(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return trace(spec, args, kwargs).out_info
