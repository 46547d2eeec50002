"""Profiles of programs: what ran when, on the host and on devices, by XLA's own profiler.

A profile is a folder that TensorBoard's profile plugin (XProf) opens; with
`create_perfetto_trace=True` it also holds a file for https://ui.perfetto.dev.
"""

from __future__ import annotations

import glob
import gzip
import http.server
import os
import platform
import shutil
import socketserver
import threading
import time
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pyjx import jaxlib_api
from pyjx.lazy import directory
from pyjx.runtime import backends

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileLine", "ProfileOptions", "ProfilePlane",
    "ProfileSession", "StepTraceAnnotation", "TraceAnnotation", "annotate_function",
    "device_memory_profile", "export_profile_data", "register_subprocess",
    "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace",
    "trace",
]


_profiler = jaxlib_api.profiler()
_data = jaxlib_api.profile_data()

ProfileOptions = _profiler.ProfileOptions
ProfileOptions.__doc__ = """What a profile records, for `start_trace` and `trace`.

Its attributes are set before: `python_tracer_level` (0 leaves out calls of Python),
`host_tracer_level` (from 0, nothing, to 3, all that there is), `device_tracer_level` (0 leaves out
devices), and `advanced_configuration`, a dictionary of options of the platform's profiler.
"""
ProfileData = _data.ProfileData
ProfileEvent = _data.ProfileEvent
ProfileLine = _data.ProfileLine
ProfilePlane = _data.ProfilePlane

_F = TypeVar("_F", bound=Callable[..., Any])


# -- traces ----------------------------------------------------------------------------------------


class ProfileSession:
    """A profile from `start` to `stop`, or of a `with` block.

    Args:
      log_dir: where it is written when it stops; None to look at it in memory only.
      create_perfetto_link: whether to print a link that opens it in Perfetto, and wait until it has
        been opened.
      create_perfetto_trace: whether to write a file for Perfetto.
      profiler_options: what is recorded.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> with jax.profiler.ProfileSession() as session:
    ...     _ = jax.jit(jnp.sin)(1.0).block_until_ready()
    ...
    >>> session.profile_data is not None
    True
    """

    def __init__(self, log_dir: os.PathLike[str] | str | None = None,
                 create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
                 profiler_options: Any = None) -> None:
        self.log_dir = None if log_dir is None else os.fspath(log_dir)
        self.create_perfetto_link = create_perfetto_link
        self.create_perfetto_trace = create_perfetto_trace
        self.profiler_options = profiler_options
        self._session: Any = None
        self._bytes: bytes | None = None
        self._stopped: Any = None

    @property
    def is_running(self) -> bool:
        return self._session is not None

    @property
    def profile_data(self) -> Any:
        """The recorded `ProfileData`, once the session has stopped; else None."""
        return None if self._bytes is None else ProfileData.from_serialized_xspace(self._bytes)

    def start(self) -> None:
        """Begin to record.

        Raises:
          RuntimeError: a profile is being recorded already.
        """
        global _running
        with _lock:
            if _running is not None:
                raise RuntimeError("Profile has already been started. Only one profile may be run "
                                   "at a time.")
            backends.get_backend()  # devices have their profilers once they are there
            self._session = (_profiler.ProfilerSession() if self.profiler_options is None
                             else _profiler.ProfilerSession(self.profiler_options))
            _running = self

    def stop(self) -> None:
        """End the recording; it is written to `log_dir`, if there is one.

        Raises:
          RuntimeError: it is not running.
        """
        global _running
        with _lock:
            if self._session is None:
                raise RuntimeError("No profile started")
            session, self._session, _running = self._session, None, None
            self._bytes = session.stop()
            self._stopped = session
        if self.log_dir is not None:
            self.export_profile_data(self.log_dir, self.create_perfetto_link,
                                     self.create_perfetto_trace)

    def export_profile_data(self, log_dir: os.PathLike[str] | str,
                            create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
                            session_id: str | None = None) -> None:
        """Write what was recorded to a folder.

        Raises:
          RuntimeError: nothing has been recorded.
        """
        if self._bytes is None:
            raise RuntimeError("There is no profile to export: the session has not stopped.")
        _export(self._bytes, os.fspath(log_dir), create_perfetto_link, create_perfetto_trace,
                session_id, self._stopped)

    def __enter__(self) -> ProfileSession:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.stop()


