"""Where a program runs: on which devices, and how its arguments and results lie on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any, NoReturn

import numpy as np

from lowering.shardings import ONE, Partitioning
from pyjx import configuration
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.derived import derived_structure
from pyjx.core.evaluation import all_eqns, holds_jaxprs
from pyjx.core.explicit import check_mesh
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pyjx.core.layouts import Layout
from pyjx.core.meshes import AbstractMesh, Mesh, device_array
from pyjx.core.places import HERE, are_elsewhere
from pyjx.core.records import Field, Record, of_field
from pyjx.core.specs import PartitionSpec
from pyjx.engine.moves import reshard_p
from pyjx.engine.subjaxprs import live_inputs
from pyjx.interning import Interned
from pyjx.jaxlib_api import ABORTS_AT_OPEN_RESULTS, DeviceList, HloSharding, raw_platform
from pyjx.runtime import backends
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.sharding import (
    GSPMDSharding,
    IndivisibleError,
    NamedSharding,
    SingleDeviceSharding,
    check_annotation,
    devices_of,
    is_cut_alike,
    named_sharding,
    single_device_sharding,
    spec_of_hlo,
    summed,
)

Layouts = tuple[Any, ...]  # for each argument or result its layout, None for the usual one
Kinds = tuple[str | None, ...]  # for each its memory, None for the device's; empty if all are
Shardings = tuple[Any, ...]  # for each argument or result its sharding, None where it is left open


class Request(Record):
    """What the user asks of a program: to run on `device`, with these shardings and layouts of its
    leaves; empty where none was asked for. It runs on `mesh`, which is by default the one that is
    set; `moves` says that it brings arrays from one place to another, wherever that is."""

    device: Any = None
    in_shardings: Shardings = ()
    out_shardings: Shardings = ()
    in_layouts: Layouts = ()
    out_layouts: Layouts = ()
    mesh: Mesh | None = None
    moves: bool = False

    @property
    def is_trivial(self) -> bool:
        """Whether arguments alone decide."""
        return not (self.in_shardings or self.out_shardings)


NO_REQUEST = Request()


class Placement:
    """The devices of a program, one for each of its parts, and the shardings and layouts of its
    arguments and results; interned.

    A program for one device has `sharding`, that of all its values, and no `mesh`. One for several
    has shardings along `mesh`, or None where XLA is to choose. One that is lowered before its
    devices are known has none, and an abstract mesh.
    """

    __slots__ = ("__weakref__", "devices", "in_layouts", "in_shardings", "kinds", "mesh",
                 "out_layouts", "out_shardings", "sharding")

    def __init__(self, devices: tuple[Any, ...], mesh: Any, in_shardings: Shardings = (),
                 out_shardings: Shardings = (), in_layouts: Layouts = (),
                 out_layouts: Layouts = (), kinds: tuple[Kinds, Kinds] = ((), ())) -> None:
        self.devices = devices
        self.mesh = mesh
        self.in_shardings = in_shardings
        self.out_shardings = out_shardings
        self.in_layouts = in_layouts
        self.out_layouts = out_layouts
        self.kinds = kinds
        self.sharding = single_device_sharding(devices[0]) if mesh is None else None

    @property
    def platform(self) -> str:
        """As lowering rules name it: cuda or rocm, which devices call gpu."""
        return raw_platform(self.devices[0].client)

    @property
    def n_devices(self) -> int:
        return 1 if self.mesh is None else self.mesh.size

    def on(self, devices: tuple[Any, ...]) -> Placement:
        """The same on other devices.

        Raises:
          ValueError: there are not as many.
          RuntimeError: there are not as many as an abstract mesh has.
        """
        count = self.n_devices
        if len(devices) != count:
            if not self.devices:
                raise RuntimeError(f"Length of device_assignment ({len(devices)}) passed to "
                                   "`.compile()` must be equal to the number of devices the jitted "
                                   f"function was lowered with ({count}).")
            raise ValueError(
                "device_assignment passed to `.compile` must match the device_assignment "
                "calculated from array shardings and out_shardings. Got device ids passed to "
                f"compile {[d.id for d in devices]} and devices ids calculated from array "
                f"shardings and out_shardings {[d.id for d in self.devices]}: give {count}.")
        if self.mesh is None:
            return on_device(devices[0])
        moved = dict(zip(self.devices, devices, strict=bool(self.devices)))

        def there(mesh: Mesh) -> Mesh:
            if not moved:
                return _with_these(mesh, devices)
            places = np.array([moved[d] for d in mesh.devices.flat], dtype=object)
            return mesh.update(devices=places.reshape(mesh.axis_sizes))

        # Jaxlib 0.7 tells of no memories of GPUs that are only described.
        told = {} if not moved or devices[0].addressable_memories() else {"memory_kind": None}
        return placed_on(devices, there(self.mesh), *[
            tuple([s and s.update(mesh=there(s.mesh), **told) for s in shardings])
            for shardings in (self.in_shardings, self.out_shardings)],
            self.in_layouts, self.out_layouts, self.kinds)

    def of_constant(self, x: Any) -> Any:
        """The sharding of a constant of the program."""
        if self.mesh is None:
            return self.sharding
        found = committed_sharding(x)
        if found is None or found._internal_device_list != self.mesh._internal_device_list:
            return NamedSharding(self.mesh, PartitionSpec())
        return named_sharding(found, self.mesh, np.ndim(x))

    def partitioning(self, consts: Sequence[Any]) -> Partitioning:
        """How a program with these constants is spread, as the lowering writes it."""
        layouts = list(map(_mode, self.in_layouts)), list(map(_mode, self.out_layouts))
        if self.mesh is None:
            return Partitioning(1, kinds=self.kinds, layouts=layouts) \
                if any(map(any, layouts)) or any(self.kinds) else ONE
        outs = self.out_shardings
        if ABORTS_AT_OPEN_RESULTS:  # see `with_open_results`
            outs = tuple([s and summed(s) for s in outs])
        return Partitioning(
            self.mesh.size, self.in_shardings, outs,
            [self.of_constant(c) for c in consts], self.kinds, layouts, mesh=self.mesh)

    def named(self, chosen: Any, ndim: int) -> Any:
        """The sharding that XLA has chosen for values of this rank; None for copies everywhere."""
        assert self.mesh is not None  # on one device there is no choice
        hlo = None if chosen is None else HloSharding.from_proto(chosen)
        spec = PartitionSpec() if hlo is None else spec_of_hlo(
            hlo, self.mesh.axis_names, self.mesh.axis_sizes, ndim)
        if spec is None:
            return GSPMDSharding(self.mesh._internal_device_list, hlo)
        if self.mesh.explicit_axes:  # types have an entry for each dimension
            spec = PartitionSpec(*spec, *[None] * (ndim - len(spec)))
        return NamedSharding(self.mesh, spec)


def _with_these(mesh: Any, devices: tuple[Any, ...]) -> Mesh:
    """The mesh of these devices that has the shape of an abstract one."""
    return Mesh(device_array(devices, mesh.axis_sizes), mesh.axis_names, mesh.axis_types)


def _onto_axes_of_other_types(jaxpr: Jaxpr, outs: Shardings, mesh: Mesh) -> Shardings:
    """The shardings of results, with those of what is moved to lie along the mesh's axes as axes of
    other types."""
    moved = {e.outvars[0]: s for e in jaxpr.eqns if e.primitive is reshard_p
             and (s := e.params["dst_sharding"]).mesh.shape_tuple == mesh.shape_tuple
             and s.mesh.axis_types != mesh.axis_types}
    if not moved:
        return outs
    return tuple([moved[v].update(mesh=mesh.update(axis_types=moved[v].mesh.axis_types))
                  if s is None and type(v) is Var and v in moved else s
                  for s, v in zip(outs, jaxpr.outvars, strict=True)])


def _kinds(shardings: Sequence[Any], avals: Sequence[Any], device: Any) -> Kinds:
    """The memories that shardings name, or else types, where these are not the device's own; empty
    where all are."""
    kinds = [a.place.memory_kind if s is None or s.memory_kind in (None, "device")
             else s.memory_kind for s, a in zip(shardings, avals, strict=True)]
    if not any(kinds):
        return ()
    # Devices that are only described cannot say.
    own = "device" if device is None else device.default_memory().kind
    return tuple([None if kind == own else kind for kind in kinds])


def in_memories(shardings: Sequence[Any], kinds: Kinds) -> list[Any]:
    """Shardings in the memories of these kinds."""
    return [s if k is None else s.with_memory_kind(k)
            for s, k in zip(shardings, kinds or (None,) * len(shardings), strict=True)]


def _mode(layout: Any) -> str | None:
    """XLA's name of a layout."""
    return None if layout is None else "auto" if layout is Layout.AUTO else layout.text()


