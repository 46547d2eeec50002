"""What is checked: by `check`, what a function asks of its values; and of operations themselves,
NaNs, divisions by zero, indices out of bounds. What was found is an error, which is a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pyjx import configuration, lax
from pyjx.core import dtypes, source_info
from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, SymbolicDim, get_aval
from pyjx.core.effects import Effect, Effects
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Record
from pyjx.core.scalars import scalar_constant, scalar_of
from pyjx.core.trace import Tracer
from pyjx.core.value_texts import shortened
from pyjx.debug.printing import Formatter, Placeholder
from pyjx.engine.axes import at_front, broadcast_in_dim
from pyjx.engine.batching import BatchTrace
from pyjx.engine.rules import done_again
from pyjx.engine.types import Dims, TreeDef, Values
from pyjx.guards import guard
from pyjx.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from pyjx.lax.callbacks import call_for_debugging
from pyjx.lax.compare import eq, gt, lt, ne, select
from pyjx.lax.compare import min as min_
from pyjx.lax.convert import convert_element_type, full, full_like
from pyjx.lax.creation import broadcasted_iota
from pyjx.lax.joining import concatenate
from pyjx.lax.reductions import argmax, reduce_or
from pyjx.lax.shapes import reshape
from pyjx.lax.slicing import dynamic_index_in_dim
from pyjx.lax.special import any_of
from pyjx.runtime.transfers import array_from_host
from pyjx.tree_util import register_pytree_node_class, tree_flatten, tree_unflatten

# -- errors as values ------------------------------------------------------------------------------

# A site has a flag, which says whether its check was the first to fail, and a payload. What is in a
# program for each device has these for each device (`Site.devices`), as each has a first failure.


def on_host(x: Any) -> Any:
    """What a message shows; random keys have no form for NumPy, and stay as they are."""
    return x if dtypes.is_extended(get_aval(x).dtype) else np.asarray(x)


class JaxException(Exception):
    """A check that failed.

    Ways out: `err.throw()` raises what `checkify.checkify(f)(x)` gives as its first result;
    `err.get()` is its text, and None where no check failed.
    """


class NaNError(JaxException):
    """An operation gave a NaN.

    Ways out: the message names the operation and its line: keep its operands where it is defined,
    by `jnp.where` on the operands rather than on the result; or leave `checkify.nan_checks` out of
    `errors`. `jax.inspect.find(f, x)` tells where the first NaN of a program comes from.
    """


class OOBError(JaxException):
    """An index was out of bounds.

    Ways out: compute an index within the axis that the message names, as by `jnp.clip`; or, where
    reads of the nearest element are meant, leave `checkify.index_checks` out of `errors`.
    """


class DivisionByZeroError(JaxException):
    """Something was divided by zero.

    Ways out: divide by `jnp.where(y == 0, 1, y)` and choose the result by `jnp.where`, or leave
    `checkify.div_checks` out of `errors`.
    """


class FailedCheckError(JaxException):
    """What `check` tests did not hold.

    Ways out: the message is that of the call of `checkify.check`, with its values; to go on without
    these checks leave `checkify.user_checks` out of `errors`.
    """


class JaxRuntimeError(ValueError):
    """Raised by `Error.throw`, with the error as its text."""


ErrorCategory: TypeAlias = type[JaxException]

user_checks: frozenset[ErrorCategory] = frozenset({FailedCheckError})
nan_checks: frozenset[ErrorCategory] = frozenset({NaNError})
index_checks: frozenset[ErrorCategory] = frozenset({OOBError})
div_checks: frozenset[ErrorCategory] = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks

class Site:
    """A place in a program where something is checked.

    Args:
      category: the class of its error.
      message: from the payload of a failure, as NumPy arrays, to its text.
      payload_avals: the types of the payload.
      source: where it stands in the user's program.
      devices: leading dimensions of the flags and of the payload, where devices have their own.
    """

    __slots__ = ("category", "devices", "message", "payload_avals", "source")

    def __init__(self, category: ErrorCategory, message: Callable[..., str],
                 payload_avals: Sequence[ShapedArray], source: Any,
                 devices: tuple[int, ...] = ()) -> None:
        self.category = category
        self.message = message
        self.payload_avals = tuple(payload_avals)
        self.source = source
        self.devices = devices

    def on_devices(self, n: int) -> Site:
        """The site in a program for each of `n` devices."""
        return Site(self.category, self.message, self.payload_avals, self.source,
                    (n, *self.devices))


class Failure(Record):
    """A check that failed first, for an example and a device.

    Attributes:
      place: of the example and the device, along the axes of the error and of its site.
      site: where.
      payload: what its message shows.
    """

    place: tuple[int, ...]
    site: Site
    payload: list[Any]

    def exception(self) -> JaxException:
        error = self.site.category(self.site.message(*self.payload))
        place = source_info.summarize(self.site.source)
        if place:
            error.add_note(f"The check stands at {place}.")
        return error


@guard
@register_pytree_node_class
class Error:
    """Whether a check failed, and which did first. A pytree, so functions may return it from `jit`,
    and `vmap` gives one for each example.

    Args:
      _pred: boolean array, whether one failed.
      _code: for each site a boolean array, whether it is the one that failed first.
      _metadata: the sites.
      _payload: for each site what its message shows.
    """

    __slots__ = ("_code", "_metadata", "_payload", "_pred")

    _cure_for_output = ("It gives an error beside the value: check the derivative, as in "
                        "checkify.checkify(jax.grad(f)).")  # as `jax.grad` says

    def __init__(self, _pred: Any, _code: Sequence[Any], _metadata: tuple[Site, ...],
                 _payload: Sequence[Sequence[Any]]) -> None:
        self._pred = _pred
        self._code = _code
        self._metadata = _metadata
        self._payload = _payload

    def tree_flatten(self) -> tuple[Any, Any]:
        return ((self._pred, list(self._code), [list(p) for p in self._payload]), self._metadata)

    @classmethod
    def tree_unflatten(cls, metadata: Any, data: Any) -> Error:
        pred, code, payload = data
        return cls(pred, code, metadata, payload)

    def get(self) -> str | None:
        """The text of the error, or None if no check failed.

        >>> from pyjx.experimental.checkify import init_error
        >>> init_error.get() is None
        True
        """
        error = self.get_exception()
        return None if error is None else str(error)

    def get_exception(self) -> JaxException | None:
        """The error as an exception, or None if no check failed.

        >>> from pyjx.experimental.checkify import init_error
        >>> init_error.get_exception() is None
        True
        """
        if isinstance(self._pred, Tracer):
            raise ValueError("Error.get: the error is a traced value here; look at it outside of "
                             "the transformed function, or pass it to checkify.check_error.")
        failures = self.failures()
        if not failures:
            return None
        if not failures[0].place:
            return failures[0].exception()
        each = [(f.place, f.exception()) for f in failures]
        lines = [f"at mapped index {', '.join(map(str, index))}: {error}" for index, error in each]
        return type(each[0][1])("\n".join(lines))

    def failures(self) -> list[Failure]:
        """The check that failed first of each example and device that has one, in their order."""
        examples = np.ndim(self._pred)
        found = [
            Failure(tuple(map(int, index)), site, [on_host(x)[tuple(index)] if len(index) else
                                                   on_host(x) for x in payload])
            for site, flags, payload in zip(self._metadata, self._code, self._payload, strict=True)
            for index in np.argwhere(np.asarray(flags))
            if bool(np.asarray(self._pred)[tuple(index[:examples])])]
        return sorted(found, key=lambda f: f.place)

    def first_failure(self) -> tuple[Site, list[Any]] | None:
        """The site of the check that failed first, for the first example if there are several, and
        what its message shows; None if no check failed.

        >>> from pyjx.experimental.checkify import init_error
        >>> init_error.first_failure() is None
        True
        """
        failures = self.failures()
        return (failures[0].site, failures[0].payload) if failures else None

    def throw(self) -> None:
        """Raise an exception if a check failed.

        Raises:
          JaxRuntimeError: with the text of the error.

        >>> from pyjx.experimental.checkify import init_error
        >>> init_error.throw()
        """
        error = self.get_exception()
        if error is not None:
            raise JaxRuntimeError(str(error)) from error

    def __str__(self) -> str:
        known = hasattr(self._pred, "__array__") and not isinstance(self._pred, Tracer)
        return f"Error({self.get() if known else self._pred})"  # a tracer, or a ShapeDtypeStruct

    __repr__ = __str__


init_error = Error(np.bool_(False), (), (), ())


Entry = Sequence[Any]  # of a site: whether it failed first, and its payload


class Found:
    """What the checks up to some place of a program have found: whether one failed, and an entry
    for each site."""

    def __init__(self, failed: Any = None, entries: dict[Site, Entry] | None = None) -> None:
        self.failed = failed
        self.entries: dict[Site, Entry] = {} if entries is None else entries

    def join(self, later: Found) -> None:
        """Add what later checks have found, where no earlier one failed."""
        before = self.failed
        if later.failed is None:
            return
        if before is None:
            self.failed, self.entries = later.failed, dict(later.entries)
            return
        passed = bitwise_not(before)
        self.failed = bitwise_or(before, later.failed)
        for site, (first, *payload) in later.entries.items():
            first = bitwise_and(_spread(passed, first), first)
            old = self.entries.get(site)
            self.entries[site] = [first, *payload] if old is None else [
                bitwise_or(old[0], first),
                *[select(_spread(first, a), a, b) for a, b in zip(payload, old[1:], strict=True)]]

    def values(self, sites: Sequence[Site]) -> list[Any]:
        """As arrays: all of them, for the sites given."""
        values = [full((), False) if self.failed is None else self.failed]
        for site in sites:
            values += self.entries.get(site) or nothing_at(site)
        return values

    def error(self) -> Error:
        entries = list(self.entries.values())
        (failed,) = self.values(())
        return Error(failed, [e[0] for e in entries], tuple(self.entries), [e[1:] for e in entries])


def _spread(flag: Any, like: Any) -> Any:
    """A flag for each of the leading positions of `like` as one for each of its elements."""
    flags, shape = get_aval(flag), get_aval(like).shape
    return flag if flags.shape == shape else broadcast_in_dim(flag, shape, tuple(range(flags.ndim)))


def nothing_at(site: Site) -> list[Any]:
    """The entry of a site where no check failed."""
    return [full(site.devices, False),
            *[full((*site.devices, *a.shape), 0, a.dtype) for a in site.payload_avals]]


def found(values: Sequence[Any], sites: Sequence[Site]) -> Found:
    """The inverse of `Found.values`."""
    left = iter(values)
    failed = next(left)
    return Found(failed, {s: [next(left), *[next(left) for _ in s.payload_avals]] for s in sites})


def n_values(sites: Sequence[Site]) -> int:
    return 1 + sum([1 + len(s.payload_avals) for s in sites])


def of_devices(values: Sequence[Any], sites: Sequence[Site]) -> Found:
    """What devices have found, whose values lie along a first axis."""
    each = found(values, sites)
    n = get_aval(each.failed).shape[0]
    return Found(reduce_or(each.failed, (0,)), {
        site.on_devices(n): entry for site, entry in each.entries.items()})


def of_lanes(values: Sequence[Any], sites: Sequence[Site], running: Any) -> Found:
    """What the first of some examples has found where a check failed, of those that run. The values
    of all lie along a first axis."""
    failed = bitwise_and(values[0], running)
    first = argmax(failed, 0, np.int32)
    taken = found([dynamic_index_in_dim(x, first, 0, False) for x in values], sites)
    taken.failed = dynamic_index_in_dim(failed, first, 0, False)
    for site, (flag, *payload) in taken.entries.items():
        flag = bitwise_and(flag, _spread(taken.failed, flag))
        taken.entries[site] = [flag, *payload]
    return taken


class Checked(Record):
    """A program with its checks; without sites it gives the results alone."""

    program: ClosedJaxpr
    sites: tuple[Site, ...]

    def run(self, outs: Sequence[Any]) -> tuple[Found, list[Any]]:
        """What was found, and the results, from what the program has given."""
        if not self.sites:
            return Found(), list(outs)
        n = n_values(self.sites)
        return found(outs[:n], self.sites), list(outs[n:])


# -- conditions of the user ------------------------------------------------------------------------


_formatter = Formatter()


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Say that `pred` must hold; `checkify` makes an error of it where it does not.

    Args:
      pred: a boolean scalar.
      msg: the text of the error, a format string.
      fmt_args, fmt_kwargs: pytrees of arrays that the text shows.
      debug: whether the check may be left out where nobody asks for its error, instead of the
        program being refused.

    Raises:
      TypeError: `pred` is no boolean scalar, or an argument is no array.
      JaxRuntimeError: outside of traced functions, if it does not hold.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "must be positive, got {}", x)
    ...     return jnp.log(x)
    ...
    >>> error, _ = checkify.checkify(jax.jit(f))(-2.0)
    >>> error.get()
    'must be positive, got -2.0 (`check` failed)'
    """
    aval = get_aval(pred)
    if aval.shape != () or aval.dtype != np.bool_:
        cure = "Take jnp.all or jnp.any of it" if aval.shape else "It is True or False: compare it"
        raise TypeError(f"check takes a scalar pred as argument, got {pred}. {cure}.")
    leaves, tree = tree_flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not isinstance(x, (Array, Tracer, np.ndarray, np.generic)):
            raise TypeError("Formatting arguments to checkify.check need to be PyTrees of arrays, "
                            f"but got {shortened(x)} of type {type(x)}. Write what is no array "
                            "into the message, and give jnp.asarray(x) of a number.")
    _args, _kwargs = tree_unflatten(tree, [Placeholder(x, True) for x in leaves])
    _formatter.format(msg, *_args, **_kwargs)  # which names what the format asks for in vain
    check_p.bind(bitwise_not(pred), *leaves, text=Text(msg, tree), debug=bool(debug))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A `check` that is left out where nobody asks for its error.

    >>> import pyjx as jax
    >>> from pyjx.experimental import checkify
    >>> jax.jit(lambda x: (checkify.debug_check(x > 0, "must be positive"), x)[1])(-2.0).item()
    -2.0
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise an error that another checked function has returned, or pass it on where this function
    is itself checked. Of errors of several examples, such as those that `scan` stacks, it is the
    first that counts.

    Raises:
      JaxRuntimeError: outside of traced functions, if the error is one.

    >>> from pyjx.experimental import checkify
    >>> checkify.check_error(checkify.init_error)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    failed = error._pred
    leaves = [x for first, payload in zip(error._code, error._payload, strict=True)
              for x in (first, *payload)]
    examples = get_aval(failed).shape
    if examples:
        flags = reshape(failed, (math.prod(examples),))
        if not get_aval(flags).size:
            return
        first = argmax(flags, 0, np.int32)
        failed, *leaves = [_example(x, first, len(examples)) for x in (failed, *leaves)]
    check_p.bind(failed, *leaves, text=ErrorText(tuple(error._metadata)), debug=False)


