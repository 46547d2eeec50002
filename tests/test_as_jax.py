"""`import pyjx.as_jax`: pyjx answers to the name jax, as one and the same modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyjx.cli.alias_files import _FINDER

ROOT = Path(__file__).resolve().parent.parent


def under_alias(code: str, tmp_path: Path, first: str = "import pyjx.as_jax\n", **env: str
                ) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, beside a package jax of which nothing may be used."""
    package = tmp_path / "jax"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("import jax._src\nprint('the real one')\n")
    (package / "_src.py").write_text("")
    info = tmp_path / "jax-0.0.1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.0.1\n")
    given = {k: v for k, v in os.environ.items() if k not in ("PYJX_AS_JAX", "PYTHONPATH")}
    paths = os.pathsep.join([str(ROOT), str(tmp_path)])
    return subprocess.run([sys.executable, "-c", first + code], capture_output=True, text=True,
                          env={**given, "PYTHONPATH": paths, **env}, timeout=300)


def check(code: str, tmp_path: Path, **options: str) -> str:
    done = under_alias(code, tmp_path, **options)
    assert done.returncode == 0, done.stderr
    assert "the real one" not in done.stdout
    return done.stdout


def test_modules_are_the_same_objects(tmp_path: Path) -> None:
    check("import jax, jax.numpy as jnp, pyjx, sys\n"
          "from jax.scipy import linalg\n"
          "import jax.experimental.sparse\n"
          "assert jax is pyjx and jnp is pyjx.numpy is sys.modules['jax.numpy']\n"
          "assert linalg is pyjx.scipy.linalg\n"
          "assert jax.experimental.sparse is sys.modules['pyjx.experimental.sparse']\n"
          "assert jnp.__spec__.name == 'pyjx.numpy'\n"
          "assert jax.grad(jnp.sin)(0.) == 1.\n", tmp_path)


def test_classes_are_named_where_as_many_modules_go_as_come(tmp_path: Path) -> None:
    check("""
import sys, types
others = [f"other{i}" for i in range(999)]
class Remover:
    @staticmethod
    def find_spec(*_):
        del sys.modules[others.pop()]
sys.modules.update({name: types.ModuleType(name) for name in others})
from pyjx import lazy
lazy.loaded("pyjx.numpy")
sys.meta_path.insert(0, Remover)
before = len(sys.modules)
found = lazy.loaded("pyjx.numpy.setops")
assert others and len(sys.modules) == before
assert found._UniqueAllResult.__module__ == "jax._src.numpy.setops"
""", tmp_path)


def test_modules_that_load_in_other_threads_do_not_disturb(tmp_path: Path) -> None:
    """Tables grow while the classes that they name are looked for."""
    check("""
import sys, threading, time
from pyjx import alias, lazy
sys.setswitchinterval(1e-6)
def load():
    for i in range(9999):
        lazy.tables[f"made{i}"] = {}
        time.sleep(0)
thread = threading.Thread(target=load)
thread.start()
while thread.is_alive():
    alias.LoadedClasses()()
""", tmp_path)


@pytest.mark.parametrize("first", [
    "from pyjx import jax_imports\njax_imports.answer_when_asked()\n", "import _pyjx_as_jax\n"])
@pytest.mark.parametrize("imported", ["jax", "jax.numpy", "jax._src.core"])
def test_the_import_that_puts_the_alias_in_force(first: str, imported: str, tmp_path: Path) -> None:
    """It gives the modules that there are, not second ones."""
    (tmp_path / "_pyjx_as_jax.py").write_text(_FINDER)
    check(f"import {imported}\nfirst = jax\nimport jax, pyjx, sys\n"
          "assert first is jax is pyjx is sys.modules['jax']\n"
          "assert jax.__spec__.name == 'pyjx' and jax.__version__ == '0.10.2'\n"
          "import importlib\nassert importlib.reload(jax) is pyjx\n"
          "from importlib.metadata import version\nassert version('jax') == '0.10.2'\n",
          tmp_path, first=first, PYJX_AS_JAX="0.10.2")


