"""The table of lowering rules."""

from importlib import import_module

import pytest

from lowering import rules
from lowering.families import FAMILIES, PLATFORM_FAMILIES
from pyjx.engine.decompose import decompose

TABLES = [FAMILIES, *PLATFORM_FAMILIES.values()]


@pytest.mark.parametrize("module", sorted({module for table in TABLES for module in table}))
def test_a_module_has_the_rules_that_are_listed_for_it(module):
    import_module(module)
    declared = {name for table in rules._RULES.values() for name, rule in table.items()
                if rule.emit.__module__ == module}
    assert declared == {name for table in TABLES for name in table.get(module, "").split()}


@pytest.mark.parametrize("platform", PLATFORM_FAMILIES)
def test_modules_of_platforms_have_rules_for_these(platform):
    for module, names in PLATFORM_FAMILIES[platform].items():
        for name in names.split():
            assert rules.rules_for(platform)[name].emit.__module__ == module


def test_a_rule_for_a_platform_goes_before_that_for_all(monkeypatch):
    for name in ("_RULES", "_by_platform"):
        monkeypatch.setattr(rules, name, {p: {} for p in (None, "cpu")} if name == "_RULES" else {})
    assert rules.rules_for("cpu")["an operation"] is None
    rules.rule("an operation")(decompose)
    assert rules.rules_for("cpu")["an operation"].emit is decompose
    rules.rule("an operation", platform="cpu")(len)
    assert rules.rules_for("cpu")["an operation"].emit is len
    assert rules.rules_for("tpu")["an operation"].emit is decompose
    with pytest.raises(ValueError, match="two lowering rules"):
        rules.rule("an operation")(len)
