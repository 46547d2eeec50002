"""Texts that error messages are made of: those of values, as an argument that came by mistake may
be a large array, and those that several end with."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set, ValuesView
from enum import Enum
from functools import partial
from itertools import islice
from numbers import Number
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from pyjx.core.unwrapping import transformations, users_place
from pyjx.jaxlib_api import PjitFunction

_LONGEST = 100
_LONGEST_LINE = 600
_OF_PYTHON = 1 << 9  # the flag of classes that are made by a class statement
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def without_addresses(text: str) -> str:
    """The text without the addresses that Python shows objects by, which tell a user nothing.

    >>> without_addresses("<function f at 0x7f89c2d9a480>")
    '<function f>'
    """
    return _ADDRESS.sub("", text) if " at 0x" in text else text


def shortened(x: Any) -> str:
    """What messages show of a value that was given: `repr(x)`, without an address, where that has
    100 characters at most. Larger arrays and containers are shown by `in_short`, before they are
    written out; of other long texts the middle is lost.

    Where `repr` raises, as it may for any class of the user's, the type is shown instead: a message
    must not fail for another reason than the one that it tells.

    >>> shortened(np.zeros((20, 30))), shortened(list(range(1000)))
    ('float64[20,30]', '[0, 1, 2, 3, 4, 5, ...]')
    """
    try:
        if _fits(x):
            text = without_addresses(repr(x))
            if len(text) <= _LONGEST or not (type(x) in _BRACKETS or _is_array(type(x))):
                return shortened_text(text)
        return shortened_text(in_short(x))
    except Exception:
        return f"<{type(x).__name__} object>"


def shortened_text(text: str, longest: int = _LONGEST) -> str:
    """The text, of at most so many characters: a longer one loses its middle."""
    if len(text) <= longest:
        return text
    kept = longest - 3
    return f"{text[:kept // 2]}...{text[kept // 2 - kept:]}"


def shortened_lines(text: str) -> str:
    """A message that has lost the middles of long lines, as is one that shows a value as it is, and
    of a long list of them, as of all the leaves of a tree.

    >>> len(shortened_lines("got " + "0, " * 10_000))
    600
    """
    if len(text) <= _LONGEST_LINE:
        return text
    lines = [shortened_text(line, _LONGEST_LINE) for line in text.split("\n")]
    if len(lines) > 16 and sum(map(len, lines)) > 4 * _LONGEST_LINE:
        lines[8:-6] = [f"  ... ({len(lines) - 14} lines more)"]
    return "\n".join(lines)


def _fits(x: Any) -> bool:
    """Whether the text of a value may be of 100 characters, as far as is known at once."""
    kind = type(x)
    if kind in (str, bytes):
        return len(x) <= _LONGEST
    if kind in _BRACKETS:  # an element takes three characters
        return len(x) <= _LONGEST // 3 and all(map(_fits, x.values() if kind is dict else x))
    return not _is_array(kind) or hasattr(x, "_origin_msg") or x.size <= _LONGEST


def cure(x: Any) -> str:
    """The sentence that says how a function that is traced may have a value that no program takes.

    >>> cure([1, 2])
    'Make an array of it by jnp.asarray.'
    >>> cure(zip([1], [2]))
    'It is an iterator: give what it goes through, an array or a tuple of arrays.'
    """
    if isinstance(x, Iterator):
        return "It is an iterator: give what it goes through, an array or a tuple of arrays."
    if said := without_numbers(x) or array_cure(x):
        return said
    scope, made = "he function may take it from the enclosing scope, as a closure.", as_pytree(x)
    return f"{made[1:-1]}; or t{scope}" if made else f"T{scope}"


def array_cure(x: Any) -> str:
    """The sentence that says how an array is made of a value; empty where nothing is known.

    >>> array_cure(range(3)), array_cure([[1, 2], [3]])[:44]
    ('Make an array of it: jnp.arange(0, 3).', 'It holds arrays of different shapes. One of ')
    """
    if isinstance(x, (list, tuple)):
        shapes = _shapes(x)
        return ("" if shapes is None else "Make an array of it by jnp.asarray." if len(shapes) < 2
                else "It holds arrays of different shapes. One of them is x[0]; an array of all "
                     "their elements is "
                     "jnp.concatenate([jnp.asarray(y).ravel() for y in x]).")
    if type(x) is range:
        return f"Make an array of it: jnp.a{x!r}."
    if isinstance(x, (Set, ValuesView, Iterator)):
        return "Make an array of it: jnp.asarray(list(x))."
    if isinstance(x, Mapping):
        it, name = ("It", "x") if type(x) in (dict, OrderedDict, defaultdict) else ("dict(x)",) * 2
        return (f"{it} is a tree: jax.tree.map(f, {name}) computes f of each of its leaves, and "
                f"jax.flatten_util.ravel_pytree({name})[0] is a vector of all.")
    made = "x.toarray()" if is_of_scipy(x) else getattr(type(x), "_made_array", None)
    return f"Make an array of it: {made}." if isinstance(made, str) else without_numbers(x)


def is_like_array(x: Any) -> bool:
    """Whether an array is made of a container as it is: of numbers, and of arrays of one shape.

    >>> is_like_array([1, 2]), is_like_array([{"a": 1}])
    (True, False)
    """
    return type(x) is set or (type(x) in (list, tuple) and len(_shapes(x) or "no") < 2)


def _shapes(x: Any) -> set[tuple[int, ...]] | None:
    """The shapes of the first elements; None where one is no number, nor an array or a list of
    some of one shape."""
    found = set[tuple[int, ...]]()
    for y in islice(x, 64):
        if isinstance(y, (list, tuple)):
            inner = _shapes(y)
            if inner is None or len(inner) > 1:
                return None
            found.add((len(y), *next(iter(inner), ())))
        elif isinstance(y, (int, float, complex)) or hasattr(y, "shape"):
            found.add(getattr(y, "shape", ()))
        else:
            return None
    return found


def is_of_scipy(x: Any) -> bool:
    """Whether it is a sparse matrix of SciPy's, and no operator on vectors."""
    return type(x).__module__.startswith("scipy.sparse.") and hasattr(x, "tocoo")