_placements = Interned()


def placed_on(*fields: Any) -> Placement:
    """The placement with these fields."""
    return _placements.of(fields, Placement)  # type: ignore[no-any-return]


def on_device(device: Any) -> Placement:
    """That of programs for one device."""
    return placed_on((device,), None)


class Described:
    """An argument that only its aval and, it may be, its sharding and layout are known of."""

    __slots__ = ("aval", "layout", "sharding")

    def __init__(self, aval: ShapedArray | AbstractRef, sharding: Any = None,
                 layout: Any = None) -> None:
        self.aval = aval
        self.sharding = sharding
        self.layout = layout

    shape: Field[tuple[int, ...]] = of_field("aval.shape")


def committed_sharding(x: Any) -> Any:
    """Where a value has been put on purpose, or is described to be; None if it may be moved."""
    kind = type(x)
    if kind is ArrayImpl:
        return x._sharding if x._committed else None
    if kind is Described:
        return x.sharding
    base: Any = getattr(x, "_base_array", None)  # an array of an extended dtype, such as PRNG keys
    if type(base) is not ArrayImpl or not base._committed:
        return None
    sharding = base._sharding
    if type(sharding) is NamedSharding and len(sharding.spec) > x.ndim:  # the words of keys
        return sharding.update(spec=sharding.spec.update(partitions=sharding.spec[:x.ndim]))
    return sharding


