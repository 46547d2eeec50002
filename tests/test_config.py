"""Flags: reading, setting, contexts, threads, environment variables."""

from __future__ import annotations

import functools
import gc
import logging
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
from pyjx import configuration as cfg
from pyjx import states
from pyjx.cli import help_texts
from pyjx.configuration import config
from pyjx.experimental.xla_metadata import set_xla_metadata
from pyjx.runtime.backends import devices
from pyjx.states import State, flag_values


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """Global values and the table of flags are as before after each test."""
    flags = dict(cfg.states)
    values = {state: state.get_global() for state in flags.values()}
    yield
    cfg.states.clear()
    cfg.states.update(flags)
    for state, value in values.items():
        if state.get_global() != value:
            state.update(value)


def test_every_flag_can_be_read_set_and_has_its_own_environment_variable() -> None:
    assert len(cfg.states) > 150
    assert len({state.environ for state in cfg.states.values()}) == len(cfg.states)
    for name, state in cfg.states.items():
        assert getattr(config, name) == config.read(name) == config.values[name] == state.value
        assert getattr(cfg, name.removeprefix("jax_").removeprefix("pyjx_")) is state
        config.update(name, state.value)
    assert set(config.meta) == set(cfg.states)
    assert set(cfg.states) <= set(dir(config))


@pytest.mark.parametrize(("name", "default"), [
    ("jax_enable_x64", False), ("jax_threefry_partitionable", True),
    ("jax_default_prng_impl", "threefry2x32"), ("jax_default_matmul_precision", None),
    ("jax_numpy_dtype_promotion", "standard"), ("jax_numpy_rank_promotion", "allow"),
    ("jax_transfer_guard", None), ("jax_compilation_cache_max_size", -1),
    ("jax_persistent_cache_min_compile_time_secs", 1.0), ("check_vma", False),
    ("jax_cpu_collectives_implementation", "gloo"), ("jax_explicit_x64_dtypes", "warn"),
    ("jax_pyjx_outline", "auto"), ("jax_pyjx_strict_indices", False), ("jax_pyjx_cache", True),
    ("jax_pyjx_cache_dir", None), ("jax_pyjx_cache_max_bytes", 2 * 2**30),
])
def test_defaults(name: str, default: object) -> None:
    assert cfg.states[name].default == default


def test_update_is_seen_everywhere_and_by_other_threads() -> None:
    config.update("jax_enable_x64", True)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(config.jax_enable_x64))
    thread.start()
    thread.join()
    assert seen == [True]
    assert config.x64_enabled and cfg.enable_x64.value and config.read("jax_enable_x64")


def test_a_context_is_of_its_thread_and_wins_over_the_global_value() -> None:
    seen = []
    with cfg.enable_x64(True):
        thread = threading.Thread(target=lambda: seen.append(cfg.enable_x64.value))
        thread.start()
        thread.join()
        config.update("jax_enable_x64", False)
        assert cfg.enable_x64.value
    assert seen == [False]
    assert not cfg.enable_x64.value


def test_contexts_nest_and_can_be_entered_again() -> None:
    strict = cfg.numpy_dtype_promotion("strict")
    for _ in range(2):
        with strict:
            with cfg.numpy_dtype_promotion("standard"), strict:
                assert cfg.numpy_dtype_promotion.value == "strict"
            assert cfg.numpy_dtype_promotion.value == "strict"
    assert cfg.numpy_dtype_promotion.value == "standard"


def test_a_context_ends_with_an_error() -> None:
    with pytest.raises(KeyError), cfg.debug_nans(True):
        raise KeyError
    assert cfg.debug_nans.value is False


def test_a_context_as_a_decorator() -> None:
    @cfg.enable_x64(True)
    def f(x: int, *, y: int) -> tuple[bool, int]:
        "doc"
        return cfg.enable_x64.value, x + y

    assert f(1, y=2) == (True, 3)
    assert (f.__name__, f.__doc__) == ("f", "doc")
    assert not cfg.enable_x64.value


@pytest.mark.parametrize("state", [cfg.enable_x64, cfg.log_compiles, cfg.check_tracer_leaks,
                                   cfg.disable_jit, cfg.no_tracing])
def test_boolean_contexts_mean_true_without_an_argument(state: State) -> None:
    with state():
        assert state.value is True
    assert state.value is False


