"""The errors that pyjx raises by name.

Each message says what happened, where the traced value came from, one way out, and where to read
more: each error has a page of its name in the documentation. All are subclasses of the built-in
error one would expect, so code that catches TypeError keeps working.
"""

from __future__ import annotations

import re
import sys
from typing import Any, NamedTuple

from pyjx.jaxlib_api import JaxRuntimeError
from pyjx.lazy import directory


def _reduced(error: Any) -> tuple[Any, ...]:
    """An error as its class, its message and what users gave it: what messages are made of is for
    this process alone, and JAX has no classes for it."""
    own = {k: v for k, v in vars(error).items() if k not in ("question", "said", "_pyjx_origin")}
    return type(error), error.args, own


class _Explained(Exception):
    """Base of errors that say where they are explained."""

    def __init__(self, message: str) -> None:
        super().__init__(_explained(self, message))


class JAXTypeError(_Explained, TypeError):
    """A TypeError that comes from tracing.

    The classes below it say what to do; `except jax.errors.JAXTypeError` handles them all, as a
    program does that goes on without `jit`.
    """

    said: Said | None = None  # what the message is made of
    __reduce__ = _reduced


class JAXIndexError(_Explained, IndexError):
    """An IndexError that comes from tracing: `NonConcreteBooleanIndexError`.

    An index out of bounds is none: reads give the nearest element, writes are dropped.
    `jax.debug.bounds_check(f)` makes an error of it.
    """

    __reduce__ = _reduced


class ConcretizationTypeError(JAXTypeError):
    """A value was needed that is not known while the function is traced.

    Inside a transformed function arrays are tracers: their shape and dtype are known, their value
    is not. Python code that needs the value, such as `int(x)` or a shape computed from `x`, cannot
    run.

    Ways out: where the value takes few different ones, mark the argument that it comes from as
    static (`static_argnums`, `static_argnames` of `jit`); leave a conversion out, as the array
    serves as the number; print by `jax.debug.print`; compute a shape by NumPy, from shapes.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: float(x))(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ConcretizationTypeError: Abstract tracer value encountered where concrete value is expected: ...
    """

    def __init__(self, tracer: Any, context: str = "", cure: str | None = None) -> None:
        super().__init__(_about(
            self, tracer, "Abstract tracer value encountered where concrete value is expected: "
            f"traced array with shape {_type(tracer)}" + (context and f"\n{context}"),
            cure_for(tracer) if cure is None else cure))


class TracerBoolConversionError(ConcretizationTypeError):
    """Python asked a traced array whether it is true, as `if`, `while`, `and` and `assert` do.

    Ways out: `jnp.where` chooses between values, `lax.cond` between computations, `lax.while_loop`
    repeats, and `&`, `|` and `~` combine conditions. An argument that is a switch of the program
    may be static in `jit`. Under `grad` alone, without `jit`, Python's `if` works.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: 1 if x > 0 else 2)(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].
    """

    def __init__(self, tracer: Any) -> None:
        switch = _type(tracer).startswith(("bool", "int", "uint"))
        static = as_static(tracer, "True or False" if switch else "a number") if (
            _is_argument(tracer, ".+")) else ""
        if maker_of(tracer) == CHECKPOINT:
            static = cure_for(tracer)
        alone = switch and any([  # nothing else is meant
            _is_argument(tracer, r"\w+", by) for by in ("jit", CHECKPOINT)])
        known = static if alone else "".join([
            _CURES[by] for by in ("eval_shape", "make_jaxpr")
            if switch and _is_argument(tracer, ".+", by)])
        JAXTypeError.__init__(self, _about(
            self, tracer,
            f"Attempted boolean conversion of traced array with shape {_type(tracer)}.",
            "To choose between values use jnp.where, to loop use lax.while_loop, "
            "and to combine conditions use & | ~ or jnp.logical_and and its like."
            + ("" if alone else f" {static}".rstrip()), known))


