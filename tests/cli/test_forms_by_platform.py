"""Each form of real programs on each platform: there is one, or it is said why there is none."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from emit_hlo import tables
from pyjx import configuration, inspect, jaxlib_api
from pyjx.inspect.platforms import UnavailableError
from pyjx.inspect.program import Program, UnsupportedError
from pyjx.runtime import backends
from pyjx.sharding import AxisType, Mesh, NamedSharding
from pyjx.sharding import PartitionSpec as P
from tests.example_functions import EXAMPLES, FUNCTIONS, ROOT, Call, model

PLATFORMS = ("cpu", "cuda:h100", "tpu:v5e:2x2")


def program(call: Call, platform: str) -> inspect.TracedProgram:
    if platform != "cpu" and backends.plugin_library(platform.partition(":")[0]) is None:
        pytest.skip(f"the plugin of {platform} is not installed")
    fun, args = call
    return inspect.trace(fun, *args, platform=platform)


def made(given: inspect.TracedProgram, kind: str) -> str | bytes | None:
    """A form, or None where it is said why there is none."""
    try:
        return given.emit(kind)
    except UnsupportedError as error:
        name = given.platform.name
        assert name in str(error) or name.upper() in str(error)
        assert name not in (tables.NAMED[kind].platforms or tables.PLATFORMS)
    except UnavailableError as error:
        assert kind == "asm" and "which is not installed" in str(error)
    return None


@pytest.mark.aot
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_form(name: str, platform: str) -> None:
    with configuration.platforms("cpu"):
        given = program(FUNCTIONS[name](), platform)
        if given.platform.name != "tpu":
            given.keep_kernels()
        missing = [kind for kind in tables.KIND_NAMES
                   if kind != "mosaic" and not made(given, kind)]  # they have no kernels
    allowed = {"cpu": {"ptx", "asm"}, "cuda": {"asm"}, "tpu": {"llvm", "ptx", "asm"}}
    assert set(missing) <= allowed[given.platform.name]


@pytest.mark.aot
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", ["transformer", "resnet50"])
def test_whole_models(name: str, platform: str) -> None:
    with configuration.platforms("cpu"):
        given = program(model(name), platform)
        for kind in ("stablehlo", "hlo-opt", "memory"):
            assert made(given, kind)


# -- over eight chips ------------------------------------------------------------------------------

# For each training step which of its arguments are cut along the mesh; the others lie everywhere.
CUT = {"quickstart step": (2, 3), "digits step": (5, 6), "data_parallel step": (1, 2),
       "transformer step": (4,)}


@pytest.fixture(params=("cuda:h100", "tpu:v5e:2x4"))
def eight_chips(request: Any) -> Any:
    if backends.plugin_library(request.param.partition(":")[0]) is None:
        pytest.skip(f"the plugin of {request.param} is not installed")
    with configuration.platforms("cpu"):
        yield np.array(inspect.platform(request.param, 8).devices)


def check_partitioned(lowered: Any, devices: Any) -> None:
    on_gpu = devices.flat[0].platform != "tpu"
    compiled = lowered.compile({"xla_gpu_enable_triton_gemm": False} if on_gpu else {})
    if on_gpu and jaxlib_api.JAXLIB_VERSION < (0, 8):  # it does not tell what XLA made of it
        return
    text = compiled.as_text()
    assert "num_partitions=8" in text and "all-reduce" in text


@pytest.mark.aot
@pytest.mark.parametrize("name", CUT)
def test_data_parallel_steps(name: str, eight_chips: Any) -> None:
    mesh = Mesh(eight_chips, ("data",), (AxisType.Auto,))
    fun, args = EXAMPLES[name]()
    placed = [jax.tree.map(lambda x, i=i: jax.ShapeDtypeStruct(
        x.shape, x.dtype, sharding=NamedSharding(mesh, P("data") if i in CUT[name] else P())), arg)
        for i, arg in enumerate(args)]
    check_partitioned(jax.jit(fun).lower(*placed), eight_chips)


@pytest.mark.aot
def test_a_transformer_over_data_and_model(eight_chips: Any, monkeypatch: pytest.MonkeyPatch
                                           ) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    table = importlib.import_module("scale_table")
    mesh = Mesh(eight_chips.reshape(2, 4), ("data", "model"), (AxisType.Auto,) * 2)
    with jax.set_mesh(mesh):
        check_partitioned(table.model.step.lower(*table.arguments(
            mesh, batch=8, length=16, layers=1, width=64, heads=4, vocabulary=32)), eight_chips)


@pytest.mark.aot
def test_programs_over_meshes_have_the_rules_of_their_platform(eight_chips: Any) -> None:
    """A GPU's rules are cuda's or rocm's, though its devices say gpu."""
    mesh = Mesh(eight_chips, ("data",), (AxisType.Auto,))
    x = jax.ShapeDtypeStruct((8, 4, 4), np.float32, sharding=NamedSharding(mesh, P("data")))
    text = jax.jit(jax.numpy.linalg.eigh).lower(x).as_text()
    assert ("cusolver" in text) == (eight_chips.flat[0].platform == "gpu")


def test_what_xla_needs_besides_is_kept_apart_from_what_was_asked_for() -> None:
    class Refused(Program):
        def _compile(self, options: Mapping[str, Any]) -> Any:
            if not options.keys() & {"xla_gpu_enable_triton_gemm"}:
                raise jaxlib_api.JaxRuntimeError("Couldn't find output tile sizes")
            return dict(options)

    gpu: Any = SimpleNamespace(name="cuda", is_here=False)
    here: Any = SimpleNamespace(name="cuda", is_here=True)
    program = Refused("f", gpu, {"xla_asked": 1})
    without = {"xla_asked": 1, "xla_gpu_enable_triton_gemm": False}
    assert [program._compiled({"xla_more": 2}), program._compiled()] == [
        {**without, "xla_more": 2}, without]
    assert len(program.notes) == 1 and program._compiler_options == {"xla_asked": 1}
    with pytest.raises(jaxlib_api.JaxRuntimeError, match="tile sizes"):
        Refused("f", here, {})._compiled()


def test_a_mesh_of_a_module_that_computes_as_it_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("import jax.numpy as jnp\nscale = jnp.ones(3)\ndef f(x): return x * scale\n"
                    "def args(): return [jnp.ones((4, 3))]\n")
    done = subprocess.run(
        [sys.executable, "-m", "emit_hlo", f"{path}:f", f"@{path}:args", "--mesh", "x=4",
         "--in-shardings", "x"], capture_output=True, text=True)
    assert done.returncode == 0 and '@mesh = <["x"=4]>' in done.stdout, done.stderr
