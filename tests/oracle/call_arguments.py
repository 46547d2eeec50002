"""Arguments of functions whose parameters hang together: shapes of products, windows, indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.oracle.arguments import (
    Context,
    axis,
    drawn_shape,
    each,
    flag,
    float_dtype,
    lengths,
    main_array,
    maybe,
    other_array,
    parameter,
    particular,
    permutation,
    probability,
    reshaped,
    scalar,
    small,
    window,
    within,
    words,
)
from tests.oracle.language import Data, Expr, Items, Text, call, text
from tests.oracle.values import Gen

Whole = Callable[[Gen], tuple[list[Any], dict[str, Any]]]
WHOLE: dict[str, Whole] = {}  # functions whose arguments are made at once


def whole(functions: str) -> Callable[[Whole], Whole]:
    def register(maker: Whole) -> Whole:
        for function in functions.split():
            WHOLE[function] = maker
        return maker
    return register


def keywords(g: Gen, **options: tuple[float, Any]) -> dict[str, Any]:
    """Each keyword with its probability."""
    return {k: v() if callable(v) else v for k, (p, v) in options.items() if g.chance(p)}


# -- parameters of single functions ----------------------------------------------------------------

particular("jnp.reshape lax.reshape", shape=reshaped, new_sizes=reshaped, dimensions=permutation)
particular("jnp.transpose jnp.permute_dims lax.transpose", axes=permutation)
particular("jnp.sum jnp.prod jnp.max jnp.min jnp.amax jnp.amin jnp.all jnp.any jnp.mean "
           "jnp.var jnp.std jnp.nansum jnp.nanprod jnp.nanmax jnp.nanmin jnp.nanmean "
           "jnp.nanvar jnp.nanstd jnp.ptp jnp.median jnp.nanmedian jnp.count_nonzero "
           "jnp.minmax jnp.flip jnp.average jnp.squeeze nn.logsumexp nn.softmax "
           "nn.log_softmax nn.standardize nn.logmeanexp jnp.quantile jnp.percentile "
           "jnp.nanquantile jnp.nanpercentile jnp.roll jnp.expand_dims jnp.size "
           "jnp.moveaxis", axis=lambda g, c: g.axis_or_axes(c.rank),
           source=lambda g, c: g.axis_or_axes(c.rank),
           destination=lambda g, c: g.axis_or_axes(c.rank))
particular(within("jnp", "quantile percentile nanquantile nanpercentile"), q=probability,
           weights=maybe(0.2, other_array), method=words(
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "hazen", "bad"))
particular("jnp.broadcast_to", shape=lambda g, c: g.pick(
    c.shape, (2, *c.shape), tuple(3 if n == 1 else n for n in c.shape), g.shape()))
particular("jnp.take jnp.take_along_axis jnp.put_along_axis", indices=lambda g, c: g.nonnegative(
    g.broadcastable(c.shape), max(c.shape, default=1), low=-2))
particular("jnp.bincount", x=lambda g, c: g.nonnegative(g.shape(1, 1), 5),
           weights=maybe(0.3, lambda g, c: g.data(g.shape(1, 1))))
particular("jnp.clip", min=maybe(0.8, other_array), max=maybe(0.8, other_array))
particular("jnp.ldexp", x2=lambda g, c: g.data(g.broadcastable(c.shape), kinds="i"))
particular("jnp.where", condition=lambda g, c: g.mask(c.shape) if g.chance(0.8) else g.data(),
           x=other_array, y=other_array)
particular("jnp.compress", condition=lambda g, c: g.mask(g.shape(1, 1)))
particular("jnp.interp", xp=lambda g, c: Text("jnp.array([0., 1., 2.5])"), fp=lambda g, c: g.data(
    (3,)), left=maybe(0.3, scalar()), right=maybe(0.3, scalar()))
particular("jnp.searchsorted jnp.digitize", sorter=words(None), bins=lambda g, c: Text(
    g.pick("jnp.array([0., 1., 2.5])", "jnp.array([3, 2, 0])", "np.array([1])")),
    side=words("left", "right"), a=lambda g, c: Text(g.pick(
        "jnp.array([0., 1., 2.5])", "jnp.array([0, 2, 3])", "np.array([1])")))
particular("jnp.tril_indices jnp.triu_indices", m=maybe(0.5, small(0, 4)))
particular("jnp.round jnp.around", decimals=small(-2, 3))
particular("jnp.top_k", k=small(0, 3), mode=words("largest", "smallest", "bad"))
particular("lax.top_k lax.approx_max_k lax.approx_min_k", k=small(0, 3),
           reduction_dimension=axis, recall_target=words(0.95, 0.5),
           reduction_input_size_override=words(-1))
particular("jnp.swapaxes jnp.rollaxis", start=small(-3, 3))
particular("jnp.rot90", axes=words((0, 1), (1, 0), (-1, 0), (0, 0)))
particular("jnp.linspace jnp.logspace jnp.geomspace", start=lambda g, c: g.data(
    g.shape(0, 1), kinds="fic"), stop=lambda g, c: g.data(g.shape(0, 1), kinds="fic"),
    axis=words(0, -1, 1))
particular("jnp.arange", start=scalar(), stop=maybe(0.8, scalar()), step=maybe(0.6, words(
    1, 2, -1, 0.5, 0)))
particular("jnp.full jnp.full_like lax.full lax.full_like", fill_value=other_array)
particular("lax.full", fill_value=scalar("fibc"))
particular("jnp.ones_like jnp.zeros_like jnp.empty_like jnp.full_like lax.full_like",
           shape=maybe(0.5, lambda g, c: g.shape()))
particular("jnp.cross", a=lambda g, c: g.data((g.pick(2, 3),)), b=lambda g, c: g.data(
    (g.pick(2, 3),)), axis=maybe(0.2, small(-1, 1)))
particular("jnp.nan_to_num", nan=scalar("f"))
particular("jnp.resize", new_shape=lambda g, c: g.shape(0, 3))
particular("jnp.indices", dimensions=lambda g, c: g.shape(0, 2))
particular("jnp.isin", method=words("auto", "compare_all", "binary_search", "sort"))
particular("jnp.broadcast_shapes lax.broadcast_shapes", shapes=lambda g, c: g.broadcastable(
    c.shape))
particular("jnp.ravel jnp.copy", order=words("C", "F", "K", "A", "bad"))
particular("jnp.trapezoid", x=maybe(0.5, other_array))
particular("jnp.gradient", varargs=words(1.0, 2, 0.5))
particular("jnp.tri jnp.eye", M=maybe(0.6, small(0, 4)))
particular("jnp.repeat", a=main_array)
particular("jnp.vander", N=maybe(0.5, small(0, 4)))
particular("jnp.argpartition jnp.partition", kth=small(-3, 3))
particular("jnp.unique", axis=maybe(0.4, axis))
particular("jnp.diag_indices", ndim=small(0, 3))
particular("jnp.isdtype", kind=words("bool", "integral", "real floating", "numeric", ("bool",)))
particular("jnp.issubdtype", arg1=lambda g, c: g.dtype_text(), arg2=words(
    Text("jnp.integer"), Text("jnp.floating"), Text("np.inexact"), Text("jnp.float32"), "int32"))
particular("jnp.promote_types jnp.can_cast", a=lambda g, c: g.dtype_text(),
           b=lambda g, c: g.dtype_text(), from_=lambda g, c: g.dtype_text(),
           to=lambda g, c: g.dtype_text())
particular("nn.one_hot", x=lambda g, c: g.nonnegative(c.shape, 4, low=-1), axis=words(-1, 0, 1))
particular("jnp.array jnp.asarray", object=lambda g, c: g.pick(
    g.data(), g.data(), [g.data(c.shape), g.data(c.shape)], [[1, 2.0], [True, 3]], [], 3, 2.5, [[]],
    1j, True, ((1,), (2,)), [g.data((), form_="py"), g.data(())], 2**40, -1, [2**31], 1e40))
particular("lax.sin lax.cos lax.tan lax.asin lax.acos lax.atan lax.sinh lax.cosh lax.tanh "
           "lax.exp lax.log lax.sqrt lax.rsqrt lax.cbrt lax.expm1 lax.log1p lax.exp2 "
           "lax.log2 lax.logistic",
           x=lambda g, c: g.data(kinds="fffffc" if g.chance(0.9) else "ib"))
particular(within("lax", "erf erf_inv erfc lgamma digamma bessel_i0e bessel_i1e floor ceil round "
                  "is_finite reduce_precision igamma igammac"),
           **each("x operand", lambda g, c: g.data(kinds="f")))


def same(g: Gen, c: Context) -> Expr:
    """Operands of lax agree in shape and dtype; Python scalars go with everything."""
    if c.first is None:
        c.first = g.data(c.shape, c.dtype, "jnp" if g.chance(0.8) else None)
        return c.first
    if g.chance(0.12):
        return g.data(())
    return g.data(c.shape, c.dtype if g.chance(0.95) else None, "jnp" if g.chance(0.8) else "np")


particular(within("lax", "add sub mul div rem max min pow atan2 eq ne lt le gt ge bitwise_and "
                  "bitwise_or bitwise_xor shift_left shift_right_arithmetic "
                  "shift_right_logical nextafter "
                  "complex igamma igammac igamma_grad_a random_gamma_grad betainc zeta polygamma "
                  "mulhi select clamp select_n"),
           **each("x y x1 x2 a b q m on_true on_false min max cases args", same))
particular("lax.select_n", which=lambda g, c: (setattr(c, "first", g.data(c.shape)), g.mask(
    c.shape) if g.chance(0.6) else g.nonnegative(c.shape, 1))[1])
particular("lax.integer_pow", y=small(-3, 5))
particular("lax.mul", out_dtype=words(None))
particular("lax.iota", size=small(0, 5))
particular("lax.broadcasted_iota", dimension=small(-1, 2), shape=lambda g, c: g.shape())
particular("lax.expand_dims", dimensions=lambda g, c: g.pick((0,), (-1,), (0, 2), (1, -1), ()))
particular("lax.squeeze", array=lambda g, c: (setattr(c, "shape", tuple(
    1 if g.chance(0.5) else n for n in c.shape)), main_array(g, c))[1],
    dimensions=lambda g, c: tuple(i for i, n in enumerate(c.shape) if n == 1 or g.chance(0.05)))
particular("lax.rev lax.transpose", dimensions=lambda g, c: g.axes(c.rank))
particular("lax.collapse", start_dimension=small(-2, 2), stop_dimension=maybe(0.7, small(-2, 3)))
particular("lax.tile", reps=lengths(0, 2))
particular("lax.slice", start_indices=lengths(0, 1), limit_indices=lambda g, c: tuple(
    g.rng.randint(1, max(1, n)) for n in c.shape), strides=maybe(0.6, lengths(1, 2)))
particular("lax.slice_in_dim", start_index=words(0, 1, -1, None), limit_index=words(1, 2, None, -1),
           stride=small(1, 2))
particular("lax.dynamic_slice", start_indices=lengths(-1, 2), slice_sizes=lengths(0, 2))
particular("lax.dynamic_slice_in_dim", start_index=small(-2, 3), slice_size=small(0, 2))
particular("lax.dynamic_index_in_dim lax.index_in_dim", index=small(-3, 3))
particular("lax.dynamic_update_slice", start_indices=lengths(-1, 2), update=lambda g, c: g.data(
    tuple(g.rng.randint(0, n) for n in c.shape), c.dtype))
particular("lax.dynamic_update_slice_in_dim lax.dynamic_update_index_in_dim",
           index=small(-2, 3), start_index=small(-2, 3), update=lambda g, c: g.data(
               tuple(g.rng.randint(0, n) if g.chance(0.4) else n for n in c.shape), c.dtype))
particular("lax.pad", padding_value=lambda g, c: g.data((), c.dtype, "jnp"),
           padding_config=lambda g, c: [
               (g.rng.randint(-1, 2), g.rng.randint(-1, 2), g.rng.randint(0, 1)) for _ in c.shape])
particular("lax.concatenate lax.stack", dimension=axis)
particular("lax.split", sizes=lambda g, c: g.pick((1, 1), (1, 2), (2,), (0, 3)))
particular("lax.broadcast_in_dim", shape=lambda g, c: (2, *c.shape),
           broadcast_dimensions=lambda g, c: tuple(range(1, c.rank + 1)))
particular("lax.broadcast_to_rank", rank=small(0, 4))
particular("lax.sort", operand=lambda g, c: main_array(g, c) if g.chance(0.6) else text(
    (main_array(g, c), g.data(c.shape))))
particular("lax.sort_key_val", values=lambda g, c: g.data(c.shape), keys=main_array)
particular("lax.polynomial", coeffs=words([1.0, 2.0], [1, 2, 3], (), Text("jnp.array([1., 2.])")))
particular("lax.reduce_window_shape_tuple lax.padtype_to_pads", operand_shape=lambda g, c: c.shape,
           window_dimensions=window, window_strides=lengths(1, 2), padding=words("SAME", "VALID"),
           in_shape=lambda g, c: c.shape, window_shape=window)
particular("lax.index_take", idxs=lambda g, c: (g.nonnegative((2,), 2),), axes=words((0,), (1,)))
particular("lax.dot lax.batch_matmul", lhs=main_array, rhs=main_array)
particular("lax.conv_transpose", strides=lengths(1, 2))
particular(within("lax", "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or "
                         "reduce_xor"),
           axes=lambda g, c: g.axes(c.rank))
particular(within("lax", "argmax argmin"), index_dtype=lambda g, c: g.dtype_text("i"))

# -- random ----------------------------------------------------------------------------------------

_DRAWS = ("ball bernoulli beta binomial bits categorical cauchy chisquare dirichlet exponential f "
          "gamma generalized_normal geometric gumbel laplace loggamma logistic lognormal maxwell "
          "multinomial normal pareto poisson rademacher randint rayleigh t triangular "
          "truncated_normal uniform wald weibull_min double_sided_maxwell choice permutation")
particular(within("random", _DRAWS), shape=drawn_shape, dtype=float_dtype, mode=words(
    "low", "high", None), method=words("exact", "bad"))
particular(within("random", _DRAWS), **each(
    "a b df dfnum dfden scale loc lam sigma alpha p concentration left right mean", parameter))
particular("random.randint", minval=scalar("i"), maxval=scalar("i"), dtype=lambda g, c: (
    g.dtype_text("i")))
particular("random.uniform", minval=scalar(), maxval=scalar())
particular("random.truncated_normal", lower=words(-1.0, -2, 0.0, -100), upper=words(1.0, 2, 0.5))
particular("random.triangular", left=words(0.0, -1), mode=words(0.5, 0.2), right=words(1.0, 2))
particular("random.bernoulli random.geometric random.binomial random.multinomial", p=probability)
particular("random.binomial random.multinomial", n=words(5, 3.0, Text("jnp.array([1., 4.])")))
particular("random.bits random.rademacher", dtype=lambda g, c: g.dtype_text("i"))
particular("random.split", num=words(2, 3, (2, 2), 0, 1, ()))
particular("random.fold_in", data=lambda g, c: g.pick(1, 7, 2**31, -1, g.data(())))
particular("random.key random.PRNGKey", seed=lambda g, c: g.pick(
    0, 42, -1, 2**32 + 5, 2**70, g.data(())), impl=words(
        "threefry2x32", "rbg", "unsafe_rbg", "bad"))
particular("random.choice", a=lambda g, c: g.pick(5, 3, g.data(g.shape(1, 2))),
           p=maybe(0.3, words(None, Text("jnp.array([.2, .3, .5])"))), axis=words(0, 0, 1))
particular("random.permutation", x=lambda g, c: g.pick(5, 3, g.data(g.shape(1, 2))))
particular("random.categorical", logits=lambda g, c: g.data(c.shape, kinds="f"))
particular("random.dirichlet", alpha=lambda g, c: Text("jnp.array([.5, 1., 2.])"))
particular("random.key_data random.key_impl random.clone random.wrap_key_data",
           keys=lambda g, c: g.key((2,) if g.chance(0.3) else ()), key_bits_array=lambda g, c: Text(
               g.pick("jnp.array([1, 2], 'uint32')", "jnp.ones((3, 2), 'uint32')", "jnp.ones(2)")))
particular("random.generalized_normal random.ball", d=small(1, 3), p=words(1.0, 2, 2.5))


# -- functions as a whole --------------------------------------------------------------------------


def matching(g: Gen) -> tuple[Data, Data]:
    """Two matrices, vectors or stacks of them that can be multiplied."""
    n, k, m = g.dim(), g.dim(), g.dim()
    batch = g.shape(0, 2) if g.chance(0.3) else ()
    left = (k,) if g.chance(0.25) else (*batch, n, k)
    right = (k,) if g.chance(0.25) else (*g.broadcastable(batch), k, m)
    if g.chance(0.04):
        right = g.shape()
    one = g.dtype()
    return g.data(left, one), g.data(right, one if g.chance(0.7) else None)


@whole("jnp.matmul jnp.dot jnp.vdot jnp.inner jnp.outer jnp.kron jnp.tensordot lax.dot "
       "lax.batch_matmul jnp.matvec jnp.vecmat jnp.vecdot")
def product(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    return list(matching(g)), keywords(
        g, preferred_element_type=(0.08, g.dtype_text), precision=(0.04, "highest"))


@whole("jnp.einsum")
def einsum(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    sizes = {c: g.pick(1, 2, 3) for c in "ijkl"}
    terms = ["".join(g.rng.sample("ijkl", g.rng.randint(1, 3))) for _ in range(g.pick(1, 2, 2, 3))]
    if g.chance(0.1):
        terms[0] += terms[0][0]
    used = sorted(set("".join(terms)))
    formula = ",".join(terms)
    if g.chance(0.75):
        out = g.rng.sample(used, g.rng.randint(0, len(used)))
        formula += "->" + "".join(out)
    one = g.dtype()
    operands = [g.data([sizes[c] for c in t], one if g.chance(0.8) else None) for t in terms]
    return [formula, *operands], keywords(g, preferred_element_type=(0.08, g.dtype_text))


@whole("lax.dot_general")
def dot_general(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    batch, contracted = g.shape(0, 1), g.shape(0, 2)
    left, right = g.shape(0, 1), g.shape(0, 1)
    one = g.dtype()
    b, c = len(batch), len(contracted)
    dims = ((tuple(range(b, b + c)), tuple(range(b, b + c))), (tuple(range(b)), tuple(range(b))))
    return [g.data((*batch, *contracted, *left), one, "jnp"),
            g.data((*batch, *contracted, *right), one if g.chance(0.9) else None, "jnp"),
            dims], keywords(g, preferred_element_type=(0.15, g.dtype_text))


@whole("lax.conv_general_dilated")
def convolution(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    rank = g.pick(1, 1, 2)
    groups = g.weighted({1: 8, 2: 2})
    channels, out = groups * g.pick(1, 2), groups * g.pick(1, 2)
    one = g.dtype("ffffic")
    lhs = g.data((g.pick(1, 2), channels, *(g.pick(3, 4, 5) for _ in range(rank))), one, "jnp")
    rhs = g.data((out, channels // groups, *(g.pick(1, 2, 3) for _ in range(rank))), one, "jnp")

    def random(low: int, high: int) -> tuple[int, ...]:
        return tuple(g.rng.randint(low, high) for _ in range(rank))

    padding = g.pick("SAME", "VALID", [(g.rng.randint(-1, 2), 1) for _ in range(rank)],
                     "SAME_LOWER")
    named = {"feature_group_count": (1.0, groups)} if groups > 1 else {}
    return [lhs, rhs, random(1, 2), padding], keywords(
        g, lhs_dilation=(0.2, lambda: random(1, 2)), rhs_dilation=(0.2, lambda: random(1, 2)),
        preferred_element_type=(0.08, g.dtype_text), **named)


@whole("lax.conv lax.conv_with_general_padding lax.conv_transpose "
       "lax.conv_general_dilated_patches lax.conv_general_dilated_local")
def other_convolution(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    one = g.dtype("fffi")
    lhs = g.data((g.pick(1, 2), 2, g.pick(3, 4)), one, "jnp")
    rhs = g.data((g.pick(1, 2), 2, g.pick(1, 2)), one, "jnp")
    return [lhs, rhs, (g.pick(1, 2),), g.pick("SAME", "VALID", [(1, 0)])], {}


@whole("lax.ragged_dot")
def ragged(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    one = g.dtype("ffi")
    m, k, n, groups = g.dim(), g.dim(), g.dim(), g.pick(1, 2, 3)
    return [g.data((m, k), one, "jnp"), g.data((groups, k, n), one, "jnp"),
            g.nonnegative((groups,), max(1, m // groups))], keywords(
        g, preferred_element_type=(0.15, g.dtype_text))


@whole("lax.rng_bit_generator")
def bit_generator(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    key = g.nonnegative((4,) if g.chance(0.9) else (2,), 9, "uint32")
    return [key, g.shape(0, 2)], keywords(g, dtype=(0.4, lambda: g.dtype_text("i")))


@whole("jnp.convolve jnp.correlate")
def convolve(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    one = g.dtype()
    return [g.data((g.pick(1, 2, 4, 5),), one), g.data((g.pick(1, 2, 3),), one if g.chance(0.6) else
                                                       None)], keywords(
        g, mode=(0.6, lambda: g.pick("full", "same", "valid", "bad")))


@whole("lax.reduce_window")
def reduce_window(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    shape = g.shape(1, 3)
    x = g.data(shape, kinds="fi", form_="jnp")
    function = g.pick("lax.add", "lax.max", "lax.min", "lax.mul")
    start = {"lax.add": 0.0, "lax.max": Text("-jnp.inf"), "lax.min": Text("jnp.inf"),
             "lax.mul": 1.0}[function]
    if "float" not in x.dtype:
        start = g.rng.randint(0, 1)
    return [x, start, Text(function), tuple(g.rng.randint(1, 2) for _ in shape)], keywords(
        g, window_strides=(0.5, lambda: tuple(g.rng.randint(1, 2) for _ in shape)),
        padding=(0.6, lambda: g.pick("SAME", "VALID", [(0, 1) for _ in shape])))


@whole("lax.reduce")
def reduce(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    x = g.data(g.shape(0, 3), form_="jnp")
    function = Text(g.pick("lax.add", "lax.max", "lax.mul", "lax.min", "lambda a, b: a + b * 2"))
    return [x, g.data((), x.dtype, "jnp"), function, g.axes(len(x.shape))], {}


@whole("jnp.pad")
def pad(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    x = g.data()
    mode = g.pick("constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "mean",
                  "maximum", "minimum", "median", "empty", "bad")
    widths = g.pick(1, 2, (1, 2), [(g.rng.randint(0, 2), g.rng.randint(0, 2)) for _ in x.shape])
    named: dict[str, Any] = {}
    if mode == "constant":
        named = keywords(g, constant_values=(0.5, lambda: g.pick(2.5, (1, 2), g.data(()))))
    elif mode in ("mean", "maximum", "minimum", "median"):
        named = keywords(g, stat_length=(0.3, lambda: g.pick(1, 2, (1, 2))))
    elif mode in ("reflect", "symmetric"):
        named = keywords(g, reflect_type=(0.2, lambda: g.pick("odd", "even")))
    elif mode == "linear_ramp":
        named = keywords(g, end_values=(0.4, lambda: g.pick(2, 1.5, (1, 2))))
    return [x, widths], {"mode": mode, **named}


@whole("lax.gather")
def gather(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    n, m = g.pick(1, 2, 3), g.pick(1, 2, 3)
    count = g.pick(1, 2, 3)
    numbers = Text(g.pick(
        "lax.GatherDimensionNumbers((1,), (0,), (0,))",
        "lax.GatherDimensionNumbers((0,), (0,), (0,))",
        "lax.GatherDimensionNumbers((1, 2), (), (0,))"))
    sizes = (1, g.rng.randint(1, m))
    return [g.data((n, m), form_="jnp"), g.nonnegative((count, 1), n + 1, low=-2), numbers,
            sizes], keywords(
        g, mode=(0.6, lambda: g.pick("clip", "fill", "promise_in_bounds")),
        fill_value=(0.2, lambda: g.pick(0, 7, 1.5, None)))


@whole("lax.scatter lax.scatter_add lax.scatter_mul lax.scatter_min lax.scatter_max "
       "lax.scatter_sub")
def scatter(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    n, m, count = g.pick(1, 2, 3), g.pick(1, 2, 3), g.pick(1, 2, 3)
    one = g.dtype()
    return [g.data((n, m), one, "jnp"), g.nonnegative((count, 1), n, low=-1),
            g.data((count, m), one, "jnp"),
            Text("lax.ScatterDimensionNumbers((1,), (0,), (0,))")], keywords(
        g, mode=(0.5, lambda: g.pick("clip", "drop", "promise_in_bounds")))


@whole("nn.dot_product_attention")
def attention(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    b, t, s, h, d = g.pick(1, 2), g.pick(1, 2, 3), g.pick(1, 2, 3), g.pick(1, 2), g.pick(1, 2)
    one = g.dtype("f")
    return [g.data((b, t, h, d), one, "jnp"), g.data((b, s, h, d), one, "jnp"),
            g.data((b, s, h, d), one, "jnp")], keywords(
        g, is_causal=(0.3, True), scale=(0.2, 0.5), bias=(0.2, lambda: g.data((b, h, t, s), one)),
        mask=(0.2, lambda: g.mask((b, h, t, s))), local_window_size=(0.1, 1))


@whole("jnp.lexsort")
def lexsort(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    shape = g.shape(1, 2)
    return [tuple(g.data(shape) for _ in range(g.pick(1, 2)))], keywords(
        g, axis=(0.3, lambda: g.axis(len(shape))))


@whole("jnp.block")
def block(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    a, b = g.data((2, 2)), g.data((2, g.pick(1, 3)))
    return [g.pick([a, b], [[a, b], [a, b]], [[a], [a]], a, [])], {}


@whole("jnp.choose jnp.select")
def select(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    shape = g.shape(0, 2)
    return [[g.mask(shape), g.mask(shape)], [g.data(shape), g.data(shape)]], keywords(
        g, default=(0.5, lambda: g.data(())))


@whole("jnp.piecewise")
def piecewise(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    x = g.data(g.shape(0, 2), kinds="f")
    return [x, [g.mask(x.shape)], [g.pick(1.0, Text("jnp.sin")), 2.0]], {}


@whole("jnp.vectorize jnp.frompyfunc jnp.apply_along_axis jnp.apply_over_axes")
def applied(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    x = g.data(g.shape(1, 3))
    return [Text("jnp.sum"), g.axis(len(x.shape)), x], {}


@whole("jnp.fromfunction")
def fromfunction(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    return [Text("jnp.add"), g.pick((2, 3), (0, 2), (3, 1))], keywords(
        g, dtype=(0.5, g.dtype_text))


@whole("lax.while_loop")
def while_loop(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    limit = g.rng.randint(0, 4)
    body = g.pick("lambda c: (c[0] + 1, c[1] * 0.5)", "lambda c: (c[0] + 1, c[1] + c[0])",
                  "lambda c: (c[0] + 1, jnp.sin(c[1]))")
    return [Text(f"lambda c: c[0] < {limit}"), Text(body), (0, g.data())], {}


@whole("jnp.ix_")
def open_mesh(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    return [g.data(g.shape(1, 1), kinds="ib") for _ in range(g.pick(1, 2))], {}


@whole("jnp.histogram2d jnp.histogramdd")
def histogram(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    n = g.pick(1, 4)
    return [g.data((n,), kinds="f"), g.data((n,), kinds="f")], keywords(
        g, bins=(0.5, lambda: g.pick(2, 3, (2, 3))))


@whole("jnp.unravel_index jnp.ravel_multi_index")
def flat_index(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    shape = tuple(max(1, n) for n in g.shape(1, 3))
    return [g.nonnegative(g.shape(0, 1), math.prod(shape), low=-2), shape], {}


@whole("jnp.bool_ jnp.float32 jnp.int32")
def converted(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    return [g.data()], {}


@whole("tree_util.tree_map")
def tree_map(g: Gen) -> tuple[list[Any], dict[str, Any]]:
    x, y = g.data(), g.data()
    return [Text("lambda a: a * 2"), g.pick((x, [y, None]), Items("dict", (x, y), (
        "'a'", "'b'")), x, None, ())], {}


__all__ = ["WHOLE", "call", "flag"]