def test_disable_jit_by_keyword_and_checking_leaks() -> None:
    with cfg.disable_jit(disable=True):
        assert config.jax_disable_jit
        with cfg.disable_jit(disable=False):
            assert not config.jax_disable_jit
    with cfg.checking_leaks():
        assert config.jax_check_tracer_leaks


def test_other_contexts_need_an_argument() -> None:
    with pytest.raises(TypeError, match="Context manager for numpy_rank_promotion config option "
                                        "requires an argument"):
        cfg.numpy_rank_promotion()


@pytest.mark.parametrize(("name", "value", "message"), [
    ("jax_default_matmul_precision", "foo", r"new enum value must be None or in \['default'"),
    ("jax_numpy_rank_promotion", None, r"new enum value must be in \['allow', 'warn', 'raise'\]"),
    ("jax_pyjx_cache_max_bytes", -1, "must be a number of bytes, 0 or more; got -1"),
    ("jax_pyjx_programs_max_bytes", -7, "0 or more, or -1 for no bound; got -7"),
    ("jax_num_cpu_devices", "a", "new int config value must be None or of type int, got a"),
    ("jax_compilation_cache_max_size", 1.5, "must be None or of type int, got 1.5"),
    ("jax_persistent_cache_min_compile_time_secs", "x", "must be None or of type float"),
    ("jax_compilation_cache_dir", 4, "new string config value must be None or of type str"),
    ("jax_enable_x64", "maybe", "must be True or False, got 'maybe' for jax_enable_x64"),
    ("jax_default_device", 3, "jax.default_device must be passed either a Device object"),
    ("jax_default_device", "bogus", "jax.default_device must be passed either a Device object"),
    ("jax_default_device", "cpu:3", "jax.default_device must be passed either a Device object"),
])
def test_values_that_a_flag_cannot_take(name: str, value: object, message: str) -> None:
    before = config.read(name)
    with pytest.raises(ValueError, match=message):
        config.update(name, value)
    with pytest.raises(ValueError, match=message):
        cfg.states[name](value)
    assert config.read(name) == before


def test_values_that_are_converted_or_taken_as_they_are() -> None:
    config.update("jax_enable_x64", "off")
    assert config.jax_enable_x64 is False
    config.update("jax_enable_custom_prng", 1)
    assert config.jax_enable_custom_prng is True
    config.update("jax_persistent_cache_min_compile_time_secs", 2)
    assert config.jax_persistent_cache_min_compile_time_secs == 2
    config.update("jax_default_device", "cpu")
    assert config.jax_default_device == "cpu"
    with cfg.default_matmul_precision(None):
        assert config.jax_default_matmul_precision is None


def test_unknown_flags() -> None:
    with pytest.raises(AttributeError, match="Unrecognized config option: 5"):
        config.update(5, True)
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_foo"):
        config.update("jax_foo", 1)
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_foo"):
        config.read("jax_foo")
    with pytest.raises(AttributeError, match="'Config' object has no attribute 'jax_foo'"):
        _ = config.jax_foo
    with pytest.raises(AttributeError, match=r"config\.update"):
        config.jax_enable_x64 = True


def test_a_state_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"State\.value"):
        bool(cfg.enable_x64)
    assert repr(cfg.enable_x64) == "<State jax_enable_x64=False>"
    assert cfg.enable_x64.__name__ == "enable_x64"


def test_the_transfer_guard_sets_all_directions() -> None:
    directions = (cfg.transfer_guard_host_to_device, cfg.transfer_guard_device_to_device,
                  cfg.transfer_guard_device_to_host)
    with cfg.transfer_guard_device_to_host("log"):
        with cfg.transfer_guard("disallow"):
            assert [state.value for state in directions] == ["disallow"] * 3
        assert [state.value for state in directions] == [None, None, "log"]
    config.update("jax_transfer_guard", "allow")
    assert [state.value for state in directions] == ["allow"] * 3
    with pytest.raises(ValueError, match="new enum value"):
        cfg.transfer_guard("never")


def test_guards_reach_jaxlib() -> None:
    from jaxlib import _jax

    local = _jax.guard_lib.thread_local_state()
    with cfg.transfer_guard_host_to_device("disallow_explicit"):
        level = _jax.guard_lib.TransferGuardLevel.DISALLOW_EXPLICIT
        assert local.host_to_device == level
    assert local.host_to_device is None
    with cfg.array_garbage_collection_guard("log"):
        assert local.garbage_collect_array == _jax.guard_lib.GarbageCollectionGuardLevel.LOG


