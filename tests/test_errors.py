"""Errors: their place in the class tree and what their messages tell."""

import dataclasses
import pickle
from typing import NamedTuple

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import errors


class Aval:
    def __init__(self, text):
        self.text = text

    def str_short(self, short_dtypes=False):
        return self.text


class Tracer:
    def __init__(self, text, origin=""):
        self.aval = Aval(text)
        self.origin = origin

    def _origin_msg(self):
        return self.origin


ORIGIN = ("The error occurred while tracing the function loss at model.py:3 for jit. It depends on "
          "the value of the argument x.")


@pytest.mark.parametrize(
    ("cls", "bases"),
    [
        (errors.JAXTypeError, (TypeError,)),
        (errors.JAXIndexError, (IndexError,)),
        (errors.ConcretizationTypeError, (errors.JAXTypeError,)),
        (errors.TracerBoolConversionError, (errors.ConcretizationTypeError, TypeError)),
        (errors.TracerArrayConversionError, (errors.JAXTypeError,)),
        (errors.TracerIntegerConversionError, (errors.JAXTypeError,)),
        (errors.NonConcreteBooleanIndexError, (errors.JAXIndexError,)),
        (errors.UnexpectedTracerError, (errors.JAXTypeError,)),
        (errors.KeyReuseError, (errors.JAXTypeError,)),
        (errors.JaxprTypeError, (TypeError,)),
        (errors.ShardingTypeError, (Exception,)),
        (errors.JaxRuntimeError, (RuntimeError,)),
        (errors.InconclusiveDimensionOperation, (Exception,)),
    ],
)
def test_class_tree(cls, bases):
    for base in bases:
        assert issubclass(cls, base)


def test_conversions_to_integer_and_array_are_not_concretization_errors():
    assert not issubclass(errors.TracerArrayConversionError, errors.ConcretizationTypeError)
    assert not issubclass(errors.TracerIntegerConversionError, errors.ConcretizationTypeError)


@pytest.mark.parametrize(
    ("cls", "start", "cure"),
    [
        (
            errors.ConcretizationTypeError,
            "Abstract tracer value encountered where concrete value is expected: "
            "traced array with shape float32[2]\n",
            "static_argnums",
        ),
        (
            errors.TracerBoolConversionError,
            "Attempted boolean conversion of traced array with shape float32[2].\n",
            "jnp.where",
        ),
        (
            errors.TracerArrayConversionError,
            "The numpy.ndarray conversion method __array__() was called on "
            "traced array with shape float32[2]\n",
            "jax.numpy",
        ),
        (
            errors.TracerIntegerConversionError,
            "The __index__() method was called on traced array with shape float32[2]\n",
            "lax.while_loop",
        ),
        (
            errors.NonConcreteBooleanIndexError,
            "Array boolean indices must be concrete; got float32[2]\n",
            "jnp.where",
        ),
    ],
)
def test_message_says_what_happened_where_and_what_to_do(cls, start, cure):
    text = str(cls(Tracer("float32[2]", ORIGIN)))
    assert text.startswith(start)
    assert text.count(ORIGIN) == 1
    assert cure in text.rsplit("\n", 2)[1]
    assert "\n\n" not in str(cls(Tracer("float32[2]")))


def test_concretization_error_takes_a_context():
    text = str(errors.ConcretizationTypeError(Tracer("int32[]"), "It was the axis argument."))
    assert text.split("\n")[1] == "It was the axis argument."


def test_values_without_an_origin_are_described_too():
    assert "got ndarray" in str(errors.NonConcreteBooleanIndexError(np.zeros(2)))


@pytest.mark.parametrize(
    "cls",
    [errors.JAXTypeError, errors.JAXIndexError, errors.UnexpectedTracerError, errors.KeyReuseError],
)
def test_plain_messages_are_kept(cls):
    assert str(cls("the message")).partition("\nMore: help")[0] == "the message"


def test_escaped_tracer_error():
    came = "The value came from the operation `mul` at model.py:3 (f)."
    error = errors.escaped_tracer_error(Tracer("float32[]", f"{ORIGIN} {came}"))
    assert isinstance(error, errors.UnexpectedTracerError)
    text = str(error)
    assert text.startswith("Encountered an unexpected tracer. ")
    assert "float32[] wrapped in a Tracer" in text
    assert came in text and ORIGIN not in text  # which says why nobody has the value
    assert "checking_leaks" in text
    assert "more" in str(errors.escaped_tracer_error(Tracer("float32[]", ORIGIN), "more"))


