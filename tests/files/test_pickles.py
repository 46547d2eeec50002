"""Pickles that cross: of jax under the alias, and of pyjx's alias where PYJX_ORACLE_PYTHON is."""

import copy
import json
import os
import pickle
import pickletools
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import pyjx
from tests.files import ARCHIVES, contents

ROOT = Path(pyjx.__file__).parents[1]

# What a process says of the objects of a folder, or of an archive: described, or the error.
READ = """
import json, os, pickle, sys
if "alias" in sys.argv:
    import pyjx.as_jax
import jax
from tests.files import contents, objects
where = sys.argv[1]
if os.path.isdir(where):
    found = {name: open(os.path.join(where, name), "rb").read() for name in os.listdir(where)}
else:
    found = {name: data for name, data in contents(where).items() if name[:6] == "pickle"}
said = {}
for name, data in found.items():
    try:
        said[name] = objects.described(pickle.loads(data))
    except Exception as error:
        said[name] = ["refused", f"{type(error).__name__}: {error}"]
print(json.dumps([said, {name: objects.described(make())
                         for name, make in objects.MAKERS.items()}], default=str))
"""

WRITE = """
import os, pickle, sys
import pyjx.as_jax
from tests.files import objects
for name, make in objects.MAKERS.items():
    for protocol in (2, 4):
        with open(os.path.join(sys.argv[1], f"pickle{protocol}.{name}"), "wb") as file:
            pickle.dump(make(), file, protocol)
"""


def run(python, code, *arguments, **environ):
    done = subprocess.run([python, "-c", code, *arguments], cwd=ROOT, capture_output=True,
                          text=True, check=False, env={**os.environ, **environ})
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def said(version):
    """What the alias says of each object of the version's, and of its own."""
    return json.loads(run(sys.executable, READ, version, "alias"))


# Types are shared, so they cannot be filled with a state, which they were pickled as before 0.10.
REFUSED = {("type", version) for version in ("0.7.2", "0.8.3", "0.9.2")}


@pytest.mark.parametrize("version", ARCHIVES)
def test_what_jax_pickled_loads(version):
    found, wanted = said(version)
    assert len(found) > 95
    wrong = {}
    for name, description in found.items():
        kind = name.partition(".")[2]
        if (kind, version) in REFUSED:
            assert description[0] == "refused" and "ShapedArray" in description[1]
        elif description != wanted[kind]:
            wrong[name] = description, wanted[kind]
    assert {name: pair for name, pair in wrong.items() if not older(name, version)} == {}


def older(name, version):
    """Whether the version did not write all that there is now of such an object."""
    age = tuple(map(int, version.split(".")[:2]))
    kind = name.partition(".")[2]
    return (kind == "unreduced" and age < (0, 12)) or (kind == "mesh of a device" and age < (0, 10))


# -- what pyjx writes ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder of what pyjx pickles under the name jax."""
    folder = tmp_path_factory.mktemp("pickles")
    run(sys.executable, WRITE, str(folder))
    return folder


def modules_in(data):
    """The modules of the names that a pickle refers to."""
    texts, found = [], set()
    for op, argument, _ in pickletools.genops(data):
        if op.name == "GLOBAL":
            found.add(argument.split(" ")[0])
        elif op.name == "STACK_GLOBAL":
            found.add(texts[-2])
        elif isinstance(argument, str):
            texts.append(argument)
    return {name.partition(".")[0] for name in found}


def test_pickles_of_the_alias_have_names_of_jax(written):
    for path in written.iterdir():
        assert "pyjx" not in modules_in(path.read_bytes()), path.name


def test_pickles_of_the_alias_load_there(written):
    found, wanted = json.loads(run(sys.executable, READ, str(written), "alias"))
    assert len(found) == 2 * len(wanted)
    assert {name: said for name, said in found.items()
            if said != wanted[name.partition(".")[2]]} == {}


@pytest.mark.oracle
def test_pickles_of_the_alias_load_in_jax(written):
    python = os.environ.get("PYJX_ORACLE_PYTHON")
    if not python:
        pytest.skip("PYJX_ORACLE_PYTHON names no Python with jax")
    found, wanted = json.loads(run(python, READ, str(written)))
    masks = [found.pop(f"pickle{protocol}.error of a mask") for protocol in (2, 4)]
    assert [kind for kind, _ in masks] == ["NonConcreteBooleanIndexError"] * 2  # in other words
    assert {name: said for name, said in found.items()
            if said != wanted[name.partition(".")[2]]
            and "error of a tracer" not in name} == {}  # of its own jax loads none, either