def test_x64_reaches_jaxlib_0_7() -> None:
    from jaxlib import _jax

    if not hasattr(_jax.jax_jit, "get_enable_x64"):
        pytest.skip("later versions of jaxlib read the state itself")
    assert not _jax.jax_jit.get_enable_x64()
    with cfg.enable_x64(True):
        assert _jax.jax_jit.get_enable_x64()
    assert not _jax.jax_jit.get_enable_x64()


def test_the_logging_level_and_logged_modules() -> None:
    config.update("jax_logging_level", "ERROR")
    assert logging.getLogger("pyjx").level == logging.ERROR
    config.update("jax_logging_level", "NOTSET")
    config.update("jax_debug_log_modules", "pyjx.some_module, pyjx.other")
    logger = logging.getLogger("pyjx.some_module")
    assert logger.level == logging.DEBUG and len(logger.handlers) == 1


@pytest.mark.parametrize("state", [
    cfg.enable_x64, cfg.numpy_dtype_promotion, cfg.default_matmul_precision, cfg.debug_nans,
    cfg.default_prng_impl, cfg.random_seed_offset, cfg.outline, cfg.strict_indices,
    cfg.default_device, cfg.explicit_x64_dtypes, cfg.optimization_level])
def test_flags_that_change_the_program_are_part_of_the_trace_context(state: State) -> None:
    others = {"jax_numpy_dtype_promotion": "strict", "jax_default_matmul_precision": "highest",
              "jax_default_prng_impl": "rbg", "jax_random_seed_offset": 7,
              "jax_pyjx_outline": "on", "jax_default_device": "cpu",
              "jax_explicit_x64_dtypes": "allow", "jax_optimization_level": "O1"}
    before = cfg.trace_context()
    with state(others.get(state.flag, True)):
        assert cfg.trace_context() != before
    assert cfg.trace_context() == before
    assert states._read_others() == states._other_values()


def test_a_context_of_the_value_that_holds_anyway_traces_nothing_again() -> None:
    traced = []

    @jax.jit
    def f(x: jax.Array) -> jax.Array:
        traced.append(cfg.check_static_indices.value)
        return x + 1

    f(1.0)
    with cfg.check_static_indices(False):
        f(1.0)
    assert traced == [False]
    with cfg.check_static_indices(True):
        f(1.0)
        with cfg.check_static_indices(False):
            f(1.0)
    assert traced == [False, True]
    cfg.check_static_indices.update(True)
    try:
        f(1.0)
        with cfg.check_static_indices(False):
            f(1.0)
    finally:
        cfg.check_static_indices.update(False)
    f(1.0)
    assert traced == [False, True]


def test_a_context_hides_what_another_thread_sets() -> None:
    @jax.jit
    def strict() -> bool:
        return cfg.check_static_indices.value

    entered, updated = threading.Event(), threading.Event()
    seen: list[bool] = []

    def thread() -> None:
        with cfg.check_static_indices(False):
            seen.append(bool(strict()))
            entered.set()
            updated.wait(30)
            seen.append(bool(strict()))
        seen.append(bool(strict()))

    other = threading.Thread(target=thread)
    other.start()
    entered.wait(30)
    cfg.check_static_indices.update(True)
    try:
        assert bool(strict())
        updated.set()
        other.join()
        assert seen == [False, False, True]
        assert bool(strict())
    finally:
        cfg.check_static_indices.update(False)
    assert not bool(strict())


def test_a_flag_and_its_key_agree_where_a_hook_fails() -> None:
    def refuse(value: bool, local: bool) -> None:
        raise OSError("no")

    flag = State("jax_refusing", bool, False, traced=True, on_change=refuse)
    with pytest.raises(OSError, match="no"):
        flag.update(True)
    assert flag.value and ("jax_refusing", True) in cfg.changed_traced()
    with pytest.raises(OSError, match="no"), flag(False):
        pass
    assert not flag.value and ("jax_refusing", True) not in cfg.changed_traced()
    flag.swap_local(states.jaxlib_api.unset)
    states._overrides.set_local(states._all_default)
    with pytest.raises(OSError, match="no"):
        flag.update(False)


def test_contexts_may_end_in_another_order_than_they_began() -> None:
    before = cfg.trace_context()
    first, second = cfg.check_static_indices(True), cfg.debug_nans(True)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with cfg.debug_nans(False), cfg.debug_nans(True):
        assert cfg.changed_traced() == [("jax_debug_nans", True)]
    second.__exit__(None, None, None)
    assert cfg.trace_context() == before


