"""`pyjx.tools.jax_to_ir`: the HLO of a function, as a function and as a command."""

import subprocess
import sys

import numpy as np
import pytest

import pyjx as jax
from pyjx.tools import jax_to_ir as tool

SHAPE = tool.parse_shape_str("f32[8,3]")


def double(x, y):
    return 2.0 * x + y


@pytest.mark.parametrize(("text", "shape", "dtype"), [
    ("f32[8,3]", (8, 3), "float32"), ("pred[]", (), "bool"), ("s32[ 2 ]", (2,), "int32"),
    ("u8[0]", (0,), "uint8"), ("c64[2, 1]", (2, 1), "complex64"), ("bf16[1]", (1,), "bfloat16"),
])
def test_shapes(text, shape, dtype):
    parsed = tool.parse_shape_str(text)
    assert (parsed.shape, parsed.dtype) == (shape, jax.numpy.dtype(dtype))


@pytest.mark.parametrize("text", ["f32", "f32[", "f32[a]", "q7[2]", "f32[-1]", "f32[1]{0}", ""])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="Invalid shape"):
        tool.parse_shape_str(text)


def test_parameters_are_in_the_order_of_the_shapes():
    _, text = tool.jax_to_hlo(double, [("y", tool.parse_shape_str("f32[3]")), ("x", SHAPE)])
    assert text.splitlines()[0].index("f32[3]") < text.splitlines()[0].index("f32[8,3]")


def test_bytes_are_of_the_program():
    program, text = tool.jax_to_ir(double, [("x", SHAPE)], constants={"y": 1.5}, format="HLO")
    assert b"double" in program
    assert "constant(1.5)" in text


def test_bad_requests():
    with pytest.raises(ValueError, match="named twice: x"):
        tool.jax_to_hlo(double, [("x", SHAPE), ("y", SHAPE)], constants={"x": 1.0})
    with pytest.raises(ValueError, match="format must be 'HLO', got 'X'"):
        tool.jax_to_ir(double, [("x", SHAPE)], constants={"y": 1.0}, format="X")
    with pytest.raises(ValueError, match="TensorFlow"):
        tool.jax_to_ir(double, [("x", SHAPE)], constants={"y": 1.0}, format="TF")
    with pytest.raises(AttributeError, match="'jax_to_tf': it is not there yet"):
        tool.jax_to_tf  # noqa: B018


def test_the_command(tmp_path):
    (tmp_path / "mine.py").write_text(
        "weights = 3.0\ndef apply(x, w, n):\n    return w * x ** n\n")
    run = subprocess.run(
        [sys.executable, "-m", "pyjx.tools.jax_to_ir", "--fn", "mine.apply", "--input_shapes",
         "[('x', 'f32[4]')]", "--constants", "{'n': 2}", "--eval_constants",
         "{'w': 'mine.weights'}", "--ir_dest", "p.pb", "--ir_human_dest", "p.txt"],
        cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "constant(3)" in (tmp_path / "p.txt").read_text()
    assert np.frombuffer((tmp_path / "p.pb").read_bytes(), np.uint8).size > 100


def test_the_command_without_a_destination(capsys):
    with pytest.raises(SystemExit):
        tool.main(["jax_to_ir", "--fn", "math.sin", "--input_shapes", "[]"])
    assert "--ir_dest" in capsys.readouterr().err
