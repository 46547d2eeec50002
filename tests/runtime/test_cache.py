"""The disk cache: what is damaged, foreign or unsafe is never used, and nothing is ever lost."""

import os
import time
from types import SimpleNamespace

import numpy as np
import pytest

import pyjx as jax
from pyjx import configuration as config
from pyjx import jaxlib_api
from pyjx.runtime import cache
from pyjx.runtime.backends import default_device
from pyjx.runtime.compile import compile, compile_options
from pyjx.runtime.device_put import device_put


def program(constant):
    return f"""module @m {{ func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
      %c = stablehlo.constant dense<{constant}.0> : tensor<3xf32>
      %0 = stablehlo.add %a, %c : tensor<3xf32>
      return %0 : tensor<3xf32> }} }}"""


def result(executable):
    x = device_put(np.zeros(3, np.float32))
    return np.asarray(executable.execute_sharded([x]).disassemble_into_single_device_arrays()[0][0])


def check(constant):
    np.testing.assert_array_equal(result(compile(program(constant))), [constant] * 3)


def entries(folder):
    return sorted(folder.glob("*.xla"))


@pytest.mark.smoke
def test_a_second_compilation_loads(cache_folder, monkeypatch):
    check(1)
    (entry,) = entries(cache_folder)
    assert cache_folder.stat().st_mode & 0o777 == 0o700
    assert entry.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr("pyjx.jaxlib_api.compile_and_load", None)  # would be called to compile
    check(1)


@pytest.mark.smoke
def test_keys_depend_on_program_and_options():
    device = default_device()

    def key(text, **options):
        chosen = compile_options((device,), compiler_options=options)
        return cache.entry_for(device.client, text, (device,), chosen)._path

    paths = {key(program(1)), key(program(2)), key(program(1), xla_cpu_enable_fast_math=True)}
    assert len(paths) == 3
    assert key(program(1)) in paths


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes use all CPUs here")
def test_keys_depend_on_the_cpus_that_the_process_may_use(monkeypatch):
    def fact(count):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)))
        return cache._host_cpu.__wrapped__()

    assert fact(1) != fact(2)
    assert fact(2) == fact(2)


_USERS = """
import pyjx as jax
import pyjx.numpy as jnp

shift = {shared}

def helper(x):
    return x @ x * {helper}

def made(k):
    return jax.jit(lambda x: helper(x) + shift + k)

program = made({closure})
"""


PRECISIONS = ["bfloat16", "tensorfloat32", "float32", "F32_F32_F32"]


@pytest.mark.parametrize(("kind", "count"), [
    ("helper", 26), ("shared", 25), ("closure", 25), ("flag", len(PRECISIONS)), ("jaxlib", 10),
    ("machine", 10)])
def test_what_changed_is_compiled_again(kind, count, cache_folder, monkeypatch):
    """A process that starts after a change never gets the program from before it."""
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    monkeypatch.setattr(cache, "_platform", cache._platform.__wrapped__)
    for k in range(count):
        numbers = {"helper": 1, "shared": 0, "closure": 0}
        if kind in numbers:
            numbers[kind] += k + 1
        elif kind == "jaxlib":
            monkeypatch.setattr(jaxlib_api, "JAXLIB_RELEASE", f"0.7.{k}")
        elif kind == "machine":
            monkeypatch.setattr(cache, "_host_cpu", lambda k=k: f"{k} cores".encode())
        for again in (False, True):
            namespace = {}
            exec(_USERS.format(**numbers), namespace)
            with jax.default_matmul_precision(PRECISIONS[k] if kind == "flag" else None):
                compiled = namespace["program"].lower(x).compile()
            assert (compiled._executable.from_disk is not None) is again
            np.testing.assert_array_equal(
                compiled(x), x @ x * numbers["helper"] + numbers["shared"] + numbers["closure"])


def test_source_locations_are_no_part_of_the_key():
    device = default_device()
    options = compile_options((device,))
    plain = program(1)
    located = plain.replace(": tensor<3xf32>\n", ": tensor<3xf32> loc(#loc1)\n", 1)
    located += '\n#loc1 = loc("f"("file.py":12:3))'
    assert located != plain

    def path(text):
        return cache.entry_for(device.client, text, (device,), options)._path

    assert path(located).split("/")[-1] != ""
    moved = located.replace(":12:3", ":13:3")
    assert path(located) == path(moved)