def without_numbers(x: Any) -> str:
    """What an array that has no numbers is, and the cure; empty of all else.

    >>> without_numbers(np.array([None]))
    'It is an array of dtype object, of shape (1,). Make it one of numbers: x.astype(float).'
    """
    if is_of_scipy(x):
        return OF_SPARSE.format("It", "x")
    if not _is_array(type(x)) or type(x.shape) is not tuple:
        return ""
    if not isinstance(x, (np.ndarray, np.generic)):
        return ("It is a shape and a dtype, without values: give it to jax.eval_shape, or to lower "
                "or trace of a jitted function, or make an array, as jnp.zeros(x.shape, x.dtype).")
    if x.dtype.kind == "O":
        return (f"It is an array of dtype object, of shape {x.shape}"
                f"{_of_objects([*islice(x.flat, 64)])}")
    made = {"M": "x.astype('int64')", "m": "x.astype('int64')", "f": "x.astype('float64')",
            "c": "x.astype('complex128')", "V": _OF_BYTES.get(x.dtype.itemsize, "x.view('uint8')"),
            }.get(x.dtype.kind, "np.unique(x, return_inverse=True)[1]")
    if x.dtype.names:
        made = f"x[{x.dtype.names[0]!r}]" + (
            ", or all in a tree: {name: x[name] for name in x.dtype.names}") * (
            len(x.dtype.names) > 1)
    kind = "narrower " if x.dtype.kind in "fc" else ""
    return (f"It is an array of dtype {x.dtype}, of shape {x.shape}. Make it one of {kind}numbers: "
            f"{made}.")


# Files of NumPy have no names for what it does not know itself.
_OF_BYTES = {1: "x.view(jnp.float8_e4m3fn), or whatever else of one byte was written to a file",
             2: "x.view(jnp.bfloat16), if such was written to a file"}


def _of_objects(some: list[Any]) -> str:
    """What an array of objects has that is no number, and the cure, given some of its elements."""
    other = next((y for y in some if not _is_read(y)), None)  # None is read as nan
    if other is None:
        is_complex = any([isinstance(y, complex | np.complexfloating) for y in some])
        return f". Make it one of numbers: x.astype({'complex' if is_complex else 'float'})."
    if all([isinstance(y, str) for y in some]):
        return ". Make it one of numbers: np.unique(x, return_inverse=True)[1]."
    return (f", of which one element is {in_short(other)}, no number of Python's or NumPy's. Give "
            "its elements apart: x.tolist() is a list of them.")


def _is_read(x: Any) -> bool:
    """Whether NumPy makes a number of an object, also of a text."""
    if type(x) not in (str, bytes):
        return isinstance(x, Number | np.bool_ | None)
    try:
        float(x)
    except ValueError:
        return False
    return True


