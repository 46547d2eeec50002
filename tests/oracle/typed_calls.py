"""Calls whose types of results are compared: expressions in the operands x, y and z.

Names in braces stand for one expression each. Operands are vectors of three numbers in the first
table and square matrices in the second, and scalars in both.
"""

from __future__ import annotations

import re

_VECTORS = """
jnp.{abs absolute acos acosh all amax amin angle any arccos arccosh arcsin arcsinh arctan}(x)
jnp.{arctanh argmax argmin argsort around array asarray asin asinh atan atanh atleast_1d}(x)
jnp.{atleast_2d atleast_3d average bitwise_count bitwise_invert bitwise_not cbrt ceil conj}(x)
jnp.{conjugate copy corrcoef cos cosh count_nonzero cov cumprod cumsum cumulative_prod}(x)
jnp.{cumulative_sum deg2rad degrees diag diagflat diff ediff1d exp exp2 expm1 fabs flip floor}(x)
jnp.{frexp gradient histogram histogram_bin_edges i0 imag invert iscomplex iscomplexobj}(x)
jnp.{isfinite isinf isnan isneginf isposinf isreal isrealobj isscalar log log10 log1p log2}(x)
jnp.{logical_not max mean median min minmax modf nan_to_num nanargmax nanargmin nancumprod}(x)
jnp.{nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar ndim negative}(x)
jnp.{ones_like zeros_like empty_like packbits poly polyder polyint positive prod ptp rad2deg}(x)
jnp.{radians ravel real reciprocal rint roots round shape sign signbit sin sinc sinh size sort}(x)
jnp.{sort_complex spacing sqrt square squeeze std sum tan tanh transpose trapezoid trunc}(x)
jnp.{unpackbits unstack unwrap vander var vdot}(x)
jnp.arange(x)
jnp.{bool_ int8 int32 uint8 bfloat16 float16 float32 float64 int64 complex64 int_ float_}(x)
jnp.{complex_ result_type dtype lexsort broadcast_arrays meshgrid ix_ block stack concatenate}(x)
jnp.{hstack vstack dstack column_stack concat vander trim_zeros}(x)
jnp.{nonzero flatnonzero argwhere unique unique_all unique_counts unique_inverse unique_values}(x)
jnp.{nonzero flatnonzero argwhere unique}(x, size=2)
jnp.{sum prod cumsum cumprod mean var std nansum nanmean max min any trace}(x, dtype='int8')
jnp.{sum prod cumsum cumprod mean var std nansum nanmean nanvar nanstd}(x, dtype='bfloat16')
jnp.{sum prod cumsum mean}(x, dtype='complex64')
jnp.{sum prod mean std var cumsum cumprod}(x, dtype=bool)
jnp.{sum prod cumsum mean zeros_like ones_like array asarray}(x, dtype=float)
jnp.{zeros_like ones_like empty_like array asarray}(x, dtype=int)
jnp.sum(x, promote_integers=False)
jnp.prod(x, promote_integers=False)
jnp.{sum max min mean}(x, keepdims=True)
jnp.{median average nanmedian}(x, keepdims=True)
jnp.{var std nanvar nanstd}(x, ddof=1)
jnp.{array_split split}(x, 3)
jnp.{argpartition partition top_k}(x, 1)
jnp.bincount(x, length=4)
jnp.broadcast_to(x, (2, 3))
jnp.{clip full_like round}(x, 1)
jnp.clip(x, None, 2.0)
jnp.clip(x, 0, 2)
jnp.full_like(x, 2.5)
jnp.full(3, x)
jnp.full(3, x, dtype='float16')
jnp.linspace(0, 1, x)
jnp.{expand_dims roll repeat tile resize diff}(x, 1)
jnp.take(x, 0)
jnp.take(x, jnp.array([0, 1]), mode='fill')
jnp.reshape(x, -1)
jnp.{moveaxis rollaxis swapaxes}(x, 0, 0)
jnp.permute_dims(x, (0,))
jnp.pad(x, 1)
jnp.pad(x, 1, mode='{mean linear_ramp edge median maximum reflect wrap symmetric empty}')
jnp.pad(x, 1, constant_values=2.5)
jnp.{quantile percentile nanquantile nanpercentile}(x, 0.5)
jnp.{quantile percentile nanquantile nanpercentile}(x, 1)
jnp.quantile(x, 0.5, method='{lower nearest midpoint higher}')
jnp.select([True], [x])
jnp.where(x)
jnp.where(x, 1, 2)
jnp.where(x, 1.0, 2)
jnp.where(x, size=2)
jnp.where(True, x, 0)
jnp.{einsum}('i->', x)
jnp.{einsum}('i,i->', x, x)
jnp.einsum('i->i', x)
jnp.einsum('i,i->i', x, x, preferred_element_type='float32')
jnp.einsum('i,i->', x, x, preferred_element_type='int32')
jnp.{dot vdot vecdot}(x, x, preferred_element_type='float32')
jnp.{dot vdot vecdot matmul}(x, x, preferred_element_type='bfloat16')
jnp.{matmul inner tensordot}(x, x, preferred_element_type='int32')
jnp.{add multiply logaddexp logaddexp2 maximum minimum logical_and bitwise_or}.reduce(x)
jnp.{subtract divide power arctan2 equal greater hypot gcd}.reduce(x)
jnp.{add multiply logaddexp maximum logical_or subtract bitwise_xor divide}.accumulate(x)
jnp.{add multiply maximum logaddexp divide equal}.outer(x, x)
jnp.{add multiply maximum logaddexp}.reduceat(x, jnp.array([0, 1]))
jnp.{add multiply maximum logaddexp logical_or}.reduce(x, where=True, initial=0)
jnp.add.reduce(x, dtype='float16')
jnp.piecewise(x, [True], [1.0])
jnp.piecewise(x, [True], [2, 3.0])
jnp.apply_along_axis(jnp.sum, 0, x)
jnp.apply_over_axes(jnp.sum, x, 0)
jnp.vectorize(jnp.sin)(x)
jnp.frompyfunc(lambda a, b: a * b, 2, 1)(x, x)
jnp.astype(x, '{int8 float16 bool complex64 int64}')
jnp.choose(x, [1, 2.0])
jnp.take_along_axis(x, jnp.array([0]), 0)
jnp.delete(x, 0)
jnp.insert(x, 0, 1)
jnp.compress(jnp.array([True]), x)
jnp.extract(x, x, size=2)
jnp.kaiser(3, x)
jnp.fft.{fft ifft rfft irfft hfft ihfft fftshift ifftshift fftn ifftn rfftn irfftn fftfreq}(x)
jnp.fft.{fftfreq rfftfreq}(3, x)
jnp.fft.{fft}(x, norm='ortho')
jnp.linalg.{norm vector_norm}(x)
jnp.linalg.{norm vector_norm}(x, ord={0 1 jnp.inf 3})
lax.{abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj}(x)
lax.{cos cosh cumlogsumexp cummax cummin cumprod cumsum digamma erf erf_inv erfc exp exp2}(x)
lax.{expm1 floor imag is_finite lgamma log log1p log2 logistic neg one_minus_square}(x)
lax.{optimization_barrier population_count real reciprocal round rsqrt sign sin sinh sort}(x)
lax.{sqrt square squeeze stop_gradient tan tanh dtype}(x)
lax.{argmax argmin}(x, 0, '{int32 uint8 int64}')
lax.{approx_max_k approx_min_k top_k}(x, 1)
lax.{broadcast expand_dims}(x, (0,))
lax.{reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor}(x, (0,))
lax.bitcast_convert_type(x, '{int8 int32 float16 float32}')
lax.convert_element_type(x, {int float bool complex 'int8' 'float16' 'int64' 'float64'})
lax.full((2,), x)
lax.full_like(x, 1)
lax.full_like(x, 1.5)
lax.integer_pow(x, 2)
lax.{add mul max}(x, {1 1.0 True 1j})
lax.{pow div rem sub eq lt atan2}(x, {1 1.0})
lax.pow({1 2.0}, x)
lax.polynomial(x, [1.0, 2.0])
lax.polygamma(1.0, x)
lax.reduce(x, 0, lax.add, (0,))
lax.reduce(x, 0.0, lax.max, (0,))
lax.reduce_precision(x, 5, 10)
lax.reduce_window(x, 0, lax.add, (1,), (1,), 'VALID')
lax.rev(x, (0,))
lax.split(x, (1, 2))
lax.slice_in_dim(x, 0, 1)
lax.tile(x, (2,))
lax.associative_scan(jnp.{add multiply logaddexp maximum}, x)
lax.cond(x, lambda: 1, lambda: 2)
lax.cond(True, lambda a: a, lambda a: a, x)
lax.switch(x, [lambda: 1, lambda: 2.0 > 1])
lax.fori_loop(0, 3, lambda i, a: a, x)
lax.fori_loop(0, x, lambda i, a: a, 0)
lax.scan(lambda c, a: (c, a * 2), 0, x)
lax.map(lambda a: a + 1, x)
lax.while_loop(lambda a: False, lambda a: a, x)
lax.fft(x, 'fft', (3,))
lax.fft(x, 'rfft', (3,))
nn.{celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp}(x)
nn.{log_sigmoid log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid silu soft_sign}(x)
nn.{softmax softplus sparse_plus sparse_sigmoid squareplus standardize swish tanh}(x)
nn.gelu(x, approximate=False)
nn.one_hot(x, 3)
nn.one_hot(x, 3, dtype='float16')
nn.{softmax log_softmax logsumexp logmeanexp}(x, where=jnp.array([True, False, True]))
nn.{softmax log_softmax}(x, where=jnp.array([True, False, True]), axis=0)
nn.standardize(x, where=jnp.array([True, False, True]))
nn.logsumexp(x, return_sign=True)
nn.{celu elu leaky_relu}(x, 1)
nn.{logsumexp softmax}(x, axis=0, keepdims=True)
ops.{segment_sum segment_prod segment_max segment_min}(x, jnp.array([0, 0, 1]), 2)
ops.segment_sum(jnp.ones(3), x, 2)
image.resize(x, (5,), 'linear')
image.resize(x, (5,), 'nearest')
jsp.fft.{dct idct dctn idctn}(x)
jsp.integrate.trapezoid(x)
jsp.linalg.{block_diag circulant companion fiedler fiedler_companion hankel leslie toeplitz}(x)
jsp.linalg.{convolution_matrix}(x, 3)
jsp.ndimage.map_coordinates(x, [jnp.array([0.5, 1])], 1)
jsp.signal.{detrend stft istft welch}(x)
jsp.signal.detrend(x, type='constant')
jsp.signal.welch(x, 1.0, nperseg=2)
jsp.signal.stft(x, {1 2.0}, nperseg=2)
jsp.special.{dawsn digamma entr erf erfc erfcinv erfcx erfinv exp1 expi expit factorial}(x)
jsp.special.{fresnel gamma gammaln gammasgn i0 i0e i1 i1e log_ndtr log_softmax loggamma logit}(x)
jsp.special.{logsumexp ndtr ndtri sici softmax spence wofz}(x)
jsp.special.expn({1 2}, x)
jsp.special.multigammaln(x, {1 2})
jsp.special.lpmn(2, 2, x)
jsp.special.lpmn_values(2, 2, x, True)
jsp.special.polygamma({0 1 1.0}, x)
jsp.special.bessel_jn(x, v=2)
jsp.special.{comb poch zeta beta betaln xlogy xlog1py kl_div rel_entr}(x, {2 2.0})
jsp.special.{comb poch zeta beta betaln xlogy xlog1py boxcox boxcox1p}({2 2.0}, x)
jsp.special.boxcox1p(x, 2.0)
jsp.special.logsumexp(x, b={1 2.0 x})
jsp.special.logsumexp(x, return_sign=True)
jsp.stats.{mode rankdata sem}(x)
jsp.stats.rankdata(x, method='{min max dense ordinal}')
jsp.stats.gaussian_kde(jnp.ones((1, 3))).evaluate(x)
jsp.stats.bernoulli.{logpmf pmf cdf ppf}(x, 0.5)
jsp.stats.bernoulli.{logpmf pmf cdf ppf}(1, x)
jsp.stats.expon.{cdf logcdf logpdf logsf pdf ppf sf}(x)
jsp.stats.cauchy.{cdf isf logcdf logpdf logsf pdf ppf sf}(x)
jsp.stats.gumbel_l.{cdf logcdf logpdf logsf pdf ppf sf}(x)
jsp.stats.gumbel_r.{cdf logcdf logpdf logsf pdf ppf sf}(x)
jsp.stats.laplace.{cdf logpdf pdf}(x)
jsp.stats.logistic.{cdf isf logpdf pdf ppf sf}(x)
jsp.stats.norm.{cdf isf logcdf logpdf logsf pdf ppf sf}(x)
jsp.stats.uniform.{cdf logpdf pdf ppf}(x)
jsp.stats.poisson.entropy(x)
jsp.stats.pareto.{cdf logpdf sf}(x, 2.0)
jsp.stats.gamma.{cdf logpdf sf}(x, 2.0)
jsp.stats.t.{logpdf pdf}(x, 2.0)
jsp.stats.chi2.{cdf logpdf}(x, 2)
jsp.stats.vonmises.{logpdf pdf}(x, 2)
jsp.stats.dirichlet.{logpdf pdf}(x, jnp.ones(3))
jsp.stats.multivariate_normal.{logpdf pdf}(x, jnp.zeros(3), jnp.eye(3))
jsp.cluster.vq.vq(x, jnp.ones(3))
-x
+x
~x
abs(x)
x.astype('int8')
x.{sum prod mean var std max min cumsum cumprod round conj argmax argsort any all ptp flatten}()
x.{real imag T mT nbytes itemsize}
x[0]
x.at[0].{set add multiply min max divide power get}({1 2.5 True 1j})
x.at[0].get()
x.at[0].apply(jnp.sin)
jnp.array([x, 1])
jnp.array([x, 2.5])
jnp.array([x, x])
jnp.asarray(x, dtype='{int8 float16 complex64}')
jax.device_put(x)
jax.{grad value_and_grad jacfwd jacrev}(lambda a: jnp.sum(jnp.sin(a)))(x)
jax.jvp(jnp.sin, (x,), (x,))
jax.vmap(lambda a: a * 2)(x)
jax.vmap(lambda a: a * 2.0)(x)
jax.jit(lambda a: a)(x)
jax.checkpoint(lambda a: a * 2)(x)
jax.lax.linalg.tridiagonal_solve(x, x, x, jnp.ones((3, 1)))
jnp.dsplit(x[None, None], 3)
jnp.histogramdd(x[:, None], 3)
jnp.unravel_index(x, (2, 3))
jnp.ravel_multi_index((x, x), (2, 3), mode='clip')
lax.broadcast_in_dim(x, (2, 3), (1,))
lax.broadcast_to_rank(x, 2)
lax.collapse(x, 0)
lax.{index_in_dim unstack}(x, 0)
lax.reshape(x, (3, 1))
lax.slice(x, (0,), (1,))
lax.gather(jnp.ones((3, 2)), x[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 2))
lax.gather(x, jnp.array([[0]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,), fill_value=1)
lax.platform_dependent(x, default=jnp.sin)
lax.conv_general_dilated_patches(x[None, None], (1,), (1,), 'SAME')
lax.custom_root(lambda a: a * a - x, 1.0, lambda f, a: a, lambda g, a: a / g(1.0))
lax.custom_linear_solve(lambda a: a, x, lambda f, a: a)

jnp.{add subtract multiply divide true_divide floor_divide remainder mod fmod divmod}(x, y)
jnp.{power pow}(x, y)
jnp.{float_power equal not_equal greater greater_equal less less_equal maximum minimum fmax}(x, y)
jnp.{fmin logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift}(x, y)
jnp.{right_shift bitwise_left_shift bitwise_right_shift arctan2 atan2 hypot copysign}(x, y)
jnp.{nextafter logaddexp logaddexp2 heaviside ldexp gcd lcm isclose allclose array_equal}(x, y)
jnp.{array_equiv dot matmul inner outer kron vdot vecdot tensordot convolve correlate append}(x, y)
jnp.{clip searchsorted digitize full_like linspace logspace geomspace polyadd polysub polymul}(x, y)
jnp.{polydiv polyval isin cross trapezoid gradient cov corrcoef take}(x, y)
jnp.{setdiff1d union1d intersect1d setxor1d}(x, y, size=2)
jnp.{setdiff1d union1d intersect1d setxor1d result_type promote_types can_cast}(x, y)
jnp.{broadcast_arrays meshgrid ix_}(x, y)
jnp.{hstack vstack dstack column_stack concatenate stack block lexsort}([x, y])
jnp.{concatenate stack hstack}([x, y], dtype='{float16 int8}')
jnp.where(True, x, y)
jnp.where(x, y, {1 1.0})
jnp.where(x, {1 1.0}, y)
jnp.select([True], [x], y)
jnp.select([x], [y], 2.5)
jnp.insert(x, 0, y)
jnp.insert(x, y, 1)
jnp.delete(x, y)
jnp.array([x, y])
jnp.average(x, weights=y)
jnp.{quantile percentile nanquantile}(x, y)
jnp.histogram(x, weights=y)
jnp.histogram(x, y)
jnp.bincount(x, y, length=4)
jnp.ediff1d(x, y)
jnp.diff(x, prepend=y)
jnp.diff(x, append=y)
jnp.full_like(x, y, dtype='{float16 int32}')
jnp.clip(x, max=y)
jnp.clip(x, min=y, max=None)
jnp.einsum('i,i->i', x, y)
jnp.einsum('i,j->', x, y)
jnp.einsum('i,i', x, y, preferred_element_type='float32')
jnp.{dot vdot vecdot matmul inner tensordot}(x, y, preferred_element_type='float32')
jnp.{dot vdot vecdot}(x, y, preferred_element_type='bfloat16')
jnp.linspace(x, y, 3)
jnp.linspace(x, y, 3, retstep=True)
jnp.linspace(x, y, 3, dtype='int32')
jnp.arange(x, y)
jnp.arange(3, dtype=None) + jnp.add(x, y)
jnp.pad(x, 1, constant_values=y)
jnp.pad(x, 1, mode='linear_ramp', end_values=y)
jnp.nan_to_num(x, nan=y)
jnp.polyfit(x, y, 1)
jnp.polyint(x, k=y)
jnp.repeat(x, y, total_repeat_length=4)
jnp.resize(x, y)
jnp.roll(x, y)
jnp.tile(x, y)
jnp.{take take_along_axis}(x, y, 0)
jnp.take(x, y, fill_value=2.5, mode='fill')
jnp.choose(x, [y, y])
jnp.compress(x, y, size=2)
jnp.extract(x, y, size=2)
jnp.unwrap(x, y)
jnp.unwrap(x, period=y)
jnp.piecewise(x, [True], [lambda a: a + y])
jnp.piecewise(x, [y], [1, 2])
jnp.sum(x, where=y)
jnp.{mean var std max sum prod}(x, where=y, initial=0)
jnp.{mean var std any all nansum}(x, where=y)
jnp.{sum prod max min nanmax}(x, initial=y)
jnp.var(x, mean=y)
jnp.add.at(x, jnp.array([0]), y, inplace=False)
jnp.{maximum multiply logaddexp divide}.at(x, jnp.array([0]), y, inplace=False)
jnp.{add logaddexp maximum power less}.outer(x, y)
jnp.put(x, 0, y, inplace=False)
jnp.put(x, y, 1, inplace=False)
jnp.place(x, jnp.array([True, False, True]), y, inplace=False)
jnp.put_along_axis(x, jnp.array([0]), y, 0, inplace=False)
jnp.fill_diagonal(jnp.outer(x, x), y, inplace=False)
jnp.linalg.{outer vecdot cross tensordot matmul}(x, y)
lax.{add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt igamma igammac}(x, y)
lax.{igamma_grad_a le lt max min mul mulhi ne nextafter polygamma pow random_gamma_grad rem}(x, y)
lax.{shift_left shift_right_arithmetic shift_right_logical sub zeta dot batch_matmul}(x, y)
lax.mul(x, y, out_dtype='{float32 int32}')
lax.{dot}(x, y, preferred_element_type='float32')
lax.concatenate([x, y], 0)
lax.stack([x, y], 0)
lax.select(jnp.array([True, True, False]), x, y)
lax.select_n(x, y)
lax.select_n(jnp.array([True, True, False]), x, y)
lax.clamp(0, x, y)
lax.clamp(x, y, 1)
lax.full_like(x, y)
lax.pad(x, y, [(1, 1, 0)])
lax.dynamic_slice(x, (y,), (1,))
lax.dynamic_slice_in_dim(x, y, 1)
lax.dynamic_index_in_dim(x, y)
lax.dynamic_update_slice(x, y, (0,))
lax.dynamic_update_slice_in_dim(x, y, 0, 0)
lax.dynamic_update_index_in_dim(x, y, 0, 0)
lax.dot_general(x, y, (((0,), (0,)), ((), ())))
lax.dot_general(x, y, (((0,), (0,)), ((), ())), preferred_element_type='{float32 int32}')
lax.sort((x, y))
lax.sort_key_val(x, y)
lax.reduce(x, y, lax.{add max}, (0,))
lax.reduce_window(x, y, lax.{add max}, (1,), (1,), 'VALID')
lax.polynomial(x, y)
lax.index_take(x, (y,), (0,))
lax.broadcast_like(x, y)
lax.cond(True, lambda: x, lambda: y)
lax.cond(True, lambda a, b: a, lambda a, b: b, x, y)
lax.select(True, x, y)
lax.fori_loop(0, 3, lambda i, a: a + y, x)
lax.fori_loop(x, y, lambda i, a: a + 1, 0)
lax.while_loop(lambda a: True, lambda a: a * y, x)
lax.scan(lambda c, a: (c + a, c * a), x, y)
lax.map(lambda a: a[0] + a[1], (x, y))
lax.associative_scan(lambda a, b: (a[0] + b[0], a[1] * b[1]), (x, y))
nn.{celu elu leaky_relu one_hot squareplus}(x, y)
nn.{logsumexp softmax log_softmax logmeanexp standardize}(x, where=y)
nn.logsumexp(x, b=y)
nn.logsumexp(x, b=y, return_sign=True)
nn.standardize(x, mean=y)
nn.standardize(x, variance=y)
nn.standardize(x, epsilon=y)
ops.{segment_sum segment_prod segment_max segment_min}(x, y, 2)
jsp.integrate.trapezoid(x, y)
jsp.linalg.{block_diag hankel leslie toeplitz}(x, y)
jsp.ndimage.map_coordinates(x, [y], 1)
jsp.ndimage.map_coordinates(x, [jnp.ones(2)], 0, mode='constant', cval=y)
jsp.signal.{convolve correlate fftconvolve csd stft welch}(x, y)
jsp.signal.{convolve correlate}(x, y, method='fft')
jsp.special.{beta betaln boxcox boxcox1p comb expn gammainc gammaincc kl_div owens_t poch}(x, y)
jsp.special.{polygamma rel_entr xlog1py xlogy zeta multigammaln factorial logit}(x, y)
jsp.special.bessel_jn(x, v=y)
jsp.special.logsumexp(x, b=y)
jsp.special.{logsumexp log_softmax softmax}(x, where=y)
jsp.stats.gaussian_kde(x).{evaluate logpdf}(y)
jsp.stats.bernoulli.{cdf logpmf pmf ppf}(x, y)
jsp.stats.chi2.{cdf logcdf logpdf logsf pdf sf}(x, y)
jsp.stats.dirichlet.{logpdf pdf}(x, y)
jsp.stats.{expon cauchy norm uniform laplace logistic gumbel_l gumbel_r}.{pdf logpdf cdf ppf}(x, y)
jsp.stats.{expon cauchy norm gumbel_l gumbel_r}.{sf logsf logcdf}(x, y)
jsp.stats.{cauchy norm logistic}.isf(x, y)
jsp.stats.logistic.sf(x, y)
jsp.stats.gamma.{cdf logcdf logpdf logsf pdf sf}(x, y)
jsp.stats.gennorm.{cdf logpdf pdf}(x, y)
jsp.stats.geom.{logpmf pmf}(x, y)
jsp.stats.multinomial.{logpmf pmf}(x, 3, y)
jsp.stats.multivariate_normal.{logpdf pdf}(x, y, jnp.eye(3))
jsp.stats.multivariate_normal.{logpdf pdf}(x, y, 1.0)
jsp.stats.pareto.{cdf logcdf logpdf logsf pdf ppf sf}(x, y)
jsp.stats.poisson.{cdf logpmf pmf}(x, y)
jsp.stats.t.{logpdf pdf}(x, y)
jsp.stats.vonmises.{logpdf pdf}(x, y)
jsp.stats.wrapcauchy.{logpdf pdf}(x, y)
jsp.stats.sem(x, ddof=y)
jsp.cluster.vq.vq(x, y)
jsp.optimize.minimize(lambda a: jnp.sum((a - y) ** 2), x, method='BFGS').{x fun jac}
x + y
x - y
x * y
x / y
x // y
x % y
x ** y
x @ y
x & y
x | y
x ^ y
x << y
x >> y
x == y
x < y
divmod(x, y)
x[y]
x.at[0].{set add multiply min max divide power subtract}(y)
x.at[y].set(1)
x.at[y].get(mode='fill', fill_value=2)
x.at[0].get(mode='fill', fill_value=y)
x.dot(y)
x.clip(y)
jax.jvp(jnp.sin, (x,), (y,))
jax.jvp(lambda a, b: a * b, (x, y), (x, y))
jax.grad(lambda a, b: jnp.sum(a * b), (0, 1))(x, y)
jax.vjp(lambda a: a * 2, x)[1](y)
jax.vjp(jnp.multiply, x, y)[0]
jax.vmap(jnp.add)(x, y)
jax.random.{beta f}(jax.random.key(0), x, y)
lax.random_gamma_grad(x, y)
jnp.unravel_index(x, y)
jnp.ravel_multi_index((x, y), (2, 3), mode='wrap')
jnp.histogramdd((x, y), 2)
lax.rng_uniform(x, y, (2,))
lax.{scatter scatter_add scatter_sub scatter_mul scatter_min scatter_max}(x, FIRST, y[:1], PLAIN)

jnp.where(x, y, z)
jnp.{clip interp isclose}(x, y, z)
jnp.{arange linspace logspace geomspace gradient}(x, y, z)
jnp.select([x], [y], z)
jnp.einsum('i,i,i->', x, y, z)
jnp.einsum('i,j,k->ijk', x, y, z)
jnp.{concatenate stack}([x, y, z])
jnp.{meshgrid result_type broadcast_arrays}(x, y, z)
jnp.interp(x, y, z, left=0, right=1.5)
jnp.isclose(x, y, atol=z)
jnp.isclose(x, y, z)
jnp.average(x, weights=y) + z
jnp.nan_to_num(x, nan=y, posinf=z)
jnp.ediff1d(x, y, z)
jnp.diff(x, prepend=y, append=z)
jnp.insert(x, y, z)
jnp.choose(x, [y, z])
jnp.{sum max}(x, initial=y, where=z)
jnp.histogram(x, y, weights=z)
jnp.histogram2d(x, y, weights=z)
jnp.cov(x, y, fweights=z)
jnp.cov(x, y, aweights=z)
jnp.polyfit(x, y, 1, w=z)
jnp.polyfit(x, y, 1, rcond=z)
jnp.quantile(x, y, weights=z)
jnp.put(x, y, z, inplace=False)
jnp.put_along_axis(x, y, z, 0, inplace=False)
jnp.trapezoid(x, y, z)
jnp.linspace(x, y, 3) + z
jnp.linalg.multi_dot([x, y, z])
jnp.array([x, y, z])
lax.{betainc clamp select select_n}(x, y, z)
lax.dynamic_update_slice(x, y, (z,))
lax.dynamic_slice(jnp.ones((3, 3, 3)), (x, y, z), (1, 1, 1))
lax.pad(x, y, [(0, 1, 0)]) * z
lax.fori_loop(x, y, lambda i, a: a, z)
lax.linalg.tridiagonal_solve(x, y, z, jnp.ones((3, 1)))
lax.linalg.tridiagonal_solve(jnp.ones(3), x, y, z)
lax.reduce((x, y), (z, z), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,))
lax.cond(x, lambda: y, lambda: z)
nn.logsumexp(x, b=y, where=z)
nn.standardize(x, mean=y, variance=z)
jsp.integrate.trapezoid(x, y, z)
jsp.special.{betainc hyp1f1}(x, y, z)
jsp.special.{hyp2f1}(x, y, z, 1.0)
jsp.special.{hyp2f1}(1, x, y, z)
jsp.special.sph_harm_y(x, y, z, 0.5, n_max=3)
jsp.special.sph_harm_y(jnp.array([1, 1, 1]), x, y, z, n_max=3)
jsp.stats.bernoulli.{logpmf pmf}(x, y, z)
jsp.stats.{binom nbinom beta}.{logpmf logpdf}(x, y, z)
jsp.stats.betabinom.logpmf(x, 3, y, z)
jsp.stats.beta.{cdf sf pdf}(x, y, z)
jsp.stats.{norm cauchy uniform}.{logpdf cdf ppf}(x, y, z)
jsp.stats.{expon laplace logistic gumbel_l gumbel_r}.{logpdf cdf}(x, y, z)
jsp.stats.{gamma chi2 pareto t}.{logpdf}(x, y, z)
jsp.stats.{geom poisson}.logpmf(x, y, z)
jsp.stats.multinomial.logpmf(x, y, z)
jsp.stats.multivariate_normal.logpdf(x, y, z)
jsp.stats.truncnorm.{logpdf cdf sf}(x, y, z)
jsp.stats.truncnorm.pdf(x, 0, 1, y, z)
jsp.signal.stft(x, y, nperseg=2) + z
x.at[y].{set add max}(z)
x.at[y].get(mode='fill', fill_value=z)
x * y + z
lax.scan(lambda c, a: (c * a + z, c), x, y)
jax.vmap(jnp.where)(x, y, z)
"""

