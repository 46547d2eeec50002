"""Modules of JAX's internals that suites written for JAX import: what their functions do."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from collections import OrderedDict, defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import compat, configuration
from pyjx import numpy as jnp
from pyjx.runtime import clusters as launchers
from pyjx.states import states
from tests.test_internals import find


def module(name: str) -> Any:
    return importlib.import_module(compat.module_of(name))


def test_a_module_is_found_in_its_package_however_it_is_imported():
    program = """
import pyjx.as_jax
import jax
from jax._src.nn import functions, initializers
import jax._src.image.scale as scale
from jax._src.image import scale as same
from jax._src.scipy import linalg, optimize
from jax._src.scipy.optimize.bfgs import minimize_bfgs
from jax._src.scipy.stats import kde
from jax._src.third_party.scipy import betaln, interpolate
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo, func
from jax._src.export import _export, shape_poly
from jax._src.lib import xla_client as xc
assert functions.relu is jax.nn.relu and scale is same is jax.image
assert initializers is jax.nn.initializers and linalg is jax.scipy.linalg
assert optimize.bfgs.minimize_bfgs is minimize_bfgs
assert betaln.betaln is jax.scipy.special.betaln and hlo.__name__.endswith("stablehlo")
assert not any(hasattr(jax.nn, n) for n in ("functions", "image"))
assert not hasattr(jax.image, "scale") and not hasattr(jax.scipy.optimize, "bfgs")
assert xc.OpSharding
try:
    from jax._src.nn import no_such
except ImportError:
    print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


# -- flags -----------------------------------------------------------------------------------------


@pytest.fixture
def forget_flags():
    known = set(states)
    yield
    for name in set(states) - known:
        flag = states.pop(name)
        flag.update(flag.default)


def test_a_walk_over_all_modules_imports_none():
    program = ("import sys, pyjx.compat\n"
               "for module in sys.modules.values(): getattr(module, '__file__', None)")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_library_has_flags_of_its_own(forget_flags: None, monkeypatch: pytest.MonkeyPatch):
    config = module("config")
    seen: list[Any] = []
    monkeypatch.setenv("OWN_LEVEL", "7")
    flag = config.bool_state("own_flag", False, "help", include_in_jit_key=True,
                             update_global_hook=lambda value: seen.append(("all", value)),
                             update_thread_local_hook=lambda value: seen.append(("here", value)))
    level = config.int_state("own_level", 3, "help")
    kind = config.enum_state("own_kind", ["a", "b"], "a", "help")
    maybe = config.optional_enum_state("own_choice", ["a"], None, "help")
    assert (flag.value, level.value, kind.value, maybe.value) == (False, 7, "a", None)
    traces: list[bool] = []
    f = jax.jit(lambda x: traces.append(flag.value) or x)
    f(1)
    with flag(True):
        f(1)
    f(1)
    jax.config.update("own_flag", True)
    assert traces == [False, True] and jax.config.own_flag is True
    assert seen == [("all", False), ("here", True), ("here", None), ("all", True)]
    for change in (lambda: kind("c"), lambda: jax.config.update("own_kind", None),
                   lambda: config.bool_state("own_flag", False, "help")):
        with pytest.raises(ValueError):
            change()
    jax.config.update("own_choice", "a")
    jax.config.update("own_choice", None)


def test_a_validator_refuses_values_of_a_flag(forget_flags: None):
    def positive(value: int) -> None:
        if value <= 0:
            raise ValueError("not positive")

    flag = module("config").int_state("own_size", 1, "help", validator=positive)
    with pytest.raises(ValueError, match="not positive"):
        jax.config.update("own_size", 0)
    assert flag.value == 1


