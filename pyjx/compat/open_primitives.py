"""Primitives of other libraries, which are given their rules one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core import primitive as core_primitive
from pyjx.core.avals import AbstractValue, get_aval
from pyjx.core.effects import Effects, no_effects
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.core.trace import eager_trace
from pyjx.engine.types import Tangent

Rule = Callable[..., Any]


class Primitive(core_primitive.Primitive):
    """An operation that another library brings.

    Args:
      name: what jaxprs print.

    >>> import pyjx as jax
    >>> from pyjx.extend.core import Primitive
    >>> twice_p = Primitive("twice")
    >>> _ = twice_p.def_impl(lambda x: 2 * x)
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> jax.make_jaxpr(twice_p.bind)(1.)
    { lambda ; a:f32[]. let b:f32[] = twice a in (b,) }
    """

    __slots__ = ("__dict__",)

    ref_primitive = False  # whether it is one of those that read and write references
    ref_allocating = False  # whether it makes a reference
    skip_canonicalization = False
    types_and_effects: Rule | None = None  # (*avals, **params) -> types of the results, effects

    def __init__(self, name: str) -> None:
        super().__init__(name, cached=False)

    def def_effectful_abstract_eval(self, effectful_abstract_eval: Rule) -> Rule:
        """As `def_abstract_eval`, for a rule that gives types and effects."""
        self.def_abstract_eval(
            lambda *avals, **params: effectful_abstract_eval(*avals, **params)[0])
        self.types_and_effects = effectful_abstract_eval
        self.effects = lambda params: no_effects  # types may tell of some, parameters alone do not
        return effectful_abstract_eval

    def def_effectful_abstract_eval2(self, abstract_eval: Rule) -> Rule:
        """As `def_effectful_abstract_eval`, for a rule that gives the types; what it reads and
        writes of references is found in programs."""
        return self.def_abstract_eval(abstract_eval)

    def effects_of(self, operands: Sequence[Any], params: dict[str, Any]) -> Effects:
        if self.types_and_effects is None:
            return super().effects_of(operands, params)
        avals = [x if isinstance(x, AbstractValue) else get_aval(x) for x in operands]
        return frozenset(self.types_and_effects(*avals, **params)[1])

    def is_effectful(self, params: dict[str, Any]) -> bool:
        """Whether equations with these parameters have effects, or their types may tell of some."""
        return self.types_and_effects is not None or bool(self.effects_of((), params))

    def is_high(self, *avals: Any, **params: Any) -> bool:
        """Whether it is replaced by what it is made of (`to_lojax`) before programs are lowered."""
        return any([a.is_high for a in avals])

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """What it is made of, run on these operands.

        Raises:
          NotImplementedError: it is an operation of which programs are lowered.
        """
        if self.decomposition is None:
            raise NotImplementedError(
                f"Primitive '{self.name}' has is_high=True but no to_lojax lowering rule.")
        return self.decomposition(*args, **params)

    def def_bind_with_trace(self, bind_with_trace: Rule) -> Rule:
        """Let `bind_with_trace(trace, operands, avals, params)` apply the primitive."""
        self.bind_with_trace = bind_with_trace  # type: ignore[method-assign]
        return bind_with_trace

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Effects]:
        """The types of the results, and the effects."""
        return self.out_avals(avals, params), self.effects_of(avals, params)


class CallPrimitive(Primitive):
    """An operation that runs a program, its parameter `call_jaxpr`."""

    __slots__ = ()

    call_primitive = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.multiple_results = True
        self.define(decomposition=self._run, shape_rule=self._types, effects=self._effects)
        self.holder = core_primitive.Holding(stands_for=self._program)

    @staticmethod
    def _run(*operands: Any, call_jaxpr: Any, **params: Any) -> list[Any]:
        jaxpr, consts = _parts(call_jaxpr)
        return eval_jaxpr(jaxpr, consts, *operands)

    @staticmethod
    def _types(*avals: Any, call_jaxpr: Any, **params: Any) -> list[Any]:
        return _parts(call_jaxpr)[0].out_avals

    @staticmethod
    def _effects(params: dict[str, Any]) -> Effects:
        return _parts(params["call_jaxpr"])[0].effects

    @staticmethod
    def _program(params: dict[str, Any]) -> ClosedJaxpr:
        program = params["call_jaxpr"]
        return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, [])


def _parts(program: Jaxpr | ClosedJaxpr) -> tuple[Jaxpr, Sequence[Any]]:
    if isinstance(program, ClosedJaxpr):
        return program.jaxpr, program.consts
    return program, ()


def create_call_primitive(name: str, inline_jax_late: bool = True) -> CallPrimitive:
    """A primitive that runs the program which is its parameter `call_jaxpr`."""
    return CallPrimitive(name)


call_p = CallPrimitive("core_call")
closed_call_p = CallPrimitive("core_closed_call")
xla_pmap_p = CallPrimitive("xla_pmap")  # no program has it: JAX's pmap is a jitted function


def apply_primitive(prim: core_primitive.Primitive, *args: Any, **params: Any) -> Any:
    """Compile the primitive and run it, even if it has a rule `impl`."""
    return eager_trace.compiler(prim, params)(*args)


def call_impl(f: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """Call a wrapped function."""
    return getattr(f, "call_wrapped", f)(*args)


def eval_jaxpr_transpose(prim: core_primitive.Primitive, ct: Tangent, *args: Any, call_jaxpr: Any,
                         **params: Any) -> Any:
    """The transpose rule of a primitive that calls a program: that of the program.

    Raises:
      NotImplementedError: the primitive has no transpose rule.
    """
    if prim.transpose is None:
        raise NotImplementedError(f"Transpose rule for '{prim}' not implemented")
    return prim.transpose(ct, *args, call_jaxpr=call_jaxpr, **params)


def register_call_primitive_rules(prim: Any, name: str | None = None,
                                  transpose_rule: Rule | None = None,
                                  inline_jax_late: bool = True) -> None:
    """Let a primitive run the program which is its parameter `call_jaxpr`: its derivatives and
    batches are those of the program.

    Args:
      name: accepted; a program names its functions by itself.
      transpose_rule: `(ct, *args, call_jaxpr, **params) -> cotangents`, where it has its own.
    """
    prim.multiple_results = True
    prim.decomposition, prim.shape_rule = CallPrimitive._run, CallPrimitive._types
    prim.effects = CallPrimitive._effects
    prim.holder = core_primitive.Holding(stands_for=CallPrimitive._program)
    if transpose_rule is not None:
        prim.transpose = transpose_rule


empty2_p = Primitive("empty2")  # no program has it: an array of any elements is one of zeros here
