"""Meshes without devices, specs, and the mesh of a thread."""

import gc
import inspect
import pickle

import numpy as np
import pytest

import pyjx as jax
import pyjx.compat.pickles  # gives meshes the states of jax's pickles
from pyjx.runtime.sharding import DuplicateSpecError
from pyjx.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    ManualAxisType,
    Mesh,
    NamedSharding,
    UnreducedKind,
    get_abstract_mesh,
    get_mesh,
    use_abstract_mesh,
)
from pyjx.sharding import PartitionSpec as P

AUTO, EXPLICIT, MANUAL = AxisType.Auto, AxisType.Explicit, AxisType.Manual
ABSTRACT = AbstractMesh((2, 4), ("x", "y"))


@pytest.fixture
def mesh():
    return jax.make_mesh((1, 1), ("x", "y"))


def test_abstract_mesh():
    assert repr(ABSTRACT) == str(ABSTRACT) == (
        "AbstractMesh('x': 2, 'y': 4, axis_types=(Explicit, Explicit))")
    assert ABSTRACT is AbstractMesh((2, 4), ("x", "y")) is pickle.loads(pickle.dumps(ABSTRACT))
    assert dict(ABSTRACT.shape) == {"x": 2, "y": 4} and ABSTRACT.size == 8
    assert ABSTRACT.abstract_mesh is ABSTRACT and ABSTRACT.abstract_device is None
    mixed = ABSTRACT.update_axis_types({"x": MANUAL})
    assert mixed.manual_axes == ("x",) and mixed.explicit_axes == ("y",) and mixed.auto_axes == ()
    assert mixed.are_all_axes_explicit_or_manual and not mixed.are_all_axes_manual
    assert ABSTRACT.update(axis_sizes=(1, 2), axis_names=("a", "b")).shape_tuple == (
        ("a", 1), ("b", 2))
    device = AbstractDevice("cpu", 1, "cpu")
    assert device == AbstractDevice("cpu", 1, "cpu") != AbstractDevice("cpu", 2, "cpu")
    assert repr(AbstractMesh((2,), "x", AUTO, abstract_device=device)) == (
        "AbstractMesh('x': 2, axis_types=(Auto,), device_kind=cpu, num_cores=1, platform=cpu)")
    empty = AbstractMesh((), ())
    assert empty.empty and repr(empty) == "AbstractMesh((), axis_types=())"


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: AbstractMesh((2,), ("x", "y")), ValueError, "a name for each axis"),
    (lambda: AbstractMesh((2,), ("x",), (AUTO, AUTO)), ValueError, "Number of axis names should"),
    (lambda: AbstractMesh((2,), ("x",), ("a",)), TypeError, "must be of type `jax.sharding.Axi"),
    (lambda: ABSTRACT.devices, ValueError, "AbstractMesh does not implement devices"),
    (lambda: ABSTRACT.__enter__(), ValueError, "does not implement __enter__"),
    (lambda: ABSTRACT.update(size=2), TypeError, "unexpected keyword argument 'size'"),
    (lambda: Mesh(jax.devices()[:1], ("x", "y")), ValueError, "Mesh requires the ndim"),
    (lambda: Mesh(jax.devices()[:1], (None,)), ValueError, "axis names cannot be None"),
    (lambda: jax.make_mesh((4000, 4), ("x", "y")), ValueError, "must be >= the product of mesh_s"),
    (lambda: NamedSharding(ABSTRACT, P("q", "q")), DuplicateSpecError, "duplicate entries for `q`"),
    (lambda: NamedSharding(ABSTRACT, P(P.UNCONSTRAINED)), ValueError, "cannot contain `P.UNCONS"),
    (lambda: NamedSharding(ABSTRACT.update(axis_types=(AUTO, EXPLICIT)), P(unreduced={"x"})),
     ValueError, "Unreduced axes can only refer to mesh axes that is of type `Explicit`"),
    (lambda: NamedSharding(ABSTRACT.update(axis_types=(MANUAL, AUTO)), P("y", reduced={"x"})),
     ValueError, "Reduced axes can only refer to mesh axes that is of type `Explicit`"),
    (lambda: jax.set_mesh(Mesh(jax.devices()[:1], ("x",), MANUAL)), ValueError,
     "contains manual axes which is not allowed"),
    (lambda: jax.set_mesh(ABSTRACT), ValueError, "Expected mesh of type `jax.sharding.Mesh`"),
    (lambda: use_abstract_mesh(get_mesh()), ValueError, "`jax.sharding.AbstractMesh`"),
    (lambda: P("x", ("y", ("z",))), ValueError, "cannot contain a nested tuple"),
    (lambda: P("x", unreduced={"x"}), ValueError, "partitions cannot overlap with unreduced"),
    (lambda: P(unreduced={"x"}, reduced={"x"}), ValueError, "argument to PartitionSpec cannot ov"),
    (lambda: P(unreduced="x"), TypeError, "should of type `frozenset` or `set`"),
    (lambda: P("x", unreduced_kind=UnreducedKind.max), ValueError, "should be `None` when"),
    (lambda: P(unreduced={"x"}, unreduced_kind="max"), TypeError, "Expected unreduced_kind"),
    (lambda: P(unreduced={"x"}) + P("y"), TypeError, "can't be added if the unreduced_kind"),
    (lambda: P("x").update(kind=1), TypeError, "unexpected keyword argument 'kind'"),
    (lambda: ManualAxisType(varying="x"), TypeError, "varying argument of ManualAxisType"),
    (lambda: ManualAxisType(varying={"x"}, reduced={"x"}), ValueError, "cannot have common mesh"),
    (lambda: NamedSharding(ABSTRACT, P(unreduced={"q"})), ValueError, "Unreduced axes q is not"),
    (lambda: NamedSharding(ABSTRACT, P("q")), ValueError, "Resource axis: q of"),
    (lambda: NamedSharding(ABSTRACT, P("x")).device_set, ValueError, "is not implemented for"),
    (lambda: jax.device_put(np.ones(8), P("x")), ValueError, "Please set a mesh via"),
])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_nothing_is_set_by_what_is_refused(mesh):
    with jax.set_mesh(mesh):
        with pytest.raises(ValueError, match="contains manual axes"):
            jax.set_mesh(mesh.update(axis_types=(MANUAL, AUTO)))
        assert get_mesh() is mesh