def test_flags_and_variables_of_suites(forget_flags: None, monkeypatch: pytest.MonkeyPatch):
    config = module("config")
    monkeypatch.setenv("OWN_TRUTH", "no")
    monkeypatch.setenv("OWN_NUMBER", "5")
    assert config.bool_env("OWN_TRUTH", True) is False and config.int_env("OWN_NUMBER", 1) == 5
    assert config.bool_env("OWN_OTHER", True) is True and config.int_env("OWN_OTHER", 1) == 1
    monkeypatch.setenv("OWN_TRUTH", "perhaps")
    with pytest.raises(ValueError, match="invalid truth value 'perhaps'"):
        config.bool_env("OWN_TRUTH", True)
    made = [config.int_flag("own_int", 1), config.float_flag("own_float", 0.5),
            config.string_flag("own_text", "x"), config.enum_flag("own_enum", "a", ["a", "b"])]
    assert [flag.value for flag in made] == [1, 0.5, "x", "a"]
    assert config.enable_x64 is configuration.enable_x64


def test_levels_of_logs_are_flags():
    logging_config = module("logging_config")
    before = jax.config.jax_logging_level
    logging_config.update_logging_level_global("DEBUG")
    assert jax.config.jax_logging_level == "DEBUG"
    logging_config.update_logging_level_global(before)
    logging_config.update_debug_log_modules("pyjx.nowhere")
    assert jax.config.jax_debug_log_modules == "pyjx.nowhere"
    logging_config.update_debug_log_modules(None)
    assert jax.config.jax_debug_log_modules == ""


# -- deprecations ----------------------------------------------------------------------------------


def test_what_is_deprecated_is_warned_of_until_it_is_accelerated():
    deprecations = module("deprecations")
    deprecations.register("own-thing")
    assert not deprecations.is_accelerated("own-thing")
    with pytest.warns(DeprecationWarning, match="thing is old"):
        deprecations.warn("own-thing", "thing is old", stacklevel=1)
    deprecations.accelerate("own-thing")
    for error in (ValueError, TypeError):
        with pytest.raises(error, match="thing is old"):
            deprecations.warn("own-thing", "thing is old", stacklevel=1, error_class=error)
    deprecations.unregister("own-thing")
    for ask in (deprecations.is_accelerated, deprecations.accelerate, deprecations.unregister):
        with pytest.raises(ValueError, match="deprecation_id='own-thing' not registered"):
            ask("own-thing")


def test_what_pyjx_warns_of_is_known_as_deprecated(monkeypatch: pytest.MonkeyPatch):
    assert not module("deprecations").is_accelerated("jax-numpy-astype-complex-to-real")
    with pytest.warns(DeprecationWarning):
        jnp.ones(2, "complex64").astype("float32")
    monkeypatch.setitem(
        module("deprecations").accelerated, "jax-numpy-astype-complex-to-real", True)
    with pytest.raises(ValueError, match="Casting from complex to real"):
        jnp.ones(2, "complex64").astype("float32")


def test_a_warning_of_pyjx_is_an_error_where_it_is_accelerated(monkeypatch: pytest.MonkeyPatch):
    deprecations, identifier = module("deprecations"), "jax-nn-one-hot-float-input"
    message = "input should be integer-typed"
    assert not deprecations.is_accelerated(identifier)
    with pytest.warns(DeprecationWarning, match=message):
        jax.nn.one_hot(jnp.ones(2), 3)
    monkeypatch.setitem(deprecations.accelerated, identifier, False)  # so that it is put back
    deprecations.accelerate(identifier)
    with pytest.raises(ValueError, match=message):
        jax.nn.one_hot(jnp.ones(2), 3)


def test_deprecated_names_of_a_module():
    deprecations = module("deprecations")
    old = types.ModuleType("old")
    table = {"x": ("x is old", 42), "gone": ("gone is gone", None)}
    vars(old).update(_deprecations=table,
                     __getattr__=deprecations.deprecation_getattr("old", table))
    with pytest.warns(DeprecationWarning, match="x is old"):
        assert old.x == 42
    assert [deprecations.is_accelerated_attribute(old, n) for n in table] == [False, True]
    for name, message in [("gone", "gone is gone"), ("y", "module 'old' has no attribute 'y'")]:
        with pytest.raises(AttributeError, match=message):
            getattr(old, name)
    deprecations.accelerate_getattr_deprecation(old, "x")
    with pytest.raises(AttributeError, match="x is old"):
        _ = old.x


