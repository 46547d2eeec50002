"""The function as it is asked for: its arguments, transformed, with static values, over a mesh."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import MethodType
from typing import Any

import numpy as np

import pyjx as jax
from emit_hlo.arguments import Options, UsageError, instead_of
from emit_hlo.tables import WITH_VALUE
from pyjx.cli.emit.messages import IMPORT, CommandError, described
from pyjx.cli.emit.targets import Reader, SpecError, Static, module_of, python_value
from pyjx.configuration import checked_budget
from pyjx.core import dtypes
from pyjx.core.meshes import Mesh, device_array
from pyjx.core.records import Record
from pyjx.core.specs import PartitionSpec
from pyjx.inspect.platforms import Platform, platform
from pyjx.runtime.sharding import DuplicateSpecError, NamedSharding
from pyjx.tree_util import tree_leaves, tree_map


class Call(Record):
    """A function, and what it is to be traced for."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    # For each tangent and cotangent, which come last: the argument that it is a direction of; None
    # for a result.
    directions: tuple[int | None, ...] = ()


def call_for(function: Any, name: str, specs: Sequence[str], static: Sequence[tuple[str, str]],
             transforms: Sequence[tuple[str, str]], counted: bool = False) -> Call:
    """The call that a command line describes.

    Args:
      counted: whether arguments have numbers there also where no transformation is asked for.

    Raises:
      CommandError: arguments and function do not fit together.
    """
    fixed = {key: Static(python_value(text, f"--static {key}={text}")) for key, text in static}
    args, kwargs = _arguments(function, name, specs, fixed)
    _check_signature(function, name, args, kwargs, transforms, specs)
    _mark_static(function, name, args, kwargs)
    if transforms or counted:
        args, kwargs = _counted(function, args, kwargs)
    call = _without_static(Call(function, tuple(args), kwargs))
    for i, (transform, value) in enumerate(transforms):
        call = _transformed(call, transform, value, transforms[i + 1:])
    return call


# ---- arguments ----------------------------------------------------------------------------


def _arguments(function: Any, name: str, specs: Sequence[str], fixed: dict[str, Any]
               ) -> tuple[list[Any], dict[str, Any]]:
    reader = Reader()
    if not specs:
        args, kwargs = _described_by_itself(function, name, reader)
        return args, {**kwargs, **fixed}
    args, kwargs = [], {}
    for spec in specs:
        key, value = reader.argument(spec)
        if key is None and kwargs:
            left = [p.name for p in _parameters(function) if p.name not in kwargs][len(args):]
            cure = f" Name it, too: {left[0]}={spec.strip()}" if left else ""
            raise SpecError(f"argument {spec!r} has no name, and stands behind one that has: "
                            f"{', '.join(kwargs)}.{cure}")
        if key is None:
            args.append(value)
        elif key in kwargs:
            raise SpecError(f"argument {spec!r}: {key} is given twice.")
        else:
            kwargs[key] = value
    kwargs.update(fixed)
    if len(args) == 1 and specs[0].lstrip().startswith("@"):
        return _of_data(function, args[0], kwargs)
    return args, kwargs


def _of_data(function: Any, value: Any, kwargs: dict[str, Any]
             ) -> tuple[list[Any], dict[str, Any]]:
    """The arguments where data alone has no name: all that a tuple or a dict holds, if the function
    takes these, else one."""
    one: tuple[list[Any], dict[str, Any]] = [value], kwargs
    several = one
    if isinstance(value, (tuple, list)):
        several = list(value), kwargs
    elif isinstance(value, dict) and all([isinstance(k, str) for k in value]):
        several = [], {**value, **kwargs}
    signature = _signature(function)
    if signature is None:
        return several if several[0] else one
    for args, named in (several, one):
        with suppress(TypeError):
            signature.bind(*args, **named)
            return args, named
    known = several[0] or any([k in signature.parameters for k in several[1]])
    return several if known else one