NAMED_OTHERWISE = r"""
import importlib, pickle, sys
import pyjx.as_jax
import jax, jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu, tpu
for module, name, public in [
    ("core", "ForbiddenCollectiveError", None), ("core", "ShardingTypeError", None),
    ("export.shape_poly", "InconclusiveDimensionOperation", "errors"),
    ("export.shape_poly", "UnexpectedDimVar", None),
    ("named_sharding", "DuplicateSpecError", None), ("sharding", "IndivisibleError", None),
    ("pallas.mosaic.core", "AccMemorySpace", None),
    *[("pallas.mosaic_gpu.core", name, "experimental.pallas.mosaic_gpu")
      for name in ("Barrier", "MemorySpace", "BlockSpec", "WGMMAAccumulatorRef")],
    ("pallas.mosaic_gpu.primitives", "wgmma", "experimental.pallas.mosaic_gpu"),
    ("pallas.mosaic_gpu.helpers", "nd_loop", "experimental.pallas.mosaic_gpu"),
    ("state.types", "Transform", "experimental.pallas.mosaic_gpu"),
]:
    found = pickle.loads(f"cjax._src.{module}\n{name}\n.".encode())
    if public:
        assert found is getattr(importlib.import_module(f"jax.{public}"), name), name
assert pickle.loads(b"cjax._src.pallas.mosaic.core\nAccMemorySpace\n.") is tpu.ACC
for name, public in [("RClass", "r_"), ("CClass", "c_"), ("_Mgrid", "mgrid"), ("_Ogrid", "ogrid")]:
    state = "}(V__module__\nVjax.numpy\nub."
    data = f"\x80\x02cjax._src.numpy.index_tricks\n{name}\n)\x81{state}".encode("latin1")
    assert pickle.loads(data) is getattr(jnp, public), name
assert jax.sharding.Mesh.__module__ == "jax.sharding"
"""


def test_names_that_jax_has_elsewhere_are_found():
    """Which are those of classes of chips, of errors, and of objects of which there is one."""
    run(sys.executable, NAMED_OTHERWISE)


def test_errors_are_pickled_without_what_messages_are_made_of():
    with pytest.raises(IndexError) as mask:
        pyjx.jit(lambda x: x[x > 0])(pyjx.numpy.ones(3))
    with pytest.raises(Exception, match="inconclusive") as size:
        bool(pyjx.export.symbolic_shape("a")[0] > 5)
    for error in (mask.value, size.value):
        error.marked = 1  # by users
        error.add_note("here")
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.marked) == (type(error), str(error), 1)
        assert again.__notes__ == error.__notes__
        assert modules_in(pickle.dumps(error)) == {"pyjx"}
        assert [getattr(again, name, None) for name in ("said", "question")] == [None, None]


# What a process that has just come under the alias writes of each object, each in a child of its
# own, and of each public name: by whom and of what the texts are that begin with pyjx's name.
NAMES = """
import importlib, json, os, pickle, pickletools, sys
import pyjx.as_jax
import cloudpickle
from tests.files import contents, objects
order = [pickle, cloudpickle][::int(sys.argv[1])]
def own(value):
    found = {}
    for writer in order:
        try:
            data = writer.dumps(value)
        except Exception:
            continue
        texts = [x for _, x, _ in pickletools.genops(data) if isinstance(x, str)]
        named = [x for x in texts if x == "pyjx" or x.startswith("pyjx.")]
        if named:
            found[writer.__name__] = named
    return found
said = {}
for name, make in objects.MAKERS.items():
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, json.dumps(own(make()))[:4000].encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    said[name] = os.read(reader, 4096).decode() or "ended"
    os.close(reader)
for name in json.loads(contents("0.12.0.1")["names"]):
    module, _, public = name.partition(":")
    try:
        value = getattr(importlib.import_module(module), public)
    except (AttributeError, ImportError):
        continue
    said[name] = json.dumps(own(value))
print(json.dumps({name: found for name, found in said.items() if found != "{}"}))
"""


# What pyjx writes by its own names: jax cannot fill it with what it holds here, or has it in a
# module that lists no names.
OWN = {
    "jax.experimental.checkify:Error", "jax.experimental.checkify:init_error",
    "jax.experimental.sparse.ad:wraps", "jax.experimental.sparse.bcsr:bcsr_eliminate_zeros",
    "jax.experimental.sparse.transform:eval_sparse",
    "jax.interpreters.batching:axis_primitive_batchers",
    "jax.interpreters.batching:primitive_batchers", "jax.interpreters.batching:zero_if_mapped",
    "jax.interpreters.xla:canonicalize_dtype_handlers"}