FROZEN = {
    "Mesh": (lambda: Mesh(jax.devices()[:1], ("x",)), ("axis_names", "devices", "size", "new")),
    "AbstractMesh": (lambda: ABSTRACT, ("axis_names", "axis_types", "size", "new")),
    "AbstractDevice": (lambda: AbstractDevice("cpu", 1, "cpu"), ("platform", "new")),
    "PartitionSpec": (lambda: P("x"), ("unreduced", "unreduced_kind", "_partitions", "new")),
    "ManualAxisType": (lambda: jax.typeof(1.).mat, ("varying", "reduced", "new")),
    "ShapedArray": (lambda: jax.typeof(1.), ("shape", "dtype", "weak_type", "sharding", "new")),
}


@pytest.mark.parametrize("name", FROZEN)
def test_what_keys_are_made_of_stays(name):
    make, fields = FROZEN[name]
    value = make()
    before = repr(value)
    for field in fields:
        with pytest.raises(AttributeError):
            setattr(value, field, None)
        with pytest.raises(AttributeError):
            delattr(value, field)
    assert repr(value) == before
    assert pickle.loads(pickle.dumps(value)) == value and hash(value) == hash(make())


def test_mesh_of_no_devices(mesh):
    empty = Mesh(np.empty((), object), ())
    assert empty is get_mesh() and empty.empty and empty.size == 0 and empty.shape == {}
    assert empty.local_devices == [] and empty.device_ids.size == 0 and empty.local_mesh is empty
    assert NamedSharding(empty, P()).spec == P()
    with jax.set_mesh(mesh):
        for none in (None, empty):
            with jax.set_mesh(none):
                assert get_mesh().empty and get_abstract_mesh().empty
                assert len(jax.numpy.ones(2).devices()) == 1
            assert get_mesh() is mesh


def test_mesh(mesh):
    assert mesh is jax.make_mesh((1, 1), ("x", "y")) and mesh.axis_types == (EXPLICIT, EXPLICIT)
    assert repr(mesh) == ("Mesh(axis_sizes=(1, 1), axis_names=('x', 'y'), "
                          "axis_types=(Explicit, Explicit))")
    assert str(mesh) == "Mesh('x': 1, 'y': 1, axis_types=(Explicit, Explicit))"
    assert Mesh(mesh.devices, ("x", "y")).axis_types == (AUTO, AUTO)
    assert mesh.abstract_mesh.abstract_device.platform == jax.devices()[0].platform
    assert mesh.update(axis_names=("a", "b")).axis_names == ("a", "b")
    assert jax.make_mesh((), ()).is_scalar and not mesh.is_scalar and not mesh.is_multi_process
    assert mesh.device_ids.tolist() == [[jax.devices()[0].id]]
    assert pickle.loads(pickle.dumps(mesh)) is mesh