# -- references ------------------------------------------------------------------------------------


def test_references_are_discharged_where_it_is_asked_for():
    discharge_state = module("state.discharge").discharge_state

    def f(a: Any, x: Any, b: Any) -> Any:
        a[...] = a[...] + x
        return b[...] * x

    closed = jax.make_jaxpr(f)(jax.new_ref(1.0), 2.0, jax.new_ref(3.0))
    out = discharge_state(closed)
    assert [v.aval.dtype for v in out.jaxpr.invars] == ["float32"] * 3
    assert jax.core.jaxpr_as_fun(out)(1.0, 2.0, 3.0) == [6.0, 3.0, 3.0]
    one = discharge_state(closed, [False, True])
    AbstractRef = find("jax._src.state.types.AbstractRef")
    assert [type(v.aval) is AbstractRef for v in one.jaxpr.invars] == [True, False, False]
    assert len(one.jaxpr.outvars) == 2


def test_a_function_of_references_is_one_of_values():
    run_state = module("state.discharge").run_state

    @run_state
    def step(refs: Any) -> None:
        refs["y"][...] = refs["x"][...] * 2
        refs["x"][0] = 0.0

    out = step({"x": jnp.ones(2), "y": jnp.zeros(2)})
    assert out["x"].tolist() == [0, 1] and out["y"].tolist() == [2, 2]
    traced = jax.jit(step)({"x": jnp.ones(2), "y": jnp.zeros(2)})
    assert traced["y"].tolist() == [2, 2]
    grad = jax.grad(lambda x: step({"x": x, "y": jnp.zeros(2)})["y"].sum())(jnp.ones(2))
    assert grad.tolist() == [2, 2]


def test_types_of_references():
    of_types = module("state.types")
    assert str(of_types.shaped_array_ref((2,), "int8")) == "Ref{int8[2]}"
    aval, value = of_types.get_ref_aval_from_value(x := jnp.ones(2))
    assert str(aval) == "Ref{float32[2]}" and value is x
    primitives = module("state.primitives")
    ref = jax.new_ref(jnp.zeros(2))
    primitives.ref_set(ref, 0, 1.0)
    primitives.ref_addupdate(ref, 0, 2.0)
    assert primitives.ref_swap(ref, 0, 5.0) == 3 and primitives.ref_get(ref, 0) == 5
    jaxpr = jax.make_jaxpr(lambda r: primitives.ref_get(r, ()))(jax.new_ref(1.0)).jaxpr
    assert jaxpr.eqns[0].primitive is primitives.get_p


# -- shardings and meshes --------------------------------------------------------------------------


def test_shardings_of_xla_are_asked_for_their_parts():
    op = module("op_shardings")
    HloSharding = find("jax._src.lib.xla_client.HloSharding")
    whole = HloSharding.replicate()
    assert op.is_hlo_sharding_replicated(whole) and op.get_num_ways_dim_sharded(whole) == ([], 1)
    rows = HloSharding.iota_tile(dims=[2, 1, 2], reshape_dims=[4], transpose_perm=[0],
                                 subgroup_types=[find("jax._src.lib.xla_client.OpSharding").Type
                                                 .REPLICATED])
    assert op.get_num_ways_dim_sharded(rows) == ([2, 1], 2)
    assert not op.is_hlo_sharding_replicated(rows)
    assert op.are_hlo_shardings_equal(rows, rows)
    assert not op.are_hlo_shardings_equal(rows, whole)
    parts = [(slice(0, 2), slice(None))] * 2 + [(slice(2, 4), slice(None))] * 2
    assert op.op_sharding_to_indices(rows, (4, 8), 4) == tuple(parts)
    in_array = op.op_sharding_to_numpy_indices(rows, (4, 8), 4)
    assert in_array.shape == (4,) and in_array.tolist() == parts
    with pytest.raises(ValueError, match="partitioned 2 times"):
        op.op_sharding_to_indices(rows, (3, 8), 4)