_MATRICES = """
jnp.{argmax argmin average corrcoef cov cumprod cumsum diag diagonal fliplr flipud}(x)
jnp.{matrix_transpose mean median permute_dims prod rot90 sort std sum trace transpose tril triu}(x)
jnp.{var vstack diag_indices_from unstack gradient}(x)
jnp.{all any max mean sum std var median cumsum nansum nanmean sort diff}(x, axis=0)
jnp.{hsplit vsplit}(x, 3)
jnp.einsum('ii->i', x)
jnp.einsum('ij,jk', x, x)
jnp.{tril_indices_from triu_indices_from}(x)
jnp.trace(x, dtype='{int8 float16}')
jnp.linalg.{cholesky cond det diagonal eig eigh eigvals eigvalsh inv matrix_norm matrix_rank}(x)
jnp.linalg.{matrix_transpose norm pinv qr slogdet svd svdvals trace vector_norm}(x)
jnp.linalg.norm(x, ord={1 2 jnp.inf 'nuc' 'fro'})
jnp.linalg.matrix_norm(x, ord={1 2 'nuc'})
jnp.linalg.cond(x, p={1 2 'fro'})
jnp.linalg.matrix_power(x, {0 1 2 3 -1})
jnp.linalg.multi_dot([x, x, x])
jnp.linalg.qr(x, mode='{r complete}')
jnp.linalg.svd(x, compute_uv=False)
jnp.linalg.svd(x, hermitian=True)
jnp.linalg.trace(x, dtype='float16')
jnp.linalg.{cholesky}(x, upper=True)
jnp.linalg.tensorinv(x, 1)
jnp.fft.{fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift}(x)
lax.{transpose}(x, (1, 0))
lax.{reduce_sum reduce_max}(x, (0, 1))
lax.linalg.{cholesky eig eigh hessenberg lu qdwh qr schur svd tridiagonal}(x)
lax.linalg.householder_product(x, jnp.ones(3))
lax.linalg.lu_pivots_to_permutation(x, 3)
nn.{glu log_softmax logsumexp softmax standardize}(x)
image.resize(x, (5, 5), '{nearest linear cubic lanczos3}')
image.scale_and_translate(x, (5, 5), (0, 1), jnp.ones(2), jnp.zeros(2), 'linear')
jsp.fft.{dctn idctn}(x)
jsp.linalg.{block_diag cho_factor cholesky det eigh expm hessenberg inv lu lu_factor polar qr}(x)
jsp.linalg.{schur sqrtm svd}(x)
jsp.linalg.eigh(x, eigvals_only=True)
jsp.linalg.svd(x, compute_uv=False)
jsp.linalg.schur(x, output='complex')
jsp.linalg.funm(x, jnp.exp)
jsp.linalg.expm(x, upper_triangular=True)
jsp.ndimage.map_coordinates(x, [jnp.ones(2), jnp.ones(2)], 1)
jsp.stats.mode(x)
jsp.stats.{rankdata sem}(x, axis=0)
jsp.signal.{welch stft istft detrend}(x)
jsp.cluster.vq.vq(x, jnp.ones((2, 3)))
jsp.spatial.transform.Rotation.from_matrix(x).as_quat()
x.{trace diagonal sum transpose}()
x @ x

jnp.{dot matmul inner outer kron vdot vecdot tensordot matvec vecmat cross compress}(x, y)
jnp.{concatenate hstack vstack dstack column_stack block append}([x, y])
jnp.append(x, y, axis=0)
jnp.einsum('ij,jk->ik', x, y)
jnp.matmul(x, y, preferred_element_type='{float32 bfloat16 int32}')
jnp.fill_diagonal(x, y, inplace=False)
jnp.linalg.{cross lstsq matmul outer solve tensordot tensorsolve vecdot}(x, y)
jnp.linalg.matrix_rank(x, y)
jnp.linalg.lstsq(x, y, rcond=0.1)
jnp.linalg.multi_dot([x, y])
lax.{dot batch_matmul}(x, y)
lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type='float32')
lax.ragged_dot(x, y[None], jnp.array([3]))
lax.linalg.{cholesky_update symmetric_product householder_product}(x, y)
lax.linalg.triangular_solve(x, y, left_side=True)
lax.linalg.cholesky_update(x, jnp.diagonal(y))
lax.conv(x[None, None], y[None, None], (1, 1), 'SAME')
lax.conv_transpose(x[None, None], y[None, None], (1, 1), 'SAME')
lax.conv_general_dilated(x[None], y[None], (1,), 'SAME', preferred_element_type='float32')
lax.conv_general_dilated_local(x[None], y[None], (1,), 'SAME', (1,))
lax.scaled_dot(x, y)
lax.conv_with_general_padding(x[None], y[None], (1,), 'SAME', None, None)
image.scale_and_translate(x, (5, 5), (0, 1), jnp.ones(2), jnp.diagonal(y)[:2], 'linear')
jsp.linalg.{block_diag expm_frechet qr_multiply rsf2csf solve solve_triangular eigh}(x, y)
jsp.linalg.cho_solve((x, True), y)
jsp.linalg.lu_solve((x, jnp.arange(3)), y)
jsp.linalg.solve(x, y, assume_a='{pos}')
jsp.linalg.eigh_tridiagonal(jnp.diagonal(x), jnp.diagonal(y)[:2], eigvals_only=True)
jsp.ndimage.map_coordinates(x, y, 1)
jsp.signal.{convolve2d correlate2d convolve correlate fftconvolve csd}(x, y)
jsp.sparse.linalg.{cg gmres bicgstab}(lambda v: x @ v, y)
jsp.sparse.linalg.{cg gmres bicgstab}(x, y)
jsp.sparse.linalg.{cg gmres bicgstab}(x, x[0], y[0])
jsp.stats.multivariate_normal.logpdf(x, 0.0, y)
jsp.stats.multivariate_normal.logpdf(jnp.ones(3), x[0], y)
jsp.cluster.vq.vq(x, y)
jsp.interpolate.RegularGridInterpolator((jnp.arange(3.0), jnp.arange(3.0)), x)(y[:, :2])
jsp.interpolate.RegularGridInterpolator((x[0], x[0]), y, 'nearest')(jnp.ones((3, 2)))
jsp.spatial.transform.Rotation.from_quat(jnp.pad(x, ((0, 0), (0, 1)))).apply(y)
nn.scaled_dot_general(x, y, (((1,), (0,)), ((), ())))
x @ y
lax.scan(lambda c, a: (c @ a, c), x, y[None])

jnp.linalg.multi_dot([x, y, z])
jnp.einsum('ij,jk,kl->il', x, y, z)
lax.dot_general(x, y, (((1,), (0,)), ((), ()))) @ z
lax.linalg.ormqr(x, jnp.diagonal(y), z)
lax.linalg.symmetric_product(x, y) * z
lax.clamp(x, y, z)
nn.dot_product_attention(x[None, None], y[None, None], z[None, None])
nn.dot_product_attention(x[:, None], y[:, None], z[:, None])
nn.dot_product_attention(x[:, None], x[:, None], y[:, None], bias=z[None])
nn.scaled_matmul(x[None], y[None], z[None], z[None])
jsp.linalg.solve_sylvester(x, y, z)
jsp.sparse.linalg.{cg gmres bicgstab}(x, y, z)
jsp.interpolate.RegularGridInterpolator((x[0], y[0]), z)(jnp.ones((2, 2)))
jsp.stats.multivariate_normal.{logpdf pdf}(x, y[0], z)
jsp.spatial.transform.Slerp.init(jnp.arange(3.0), jsp.spatial.transform.Rotation.from_matrix(x))(y)
"""