def _described_by_itself(function: Any, name: str, reader: Reader
                         ) -> tuple[list[Any], dict[str, Any]]:
    """Arguments where the command line names none."""
    examples = _example_args(function, name)
    if isinstance(examples, dict):
        examples = examples.get(name.rpartition(":")[2])
    if examples is not None:
        made = examples() if callable(examples) else examples
        return (list(made) if isinstance(made, (tuple, list)) else [made]), {}
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in _parameters(function):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        found = _of_annotation(parameter.annotation, reader)
        if found is None:
            if parameter.default is parameter.empty:
                raise CommandError(
                    f"{name}{_signature(function)}: which type has {parameter.name}? Name one for "
                    "each parameter, such as 'f32[8,128]'; or give it a default, an annotation, or "
                    "the module `example_args`.")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = found
        else:
            args.append(found)
    return args, kwargs


def _example_args(function: Any, name: str) -> Any:
    """What the module that the command line names says, or that which the function was made in."""
    for module in (module_of(name), sys.modules.get(getattr(function, "__module__", None) or "")):
        if module is not None and hasattr(module, "example_args"):
            return module.example_args
    return getattr(function, "__globals__", {}).get("example_args")


def _signature(function: Any) -> inspect.Signature | None:
    """The signature of a function that tells it."""
    with suppress(TypeError, ValueError):
        return inspect.signature(function)
    return None


def _parameters(function: Any) -> list[inspect.Parameter]:
    signature = _signature(function)
    return [*signature.parameters.values()] if signature else []


_JAXTYPING = {"Float": "f32", "Float32": "f32", "Float16": "f16", "BFloat16": "bf16",
              "Float64": "f64", "Int": "i32", "Int32": "i32", "Int8": "i8", "Int16": "i16",
              "Int64": "i64", "UInt8": "u8", "UInt32": "u32", "Bool": "bool", "Complex": "c64",
              "Key": "key", "Num": "f32", "Inexact": "f32", "Real": "f32"}


_SUBSCRIPT = re.compile(r"(?:\w+\.)?(\w+)\[[\w.]+,\s*[\"']([^\"']*)[\"']\]")  # as a string


def _of_annotation(annotation: Any, reader: Reader) -> Any:
    """The argument that an annotation describes, if it describes one: a spec as a string, or a
    type of jaxtyping."""
    dims, kind = getattr(annotation, "dim_str", None), getattr(annotation, "__name__", "")
    if isinstance(annotation, str):
        found = _SUBSCRIPT.fullmatch(annotation.strip())
        if found is None:
            try:
                return reader.value(annotation.strip("'\""))
            except CommandError:
                return None
        kind, dims = found[1], found[2]
    if dims is None:
        return None
    short = _JAXTYPING.get(kind.partition("[")[0])
    if short is None:
        return None
    sizes = [re.sub(r"^[*#?]*(?:(\w+)=)?", r"", d) for d in dims.split()]
    try:
        return reader.value(f"{short}[{','.join(sizes)}]")
    except CommandError:
        return None


def _check_signature(function: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any],
                     transforms: Sequence[tuple[str, str]], specs: Sequence[str]) -> None:
    signature = _signature(function)
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        known, near = signature.parameters, ""
        unknown = [k for k in kwargs if k not in known]
        if unknown and all([p.kind is not p.VAR_KEYWORD for p in known.values()]):
            near = (f"; there is no parameter {unknown[0]!r}"
                    f"{instead_of(unknown[0], known, 'parameters are')}")
        bare = [n for n, value in transforms if not value and n in WITH_VALUE]
        if bare and args and isinstance(args[-1], int):  # as most commands take values
            near = f". What belongs to --{bare[-1]} is written --{bare[-1]}={args[-1]}"
        if len(args) > 1:
            near += "".join([
                f". Beside others by position {spec} is one argument; where these have names, it "
                "may be several"
                for spec, x in zip(specs, args, strict=False)
                if spec.lstrip().startswith("@") and isinstance(x, (tuple, list, dict))])
        given = ", ".join([*map(shown, args), *[f"{k}={shown(v)}" for k, v in kwargs.items()]])
        raise CommandError(f"{name}{signature} does not take ({given}): {error}{near}") from None


