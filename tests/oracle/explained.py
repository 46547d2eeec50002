"""Differences that are known and intended, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tests.oracle.comparison import Difference, internal_text
from tests.oracle.language import Program


class Explained(NamedTuple):
    """A reason, and where it holds: causes, a pattern of the source, patterns of the outcomes."""

    reason: str
    causes: str
    source: str = ""
    ours: str = ""
    theirs: str = ""
    also: Callable[[Difference], bool] | None = None

    def holds(self, program: Program, d: Difference) -> bool:
        return (d.cause in self.causes.split()
                and bool(re.search(self.source, program.source(), re.DOTALL))
                and bool(re.search(self.ours, d.ours)) and bool(re.search(self.theirs, d.theirs))
                and (self.also is None or self.also(d)))


def fails_inside(d: Difference) -> bool:
    """The oracle's error is not about an argument, ours is (or there is none)."""
    theirs, _, message = d.theirs.partition(": ")
    ours, _, own = d.ours.partition(": ")
    return internal_text(theirs, message) and not (
        d.cause == "error" and internal_text(ours, own))


# Types and values whose differences do not fit the type.
WRAPS = r"uint\d|214748364[78]|3276[78]|-128|127|922337203685477580"

EXPLAINED = [
    Explained("the oracle fails inside; here the argument is named, or it works", "error accepts",
              also=fails_inside),
    Explained("an unknown mode is refused even where nothing is gathered or scattered",
              "raises error", ours="Unknown gather mode"),
    Explained("leading axes of size 1 of an update are dropped, as NumPy does", "accepts",
              source=r"\.at\[", theirs="Cannot broadcast to shape with fewer dimensions"),
    Explained("an index into an axis of size 0 is an IndexError", "error raises",
              ours="IndexError: index is out of bounds for axis . with size 0"),
    Explained("a fill value that depends on an argument is refused for all indices", "raises",
              source="fill_value", ours="TracerArrayConversionError"),
    Explained("a fill value is not looked at where nothing is read", "accepts",
              source="fill_value", ours=r"^array \S+\[[\d, ]*0[\d, ]*\] $"),
    Explained("an operation warns when it is compiled, not in each call", "warnings",
              source=r"\.at\[", theirs="FutureWarning"),
    Explained("JAX's deprecations of what it takes itself are not repeated", "warnings",
              theirs="DeprecationWarning"),
    Explained("Python scalars pass through unchanged", "kind", ours="^plain",
              theirs="Typed(Int|Float|Complex)"),
    Explained("scatter_apply is differentiable", "accepts", source=r"\.apply\(|scatter_apply",
              theirs="scatter_apply JVP"),
    Explained("quantiles of a scalar keep its rank", "shape", source="keepdims=True",
              ours=r"\[\]", theirs=r"\[1\]"),
    Explained("scalars are grids of one point, as in NumPy", "accepts", source="meshgrid",
              theirs="must be 1D"),
    Explained("the spacing below a negative number is negative, as in NumPy", "value",
              source="spacing", ours=r"^array \S+ (\S+ )*-"),
    Explained("integers are rounded to tens", "accepts", source="round",
              theirs="integer np.round not implemented"),
    Explained("linspace does not overflow inside", "value", source="linspace", theirs="nan"),
    Explained("a mask of another size is an IndexError", "raises error",
              ours="IndexError: boolean index did not match"),
    Explained("keys are no numbers", "error", ours="key<|integer type", theirs="key<"),
    Explained("of two wrong arguments the other one is named", "error",
              source=r"lax\.(dot|batch_matmul)\(|scaled_dot_general|jnp\.einsum|lax\.conv"),
    Explained("what is no number is a TypeError", "error", ours="is not a valid JAX array type",
              theirs="is not a valid dtype for JAX type promotion"),
    Explained("the helper behind .at has a name of its own", "object", ours="IndexUpdateRef"),
    Explained("of equal values the first one has the derivative", "value",
              source=r"union1d|setxor1d|intersect1d|unique"),
    Explained("arrays of several equal values are not unique", "shape value",
              source="assume_unique=True"),
    Explained("Python scalars take the operand's dtype", "accepts", source="reduce_window",
              theirs="inconsistent dtypes for operands and init_values"),
    Explained("any order is accepted, since there is one layout", "accepts",
              theirs="Only implemented for order='K'"),
    Explained("scatter_mul has gradients with repeated indices", "accepts",
              theirs="scatter_mul grad"),
    Explained("values broadcast with the array, as in NumPy", "accepts", source="put_along_axis",
              theirs="must be broadcastable to 'indices'"),
    Explained("masks are indices for ix_, as in NumPy", "accepts error", source="ix_",
              theirs="Boolean arguments"),
    Explained("spacings of a scalar are refused", "raises", source="gradient",
              ours="Invalid number of spacing arguments 2 for axis=.."),
    Explained("a geometric range through 0 keeps its ends", "value", source="geomspace",
              theirs=" nan"),
    Explained("axes that are the same are named as by NumPy", "error", source="diagonal|trace",
              ours="cannot be the same"),
    Explained("sections are integers", "raises", source="split",
              ours="'float' object cannot be interpreted as an integer"),
    Explained("lists are arrays for compress, as in NumPy", "accepts", source="compress",
              theirs="requires ndarray or scalar"),
    Explained("booleans are numbers for softmax and the activations", "accepts",
              source=r"nn\.(softmax|log_softmax|log_sigmoid|standardize)",
              theirs="does not accept dtype bool"),
    Explained("softmax of integers does not overflow", "value",
              source=rf"^(?=.*({WRAPS})).*nn\.(log_)?softmax"),
    Explained("a shape that does not hold the parameters is refused", "raises error",
              source=r"random\.", ours="must be broadcast-compatible with shape|broadcast_shapes"),
    Explained("sets without elements are of strong type", "weak", ours=r"\[0\] $"),
    Explained("a sum over no axes leaves booleans as they are", "accepts",
              source=r"reduce_sum|ediff1d|diff", theirs="does not accept dtype bool"),
    Explained("parameters that agree in nothing: another one is named", "error",
              source=r"lax\.zeta", theirs="ifferentiation rule"),
    Explained("custom_vjp functions have no derivative in forward mode", "error",
              ours="forward-mode autodiff", theirs="custom_lin"),
    Explained("slices of nan have the derivative of a sum", "value",
              source=r"^(?=.*\bnan\b).*(nanpercentile|nanquantile|nanmedian)"),
    Explained("a value to fill with is static", "raises", source="compress.*fill_value",
              ours="Non-hashable static"),
    Explained("the oracle does not come back", "oracle fails", theirs="no answer"),
    Explained("complex numbers that are empty are not compared", "accepts", source="softmax",
              theirs="does not accept dtype complex"),
    Explained("activations are defined for complex numbers", "accepts",
              source=r"nn\.(relu|celu|standardize)"),
    Explained("a mask that decides a shape must be known", "error", ours="ConcretizationTypeError",
              theirs="NonConcreteBooleanIndexError"),
    Explained("placements are told apart by device_put", "error", source="out_sharding"),
    Explained("what no element needs is looked at", "raises",
              source="padtype_to_pads|polynomial"),
    Explained("a negative start is clamped like any other", "accepts",
              source="allow_negative_indices=False", theirs="is out of bounds for dimension"),
    Explained("a scale of one is of any type", "accepts", source=r"random\.lognormal",
              theirs="TypePromotionError"),
    Explained("a dtype that is no float is named before the array", "error",
              source=r"jnp\.(std|var)", ours="must be inexact"),
    Explained("no number is no population to choose from", "error", source=r"random\.choice",
              ours="choice: a must be"),
    Explained("what is no key is refused", "raises", source=r"random\.clone",
              ours="invalid PRNG key data"),
    Explained("edges of bins may be a list, as in NumPy", "accepts error", source="histogram",
              theirs="requires ndarray or scalar|string values"),
    Explained("operands of lax broadcast", "accepts", source=r"lax\.",
              theirs="arrays must have the same number of dimensions"),
    Explained("arrays are what reshape gives", "kind", source="reshape", ours="^array"),
    Explained("scalars of NumPy stay scalars", "kind", source="stop_gradient", ours="^npscalar"),
    Explained("the results' weak type is told", "object", source="out_info"),
    Explained("a shape may be an array", "object", source="ShapeDtypeStruct"),
    Explained("NumPy's warnings of what overflows inside are not repeated", "warnings",
              theirs="RuntimeWarning"),
    Explained("unsigned integers have no negatives, so they are floats first", "value",
              source=r"^(?=.*uint\d).*log_sigmoid"),
    Explained("integers have no negative powers", "accepts",
              theirs="Integers cannot be raised to negative powers"),
    Explained("masks made of constants are known inside jit", "accepts",
              theirs="NonConcreteBooleanIndexError"),
    Explained("what is differentiated outside jit is known", "accepts",
              source="jax.(grad|value_and_grad|jvp|vjp)", theirs="ConcretizationTypeError"),
    Explained("a fill value made inside jit is known", "accepts", source="fill_value",
              theirs="ConcretizationTypeError"),
    Explained("no derivative with respect to a parameter", "error", ours="gradient with respect to",
              theirs="Differentiation rule"),
    Explained("sizes that a traced argument gives are named as such", "error",
              ours="TracerIntegerConversionError", theirs="^(TypeError|ValueError)"),
    Explained("what is no array has no size", "raises", source=r"jnp\.(size|ndim|shape)\("),
    Explained("results of loops are arrays", "kind", source="while_loop",
              theirs="^(plain|npscalar|ndarray)"),
    Explained("what cannot be compared is not equal, as in NumPy", "accepts",
              source="array_equal|array_equiv"),
    Explained("an index that no integer of 32 bits holds is refused", "raises",
              ours="OverflowError: Python int"),
    Explained("names given as both static and donated are refused", "raises error",
              ours="static_arg.* and donate_arg.* cannot intersect"),
    Explained("a step of zero is named before other faults", "error",
              ours="slice step cannot be zero"),
    Explained("of two wrong arguments the other one is named", "error",
              source="padtype_to_pads|rot90|dynamic_index_in_dim"),
    Explained("numbers of trials broadcast", "accepts", source=r"random\.(multinomial|binomial)",
              theirs="Cannot broadcast"),
    Explained("static arguments may be lists and arrays", "error", theirs="Non-hashable static"),
    Explained("numbers that have no maximum of their dtype are refused", "error raises",
              source="cumlogsumexp", ours="does not accept dtype"),
    Explained("unsigned integers have no negatives, so they are floats first", "value",
              source=r"^(?=.*uint\d).*log1mexp"),
    Explained("reductions are differentiable in their start", "accepts", source=r"lax\.reduce\(",
              theirs="non-zero tangents for initial"),
    Explained("trees without leaves have a derivative without leaves", "accepts",
              source="jac(rev|fwd)|hessian", theirs="at least one array"),
    Explained("what is no array is not complex", "accepts", source="isrealobj|iscomplexobj"),
    Explained("a placement of one device is not looked at", "accepts", source="out_sharding"),
    Explained("of two wrong arguments the other one is named", "error",
              source="scaled_matmul|ragged_dot_general"),
    Explained("what fills missing indices has a derivative", "value", source="nonzero|argwhere"),
    Explained("results of transformations are arrays, also where NumPy arrays pass through", "kind",
              source="vmap", ours="^array", theirs="^ndarray"),
    Explained("spacings are counted before sizes are looked at", "error", source="gradient",
              ours="Invalid number of spacing"),
    Explained("an array is no answer to yes or no", "error", ours="must be a bool"),
    Explained("a tree without leaves has any inner structure", "accepts",
              source="tree_transpose", theirs="Too few leaves"),
    Explained("an order that NumPy does not know is a ValueError", "error",
              ours="order must be one of"),
    Explained("operands that are no numbers are refused before rules are asked for", "error",
              ours="does not accept dtype|logical reduction", theirs="ifferentiation rule for"),
    Explained("a missing argument is named before the others", "error", source=r"(out|where)=",
              ours=r"missing \d|positional arguments", theirs="NotImplementedError"),
    Explained("axes are integers, never names", "error", ours="TypeError",
              theirs="unbound axis name|Named reductions"),
    Explained("a scalar of floats is no population to choose from", "raises",
              source=r"random\.choice", ours="choice: a must be an array"),
    Explained("attention takes arrays of rank 3 and 4", "raises",
              source="dot_product_attention", ours="ndim should be"),
    Explained("logits that are no floats are refused", "error", source=r"random\.categorical",
              ours="must be a float dtype"),
    Explained("what is set into an integer array does not round the others through float32",
              "value", source=r"\.set\(", ours=r"^array ~?u?int"),
    Explained("results of transformations are arrays, also where NumPy arrays pass through",
              "kind",
              source="jvp", ours="^(array|ndarray)", theirs="^(array|ndarray)"),
    Explained("activations take integers", "accepts", source=r"nn\.(silu|swish|sigmoid|glu)",
              theirs="logistic does not accept dtype (int|uint|bool)"),
    Explained("a ShapeDtypeStruct is no array", "error raises", source="ShapeDtypeStruct",
              ours="^TypeError"),
    Explained("of two wrong arguments the other one is named", "error", source="out=jnp.zeros",
              ours="'out' argument|out argument|out != None"),
    Explained("a seed of no type is a TypeError", "error", source=r"random\.(key|PRNGKey)\(None\)"),
    Explained("ranges of booleans exist", "accepts", source="fromfunction|arange",
              theirs="iota does not"),
    Explained("lists of indices are taken, as by NumPy", "accepts", source=r"jnp\.ix_",
              theirs="ix requires ndarray"),
]


def reason(program: Program, d: Difference) -> str | None:
    """Why the difference is none to mend, if it is known."""
    return next((e.reason for e in EXPLAINED if e.holds(program, d)), None)
