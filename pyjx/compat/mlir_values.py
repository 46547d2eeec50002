"""Types, attributes, constants and modules of MLIR, as lowering rules of other libraries make them,
and what these rules are told of the operation and the module.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from lowering.builder import Block
from lowering.types import tensor_type, with_symbols
from pyjx import jaxlib_api
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import AbstractToken, ShapedArray, get_aval
from pyjx.core.effects import Effect
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, default_context
from pyjx.core.meshes import Mesh
from pyjx.core.primitive import Primitive
from pyjx.guards import guard
from pyjx.runtime import backends
from pyjx.runtime.lower import lower_closed

# -- contexts --------------------------------------------------------------------------------------

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


# -- values ----------------------------------------------------------------------------------------


def __getattr__(name: str) -> Any:
    if name in ("Token", "Value"):
        return jaxlib_api.mlir_bindings().ir.Value
    if name == "ir":
        return jaxlib_api.mlir_bindings().ir  # large: loaded when somebody builds operations
    if name == "ir_tree_registry":
        return jaxlib_api.pytree.PyTreeRegistry(
            enable_none=False, enable_tuple=True, enable_namedtuple=False, enable_list=True,
            enable_dict=False)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


guard(__getattr__)


# ---- types, attributes and constants ------------------------------------------------------


def make_ir_context() -> Any:
    """The MLIR context, which knows every dialect that XLA takes."""
    return jaxlib_api.mlir_context()


def _array_type(aval: Any) -> Any:
    return jaxlib_api.mlir_bindings().ir.Type.parse(tensor_type(aval))


def token_type() -> Any:
    """The MLIR type of tokens."""
    return jaxlib_api.mlir_bindings().ir.Type.parse("!stablehlo.token")


# What makes MLIR types of types, by their classes; libraries put theirs here. A value may be
# several in MLIR: then a sequence of types is made.
ir_type_handlers: dict[type, Callable[[Any], Any]] = {
    ShapedArray: _array_type, AbstractToken: lambda _: token_type(),
}


def aval_to_ir_type(ctx: Any, aval: Any = None) -> Any:
    """The MLIR type of a type; the context before it may be left out."""
    aval = ctx if aval is None else aval
    return ir_type_handlers.get(type(aval), _array_type)(aval)


def aval_to_ir_types(ctx: Any, aval: Any = None) -> tuple[Any, ...]:
    """The MLIR types of the values behind a value of a type, nearly always one."""
    found = aval_to_ir_type(ctx, aval)
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


def dtype_to_ir_type(dtype: DTypeLike) -> Any:
    """The MLIR type of the elements of an array."""
    ir = jaxlib_api.mlir_bindings().ir
    scalar = aval_to_ir_type(get_aval(np.zeros((), dtype)))
    return ir.RankedTensorType(scalar).element_type


def i32_attr(i: int) -> Any:
    """An attribute of type i32."""
    ir = jaxlib_api.mlir_bindings().ir
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """An attribute of type i64."""
    ir = jaxlib_api.mlir_bindings().ir
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_elements(xs: Sequence[int]) -> Any:
    """Integers as `dense<...> : tensor<Nxi64>`."""
    return jaxlib_api.mlir_bindings().ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def dense_int_array(xs: Sequence[int]) -> Any:
    """Integers as `array<i64: ...>`."""
    return jaxlib_api.mlir_bindings().ir.DenseI64ArrayAttr.get(np.asarray(xs, np.int64))


def ir_attribute(val: Any) -> Any:
    """A Python or NumPy value as an attribute.

    Raises:
      TypeError: there is no attribute for such values.
    """
    ir = jaxlib_api.mlir_bindings().ir
    value = val
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value))
    if isinstance(value, int):
        return i64_attr(value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f64(value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, np.integer):
        kind = ir.IntegerType.get_signless(8 * value.dtype.itemsize)
        return ir.IntegerAttr.get(kind, int(value))
    if isinstance(value, np.floating):
        return ir.FloatAttr.get(dtype_to_ir_type(value.dtype), float(value))
    if isinstance(value, (list, tuple)):
        return ir.ArrayAttr.get([ir_attribute(x) for x in value])
    if isinstance(value, dict):
        return ir.DictAttr.get({k: ir_attribute(x) for k, x in value.items()})
    raise TypeError(f"ir_attribute: there is no attribute for {value!r} of type {type(value)}")


class ConstantHandler(Protocol):
    """What makes the constant for a value of a type."""

    def __call__(self, val: Any, aval: Any) -> Any: ...


_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Let `handler_fun(value, aval)` make the constants for values of a Python type."""
    _constant_handlers[type_] = handler_fun


