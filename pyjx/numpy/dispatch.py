"""How the functions of this package are called.

A function is plain Python that promotes its operands and binds primitives. On concrete arguments
it is one compiled program behind a C++ callable; where something is traced the Python itself runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from pyjx.core.avals import aval_makers
from pyjx.core.trace import eager_trace, state
from pyjx.runtime.jit import JitSpec, _finish
from pyjx.runtime.signature import argument_sets


@overload
def array_function(fun: Callable[..., Any], /) -> Any: ...


@overload
def array_function(*, static_argnames: tuple[str, ...]) -> Callable[[Callable[..., Any]], Any]: ...


def array_function(fun: Callable[..., Any] | None = None, /, *,
                   static_argnames: tuple[str, ...] = ()) -> Any:
    """The C++ callable of a function whose positional arguments are arrays and scalars.

    Arguments of any other type (tracers, lists, objects with `__jax_array__`) go to the Python
    function as they are, which converts or refuses them.
    """
    if fun is None:
        return lambda fun: _array_function(fun, static_argnames)
    return _array_function(fun, static_argnames)


def _array_function(fun: Callable[..., Any], static_argnames: tuple[str, ...]) -> Any:
    positions, names = argument_sets(fun, None, static_argnames) if static_argnames else ((), ())
    spec = JitSpec(fun, positions, names, (), (), False, True, (), None)

    def miss(*args: Any, **kwargs: Any) -> Any:
        if state.dynamic is not eager_trace:
            return fun(*args, **kwargs), None, False
        for i, x in enumerate(args):
            if type(x) not in aval_makers and i not in positions:
                return fun(*args, **kwargs), None, False
        for key, x in kwargs.items():
            if type(x) not in aval_makers and key not in names:
                return fun(*args, **kwargs), None, False
        return spec.miss(*args, **kwargs)

    return _finish(spec, miss, fun)


__all__ = ["array_function"]
