"""The adapter over jaxlib: start-up, and that jax stays out."""


import re
import subprocess
import sys

import numpy as np
import pytest

import pyjx as jax
from pyjx import jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.core.trace import Tracer
from pyjx.runtime import backends, device_put

pytestmark = pytest.mark.smoke


def test_initialize_may_be_called_again():
    jaxlib_api.initialize(Tracer)
    seen = []
    jax.make_jaxpr(lambda x: seen.append(isinstance(x, jax.Array)))(1.0)
    assert seen == [True]


@pytest.mark.parametrize(("first", "second"), [
    ("jax", "pyjx.runtime.array"), ("jax", "pyjx.as_jax"), ("pyjx.runtime.array", "jax"),
    ("pyjx", "uses_jax"), ("pyjx", "jax.numpy"), ("pyjx", "finding"),
])
def test_jax_and_pyjx_exclude_each_other(tmp_path, first, second):
    package = tmp_path / "jax"
    (package / "_src").mkdir(parents=True)
    (package / "_src" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("import jax._src")
    (tmp_path / "uses_jax.py").write_text("from jax import lax")
    (tmp_path / "finding.py").write_text(
        "import importlib.util\nassert importlib.util.find_spec('jax')\nimport jax")
    (tmp_path / "main.py").write_text(f"import {first}\nimport {second}")
    done = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, text=True)
    assert "\nImportError: jax and pyjx cannot share a process" in done.stderr
    places = re.findall(r'File ".*?(\w+\.py)", line (\d+)', done.stderr)
    assert places == {"uses_jax": [("main.py", "2"), ("uses_jax.py", "1")],
                      "finding": [("main.py", "2"), ("finding.py", "3")]
                      }.get(second, [("main.py", "2")])


def test_no_jax_module_is_left(run_python):
    out = run_python(
        "import sys, numpy as np\n"
        "from pyjx.runtime import array, device_put, compile\n"
        "device_put.device_put(np.ones(3, 'f4'))\n"
        "print([m for m in sys.modules if m.split('.')[0] == 'jax' and sys.modules[m]])\n"
        "print([m for m in ('scipy', 'jaxlib.mlir', 'jaxlib.xla_client', 'logging', 'inspect')"
        " if m in sys.modules])"
    )
    assert out.split("\n")[0] == "[]"
    assert "scipy" not in out and "jaxlib.mlir" not in out and "xla_client" not in out


def test_arrays_made_in_cpp_have_avals():
    source = np.arange(6, dtype=np.float32)
    x = jaxlib_api.from_dlpack(source.__dlpack__(), backends.default_device())
    assert x.aval is ShapedArray((6,), np.float32)
    assert x.sharding == device_put.default_placement()[0]
    np.testing.assert_array_equal(x, source)


@pytest.mark.parametrize(("error", "kept"), [
    (KeyboardInterrupt(), 1), (TimeoutError(), 1), (jaxlib_api.JaxRuntimeError("no"), 0)])
def test_what_is_still_compiled_is_kept_for_good(error, kept):
    class Client:
        def compile_and_load(self, *_):
            raise error

    client, program = Client(), object()
    before = sys.getrefcount(client), sys.getrefcount(program)
    with pytest.raises(type(error)):
        jaxlib_api.compile_and_load(client, program, None, None)
    error.__traceback__ = None
    after = sys.getrefcount(client), sys.getrefcount(program)
    assert after == (before[0] + kept, before[1] + kept)


def test_a_host_callback_runs():
    from pyjx.runtime.compile import compile

    text = """module @m { func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a)
        {api_version = 4 : i32, backend_config = {index = 0 : ui64}}
        : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32> } }"""
    executable = compile(text, host_callbacks=[lambda a: (np.asarray(a) + 1,)])
    x = device_put.device_put(np.zeros(2, np.float32))
    (out,) = executable.execute_sharded([x]).disassemble_into_single_device_arrays()
    np.testing.assert_array_equal(out[0], [1, 1])


def test_the_fast_path_runs_without_python():
    from pyjx.runtime.compile import compile

    x = device_put.device_put(np.arange(3, dtype=np.float32))
    c = device_put.device_put(np.ones(3, np.float32))
    text = """module @m {
      func.func public @main(%c: tensor<3xf32>, %a: tensor<3xf32>) -> tensor<3xf32> {
        %0 = stablehlo.add %a, %c : tensor<3xf32>
        return %0 : tensor<3xf32> } }"""
    executable = compile(text)
    handler = jaxlib_api.result_handler(x.aval, x.sharding, False)
    misses = []
    registry = jaxlib_api.pytree.default_registry()

    def miss(*args):
        misses.append(args)
        (out,) = executable.execute_sharded([c, *args]).consume_with_handlers([handler])
        fast = jaxlib_api.FastPath(executable, registry.flatten(out)[1], [x.sharding] * 2,
                                   [x.sharding], [x.aval], [False], [True], [None] * 2, [c])
        return out, fast, False

    f = jaxlib_api.make_pjit("f", None, miss, [], [], "test", registry, lambda x, s, y: x,
                             jaxlib_api.pjit_cache(16))
    for _ in range(3):
        np.testing.assert_array_equal(f(x), [1, 2, 3])
    assert len(misses) == 1


def test_jax_first_is_refused_with_a_reason():
    code = ("import sys, types\n"
            "sys.modules['jax'] = sys.modules['jax._src'] = types.ModuleType('jax')\n"
            "import pyjx\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: jax and pyjx cannot share a process" in done.stderr


def test_lapack_comes_without_all_of_scipy(run_python):
    out = run_python(
        "import sys, numpy as np, pyjx.numpy as jnp\n"
        "a, b = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 9.0]], 'f4'), np.ones(3)\n"
        "eigenvalues = jnp.linalg.eigvalsh(a)\n"
        "print([m for m in sys.modules if m.startswith('scipy.linalg')])\n"
        "import scipy.linalg.cython_blas\n"
        "from scipy.linalg import cython_lapack, solve\n"
        "print(scipy.linalg.cython_lapack is cython_lapack, 'dgetrf' in cython_lapack.__pyx_capi__,"
        " 'dgemm' in scipy.linalg.cython_blas.__pyx_capi__)\n"
        "print(np.allclose(a @ solve(a, b), b), np.allclose(eigenvalues, np.linalg.eigvalsh(a)))")
    assert out.split("\n")[:3] == ["[]", "True True True", "True True"]