class TracerArrayConversionError(JAXTypeError):
    """A traced array was given to NumPy, which needs values.

    Ways out: the function of `jax.numpy` or `jax.scipy` of the same name; `jnp.asarray(table)[i]`
    where a NumPy array has a traced index; `jax.pure_callback` where there is only NumPy's.

    >>> import numpy as np, pyjx as jax
    >>> jax.jit(lambda x: np.sin(x))(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerArrayConversionError: The numpy.ndarray conversion method __array__() was called on ...
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__(_about(
            self, tracer, "The numpy.ndarray conversion method __array__() was called on traced "
            f"array with shape {_type(tracer)}",
            "Call the function of jax.numpy in place of NumPy's, or run NumPy code "
            "outside of the traced function."))


class TracerIntegerConversionError(JAXTypeError):
    """A traced array was used where Python needs an integer: an index of a list, a `range`.

    Ways out: index an array in place of a list; loop by `lax.fori_loop` in place of `range`; cut
    parts of a fixed size by `lax.dynamic_slice`; or mark the argument as static in `jit`.

    >>> import pyjx as jax
    >>> jax.jit(lambda i: [1, 2][i])(1)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerIntegerConversionError: The __index__() method was called on traced array ...
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__(_about(
            self, tracer, "The __index__() method was called on traced array with shape "
            f"{_type(tracer)}", "To index, make the indexed sequence an array with jnp.asarray; to "
            "loop a traced number of times use lax.while_loop.", cure_for(tracer, "Python's int")))


class NonConcreteBooleanIndexError(JAXIndexError):
    """An array was indexed by a traced mask, which would give it a shape that is not known.

    Ways out: keep the shape by `jnp.where(mask, x, 0)`, or `jnp.where(mask[:, None], x, 0)` for a
    mask of the rows of a matrix; give reductions the mask, as in `x.sum(where=mask)`; assign by
    `jnp.where(mask, value, x)`; or say how many elements there are at most, as in
    `jnp.nonzero(mask, size=2)`.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: x[x > 0])(jax.numpy.ones(3))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NonConcreteBooleanIndexError: Array boolean indices must be concrete; got bool[3]
    """

    def __init__(self, tracer: Any, behind: int = 0) -> None:
        """`behind` the axes that the mask is of the array has so many others."""
        mask = f"mask[..., {', '.join(['None'] * behind)}]" if behind else "mask"
        super().__init__(_about(
            self, tracer, f"Array boolean indices must be concrete; got {_type(tracer)}",
            "The number of selected elements would decide the shape of the result. Keep the "
            f"shape: jnp.where({mask}, x, 0), or jnp.where({mask}, value, x) to assign; give "
            f"reductions the mask, as in x.mean(where={mask}); or give the number of elements as "
            "the size argument of jnp.nonzero or jnp.where."))


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after the transformation that made it had ended.

    That happens when a traced function stores an intermediate value outside itself, in a global, a
    closure or an attribute, and the value is used later.

    Ways out: return the value, as what a function computes leaves it through its result; let
    methods of objects with state return the new state. `with jax.checking_leaks():` around the
    call raises the error where the value leaks.

    >>> import pyjx as jax
    >>> kept = []
    >>> _ = jax.jit(lambda x: kept.append(x))(1.0)
    >>> kept[0] + 1  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    UnexpectedTracerError: Encountered an unexpected tracer. ...
    """

    def __init__(self, msg: str) -> None:
        super().__init__(msg)


class KeyReuseError(JAXTypeError):
    """A random key was used twice (see the flag `jax_debug_key_reuse`).

    The two draws are the same numbers, or related ones.

    Ways out: split the key and use each part once; in loops `key, subkey = jax.random.split(key)`,
    or `jax.random.fold_in(key, step)`.

    >>> import pyjx as jax
    >>> key = jax.random.key(0)
    >>> first, second = jax.random.split(key)
    >>> bool(jax.random.normal(first) == jax.random.normal(second))
    False
    """


class InconclusiveDimensionOperation(Exception):
    """A question about symbolic dimensions whose answer depends on the dimensions' values.

    Ways out: say what is known of the sizes when they are made, or ask nothing:
    `jax.core.max_dim(a, b)` is a size of its own.

    >>> from pyjx import export
    >>> a, b = export.symbolic_shape("a, b", constraints=["a >= b"])
    >>> a >= b
    True
    """

    __reduce__ = _reduced

    def __init__(self, message: str, question: Any = None) -> None:
        super().__init__(_explained(self, message))
        self.question = question  # a difference, and whether it was to be zero, or at least zero


class JaxprTypeError(_Explained, TypeError):
    """A jaxpr breaks a rule of the IR: a bug of whoever built it.

    Ways out: the message shows the equation that is wrong; under `jax.enable_checks(True)` each
    jaxpr is checked as it is made, so that the error comes from what made it. Where no code of
    yours builds jaxprs it is a fault of pyjx.
    """


class ShardingTypeError(_Explained):
    """Shardings of operands do not go together, or do not say how the result lies.

    Along axes of a mesh that are Explicit a type says how a value lies, and an operation asks for
    operands that lie alike, or whole where it works along a dimension.

    Ways out: `jax.reshard(x, P(...))` lays an operand as the others are, or whole; `out_sharding=`
    of products, reshapes and indexing says how the result lies, where several ways are right;
    `jax.sharding.auto_axes(f, out_sharding=...)` leaves a function to the compiler, as a mesh does
    whose axes are Auto (`axis_types` of `jax.make_mesh`). `jax.typeof(x)` shows how a value lies.
    Where no mesh is set a sharding names one: `NamedSharding(mesh, P(...))`, not `P(...)`.
    """


JaxRuntimeError.__module__ = __name__
JaxRuntimeError.__doc__ = """XLA or a device reported a failure: of compiling, running, or memory.

