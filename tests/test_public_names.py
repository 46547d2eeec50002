"""Public names: each loads, the stubs agree with the tables, and importing brings in little."""

import importlib
import pickle
import re
import subprocess
import sys
from operator import attrgetter, itemgetter
from pathlib import Path
from types import GenericAlias

import pytest

import pyjx
from pyjx.cli import stubs

pytestmark = pytest.mark.smoke

TABLES = stubs.PACKAGES
ROOT = Path(__file__).parents[1]


def names_of(package):
    families = importlib.import_module(package).FAMILIES
    return [(module, entry.partition("=")[0])
            for module, names in families.items() for entry in names.split()]


@pytest.mark.parametrize("package", TABLES)
def test_every_listed_name_resolves(package):
    module = importlib.import_module(package)
    missing = []
    for source, name in names_of(package):
        try:
            getattr(module, name)
        except (AttributeError, ImportError) as error:
            missing.append(f"{package}.{name} of {source}: {error}")
    assert not missing, "\n".join(missing)
    for name in getattr(module, "SUBMODULES", "").split():
        assert importlib.import_module(f"{package}.{name}") is getattr(module, name)


@pytest.mark.parametrize("package", ["pyjx.numpy", "pyjx.scipy.special"])
def test_the_dictionary_of_a_package_holds_its_names(package):
    # libraries walk through `jax.numpy.__dict__`, to wrap what is there
    wanted = {name for _, name in names_of(package)}
    code = (f"import sys, {package}\n"  # in a process that has loaded none of them
            f"module = sys.modules[{package!r}]\n"
            f"assert not {wanted!r} <= set(own_dictionary(module)), 'nothing was left to load'\n"
            f"assert {wanted!r} <= set(vars(module))\n")
    first = "from pyjx.lazy import own_dictionary\n"
    done = subprocess.run([sys.executable, "-c", first + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", TABLES)
def test_packages_are_pickled_by_name(package):
    module = importlib.import_module(package)
    assert pickle.loads(pickle.dumps(module)) is module


@pytest.mark.parametrize("package", TABLES)
def test_names_are_listed_once(package):
    names = [name for _, name in names_of(package)]
    assert sorted({n for n in names if names.count(n) > 1}) == []
    listed = dir(importlib.import_module(package))
    assert set(names) <= set(listed)
    public = {*names, *getattr(importlib.import_module(package), "SUBMODULES", "").split()}
    own = {n for n in listed if not n.startswith("__") or n.startswith("__array_")}
    assert own == public


# Aliases of types, and classes of jaxlib, which have no documentation in JAX either, or not before
# jaxlib 0.10.
WITHOUT_TEXT = {
    "jax.example_libraries.optimizers": "InitFn ParamsFn Schedule UpdateFn",
    "jax.experimental.buffer_callback": "Buffer ExecutionContext ExecutionStage",
    "jax.experimental.colocated_python.serialization": "DeviceList",
    "jax.experimental.transfer": "TransferConnection TransferServer",
    "jax.extend.lowering": "JaxIrContext", "jax.extend.sharding": "GSPMDSharding",
    "jax.interpreters.mlir": "LoweringRule Token Value",
    "jax.interpreters.xla": "Backend",
    "jax.profiler": "ProfileData ProfileEvent ProfileLine ProfilePlane",
    "jax.tree_util": "DictKey FlattenedIndexKey GetAttrKey PyTreeDef SequenceKey",
}


def test_what_is_public_is_documented():
    """A class by a text of its own, those of C++ too; a jitted function has its own text alone."""
    text = (Path(__file__).parent / "public_names.txt").read_text(encoding="utf-8")
    missing = []
    for paragraph in text.split("\n\n")[1:]:
        module, *names = paragraph.split()
        try:
            there = importlib.import_module(module.replace("jax", "pyjx", 1))
        except ImportError:
            continue
        for name in names:
            value = getattr(there, name, None)
            known = vars(value) if isinstance(value, type) else {"__doc__": value.__doc__}
            if callable(value) and not known.get("__doc__") and (
                    name not in WITHOUT_TEXT.get(module, "").split()):
                missing.append(f"{module}.{name}")
    assert missing == []
    assert pyjx.stages.Wrapped.__doc__ and pyjx.jit(lambda x: x).__doc__ is None


def plain_modules():
    """The public modules that are no packages with a table of names."""
    text = (Path(__file__).parent / "public_names.txt").read_text(encoding="utf-8")
    for module in re.findall(r"^jax[.\w]*$", text, re.MULTILINE):
        name = module.replace("jax", "pyjx", 1)
        file = (ROOT / name.replace(".", "/")).with_suffix(".py")
        if name in stubs.MADE or (name not in TABLES and file.is_file()):
            yield name


@pytest.mark.parametrize("name", [*plain_modules()])
def test_modules_show_their_public_names_alone(name):
    module = importlib.import_module(name)
    shown = {n for n in dir(module) if not n.startswith("__")}
    assert shown == set(module.__all__) and {"__doc__", "__name__"} <= set(dir(module))
    assert all(hasattr(module, n) for n in shown)


@pytest.mark.parametrize("package", TABLES)
def test_unknown_names(package):
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'no_such_name'"):
        module.no_such_name  # noqa: B018
    assert not hasattr(module, "no_such_name")


@pytest.mark.parametrize("package", [*stubs.PACKAGES, *stubs.MADE])
def test_stubs_agree_with_the_tables(package):
    if package == "pyjx.extend.mlir.dialects" and "mpmd" not in dir(sys.modules[package]):
        pytest.skip("older versions of jaxlib have fewer dialects")
    text = stubs.stub_path(package).read_text(encoding="utf-8")
    assert text == stubs.stub(package), "run `python -m pyjx.cli.stubs`"


@pytest.mark.parametrize("package", TABLES)
def test_star_imports(package):
    scope = {}
    exec(f"from {package} import *", scope)
    assert set(scope) - {"__builtins__"} == {
        *[name for _, name in names_of(package)],
        *getattr(importlib.import_module(package), "SUBMODULES", "").split()}


def test_public_objects_are_documented():
    """Every function and class that a user can reach says what it does."""
    bare = []
    for package in stubs.PACKAGES:
        module = importlib.import_module(package)
        for _, name in names_of(package):
            value = getattr(module, name)
            owner = f"{getattr(value, '__module__', '')} {type(value).__module__}"
            if isinstance(value, type) and ("jaxlib" in owner or "ml_dtypes" in owner):
                continue  # not ours
            if isinstance(value, GenericAlias):
                continue  # of a type
            if callable(value) and not (getattr(value, "__doc__", "") or "").strip():
                bare.append(f"{package}.{name}")
    assert not bare, "\n".join(bare)


def test_members_do_not_show_what_python_says_of_their_getters():
    """A property without words of its own shows those of the function that it is made of."""
    getters = {attrgetter.__doc__, itemgetter.__doc__}
    shown = [f"{package}.{name}.{member}" for package in stubs.PACKAGES
             for _, name in names_of(package)
             if isinstance(cls := getattr(importlib.import_module(package), name), type)
             for member in dir(cls) if getattr(getattr(cls, member, None), "__doc__", 0) in getters]
    assert not shown, "\n".join(shown)


FORBIDDEN = ("scipy", "jax", "jax._src", "jaxlib.mlir", "jaxlib.mlir.ir", "opt_einsum", "inspect",
             "dataclasses")


def test_import_brings_in_little():
    code = (
        "import sys, numpy, ml_dtypes, jaxlib\n"
        "before = set(sys.modules)\n"
        "import pyjx, pyjx.numpy\n"
        f"found = [m for m in {FORBIDDEN!r} if m in sys.modules and m not in before]\n"
        "assert not found, found\n"
        "pyjx.jit(lambda x: pyjx.numpy.sin(x) * 2)(1.0)\n"
        "found = [m for m in ('scipy', 'jaxlib.mlir.ir', 'jax._src') if sys.modules.get(m)]\n"
        "assert not found, found\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_version():
    import pyjx

    assert ".".join(map(str, pyjx.__version_info__)) == pyjx.__version__
    assert pyjx.numpy is importlib.import_module("pyjx.numpy")