def committed_layout(x: Any) -> Any:
    """How the elements of a value stand in memory that has been put somewhere or is described to
    be; None where that is the usual order."""
    if type(x) is Described:
        return x.layout
    if type(x) is not ArrayImpl or not x._committed or x.ndim < 2 or x.is_deleted():
        return None
    layout = Layout.for_array(x)
    return None if layout.major_to_minor == tuple(range(x.ndim)) else layout


def placement_of(closed: ClosedJaxpr, given: Shardings, request: Request,
                 lowered_for: str | None = None, leaves_out: bool = False
                 ) -> tuple[Placement, bool]:
    """Where a program runs on arguments with the shardings `given`, None for those that are not
    committed; and whether its results are committed there. One that is only lowered, for the
    platform `lowered_for`, may be over an abstract mesh. One that `leaves_out` what it does not use
    runs where that is.

    Raises:
      ValueError: arguments are on other devices than each other or than the program, or lie
        otherwise than was asked for.
      IndivisibleError: a dimension cannot be cut into so many parts.
    """
    placed, is_elsewhere = _placed(closed)
    if leaves_out and not is_elsewhere and (any(given) or any(request.in_shardings)) and (
            not placed or any([devices_of(s) is not None for s in placed])):
        given, asked = _of_used(closed, given, request.in_shardings)
        request = request._replace(in_shardings=asked if any(asked) else ())
    if (not placed and not is_elsewhere and request.is_trivial and not request.in_layouts
            and not request.out_layouts and configuration.mesh.value is None
            and request.mesh is None
            and (lowered_for is None or configuration.abstract_mesh.value is None
                 or _is_default(lowered_for))):
        device = request.device
        if device is not None:  # arguments are brought there
            return on_device(device), True
        for sharding in given:
            if sharding is not None:
                if type(sharding) is not SingleDeviceSharding:
                    break
                if device is None:
                    device = sharding._device
                elif device is not sharding._device:
                    _raise_incompatible(closed, given, (device,))
        else:
            if device is None:
                return on_device(backends.default_device()), False
            return on_device(device), True
    return _general(closed, given, request, placed, lowered_for), True


