"""Names that are not there yet say so, and no message recommends one of them."""

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pyjx as jax
from pyjx import jaxlib_api, not_yet
from pyjx.jax_imports import JaxFinder

ROOT = Path(jax.__file__).parent
MISSING = [(package, name) for package, names in not_yet.NAMES.items() for name in names.split()]
PREFIXES = {"jax": "pyjx", "lax": "pyjx.lax", "jnp": "pyjx.numpy"}


@pytest.mark.parametrize(("package", "name"), MISSING, ids=[f"{p}.{n}" for p, n in MISSING])
def test_missing_names_say_so(package, name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': it is not there yet"):
        getattr(importlib.import_module(package), name)


not_yet.hint("pyjx", "tree_map")  # reads the table
OF_CLASSES = {name: said for name, said in not_yet.other_names.items()
              if name.split(".")[1][0].isupper() and name.count(".") == 2}
OTHERS = [item for item in not_yet.other_names.items() if item[0] not in OF_CLASSES]
CLASSES = {"Array": jax.numpy.ones(3), "PjitFunction": jax.jit(abs), "Config": jax.config,
           "Compiled": jax.stages.Compiled,
           "NamedSharding": jax.NamedSharding,
           "SingleDeviceSharding": jax.sharding.SingleDeviceSharding}


@pytest.mark.parametrize(("other", "instead"), OTHERS, ids=[name for name, _ in OTHERS])
def test_other_names_say_what_to_use(other, instead):
    """Which is there; and whoever asks by hasattr or catches ImportError gets the answer."""
    package, _, name = other.replace("jax", "pyjx", 1).rpartition(".")
    module = importlib.import_module(package)
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match=re.escape(f"'{name}'. Use {instead}.")):
        getattr(module, name)
    with pytest.raises(ImportError, match=re.escape(f"Use {instead}.")):
        exec(f"from {package} import {name}")
    check_mentioned(instead)


@pytest.mark.parametrize(("package", "name", "instead"), [
    ("numpy", "core", ""), ("nn", "lib", ""), ("scipy", "core", ""), ("numpy", "version", ""),
    ("numpy", "nn", ". Use jax.nn."), ("scipy", "random", ". Use jax.random."),
    ("pyjx", "linalg", ". Use jax.numpy.linalg.")])
def test_modules_serve_for_those_of_their_subject_alone(package, name, instead):
    module = importlib.import_module(f"pyjx.{package}".replace("pyjx.pyjx", "pyjx"))
    with pytest.raises(AttributeError, match=re.escape(f"no attribute '{name}'{instead}") + "$"):
        getattr(module, name)


def test_each_name_is_there_once():
    text = Path(not_yet.__file__).with_name("other_names.txt").read_text(encoding="utf-8")
    assert len(text.splitlines()) == len(not_yet.other_names)


@pytest.mark.parametrize("name", OF_CLASSES)
def test_attributes_that_classes_are_thought_to_have_say_what_to_use(name):
    _, owner, attribute = name.split(".")
    assert attribute == "__call__" or not hasattr(CLASSES[owner], attribute)
    check_mentioned(OF_CLASSES[name])


def check_mentioned(instead):
    """What is to be used is there."""
    for mentioned in re.findall(r"\b(?:jax|jnp)(?:\.\w+)+", instead):
        place, *names = mentioned.split(".")
        value = importlib.import_module(PREFIXES[place])
        for part in names:
            value = getattr(value, part)