@pytest.mark.parametrize("damage", [
    lambda blob: b"", lambda blob: blob[:20], lambda blob: blob[:-1],
    lambda blob: blob[:100] + bytes([blob[100] ^ 1]) + blob[101:],
    lambda blob: b"X" + blob[1:], lambda blob: b"something else entirely" * 100,
    lambda blob: blob[:10] + bytes([blob[10] ^ 1]) + blob[11:],
])
def test_damaged_entries_are_compiled_again(cache_folder, damage):
    check(2)
    (entry,) = entries(cache_folder)
    good = entry.read_bytes()
    entry.write_bytes(damage(good))
    check(2)
    assert entry.read_bytes()[:8] == good[:8]
    check(2)


def test_an_entry_under_another_name_is_refused(cache_folder):
    check(3)
    (first,) = entries(cache_folder)
    check(4)
    (second,) = set(entries(cache_folder)) - {first}
    second.write_bytes(first.read_bytes())
    check(4)


def test_what_xla_cannot_load_is_compiled_again(cache_folder):
    check(5)
    (entry,) = entries(cache_folder)
    device = default_device()
    place = cache.entry_for(device.client, program(5), (device,), compile_options((device,)))
    place._write(b"checksummed, but no executable")
    check(5)
    assert entry.stat().st_size > 1000


@pytest.mark.parametrize("place", [
    "pyjx.jaxlib_api.deserialize_executable", "pyjx.runtime.cache._is_private", "os.replace"])
def test_a_timeout_is_no_fault_of_an_entry(cache_folder, monkeypatch, alarm, place):
    if place != "os.replace":
        check(8)
    with monkeypatch.context() as context:
        context.setattr(place, alarm)
        if place.endswith("_is_private"):
            context.setattr(cache, "_usable", lambda folder: True)
        with pytest.raises(TimeoutError, match="too slow"):
            check(8)
    assert len(entries(cache_folder)) == (place != "os.replace")
    monkeypatch.setattr(cache, "_failed", None)  # would be called to note that one is dropped
    check(8)


def test_a_timeout_of_what_is_not_kept_is_no_failure(cache_folder, alarm):
    cache_folder.mkdir()
    client = SimpleNamespace(serialize_executable=alarm)
    with pytest.raises(TimeoutError, match="too slow"):
        cache.Entry(str(cache_folder), b"key").store(client, None, 1.0)


def test_a_symbolic_link_is_not_followed(cache_folder, tmp_path):
    check(6)
    (entry,) = entries(cache_folder)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    check(6)


def test_a_folder_that_others_may_write_to_is_not_used(cache_folder):
    cache_folder.mkdir()
    cache_folder.chmod(0o777)
    with pytest.warns(UserWarning, match="another user owns it or may write to it"):
        check(7)
    assert cache.folder() is None
    assert entries(cache_folder) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes with names")
def test_a_pipe_is_not_waited_for(cache_folder):
    check(1)
    (entry,) = entries(cache_folder)
    entry.unlink()
    os.mkfifo(entry)
    check(1)
    assert entry.is_file()


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize(("umask", "mode", "used"), [
    (0o022, 0o770, False), (0o022, 0o755, True), (0o002, 0o775, True), (0o002, 0o777, False),
    (0o000, 0o777, False),
])
def test_who_may_write_to_the_folder(run_python, tmp_path, umask, mode, used):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    out = run_python(f"""
import os, warnings
os.umask({umask})
warnings.simplefilter("ignore")
from pyjx.runtime import cache
print(cache.folder())
""", PYJX_CACHE_DIR=str(folder))
    assert out.strip() == (str(folder) if used else "None")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs chown")
def test_a_folder_of_another_user_is_not_used(cache_folder):
    cache_folder.mkdir()
    os.chown(cache_folder, 12345, 12345)
    with pytest.warns(UserWarning, match="another user owns it or may write to it"):
        check(8)
    assert cache.folder() is None


@pytest.mark.parametrize("path", ["/proc/nowhere/cache", "gs://bucket/cache"])
def test_no_folder_no_cache(path):
    config.cache_dir.update(path)
    with pytest.warns(UserWarning, match="Compiled programs cannot be kept in") as caught:
        check(9)
    check(10)
    assert cache.folder() is None and len(caught) == 1  # the user hears of it once


@pytest.mark.smoke
def test_switches(cache_folder):
    with config.cache(False):
        assert cache.folder() is None
        check(10)
    with config.enable_compilation_cache(False):
        assert cache.folder() is None
    assert not cache_folder.exists()