def test_a_value_of_a_flag_goes_when_nobody_is_keyed_by_it() -> None:
    class Text(str):
        __slots__ = ("__weakref__",)

    name = Text("cpu")
    gone = weakref.ref(name)
    with cfg.default_device(name), cfg.debug_nans(True):
        assert dict(cfg.changed_traced())["jax_default_device"] is name
    cfg.default_device.update(name)
    with cfg.debug_nans(True):
        kept = states._overrides.value  # as keys do that hold it
        cfg.trace_context()
    cfg.default_device.update(None)
    del name
    gc.collect()
    assert gone() is None
    assert kept.by_flag


@pytest.mark.parametrize("nth", [1, 2, 3])  # before the lock is held, and while it is
def test_contexts_may_be_entered_while_values_are_compared(nth: int) -> None:
    # as by a finalizer, which the collector may run there, once: a dictionary that changed while
    # it was searched is searched anew, so one that changes each time may be searched for ever
    compared = []

    class Entering:
        def __hash__(self) -> int:
            return 0

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            if len(compared) == nth:
                with cfg.debug_infs(True), cfg.check_static_indices(True):
                    pass
            return False

    kept = []

    def intern() -> None:
        kept.extend(flag_values({cfg.debug_nans: Entering()}) for _ in range(2))

    thread = threading.Thread(target=intern, daemon=True)
    thread.start()
    thread.join(20)
    assert len(kept) == 2
    assert len(compared) >= nth


def test_logging_does_not_change_the_trace_context() -> None:
    before = cfg.trace_context()
    with cfg.log_compiles(True):
        assert cfg.trace_context() == before
    old = cfg.trace_state.swap_local("a trace")
    assert cfg.trace_context() == before
    cfg.trace_state.set_local(old)


def test_user_contexts() -> None:
    context = cfg.make_user_context(default_value=3)
    before = cfg.trace_context()
    with context(5):
        assert context.value == 5
        assert cfg.trace_context() != before
    assert context.value == 3
    assert cfg.trace_context() == before


@pytest.mark.parametrize(("kind", "text", "value"), [
    (bool, "1", True), (bool, "True", True), (bool, "on", True), (bool, "0", False),
    (bool, "FALSE", False), (bool, "no", False), (int, "-3", -3), (float, "0.5", 0.5),
    (str, "a b", "a b"), (("x", "y"), "y", "y"),
])
def test_environment_variables(monkeypatch: pytest.MonkeyPatch, kind: type, text: str,
                               value: object) -> None:
    monkeypatch.setenv("JAX_SOME_FLAG", text)
    assert State("jax_some_flag", kind, None).value == value


@pytest.mark.parametrize(("flag", "value", "held"), [
    ("jax_enable_x64", "no", False), ("jax_enable_x64", "ON", True), ("jax_enable_x64", 1, True),
    ("jax_enable_x64", np.bool_(True), True), ("jax_enable_x64", None, False),
    ("jax_enable_x64", "foo", None), ("jax_enable_x64", "", None), ("jax_enable_x64", 2, None),
    ("jax_enable_x64", 0.5, None), ("jax_enable_x64", [], None), ("jax_enable_x64", ([],), None),
    ("jax_compilation_cache_max_size", 5, 5), ("jax_compilation_cache_max_size", True, None),
    ("jax_compilation_cache_max_size", "5", None), ("jax_compilation_cache_max_size", 5.0, None),
    ("jax_persistent_cache_min_compile_time_secs", False, None),
    ("jax_numpy_rank_promotion", "raise", "raise"), ("jax_numpy_rank_promotion", "Raise", None),
])
def test_values_are_taken_or_refused(flag: str, value: object, held: object) -> None:
    """By `update` and by contexts alike."""
    old = jax.config.read(flag)
    state = states.states[flag]
    if held is None:
        for set_it in (lambda: jax.config.update(flag, value), lambda: state(value)):
            with pytest.raises(ValueError, match=f"got .*for {flag}"):
                set_it()
        assert jax.config.read(flag) == old
    else:
        with state(value):
            assert state.value == held and type(state.value) is type(held)
        jax.config.update(flag, value)
        assert jax.config.read(flag) == held
        jax.config.update(flag, old)