def _mark_static(function: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    """What is static in a jitted function has a value, for which no type stands. A method of such
    is called in another function, where it is static, too."""
    spec = getattr(function, "_jit_spec", None)
    owner = [function.__self__] if isinstance(function, MethodType) else []
    static = spec.without_static((*owner, *args), kwargs)[2] if spec else ()
    names = [p.name for p in _parameters(function) if p.kind is not p.VAR_POSITIONAL]
    for key, value, _ in [x for kind in static for x in kind]:
        if any([isinstance(x, jax.ShapeDtypeStruct) for x in tree_leaves(value)]):
            p = key if key in kwargs else "".join(names[key - len(owner):][:1])
            cure = f"such as {p}==3 or --static {p}=3" if p else "such as =3"
            raise CommandError(f"{name}: {p or shown(value)} is a static argument: expected its "
                               f"value, {cure}, but got a type, {shown(value)}.")
        known = value if isinstance(value, Static) else Static(value)
        if owner and key in kwargs:
            kwargs[key] = known
        elif owner and key:
            args[key - 1] = known


def _counted(function: Any, args: list[Any], kwargs: dict[str, Any]
             ) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with those in their positions that are given by name, as options count them, as
    far as the signature tells these."""
    signature = _signature(function)
    if signature is None or not kwargs:
        return args, kwargs
    bound = signature.bind(*args, **kwargs)
    return list(bound.args), bound.kwargs


def _uncounted(kwargs: dict[str, Any]) -> str:
    """The cure for arguments that have no number."""
    return "" if not kwargs else (
        f" What has a name alone ({', '.join(kwargs)}) is not counted: name a function that takes "
        "it by position, such as -c 'lambda w: loss(w=w)', and let data be a tuple.")


def shown(value: Any) -> str:
    """An argument as it is written on the command line."""
    if isinstance(value, Static):
        return f"={value.value!r}"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{k}: {shown(v)}" for k, v in value.items()]) + "}"
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(shown, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        name = dtypes.short_dtype_name(value.dtype)
        return f"{name}[{','.join(map(str, value.shape))}]"
    return repr(value)


def _without_static(call: Call) -> Call:
    """The function of the arguments that are not static."""
    args, kwargs = call.args, call.kwargs
    if not any([isinstance(x, Static) for x in (*args, *kwargs.values())]):
        return call
    fixed = {i: x.value for i, x in enumerate(args) if isinstance(x, Static)}
    named = {k: x.value for k, x in kwargs.items() if isinstance(x, Static)}
    total, function = len(args), call.function

    def with_static(*dynamic: Any, **rest: Any) -> Any:
        given = iter(dynamic)
        full = [fixed[i] if i in fixed else next(given) for i in range(total)]
        return function(*full, *given, **named, **rest)

    with_static.__name__ = getattr(function, "__name__", "f")
    with_static.__signature__ = _left(function, fixed, named)  # type: ignore[attr-defined]
    return Call(with_static, tuple([x for x in args if not isinstance(x, Static)]),
                {k: v for k, v in kwargs.items() if k not in named})


def _left(function: Any, fixed: dict[int, Any], named: dict[str, Any]) -> inspect.Signature:
    """The signature without the parameters that have values."""
    kept = [p for i, p in enumerate(_parameters(function))
            if i not in fixed and p.name not in named]
    by_name = False
    for i, p in enumerate(kept):  # what follows a parameter that is gone may be given by name only
        if p.default is not p.empty:
            by_name = True
        elif by_name and p.kind is p.POSITIONAL_OR_KEYWORD:
            kept[i] = p.replace(kind=p.KEYWORD_ONLY)
    try:
        return inspect.Signature(kept)
    except ValueError:
        return inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                                  inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])


# ---- transformations ----------------------------------------------------------------------


def _transformed(call: Call, name: str, value: str, later: Sequence[tuple[str, str]]) -> Call:
    f, kwargs = call.function, call.kwargs
    if name in ("jvp", "vjp"):
        if kwargs:
            raise CommandError(f"--{name} takes arguments by position.{_uncounted(kwargs)}")
        return _with_directions(call, name, later)
    if name == "vmap":
        return call._replace(function=jax.vmap(f, in_axes=_axes(value, call)))
    if name == "jit":
        return call._replace(function=jax.jit(f))
    if name == "remat":
        return call._replace(function=jax.checkpoint(f))
    argnums, has_aux = _argnums(name, value, call)
    make = {"grad": jax.grad, "value-and-grad": jax.value_and_grad, "jacfwd": jax.jacfwd,
            "jacrev": jax.jacrev, "hessian": jax.hessian}[name]
    return call._replace(function=make(f, argnums=argnums, has_aux=has_aux))


_ARGNUMS = re.compile(r"(\d+,)*(\d+|aux)")


def _argnums(name: str, value: str, call: Call) -> tuple[int | tuple[int, ...], bool]:
    """Which arguments a derivative is by, and whether the second output is only passed on."""
    if not _ARGNUMS.fullmatch(value or "0"):
        numbers_of = {p.name: str(i) for i, p in enumerate(_parameters(call.function))}
        meant = ",".join([numbers_of.get(word, word) for word in value.split(",")])
        hint = f" This is --{name}={meant}." if _ARGNUMS.fullmatch(meant) else ""
        raise CommandError(f"--{name}={value}: expected numbers of arguments, such as 0 or 0,2, "
                           f"and aux behind them if the second output is auxiliary.{hint}")
    words = (value or "0").split(",")
    numbers = tuple([int(w) for w in words if w != "aux"]) or (0,)
    if max(numbers) >= len(call.args):
        option = f"--{name}={value}".removesuffix("=")
        raise CommandError(f"{option}: there is no argument {max(numbers)}; the function is given "
                           f"{len(call.args)} by position, which count from 0."
                           f"{_uncounted(call.kwargs)}")
    return (numbers if len(numbers) > 1 else numbers[0]), words[-1] == "aux"


def _axes(value: str, call: Call) -> int | tuple[int | None, ...] | None:
    """The axes of `vmap`. Tangents have those of their arguments, cotangents that of results: 0."""
    if not re.fullmatch(r"(-?\d+|None)(,(-?\d+|None))*", value or "0"):
        raise CommandError(f"--vmap={value}: expected an axis for each argument, such as 0,None.")
    axes = [None if a == "None" else int(a) for a in (value or "0").split(",")]
    n = len(call.args) - len(call.directions)
    if len(axes) == 1:
        if not call.directions:
            return axes[0]
        axes *= n
    if len(axes) != n:
        raise CommandError(f"--vmap={value}: {len(axes)} axes for {n} arguments; tangents and "
                           "cotangents have those of what they belong to."
                           f"{_uncounted(call.kwargs)}")
    for of in call.directions:
        axes.append(0 if of is None else axes[of])
    return tuple(axes)


def _like(x: Any) -> Any:
    """The type of the tangent of an argument."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        dtype = dtypes.canonicalize_dtype(jax.numpy.result_type(x))
    shape = getattr(x, "shape", ())
    inexact = dtypes.issubdtype(dtype, jax.numpy.inexact)
    return jax.ShapeDtypeStruct(shape, dtype if inexact else jax.float0)


def _with_directions(call: Call, name: str, later: Sequence[tuple[str, str]]) -> Call:
    """A function that takes tangents, or cotangents, behind its arguments."""
    f, args, *_ = call
    n = len(args)

    def jvp(*given: Any) -> Any:
        return jax.jvp(f, given[:n], given[n:])

    def vjp(*given: Any) -> Any:
        return jax.vjp(f, *given[:n])[1](given[n])

    made = jvp if name == "jvp" else vjp
    made.__name__ = f"{name}_{getattr(f, '__name__', 'f')}"
    each = args
    sizes = []
    mapped = [_axes(v, call) for transform, v in later if transform == "vmap"]
    for axes in reversed(mapped):  # what one example is given
        per_arg = axes if isinstance(axes, tuple) else (axes,) * n
        sizes.append(_mapped_size(each, per_arg))
        each = tuple([tree_map(lambda x, a=a: _one(x, a), x)
                      for x, a in zip(each, per_arg, strict=True)])
    if name == "jvp":
        one: tuple[Any, ...] = tuple([tree_map(_like, x) for x in each])
        extra: tuple[Any, ...] = tuple([tree_map(_like, x) for x in args])
        directions: tuple[int | None, ...] = tuple(range(n))
    else:
        try:
            one = extra = (tree_map(_like, jax.eval_shape(f, *each)),)
        except Exception as error:
            raise CommandError(described(error, "tracing"), IMPORT) from error
        for size in reversed(sizes):
            extra = tree_map(lambda x, s=size: jax.ShapeDtypeStruct((s, *x.shape), x.dtype), extra)
        directions = (None,)
    made_call = Call(made, (*args, *extra), {}, (*call.directions, *directions))
    if any([leaf.dtype == jax.float0 for leaf in tree_leaves(extra)]):
        return _with_zeros(made_call, one)
    return made_call


def _with_zeros(call: Call, one: tuple[Any, ...]) -> Call:
    """Directions of integers are no arguments: there is only one, zero. `one` are the directions
    of an example."""
    n = len(call.args) - len(one)
    leaves, tree = jax.tree.flatten(one)
    taken = [leaf.dtype != jax.float0 for leaf in leaves]

    def fun(*given: Any) -> Any:
        rest = iter(jax.tree.leaves(given[n:]))
        full = [next(rest) if t else np.zeros(leaf.shape, jax.float0)
                for leaf, t in zip(leaves, taken, strict=True)]
        return call.function(*given[:n], *jax.tree.unflatten(tree, full))

    fun.__name__ = call.function.__name__
    before = len(call.directions) - len(one)
    pairs = [(leaf, of) for x, of in zip(call.args[n:], call.directions[before:], strict=True)
             for leaf in tree_leaves(x) if leaf.dtype != jax.float0]
    return Call(fun, (*call.args[:n], *[leaf for leaf, _ in pairs]), {},
                (*call.directions[:before], *[of for _, of in pairs]))


def _mapped_size(args: Sequence[Any], axes: Sequence[Any]) -> Any:
    for x, axis in zip(args, axes, strict=True):
        for leaf in tree_leaves(x):
            shape = getattr(leaf, "shape", None)
            if axis is not None and shape:
                return shape[axis]
    return 1


def _one(x: Any, axis: int | None) -> Any:
    shape: list[Any] = list(getattr(x, "shape", []))
    if axis is None or not shape:
        return x
    del shape[axis]
    return jax.ShapeDtypeStruct(tuple(shape), x.dtype)


def mesh_of(options: Options) -> tuple[Mesh, Platform] | None:
    """The mesh that was asked for, of devices to compile for."""
    if not options.mesh:
        return None
    sizes = tuple(options.mesh.values())
    count = int(np.prod(sizes))
    where = platform(options.platform, count)
    return Mesh(device_array(where.devices, sizes), tuple(options.mesh)), where


def jit_options(options: Options, call: Call, mesh: Mesh | None) -> dict[str, Any]:
    """What `jit` is told of the function."""
    made: dict[str, Any] = {}
    if options.donate:
        if max(options.donate) >= len(call.args):
            raise UsageError(f"--donate {max(options.donate)}: there is no such argument; the "
                             f"function is given {len(call.args)} by position, which count from "
                             f"0.{_uncounted(call.kwargs)}")
        made["donate_argnums"] = tuple(options.donate)
    if options.memory_budget is not None:
        try:
            made["memory_budget"] = checked_budget(options.memory_budget, "--memory-budget")
        except ValueError as error:
            raise UsageError(str(error)) from None
    if options.in_shardings is not None:
        found = _shardings("--in-shardings", options.in_shardings, mesh)
        if len(found) != 1 and len(found) != len(call.args):
            raise UsageError(f"--in-shardings: {len(found)} specs for {len(call.args)} arguments; "
                             "write one, or one for each between semicolons.")
        made["in_shardings"] = found[0] if len(found) == 1 else tuple(found)
    if options.out_shardings is not None:
        found = _shardings("--out-shardings", options.out_shardings, mesh)
        made["out_shardings"] = found[0] if len(found) == 1 else tuple(found)
    return made


def _shardings(option: str, text: str, mesh: Mesh | None) -> list[Any]:
    """`x,None; (x,y); *`: for each value its spec, an axis or more for each dimension."""
    assert mesh is not None
    specs: list[Any] = []
    for part in text.split(";"):
        part = part.strip()
        if part == "*":
            specs.append(None)
            continue
        words = re.findall(r"\([^()]*\)|[^,()]+", part)
        if re.sub(r"[,\s]", "", "".join(words)) != re.sub(r"[,\s]", "", part):
            raise UsageError(f"{option} {text}: cannot read {part!r}; write x,None or (x,y).")
        spec = PartitionSpec(*[_entry(option, text, w.strip(), mesh) for w in words])
        try:
            specs.append(NamedSharding(mesh, spec))
        except DuplicateSpecError as error:
            raise UsageError(f"{option} {text}: {error}") from None
    return specs


def cure_here(error: BaseException, call: Call, transforms: Sequence[tuple[str, str]]) -> str:
    """How the command line writes the cure that an error names as Python does."""
    derivatives = [t for t in transforms if t[0] in WITH_VALUE and t[0] != "vmap"]
    if "use has_aux=True" in str(error) and len(derivatives) == 1 and (
            not derivatives[0][1].endswith("aux")):
        words = filter(None, [derivatives[0][1], "aux"])
        return f"\n  Here has_aux=True is written --{derivatives[0][0]}={','.join(words)}."
    if derivatives and re.search("set allow_int|has a gradient", str(error)):
        return ("\n  Here an argument is given as floats, such as f32[3], or the others are named, "
                f"as in --{derivatives[0][0]}=1.")
    if derivatives and "pass holomorphic=True" in str(error):
        name = derivatives[0][0].replace("-", "_")
        return ("\n  There is no option for holomorphic=True: use --vjp or --jvp, or give "
                f"jax.{name}(f, holomorphic=True) in the place of f.")
    if "functools.partial" in str(error) and call.kwargs and transforms:
        return f"\n {_uncounted(call.kwargs)}"
    found = re.search(r"depends on the value of the argument (\w+)\.", str(error))
    given = dict(zip([p.name for p in _parameters(call.function)], call.args, strict=False))
    value = {**given, **call.kwargs}.get(found[1]) if found else None
    if not found or not isinstance(value, (bool, int, float)):
        return ""
    return (f"\n  Here a static argument is written {found[1]}=={value}, or --static "
            f"{found[1]}={value}.")


def check_shardings(error: BaseException, options: Options) -> None:
    """Raise UsageError where the shardings that were asked for do not fit what they are of."""
    for side, values in (("in", "arguments"), ("out", "outputs")):
        text = getattr(options, f"{side}_shardings")
        if text is not None and re.match(f"One of pjit {values} |pjit {side}_shardings ",
                                         str(error)):
            raise UsageError(f"--{side}-shardings {text}: {error}") from None


def _entry(option: str, text: str, word: str, mesh: Mesh) -> Any:
    if word in ("None", "_", ""):
        return None
    names = [n.strip() for n in word.strip("()").split(",") if n.strip()]
    for name in names:
        if name not in mesh.axis_names:
            raise UsageError(f"{option} {text}: the mesh has no axis {name!r}"
                             f"{instead_of(name, mesh.axis_names, 'axes are')}")
    return tuple(names) if word.startswith("(") else names[0]
