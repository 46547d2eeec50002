"""`kernel`: a kernel that the cores of a mesh run on whole arrays, which it cuts itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyjx.experimental.pallas.kernel_calls import pallas_call
from pyjx.experimental.pallas.kernel_grids import ANY, BlockSpec, CostEstimate, RefLike
from pyjx.lax.references import target_of
from pyjx.tree_util import tree_map


@dataclass(frozen=True, kw_only=True)
class TensorCoreMesh:
    """The cores of a chip, as an axis.

    Args:
      axis_name: the name of the axis.
      num_cores: how many cores there are.
    """

    axis_name: str
    num_cores: int = 1

    @property
    def shape(self) -> OrderedDict[str, int]:
        """The size of the axis by its name."""
        return OrderedDict({self.axis_name: self.num_cores})


def create_tensorcore_mesh(axis_name: str, devices: object = None, num_cores: int | None = None
                           ) -> TensorCoreMesh:
    """A `TensorCoreMesh`, of one core by default."""
    return TensorCoreMesh(axis_name=axis_name, num_cores=num_cores or 1)


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], None]], None]:
    """Run the decorated function, at once, on the first core of an axis: kernels of one core are
    there.

    Args:
      core_axis_name: the name of the axis.
    """
    return lambda function: function()


def core_barrier(sem: RefLike, *, core_axis_name: str) -> None:
    """Let the cores of an axis meet: kernels of one core are there, which waits for nobody.

    Args:
      sem: a semaphore.
      core_axis_name: the name of the axis.
    """
    target_of("core_barrier", sem, None)


def kernel(body: Callable[..., None] | None = None, out_type: Any = (), *, mesh: Any,
           scratch_types: Any = (), compiler_params: object = None, interpret: object = False,
           cost_estimate: CostEstimate | None = None, debug: bool = False, name: str | None = None,
           metadata: dict[str, str] | None = None) -> Any:
    """The function that runs a kernel on each core of a mesh, with references to whole arrays.

    Args:
      body: takes references: `body(*in_refs, *out_refs, *scratch_refs)`; without it `kernel` gives
        a decorator.
      out_type: a tree of `jax.ShapeDtypeStruct`, of what the function returns.
      mesh: a `pltpu.TensorCoreMesh` of one core.
      scratch_types: memories with shapes, for references to scratch space.
      compiler_params, interpret, cost_estimate, debug, name, metadata: as of `pallas_call`.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> one = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    >>> @pl.kernel(out_type=jax.ShapeDtypeStruct((2,), "float32"), mesh=one, interpret=True)
    ... def copy(x_ref, out_ref):
    ...     pltpu.sync_copy(x_ref, out_ref)
    ...
    >>> copy(jax.numpy.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    if not isinstance(mesh, TensorCoreMesh) or mesh.num_cores != 1:
        raise NotImplementedError(f"kernel: the mesh is {mesh!r}. Kernels of one core are there: "
                                  "give pltpu.TensorCoreMesh(axis_name=..., num_cores=1).")

    def made(body: Callable[..., None]) -> Callable[..., Any]:
        whole = BlockSpec(memory_space=ANY)

        def run(*args: Any) -> Any:
            return pallas_call(
                body, out_type, in_specs=tree_map(lambda _: whole, args),
                out_specs=tree_map(lambda _: whole, out_type), scratch_shapes=scratch_types,
                compiler_params=compiler_params, interpret=interpret, cost_estimate=cost_estimate,
                debug=debug, name=name, metadata=metadata)(*args)

        return run

    return made if body is None else made(body)