def _example(x: Any, i: Any, ndim: int) -> Any:
    """One of the examples that lie along the first `ndim` axes, counted through all of them."""
    shape = get_aval(x).shape
    return dynamic_index_in_dim(reshape(x, (math.prod(shape[:ndim]), *shape[ndim:])), i, 0, False)


class Text(Record):
    """The message of a check, which arrays complete."""

    fmt: str
    tree: TreeDef

    def __repr__(self) -> str:
        return repr(self.fmt)

    def __call__(self, *payload: Any) -> str:
        values = [x if isinstance(x, Array) else array_from_host(x) for x in payload]
        args, kwargs = tree_unflatten(self.tree, values)
        return f"{self.fmt.format(*args, **kwargs)} (`check` failed)"


class ErrorText(Record):
    """The message of an error that is checked again: that of the site that failed first."""

    sites: tuple[Site, ...]

    def __repr__(self) -> str:
        return f"one of {len(self.sites)} errors"

    def __call__(self, *payload: Any) -> str:
        left = iter(payload)
        entries = [(next(left), [next(left) for _ in site.payload_avals]) for site in self.sites]
        error = Error(np.True_, [e[0] for e in entries], self.sites, [e[1] for e in entries])
        first = error.failures()[0]
        return first.site.message(*first.payload)