_CHOICE = re.compile(r"\{([^{}]+)\}")


def written_out(line: str) -> list[str]:
    """Each choice of the names in braces.

    >>> written_out("jnp.{sin cos}(x)")
    ['jnp.sin(x)', 'jnp.cos(x)']
    """
    choice = _CHOICE.search(line)
    if choice is None:
        return [line]
    return [made for name in choice[1].split()
            for made in written_out(line[:choice.start()] + name + line[choice.end():])]


def expressions(text: str) -> list[str]:
    return list(dict.fromkeys(e for line in text.split("\n") if line for e in written_out(line)))


CALLS = {"vectors": expressions(_VECTORS), "matrices": expressions(_MATRICES)}

# Functions of sizes, files, dtypes and named axes.
NOT_OF_ARRAYS = frozenset("""
    jnp.array_repr jnp.array_str jnp.bartlett jnp.blackman jnp.broadcast_shapes jnp.diag_indices
    jnp.einsum_path jnp.empty jnp.from_dlpack jnp.frombuffer jnp.fromfile jnp.fromfunction
    jnp.fromiter jnp.fromstring jnp.get_printoptions jnp.hamming jnp.hanning jnp.identity
    jnp.indices jnp.isdtype jnp.issubdtype jnp.iterable jnp.load jnp.mask_indices jnp.printoptions
    jnp.save jnp.savez jnp.set_printoptions jnp.tri jnp.tril_indices jnp.triu_indices
    jsp.linalg.dft jsp.linalg.hadamard jsp.linalg.helmert jsp.linalg.hilbert jsp.linalg.invhilbert
    jsp.linalg.invpascal jsp.linalg.pascal jsp.special.bernoulli
    lax.DotDimensionNumbers lax.after_all lax.all_gather lax.all_to_all lax.axis_index
    lax.axis_size lax.broadcast_shapes lax.broadcasted_iota lax.composite lax.conv_dimension_numbers
    lax.conv_general_permutations lax.conv_general_shape_tuple lax.conv_shape_tuple
    lax.conv_transpose_shape_tuple lax.create_token lax.dce_sink lax.empty lax.iota
    lax.padtype_to_pads lax.pbroadcast lax.pcast lax.pmax lax.pmean lax.pmin lax.ppermute
    lax.pshuffle lax.psum lax.psum_scatter lax.psum_scatter_start lax.pswapaxes
    lax.ragged_all_to_all lax.ragged_dot_general lax.reduce_window_shape_tuple
    lax.rng_bit_generator lax.scatter_apply lax.shape_as_value lax.stage
    lax.with_sharding_constraint nn.get_scaled_dot_general_config
""".split())  # noqa: SIM905

