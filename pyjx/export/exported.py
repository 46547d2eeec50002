"""A function that was exported: its module, its types, how it is called, and what is checked of a
program that is to run elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from lowering.types import CLOSE, OPEN, symbols_in, tensor_type, with_symbols
from pyjx import jaxlib_api
from pyjx.core import dtypes
from pyjx.core.avals import AbstractValue, ShapedArray, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.evaluation import all_eqns
from pyjx.core.jaxpr import Jaxpr
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Alike, Unpickled
from pyjx.core.symbolic.expressions import DimExpr
from pyjx.core.symbolic.solving import checks, solve, solved, written_shape
from pyjx.errors import InconclusiveDimensionOperation
from pyjx.export.container import serialize
from pyjx.export.trees import paths_of, tree_differences
from pyjx.guards import guard
from pyjx.runtime import backends
from pyjx.runtime.executable import physical_aval
from pyjx.runtime.foreign_functions import families_in
from pyjx.runtime.sharding import NamedSharding
from pyjx.transforms.custom_vjp import custom_vjp
from pyjx.tree_util import PyTreeDef, tree_flatten, tree_unflatten

# -- checks ----------------------------------------------------------------------------------------

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


def check_calling_convention(version: int, name: str) -> int:
    """The version, which a message gives this name.

    Raises:
      ValueError: it is none of the supported ones.
    """
    least, most = (minimum_supported_calling_convention_version,
                   maximum_supported_calling_convention_version)
    if not least <= version <= most:
        raise ValueError(f"{name} {version} is outside the range of supported versions "
                         f"[{least}..{most}].")
    return version

# Foreign functions that later versions of XLA and jaxlib keep.
_GUARANTEED = re.compile(
    r"(lapack_[a-z0-9]+_ffi|tridiagonal_solve_perturbed_ffi|cu(solver|blas|sparse)?_\w+"
    r"|hip(solver|blas|sparse)?_\w+|ApproxTopK|TopK|Qr|Eigh|LuDecomposition|X64\w+|Sharding"
    r"|SPMD\w+|ProductOfElementaryHouseholderReflectors|annotate_device_placement|dce_sink"
    r"|shape_assertion|stablehlo\.dynamic_\w+|mhlo\.\w+|tpu_custom_call|__gpu\$\w+"
    r"|AllocateBuffer|PartialReduce)")


class DisabledSafetyCheck(Alike):
    """A check of `export` that is not to be made.

    >>> from pyjx import export
    >>> export.DisabledSafetyCheck.custom_call("my_function")
    DisabledSafetyCheck.custom_call('my_function')
    """

    def __init__(self, _impl: str) -> None:
        self._impl = _impl  # jax's pickles fill it by this name

    @property
    def _key(self) -> tuple[Any, ...]:
        return (self._impl,)

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Let the program be called on platforms that it was not exported for."""
        return DisabledSafetyCheck("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let the program call the foreign function of this name, though nothing says that it will
        stay as it is; `ALL` stands for every one."""
        return DisabledSafetyCheck(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the foreign function that this allows; None for other checks."""
        kind, colon, name = self._impl.partition(":")
        return name if colon and kind == "custom_call" else None

    def __str__(self) -> str:
        return self._impl

    def __repr__(self) -> str:
        name = self.is_custom_call()
        return "DisabledSafetyCheck.platform()" if name is None else \
            f"DisabledSafetyCheck.custom_call({name!r})"


_CUSTOM_CALL = re.compile(r"stablehlo\.custom_call @([\w.$]+)[^\n]*")


def check_custom_calls(text: str, disabled: Sequence[DisabledSafetyCheck]) -> None:
    """Raise ValueError where a program calls what may change from version to version."""
    allowed = [d.is_custom_call() for d in disabled]
    bad = [m for m in _CUSTOM_CALL.finditer(text)
           if not {m[1], "ALL"} & {*allowed} and not _GUARANTEED.fullmatch(m[1])]
    if not bad:
        return
    lines = "\n".join([m[0] for m in bad[:5]])
    names = [d for d in allowed if d]
    already = f"disabled for the targets {names}" if names else "not disabled for any target"
    raise ValueError(
        "Cannot serialize code with custom calls whose targets have no compatibility guarantees. "
        f"Examples are:\n{lines}\nThe custom call safety check was {already}. You can disable it "
        "for a target by adding jax.export.DisabledSafetyCheck.custom_call('"
        f"{bad[0][1]}') to disabled_checks.")


# -- exported programs -----------------------------------------------------------------------------

# The function of a module for several platforms that is for one of them.
PLATFORM_FUNCTION = "on_platform_{}"

_DYNAMIC = re.compile(r"[<x]\?x")
_EXPRESSION = re.compile(f"{OPEN}[^{CLOSE}]*{CLOSE}")


def lowered_type(aval: AbstractValue) -> str:
    """The type of an argument or a result of an exported module."""
    return _EXPRESSION.sub("?", tensor_type(physical_aval(aval)))


class CallableProgram(NamedTuple):
    """Functions to be put into another module, of which the first is to be called."""

    functions: tuple[tuple[str, str], ...]
    name: str
    in_types: tuple[str, ...]
    out_types: tuple[str, ...]
    kept: tuple[int, ...]
    custom_calls: tuple[str, ...]
    devices: int
    in_shardings: tuple[Any, ...]
    out_shardings: tuple[Any, ...]


class ExportedProgram:
    """An exported module with the types of its arguments and results."""

    __slots__ = ("__weakref__", "_functions", "_made", "_physical", "artifact", "devices",
                 "in_avals", "in_shardings", "kept", "name", "out_avals", "out_shardings",
                 "platforms", "solutions")

    def __init__(self, artifact: bytes, name: str, in_avals: Sequence[Any],
                 out_avals: Sequence[Any], platforms: Sequence[str], kept: Sequence[int],
                 devices: int, in_shardings: Sequence[Any], out_shardings: Sequence[Any]) -> None:
        self.artifact = artifact
        self.name = name
        self.in_avals = tuple(in_avals)
        self.out_avals = tuple(out_avals)
        self.platforms = tuple(platforms)
        self.kept = tuple(kept)
        self.devices = devices
        self.in_shardings = tuple(in_shardings)
        self.out_shardings = tuple(out_shardings)
        self.solutions = solve(self.in_avals)
        self._functions: dict[str, str] | None = None
        self._physical: ExportedProgram | None = None
        self._made = BoundedDict(64, "executables of exported programs")

    @property
    def physical(self) -> ExportedProgram:
        """The program on the data of extended dtypes."""
        if self._physical is None:
            self._physical = ExportedProgram(
                self.artifact, self.name, list(map(physical_aval, self.in_avals)),
                list(map(physical_aval, self.out_avals)), self.platforms, self.kept,
                self.devices, self.in_shardings, self.out_shardings)
        return self._physical

    def values(self, avals: Sequence[ShapedArray]) -> dict[str, Any]:
        """The values that the variables have for arguments of these types."""
        return solved(self.solutions, avals)

    def result_avals(self, avals: Sequence[ShapedArray]) -> list[Any]:
        """The types of the results for arguments of these types."""
        values = self.values(avals)
        return [a.update(shape=[d.evaluate(values) if isinstance(d, DimExpr) else d
                                for d in a.shape]) for a in self.out_avals]

    def functions(self) -> dict[str, str]:
        """The texts of the module's functions by their names."""
        if self._functions is None:
            try:
                self._functions = jaxlib_api.functions_of(jaxlib_api.artifact_text(self.artifact))
            except jaxlib_api.JaxRuntimeError as error:
                here = ".".join(map(str, jaxlib_api.JAXLIB_VERSION))
                raise ValueError(
                    f"The module of the exported function '{self.name}' cannot be read by jaxlib "
                    f"{here}: it is of a later version, or damaged. Export it with this jaxlib or "
                    f"an earlier one.\n{error}") from None
        return self._functions

    def for_call(self, avals: tuple[Any, ...], platform: str) -> CallableProgram:
        """The functions for a call with arguments of these types on a platform."""
        key = avals, platform
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._for_call(avals, platform)
        return found  # type: ignore[no-any-return]

    def _for_call(self, avals: tuple[Any, ...], platform: str) -> CallableProgram:
        functions, entry = dict(self.functions()), "main"
        if entry not in functions:
            raise ValueError(f"The module of '{self.name}' has no function main.")
        in_types = [lowered_type(a) for a in self.in_avals]
        out_types = [lowered_type(a) for a in self.out_avals]
        taken = [in_types[i] for i in self.kept]
        if len(self.platforms) > 1:
            index = self.platforms.index(platform) if platform in self.platforms else 0
            entry = PLATFORM_FUNCTION.format(self.platforms[index])
            if entry not in functions:  # jax's choose the operations in `main`
                functions[entry] = _caller(entry, "main", taken, taken, out_types, index)
        functions = {name: text.replace("func.func public", "func.func private", 1)
                     for name, text in functions.items()}
        reached = _reached(functions, entry)
        text = "\n".join([t for _, t in reached])
        static = all([type(d) is int for a in avals for d in a.shape])
        if static and (self.solutions or _DYNAMIC.search(text)):
            functions = self._refined(self._static_module(reached, avals), avals)
            functions["main"] = functions["main"].replace(
                "func.func public", "func.func private", 1)
            in_types = [lowered_type(a) for a in avals]
            out_types = [lowered_type(a) for a in self.result_avals(avals)]
            reached = _reached(functions, "main")
            text = "\n".join([t for _, t in reached])
        return CallableProgram(tuple(reached), self.name, tuple(in_types), tuple(out_types),
                               self.kept, tuple(families_in(text)), self.devices,
                               self.in_shardings, self.out_shardings)

    def _static_module(self, functions: Sequence[tuple[str, str]], avals: Sequence[ShapedArray]
                       ) -> str:
        """The module with a `main` for arguments of these types, which calls the first function."""
        names = {"main": "main_of_module", functions[0][0]: "entry_of_module"}
        taken = [(lowered_type(avals[i]), lowered_type(self.in_avals[i])) for i in self.kept]
        main = _caller("main", "entry_of_module", [own for own, _ in taken],
                       [wanted for _, wanted in taken], list(map(lowered_type, self.out_avals)))
        body = "\n".join([with_symbols(text, names) for _, text in functions])
        return f"module @exported {{\n{main}\n{body}\n}}\n"

    def _refined(self, text: str, avals: Sequence[ShapedArray]) -> dict[str, str]:
        """The functions of a module whose `main` has static shapes."""
        try:
            return jaxlib_api.functions_of(jaxlib_api.refined(text))
        except jaxlib_api.JaxRuntimeError as error:
            _, _, reason = str(error).partition("error: ")
            raise ValueError(f"Function '{self.name}' cannot be called with arguments of the types "
                             f"{', '.join([a.str_short() for a in avals])}: "
                             f"{(reason or str(error)).partition(chr(10))[0]}") from None


def _caller(name: str, entry: str, given: Sequence[str], wanted: Sequence[str],
            results: Sequence[str], platform: int | None = None) -> str:
    """A function of `given` types that calls `entry`, which takes those that are wanted, after the
    index of a platform if there is one."""
    lines, operands, types = [], [], [*wanted]
    if platform is not None:
        lines.append(f"    %platform = stablehlo.constant dense<{platform}> : tensor<i32>")
        operands.append("%platform")
        types.insert(0, "tensor<i32>")
    for n, (own, other) in enumerate(zip(given, wanted, strict=True)):
        operands.append(f"%arg{n}" if own == other else f"%g{n}")
        if own != other:
            lines.append(f"    %g{n} = stablehlo.convert %arg{n} : ({own}) -> {other}")
    params = ", ".join([f"%arg{n}: {t}" for n, t in enumerate(given)])
    outs, count = ", ".join(results), len(results)
    lines.append(f"    {f'%r:{count} = ' if count > 1 else '%r = ' if count else ''}func.call "
                 f"@{entry}({', '.join(operands)}) : ({', '.join(types)}) -> ({outs})")
    names = ["%r"] if count == 1 else [f"%r#{i}" for i in range(count)]
    lines.append(f"    return {', '.join(names)} : {outs}" if count else "    return")
    return "\n".join([f"  func.func public @{name}({params}) -> ({outs}) {{", *lines, "  }"])


def _reached(functions: dict[str, str], entry: str) -> list[tuple[str, str]]:
    """The functions that `entry` needs, itself first."""
    names, done = [entry], {entry}
    for name in names:
        for found in symbols_in(functions[name]):
            if found in functions and found not in done:
                done.add(found)
                names.append(found)
    return [(name, functions[name]) for name in names]


def _shape_rule(*avals: ShapedArray, program: ExportedProgram) -> list[Any]:
    return program.result_avals(avals)


def has_constants(jaxpr: Jaxpr) -> bool:
    """Whether a program calls exported ones whose sizes or platform are constants of a call."""
    programs = [e.params["program"] for e in all_eqns(jaxpr) if e.primitive is call_exported_p]
    return any([p.solutions or len(p.platforms) > 1 for p in programs])


def _physical(avals: Any, *operands: Any, program: ExportedProgram) -> Any:
    return call_exported_p.bind(*operands, program=program.physical)


call_exported_p: Primitive = register(Primitive(
    "call_exported", multiple_results=True, cached=False, shape_rule=_shape_rule,
    physical=_physical,
    label=lambda params: f"call_exported({params['program'].name})",
    printed=lambda params: [("name", params["program"].name)],
))


@guard
@dataclass(frozen=True, eq=False)
class Exported(Unpickled):
    """A function as StableHLO, with all that it takes to call it.

    Attributes:
      fun_name: the function's name, for messages.
      in_tree: the structure of `(args, kwargs)`.
      in_avals: the types of the leaves of the arguments; shapes may hold expressions.
      out_tree, out_avals: the same of the results.
      in_shardings_hlo, out_shardings_hlo: None for each; `in_shardings_jax` and
        `out_shardings_jax` tell how arguments and results lie on devices.
      nr_devices: for how many devices it is.
      platforms: for which platforms it was lowered. A module for several takes the index of the
        one that it runs on first.
      ordered_effects, unordered_effects: the effects that it has.
      disabled_safety_checks: the checks that were not made.
      mlir_module_serialized: the module as a StableHLO portable artifact.
      calling_convention_version: which arguments the module takes.
      module_kept_var_idx: the positions of the arguments that the module takes.
      uses_global_constants: whether shapes depend on values that are constants of a call.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    _in_named_shardings: tuple[Any, ...]
    _out_named_shardings: tuple[Any, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None

    _instead = ("use its .serialize(vjp_order=0), or 1 or more for as many derivatives, and "
                "jax.export.deserialize.")

    def __reduce__(self) -> Any:
        if self._get_vjp is not None:  # a function, of a program or of other such objects
            return super().__reduce__()
        return type(self), tuple([getattr(self, field.name) for field in fields(self)])

    def __post_init__(self) -> None:
        program = ExportedProgram(
            self.mlir_module_serialized, self.fun_name, self.in_avals, self.out_avals,
            self.platforms, self.module_kept_var_idx, self.nr_devices, self._in_named_shardings,
            self._out_named_shardings)
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_flat", None)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    __repr__ = __str__

    def mlir_module(self, serialized: bool = True) -> str:
        """The module as text."""
        return jaxlib_api.artifact_text(self.mlir_module_serialized)

    def in_shardings_jax(self, mesh: Mesh | AbstractMesh | None = None) -> Sequence[Any]:
        """How the arguments lie on a mesh whose axes have the names and sizes that they had where
        the function was exported; None for what is not said."""
        return _on_mesh(self._in_named_shardings, mesh)

    def out_shardings_jax(self, mesh: Mesh | AbstractMesh | None) -> Sequence[Any]:
        """The same of the results."""
        return _on_mesh(self._out_named_shardings, mesh)

    def has_vjp(self) -> bool:
        """Whether there is a derivative to be had."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The backward pass, exported: from arguments and cotangents of results, all as positional
        leaves, to the cotangents of the arguments.

        Raises:
          ValueError: it was not serialized with the module.
        """
        if self._get_vjp is None:
            raise ValueError("No VJP is available: serialize the function with "
                             "`vjp_order=1`, or more for higher derivatives.")
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0, *, format: str = "pyjx") -> bytearray:
        """The bytes that `deserialize` reads, with so many derivatives.

        Args:
          vjp_order: how many.
          format: "pyjx", or "jax" for bytes that `jax.export.deserialize` of jax 0.7 to 0.12 reads;
            these do not say which types are weak, and before 0.9 not how arguments lie.

        Raises:
          ValueError: `vjp_order` is negative, a type has no serialization, or jax's format has no
            place for something, such as keys of dictionaries that are no texts.

        >>> import pyjx as jax
        >>> from pyjx import export
        >>> exported = export.export(jax.jit(lambda x: x + 1))(jax.numpy.ones(2))
        >>> for_jax = exported.serialize(vjp_order=1, format="jax")
        >>> export.deserialize(for_jax).call(jax.numpy.ones(2))
        Array([2., 2.], dtype=float32)
        """
        return serialize(self, vjp_order, format)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program; under `jit` it becomes a part of the caller's.

        Derivatives come from the exported backward pass, as far as there is one. There are no
        batches.

        Raises:
          ValueError: structure, types or shapes are not those that the function was exported for,
            or it was exported for other platforms.
        """
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(
                "The invocation args and kwargs must have the same pytree structure as when the "
                f"function '{self.fun_name}' was exported, but they have the following structural "
                f"differences:\n{tree_differences(self.in_tree, tree)}")
        self._check_platform()
        avals = list(map(get_aval, leaves))
        check_arguments(self, avals)
        return tree_unflatten(self.out_tree, list(self._flat_function()(*leaves)))

    def _check_platform(self) -> None:
        platform = jaxlib_api.raw_platform(backends.default_device().client)
        if platform not in self.platforms and \
                DisabledSafetyCheck.platform() not in self.disabled_safety_checks:
            raise ValueError(f"Function '{self.fun_name}' was exported for platforms "
                             f"'{self.platforms}' but it is used on '{(platform,)}'.")

    def _flat_function(self) -> Callable[..., Any]:
        """The program as a function of leaves, with its derivative."""
        flat = self._flat  # type: ignore[attr-defined]
        if flat is None:
            flat = _with_derivative(self)
            object.__setattr__(self, "_flat", flat)
        return flat  # type: ignore[no-any-return]


def _on_mesh(shardings: Sequence[Any], mesh: Mesh | AbstractMesh | None) -> Sequence[Any]:
    return tuple([s if s is None or mesh is None else NamedSharding(mesh, s.spec)
                  for s in shardings])


def _with_derivative(exported: Exported) -> Callable[..., Any]:
    program = exported._program  # type: ignore[attr-defined]

    @custom_vjp
    def call(*leaves: Any) -> tuple[Any, ...]:
        return tuple(call_exported_p.bind(*leaves, program=program))

    def forward(*leaves: Any) -> tuple[Any, Any]:
        return call(*leaves), leaves

    def backward(leaves: Any, cts: Any) -> tuple[Any, ...]:
        results = exported.vjp().call(*leaves, *cts)
        return tuple([
            None if a.to_tangent_aval().dtype == dtypes.float0 else r
            for r, a in zip(results, exported.in_avals, strict=True)])

    call.__name__ = exported.fun_name
    call.defvjp(forward, backward)
    return call


# -- the arguments of a call -----------------------------------------------------------------------


def check_arguments(exported: Exported, avals: Sequence[Any]) -> None:
    """Raise ValueError where arguments are not of the types that were exported."""
    paths = paths_of(exported.in_tree)
    for path, expected, aval in zip(paths, exported.in_avals, avals, strict=True):
        if aval.dtype != expected.dtype:
            raise ValueError(f"Dtype mismatch for {path}: expected {dtypes.name(expected.dtype)} "
                             f"and called with {dtypes.name(aval.dtype)}")
        both = (f"expected {written_shape(expected.shape)} and called with "
                f"{written_shape(aval.shape)}")
        if len(aval.shape) != len(expected.shape):
            raise ValueError(f"Rank mismatch for {path}: {both}")
        for axis, (wanted, d) in enumerate(zip(expected.shape, aval.shape, strict=True)):
            if type(wanted) is int and wanted != d:
                raise ValueError(f"Shape mismatch for {path}.shape[{axis}] (expected same "
                                 f"constant): {both}")
    if exported._program.solutions:  # type: ignore[attr-defined]
        _check_dimensions(exported, avals, paths)


def _holds(fact: Callable[[], bool]) -> bool:
    try:
        return fact()
    except InconclusiveDimensionOperation:
        return False


def _check_dimensions(exported: Exported, avals: Sequence[Any], paths: Sequence[str]) -> None:
    """Check the variables that the shapes give, the other dimensions and constraints."""
    program: ExportedProgram = exported._program  # type: ignore[attr-defined]
    for c in checks(exported.in_avals, program.solutions, program.values(avals),
                    lambda i, axis: avals[i].shape[axis], paths):
        if not _holds(lambda: c.left == c.right if c.equal else c.left >= c.right):  # noqa: B023
            raise ValueError(c.text())
