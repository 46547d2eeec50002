"""A function that was exported: its module, its types, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyjx import jaxlib_api
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.symbolic.checks import checks
from pyjx.core.symbolic.solving import written_shape
from pyjx.errors import InconclusiveDimensionOperation
from pyjx.export.container import serialize
from pyjx.export.programs import ExportedProgram, call_exported_p
from pyjx.export.safety import DisabledSafetyCheck
from pyjx.export.trees import paths_of, tree_differences
from pyjx.runtime import backends
from pyjx.runtime.sharding import NamedSharding
from pyjx.transforms.custom_vjp import custom_vjp
from pyjx.tree_util import tree_flatten, tree_unflatten


@dataclass(frozen=True, eq=False)
class Exported:
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
    in_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_tree: Any
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

    def in_shardings_jax(self, mesh: Any = None) -> Sequence[Any]:
        """How the arguments lie on a mesh whose axes have the names and sizes that they had where
        the function was exported; None for what is not said."""
        return _on_mesh(self._in_named_shardings, mesh)

    def out_shardings_jax(self, mesh: Any) -> Sequence[Any]:
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

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The bytes that `deserialize` reads, with so many derivatives.

        Raises:
          ValueError: `vjp_order` is negative, or a type has no serialization.
        """
        return serialize(self, vjp_order)

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
            raise ValueError(
                f"Function '{self.fun_name}' was exported for platforms '{self.platforms}' but it "
                f"is used on '{(platform,)}'.")

    def _flat_function(self) -> Callable[..., Any]:
        """The program as a function of leaves, with its derivative."""
        flat = self._flat  # type: ignore[attr-defined]
        if flat is None:
            flat = _with_derivative(self)
            object.__setattr__(self, "_flat", flat)
        return flat  # type: ignore[no-any-return]


def _on_mesh(shardings: Sequence[Any], mesh: Any) -> Sequence[Any]:
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