def test_import_jax_says_what_to_write():
    code = ("import importlib.util, pyjx\n"
            "assert importlib.util.find_spec('jax') is None\n"
            "import jax\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if importlib.util.find_spec("jax") is None:
        assert "No module named 'jax', and pyjx does not answer to that name here. Write `import " \
               "pyjx as jax`" in done.stderr


@pytest.mark.parametrize("read", [
    "pickle.loads(data)", "pickle._loads(data)", "pickle.Unpickler(io.BytesIO(data)).load()",
    "importlib.import_module('jax.numpy')"])
def test_what_reads_names_of_jax_says_what_works(read):
    """That is no statement of a program, which has imported pyjx as jax."""
    code = ("import importlib, io, pickle, pyjx as jax\n"
            "data = b'cjax.numpy\\nsum\\n.'\n"
            f"try: {read}\n"
            "except ModuleNotFoundError as error: print(error.name, error)\n"
            "import pyjx.as_jax\n"
            f"print({read} in (jax.numpy, jax.numpy.sum))\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if importlib.util.find_spec("jax") is None:
        said, worked = done.stdout.splitlines()
        assert said == (
            "jax No module named 'jax', and pyjx does not answer to that name here. What has jax's "
            "names, as its pickles have, is read after `import pyjx.as_jax`, or in a program that "
            "`python -m pyjx FILE` runs.")
        assert worked == "True"


def names_of_jax():
    """Modules of JAX, under this package's name, and their public names."""
    found = {}
    text = Path(__file__).with_name("public_names.txt").read_text(encoding="utf-8")
    for paragraph in text.split("\n\n")[1:]:
        module, *names = paragraph.split()
        found[module.replace("jax", "pyjx", 1)] = names
    return found


@pytest.mark.parametrize("module", names_of_jax())
def test_every_name_of_jax_is_there_or_says_so(module):
    loaded = importlib.import_module(module)
    for name in names_of_jax()[module]:
        if name in not_yet.NAMES.get(module, "").split():
            with pytest.raises(AttributeError, match=f"'{name}': it is not there yet"):
                getattr(loaded, name)
        elif isinstance(getattr(loaded, name, jax), ModuleType) and (
                loaded.__name__ != "pyjx.extend.mlir.dialects"
                or jaxlib_api.has_submodule(f"mlir.dialects.{name}")):
            found = importlib.import_module(f"{module}.{name}")
            assert found is getattr(loaded, name)


def test_names_that_are_there_are_not_listed():
    for module, names in not_yet.NAMES.items():
        assert set(names.split()) <= {*names_of_jax()[module], "fused"}


@pytest.mark.parametrize("statement", [
    "from pyjx.experimental import soon",
    "import pyjx.experimental.soon",
    "from pyjx.experimental.soon import anything",
])
def test_imports_of_missing_names_say_so(statement, monkeypatch):
    monkeypatch.setitem(not_yet.NAMES, "pyjx.experimental", "soon")
    with pytest.raises(ModuleNotFoundError, match=(
            r"^cannot import 'soon' from 'pyjx\.experimental': it is not there yet\.(\n|$)")):
        exec(statement, {})


@pytest.mark.parametrize(("name", "cure"), [
    ("scan", "jax.lax.scan"), ("relu", "jax.nn.relu"), ("stop_gradient", "jax.lax.stop_gradient"),
    ("numpy.while_loop", "jax.lax.while_loop"), ("numpy.trapz", "jax.numpy.trapezoid"),
    ("random.randn", "jax.random.normal(key, shape)"), ("xmap", "jax.shard_map"),
    ("numpy.ones(3).median", "jax.numpy.median")])
def test_names_of_other_packages_are_told_alone(name, cure):
    """Python adds no guess of its own."""
    program = ("import sys, pyjx as jax, pyjx.numpy, pyjx.random\nsys.stderr = sys.stdout\n"
               f"jax.{name}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].endswith(f"has no attribute '{name.split('.')[-1]}'. "
                                                 f"Use {cure}."), done.stdout


def test_imports_of_others_are_plainly_unknown():
    with pytest.raises(ImportError, match=r"^cannot import name 'no_such_name' from 'pyjx'"):
        exec("from pyjx import no_such_name", {})
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'pyjx\.no_such_name'$"):
        importlib.import_module("pyjx.no_such_name")
    assert importlib.util.find_spec("no_such_name") is None


def test_who_asks_for_a_missing_module_hears_that_there_is_none():
    name = "pyjx.experimental.host_callback"
    assert importlib.util.find_spec(name) is None
    finder = not_yet.ImportHint()
    assert finder.find_spec(name, None) is None
    script = f"import sys, pyjx\nassert sys.meta_path[-1].find_spec({name!r}, None) is None"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_names_of_jax_are_hinted_at_where_pyjx_has_its_name(monkeypatch):
    package = ModuleType("jax.tools.jax_to_ir")
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "jax.tools.jax_to_ir", package)
    monkeypatch.setattr(JaxFinder, "answer", None)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'jax\.\S+\.jax_to_tf'$"):
        importlib.import_module("jax.tools.jax_to_ir.jax_to_tf")


def test_others_are_plainly_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))  # as C++ finds it for a while
    monkeypatch.setattr(JaxFinder, "answer", None)
    with pytest.raises(AttributeError, match=r"^module 'pyjx' has no attribute 'no_such_name'$"):
        jax.no_such_name  # noqa: B018


def test_what_serves_meanwhile_is_of_missing_names():
    missing = {f"{package}.{name}" for package, name in MISSING}
    assert set(not_yet.INSTEAD) <= missing | set(not_yet.TABLES)


def texts():
    """The string literals of the package that are no doc strings."""
    for path in ROOT.rglob("*.py"):
        if path.parent.name == "not_yet":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and (
                    id(node) not in docs):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def test_messages_name_what_exists():
    wrong = []
    for place, text in texts():
        for prefix, name in re.findall(r"\b(jax|lax|jnp)\.([a-z_]+[a-z])\b", text):
            module = importlib.import_module(PREFIXES[prefix])
            if name in not_yet.NAMES.get(module.__name__, "").split():
                wrong.append(f"{place}: {prefix}.{name}")
    assert not wrong, "\n".join(wrong)