_lock = threading.RLock()
_running: ProfileSession | None = None


def start_trace(log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False,
                create_perfetto_trace: bool = False, profiler_options: Any = None) -> None:
    """Begin a profile, which `stop_trace` ends and writes.

    Args:
      log_dir: the folder to write it to.
      create_perfetto_link: whether to print a link that opens it in Perfetto, and wait until it has
        been opened.
      create_perfetto_trace: whether to write a file for Perfetto.
      profiler_options: what is recorded.

    Raises:
      RuntimeError: a profile is being recorded already.
    """
    ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options).start()


def stop_trace() -> None:
    """End the profile that `start_trace` began, and write it.

    Raises:
      RuntimeError: none has been started.
    """
    if _running is None:
        raise RuntimeError("No profile started")
    _running.stop()


def trace(log_dir: os.PathLike[str] | str | None = None, create_perfetto_link: bool = False,
          create_perfetto_trace: bool = False, profiler_options: Any = None) -> ProfileSession:
    """A context in which a profile is recorded; it is written to `log_dir` at its end.

    >>> import os, tempfile
    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> folder = tempfile.mkdtemp()
    >>> with jax.profiler.trace(folder):
    ...     _ = jax.jit(jnp.sin)(1.0).block_until_ready()
    ...
    >>> os.listdir(folder)
    ['plugins']
    """
    return ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)


def export_profile_data(profile_data: Any, log_dir: os.PathLike[str] | str,
                        create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
                        session_id: str | None = None) -> None:
    """Write a profile to a folder.

    Args:
      profile_data: the bytes of a serialized profile (XSpace), or a stopped `ProfileSession`.
    """
    if isinstance(profile_data, ProfileSession):
        profile_data.export_profile_data(log_dir, create_perfetto_link, create_perfetto_trace,
                                         session_id)
        return
    if not isinstance(profile_data, bytes):
        raise TypeError("export_profile_data: profile_data must be the bytes of a serialized "
                        f"profile or a ProfileSession, got {type(profile_data)}.")
    _export(profile_data, os.fspath(log_dir), create_perfetto_link, create_perfetto_trace,
            session_id)


def _export(data: bytes, log_dir: str, link: bool, perfetto: bool, session_id: str | None,
            session: Any = None) -> None:
    to_xprof = getattr(_profiler, "export_to_xprof", None)
    if to_xprof is not None:
        to_xprof(ProfileData.from_serialized_xspace(data), log_dir, session_id or "")
    elif session is not None and session_id is None:
        session.export(data, log_dir)
    else:  # an older jaxlib writes its own sessions only; this is the file that XProf reads
        when = session_id or time.strftime("%Y_%m_%d_%H_%M_%S")
        folder = os.path.join(log_dir, "plugins", "profile", when)
        os.makedirs(folder, exist_ok=True)
        Path(folder, f"{platform.node()}.xplane.pb").write_bytes(data)
    if link or perfetto:
        path = _write_perfetto_trace(log_dir)
        if link:
            _serve_once(path)


def _write_perfetto_trace(log_dir: str) -> str:
    """Put the newest profile's trace under the name that Perfetto users look for; its path."""
    folders = sorted(glob.glob(os.path.join(log_dir, "plugins", "profile", "*", "")),
                     key=os.path.getmtime)
    traces = glob.glob(os.path.join(folders[-1], "*.trace.json.gz")) if folders else []
    if not traces:
        raise ValueError(f"There is no trace to convert for Perfetto in {log_dir}.")
    path = os.path.join(folders[-1], "perfetto_trace.json.gz")
    shutil.copyfile(traces[0], path)
    return path


_PERFETTO_PORT = 9001  # the one that Perfetto may read from


class _Server(socketserver.TCPServer):
    allow_reuse_address = True


