"""Which platforms there are, and the reasons given for those that are missing."""

import os
import re
from types import SimpleNamespace

import pytest

import pyjx as jax
from pyjx.experimental import topologies
from pyjx.runtime import backends
from pyjx.runtime.placement import Placement

pytestmark = pytest.mark.smoke


def test_queries():
    assert backends.default_backend() == "cpu"
    assert repr(backends.devices("cpu")[0]) == "CpuDevice(id=0)"
    assert backends.device_count() == len(backends.devices())
    assert backends.local_devices() == backends.local_devices(process_index=0)
    assert backends.process_index() == 0 and backends.process_count() == 1
    with pytest.raises(ValueError, match="Unknown process_index 3"):
        backends.local_devices(process_index=3)


def test_missing_platforms_say_why():
    with pytest.raises(RuntimeError) as raised:
        backends.devices("gpu")
    text = str(raised.value)
    assert text.startswith("Unknown backend: 'gpu' requested, but no platforms that are instances "
                           "of gpu are present. Platforms present are: cpu")
    assert "cuda: its plugin" in text
    with pytest.raises(RuntimeError, match=r"Unknown backend foo. Available backends are \['cpu'"):
        backends.devices("foo")


@pytest.mark.parametrize(("call", "meant"), [
    (lambda: jax.devices("GPU"), "'gpu'"), (lambda: jax.devices("cuda:0"), "'cuda'"),
    (lambda: jax.config.update("jax_default_device", "cup"), "'cpu'"),
    (lambda: jax.jit(abs).trace(1).lower(lowering_platforms="cup"), "'cpu'"),
    (lambda: topologies.get_topology_desc("v5e:2x2", "tpuu"), "'tpu'"),
    (lambda: jax.device_put(1, "cpuu"), "jax.devices('cpu')[0]"),
    (lambda: jax.device_put(1, "cpu:2"), "jax.devices('cpu')[2]"),
    (lambda: jax.device_put(1, 0), "jax.devices()[0]")])
def test_the_platform_that_is_meant(call, meant):
    with pytest.raises(Exception, match=re.escape(f"Did you mean {meant}?")):
        call()


def test_a_platform_in_the_place_of_a_process():
    with pytest.raises(ValueError, match="A platform is given as backend='cpu'"):
        backends.local_devices("cpu")


def test_report():
    assert set(backends.report()) >= {"tpu", "cuda", "rocm"}


COUNT = "from pyjx.runtime import backends; print(backends.device_count(), backends.report())"


@pytest.mark.parametrize("environment", [
    {"JAX_NUM_CPU_DEVICES": "3"},
    {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"},
])
def test_number_of_cpu_devices(run_python, environment):
    assert run_python(COUNT, **environment).startswith("3 ")


@pytest.mark.parametrize("call", ["jnp.ones(3)", "jax.random.key(0)", "jax.devices()",
                                  "jax.jit(lambda x: x)(1.0)"])
@pytest.mark.parametrize(("variable", "value", "words"), [
    *[("XLA_FLAGS", f"--xla_force_host_platform_device_count={count}",
       f"--xla_force_host_platform_device_count of XLA_FLAGS must be an integer, 1 or more, got "
       f"'{count}'") for count in ("x", "-1", "0", "")],
    ("JAX_PLATFORMS", "cpuu", "pyjx knows no such platform. Did you mean 'cpu'?"),
])
def test_no_argument_is_blamed_where_a_backend_does_not_start(
        run_python, call, variable, value, words):
    out = run_python(f"import pyjx as jax, pyjx.numpy as jnp\ntry: {call}\n"
                     "except RuntimeError as error: print(error)", **{variable: value})
    assert out.startswith("Unable to initialize backend 'cpu") and words in out


@pytest.mark.parametrize("kind", ["TimeoutError", "KeyError"])
def test_a_timeout_is_no_failure_of_a_backend(run_python, kind):
    assert run_python(f"""
import signal
from pyjx.runtime import backends
def stop(number, frame):
    raise {kind}("too slow")
signal.signal(signal.SIGALRM, stop)
backends._make_cpu_client = lambda: signal.raise_signal(signal.SIGALRM)
try: backends.devices()
except {kind} as error: print(error)
""").strip().strip("'") == "too slow"


def test_platforms_flag(run_python):
    assert run_python(COUNT, JAX_PLATFORMS="cpu") == "1 {}\n"
    out = run_python(
        "from pyjx.runtime import backends\n"
        "try: backends.devices()\n"
        "except RuntimeError as error: print(error)", JAX_PLATFORMS="cuda,cpu")
    assert out.startswith("Unable to initialize backend 'cuda': its plugin ")


@pytest.mark.parametrize("flag", ["jax_platform_name", "jax_xla_backend", "jax_platforms"])
def test_the_flag_that_asks_for_an_absent_platform_is_named(run_python, flag):
    program = ("import pyjx as jax\n{}\ntry: jax.devices({})\n"
               "except RuntimeError as error: print(error)")
    by_update = f"jax.config.update('{flag}', 'tpu')"
    unset = {"JAX_PLATFORMS": ""}
    for out in (run_python(program.format(by_update, ""), **unset),
                run_python(program.format("", ""), **{**unset, flag.upper(): "tpu"})):
        assert (f"(platforms requested: tpu; leave out {flag}='tpu', or {flag.upper()} in the "
                "environment, to choose a backend automatically)") in out
    other = program.format(by_update.replace("tpu", "cpu"), "'tpu'")
    assert f"tpu: it is not in {flag}='cpu'" in run_python(other, **unset)


def test_gpu_memory_is_not_preallocated(monkeypatch):
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    assert backends._gpu_options("cuda")["preallocate"] is False
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    assert backends._gpu_options("cuda")["preallocate"] is True
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5")
    assert backends._gpu_options("cuda")["memory_fraction"] == 0.5
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "half")
    with pytest.raises(ValueError, match="CLIENT_MEM_FRACTION must be a number, 0 or more, got"):
        backends._gpu_options("cuda")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "nothing")
    with pytest.raises(ValueError, match="XLA_PYTHON_CLIENT_ALLOCATOR must be one of"):
        backends._gpu_options("cuda")