def ir_constants(val: Any, *, const_lowering: Any = None, aval: Any = None) -> list[Any]:
    """The constants behind a value, nearly always one."""
    found = ir_constant(val, const_lowering=const_lowering, aval=aval)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def ir_constant(val: Any, *, const_lowering: Any = None, aval: Any = None) -> Any:
    """A constant operation for an array or a scalar.

    Args:
      const_lowering: the operations of constants that there are, by the ids of the values.
      aval: its type, where a registered handler wants it.
    """
    if const_lowering and id(val) in const_lowering:
        return const_lowering[id(val)]
    handler = _constant_handlers.get(type(val))
    if handler is not None:
        return handler(val, aval)
    mlir = jaxlib_api.mlir_bindings()
    value = val
    kind = get_aval(value)
    array = np.asarray(value, kind.dtype)
    packed = np.packbits(array, axis=None, bitorder="little") if array.dtype == bool else array
    if array.size == 1 and array.dtype == bool:
        packed = np.full((1,), 255 if array.item() else 0, np.uint8)
    if array.dtype.kind == "V" or array.dtype.type.__module__ != "numpy":
        packed = array.view(f"u{array.dtype.itemsize}")
    element = dtype_to_ir_type(array.dtype)
    attribute = mlir.ir.DenseElementsAttr.get(np.ascontiguousarray(packed), type=element,
                                              shape=array.shape)
    return mlir.stablehlo.constant(attribute)


def flatten_ir_values(xs: Sequence[Any]) -> list[Any]:
    """The values in a list of values, of operations with results, and of lists of them."""
    out: list[Any] = []
    for x in xs:
        if isinstance(x, (list, tuple)):
            out += flatten_ir_values(x)
        elif hasattr(x, "results"):
            out += list(x.results)
        else:
            out.append(x)
    return out


flatten_ir_types = flatten_ir_values


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """The text of a module."""
    return str(module.operation.get_asm(enable_debug_info=bool(enable_debug_info)))


def module_to_bytecode(module: Any) -> bytes:
    """A module as bytes."""
    file = io.BytesIO()
    module.operation.write_bytecode(file=file)
    return file.getvalue()


def unflatten_ir_values_like_types(xs: Any, ys: Sequence[Any]) -> list[Any]:
    """Values as `ys` has types: one for a type, a tuple for a sequence of some.

    >>> from pyjx.interpreters.mlir import unflatten_ir_values_like_types
    >>> unflatten_ir_values_like_types([1, 2, 3], ["t", ("t", "t")])
    [1, (2, 3)]
    """
    values = iter(xs)
    found = [tuple([next(values) for _ in y]) if isinstance(y, (list, tuple)) else next(values)
             for y in ys]
    if next(values, None) is not None:
        raise ValueError("unflatten_ir_values_like_types: there are more values than types")
    return found


def shape_tensor(ctx: Any, sizes: Sequence[Any]) -> Any:
    """Sizes, ints or operations that give some, as an array of int32."""
    stablehlo = jaxlib_api.mlir_bindings().stablehlo
    if all([isinstance(n, int) for n in sizes]):
        return ir_constant(np.array(sizes, np.int32))
    one = aval_to_ir_type(ShapedArray((1,), np.int32))
    parts = [ir_constant(np.array([n], np.int32)) if isinstance(n, int) else stablehlo.reshape(
        one, stablehlo.convert(aval_to_ir_type(ShapedArray((), np.int32)), n)) for n in sizes]
    return stablehlo.concatenate(parts, i64_attr(0))


# ---- modules ------------------------------------------------------------------------------


def lower_jaxpr_to_module(module_name: str, jaxpr: ClosedJaxpr | Jaxpr, *, platforms: Sequence[str],
                          donated_args: Sequence[bool] = (), **options: Any) -> LoweringResult:
    """A program as an MLIR module, for the first of the platforms.

    Args:
      donated_args: whose memory is for results.
      options: accepted; where the program runs is said when it is compiled.
    """
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, [])
    program = lower_closed(closed, module_name, donated=donated_args, platform=platforms[0],
                           keep_unused=True, for_export=True)
    return LoweringResult(jaxlib_api.parse_module(program.text), list(program.keepalives),
                          list(program.host_calls), ShapePolyLoweringState((), None))


def merge_mlir_modules(dst_module: Any, sym_name: str, src_module: Any, dst_symtab: Any = None
                       ) -> str:
    """Put the functions of a module into another one, which is left with a function more, the
    other's `main`.

    Args:
      sym_name: what `main` is to be called there.

    Returns:
      What it is called: a number follows where the name is taken.
    """
    ir = jaxlib_api.mlir_bindings().ir
    taken = {ir.StringAttr(op.attributes["sym_name"]).value for op in dst_module.body.operations
             if "sym_name" in op.attributes}
    fresh: dict[str, str] = {}
    for op in src_module.body.operations:
        own = ir.StringAttr(op.attributes["sym_name"]).value
        name = wanted = sym_name if own == "main" else own
        n = 0
        while name in taken:
            name, n = f"{wanted}_{n}", n + 1
        taken.add(name)
        fresh[own] = name
    with dst_module.context:
        renamed = ir.Module.parse(with_symbols(str(src_module.operation), fresh))
        for op in list(renamed.body.operations):
            op.attributes["sym_visibility"] = ir.StringAttr.get("private")
            dst_module.body.append(op)
    return fresh["main"]