The first word of the message is its kind. Calls return before they have run, so the error comes
from where the result is first needed.

Ways out: RESOURCE_EXHAUSTED is memory: smaller batches, `jax.checkpoint`, `donate_argnums`,
bfloat16; `jitted.lower(...).compile().memory_analysis()` says what a program needs. INTERNAL is
often an exception in a callback, `error.__cause__`. UNIMPLEMENTED: the platform has no such
operation, or not for this type. INVALID_ARGUMENT: XLA refuses the program. DEADLINE_EXCEEDED and
UNAVAILABLE: another process of a group is late or gone.
"""


def escaped_tracer_error(tracer: Any, details: str = "") -> UnexpectedTracerError:
    """The error for a tracer that is used outside the transformation that made it.

    Args:
      tracer: the tracer.
      details: what is known of the function that was traced and of the line that made the value;
        by default the tracer is asked.
    """
    return UnexpectedTracerError(
        _lines(
            "Encountered an unexpected tracer. A function transformed by JAX had a side effect, "
            f"allowing for a reference to an intermediate value with type {_type(tracer)} wrapped "
            f"in a {type(tracer).__name__} to escape the scope of the transformation.",
            _of_leak(details or _origin(tracer)), _OF_LEAKS,
        ))


def _of_leak(origin: str) -> str:
    """What is told of where a value came from, but for why nobody has it: a leak asks for none."""
    return re.sub("The error occurred while tracing .*?(?=The value came from|\n|$)", "", origin
                  ).lstrip("\n")


def ambiguous_truth(size: int) -> ValueError:
    """The error for an array that is asked whether it is true, by NumPy's rule."""
    return ValueError(
        "The truth value of an array with more than one element is ambiguous. Use a.any() or "
        "a.all(); to choose for each element use jnp.where(condition, x, y), and to combine "
        "conditions & | ~." if size else
        "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an "
        "array is not empty.")


def _type(tracer: Any) -> str:
    aval = getattr(tracer, "aval", None)
    return type(tracer).__name__ if aval is None else str(aval.str_short())


_MAKER = re.compile(r" for ([\w/ ]+)\.(?= |$)|(differentiated|mapped by vmap)\.$", re.MULTILINE)
_OF_LEAKS = ("Return the value from the function; do not store it in a global, a closure or an "
             "attribute, nor hand it to another thread. Where it leaks from jit, vmap or grad, "
             "jax.checking_leaks() reports it at once.")
NUMBERS = "Python's number or a tuple of such"
AS_STATIC = ("If the value is the same in every call, or takes few different ones, mark the "
             "argument it comes from as static (static_argnums or static_argnames of jit), and "
             "pass {} there: arrays cannot be static.")
ARRAY_OF_STATIC = "In the function, np.asarray makes an array of a static tuple."
CHECKPOINT = "checkpoint / remat"
OF_CHECKPOINTS = (
    "Consider using the `static_argnums` parameter for `jax.remat` or `jax.checkpoint`, or "
    "static_argnames: Python sees the arguments that they name as they are, not as traced arrays.")
_COMPUTED = "compute with it by jax.numpy, show it by jax.debug.print"
_OF_NUMBERS = "Compute it of numbers that Python has."
_OF_ARRAYS = ("It is made of an array: compute it before the call and pass {} as an argument of "
              "its own that is static (static_argnums or static_argnames), or give one that serves "
              "every call (of a size, the largest).")
