"""Pickles that cross: of jax under the alias, and of pyjx's alias where PYJX_ORACLE_PYTHON is."""

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
    assert {name: said for name, said in found.items()
            if said != wanted[name.partition(".")[2]]
            and "error of a tracer" not in name} == {}  # of its own jax loads none, either


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
