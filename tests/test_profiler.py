"""Profiles and events."""

import gzip
import json
import socket

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import monitoring


def work():
    jax.jit(lambda x: x @ x)(jnp.ones((64, 64))).block_until_ready()


def files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_trace_is_written(tmp_path):
    with jax.profiler.trace(tmp_path, create_perfetto_trace=True):
        with jax.profiler.StepTraceAnnotation("train", step_num=3), \
                jax.profiler.TraceAnnotation("my_label"):
            work()
        assert jax.profiler.annotate_function(lambda x: x + 1, name="named")(1) == 2
    names = files(tmp_path)
    assert any(name.endswith(".xplane.pb") for name in names)
    (perfetto,) = tmp_path.rglob("perfetto_trace.json.gz")
    events = json.loads(gzip.decompress(perfetto.read_bytes()))["traceEvents"]
    assert {"my_label", "named", "train"} <= {e.get("name") for e in events}


def test_start_and_stop(tmp_path):
    with pytest.raises(RuntimeError, match="No profile started"):
        jax.profiler.stop_trace()
    jax.profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="Profile has already been started"):
        jax.profiler.start_trace(tmp_path)
    work()
    jax.profiler.stop_trace()
    assert any(name.endswith(".xplane.pb") for name in files(tmp_path))


def test_sessions_are_looked_at_in_memory(tmp_path):
    session = jax.profiler.ProfileSession()
    with pytest.raises(RuntimeError, match="has not stopped"):
        session.export_profile_data(tmp_path)
    session.start()
    assert session.is_running and session.profile_data is None
    with jax.profiler.TraceAnnotation("in memory"):
        work()
    session.stop()
    assert not session.is_running
    names = {event.name for plane in session.profile_data.planes for line in plane.lines
             for event in line.events}
    assert "in memory" in names
    jax.profiler.export_profile_data(session, tmp_path, session_id="mine")
    assert (tmp_path / "plugins" / "profile" / "mine").is_dir()
    with pytest.raises(TypeError, match="bytes of a serialized profile"):
        jax.profiler.export_profile_data(3, tmp_path)


def test_memory_profile(tmp_path):
    kept = jnp.ones((1000,))
    profile = jax.profiler.device_memory_profile()
    assert gzip.decompress(profile)
    jax.profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert (tmp_path / "memory.prof").stat().st_size > 0
    del kept


def test_server():
    with pytest.raises(ValueError, match="No active profiler server"):
        jax.profiler.stop_server()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    jax.profiler.start_server(port)
    with pytest.raises(ValueError, match="Only one profiler server"):
        jax.profiler.start_server(port)
    jax.profiler.stop_server()


def test_events_of_compilation():
    seen = []
    spans = []
    listener = lambda event, seconds, **k: seen.append((event, k, seconds))  # noqa: E731
    span = lambda event, start, end, **k: spans.append((event, start <= end))  # noqa: E731
    monitoring.register_event_duration_secs_listener(listener)
    monitoring.register_event_time_span_listener(span)
    try:
        def named(x):
            return x * 3 + 1

        f = jax.jit(named)
        f(1.0), f(2.0)
    finally:
        monitoring.unregister_event_duration_listener(listener)
        monitoring.unregister_event_time_span_listener(span)
    own = [event.rpartition("/")[2] for event, k, seconds in seen if k == {"fun_name": "named"}]
    assert own == ["jaxpr_trace_duration", "jaxpr_to_mlir_module_duration",
                   "backend_compile_duration"]
    assert all(seconds >= 0 for *_, seconds in seen) and all(ok for _, ok in spans)


def test_calls_with_new_types_are_events():
    seen = []
    listener = lambda event, **kwargs: seen.append((event, kwargs.get("fun_name")))  # noqa: E731

    def tripled(x):
        return x * 3

    f = jax.jit(tripled)
    monitoring.register_event_listener(listener)
    try:
        f(1.0), f(2.0), f(1)
    finally:
        monitoring.unregister_event_listener(listener)
    assert seen.count(("/pyjx/jit/call_miss", "tripled")) == 2


@pytest.mark.parametrize(("kind", "name"), [
    ("event", "event"), ("event_duration_secs", "event_duration"),
    ("event_time_span", "event_time_span"), ("scalar", "scalar"),
])
def test_unknown_listeners(kind, name):
    with pytest.raises(ValueError, match="is not registered"):
        getattr(monitoring, f"unregister_{name}_listener")(print)
    getattr(monitoring, f"register_{kind}_listener")(print)
    monitoring.clear_event_listeners()
    with pytest.raises(ValueError, match="is not registered"):
        getattr(monitoring, f"unregister_{name}_listener")(print)