# Differences that stay: a pattern of the call and the oracle's result, what raises ("ours",
# "theirs", or nothing where types differ), and why.
EXPLAINED = [(re.compile(pattern), raising, reason) for pattern, raising, reason in (
    (r"\b(u?int4|float(4|6|8)_\w+)\b", "theirs", "the oracle has no rule for such narrow types"),
    (r"^\w+: (?!(x|divmod) |jnp\.(add|subtract|multiply|(true_)?divide|(not_)?equal|less|greater|"
     r"where|clip|maximum|minimum)\().*2\*\*31", "theirs",
     "what is traced does not look at integers that stay what they are, or become floats"),
    (r"(^\w+: x (\*\*?|//|[-+/|^]|==|<<?)|divmod|x\.clip)\b.*2\*\*31", "theirs",
     "operators of scalars alone are Python's"),
    (r"(power|pow|piecewise|dynamic_slice\w*|cond|fiedler_companion|x\.at\[y\]\.\w+|"
     r"pad\(x, 1, mode='linear_ramp', end_values=y|bessel_jn)\(?.*2\*\*31", "ours",
     "it wraps round to -2**31 in the oracle"),
    (r"lax\.fori_loop\(.*2\*\*31", "ours", "the oracle refuses the bound when the loop runs"),
    (r"(arange|multigammaln)\(x, y\) \(.*2\*\*31", "ours", "no memory holds so many numbers"),
    # Where the oracle gives a type, or refuses one, by an accident of how it computes.
    (r"(arg(max|min)|from_matrix|rng_uniform)\(.*complex|cumlogsumexp\(|lax\.conv_transpose\(x|"
     r"lax\.reshape\(x, \(3, 1\)\)", "ours", "the oracle refuses them as it lowers the program"),
    (r"special\.owens_t\(x, y\) \(.*complex", "ours", "it takes absolute values of complex h"),
    (r"norm\.ppf\(x, y(, z)?\) \(.*complex", "ours", "it drops imaginary parts"),
    (r"jnp\.tile\(x, y\) \(.*, (NumPy|Python) (float|complex)", "ours",
     "the oracle refuses them where axes do not have one element"),
    (r"NumPy.*: raises (Concr|Tracer|NonConc)", "theirs", "constants are known inside programs"),
    (r"ix_\(.*NumPy bool.*: raises NotImpl", "theirs", "constants are known inside programs"),
    (r"(trim_zeros|choose|segment_\w+)\(.*: raises \w*Concret", "theirs",
     "constants are known inside programs"),
    (r": raises (AssertionError|AttributeError)", "theirs", "a fault of the oracle's"),
    (r"logaddexp.*(reduceat|accumulate)\(", "theirs", "of integers it makes a loop of two types"),
    (r"logaddexp\.reduceat\(.*weak complex", "", "as other functions of weakly typed arrays"),
    (r"vector_norm\(x, ord=[013j]", "theirs", "of integers it takes the smallest float"),
    (r"vector_norm\(x, ord=3", "", "of integers it truncates roots"),
    (r"logmeanexp\(x, where=.* \((\w+ )?bool", "", "it takes the logarithm of an integer"),
    (r"quantile\(", "theirs", "integers are points as well"),
    (r"median\(x, keepdims=True\) \((Py|Nu|.*\[\])", "", "of a scalar it gives a vector"),
    (r"einsum\('(i,i->i|ij,jk->ik)', x, y\) \(.*weak complex128", "theirs",
     "no product may be of a wider type than the result"),
    (r"unravel_index\(x, y\) \(.*bool\)", "ours", "a truth value is no shape"),
    (r"linalg\.(cg|bicgstab|gmres)\(", "",
     "traced it has the type of b, and computed that of the solution"),
    (r"linalg\.cg\(.*float8_\w+, weak|^strict.*linalg\.(cg|bicgstab|gmres)\(.*weak", "ours",
     "what is solved is of strong type"),
    (r"sph_harm_y", "", "of whole angles beside a weak order it is of single precision"),
    # What this side takes as well; there the oracle speaks of what it is made of.
    (r"lax\.(reduce|reduce_window)\(", "theirs", "starting values take the type of the operand"),
    (r"lax\.cond\(.*bfloat16\[\]", "theirs", "bfloat16 is a number"),
    (r"lax\.convert_element_type\(.*Python complex", "theirs", "as arrays of complex numbers"),
    (r"nn\.(sigmoid|silu|swish|log1mexp|log_sigmoid|softmax|log_softmax|standardize)\(|"
     r"special\.(softmax|log_softmax|spence|sph_harm_y)\(|(vander|interp|polyfit|fftfreq)\(|"
     r"linalg\.(hessenberg|polar|schur|funm|expm_frechet|rsf2csf|eigh_tridiagonal)\(|"
     r"linalg\.(cg|gmres|bicgstab|lu_solve|multi_dot)\(|from_matrix\(|"
     r"stats\.(norm|truncnorm)\.|optimize\.minimize", "theirs", "arguments are promoted"),
    (r"(meshgrid|convolution_matrix|hankel|jnp\.put|repeat|piecewise|map_coordinates|resize|"
     r"vjp|linear_ramp.*)\(?", "theirs", "scalars are vectors of one number, and are converted"),
    (r"^strict\w*: (?!.*\by\b).*: raises TypePromotionError", "theirs",
     "promotion within is not the user's"),
    (r"^strict\w*: (nn\.(c?elu|squareplus|leaky_relu|logsumexp|logmeanexp)|lax\.index_take|"
     r"jsp\.(signal\.(stft|welch)|special\.(owens_t|logsumexp|hyp1f1)|spatial)|"
     r"jnp\.(\w+\.at|select|take|array|unwrap|unravel_index|fill_diagonal|linalg\.matrix_rank)\b)"
     r".*: raises TypePromotionError", "theirs", "promotion within is not the user's"),
)]


def explanation(call: str, ours: str, theirs: str) -> str | None:
    """Why the results of the call differ, where that stays."""
    raising = ("ours" if ours.startswith("raises") else
               "theirs" if theirs.startswith("raises") else "")
    return next((reason for pattern, side, reason in EXPLAINED
                 if side == raising and pattern.search(f"{call}: {theirs}")), None)