@pytest.mark.parametrize("order", ["1", "-1"], ids=["pickle", "cloudpickle"])
def test_names_are_of_jax_whoever_writes_first(order):
    """What nobody has named in the process, too."""
    pytest.importorskip("cloudpickle")
    found = json.loads(run(sys.executable, NAMES, order))
    assert {name: by for name, by in found.items() if name not in OWN} == {}


RESOLVE = """
import importlib, json, pickle
import pyjx.as_jax
from tests.files import contents
missing = []
for public, held in json.loads(contents("0.12.0.1")["names"]).items():
    module, _, name = public.partition(":")
    try:
        value = getattr(importlib.import_module(module), name)
    except (AttributeError, ImportError):
        continue  # it is absent
    module, _, name = held.partition(":")
    try:
        pickle.loads(f"c{module}\\n{name}\\n.".encode())
    except Exception as error:
        missing.append((public, held, str(error)))
print(json.dumps(missing))
"""


# Classes of the interpreters' inner workings, a module that is a package in jax alone, and one of
# which pyjx has the names alone.
UNKNOWN = ("jax._src.interpreters.", "jax.experimental.roofline.roofline:", "jax._src.thunky.",
           "jax._src.dtypes:_CanonicalizeValueHandlersDict")


def test_names_that_pickles_of_jax_hold_are_known():
    missing = json.loads(run(sys.executable, RESOLVE))
    assert [entry for entry in missing if not entry[1].startswith(UNKNOWN)] == []
    assert len(missing) < 50


@pytest.mark.parametrize("make", [
    lambda: pyjx.custom_derivatives.SymbolicZero(pyjx.typeof(1.0)),
    lambda: pyjx.experimental.pallas.GridSpec((2,)),
    lambda: pyjx.experimental.roofline.RooflineResult(flops=3),
    lambda: pyjx.experimental.roofline.RooflineShape((2,), "float32")],
    ids=["zero", "grid", "costs", "shape"])
def test_states_that_jax_keeps_otherwise_are_not_written(make):
    """What has none is made by a call, which all versions know."""
    assert len(make().__reduce_ex__(4)) == 2


class Grid(pyjx.experimental.pallas.tpu.PrefetchScalarGridSpec):
    """A user's, whose constructor takes other things."""

    def __init__(self, rows):
        super().__init__(1, (rows, 2))
        self.rows = rows


class Shape(pyjx.experimental.roofline.RooflineShape):
    """A user's."""


class Struct(pyjx.ShapeDtypeStruct):
    """A user's, with a name."""

    def __init__(self, name):
        super().__init__((2,), "float32", weak_type=True)
        self.name = name


class Zero(pyjx.custom_derivatives.SymbolicZero):
    """A user's."""


@pytest.mark.parametrize("made", [
    Grid(3), Shape((2,), "float32"), pyjx.experimental.roofline.RooflineResult(ici_bytes={"x": 1}),
    pyjx.experimental.pallas.tpu.PrefetchScalarGridSpec(1, (2,)),
    Struct("x"), Zero(None)],
    ids=lambda made: type(made).__name__)
@pytest.mark.parametrize("again", [
    copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))],
    ids=["copy", "deepcopy", "pickle"])
def test_copies_are_of_the_class_and_have_all_that_it_adds(made, again):
    other = again(made)
    assert type(other) is type(made) and vars(other) == vars(made)
    assert repr(other) == repr(made)
    if again is copy.deepcopy:
        assert all(value is not vars(made)[name] for name, value in vars(other).items()
                   if isinstance(value, dict))


def test_a_mesh_of_a_class_of_its_own_is_copied_as_one():
    class Mesh(pyjx.sharding.Mesh):
        pass

    made = Mesh(pyjx.devices()[:1], "x")
    assert copy.copy(made) is made and type(made) is Mesh


def test_a_reference_is_pickled_as_its_value():
    """What is written to one is not seen through the other."""
    ref = pyjx.new_ref(pyjx.numpy.ones(2))
    other = pickle.loads(pickle.dumps(ref))
    ref[0] = 3.0
    assert type(other) is type(ref) and other[...].tolist() == [1, 1]