def _of_used(closed: ClosedJaxpr, *of_arguments: Shardings) -> list[Shardings]:
    """Shardings of arguments, or none of any, without those of arguments that a program does not
    use, but along Explicit axes where types name some."""
    used = live_inputs(closed, (True,) * len(closed.out_avals))
    typed = any([a.place is not HERE for a in (*compress(closed.in_avals, used),
                                               *closed.out_avals)])

    def decides(sharding: Any) -> bool:
        return typed and bool(getattr(getattr(sharding, "mesh", None), "explicit_axes", ()))

    return [shardings and tuple([s if u or decides(s) else None
                                 for s, u in zip(shardings, used, strict=True)])
            for shardings in of_arguments]


def _general(closed: ClosedJaxpr, given: Shardings, request: Request, placed: Sequence[Any],
             lowered_for: str | None) -> Placement:
    context = None if request.moves else request.mesh or _mesh_that_is_set()
    if request.device is not None:
        if context is not None:
            raise ValueError("Mesh context manager should not be used with jit when backend or "
                             "device is also specified as an argument to jit. Got the mesh "
                             f"{context} and device={request.device!r}.")
        given = (None,) * len(given)
    _check_meshes(closed.jaxpr, dict(zip(closed.jaxpr.invars, given, strict=True)))
    ins = _wanted(closed, given, request.in_shardings, context)
    outs = request.out_shardings or (None,) * len(closed.out_avals)
    known = [s for s in (*ins, *outs, *placed) if s is not None]
    if request.device is not None:
        devices = DeviceList((request.device,))
    elif context is not None:
        devices = context._internal_device_list
    else:
        devices = next((d for s in known if (d := devices_of(s)) is not None), None)
        if devices is None and lowered_for is not None and (
                shape := _abstract_mesh_of(known, lowered_for)) is not None:
            return _over_shape(closed, shape, ins, outs, request)
        if devices is None:
            devices = DeviceList((backends.default_device(),))
    for s in known:
        mesh = getattr(s, "mesh", s)
        if isinstance(mesh, AbstractMesh) and mesh.size != len(devices):
            raise ValueError(f"The program is over {mesh}, which has {mesh.size} devices, and runs "
                             f"on {len(devices)}. Set a mesh of so many devices by `jax.set_mesh`, "
                             "or put an argument on one.")
    if any([(d := devices_of(s)) is not None and d != devices for s in known]):
        options = [devices_of(s) for s in (*ins, *outs) if s is not None and s not in given]
        differ = len({tuple(d) for d in options if d is not None}) > 1
        _raise_incompatible(closed, ins, tuple(devices), outs, context, (
            "Give in_shardings and out_shardings over the same devices." if differ else _MOVE))
    refused = [e for e in closed.effects if e.one_device]
    if refused and len(devices) > 1:
        raise ValueError("The following ordered effects are not supported for more than 1 device: "
                         f"{refused}. Leave ordered=True out, or run it on one device.")
    mesh = _mesh(known, devices, context)
    layouts = request.in_layouts, request.out_layouts
    for what, asked, avals in zip(("arguments", "outputs"), layouts,
                                  (closed.in_avals, closed.out_avals), strict=True):
        _check_layouts(closed, what, asked, avals)
    kinds = (_kinds(ins, closed.in_avals, devices[0]), _kinds(outs, closed.out_avals, devices[0]))
    if mesh is None:
        if not any(layouts) and not any(kinds):
            return on_device(devices[0])
        return placed_on((devices[0],), None, (), (), *layouts, kinds)
    in_shardings = _fitted(closed, "arguments", ins, closed.in_avals, mesh)
    outs = _onto_axes_of_other_types(closed.jaxpr, outs, mesh)
    if mesh.are_all_axes_explicit:
        passed_on = {v: s for v, s in zip(closed.jaxpr.invars, ins, strict=True)
                     if type(s) is NamedSharding and not s.mesh.explicit_axes}
        outs = tuple([passed_on.get(v) if s is None and type(v) is Var else s
                      for s, v in zip(outs, closed.jaxpr.outvars, strict=True)])
    outs = _said_by_types(outs, closed.out_avals, mesh)
    out_shardings = _fitted(closed, "outputs", outs, closed.out_avals, mesh)
    return placed_on(tuple(devices), mesh, in_shardings, out_shardings, *layouts, kinds)


