"""Source maps of programs."""

from __future__ import annotations

import json

import pytest

from pyjx import numpy as jnp
from pyjx.experimental import source_mapper as sm


def wave(x):
    return jnp.sin(x) * 2


LINE = wave.__code__.co_firstlineno  # of the return statement, counted from 0


def test_the_form_of_maps():
    mappings = [[(0, 0, 4, 2), (7,), (9, 1, 0, 40, 3)], [], [(3, 0, 1, 0)]]
    maps = sm.SourceMap(3, ["a.py", "b.py"], ["x"], ["n"] * 4, mappings)
    again = sm.SourceMap.from_json(maps.to_json())
    assert again == sm.SourceMap(3, ["a.py", "b.py"], ["x"], ["n"] * 4, mappings)
    # The example of the format's documents: AAgBC is column 0, source 0, line 16, column 1.
    assert sm.SourceMap.from_json(json.dumps(
        {"version": 3, "sources": [], "mappings": "AAgBC"})).mappings == [[(0, 0, 16, 1)]]


@pytest.mark.parametrize("name", ["jaxpr", "hlo:stable-hlo", "hlo:original", "hlo:optimized"])
def test_operations_come_from_the_users_line(name):
    (found,) = [p for p in sm.all_passes() if p.name == name]
    (dump,) = sm.generate_sourcemaps(wave, [found])(1.0)
    assert dump.pass_name == name
    text = dump.generated_code.split("\n")
    places = {(dump.source_map.sources[s[1]], s[2]) for line in dump.source_map.mappings
              for s in line}
    if name == "hlo:optimized":  # one from the cache has the places that it was compiled with
        assert places
    else:
        assert any([file.endswith("test_source_mapper.py") and line == LINE
                    for file, line in places])
    assert len(dump.source_map.mappings) == len(text)


def test_passes():
    assert [p.name for p in sm.filter_passes("hlo:o")] == ["hlo:original", "hlo:optimized"]
    with pytest.raises(ValueError, match="named 'jaxpr' already"):
        sm.register_pass(sm.all_passes()[0])
    compiled = sm.compile_with_env(wave, (1.0,), {}, {"PYJX_SOURCE_TEST": "1"}, {})
    assert "sine" in compiled.as_text() or "sin" in compiled.as_text()
    assert sm.canonicalize_filename("/tmp/abc/def/x.py") == "x.py"
    generator = sm.MappingsGenerator()
    generator.new_group()
    generator.new_segment(0, 0, 1, 2)
    assert generator.mappings() == [[(0, 0, 1, 2)]]
