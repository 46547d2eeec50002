"""Python functions and objects on the hosts of devices: in this process, which controls them."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from pyjx.configuration import default_device
from pyjx.core.array_type import Array
from pyjx.core.meshes import Mesh
from pyjx.guards import guard
from pyjx.runtime import backends
from pyjx.tree_util import tree_leaves


def colocated_cpu_devices(devices_or_mesh: Sequence[Any] | Mesh) -> Any:
    """A device of the host for each device; of a mesh the mesh of these.

    >>> import pyjx as jax
    >>> from pyjx.experimental import colocated_python
    >>> colocated_python.colocated_cpu_devices(jax.devices()) == jax.devices("cpu")
    True
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        beside = np.array(colocated_cpu_devices(list(mesh.devices.flat)), object)
        return Mesh(beside.reshape(mesh.devices.shape), mesh.axis_names, axis_types=mesh.axis_types)
    devices = devices_or_mesh
    hosts = backends.devices("cpu")
    return [d if d.platform == "cpu" else hosts[i % len(hosts)] for i, d in enumerate(devices)]


def colocated_python(fun: Callable[..., Any]) -> Any:
    """A Python function of arrays that runs beside their devices: in this process.

    Args:
      fun: takes and returns pytrees of arrays.

    Returns:
      The function, with an attribute `specialize(in_specs, out_specs_fn, devices)`, which gives one
      for arguments of these types, results of the types that `out_specs_fn` computes, and these
      devices, on the first of which it makes arrays. A function without arguments needs devices.
      Types have no effect, as arguments and results stay in this process.

    Raises:
      TypeError: `fun` is no function.

    The function that it returns raises ValueError where there is neither an argument nor a device,
    and where arguments or results are no arrays.

    >>> import pyjx as jax
    >>> from pyjx.experimental import colocated_python
    >>> add_one = colocated_python.colocated_python(lambda x: x + 1)
    >>> print(add_one(jax.numpy.arange(3)))
    [1 2 3]
    """
    if not callable(fun):
        raise TypeError(f"colocated_python expects a function, got {fun!r}.")
    return _specialized(fun, {})


@guard
def _specialized(fun: Callable[..., Any], given: dict[str, Any]) -> Any:
    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not tree_leaves((args, kwargs)) and not given.get("devices"):
            raise ValueError("No devices found. colocated_python function without input arguments "
                             "must be first specialized with devices.")
        _check_arrays((args, kwargs))
        with default_device(given["devices"][0]) if given.get("devices") else nullcontext():
            results = fun(*args, **kwargs)
        _check_arrays(results)
        return results

    def specialize(in_specs: Any = None, out_specs_fn: Callable[..., Any] | None = None,
                   devices: Sequence[Any] | None = None) -> Any:
        """The function for these types and devices, each of which is given once."""
        more = {"in_specs": in_specs, "out_specs_fn": out_specs_fn,
                "devices": None if devices is None else tuple(devices)}
        news = {name: value for name, value in more.items() if value is not None}
        for name in news.keys() & given.keys():
            raise ValueError(f"{name} already specified")
        return _specialized(fun, {**given, **news})

    call.specialize = specialize  # type: ignore[attr-defined]
    return call


def _check_arrays(tree: Any) -> None:
    for x in tree_leaves(tree):
        if not isinstance(x, Array):
            raise ValueError("colocated_python only supports jax.Array as input and output, but "
                             f"got {type(x)}. Make it an array with jax.device_put.")


@guard
class _Method:
    """A method whose object is made when one of its methods is called."""

    def __init__(self, name: str, method: Callable[..., Any]) -> None:
        self.name = name
        self.method = method

    def __get__(self, this: Any, owner: type | None = None) -> Any:
        if this is None:
            return self.method

        @functools.wraps(self.method)
        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(this._made(), self.name)(*args, **kwargs)

        return colocated_python(call)


def colocated_python_class(cls: type) -> type:
    """A class whose objects live beside devices: in this process.

    Its public methods, which take and return pytrees of arrays, are functions as `colocated_python`
    gives them; nothing else of an object is to be seen. An object of `cls` is made when one of its
    methods is called for the first time.

    Raises:
      TypeError: `cls` is no class.

    >>> import pyjx as jax
    >>> from pyjx.experimental import colocated_python
    >>> @colocated_python.colocated_python_class
    ... class Counter:
    ...     def __init__(self, start):
    ...         self.n = start
    ...     def add(self, x):
    ...         self.n = self.n + x
    ...         return self.n
    ...
    >>> counter = Counter(5)
    >>> print(counter.add(jax.numpy.array(1)), counter.add(jax.numpy.array(1)))
    6 7
    """
    if not isinstance(cls, type):
        raise TypeError(f"colocated_python_class expects a class, got {cls!r}.")

    @functools.wraps(cls.__init__)  # type: ignore[misc]
    def start(this: Any, *args: Any, **kwargs: Any) -> None:
        this._made = functools.cache(lambda: cls(*args, **kwargs))

    methods = {name: _Method(name, method)
               for name, method in inspect.getmembers(cls, inspect.isfunction)
               if not name.startswith("_")}
    named = {"__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(cls.__name__, (), {**named, **methods, "__init__": start})


# -- what a host keeps for calls by number ---------------------------------------------------------


class ResultStore:
    """Results of calls that have run, until they are fetched."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._results: dict[int, Sequence[Array]] = {}

    def push(self, uid: int, out: Sequence[Array]) -> None:
        """Keep the results of a call. ValueError: there are some of it."""
        with self._lock:
            if uid in self._results:
                raise ValueError(f"uid {uid} already exists: its results are to be fetched first")
            self._results[uid] = out

    def pop(self, uid: int) -> Sequence[Array]:
        """The results of a call, which are kept no more. ValueError: there are none."""
        with self._lock:
            if uid not in self._results:
                raise ValueError(f"uid {uid} does not exist: no call of it has run")
            return self._results.pop(uid)


class ObjectStore:
    """Objects by number."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._objects: dict[int, Any] = {}

    def get_or_create(self, uid: int, initializer: Callable[[], Any]) -> Any:
        """The object with this number; `initializer` makes it, if there is none."""
        with self._lock:
            if uid not in self._objects:
                self._objects[uid] = initializer()
            return self._objects[uid]


SINGLETON_RESULT_STORE = ResultStore()
SINGLETON_OBJECT_STORE = ObjectStore()