class CheckEffect(Effect):
    """A check is made."""

    __slots__ = ()

    repeatable = True

    def __repr__(self) -> str:
        return "Check"


_effects: Effects = frozenset({CheckEffect()})


def _impl(failed: Any, *payload: Any, text: Any, debug: bool) -> list[Any]:
    if not debug and bool(failed):
        raise JaxRuntimeError(text(*[on_host(x) for x in payload]))
    return []


def _batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    """The first of the examples that fail speaks for all."""
    size = trace.axis.size
    failed, *payload = [x if d is None else at_front(x, d, size)
                        for x, d in zip(operands, dims, strict=True)]
    first: Any = np.int32(0)
    if dims[0] is not None:
        first = argmax(failed, 0, np.int32)
        failed = reduce_or(failed, (0,))
    check_p.bind(failed, *[
        x if d is None else dynamic_index_in_dim(x, first, 0, False)
        for x, d in zip(payload, dims[1:], strict=True)], **params)
    return [], []


def _not_functionalized(*operands: Any, debug: bool, **params: Any) -> list[Any]:
    if debug:
        return []
    if configuration.experimental_unsafe_xla_runtime_errors.value:
        call_for_debugging(lambda *values: _impl(*values, debug=False, **params), operands,
                           ordered=False, partitioned=False)
        return []
    if isinstance(params["text"], ErrorText):
        raise ValueError(
            "The error of a checked function cannot be raised within one that is compiled. Check "
            "the compiled one: jax.debug.bounds_check(jax.jit(f)), in this order; or, around "
            "checkify.check_error, error, out = jax.jit(checkify.checkify(f))(x).")
    raise ValueError(
        "Cannot abstractly evaluate a checkify.check which was not functionalized. This probably "
        "means you tried to stage (jit/scan/pmap/...) a `check` without functionalizing it through "
        "`checkify.checkify`. Wrap the function that is compiled, as in "
        "error, out = jax.jit(checkify.checkify(f))(x); error.throw() raises what failed.")