def test_meshes_that_are_set():
    meshes = module("mesh")
    assert meshes.get_concrete_mesh().empty and meshes.empty_concrete_mesh.empty
    mesh = jax.make_mesh((1,), ("x",))
    with jax.set_mesh(mesh):
        assert meshes.get_concrete_mesh() == mesh
        assert meshes.get_abstract_mesh() == mesh.abstract_mesh
    sharding = jax.NamedSharding(mesh, jax.P("x"))
    parts = module("sharding").common_devices_indices_map(sharding, (2,))
    assert parts == {jax.devices()[0]: (slice(None),)}


def test_platforms_and_their_clients():
    bridge = module("xla_bridge")
    assert bridge.is_known_platform("tpu") and not bridge.is_known_platform("abacus")
    assert bridge.expand_platform_alias("gpu")[0] == "cuda"
    assert bridge.canonicalize_platform("cpu") == "cpu"
    if jax.default_backend() == "cpu":
        with pytest.raises(RuntimeError, match="no platforms that are instances of gpu"):
            bridge.canonicalize_platform("gpu")
    device = jax.devices()[0]
    assert bridge.get_device_backend(device) is device.client is bridge.get_device_backend()
    assert bridge.process_indices() == [0]


def test_a_launcher_of_a_library_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(launchers, "CLUSTERS", launchers.CLUSTERS)
    monkeypatch.delenv("JAX_COORDINATOR_PORT", raising=False)
    ClusterEnv = find("jax._src.clusters.ClusterEnv")
    given = dict.fromkeys(
        ("coordinator_address", "num_processes", "process_id", "local_device_ids"))
    asked: list[int] = []

    class Own(ClusterEnv):
        name = "own"
        opt_in_only_method = True

        @classmethod
        def is_env_present(cls) -> bool:
            return True

        @classmethod
        def get_coordinator_address(cls, timeout_secs: Any, override_coordinator_port: Any) -> str:
            asked.append(timeout_secs + 1)
            return f"host:{override_coordinator_port or 99}"

        @classmethod
        def get_process_count(cls) -> int:
            return 4

        @classmethod
        def get_process_id(cls) -> int:
            return 2

    class OwnHosts(Own):
        name = "hosts"

        @classmethod
        def get_local_process_id(cls) -> int:
            return 1

    class OwnHost(Own):
        name = "host"

        @classmethod
        def get_local_process_id(cls) -> None:
            return None

    found = launchers.completed(given, "own", 1)
    assert asked == [2]  # once, so host and port are of one answer
    assert found == {"coordinator_address": "host:99", "num_processes": 4, "process_id": 2,
                     "local_device_ids": None}
    assert launchers.completed(given, "host", 1) == found
    monkeypatch.setenv("JAX_COORDINATOR_PORT", "7")
    hosts = launchers.completed(given, "hosts", 1)
    assert hosts["coordinator_address"] == "host:7" and hosts["local_device_ids"] == [1]
    assert launchers.detect(None) is None or launchers.detect(None).name not in ("own", "hosts")
    with pytest.raises(NotImplementedError, match="must implement get_process_id"):
        ClusterEnv.get_process_id()


# -- programs --------------------------------------------------------------------------------------


def test_values_are_forgotten_behind_their_last_use():
    core = module("core")
    jaxpr = jax.make_jaxpr(lambda x, y: (x * y + x, y))(1.0, 2.0).jaxpr
    x, y = jaxpr.invars
    last = core.last_used(jaxpr)
    assert last[x] is jaxpr.eqns[1] and last[y] is None
    env = {x: 1.0, y: 2.0}
    core.clean_up_dead_vars(jaxpr.eqns[0], env, last)
    assert set(env) == {x, y}
    core.clean_up_dead_vars(jaxpr.eqns[1], env, last)
    assert set(env) == {y}