def _said_by_types(shardings: Shardings, avals: Sequence[Any], mesh: Mesh | AbstractMesh
                   ) -> Shardings:
    """The shardings of results, with those of types where these say all: along Explicit axes alone,
    and of sums that are yet to be taken or whose cotangents are, which XLA does not tell of."""
    return tuple([_of_type(a, mesh) if s is None and (
        mesh.are_all_axes_explicit or a.place.spec.unreduced or a.place.spec.reduced) else s
        for s, a in zip(shardings, avals, strict=True)])


def _mesh_that_is_set() -> Mesh | None:
    """The one of this thread, its axes of the types that they are known by."""
    mesh, known = configuration.mesh.value, configuration.abstract_mesh.value
    if mesh is None or known is None or known.axis_types == mesh.axis_types or (
            known.manual_axes or known.shape_tuple != mesh.shape_tuple):
        return mesh  # type: ignore[no-any-return]
    return mesh.update(axis_types=known.axis_types)  # type: ignore[no-any-return]


def _is_default(platform: str) -> bool:
    """Whether programs that name no devices run there."""
    return platform == raw_platform(backends.default_device().client)


def _abstract_mesh_of(known: Sequence[Any], platform: str) -> AbstractMesh | None:
    """The shape of the mesh that a program without devices is over; None if it names none and, for
    another platform than the default one, none is set.

    Raises:
      ValueError: there are several, of different sizes.
    """
    context = configuration.abstract_mesh.value
    if not known and _is_default(platform):
        return None
    found = [] if context is None else [context]
    for s in known:
        mesh = getattr(s, "mesh", s)
        if found and mesh.size != found[0].size:
            what = "context mesh" if found[0] is context else "another one"
            raise ValueError("AbstractMesh should be of the same size across all shardings. Got "
                             f"{what} {found[0]} and {mesh}.")
        found.append(mesh)
    return found[0] if found else None


def _over_shape(closed: ClosedJaxpr, mesh: AbstractMesh, ins: Shardings, outs: Shardings,
                request: Request) -> Placement:
    """The placement of a program whose devices are not known yet."""
    outs = _said_by_types(outs, closed.out_avals, mesh)
    return placed_on((), mesh, _fitted(closed, "arguments", ins, closed.in_avals, mesh),
                     _fitted(closed, "outputs", outs, closed.out_avals, mesh), request.in_layouts,
                     request.out_layouts,
                     (_kinds(ins, closed.in_avals, None), _kinds(outs, closed.out_avals, None)))