check_p: Primitive = done_again(register(Primitive(
    "check", multiple_results=True, shape_rule=lambda *avals, **params: [], impl=_impl,
    batch_axis=_batch, decomposition=_not_functionalized, effects=lambda params: _effects,
)))


# -- operations ------------------------------------------------------------------------------------

_INT = ShapedArray((), np.dtype(np.int32))


class Check(NamedTuple):
    """A check of one operation.

    Attributes:
      category: of its error.
      message: from the payload to the text.
      payload_avals: the types of the payload.
      run: from (operands, results) to (whether it failed, payload).
    """

    category: ErrorCategory
    message: Callable[..., str]
    payload_avals: Sequence[ShapedArray]
    run: Callable[[Sequence[Any], Sequence[Any]], tuple[Any, list[Any]]]


def checks_of(eqn: JaxprEqn, categories: frozenset[ErrorCategory]) -> list[Check]:
    """What is checked of an operation that holds no programs."""
    primitive = eqn.primitive
    checks = []
    if primitive is check_p and FailedCheckError in categories:
        checks.append(Check(FailedCheckError, eqn.params["text"], [v.aval for v in eqn.invars[1:]],
                            lambda operands, results: (operands[0], list(operands[1:]))))
    if primitive in (lax.div_p, lax.rem_p) and DivisionByZeroError in categories:
        checks.append(Check(DivisionByZeroError, lambda: "division by zero", (), _division))
    if OOBError in categories and primitive in _INDEXED:
        found = _INDEXED[primitive](eqn)
        if found is not None:
            checks.append(found)
    if NaNError in categories and not primitive.keeps_nans:
        inexact = [i for i, v in enumerate(eqn.outvars)
                   if isinstance(v.aval, ShapedArray) and dtypes.issubdtype(
                       v.aval.dtype, np.inexact)]
        if inexact:
            checks.append(Check(NaNError, lambda: f"nan generated by primitive: {primitive}.", (),
                                lambda operands, results: (
                                    _any([ne(results[i], results[i]) for i in inexact]), [])))
    return checks