def test_types_and_shapes():
    core = module("core")
    weak, strong = core.typeof(1.0), core.typeof(jnp.ones(()))
    assert weak != strong and core.typematch(weak, strong)
    assert not core.typematch(weak, core.typeof(1))
    (b,) = find("jax._src.export.shape_poly.symbolic_shape")("b")
    assert core.is_constant_dim(3) and not core.is_constant_dim(b)
    assert core.is_empty_shape((b, 0)) and not core.is_empty_shape((b, 2))
    arrays = module("abstract_arrays")
    assert np.ndarray in arrays.array_types and np.float32 in arrays.numpy_scalar_types
    assert np.ndarray not in arrays.numpy_scalar_types


def test_what_is_kept_for_a_backward_pass():
    kept = module("ad_checkpoint").saved_residuals(lambda x, y: jnp.sin(x) * y, 1.0, 2.0)
    assert [aval.str_short() for aval, _ in kept] == ["float32[]"] * 3
    assert kept[0][1] == "from the argument y" and kept[1][1].startswith("output of sin from")


def test_marks_of_effects():
    effects = module("effects")

    class Noise(effects.Effect):
        pass

    noise = Noise()
    for marked in (effects.ordered_effects, effects.remat_allowed_effects):
        assert not marked.contains(noise) and marked.filter_not_in([noise]) == [noise]
        marked.add_type(Noise)
        assert marked.contains(noise) and marked.contains(Noise)
        assert marked.filter_in([noise]) == [noise] and marked.filter_not_in([noise]) == []
    assert Noise.ordered and Noise.repeatable and not effects.Effect.ordered
    assert effects.lowerable_effects is find("jax.interpreters.mlir.lowerable_effects")
    assert effects.lowerable_effects.contains(noise)  # as all that derive from Effect
    of_others = SimpleNamespace()
    assert effects.lowerable_effects.filter_not_in([noise, of_others]) == [of_others]
    effects.lowerable_effects.add_type(SimpleNamespace)
    assert effects.lowerable_effects.filter_in([noise, of_others]) == [noise, of_others]
    assert effects.ordered_effects.contains(find("jax._src.debugging.ordered_debug_effect"))
    assert not effects.ordered_effects.contains(find("jax._src.debugging.debug_effect"))


def test_special_values_are_errors_where_flags_say_so():
    check = module("dispatch").check_special
    bad = [jnp.ones(2), jnp.array([1.0, np.nan])]
    check("f", bad)
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"\(nan\) encountered in f"):
        check("f", bad)


def test_places_in_the_users_program():
    info = module("source_info_util")
    traceback = jax.make_jaxpr(lambda x: x + 1)(1).jaxpr.eqns[0].source_info.traceback
    frame = info.user_frame(traceback)
    assert frame.file_name == __file__ and next(iter(info.user_frames(traceback))) == frame
    assert info.is_user_filename(__file__) and not info.is_user_filename(info.__file__)
    assert type(info.Scope("f")) is not type(info.Transform("jvp"))


def test_exported_functions_and_their_variables():
    of_export, shapes = module("export._export"), module("export.shape_poly")
    args = shapes.symbolic_args_specs((np.ones((2, 3)),), ("b, a",))
    exported = jax.export.export(jax.jit(lambda x: x.sum(0)))(*args)
    assert of_export.call(exported)(np.ones((2, 3), np.float32)).tolist() == [2, 2, 2]
    call = jax.make_jaxpr(of_export.call_exported(exported))(np.ones((2, 3), np.float32)).eqns[-1]
    assert call.params["call_jaxpr"].eqns[0].primitive is of_export.call_exported_p
    assert shapes.all_dim_vars(exported.in_avals) == ["a", "b"]
    assert isinstance(args[0].shape[0], shapes._DimExpr) and of_export.Exported is type(exported)