def test_folder_by_flag_and_environment(monkeypatch, tmp_path):
    config.cache_dir.update(None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == str(tmp_path / "xdg" / "pyjx")
    with config.compilation_cache_dir(str(tmp_path / "other")):
        assert cache.folder() == str(tmp_path / "other")
    config.cache_dir.update(str(tmp_path / "cache"))


def test_minimum_compile_time_when_the_user_sets_it(cache_folder):
    with config.persistent_cache_min_compile_time_secs(1000.0):
        check(11)
    assert entries(cache_folder) == []


def test_dumps_are_not_skipped(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/dump")
    device = default_device()
    options = compile_options((device,))
    assert cache.entry_for(device.client, program(1), (device,), options) is None


def test_programs_that_call_the_host_are_kept_and_call_functions_of_this_process(cache_folder):
    def made(function):
        def body(carry, x):
            y = jax.pure_callback(function, x, x)
            jax.debug.callback(lambda y: seen.append(float(y)), y, ordered=True)
            return carry + y, None

        seen = []
        f = jax.jit(lambda xs: jax.lax.scan(body, np.float32(0), xs)[0])
        total = float(f(np.arange(3, dtype=np.float32)))
        jax.effects_barrier()
        return total, seen

    assert made(lambda x: np.asarray(x) + 1) == (6, [1, 2, 3])
    kept = entries(cache_folder)
    is_kept = jax.default_backend() == "cpu" and jaxlib_api.LOADS_HOST_CALLS
    assert len(kept) == is_kept
    assert made(lambda x: np.asarray(x) * 2) == (6, [0, 2, 4])
    assert entries(cache_folder) == kept

    def fails(x):
        raise LookupError("not there")

    with pytest.raises(jax.errors.JaxRuntimeError, match="not there") as failure:
        made(fails)
    assert type(failure.value.__cause__) is LookupError


def test_the_oldest_entries_go(cache_folder):
    for i in range(6):
        check(20 + i)
    found = entries(cache_folder)
    now = time.time()
    for age, entry in enumerate(found):
        os.utime(entry, (now - 10 * age, now - 10 * age))
    size = max([e.stat().st_size for e in found])  # they differ by a few bytes
    left = cache.evict(str(cache_folder), 5 * size)
    assert entries(cache_folder) == sorted(found[:4])
    assert left == sum(e.stat().st_size for e in found[:4])


def test_the_bound_holds(cache_folder):
    check(30)
    size = entries(cache_folder)[0].stat().st_size
    with config.cache_max_bytes(4 * size):
        for i in range(8):
            check(31 + i)
            assert sum(e.stat().st_size for e in entries(cache_folder)) <= 4 * size
    assert entries(cache_folder)


def test_litter_is_removed(cache_folder):
    check(40)
    litter = cache_folder / "tmp-1-1-1"
    litter.write_bytes(b"")
    os.utime(litter, (0, 0))
    fresh = cache_folder / "tmp-1-1-2"
    fresh.write_bytes(b"")
    cache.evict(str(cache_folder), 1 << 40)
    assert not litter.exists() and fresh.exists()


def test_clear(cache_folder):
    check(41)
    cache.clear()
    assert entries(cache_folder) == []


def test_reading_marks_old_entries_as_used(cache_folder):
    check(42)
    (entry,) = entries(cache_folder)
    os.utime(entry, (0, 0))
    check(42)
    assert time.time() - entry.stat().st_mtime < 60


MANY = """
import sys, numpy as np
from pyjx.runtime.compile import compile
from pyjx.runtime.device_put import device_put
from tests.runtime.test_cache import program, result
order = np.random.RandomState(int(sys.argv[1]) if len(sys.argv) > 1 else None).permutation(6)
for constant in [*order, *order]:
    assert result(compile(program(constant))).tolist() == [constant] * 3
print("good")
"""


def test_twenty_processes_at_once(start_python, cache_folder):
    processes = [start_python(MANY) for _ in range(20)]
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert out == "good\n", err
        assert err == ""
    assert len(entries(cache_folder)) == 6
    assert [p for p in cache_folder.iterdir() if p.name.startswith("tmp-")] == []
    with config.cache_dir(str(cache_folder)):
        for entry in entries(cache_folder):
            place = cache.Entry(str(cache_folder), bytes.fromhex(entry.stem))
            assert place.read() is not None


def test_why_a_program_is_not_kept_on_disk():
    def lines(f):
        f(np.ones(3, np.float32))
        return [line.strip() for line in str(f.explain()).splitlines() if "not kept" in line]

    with config.cache(False):
        assert lines(jax.jit(lambda x: x + 1)) == ["not kept on disk: the cache is off"]
    if jax.default_backend() == "cpu" and not jaxlib_api.LOADS_HOST_CALLS:
        (line,) = lines(jax.jit(lambda x: jax.pure_callback(lambda x: x, x, x)))
        assert "it calls the host" in line