def test_distribution_comes_before_backends():
    backends.devices()
    with pytest.raises(RuntimeError, match="must be called before any JAX calls"):
        backends.check_not_started()


def test_plugins_are_found_by_path(monkeypatch, tmp_path):
    library = tmp_path / "jax_plugins" / "xla_cuda13" / "xla_cuda_plugin.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"no library")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert backends.plugin_library("cuda") == str(library)
    assert backends.plugin_library("rocm") is None


FAKE = """
import sys; sys.path.insert(0, {folder!r})
from pyjx.runtime import backends
print(backends.default_backend(), backends.report()["cuda"])
assert "jax_plugins" not in sys.modules
"""


def test_an_installed_plugin_without_hardware(run_python, tmp_path):
    library = tmp_path / "jax_plugins" / "xla_cuda12" / "xla_cuda_plugin.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"no library")
    out = run_python(FAKE.format(folder=str(tmp_path)))
    if not backends._has_hardware(backends._PLUGINS[1]):
        assert out == "cpu its plugin is installed, but no NVIDIA GPU was found\n"


DESCRIBED_TPU = """
import os
from pyjx import inspect
from pyjx.experimental import topologies
from pyjx.runtime import backends
names = "TPU_SKIP_MDS_QUERY", "ALLOW_MULTIPLE_LIBTPU_LOAD"
for describe in topologies.get_topology_desc, lambda *_: inspect.platform("tpu:v5e:2x2"):
    for name in names:
        os.environ.pop(name, None)
    try: describe("v5e:2x2", "tpu")
    except RuntimeError: print(*[os.environ[name] for name in names])
print(backends.has_hardware("tpu"), backends.devices()[0].platform)
"""


@pytest.mark.skipif(backends.has_hardware("tpu"), reason="there is a TPU")
def test_to_describe_a_tpu_looks_for_none(run_python, tmp_path):
    library = tmp_path / "libtpu.so"
    library.write_bytes(b"no library")
    out = run_python(DESCRIBED_TPU, TPU_LIBRARY_PATH=str(library), JAX_PLATFORMS="")
    assert out == "1 1\n1 1\nFalse cpu\n"


def test_a_plugin_that_fails_to_load(run_python, tmp_path):
    library = tmp_path / "jax_plugins" / "xla_cuda12" / "xla_cuda_plugin.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"no library")
    out = run_python(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from pyjx.runtime import backends\n"
        "try: backends.devices()\n"
        "except RuntimeError as error: print(error)", JAX_PLATFORMS="gpu")
    assert out.startswith("Unable to initialize backend 'cuda': it failed to start: ")


def test_devices_can_be_pickled():
    import pickle

    device = backends.devices()[0]
    assert pickle.loads(pickle.dumps(device)) is device


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
def test_fork_after_use_warns(run_python):
    out = run_python("""
import os, warnings
import pyjx as jax

def warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
    return [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]

assert not warned()
jax.devices()
(message,) = warned()
assert message.startswith("os.fork() was called") and "deadlock" in message, message
print("done")
""")
    assert out == "done\n"


def test_placements_name_platforms_as_lowering_rules_do():
    gpu = SimpleNamespace(platform="gpu", client=SimpleNamespace(_raw_platform="cuda"))
    assert Placement.platform.fget(SimpleNamespace(devices=(gpu,))) == "cuda"
