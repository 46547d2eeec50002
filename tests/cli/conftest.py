"""A program in a file, and the command `emit-hlo` on it."""

import sys

import pytest

import emit_hlo

MODEL = '''
"""A model in a file."""
import pyjx.numpy as jnp
from neighbour import factor

CONSTANT = 3

def loss(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2) * factor

def affine(x):
    return x * 2.0 + 1.0

class Namespace:
    @staticmethod
    def inner(x):
        return jnp.sin(x)

def broken(x):
    return undefined_name

def refuses(x):
    raise ValueError("not today")

class Model:
    def __init__(self, factor=2.0):
        self.factor = factor

    def scaled(self, x):
        return x * self.factor

def described(x: "f32[3]", factor=2.0):
    scaled = x * factor
    return scaled + 1.0

def named(params, x, *, activation="tanh"):
    h = getattr(jnp, activation)(x @ params["w"] + params["b"])
    return jnp.sum(h)
'''


@pytest.fixture
def model(tmp_path):
    (tmp_path / "neighbour.py").write_text("factor = 0.5\n")
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return str(path)


@pytest.fixture
def clean_path(monkeypatch):
    """Models are found where this test put them."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("model", "neighbour"):
        sys.modules.pop(name, None)


@pytest.fixture
def run(capsys, clean_path):
    def run(*argv):
        status = emit_hlo.main(list(argv))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