def as_pytree(x: Any) -> str:
    """The sentence, behind others, that says what makes an object of a Python class a pytree."""
    if type(x) is partial:
        return " jax.tree_util.Partial of the same arguments is a pytree."
    kind = type(x)
    base = dict if isinstance(x, Mapping) else list if isinstance(
        x, (Set, ValuesView, Iterator)) else next(
            (c for c in (list, tuple, deque) if isinstance(x, c)), None)
    if base is not None:
        own = kind is not base and isinstance(x, base)
        return (f" Of arrays {base.__name__ if base is not deque else 'list'}(x) is a pytree" + (
            f"; {kind.__name__} itself is made one by jax.tree_util.register_pytree_node." if own
            else "."))
    below = next(c for c in kind.__mro__ if not c.__flags__ & _OF_PYTHON)
    if below is object is not kind and not isinstance(x, Enum) and not hasattr(
            x, "__name__"):  # no function, no class
        declared = _of_class(kind, "__dataclass_fields__")
        registered = "pytree_node" if declared is None else "dataclass"
        return (" Its class may be a pytree, whose arrays are traced "
                f"(jax.tree_util.register_{registered}).")
    return ""


SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "matmul": "@",
    "pow": "**", "divmod": "divmod()", "lshift": "<<", "rshift": ">>", "and": "&", "or": "|",
    "xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}


def operator_of(name: str) -> str:
    """What users call an operation of the library, the reflected operators as the others.

    >>> operator_of("__rsub__"), operator_of("scatter_set"), operator_of("sort")
    ('sub', 'x.at[...].set', 'sort')
    """
    plain = name.strip("_")
    if plain not in SYMBOLS and plain.startswith("r") and plain[1:] in SYMBOLS:
        return plain[1:]
    update = plain.removeprefix("scatter_")
    return plain if update == plain else f"x.at[...].{update}"


def operand_of(name: str, argument: str) -> str:
    """What users call an argument of such an operation.

    >>> operand_of("__rsub__", "self"), operand_of("scatter_set", "y"), operand_of("sort", "a")
    ('its right operand', 'the value', 'a')
    """
    side = {"self": "left", "other": "right"}.get(argument)
    if side is not None and operator_of(name) in SYMBOLS:
        reflected = name.strip("_") not in SYMBOLS
        return f"its {'right' if (side == 'left') == reflected else 'left'} operand"
    of_updates = {"x": "the array", "y": "the value"}
    return of_updates.get(argument, argument) if name.startswith("scatter_") else argument


def counted(n: int, one: str) -> str:
    """How many there are of what is called so.

    >>> counted(1, "rule"), counted(2, "rule")
    ('1 rule', '2 rules')
    """
    return f"{n} {one}{'s' * (n != 1)}"