def test_mesh_of_the_thread(mesh):
    assert get_mesh().empty and str(get_mesh()) == "Mesh()" and get_abstract_mesh().empty
    assert repr(get_mesh()) == "Mesh(axis_sizes=(), axis_names=())"
    with jax.set_mesh(mesh) as nothing:
        assert nothing is None and get_mesh() is mesh
        assert get_abstract_mesh() is mesh.abstract_mesh
        with jax.set_mesh(mesh.update(axis_names=("a", "b"))):
            assert get_mesh().axis_names == ("a", "b")
        assert get_mesh() is mesh
        assert jax.device_put(np.ones(2), P("x")).sharding == NamedSharding(mesh, P("x"))
        with pytest.raises(ValueError, match="cannot change the size of the mesh"), \
                use_abstract_mesh(ABSTRACT):
            pass
    assert get_mesh().empty
    setting = jax.set_mesh(mesh)
    assert get_mesh() is mesh
    setting.__exit__(None, None, None)
    assert get_mesh().empty
    outer, inner = use_abstract_mesh(ABSTRACT), use_abstract_mesh(ABSTRACT)
    with outer, inner:
        assert inner.prev is ABSTRACT is not outer.prev
    with use_abstract_mesh(ABSTRACT) as known:
        assert known is get_abstract_mesh() is ABSTRACT and get_mesh().empty


def test_a_mesh_as_a_context_is_that_of_constraints_alone(mesh):
    def spread(x):
        return jax.lax.with_sharding_constraint(x, P("x"))

    mesh = mesh.update(axis_types=(AxisType.Auto,) * 2)
    with pytest.warns(DeprecationWarning, match="use `with jax.set_mesh"), mesh as same:
        assert same is mesh and get_mesh().empty and get_abstract_mesh().empty
        assert jax.jit(spread)(np.ones(2)).sharding.mesh is mesh
        assert spread(np.ones(2)).sharding == NamedSharding(mesh, P("x"))
        with pytest.raises(RuntimeError, match="non-empty mesh in context"):
            jax.jit(lambda x: x, in_shardings=P("x"))(np.ones(2))
    with pytest.raises(RuntimeError, match="non-empty mesh in context"):
        jax.jit(spread)(np.ones(2))
    jax.config.update("jax_disallow_mesh_context_manager", True)
    try:
        with pytest.raises(RuntimeError, match="Mesh context manager is disabled"):
            mesh.__enter__()
    finally:
        jax.config.update("jax_disallow_mesh_context_manager", False)


def test_mesh_inside_jit(mesh):
    seen = []

    @jax.jit
    def f(x):
        seen.append(get_abstract_mesh())
        return x

    f(1.0)
    with jax.set_mesh(mesh):
        f(1.0)
        f(1.0)
    f(1.0)
    assert [m.empty for m in seen] == [True, False]  # traced once for each
    for name, call in (("get_mesh", get_mesh), ("set_mesh", lambda: jax.set_mesh(mesh))):
        with pytest.raises(ValueError, match=f"`{name}` can only be used outside of `jax.jit`"):
            jax.jit(lambda call=call: call())()


def test_specs():
    summed = P("x", None, unreduced={"y"})
    assert repr(summed) == "P('x', None, unreduced={'y'}, unreduced_kind=sum)"
    assert summed.to_ct_spec() == P("x", None, reduced={"y"})
    assert summed.to_ct_spec().to_ct_spec() == summed and summed.to_tangent_spec() == summed
    assert summed.to_lo() == [summed] and pickle.loads(pickle.dumps(summed)) == summed
    largest = P("x", unreduced={"y"}, unreduced_kind=UnreducedKind.max)
    assert repr(largest) == "P('x', unreduced={'y'}, unreduced_kind=max)"
    assert largest != P("x", unreduced={"y"}) and P("x").unreduced_kind is None
    assert P("x").update(unreduced={"y"}).unreduced_kind is UnreducedKind.sum
    assert P("x") + ("y",) == P("x", "y") == ("x",) + P("y")
    assert P("x") + P("y", reduced={"z"}) == P("x", "y", reduced={"z"})