# -- the rest --------------------------------------------------------------------------------------


def test_metadata_that_is_in_force():
    metadata = module("xla_metadata_lib")
    set_xla_metadata = find("jax._src.xla_metadata.set_xla_metadata")
    assert metadata.current_xla_metadata() is None
    with set_xla_metadata(a=1), set_xla_metadata(b="x"):
        assert metadata.current_xla_metadata() == {"a": "1", "b": "x"}
    assert metadata.current_xla_metadata() is None
    assert metadata.filter_nones({"a": None, "b": 0}) == {"b": 0}


def test_who_listens():
    monitoring = module("monitoring")
    kinds = [("event", "event"), ("event_duration_secs", "event_duration"),
             ("event_time_span", "event_time_span"), ("scalar", "scalar")]
    for registered, asked in kinds:
        get = getattr(monitoring, f"get_{asked}_listeners")
        before = get()
        getattr(monitoring, f"register_{registered}_listener")(print)
        assert get() == [*before, print]
        getattr(monitoring, f"unregister_{asked}_listener")(print)
        assert get() == before


def test_the_disk_cache_is_on_or_off(tmp_path: Any):
    enabled = module("compilation_cache").is_persistent_cache_enabled
    before = jax.config.jax_compilation_cache_dir
    module("compilation_cache").set_cache_dir(tmp_path)
    try:
        assert enabled() or not jax.config.jax_enable_compilation_cache
        with configuration.enable_compilation_cache(False):
            assert not enabled()
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_modules_of_a_package_that_load_when_they_are_used():
    package = types.ModuleType("lazy_package")
    sys.modules["lazy_package"] = package
    sys.modules["lazy_package.part"] = part = types.ModuleType("lazy_package.part")
    try:
        attached = module("lazy_loader").attach("lazy_package", ["part"])
        for name, value in zip(("__all__", "__dir__", "__getattr__"), attached[::-1], strict=True):
            setattr(package, name, value)
        assert package.part is part and package.__all__ == ["part"] and "part" in dir(package)
        with pytest.raises(AttributeError, match="'lazy_package' has no attribute 'other'"):
            _ = package.other
    finally:
        del sys.modules["lazy_package"], sys.modules["lazy_package.part"]


@pytest.mark.parametrize("one, other, path, why", [
    ([1, 2], [1], (), "the lengths do not match"),
    ((1,), [1], (), "their Python types differ"),
    (1, [1], (), "their Python types differ"),
    (None, 1, (), "their Python types differ"),
    ({"a": [1]}, {"a": (1,)}, ("a",), "their Python types differ"),
    ({"a": 1}, {"b": 2}, (), "the pytree node metadata does not match"),
    (defaultdict(int, a=1), defaultdict(float, a=1), (), "the pytree node metadata does not match"),
    ({"a": 1}, {"b": 1, "a": 1, "c": 1}, (), "the numbers of children do not match, with the "
                                             "symmetric difference of key sets: {'b' 'c'}"),
    ({"a": 1, "c": 2}, {"a": 1}, (), "the numbers of children do not match, with the symmetric "
                                     "difference of key sets: {'c'}")])
def test_in_what_structures_differ(one: Any, other: Any, path: Any, why: str) -> None:
    tree_util = module("tree_util")
    structures = [jax.tree.structure(tree) for tree in (one, other)]
    for found in (tree_util.equality_errors(one, other),
                  tree_util.equality_errors_pytreedef(*structures)):
        (difference,) = found
        assert tuple(key.key for key in difference[0]) == path and difference[3] == why


