"""How values lie along the axes of meshes, as Shardy's text: names and sizes, no devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lowering.rules import rule
from lowering.types import quoted, tensor_type
from pyjx.core.specs import PartitionSpec

if TYPE_CHECKING:
    from lowering.builder import Block
    from lowering.module import Function
    from pyjx.core.jaxpr import JaxprEqn


class Partitioning(NamedTuple):
    """How a program is spread over devices.

    A sharding here is what has a `mesh` of named axes and a `spec`, the `PartitionSpec` along
    them; None is left to XLA.

    Attributes:
      parts: into how many parts, one for each device.
      in_shardings, out_shardings: those of the program's arguments and results; empty for None.
      const_shardings: those of its constants, which are copied to all devices where it is None.
      in_kinds, out_kinds: the memories of arguments and results, where these are not the
        devices' own.
    """

    parts: int
    in_shardings: Sequence[Any] = ()
    out_shardings: Sequence[Any] = ()
    const_shardings: Sequence[Any] = ()
    in_kinds: Sequence[str | None] = ()
    out_kinds: Sequence[str | None] = ()


ONE = Partitioning(1)


class Meshes:
    """The meshes that a module declares, by the names and sizes of their axes."""

    __slots__ = ("_names",)

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}

    def name(self, mesh: Any) -> str:
        """The symbol of a mesh."""
        axes = mesh.shape_tuple
        found = self._names.get(axes)
        if found is None:
            n = len(self._names)
            found = self._names[axes] = f"mesh_{n - 1}" if n else "mesh"
        return found

    def text(self) -> str:
        """The declarations."""
        return "".join([
            f"  sdy.mesh @{name} = <[{', '.join([f'{quoted(str(a))}={k}' for a, k in axes])}]>\n"
            for axes, name in self._names.items()])


def sharding_text(meshes: Meshes, sharding: Any, ndim: int) -> str:
    """Shardy's spelling of a sharding of values of this rank, such as `<@mesh, [{"x"}, {}]>`."""
    spec = sharding.spec
    entries = [*spec, *[None] * (ndim - len(spec))]
    dims = ", ".join([_dimension(e) for e in entries])
    mesh = sharding.mesh
    rest = "".join([
        f", {kind}={{{', '.join([quoted(str(a)) for a in mesh.axis_names if a in axes])}}}"
        for kind, axes in (("unreduced", spec.unreduced),) if axes])
    return f"<@{meshes.name(mesh)}, [{dims}]{rest}>"


def _dimension(entry: Any) -> str:
    if entry is PartitionSpec.UNCONSTRAINED:
        return "{?}"
    axes = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
    return f"{{{', '.join([quoted(str(a)) for a in axes])}}}"


def attribute(meshes: Meshes, sharding: Any, aval: Any) -> str:
    """The attribute of an argument or a result that says how it lies."""
    return f"sdy.sharding = #sdy.sharding{sharding_text(meshes, sharding, aval.ndim)}"


def annotate(main: Function, in_avals: Sequence[Any], out_avals: Sequence[Any],
             partitioning: Partitioning) -> None:
    """Say how the arguments and results of the main function lie, and in which memories."""
    p, module = partitioning, main.block.module
    for attributes, avals, shardings, kinds in (
            (main.param_attributes, in_avals, p.in_shardings, p.in_kinds),
            (main.result_attributes, out_avals, p.out_shardings, p.out_kinds)):
        if p.parts > 1:
            for words, aval, sharding in zip(attributes, avals, shardings, strict=True):
                if sharding is not None:
                    words.append(attribute(module.meshes, sharding, aval))
        for words, kind in zip(attributes, kinds, strict=False):
            if kind is not None:
                words.append(f"mhlo.memory_kind = {quoted(kind)}")


def with_token(partitioning: Partitioning) -> Partitioning:
    """That of a program which takes and gives a token first."""
    if partitioning is ONE:
        return ONE
    p = partitioning
    return Partitioning(p.parts, (None, *p.in_shardings), (None, *p.out_shardings),
                        p.const_shardings, (None, *p.in_kinds), (None, *p.out_kinds))


@rule("sharding_constraint")
def _sharding_constraint(b: Block, eqn: JaxprEqn, x: str) -> str:
    sharding = eqn.params["sharding"]
    if b.module.partitions == 1 or not hasattr(sharding, "spec"):
        return x
    aval = eqn.invars[0].aval
    text = sharding_text(b.module.meshes, sharding, aval.ndim)
    return b.line(f"sdy.sharding_constraint {x} {text} : {tensor_type(aval)}")