def test_programs_find_the_names_of_jax(tmp_path: Path) -> None:
    """By which libraries of array functions choose a backend."""
    check("import jax, pyjx, sys\n"
          "assert sys.modules['jax.core'].Tracer is jax.core.Tracer\n"
          "assert jax.numpy.__name__ == 'jax.numpy'\n"
          "assert jax.numpy.ones(1).__array_namespace__() is pyjx.numpy\n"
          "from jax.numpy import sorting\n"
          "assert sorting is sys.modules['pyjx.numpy.sorting']\n"
          "tracer = jax.core.Tracer\n"
          "assert tracer.__module__ == 'jax._src.core'\n"
          "assert sys.modules[tracer.__module__].Tracer is tracer\n"
          "assert jax.jit(sys.exit)._fun is sys.exit\n"
          "seen = []\n"
          "def f(x):\n"
          "    seen.append(type(x).__module__.partition('.')[0])\n"
          "    return x\n"
          "jax.grad(f)(1.0), jax.jit(f)(1.0), jax.vmap(f)(jax.numpy.ones(2))\n"
          "f(jax.random.key(0))\n"
          "assert seen == ['jax'] * 4, seen\n"
          "try: jax.jit(lambda: bool(jax.numpy.asarray(False)))()\n"
          "except jax.errors.TracerBoolConversionError: pass\n"
          "else: assert False\n", tmp_path)


def test_internals_are_there_without_an_import(tmp_path: Path) -> None:
    check("import jax\n"
          "assert jax._src.distributed.global_state.client is None\n"
          "[x] = jax._src.numpy.util.promote_dtypes_inexact(jax.numpy.arange(2))\n"
          "assert x.dtype == 'float32' and 'util' not in dir(jax.numpy)\n"
          "import jax._src.core as core\n"
          "assert core is jax._src.core\n", tmp_path)


def test_what_importlib_and_pkgutil_say(tmp_path: Path) -> None:
    out = check("import importlib.metadata as m, importlib.util as u, pkgutil, jax\n"
                "print(m.version('jax'), jax.__version__, jax.__version_info__[:2])\n"
                "print([d.version for d in m.distributions() if d.metadata['Name'] == 'jax'][0])\n"
                "from jax.version import __version__; assert __version__ == jax.__version__\n"
                "assert u.find_spec('jax.numpy') and u.find_spec('jax.scipy.special')\n"
                "assert u.find_spec('jax._src.core').has_location\n"
                "assert u.find_spec('jax.no_such') is None\n"
                "assert u.find_spec('jax.experimental.pallas.tpu')\n"
                "found = {i.name for i in pkgutil.walk_packages(jax.__path__, 'jax.')}\n"
                "assert {'jax.numpy', 'jax.experimental.sparse.bcoo'} <= found\n", tmp_path)
    assert out == "0.12.0 0.12.0 (0, 12)\n0.12.0\n"


def test_an_import_of_what_is_not_there_yet_says_so(tmp_path: Path) -> None:
    done = under_alias("import jax.experimental.host_callback", tmp_path)
    assert "cannot import 'host_callback' from 'jax.experimental'. Use jax." in done.stderr


def test_modules_that_stand_in_are_the_same_objects(tmp_path: Path) -> None:
    check("from jax.experimental import pallas as pl\n"
          "from jax.experimental.pallas import tpu as pltpu\n"
          "import jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask as mask\n"
          "import jax, pyjx.experimental.pallas.tpu, sys\n"
          "assert pyjx.experimental.pallas is pl is jax.experimental.pallas\n"
          "assert pyjx.experimental.pallas.tpu is pltpu is pl.tpu\n"
          "assert mask is sys.modules[mask.__name__] and mask.__name__.startswith('pyjx.')\n"
          "assert issubclass(mask.FullMask, mask.Mask)\n", tmp_path)


def test_modules_run_as_programs(tmp_path: Path) -> None:
    shown = check(
        "import runpy, sys\nsys.argv = ['x', '--help']\n"
        "try:\n    runpy.run_module('jax.tools.jax_to_ir', run_name='__main__', alter_sys=True)\n"
        "except SystemExit as done:\n    assert not done.code\n"
        "else:\n    raise AssertionError('no program was run')\n", tmp_path)
    assert shown.startswith("usage: jax_to_ir") and "--ir_dest" in shown


def test_the_version_that_programs_are_told_can_be_chosen(tmp_path: Path) -> None:
    code = "import jax, importlib.metadata as m; print(jax.__version__, m.version('jax'))"
    assert check(code, tmp_path, PYJX_AS_JAX="0.10.2") == "0.10.2 0.10.2\n"
    done = under_alias(code, tmp_path, PYJX_AS_JAX="0.3")
    assert "PYJX_AS_JAX is 1, 0 or a version of JAX from 0.7.2 to 0.12.0, got '0.3'" in done.stderr