@pytest.mark.parametrize(("make", "cure"), [
    (lambda: pyjx.make_jaxpr(pyjx.numpy.sin)(1.0), "ClosedJaxpr' object: export"),
    (lambda: pyjx.make_jaxpr(pyjx.numpy.sin)(1.0).jaxpr, "Jaxpr' object: export"),
    (lambda: pyjx.jit(pyjx.numpy.sin).trace(1.0), "Traced' object: export"),
    (lambda: pyjx.jit(pyjx.numpy.sin).lower(1.0), "Lowered' object: export"),
    (lambda: pyjx.jit(pyjx.numpy.sin).lower(1.0).compile(), "serialize_executable"),
], ids=["closed", "jaxpr", "traced", "lowered", "compiled"])
def test_programs_are_not_pickled_and_say_what_serves(make, cure):
    made = make()
    with pytest.raises(TypeError, match=cure):
        pickle.dumps(made)
    assert copy.copy(made) is made and copy.deepcopy(made) is made


def test_types_of_references_stay_what_they_are_under_the_alias():
    """They are made by their class, which refuses to make one of nothing."""
    data = contents("0.12.0.1")["pickle4.reference"]
    run(sys.executable, f"""
import pickle
from pyjx.core.avals import AbstractRef
new = AbstractRef.__new__
import pyjx.as_jax, jax
from jax._src.state import types
assert types.AbstractRef is AbstractRef and AbstractRef.__new__ is new
try:
    AbstractRef()
except TypeError as error:
    assert "inner_aval" in str(error)
else:
    raise AssertionError
told = jax.typeof(pickle.loads({data!r}))
assert type(told) is AbstractRef and pickle.loads(pickle.dumps(told)) is told
made = new(AbstractRef)
made.__setstate__((None, dict(inner_aval=told.inner_aval, memory_space=told.memory_space)))
assert made.shape == told.shape and made.update() is told.update()
""")


def test_functions_that_unravel_load_without_arrays_of_their_size():
    """This one's would take four terabytes."""
    assert run(sys.executable, """
import copy, pickle
import pyjx.as_jax, jax
from jax.flatten_util import Unravel
unravel = Unravel(jax.tree.structure({"x": 0}), ((1 << 30, 1 << 10),), None, None)
for other in (pickle.loads(pickle.dumps(unravel)), copy.copy(unravel), copy.deepcopy(unravel)):
    assert other == unravel
""") == ""


def test_modules_are_of_jax_where_cloudpickle_takes_a_function_along():
    pytest.importorskip("cloudpickle")
    told = run(sys.executable, """
import pickletools, pyjx.as_jax, cloudpickle
from jax import errors, ffi, lax, nn, tree_util
from jax.experimental import checkify, rnn, sparse
from jax.scipy.stats import norm
def own():
    return errors, ffi, lax, nn, tree_util, checkify, rnn, sparse, norm
print([x for _, x, _ in pickletools.genops(cloudpickle.dumps(own)) if "pyjx" in str(x)])
""")
    assert told.strip() == "[]"


@pytest.mark.parametrize("name", ["spec", "struct", "key", "named", "mixed mesh", "layout"])
def test_one_alone_loads(name, tmp_path):
    """Nothing else in the process has brought what it needs."""
    (tmp_path / "one").write_bytes(contents("0.9.2")[f"pickle4.{name}"])
    code = f"import pickle, pyjx.as_jax\nprint(pickle.load(open({str(tmp_path / 'one')!r}, 'rb')))"
    assert run(sys.executable, code).strip()


def test_without_the_alias_pickles_have_names_of_pyjx():
    value = {"x": pyjx.numpy.ones(2), "key": pyjx.random.key(0), "spec": pyjx.P("x")}
    data = pickle.dumps(value)
    assert "jax" not in modules_in(data) and "pyjx" in modules_in(data)
    code = f"import pickle, pyjx.as_jax\nprint(pickle.loads({data!r})['spec'])"
    assert run(sys.executable, code).strip() == "P('x',)"


def test_a_mesh_that_is_told_by_its_state_is_the_one_of_its_kind():
    data = contents("0.9.2")["pickle4.named"]
    code = (f"import pickle, pyjx.as_jax, jax\nfrom tests.files import objects\n"
            f"found = pickle.loads({data!r})\n"
            "assert found.mesh is objects.MIXED and found == objects.MAKERS['named']()")
    run(sys.executable, code)


def test_annotations_of_classes_are_known_though_they_are_of_jax():
    """Libraries look for the names in them in the module that a class says it is of."""
    run(sys.executable, """
import pyjx.as_jax, jax, jax.scipy.optimize, typing
for cls in (jax.lax.RaggedDotDimensionNumbers, jax.ShapeDtypeStruct, jax.P,
            jax.sharding.AbstractMesh, jax.scipy.optimize.OptimizeResults):
    assert cls.__module__.startswith("jax") and typing.get_type_hints(cls), cls
class Own(jax.scipy.optimize.OptimizeResults):
    more: "int"
assert typing.get_type_hints(Own)["more"] is int
""")