def _any(flags: Sequence[Any]) -> Any:
    return reduce(bitwise_or, map(any_of, flags))


def _division(operands: Sequence[Any], results: Sequence[Any]) -> tuple[Any, list[Any]]:
    below = operands[1]
    return _any([eq(below, scalar_of(get_aval(below), 0))]), []


# -- indices ---------------------------------------------------------------------------------------


class OutOfBounds(Record):
    """The message of a check of indices, which go over `axes` of an array of this shape; `last` are
    the largest: less than the last element where several are read from an index on."""

    shape: tuple[int, ...]
    axes: Sequence[int]
    last: Sequence[Any]

    def __call__(self, index: Any, which: Any) -> str:
        axis = self.axes[int(which)]
        return (f"out-of-bounds indexing for array of shape {self.shape}: index {int(index)} is "
                f"out of bounds for axis {axis} with size {self.shape[axis]}. ")

    def as_written(self, index: Any, which: Any) -> str:
        """With the index as the user has it: negative ones have had the size added."""
        axis = self.axes[int(which)]
        size = self.shape[axis]
        given = int(index) - size if index < 0 else int(index)
        count = size - self.last[int(which)]
        if count != 1:
            return (f"a slice of {count} elements from index {given} on is out of bounds for axis "
                    f"{axis}, of size {size}, of an array of shape {self.shape}")
        return (f"index {given} is out of bounds for axis {axis}, of size {size}, of an array of "
                f"shape {self.shape}")