def test_pickles_load_under_the_name_that_they_have(tmp_path: Path) -> None:
    make = ("import pickle, sys, {0}.numpy as jnp, {0} as jax\n"
            "x = (jnp.arange(3), jax.random.key(1), jax.P('a'), jnp.sin, jax.nn)\n"
            "pickle.dump(x, open({1!r}, 'wb'))\n")
    load = ("import pickle, {0}.numpy as jnp\n"
            "a, key, spec, sin, nn = pickle.load(open({1!r}, 'rb'))\n"
            "assert a.tolist() == [0, 1, 2] and sin is jnp.sin and spec == spec and nn.relu\n")
    first = {"jax": "import pyjx.as_jax\n", "pyjx": ""}
    for maker in ("jax", "pyjx"):
        place = str(tmp_path / f"made by {maker}")
        check(make.format(maker, place), tmp_path, first=first[maker])
        assert (b"pyjx" in Path(place).read_bytes()) == (maker == "pyjx")
        check(load.format("jax", place), tmp_path, first=first["jax"])
        done = under_alias(load.format("pyjx", place), tmp_path, first="")
        assert done.returncode == 0 or (
            maker == "jax" and "write `import pyjx.as_jax` first" in done.stderr)


@pytest.mark.parametrize("code,said", [
    ("import jax\nimport pyjx.as_jax", "This process has imported jax"),
    ("import pyjx.numpy\nimport jax", "For pyjx to answer to the name jax"),
])
def test_both_in_one_process_are_an_error(code: str, said: str, tmp_path: Path) -> None:
    done = under_alias(code, tmp_path, first="")
    assert done.returncode == 1
    assert said in done.stderr


def test_an_absent_module_says_so(tmp_path: Path) -> None:
    check("try: import jax.no_such.module\n"
          "except ModuleNotFoundError as e: assert e.name == 'jax.no_such', e.name\n"
          "try: from jax.tools.jax_to_ir import jax_to_tf\n"
          "except ImportError as e: assert 'jax_to_tf' in str(e)\n"
          "else: assert False\n", tmp_path)


def test_errors_have_the_names_that_the_program_wrote(tmp_path: Path) -> None:
    code = ("import jax, jax.numpy as jnp, traceback\n"
            "def told(f):\n"
            "    try: f()\n"
            "    except Exception: print(*traceback.format_exc().splitlines()[-2:])\n"
            "jax.config.update('jax_numpy_dtype_promotion', 'strict')\n"
            "told(lambda: jnp.ones(3) + jnp.arange(3))\n"
            "for f in (lambda: jnp.foo, lambda: jax.nn.foo, lambda: jax.numpy.linalg.foo,\n"
            "          lambda: jax.scipy.stats.norm.foo):\n"
            "    told(f)\n"
            "print(jax.errors.JaxRuntimeError)\n")
    out = check(code, tmp_path)
    assert "pyjx" not in out and "<class 'jax.errors.JaxRuntimeError'>" in out
    assert "jax.dtypes.TypePromotionError: " in out
    for name in ("jax.numpy", "jax.nn", "jax.numpy.linalg", "jax.scipy.stats.norm"):
        assert f"module '{name}' has no attribute 'foo'" in out


def test_arrays_that_cpp_makes_have_types_and_shardings(tmp_path: Path) -> None:
    check("import jax, numpy as np\n"
          "x = jax.dlpack.from_dlpack(np.arange(4.))\n"
          "assert x.aval.shape == (4,) and x.sharding == jax.numpy.zeros(1).sharding\n", tmp_path)


def test_variables_that_change_before_the_alias_give_way_to_the_program(tmp_path: Path) -> None:
    said = check("import os\n"
                 "os.environ['JAX_ENABLE_X64'] = '0'\n"
                 "import pyjx\n"
                 "pyjx.config.update('jax_enable_x64', True)\n"
                 "del os.environ['JAX_ENABLE_X64']\n"
                 "pyjx.numpy.ones(2)\n"  # from here on it is too late for other devices
                 "os.environ.update(JAX_NUM_CPU_DEVICES='4', JAX_DEBUG_NANS='1')\n"
                 "import pyjx.as_jax, jax\n"
                 "print(jax.config.jax_enable_x64, len(jax.devices()), jax.config.jax_debug_nans)",
                 tmp_path, first="")
    assert said == "True 1 True\n"
    said = check("import os, pyjx\n"
                 "pyjx.config.update('jax_enable_x64', False)\n"  # which it was
                 "os.environ['JAX_ENABLE_X64'] = '1'\n"
                 "import pyjx.as_jax, jax\n"
                 "print(jax.config.jax_enable_x64)", tmp_path, first="")
    assert said == "False\n"


def test_a_version_that_there_is_not_shows_the_users_frames(tmp_path: Path) -> None:
    done = under_alias("", tmp_path, PYJX_AS_JAX="99.1")
    assert "99.1" in done.stderr and os.path.join("alias", "__init__.py") not in done.stderr