def _wanted(closed: ClosedJaxpr, given: Shardings, asked: Shardings, context: Mesh | None
            ) -> Shardings:
    """The sharding of each argument that is settled. One that is asked for by names of axes alone
    is over the mesh that is set, or over that of the argument."""
    if not asked:
        return given
    for i, (has, wants) in enumerate(zip(given, asked, strict=True)):
        if has is None or wants is None:
            continue
        mesh = context if context is not None else getattr(has, "mesh", None)
        if mesh is not None:
            wants = with_devices(wants, mesh)
        if is_cut_alike(has, wants, closed.in_avals[i].ndim):
            continue  # from other devices it is moved as the program is called
        raise ValueError("Sharding passed to jit does not match the sharding on the respective "
                         f"arg. Got jit sharding: {wants},\narg sharding: {has} for arg "
                         f"{_arg_name(closed, i)} of type: {closed.in_avals[i].str_short()}. Put "
                         "the argument there with device_put, or leave in_shardings out: jit takes "
                         "arguments where they are.")
    return tuple([has if wants is None else wants for has, wants in zip(given, asked, strict=True)])


def _mesh(known: Sequence[Any], devices: Any, context: Mesh | None) -> Mesh | None:
    """The mesh whose axes the results are named by; None for one device without a mesh."""
    meshes = [m for s in known if isinstance(m := getattr(s, "mesh", s), Mesh)]
    if context is not None and context._internal_device_list == devices:
        meshes.append(context)
    if meshes:
        return meshes[0]
    if len(devices) == 1:
        return None
    abstract = [m for s in known if isinstance(m := getattr(s, "mesh", s), AbstractMesh)]
    shape, names = (abstract[0].axis_sizes, abstract[0].axis_names) if abstract else \
        ((len(devices),), ("devices",))
    return Mesh(np.array(list(devices), dtype=object).reshape(shape), names)


def _fitted(closed: ClosedJaxpr, what: str, shardings: Shardings, avals: Sequence[Any], mesh: Any
            ) -> Shardings:
    """The shardings by the names of a mesh, where they fit the shapes."""
    out = []
    for i, (sharding, aval) in enumerate(zip(shardings, avals, strict=True)):
        if sharding is not None:
            sharding = with_devices(sharding, mesh)
            check_annotation(partial(_named, closed, "pjit", what, i),
                             sharding, aval.shape, divides=True,
                             function=closed.debug_info.func_src_info)
            sharding = named_sharding(sharding, mesh, aval.ndim)
        out.append(sharding)
    return tuple(out)


def _check_layouts(closed: ClosedJaxpr, what: str, layouts: Layouts, avals: Sequence[Any]) -> None:
    for i, layout in enumerate(layouts):
        if layout is not None and layout is not Layout.AUTO:
            check_annotation(partial(_named, closed, "jit", what, i),
                             layout, avals[i].shape, "layout",
                             function=closed.debug_info.func_src_info)


def _of_type(aval: Any, mesh: Any) -> Any:
    """The sharding that the type of a result says."""
    return aval.place.sharding_along(mesh, aval.ndim) if type(aval) is ShapedArray else None


def with_devices(sharding: Any, mesh: Any) -> Any:
    """A sharding along an abstract mesh with the devices of `mesh`, if it has some."""
    abstract = getattr(sharding, "mesh", None)
    if not isinstance(abstract, AbstractMesh) or isinstance(mesh, AbstractMesh):
        return sharding
    if abstract.shape_tuple != mesh.shape_tuple:
        if abstract.size != mesh.size:
            raise IndivisibleError(f"{sharding}, whose mesh has {abstract.size} devices, but the "
                                   f"program runs on {mesh.size}.")
        mesh = Mesh(mesh.devices.reshape(abstract.axis_sizes), abstract.axis_names)
    return sharding.update(mesh=mesh)


# ---- what a program says itself -----------------------------------------------------------


@derived_structure
def _placed(closed: ClosedJaxpr) -> tuple[Shardings, bool]:
    """The meshes and shardings that operations of a program name, and whether some arguments or
    results are in other memories than the device's. Constants are moved to where the program
    runs."""
    return (tuple(dict.fromkeys([place for _, place in _placed_in(closed)])),
            are_elsewhere(closed.in_avals) or are_elsewhere(closed.out_avals))