JAX_EXPLAINS = {
    "ConcretizationTypeError", "KeyReuseError", "NonConcreteBooleanIndexError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "UnexpectedTracerError"}


@pytest.mark.parametrize("cls", [
    errors.ConcretizationTypeError, errors.TracerBoolConversionError,
    errors.TracerArrayConversionError, errors.TracerIntegerConversionError,
    errors.NonConcreteBooleanIndexError, errors.UnexpectedTracerError, errors.KeyReuseError,
    errors.InconclusiveDimensionOperation, errors.JaxprTypeError, errors.JAXTypeError,
    errors.JAXIndexError])
def test_messages_name_the_page_that_explains_them(cls):
    """Once, also where an error comes from another process."""
    page = f"python -m pyjx explain {cls.__name__}"
    for error in (cls("what"), pickle.loads(pickle.dumps(cls("what")))):
        more = str(error).splitlines()[-1]
        assert more.startswith(f"More: help(jax.errors.{cls.__name__}), or {page}.")
        assert str(error).count(page) == 1
        link = f"https://docs.jax.dev/en/latest/101/errors.html#jax.errors.{cls.__name__}"
        assert more.endswith(link) == (cls.__name__ in JAX_EXPLAINS)


def test_errors_of_a_library_name_the_page_of_their_kind():
    class Own(errors.JAXTypeError):
        pass

    assert "pyjx explain JAXTypeError." in str(Own("what"))


def test_the_checker_raises_the_error_that_is_documented():
    from pyjx.core.check import JaxprTypeError
    assert JaxprTypeError is errors.JaxprTypeError


def test_a_switch_that_is_an_argument_may_be_static():
    def scaled(x, train):
        return 2 * x if train else x

    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        jax.jit(scaled)(1.0, True)
    assert "mark the argument it comes from as static" in str(caught.value)
    assert "and pass True or False there" in str(caught.value)
    assert float(jax.jit(scaled, static_argnames=["train"])(1.0, True)) == 2.0
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        jax.jit(lambda c: scaled(c["x"], c["train"]))({"x": 1.0, "train": True})
    assert "use jnp.where" in str(caught.value)
    assert "let it be an argument of its own that is static" in str(caught.value)
    assert "and pass True or False there" in str(caught.value)
    with pytest.raises(jax.errors.TracerBoolConversionError, match="of its own that is static"):
        jax.jit(lambda c: scaled(c["x"], c["use it"]))({"x": 1.0, "use it": True})
    with pytest.raises(jax.errors.TracerBoolConversionError, match="pass a number there"):
        jax.jit(lambda c: scaled(c["x"], c["x"]))({"x": 1.0})


def test_a_keyword_and_a_tuple_of_sizes_may_be_static_as_they_are():
    class Sizes(NamedTuple):
        h: int
        w: int

    def element(**k):
        return [1, 2][k["c"]["n"] if "c" in k else k["n"]]

    def zeros(s):
        return jnp.zeros((s.h, s.w))

    for call in (lambda: jax.jit(element)(n=1), lambda: jax.jit(zeros)(Sizes(2, 3))):
        with pytest.raises(TypeError) as caught:
            call()
        assert "of its own" not in str(caught.value) and "meta_fields" not in str(caught.value)
    assert jax.jit(element, static_argnames="n")(n=1) == 2
    assert jax.jit(zeros, static_argnums=0)(Sizes(2, 3)).shape == (2, 3)
    for call in (lambda: jax.jit(element)(c={"n": 1}),
                 lambda: jax.jit(lambda k: [1, 2][k["n"]])({"n": 1}),
                 lambda: jax.jit(lambda k, **_: [1, 2][k["n"]])({"n": 1})):
        with pytest.raises(TypeError, match="let it be an argument of its own"):
            call()


def test_a_part_of_an_argument_is_static_by_itself():
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Model:
        w: jax.Array
        n: int

    apart = "et the value be an argument of its own that is static."
    for call, field in ((lambda: jax.jit(lambda c: jnp.zeros(c["n"]))({"n": 3}), False),
                        (lambda: jax.jit(lambda m: jnp.zeros(m.n))(Model(jnp.ones(2), 3)), True)):
        with pytest.raises(TypeError) as caught:
            call()
        assert apart in str(caught.value)
        assert ("let it be a static field: " in str(caught.value)) is field
    for call in (lambda: jax.jit(lambda s: jnp.arange(s[0]))((2, 3)),
                 lambda: jax.jit(lambda *s: jnp.arange(s[1]))(2, 3)):
        with pytest.raises(TypeError, match="mark the argument it comes from as static"):
            call()
    with pytest.raises(jax.errors.TracerIntegerConversionError, match="be an argument of its own"):
        jax.jit(lambda c: [1, 2][c["n"]])({"n": 1, "w": jnp.ones(2)})


@pytest.mark.parametrize("traced", [
    lambda: jax.jit(lambda x: x if x > 0 else -x)(1.0),
    lambda: jax.vmap(lambda x: x if x else 1.0)(jnp.ones(3)),
    lambda: jax.lax.scan(lambda c, x: (c, x if x else c), 0.0, jnp.ones(3)),
])
def test_a_condition_that_is_made_of_arguments_is_not_said_to_be_one(traced):
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        traced()
    assert "static" not in str(caught.value) and "use jnp.where" in str(caught.value)