def _out_of_bounds(shape: tuple[int, ...], axes: Sequence[int], last: Sequence[int],
                   eqn: JaxprEqn, where: slice, starts_of: Callable[[Sequence[Any]], Any]) -> Check:
    """The check that starts (an array whose last axis goes over `axes` of an operand of this shape)
    are from 0 to `last`. `starts_of` makes them of the operands at the places `where`, in a dtype
    that holds all of these."""
    long = any([v.aval.dtype.itemsize == 8 for v in eqn.invars[where]])
    wide = ShapedArray((), np.dtype(np.int64 if long else np.int32))

    def run(operands: Sequence[Any], results: Sequence[Any]) -> tuple[Any, list[Any]]:
        given = starts_of([_signed(x, wide.dtype) for x in operands[where]])
        aval = get_aval(given)
        if aval.size == 0:
            return full((), False), [full((), 0, a.dtype) for a in (wide, _INT)]
        starts = reshape(given, (aval.size,))
        which = reshape(broadcasted_iota(np.int32, (aval.size // len(axes), len(axes)), 1),
                        (aval.size,))
        if any([isinstance(n, SymbolicDim) for n in (*last, aval.size)]):
            each = concatenate([reshape(scalar_constant(n, wide.dtype), (1,)) for n in last], 0)
            highest: Any = reshape(broadcast_in_dim(
                each, (aval.size // len(axes), len(axes)), (1,)), (aval.size,))
        else:
            highest = np.array(last, wide.dtype)[np.arange(aval.size) % len(axes)]
        wrong = bitwise_or(lt(starts, full_like(starts, 0)), gt(starts, highest))
        first = argmax(wrong, 0, np.int32)
        return _any([wrong]), [dynamic_index_in_dim(starts, first, 0, False),
                               dynamic_index_in_dim(which, first, 0, False)]

    return Check(OOBError, OutOfBounds(shape, axes, tuple(last)), (wide, _INT), run)  # type: ignore[arg-type]


def _signed(index: Any, dtype: np.dtype[Any]) -> Any:
    """An index in a signed dtype; one that is too large for it becomes the largest there is."""
    own = get_aval(index).dtype
    if dtypes.issubdtype(own, np.unsignedinteger) and own.itemsize == dtype.itemsize:
        index = min_(index, full_like(index, np.iinfo(dtype).max))
    return convert_element_type(index, dtype)


def _gather(eqn: JaxprEqn) -> Check | None:
    return _windows(eqn, eqn.params["dimension_numbers"].start_index_map, eqn.params["slice_sizes"])


def _scatter(eqn: JaxprEqn) -> Check | None:
    dnums, updates = eqn.params["dimension_numbers"], eqn.invars[2].aval.shape
    inserted = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    windows = iter([updates[d] for d in dnums.update_window_dims])
    return _windows(eqn, dnums.scatter_dims_to_operand_dims, [
        1 if a in inserted else next(windows) for a in range(eqn.invars[0].aval.ndim)])


def _windows(eqn: JaxprEqn, axes: Sequence[int], sizes: Sequence[int]) -> Check | None:
    """For windows of these sizes that begin along these axes where an array of indices says."""
    shape = eqn.invars[0].aval.shape
    return _out_of_bounds(shape, axes, [shape[a] - sizes[a] for a in axes], eqn, slice(1, 2),
                          lambda xs: xs[0]) if axes else None


def _dynamic_slice(eqn: JaxprEqn) -> Check | None:
    shape = eqn.invars[0].aval.shape
    return _starts(shape, eqn.params["slice_sizes"], eqn, slice(1, None))


def _dynamic_update_slice(eqn: JaxprEqn) -> Check | None:
    return _starts(eqn.invars[0].aval.shape, eqn.invars[1].aval.shape, eqn, slice(2, None))


def _starts(shape: tuple[int, ...], sizes: Sequence[int], eqn: JaxprEqn,
            where: slice) -> Check | None:
    """For starts that are one operand for each axis."""
    if not shape:
        return None
    return _out_of_bounds(
        shape, range(len(shape)), [n - m for n, m in zip(shape, sizes, strict=True)], eqn, where,
        lambda xs: concatenate([reshape(x, (1,)) for x in xs], 0))


_INDEXED: dict[Primitive, Callable[[JaxprEqn], Check | None]] = {
    lax.gather_p: _gather,
    lax.dynamic_slice_p: _dynamic_slice,
    lax.dynamic_update_slice_p: _dynamic_update_slice,
    **dict.fromkeys((lax.scatter_p, lax.scatter_add_p, lax.scatter_sub_p, lax.scatter_mul_p,
                     lax.scatter_min_p, lax.scatter_max_p), _scatter),
}