def test_leaves_of_structures_have_no_type():
    tree_util = module("tree_util")
    one, other = [1, (2,)], [[1], 2.0]
    of_values = [d[1:3] for d in tree_util.equality_errors(one, other)]
    of_structures = [d[1:3] for d in tree_util.equality_errors_pytreedef(
        *map(jax.tree.structure, (one, other)))]
    assert of_values == [(str(int), str(list)), (str(tuple), str(float))]
    assert of_structures == [("pytree leaf", str(list)), (str(tuple), "pytree leaf")]


def test_structures_that_are_equal():
    tree_util = module("tree_util")
    assert list(tree_util.equality_errors({"a": [1, None]}, {"a": [2.0, None]})) == []
    assert list(tree_util.equality_errors([1], [[2]], is_leaf=lambda x: x == [2] or x == 1)) == []
    assert tree_util.tree_leaves_checked(jax.tree.structure((1, 2)), (3, 4)) == [3, 4]
    with pytest.raises(ValueError, match="is to have the structure"):
        tree_util.tree_leaves_checked(jax.tree.structure((1, 2)), [3, 4])


@pytest.mark.parametrize("tree", [
    (1, 2), [1], {"b": 1, "a": 2}, None, OrderedDict(z=1), jax.tree_util.Partial(max, 1),
])
def test_types_of_trees_are_taken_apart_and_made(tree):
    registry = module("tree_util")._registry
    entry = registry[type(tree)]
    children, rest = entry.to_iter(tree)
    made = entry.from_iter(rest, iter(children))
    assert jax.tree.structure(made) == jax.tree.structure(tree)
    assert jax.tree.leaves(made) == jax.tree.leaves(tree)
    assert type(tree) in registry and registry.get(type(tree)) is not None


def test_a_library_makes_keys_of_its_own():
    class Key:
        seed = 3

    core = module("random.core")
    asked = core._check_prng_key

    def check(name, key, **options):
        return asked(name, jax.random.key(key.seed) if isinstance(key, Key) else key, **options)

    core._check_prng_key = check
    try:
        for draw in (jax.random.uniform, jax.random.split, jax.random.bits,
                     lambda k: jax.random.gamma(k, 2.0)):
            assert jnp.array_equal(draw(Key()), draw(jax.random.key(3)))
    finally:
        core._check_prng_key = asked
    with pytest.raises(TypeError, match="unexpected PRNG key type"):
        jax.random.uniform(Key())


def test_leaves_are_of_no_type_of_trees():
    registry = module("tree_util")._registry
    assert int not in registry and registry.get(int, 3) == 3
    with pytest.raises(KeyError):
        registry[int]



def test_lists_of_one_length():
    util, lists = module("util"), ([1], [1], [1, 2])
    with pytest.raises(ValueError, match=r"safe_zip\(\) argument 2 has length 2 but argument 0 has "
                                         r"length 1\. All lengths: \(1, 1, 2\)"):
        util.safe_zip(*lists)
    with pytest.raises(ValueError, match=r"foreach\(\) argument 3 is longer than argument 1"):
        util.foreach(print, *lists)
    seen: list[Any] = []
    util.foreach(lambda x, y: seen.append(x * y), [1, 2], iter([3, 4]))
    assert seen == [3, 8] and util.safe_zip([1], "a") == [(1, "a")]


def test_minima_and_steps_towards_them():
    bfgs = find("jax._src.scipy.optimize.bfgs.minimize_bfgs")
    search = find("jax._src.scipy.optimize.line_search.line_search")

    def f(x: Any) -> Any:
        return jnp.sum((x - 1) ** 4 + x ** 2)

    end = bfgs(f, jnp.zeros(2))
    assert end.converged and not end.failed and end.nhev == 0 and end.status == 0
    np.testing.assert_allclose(jax.grad(f)(end.x_k), end.g_k, atol=1e-6)
    np.testing.assert_allclose(end.f_k, f(end.x_k))
    short = bfgs(f, jnp.full(2, 5.0), maxiter=1)
    assert not short.converged and short.k == 1 and short.status == 1
    x, p = jnp.full(2, 5.0), -jax.grad(f)(jnp.full(2, 5.0))
    known = {"old_fval": f(x), "gfk": jax.grad(f)(x)}
    for step in (search(f, x, p), search(f, x, p, **known),
                 search(f, x, p, old_old_fval=f(x) + 10, **known)):
        slope = jnp.vdot(jax.grad(f)(x), p)
        assert not step.failed and step.status == 0
        assert f(x + step.a_k * p) <= f(x) + 1e-4 * step.a_k * slope
        assert abs(jnp.vdot(step.g_k, p)) <= 0.9 * abs(slope)
    assert search(f, x, p).nfev == search(f, x, p, **known).nfev + 1
    assert search(f, x, p, maxiter=1).failed and search(f, x, p, maxiter=1).status == 1
    with pytest.raises(NotImplementedError, match=r"c2=0\.1"):
        search(f, x, p, c2=0.1)