def test_manual_axis_type():
    varying = ManualAxisType(varying={"x"})
    assert repr(varying) == ("ManualAxisType(varying=frozenset({'x'}), unreduced=frozenset(), "
                             "reduced=frozenset(), unreduced_kind=None)")
    summed = ManualAxisType(unreduced={"y"})
    assert summed.unreduced_kind is UnreducedKind.sum and summed.vur == {"y"}
    assert summed.to_ct_mat() == ManualAxisType(reduced={"y"})
    assert summed.to_ct_mat().to_ct_mat() == summed
    assert ManualAxisType().empty and not varying.empty and hash(varying) != hash(summed)
    manual = ABSTRACT.update(axis_types=(MANUAL, MANUAL))
    assert varying.invarying(manual) == {"y"} and varying.invarying(ABSTRACT) == frozenset()
    assert varying.update(varying=set(), reduced={"x"}) == ManualAxisType(reduced={"x"})


def test_shardings_without_devices():
    sharding = NamedSharding(ABSTRACT, P("x"))
    assert sharding.num_devices == 8 and sharding.shard_shape((4, 4)) == (2, 4)
    assert not sharding.is_fully_replicated and sharding.memory_kind is None
    assert sharding.replicated_axes == {"y"}
    assert repr(sharding) == (
        "NamedSharding(mesh=AbstractMesh('x': 2, 'y': 4, axis_types=(Explicit, Explicit)), "
        "spec=P('x',))")


def test_both_names_of_the_sizes_of_a_mesh_that_is_made():
    want = jax.make_mesh((1,), ("x",))
    assert jax.make_mesh(axis_sizes=(1,), axis_names=("x",)) == want
    assert jax.make_mesh(axis_shapes=(1,), axis_names=("x",)) == want
    assert jax.make_mesh(iter((1,)), ("x",)) == want
    with pytest.raises(TypeError, match="missing required argument 'axis_names'"):
        jax.make_mesh((1,))
    with pytest.raises(TypeError, match="missing required argument 'axis_sizes'"):
        jax.make_mesh()
    with pytest.raises(TypeError, match="give one of them"):
        jax.make_mesh((1,), ("x",), axis_shapes=(1,))


def of_a_state(mesh):
    """A mesh as pickles of jax before 0.10 make it."""
    made = AbstractMesh.__new__(AbstractMesh)
    made.__setstate__({"axis_sizes": mesh.axis_sizes, "axis_names": mesh.axis_names,
                       "axis_types": mesh.axis_types, "abstract_device": mesh.abstract_device})
    return made


def test_meshes_of_a_state_are_equal_to_others():
    loaded = of_a_state(ABSTRACT)
    assert loaded == ABSTRACT == loaded == of_a_state(ABSTRACT)
    assert hash(loaded) == hash(ABSTRACT) and {ABSTRACT: 1}[loaded] == 1
    assert loaded != AbstractMesh((2, 4), ("x", "z")) and loaded != 3
    assert repr(loaded) == repr(ABSTRACT) and isinstance(loaded, AbstractMesh)
    assert pickle.loads(pickle.dumps(loaded)) is ABSTRACT is loaded.update()
    assert jax.NamedSharding(loaded, jax.P("x")) == jax.NamedSharding(ABSTRACT, jax.P("x"))
    alone = of_a_state(AbstractMesh((3, 7), ("u", "v")))
    before = hash(alone)
    gc.collect()
    assert hash(alone) == before == hash(AbstractMesh((3, 7), ("u", "v")))


def test_a_mesh_that_is_shared_keeps_its_state():
    before = repr(ABSTRACT)
    for mesh in (ABSTRACT, of_a_state(ABSTRACT)):
        with pytest.raises(TypeError, match="keeps its state"):
            mesh.__setstate__({"axis_sizes": (7,), "axis_names": ("z",), "axis_types": AUTO,
                               "abstract_device": None})
    assert repr(ABSTRACT) == before


def test_a_mesh_is_called_with_sizes_and_names():
    with pytest.raises(TypeError, match="axis_sizes"):
        AbstractMesh()
    sizes = inspect.signature(AbstractMesh).parameters["axis_sizes"]
    assert sizes.default is sizes.empty


def test_names_of_axes_are_a_sequence():
    with pytest.raises(TypeError, match=r"axis_names must be a sequence of names, .*, got 3"):
        jax.sharding.Mesh(jax.devices()[:1], 3)


def test_a_mesh_decorates_functions():
    mesh = Mesh(np.array(jax.devices()[:1]), ("a",))

    @mesh
    def inside():
        return jax.lax.with_sharding_constraint(np.ones(2), P("a")).sharding.mesh

    with pytest.warns(DeprecationWarning, match="`with mesh:` context manager"):
        assert inside() == mesh