def size_text(n: float) -> str:
    """`1.5 GiB`."""
    for unit in ("bytes", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"


# -- what several messages end with ----------------------------------------------------------------

ARRAYS = "The arrays are one sequence, as in {0}((a, b))."
VALUES = "The values are one sequence, as in {0}([1, 2]) or {0}([[1, 2], [3, 4]])."
MADE_MESH = "jax.make_mesh((4, 2), ('x', 'y')) takes the sizes of the axes."
DELETED = ("It was donated to a jitted function (donate_argnums, donate_argnames), or its delete() "
           "was called. Use what the function returned, or pass a copy.")
OF_SPARSE = ("{} is a sparse matrix of SciPy's. Make it one of arrays: "
             "jax.experimental.sparse.BCOO.from_scipy_sparse({}).")
OWN_CALL = "The arguments of fun come in a call of their own"


def own_call(name: str) -> str:
    """What is said of arguments that the transformation of this name is given with a function."""
    return f"{OWN_CALL}: {name}(fun)(x)."


def no_array(kind: type, n: int, name: str) -> str:
    """What is said of a list or tuple of `n` numbers where an array was meant."""
    return f"A {kind.__name__} is no array, but a tree of {n} leaves: give jnp.array({name})."


# -- short texts, for which no code of the user's runs: no `__repr__`, no properties ---------------


_MOST = 6  # elements of a container
_DEEPEST = 3
_PLAIN = (bool, float, complex, type(None), type(Ellipsis))
_CALLED = (FunctionType, BuiltinFunctionType, MethodType, partial, PjitFunction)
_BRACKETS: dict[Any, str] = {
    tuple: "( )", list: "[ ]", dict: "{ }", set: "set({ })", frozenset: "frozenset({ })"}


def in_short(x: Any, depth: int = 0, *, places: bool = True) -> str:
    """A text of bounded length for any value, made without running code of its class: arrays by
    type, a function by name, of a user's with the place of its code if `places`, classes by name,
    records by their fields, else the class alone.

    >>> in_short((1, {"a": 2.5}))
    "(1, {'a': 2.5})"
    """
    kind = type(x)
    if kind in _PLAIN:
        return repr(x)
    if kind is int:
        return repr(x) if x.bit_length() <= 128 else f"<int of {x.bit_length()} bits>"
    if kind in (str, bytes):
        return repr(x) if len(x) <= 60 else f"{x[:60]!r}..."
    # By the type, as `isinstance` would ask proxies for what they stand for.
    if _is_array(kind) and type(x.shape) is tuple:
        return f"{x.dtype}[{','.join(map(str, x.shape))}]"
    if issubclass(kind, np.dtype):
        return str(x)
    if issubclass(kind, type):
        return _name(x)
    each = partial(in_short, depth=depth + 1, places=places)
    if issubclass(kind, partial):
        given = [each(x.func), *map(each, x.args[:_MOST])]
        return f"partial({', '.join([*given, *_fields(x.keywords.items(), each)])})"
    if issubclass(kind, _CALLED):
        name = getattr(x, "__qualname__", None) or getattr(x, "__name__", kind.__name__)
        made = transformations(x)
        for transformation in reversed([*made[:_MOST], *["..."] * (len(made) > _MOST)]):
            name = f"{transformation}({name})"
        place = users_place(x) if places else ""
        return f"{name} ({place})" if place else str(name)
    if depth >= _DEEPEST:
        return f"<{_name(kind)}>"
    if kind in _BRACKETS:
        return _container(x, each)
    return _object(x, each)


def _is_array(kind: type) -> bool:
    """Whether its shape and dtype are told by a class of this package, of jaxlib or of NumPy."""
    owners = [next((c for c in kind.__mro__ if name in vars(c)), object)
              for name in ("shape", "dtype")]
    return all([str(type.__dict__["__module__"].__get__(owner)).partition(".")[0]
                in ("pyjx", "jax", "jaxlib", "numpy") for owner in owners])


def _container(x: Any, each: Callable[[Any], str]) -> str:
    kind = type(x)
    first = islice(x.items() if kind is dict else x, _MOST)
    texts = [f"{each(k)}: {each(v)}" for k, v in first] if kind is dict else [*map(each, first)]
    if kind in (set, frozenset):
        texts.sort()
    more = ", ..." if len(x) > _MOST else "," * (kind is tuple and len(x) == 1)
    return _BRACKETS[kind].replace(" ", ", ".join(texts) + more)


def _object(x: Any, each: Callable[[Any], str]) -> str:
    """The fields of a named tuple or a data class, the name of an enumeration's member, or that of
    the function in the place of which it is; else the name of the class alone."""
    kind = type(x)
    name = _name(kind)
    fields = _of_class(kind, "_fields") if issubclass(kind, tuple) else None
    if type(fields) is tuple:
        pairs = zip(fields, tuple.__iter__(x), strict=False)
        return f"{name}({', '.join(_fields(pairs, each))})"
    held = object.__getattribute__(x, "__dict__") if kind.__dictoffset__ else {}
    declared = _of_class(kind, "__dataclass_fields__")
    if type(declared) is dict:
        return f"{name}({', '.join(_fields([(f, held[f]) for f in declared if f in held], each))})"
    if issubclass(kind, Enum):
        return f"{name}.{held['_name_']}"
    function = held.get("__qualname__")
    return function if type(function) is str else f"<{name}>"


def _fields(pairs: Iterable[tuple[str, Any]], each: Callable[[Any], str]) -> list[str]:
    given = list(pairs)
    return [f"{f}={each(v)}" for f, v in given[:_MOST]] + ["..."] * (len(given) > _MOST)


def _of_class(kind: type, name: str) -> Any:
    """What a class or one that it inherits from defines, looked up without its metaclass."""
    return next((vars(c)[name] for c in kind.__mro__ if name in vars(c)), None)


def _name(kind: type) -> str:
    return type.__dict__["__qualname__"].__get__(kind)  # type: ignore[no-any-return]