LOOPS = ("scan", "while_loop", "fori_loop")  # whose bodies carry
_CURES = {  # with a hole for what is done without it
    "jit": AS_STATIC, CHECKPOINT: OF_CHECKPOINTS,
    "mapped by vmap": "It stands for the values of all examples: {}, or let in_axes be None for an "
                      "argument that all examples share.",
    "differentiated": "Compute with it by jax.numpy and show it by jax.debug.print. To have its "
                      "value outside, return it beside the result (has_aux=True).",
    **dict.fromkeys([*LOOPS, "map"], "It is another one in each "
                    "iteration: {}, or loop by Python's `for` outside of jit."),
    **dict.fromkeys(["cond", "switch"], "Branches are traced, whichever of them runs: {}, or "
                    "choose by Python's `if` outside of jit."),
    "eval_shape": "Bind an argument that must be known: jax.eval_shape(lambda x: f(x, 2), x).",
    "make_jaxpr": "Let an argument that must be known be static: "
                  "jax.make_jaxpr(f, static_argnums=1)(x, 2).",
}


def maker_of(tracer: Any) -> str:
    """The innermost transformation that made a tracer, empty where none is told."""
    return "".join((_MAKER.findall(_origin(tracer)) or [""])[-1])


def _is_argument(tracer: Any, name: str, by: str = "jit") -> bool:
    """Whether a value is an argument of a jitted function, or of one that is traced `by` another,
    or a part of one if names match those, not one that is made of some."""
    origin = _origin(tracer)
    return (maker_of(tracer) == by and "came from the operation" not in origin
            and re.search(fr"depends on the value of the argument {name}\.$", origin) is not None)


_PART = re.compile(r" value of the argument (\w+)((?:\[[^\]]*\]|\.\w+)+)\.(?= |$)", re.MULTILINE)
_MARKED = re.compile("mark (?:the argument it comes from|that) as static|$")


def as_field(path: str) -> str:
    """The sentence, behind others, that says how an attribute of a pytree's is none of its leaves,
    if the path in a tree ends with one.

    >>> as_field("x['a']"), as_field("x.a")[:49]
    ('', ' In an object of a class let it be a static field')
    """
    return "" if re.search(r"\.\w+$", path) is None else (
        " In an object of a class let it be a static field: meta_fields of register_dataclass, "
        "dataclasses.field(metadata=dict(static=True)), or auxiliary data of register_pytree_node.")


def as_static(tracer: Any, passed: str = NUMBERS, text: str = AS_STATIC) -> str:
    """The sentence that says how a value may be static; a part of an argument's tree, of which the
    others are traced, is none with them, but one of a tuple of sizes."""
    text, path = text.format(passed), _path_in_tree(_origin(tracer))
    if not re.search("['.]", path):
        return text
    apart = "let it be an argument of its own that is static"
    text = _MARKED.sub(apart, text, 1) if "mark " in text else (
        f"{text} Let the value be an argument of its own that is static.")
    return text + as_field(path)


def _path_in_tree(origin: str) -> str:
    """Where in the tree of an argument a value is, from what may be static by itself on: a keyword
    argument, or one of a tuple, also if its elements have names. The frame of the function that is
    traced knows them."""
    found, frame = _PART.search(origin), sys._getframe()
    name, path = found.groups() if found else ("", "")
    code = frame.f_code
    while frame.f_back and f" at {code.co_filename}:{code.co_firstlineno} for " not in origin:
        frame = frame.f_back
        code = frame.f_code
    after = code.co_argcount + code.co_kwonlyargcount + (code.co_flags >> 2 & 1)
    if code.co_flags & 8 and code.co_varnames[after] == name:
        return path.partition("]")[2]
    return re.sub(r"^\.\w+", "", path) if isinstance(frame.f_locals.get(name), tuple) else path


def cure_for(tracer: Any, passed: str = NUMBERS) -> str:
    """What is in the place of a value that Python asks a tracer for, by the innermost
    transformation that made it; `passed` is what a static argument may be."""
    by = maker_of(tracer)
    cure = _CURES.get(by, "Compute with it by jax.numpy, and show it by jax.debug.print.")
    if by == "jit" and "came from the operation" in _origin(tracer):  # of arrays, mostly
        cure = ("Compute with it by jax.numpy, show it by jax.debug.print, or return it. If it is "
                "made of an argument that takes few values, mark that as static (static_argnums or "
                "static_argnames of jit), and pass {} there: arrays cannot be static.")
    return _filled(tracer, by, cure, passed, _COMPUTED)


