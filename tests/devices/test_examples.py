"""The examples over meshes of devices."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
from pyjx.sharding import AxisType, Mesh

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"layers": 1, "width": 8, "heads": 4, "vocabulary": 8}


@pytest.fixture
def example(monkeypatch):
    """An example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def test_a_transformer_over_a_mesh_trains_as_on_one_device(example):
    model = example("parallel_transformer")
    devices = np.array(jax.devices())
    curves = [
        model.train(Mesh(devices[:a * b].reshape(a, b), ("data", "model"), (AxisType.Auto,) * 2),
                    steps=3, length=9, **SIZES) for a, b in ((1, 1), (2, 4))]
    np.testing.assert_allclose(*curves, rtol=1e-4)
    assert curves[0][-1] < curves[0][0]


def test_the_text_of_a_program_does_not_grow_with_the_devices(example):
    model, table = example("parallel_transformer"), example("scale_table")
    texts = []
    for shape in ((1, 2), (2, 4)):
        mesh = Mesh(np.array(jax.devices()[:shape[0] * shape[1]]).reshape(shape),
                    ("data", "model"), (AxisType.Auto,) * 2)
        with jax.set_mesh(mesh):
            lowered = model.step.lower(*table.arguments(mesh, batch=4, length=8, **SIZES))
        texts.append(lowered.as_text())
    assert len(texts[0].splitlines()) == len(texts[1].splitlines())
    counts, sizes = table.collectives(lowered.compile().as_text())
    assert counts["all-reduce"] > 0 and sizes["all-reduce"] > 0


def test_collectives_of_a_program_are_counted_by_their_results(example):
    counts, sizes = example("scale_table").collectives("""
  %a = f32[4,8]{1,0} all-reduce(%x), channel_id=1
  %b = (bf16[4]{0}, bf16[16]{0}) all-gather-start(%y), channel_id=2
  %c = (f32[2]{0}, pred[3]{0}) all-to-all(%z, %w), channel_id=3
  %d = bf16[16]{0} all-gather-done(%b)
""")
    assert counts == {"all-reduce": 1, "all-gather": 1, "all-to-all": 1}
    assert sizes == {"all-reduce": 128, "all-gather": 32, "all-to-all": 11}