def test_an_error_of_the_environment_is_short() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import pyjx.numpy"], capture_output=True, text=True,
        env={**os.environ, "JAX_NUMPY_RANK_PROMOTION": "foo"})
    assert done.stderr.count("File ") == 1  # the user's
    assert done.stderr.splitlines()[-1] == (
        'ValueError: Invalid value "foo" for JAX flag jax_numpy_rank_promotion: the environment '
        "variable JAX_NUMPY_RANK_PROMOTION must be in ['allow', 'warn', 'raise']")


@pytest.mark.parametrize(("kind", "text", "message"), [
    (bool, "2", "invalid truth value '2' for environment 'JAX_SOME_FLAG': it may be 1, true, "),
    (bool, "", "invalid truth value ''"),
    (int, "x", 'Invalid value "x" for JAX flag jax_some_flag: .* JAX_SOME_FLAG .* of type int'),
    (float, "", 'Invalid value ""'),
    (("x", "y"), "z", r"""Invalid value "z" for JAX flag jax_some_flag: .* in \['x', 'y'\]"""),
])
def test_bad_environment_variables(monkeypatch: pytest.MonkeyPatch, kind: type, text: str,
                                   message: str) -> None:
    monkeypatch.setenv("JAX_SOME_FLAG", text)
    with pytest.raises(ValueError, match=message):
        State("jax_some_flag", kind, None)


def test_environment_variables_are_read_at_import() -> None:
    code = ("from pyjx.configuration import config as c; print(c.jax_enable_x64, "
            "c.jax_numpy_rank_promotion, c.jax_pyjx_outline, c.jax_pyjx_cache, "
            "c.jax_transfer_guard_device_to_host)")
    environ = {"JAX_ENABLE_X64": "true", "JAX_NUMPY_RANK_PROMOTION": "raise",
               "PYJX_OUTLINE": "off", "PYJX_CACHE": "0", "JAX_TRANSFER_GUARD": "log"}
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environ},
                         capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "raise", "off", "False", "log"]


def test_errors_of_the_environment_show_the_users_frames_alone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import pyjx\n")
    env = {**os.environ, "JAX_ENABLE_X64": "maybe", "PYTHONPATH": str(Path(__file__).parents[1])}
    for words in (["program.py"], ["-m", "pyjx", "program.py"]):
        run = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True,
                             env=env)
        assert run.returncode == 1 and "ValueError: invalid truth value 'maybe'" in run.stderr
        assert "__init__.py" not in run.stderr and "runpy" not in run.stderr
        assert ("program.py" in run.stderr) == (words[0] != "-m")