def cure_of_known(tracer: Any, passed: str = NUMBERS, static: str = AS_STATIC) -> str:
    """What is in the place of a traced value that must be known, such as a size or an axis;
    `static` is said of one that `jit` made of an argument that may be static."""
    by = maker_of(tracer)
    if by in ("jit", CHECKPOINT) and tracer._is_of_arrays():
        return _OF_ARRAYS.format(passed)
    # A function of the library's, which has no place in the text.
    if re.search(r"the function \w+ for reduce(?s:.*) the argument axis", _origin(tracer)):
        return ("The computation takes two scalars and gives one, as jnp.add and jnp.maximum do; "
                "jnp.sum and jnp.max reduce an array.")
    cure = _OF_NUMBERS if by == "differentiated" else _CURES.get(by, _OF_NUMBERS)
    return _filled(tracer, by, static if by == "jit" else cure, passed,
                   f"give {passed} that serves all of them (of a size, the largest)")


def _filled(tracer: Any, by: str, cure: str, passed: str, serving: str) -> str:
    """A cure with what may be static, or with what serves all values of an iteration or example; of
    what jit alone has made there is neither."""
    if by == "jit" and "depends on the value" not in _origin(tracer):
        return "Make it of NumPy's arrays, whose values Python has."
    return as_static(tracer, passed, cure) if by in ("jit", CHECKPOINT) else cure.format(serving)


def cure_for_argument(tracer: Any, of_array: bool) -> str:
    """`cure_of_known`, of an argument of a function of the library, `of_array` where it takes no
    tuple."""
    cure = cure_of_known(tracer)
    return f"{cure} {ARRAY_OF_STATIC}" if of_array and "static_argnames" in cure else cure


class Said(NamedTuple):
    """What a message on a tracer is made of."""

    what: str
    origin: str
    cure: str
    known: str  # how the value may be known


def _about(error: Any, tracer: Any, what: str, cure: str, known: str = "") -> str:
    """The message on a tracer. A text is the message itself: errors are pickled as their classes
    and messages."""
    if isinstance(tracer, str):
        return tracer
    said = Said(what, _origin(tracer), cure, known)
    if getattr(getattr(tracer, "_trace", None), "alive", True):
        error.said = said
        return _composed(said)
    return _composed(said._replace(
        origin=_of_leak(said.origin), cure=_OF_LEAKS, known="",
        what="Encountered an unexpected tracer: a value escaped from a transformed function that "
        "has returned, and has no value outside of it.\n"
        + what.partition("\n")[0]))


def _composed(said: Said) -> str:
    return _lines(said.what, said.origin, f"{said.cure} {said.known}".strip())


def told_otherwise(error: Any, **parts: str) -> str:
    """The message of an error on a tracer with other parts, once: where something else serves than
    is said in general."""
    said, error.said = error.said._replace(**parts), None
    return _explained(error, _composed(said))


def _origin(tracer: Any) -> str:
    origin = getattr(tracer, "_origin_msg", None)
    lines = "" if origin is None else str(origin()).strip("\n")
    return "\n".join(dict.fromkeys(lines.split("\n")))  # as `hessian` differentiates twice


# Programs look for this link; what the page says holds here, too.
_PAGE = "https://docs.jax.dev/en/latest/101/errors.html"
_EXPLAINED_BY_JAX = (
    "ConcretizationTypeError", "KeyReuseError", "NonConcreteBooleanIndexError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "UnexpectedTracerError")


def _explained(error: BaseException, message: str) -> str:
    """A message, and where the error is explained."""
    name = next(c.__name__ for c in type(error).__mro__ if c.__name__ in __all__)
    page = f"More: help(jax.errors.{name}), or python -m pyjx explain {name}."
    if name in _EXPLAINED_BY_JAX:
        page += f" JAX's page of it: {_PAGE}#jax.errors.{name}"
    return message if message.endswith(page) else f"{message}\n{page}"  # it has been pickled


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


__all__ = [
    "ConcretizationTypeError", "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError",
    "JaxRuntimeError", "JaxprTypeError", "KeyReuseError", "NonConcreteBooleanIndexError",
    "ShardingTypeError", "TracerArrayConversionError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "UnexpectedTracerError", "escaped_tracer_error",
]
__dir__ = directory(__name__, __all__)
