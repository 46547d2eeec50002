"""`python -m pyjx explain NAME`, and commands that are not there."""

import ast
import builtins
import inspect

import pytest

from pyjx import errors
from pyjx.__main__ import main
from pyjx.states import states
from tests import sources

ERRORS = [name for name in errors.__all__ if name[0].isupper()]


@pytest.mark.parametrize("name", ERRORS)
def test_errors_tell_cause_and_cures(name, capsys):
    """The command and help() alike."""
    assert main(["explain", name]) == 0
    text = capsys.readouterr().out
    assert text == f"{name}\n\n{inspect.getdoc(getattr(errors, name))}\n"
    assert "Ways out: " in text or name in ("JAXTypeError", "JAXIndexError")
    assert main(["explain", f"jax.errors.{name}"]) == 0


def test_every_error_of_the_package_is_explained(capsys):
    bases = {node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
             for name, module in sources.modules().items()
             if name.startswith("pyjx.") and not name.startswith("pyjx.cli.")
             for node in module.nodes if isinstance(node, ast.ClassDef)}
    known = {name for name, x in vars(builtins).items()
             if isinstance(x, type) and issubclass(x, Exception)}
    for _ in range(4):  # classes of classes of the package
        known |= {name for name, own in bases.items() if own & known}
    classes = {name for name in bases if name in known and name[0] != "_"}
    assert {"IndivisibleError", "DuplicateSpecError", "NaNError", "UnknownPadding"} <= classes
    main(["explain"])
    assert classes <= {line.split()[0] for line in capsys.readouterr().out.splitlines()[3:]}
    for name in sorted(classes - {"JAXTypeError", "JAXIndexError"}):
        assert main(["explain", name]) == 0
        text = capsys.readouterr().out
        assert "Ways out: " in text or name == "RetraceWarning", text


def test_flags_tell_values_and_variable(capsys):
    assert main(["explain", "jax_numpy_rank_promotion"]) == 0
    text = capsys.readouterr().out
    assert states["jax_numpy_rank_promotion"].help in text
    assert ("values: allow, warn, raise; default 'allow', now 'allow'; environment variable "
            "JAX_NUMPY_RANK_PROMOTION") in text


def test_the_list_has_all_names(capsys):
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {*ERRORS, *states} <= {line.split()[0] for line in lines if line[:2] == "  "}


@pytest.mark.parametrize(("given", "said"), [
    (["explain", "KeyReuseEror"], "no error or flag 'KeyReuseEror'. Did you mean KeyReuseError"),
    (["explain", "tracerbool"], "Did you mean TracerBoolConversionError?"),
    (["explain", "TRACER_BOOL"], "Did you mean TracerBoolConversionError?"),
    (["explain", "x64"], "Did you mean jax_enable_x64 or jax_explicit_x64_dtypes?"),
    (["explain", "nans"], "Did you mean jax_debug_nans?"),
    (["explain", "shard_map"], "It is explained by help(jax.shard_map)."),
    (["explain", "jax.numpy.einsum"], "It is explained by help(jax.numpy.einsum)."),
    (["explain", "vmap"], "no error or flag 'vmap'. It is explained by help(jax.vmap)."),
    (["explain", "nan"], "Did you mean NaNError or jax_debug_nans"),
    (["explain", "XlaRuntimeError"], "Did you mean JaxRuntimeError?"),
    (["explain", "KeyboardInterrupt"], "no error or flag 'KeyboardInterrupt'. "),
    (["explain", "DeprecationWarning"], "no error or flag 'DeprecationWarning'. "),
    (["explain", "MyError"], "'MyError'. `python -m pyjx explain` lists them."),
    (["explain", "xyzzy"], "`python -m pyjx explain` lists them."),
    (["docter"], "there is no command 'docter', and no file of that name. Did you mean doctor?"),
    (["emit_hl"], "Did you mean emit-hlo?"),
    (["xyzzy"], "`python -m pyjx --help` lists the commands."),
])
def test_what_is_not_there_has_a_cure(given, said, capsys):
    assert main(given) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize(("name", "said"), [
    ("FloatingPointError", "`jax_debug_nans` or `jax_debug_infs`"), ("ValueError", "Python's own"),
    ("AxisError", "NumPy's own"),
    ("ZeroDivisionError", "Python's own"), ("FloatingPointError", "`python -m pyjx why FILE`")])
def test_errors_of_python_are_explained(name, said, capsys):
    assert main(["explain", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{name}\n\n") and said in text and "Ways out: " in text


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_versions(option, capsys):
    assert main([option]) == 0
    assert capsys.readouterr().out.startswith("pyjx ")


@pytest.mark.parametrize("name", ["JAX_DEBUG_NANS", "debug_nans", "jax_debug_nans"])
def test_flags_are_explained_by_each_of_their_names(name, capsys):
    assert main(["explain", name]) == 0
    assert capsys.readouterr().out.startswith("jax_debug_nans\n")