def test_values_as_keys_and_ordered_sets():
    util = module("util")
    wrap = util.HashableWrapper
    items = [1]
    assert wrap(items) == wrap(items) != wrap([1]) and hash(wrap(items)) == hash(wrap(items))
    assert wrap((1,)) == wrap((1,)) and hash(wrap((1,))) == hash((1,))
    assert util.Unhashable(1) == util.Unhashable(1) != util.Unhashable(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(util.Unhashable(1))
    ordered = util.OrderedSet()
    for element in (3, 1, 3):
        ordered.add(element)
    ordered.update([2, 1])
    assert list(ordered) == [3, 1, 2] and len(ordered) == 3 and 4 not in ordered


def test_nodes_stand_behind_their_parents():
    toposort = module("util").toposort
    a = SimpleNamespace(name="a", parents=[])
    b = SimpleNamespace(name="b", parents=[a])
    c = SimpleNamespace(name="c", parents=[b, a])
    d = SimpleNamespace(name="d", parents=[a])
    order = [node.name for node in toposort([c, d])]
    assert sorted(order) == list("abcd")
    assert order.index("a") < order.index("b") < order.index("c") and order.index("d") > 0


def test_what_other_libraries_can_share():
    dlpack = module("dlpack")
    assert np.dtype("bool") in dlpack.SUPPORTED_DTYPES_SET
    assert jnp.bfloat16 in dlpack.SUPPORTED_DTYPES
    assert len(dlpack.SUPPORTED_DTYPES) == len(dlpack.SUPPORTED_DTYPES_SET) == 15
    for dtype in dlpack.SUPPORTED_DTYPES_SET:
        assert jax.dlpack.is_supported_dtype(dtype)


def test_modules_of_jaxlib():
    lib = module("lib")
    assert lib.version == jax.lib.__version_info__ and lib.version_str == jax.lib.__version__
    assert lib.jaxlib_extension_version > 0 and lib.xla_client.__name__ == "jaxlib.xla_client"
    with pytest.raises(AttributeError, match="no_such"):
        _ = lib.no_such


def test_versions_of_cuda_are_asked_of_the_plugin(monkeypatch: pytest.MonkeyPatch):
    for name in ("jax_cuda13_plugin", "jax_cuda12_plugin"):
        monkeypatch.setitem(sys.modules, name, None)  # not installed
    assert module("lib").cuda_versions is None
    package, versions = [types.ModuleType(name) for name in ("jax_cuda12_plugin", "_versions")]
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "jax_cuda12_plugin", package)
    monkeypatch.setitem(sys.modules, "jax_cuda12_plugin._versions", versions)
    assert module("lib").cuda_versions is versions


def test_large_pages_are_what_linux_says(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    utils = module("hardware_utils")
    file = tmp_path / "enabled"
    monkeypatch.setattr(utils, "_HUGE_PAGES", file)
    assert not utils.transparent_hugepages_enabled()
    for text, on in [("[always] madvise never", True), ("always [madvise] never", False)]:
        file.write_text(text)
        assert utils.transparent_hugepages_enabled() is on