def _serve_once(path: str) -> None:
    """Print a link that opens the file in Perfetto, and serve it until it has been read."""
    done = threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            self.send_header("Access-Control-Allow-Origin", "*")
            super().end_headers()

        def do_GET(self) -> None:
            super().do_GET()
            done.set()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    folder, name = os.path.split(os.path.abspath(path))
    with _Server(("127.0.0.1", _PERFETTO_PORT), partial(Handler, directory=folder)) as server:
        print("Open URL in browser: https://ui.perfetto.dev/#!/?url="
              f"http://127.0.0.1:{_PERFETTO_PORT}/{name}")
        while not done.is_set():
            server.handle_request()


# -- annotations -----------------------------------------------------------------------------------


class TraceAnnotation(_profiler.TraceMe):  # type: ignore[misc, name-defined]
    """A context whose time has a name in profiles.

    >>> import pyjx as jax
    >>> with jax.profiler.TraceAnnotation("my_label"):
    ...     pass
    ...
    """


class StepTraceAnnotation(TraceAnnotation):
    """A context that is a step of a training loop in profiles.

    >>> import pyjx as jax
    >>> for step in range(2):
    ...     with jax.profiler.StepTraceAnnotation("train", step_num=step):
    ...         pass
    ...
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: _F, name: str | None = None, **decorator_kwargs: Any) -> _F:
    """The function with a name for its calls in profiles, its own by default.

    >>> import pyjx as jax
    >>> @jax.profiler.annotate_function
    ... def f(x):
    ...     return x + 1
    ...
    >>> f(1)
    2
    """
    label = name or getattr(func, "__qualname__", None) or func.__name__

    @wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated  # type: ignore[return-value]


# -- memory, servers -------------------------------------------------------------------------------


def device_memory_profile(backend: str | None = None) -> bytes:
    """What lies in the memory of the devices, as a gzipped profile of the tool `pprof`.

    Args:
      backend: a platform, by default the default one.
    """
    return gzip.compress(backends.get_backend(backend).heap_profile())


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None
                               ) -> None:
    """Write `device_memory_profile` to a file."""
    Path(filename).write_bytes(device_memory_profile(backend))


_server: Any = None


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Let TensorBoard take profiles of this process through a port.

    Args:
      port: where it listens.
      requires_backend: whether the devices are made ready first, so that they are profiled, too.

    Raises:
      ValueError: there is a server already.
    """
    global _server
    if _server is not None:
        raise ValueError("Only one profiler server can be active at a time.")
    if requires_backend:
        backends.get_backend()
    _server = _profiler.start_server(port)
    return _server


def stop_server() -> None:
    """End what `start_server` began.

    Raises:
      ValueError: there is no server.
    """
    global _server
    if _server is None:
        raise ValueError("No active profiler server.")
    _server = None


def register_subprocess(pid: int, port: int) -> None:
    """Have profiles take in those of another process, whose server listens on `port`.

    Raises:
      NotImplementedError: jaxlib is too old for that.
    """
    register = getattr(_profiler, "register_subprocess", None)
    if register is None:
        raise NotImplementedError("profiler.register_subprocess needs jaxlib 0.8 or newer.")
    register(pid, port)


def get_profiled_instructions_proto(tensorboard_dir: str | os.PathLike[str]) -> bytes:
    """The costs of instructions in a profile, as XLA reads them (the proto ProfiledInstructions).

    Args:
      tensorboard_dir: the folder that `jax.profiler.start_trace` was given, or that of a run in
        it, `plugins/profile/TIME`. The costs are of the latest run; there are some for GPUs alone.

    Raises:
      FileNotFoundError: there is no profile.
    """
    root = Path(tensorboard_dir)
    runs = sorted(root.glob("plugins/profile/*")) or [root]
    if not list(runs[-1].glob("*.xplane.pb")):
        raise FileNotFoundError(f"get_profiled_instructions_proto: there is no profile in {root}")
    return jaxlib_api.profiler().get_profiled_instructions_proto(  # type: ignore[no-any-return]
        str(runs[-1]))


__dir__ = directory(__name__, __all__)
