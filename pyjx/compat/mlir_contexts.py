"""What lowering rules of other libraries are told: of the operation, the module, and where it
runs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from lowering.builder import Block
from pyjx import jaxlib_api
from pyjx.core.effects import Effect
from pyjx.core.jaxpr import default_context
from pyjx.core.meshes import Mesh
from pyjx.core.primitive import Primitive
from pyjx.runtime import backends

# Which direction of a channel between devices and hosts an operation is for.
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3

LoweringRule: TypeAlias = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class SPMDAxisContext:
    """A program for all devices of a mesh, of which some axes have a program a device."""

    mesh: Mesh
    manual_axes: frozenset[Any] = frozenset()


@dataclasses.dataclass(frozen=True)
class ShardingContext:
    """A program for so many devices."""

    num_devices: int
    device_assignment: tuple[Any, ...] | None = None
    abstract_mesh: Any = None


AxisContext: TypeAlias = SPMDAxisContext | ShardingContext


@dataclasses.dataclass(frozen=True)
class LoweringParameters:
    """How a module is lowered. Rules may read it; pyjx writes a module for what it is for."""

    override_lowering_rules: tuple[tuple[Primitive, LoweringRule], ...] | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


class LoweringResult(NamedTuple):
    """A module, what has to live as long, and what it calls on the host."""

    module: Any
    keepalive: Any
    host_callbacks: list[Any]
    shape_poly_state: Any


class ShapePolyLoweringState:
    """The dimensions of a module that are known where it is called."""

    dim_vars: tuple[str, ...]
    has_platform_index_argument: bool
    uses_dim_vars: bool

    def __init__(self, dim_vars: tuple[str, ...], lowering_platforms: tuple[str, ...] | None
                 ) -> None:
        self.dim_vars = dim_vars
        self.has_platform_index_argument = lowering_platforms is not None and (
            len(lowering_platforms) > 1)
        self.uses_dim_vars = bool(dim_vars)


_NO_DIM_VARS = ShapePolyLoweringState((), None)


class TokenSet:
    """Tokens by effect. Rules of libraries hand them on; pyjx threads its own.

    >>> from pyjx.interpreters.mlir import TokenSet
    >>> TokenSet([("io", "token")]).update_tokens(TokenSet([("io", "next")])).get("io")
    'next'
    """

    def __init__(self, tokens: Any = None) -> None:
        self._tokens: dict[Any, Any] = dict(tokens or ())

    @classmethod
    def create(cls, effects: Sequence[Any]) -> TokenSet:
        """A new token for each effect, made where operations are being built."""
        stablehlo = jaxlib_api.mlir_bindings().stablehlo
        return cls([(effect, stablehlo.create_token()) for effect in effects])

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Effect) -> Any:
        return self._tokens[effect]

    def items(self) -> Any:
        return self._tokens.items()

    def effects(self) -> set[Any]:
        return set(self._tokens)

    def subset(self, effects: Iterable[Effect]) -> TokenSet:
        """Those of some effects."""
        return TokenSet([(effect, self._tokens[effect]) for effect in effects])

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """The tokens, of which `tokens` are newer."""
        return TokenSet([*self.items(), *tokens.items()])


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModuleContext:
    """The module that a rule's operations are for."""

    platforms: Sequence[str]
    backend: Any = None
    axis_context: Any = ShardingContext(1)
    keepalives: list[Any] = dataclasses.field(default_factory=list)
    channel_iterator: Iterator[int] = dataclasses.field(default_factory=lambda: itertools.count(1))
    host_callbacks: list[Any] = dataclasses.field(default_factory=list)
    lowering_parameters: LoweringParameters = LoweringParameters()
    context: Any = None
    module: Any = None
    ip: Any = None
    symbol_table: Any = None
    shape_poly_state: Any = _NO_DIM_VARS
    all_default_mem_kind: bool = True
    # What rules of one module have made already; they may keep here what they like.
    lowering_cache: dict[Any, Any] = dataclasses.field(default_factory=dict)
    cached_primitive_lowerings: dict[Any, Any] = dataclasses.field(default_factory=dict)
    traceback_caches: Any = None
    sharding_attr_cache: dict[Any, Any] = dataclasses.field(default_factory=dict)
    aval_to_ir_types_cache: dict[Any, Any] = dataclasses.field(default_factory=dict)
    pallas_lowering_cache: dict[Any, Any] = dataclasses.field(default_factory=dict)
    pallas_collective_id_mapping: dict[Any, Any] = dataclasses.field(default_factory=dict)
    # pyjx's own: where the text goes, and its functions that operations call.
    block: Any = None
    declared: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def of_block(cls, block: Block, context: Any, module: Any) -> ModuleContext:
        """That of a module from which functions go to the program that `block` is of."""
        ir = jaxlib_api.mlir_bindings().ir
        return cls(platforms=(block.module.platform,), context=context, module=module, block=block,
                   axis_context=ShardingContext(block.module.partitions),
                   ip=ir.InsertionPoint(module.body), symbol_table=ir.SymbolTable(module.operation))

    def replace(self, **kw: Any) -> ModuleContext:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **kw)

    def get_backend(self, optional: bool = False) -> Any:
        """The client of the platform. Raises RuntimeError where there is none, or gives None."""
        if self.backend is not None:
            return self.backend
        try:
            return backends.get_backend(self.platforms[0])
        except RuntimeError:
            if optional:
                return None
            raise

    def new_channel(self) -> int:
        """A number that no other channel of the module has."""
        return next(self.channel_iterator)

    def add_keepalive(self, keepalive: object) -> None:
        """Keep an object alive as long as the program."""
        self.keepalives.append(keepalive)

    def add_host_callback(self, host_callback: object) -> None:
        """Keep what the program calls on the host."""
        self.host_callbacks.append(host_callback)
        self.keepalives.append(host_callback)


@dataclasses.dataclass(frozen=True)
class LoweringRuleContext:
    """What a rule knows of the equation that it lowers."""

    module_context: ModuleContext
    name_stack: Any
    traceback: Any
    primitive: Primitive | None
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    tokens_in: TokenSet = dataclasses.field(default_factory=TokenSet)
    tokens_out: TokenSet | None = None
    const_lowering: dict[Any, Any] = dataclasses.field(default_factory=dict)
    axis_size_env: Any = None
    dim_var_values: Sequence[Any] = ()
    jaxpr_eqn_ctx: Any = default_context
    platforms: Sequence[str] | None = None

    def is_forward_compat(self) -> bool:
        """Whether the program is for older versions of the compiler: those are made of the same
        operations here."""
        return self.module_context.lowering_parameters.for_export

    def replace(self, **kw: Any) -> LoweringRuleContext:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **kw)

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """Note the tokens behind the operation."""
        object.__setattr__(self, "tokens_out", tokens_out)