def _placed_in(closed: ClosedJaxpr) -> list[tuple[str, Any]]:
    """What operations name devices by, and which do."""
    return [(eqn.primitive.name, place) for eqn in all_eqns(closed)
            if eqn.primitive.placed is not None for place in eqn.primitive.placed(eqn.params)]


# ---- errors -------------------------------------------------------------------------------


def _arg_name(closed: ClosedJaxpr, i: int) -> str:
    names = closed.debug_info.arg_names
    return names[i] if names else f"number {i}"


def _named(closed: ClosedJaxpr, caller: str, what: str, i: int) -> str:
    """Argument or output `i`, for messages."""
    paths = closed.debug_info.result_paths
    name = _arg_name(closed, i) if what == "arguments" else paths[i] if paths else f"number {i}"
    return f"One of {caller} {what} with pytree key path {name}"


_MOVE = "Move one of them with device_put."


def _raise_incompatible(closed: ClosedJaxpr, shardings: Shardings, devices: tuple[Any, ...],
                        outs: Shardings = (), context: Mesh | None = None, cure: str = _MOVE
                        ) -> NoReturn:
    """Say of two arguments, or of one and the program, that they are on different devices."""
    function, users, _ = closed.debug_info.func_src_info.partition(" ")
    names = {} if users else {"self": "x", "other": "y"}  # of operators
    function = (function if users else function.strip("_")) or "the function"
    described: dict[Any, str] = {}  # the first that is said of each place

    def note(place: Any, text: str) -> None:
        if place is not None and (where := devices_of(place)) is not None:
            described.setdefault(tuple(where), f"{text} with device ids {_ids(where)}")

    for i, sharding in enumerate(shardings):
        name = _arg_name(closed, i)
        which = f"argument {names.get(name, name)} of {function}" if (
            closed.debug_info.arg_names) else "an array"
        note(sharding, f"{which} with shape {closed.in_avals[i].str_short()} and")
    note(context, "jit's context mesh")
    for name, place in _placed_in(closed):
        note(place, f"{name} inside jit")
    for sharding in outs:
        note(sharding, "explicit output sharding")
    others = [text for where, text in described.items() if where != devices]
    first = described.get(devices, f"a program that runs with device ids {_ids(devices)}")
    raise ValueError("Received incompatible devices for jitted computation. Got "
                     f"{first} and {others[0]}. {cure}")


def _check_meshes(jaxpr: Jaxpr, shardings: Mapping[Any, Any]) -> None:
    """Check that operations are on operands of one mesh: that which is set, if one is. `shardings`
    are those of arguments; along axes that are all Auto meshes go together.

    Raises:
      ValueError: an operation is on operands of several meshes, or of another one.
    """
    context = configuration.abstract_mesh.value
    where = {v: s.mesh.abstract_mesh for v, s in shardings.items()
             if type(s) is NamedSharding and type(v) is Var}
    meshes = {*where.values(), context} - {None}
    if len(meshes) < 2 or not any([m.explicit_axes for m in meshes]) or (
            context is not None and context.manual_axes):
        return
    for eqn in jaxpr.eqns:
        found = [where[v] for v in eqn.invars if type(v) is Var and v in where]
        if not found or eqn.primitive.placed is not None or holds_jaxprs(eqn):
            continue
        where.update(dict.fromkeys(eqn.outvars, found[0]))
        for mesh in found:
            if mesh.explicit_axes or (context or found[0]).explicit_axes:
                check_mesh(eqn.primitive.name, mesh, [v.aval for v in eqn.invars])
                if mesh.shape_tuple != found[0].shape_tuple:
                    raise ValueError(f"For primitive {eqn.primitive.name}, mesh for all inputs "
                                     f"should be equal. Got one mesh: {found[0]} and another mesh: "
                                     f"{mesh}. Put them on one by jax.device_put.")


def _ids(devices: Any) -> str:
    return f"{[d.id for d in devices]} on platform {devices[0].platform.upper()}"