@pytest.mark.parametrize(("before", "said"), [
    ("sys.modules['jax._src'] = sys", "ImportError: jax and pyjx cannot share a process"),
    ("sys.modules['jaxlib'] = None", "ModuleNotFoundError: import of jaxlib halted"),
    ("os.environ['JAX_ENABLE_X64'] = 'maybe'", "ValueError: invalid truth value"),
], ids=["jax", "jaxlib", "variable"])
def test_an_import_that_fails_leaves_the_process_as_it_was(before: str, said: str) -> None:
    """Programs catch ImportError, to do without an optional package."""
    code = f"import os, sys\n{before}\nhook = sys.excepthook\n"
    caught = ("try:\n    import pyjx\nexcept (ImportError, ValueError) as e:\n    error = e\n"
              "assert sys.excepthook is hook and error.__traceback__.tb_next is None\n")
    run = subprocess.run([sys.executable, "-c", code + caught], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    run = subprocess.run([sys.executable, "-c", code + "import pyjx"], capture_output=True,
                         text=True)
    assert run.stderr.count("File ") == 1 and run.stderr.splitlines()[-1].startswith(said)


def test_absl_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("absl.flags")
    monkeypatch.setattr(sys, "argv", ["prog", "--jax_enable_x64", "--other=3",
                                      "--jax_numpy_rank_promotion=warn", "--nojax_pyjx_cache"])
    config.parse_flags_with_absl()
    config.config_with_absl()  # a second time: nothing
    assert config.jax_enable_x64
    assert config.jax_numpy_rank_promotion == "warn"
    assert not config.jax_pyjx_cache


def test_options_of_libraries_on_top() -> None:
    class Holder:
        value = 3

        def _set(self, value: int) -> None:
            self.value = value

    config.add_option("my_library_option", Holder(), int, [], {"help": "A number."})
    try:
        assert config.read("my_library_option") == 3 and config.my_library_option == 3
        config.update("my_library_option", 4)
        assert config.values["my_library_option"] == 4
        assert config.meta["my_library_option"] == (int, [], {"help": "A number."})
        with pytest.raises(ValueError, match="Config option jax_enable_x64 already defined"):
            config.add_option("jax_enable_x64", Holder(), bool, [], {})
    finally:
        del cfg.states["my_library_option"]


@pytest.mark.parametrize("name", sorted(cfg.states))
def test_flags_are_read_or_say_that_they_are_not(name: str) -> None:
    state = cfg.states[name]
    attribute = next(key for key, value in vars(cfg).items() if value is state)
    reading = re.compile(rf"\b(configuration|config|cfg)\.{attribute}\b")
    root = Path(cfg.__file__).parent
    read = state._on_change is not None or len(state.group) > 1 or any(
        reading.search(text) for text in _sources(root))
    assert state.help
    assert state.help.startswith("Accepted, without effect: ") is not read


@functools.cache
def _sources(root: Path) -> list[str]:
    return [path.read_text() for path in root.rglob("*.py") if path.name != "configuration.py"]


def test_the_page_of_flags_is_up_to_date() -> None:
    page = help_texts.PAGE.read_text(encoding="utf-8")
    assert page == help_texts.page(), "run python -m pyjx.cli.help_texts"


def test_the_number_of_cpu_devices_is_settled_where_they_have_started():
    devices("cpu")
    config.update("jax_num_cpu_devices", config.jax_num_cpu_devices)
    with pytest.raises(RuntimeError, match="should be updated before backends are initialized"):
        config.update("jax_num_cpu_devices", 3)


@pytest.mark.parametrize(("shared", "outer", "value"), [
    (lambda: cfg.enable_x64(False), lambda: cfg.enable_x64(True), lambda: cfg.enable_x64.value),
    (lambda: set_xla_metadata(a=1), lambda: set_xla_metadata(b=2), lambda: cfg.xla_metadata.value),
    (lambda: jax.sharding.use_abstract_mesh(MESHES[0]),
     lambda: jax.sharding.use_abstract_mesh(MESHES[1]), jax.sharding.get_abstract_mesh),
], ids=["a flag", "metadata", "a mesh"])
def test_one_context_in_two_threads_gives_each_what_it_had(shared, outer, value) -> None:
    """It is entered in both before it ends in the first."""
    context, entered, left = shared(), threading.Event(), threading.Event()
    seen = []

    def other() -> None:
        before = value()
        with context:
            entered.set()
            assert left.wait(30)
        seen.append(value() == before)

    thread = threading.Thread(target=other)
    with outer():
        before = value()
        with context:
            thread.start()
            assert entered.wait(30)
        seen.append(value() == before)
        left.set()
        thread.join(30)
        with context, context:
            pass
        seen.append(value() == before)
    assert seen == [True] * 3


MESHES = [jax.sharding.AbstractMesh((1,), (name,)) for name in "xy"]


def test_names_that_no_flag_is_like():
    with pytest.raises(AttributeError, match=r"has no attribute 'enable_omnistaging'$"):
        _ = config.enable_omnistaging


@pytest.mark.parametrize(("name", "flag"), [
    ("enable_x64", "jax_enable_x64"), ("x64", "jax_enable_x64"), ("debug_nan", "jax_debug_nans")])
def test_names_that_are_like_those_of_flags(name, flag):
    with pytest.raises(AttributeError, match=f"Did you mean '{flag}'"):
        getattr(config, name)
    with pytest.raises(AttributeError, match=rf"^flags are set with config\.update\('{flag}', "):
        setattr(config, name, True)


@pytest.mark.parametrize("name", ["zzz", "jx"])
def test_names_that_are_like_no_flag(name):
    with pytest.raises(AttributeError, match=f"'Config' object has no attribute '{name}'$"):
        getattr(config, name)
    with pytest.raises(AttributeError, match=f"^there is no flag '{name}'"):
        setattr(config, name, 1)


@pytest.mark.parametrize("name", ["jax_debug_nans", "jax_platform_name", "platform_name"])
def test_flags_are_no_attributes_of_the_package(name):
    flag = f"jax_{name.removeprefix('jax_')}"
    with pytest.raises(AttributeError, match=rf"It is a flag: jax\.config\.update\('{flag}', "):
        getattr(jax, name)
