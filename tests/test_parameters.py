"""Every parameter of every public function is read, refused, or said to be without effect."""

import ast
import functools
import importlib
import inspect
import re
import types
from pathlib import Path

import pytest

import pyjx as jax

MODULES = [
    "", "custom_batching", "custom_derivatives", "debug", "dlpack", "experimental",
    "experimental.checkify", "experimental.jet", "experimental.mesh_utils",
    "experimental.multihost_utils", "experimental.pjit", "experimental.shard_map",
    "experimental.sparse", "export", "extend.random", "ffi", "flatten_util", "image", "lax",
    "lax.linalg", "monitoring", "nn", "nn.initializers", "numpy", "numpy.fft", "numpy.linalg",
    "ops", "profiler", "random", "scipy.cluster.vq", "scipy.integrate", "scipy.interpolate",
    "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse.linalg",
    "scipy.spatial.transform", "scipy.special", "scipy.stats", "sharding", "test_util", "tree",
    "tree_util"]

# Words by which a docstring says that a parameter has no effect.
WITHOUT_EFFECT = re.compile(r"means? nothing|not used|without effect|not needed|is not supported")

# Parameters that no docstring need tell of, and why.
EXPLAINED = {
    "gaussian_kde.tree_unflatten(aux_data)": "the protocol of pytrees; it has no auxiliary data",
    "Exported.mlir_module(serialized)": "of JAX's signature; the text is asked for by all",
    "JAXSparse.__init__(args)": "subclasses keep them",
    "fromfile(args)": "it is refused",
    "fromfile(kwargs)": "it is refused",
    "fromiter(args)": "it is refused",
    "fromiter(kwargs)": "it is refused",
    "zero_prop(series_in)": "the protocol of jet's rules; the series is zero whatever came",
    "ltg_batcher(insert_axis)": "the protocol of batching rules",
    "zeros(key)": "the protocol of initializers; nothing is drawn",
    **dict.fromkeys([f"JetTrace.process_{call}({parameter})" for call, parameters in (
        ("call", "call_primitive params"),
        ("custom_jvp_call", "primitive jvp symbolic_zeros"),
        ("custom_vjp_call", "primitive fwd bwd out_trees symbolic_zeros"),
        ) for parameter in parameters.split()], "the protocol of traces; it is refused"),
    "traceable(use_eq_store)": "of JAX's signature; jaxprs are traced",
    "traceable(unk_names)": "of JAX's signature; jaxprs are traced",
    "build_ffi_lowering_function(skip_ffi_layout_processing)": "layouts are always the default's",
}


def public_functions():
    """Functions and methods by what they are, each once."""
    found = {}
    for module_name in MODULES:
        module = importlib.import_module(f"pyjx.{module_name}".rstrip("."))
        for name in getattr(module, "__all__", None) or dir(module):
            thing = getattr(module, name, None)
            if inspect.isclass(thing) and thing.__module__.startswith("pyjx"):
                of_class = {f"{thing.__name__}.{key}": value for key, value in vars(thing).items()
                            if not key.startswith("_") or key in ("__init__", "__call__")}
            else:
                of_class = {name: thing}
            for key, value in of_class.items():
                function = inspect.unwrap(getattr(value, "__func__", value)) \
                    if callable(getattr(value, "__func__", value)) else None
                if isinstance(function, types.FunctionType) and not name.startswith("_") \
                        and function.__module__.startswith("pyjx"):
                    found.setdefault(function, key)
    return found


@functools.cache
def definitions(path):
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return {min([node.lineno, *[d.lineno for d in node.decorator_list]]): node
            for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def unread(function):
    """The parameters that a function's text never reads; none of one that only raises."""
    path = inspect.getsourcefile(function)
    node = definitions(path).get(function.__code__.co_firstlineno) \
        if path and path.startswith("/") else None
    if node is None:
        return []
    body = [s for s in node.body
            if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if not body or isinstance(body[0], ast.Raise):
        return []
    read = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
    arguments = node.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
             *filter(None, (arguments.vararg, arguments.kwarg))]
    return [a.arg for a in given
            if a.arg not in read and a.arg not in ("self", "cls") and not a.arg.startswith("_")]


def is_told(function, parameter):
    """Whether the docstring says of the parameter that it has no effect."""
    text = inspect.getdoc(function) or ""
    entries = re.split(r"\n(?=\s*[\w*, ]+: )|\n\n|[.] ", text)
    return any(re.search(rf"\b{parameter}\b", entry) and WITHOUT_EFFECT.search(entry)
               for entry in entries)


def test_unread_parameters_are_said_to_have_no_effect():
    functions = public_functions()
    assert len(functions) > 1000
    silent, listed = [], set()
    for function, name in functions.items():
        for parameter in unread(function):
            key = f"{name}({parameter})"
            if key in EXPLAINED:
                listed.add(key)
            elif not is_told(function, parameter):
                silent.append(key)
    assert not silent
    assert listed == set(EXPLAINED)  # what is read by now is to be taken out


def test_axes_of_unknown_size_are_refused():
    with pytest.raises(NotImplementedError, match="abstracted_axes must be None, got"):
        jax.make_jaxpr(lambda x: x, abstracted_axes={0: "n"})
