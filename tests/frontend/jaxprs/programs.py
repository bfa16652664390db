"""Functions written for JAX that have every primitive there is a rule for, and JAX's transformations."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(0)
X, V = rng.normal(size=(3, 4)), rng.normal(size=4)
A, S = rng.normal(size=(4, 4)), X.T @ X + np.eye(4)
ROWS = np.array([0, 2])
IMAGES, WEIGHTS = rng.normal(size=(2, 2, 5, 4)), rng.normal(size=(3, 2, 3, 2))
W, B = rng.normal(size=(4, 3)), rng.normal(size=3)
LABELS = np.array([0, 2, 1])


def perceptron(w, b, x):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(jnp.tanh(x @ w + b)) * jax.nn.one_hot(LABELS, 3), 1))


def layer(w, b):
    return jnp.tanh(X @ w + b).sum(0)


def softplus_sum(x):
    return jnp.sum(jax.nn.softplus(x @ W + B))


def doubled(count):
    return lax.while_loop(lambda s: s[0] < count, lambda s: (s[0] + 1, s[1] * 2), (0, count))


@jax.custom_jvp
def cube(x):
    return x**3


cube.defjvp(lambda primals, tangents: (cube(primals[0]), 3 * primals[0] ** 2 * tangents[0]))


@jax.custom_vjp
def clipped(x):
    return jnp.clip(x, -1, 1)


clipped.defvjp(lambda x: (clipped(x), None), lambda kept, cotangent: (cotangent,))


@jax.custom_batching.custom_vmap
def twice_the_cosine(x):
    return jnp.cos(x) * 2


twice_the_cosine.def_vmap(lambda size, batched, x: (jnp.cos(x) * 2, batched[0]))

TRANSFORMATIONS = {
    "grad": (jax.grad(perceptron, (0, 1)), W, B, X),
    "value_and_grad": (jax.value_and_grad(perceptron), W, B, X),
    "jacfwd": (jax.jacfwd(layer), W, B),
    "jacrev": (jax.jacrev(layer, 1), W, B),
    "hessian": (jax.hessian(perceptron, 1), W, B, X),
    "jvp": (lambda x, t: jax.jvp(lambda x: jnp.sin(x) * x, (x,), (t,)), V, V * 2),
    "vjp": (lambda x, c: jax.vjp(lambda x: jnp.sin(x) * x, x)[1](c)[0], V, V * 2),
    "linearize": (lambda x: jax.linearize(lambda x: jnp.exp(x) * x, x)[1](jnp.ones(4)), V),
    "vmap": (jax.vmap(lambda x: jnp.tanh(x @ W + B)), X),
    "vmap of grad": (jax.vmap(jax.grad(softplus_sum)), X),
    "jit in jit": (jax.jit(lambda x: jax.jit(jnp.sin)(x) + jax.jit(jnp.cos)(x)), V),
    "checkpoint": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.exp(x)).sum())), V),
    "custom_jvp": (lambda x: (cube(x), jax.grad(lambda x: cube(x).sum())(x)), V),
    "custom_vjp": (lambda x: (clipped(x), jax.grad(lambda x: clipped(x).sum())(x)), V),
    "cond of a constant": (lambda x: lax.cond(x.shape[0] > 3, jnp.sin, jnp.cos, x), V),
    "grad of scan": (jax.grad(lambda x, v: lax.scan(lambda h, x: (jnp.tanh(h + x), h), v, x)[0].sum()), X, V),
}

FUNCTIONS = {
    "exponentials": (lambda x: (jnp.exp(x), jnp.exp2(x), jnp.expm1(x), jnp.log1p(x**2), lax.logistic(x)), V),
    "trigonometry": (lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.arctan2(x, x + 1), jnp.arctan(x)), V),
    "inverses": (
        lambda x: (jnp.arcsin(x), jnp.arccos(x), jnp.arctanh(x), jnp.arccosh(1 + x)),
        np.array([0.1, 0.5]),
    ),
    "hyperbolic": (lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.tanh(x), jnp.arcsinh(x)), V),
    "roots": (
        lambda x: (jnp.sqrt(x**2), lax.rsqrt(x**2), jnp.cbrt(x), lax.square(x), x**-3, jnp.abs(x) ** x),
        V,
    ),
    "rounding": (
        lambda x: (
            jnp.round(x),
            lax.round(x * 2, lax.RoundingMethod.AWAY_FROM_ZERO),
            jnp.floor(x),
            jnp.ceil(x),
        ),
        np.array([0.25, -0.75, 1.25, 2.5, -2.5]),
    ),
    "integers": (
        lambda a, b: (lax.div(a, b), lax.rem(a, b), a // b, a % b),
        np.array([7, -7, 7, -7]),
        np.array([2, 2, -2, -2]),
    ),
    "high halves of products": (
        lambda a, b: (lax.mulhi(a, b), lax.mulhi(a.astype("uint32"), b.astype("uint32"))),
        np.array([3, -(2**62), 2**63 - 1]),
        np.array([-5, 7, 2**63 - 1]),
    ),
    "bits": (
        lambda a: (lax.shift_right_logical(a, 1), a << 2, a >> 1, a ^ 3, ~a, a & 6, a | 1),
        np.array([-8, 5]),
    ),
    "comparisons": (
        lambda x: (
            x > 0,
            x >= 0,
            x < 0,
            x <= 0,
            x == 0,
            x != 0,
            jnp.isfinite(x),
            jnp.sign(x),
            jnp.nextafter(x, 9.0),
        ),
        np.array([1.0, 0.0, -2.0, np.inf, np.nan]),
    ),
    "error functions": (
        lambda x: (
            jax.scipy.special.erf(x),
            jax.scipy.special.erfc(x),
            jax.scipy.special.erfinv(jnp.tanh(x)),
        ),
        V,
    ),
    "gamma": (
        lambda x: (jax.scipy.special.gammaln(x), jax.scipy.special.digamma(x + 3), lax.polygamma(1.0, x + 4)),
        V,
    ),
    "incomplete gamma": (
        jax.value_and_grad(lambda a, x: jax.scipy.special.gammainc(a, x).sum(), (0, 1)),
        np.array([0.5, 3.0]),
        np.array([0.4, 2.0]),
    ),
    "incomplete": (
        lambda a, x: (jax.scipy.special.gammaincc(a, x), jax.scipy.special.betainc(a, 2.0, x / 4)),
        np.array([0.5, 3.0]),
        np.array([0.4, 2.0]),
    ),
    "complex": (
        lambda x: (lax.complex(x, x + 1) ** 2, jnp.conj(1j * x), jnp.real(1j * x), jnp.imag(1j * x)),
        V,
    ),
    "precision": (lambda x: (lax.reduce_precision(x, 8, 23), x.astype("float32"), x.astype(int)), V),
    "sum and others": (
        lambda x: (
            x.sum(1),
            x.max(0),
            x.min((0, 1)),
            x.prod(1),
            (x > 0).any(0),
            (x > 0).all(),
            x.argmax(1),
            x.argmin(),
        ),
        X,
    ),
    "running": (
        lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 1), lax.cumprod(x, 0), lax.cummin(x, reverse=True)),
        X,
    ),
    "shapes": (
        lambda x: (
            x.T.reshape(2, 6),
            x[None, ::2, 3:0:-2],
            jnp.split(x, [1, 3], 1),
            jnp.stack([x, x]),
            jnp.concatenate([x, x], 1),
            jnp.flip(x, 1),
            jnp.tile(x, (2, 1)),
            jnp.broadcast_to(x, (2, 3, 4)),
        ),
        X,
    ),
    "pad": (
        lambda x: (lax.pad(x, 0.0, ((1, -1, 1), (-1, 2, 0))), lax.pad(x, 1.0, ((-3, 0, 0), (0, 0, 0)))),
        X,
    ),
    "where": (
        lambda x: (
            jnp.where(x > 0, x, 0),
            lax.clamp(-0.5, x, 0.5),
            lax.select_n(jnp.array(2), x, x * 2, x * 3),
        ),
        X,
    ),
    "products": (
        lambda x, w: (x @ w, jnp.einsum("ij,kj->ki", x, x), jnp.outer(x[0], x[1]), jnp.tensordot(x, x)),
        X,
        W,
    ),
    "product of batches": (lambda x: jnp.einsum("bij,bkj->bik", x, x), rng.normal(size=(2, 3, 4))),
    "made": (lambda x: jnp.eye(4) + jnp.tri(4) + jnp.arange(4.0) + jnp.linspace(0, 1, 4) + x, V),
    "rows": (lambda x, i: (x[i], x[:, i], x[i, 1:3], x[i, i], x[i[:, None], i]), X, ROWS),
    "rows outside": (
        lambda x, i: (
            x.at[i].get(mode="fill"),
            x.at[:, i].get(mode="clip"),
            x.at[i].get(mode="fill", fill_value=7.0),
        ),
        X,
        np.array([0, 5, -7]),
    ),
    "along": (lambda x, i: jnp.take_along_axis(x, i, 1), X, np.array([[0], [3], [1]])),
    "slices of batches": (jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,))), X, np.array([0, 2, 9])),
    "set": (lambda x, i: (x.at[i].set(1.0), x.at[1, 2:].set(i * 1.0), x.at[i, i].set(0.0)), X, ROWS),
    "set outside": (lambda x, i: x.at[i].set(1.0, mode="drop"), X, np.array([1, 7])),
    "add": (
        lambda x, i: (x.at[i, 1:3].add(2.0), x.at[i].add(-1.0, mode="drop"), x.at[:, i].subtract(1.0)),
        X,
        np.array([0, 0]),
    ),
    "multiply": (
        lambda x, i: (
            x.at[i].multiply(2.0, unique_indices=True),
            x.at[i].max(0.1, unique_indices=True),
            x.at[i].min(0.1, unique_indices=True),
        ),
        X,
        ROWS,
    ),
    "gradient of rows": (jax.grad(lambda x, i: (x[i] ** 2).sum()), X, np.array([0, 0, 2])),
    "moving slice": (
        lambda x, i: (lax.dynamic_slice(x, (i, 0), (2, 2)), lax.dynamic_update_slice(x, x[:2, :2], (i, i))),
        X,
        3,
    ),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda x: (x + 1, x[0]), lambda x: (x * 2, x[1]), x), V),
    "switch": (lambda k, x: lax.switch(k, [lambda x: x + 1, lambda x: x * 2, jnp.sin], x), 1, V),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, x: x * i + i, x), V),
    "while_loop": (lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)), V),
    "scan": (lambda x, v: lax.scan(lambda h, x: (jnp.tanh(h + x), h * 2), v, x), X, V),
    "scan from the end": (
        lambda x, v: lax.scan(lambda h, x: (jnp.tanh(h + x), h * 2), v, x, reverse=True),
        X,
        V,
    ),
    "scan of nothing": (lambda v: lax.scan(lambda h, x: (h, h), v, jnp.zeros((0, 2))), V),
    "order": (lambda x: (jnp.argsort(x), jnp.sort(x), jnp.lexsort((x > 0, x)), lax.top_k(x, 2)), V),
    "searchsorted": (jnp.searchsorted, np.sort(V), np.array([0.1, np.nan, -9.0, 9.0])),
    "histogram": (lambda x: jnp.histogram(x, 3)[0], V),
    "interp": (lambda x: jnp.interp(x, jnp.arange(3.0), jnp.arange(3.0) ** 2), V),
    "median": (lambda x: (jnp.median(x), jnp.percentile(x, 30.0), jnp.unique(x > 0, size=2)), V),
    "fft": (lambda x: (jnp.fft.irfft(jnp.fft.rfft(x) * 2), jnp.fft.fft2(x), jnp.fft.ifft(x, axis=0)), X),
    "solve": (jnp.linalg.solve, S, V),
    "gradient of solve": (jax.grad(lambda a, b: jnp.linalg.solve(a, b).sum(), (0, 1)), S, V),
    "triangular": (
        lambda a, b: (
            jax.scipy.linalg.solve_triangular(a, b, lower=True),
            jax.scipy.linalg.solve_triangular(a, b, trans=1),
            lax.linalg.triangular_solve(a, b[None], lower=True, unit_diagonal=True),
        ),
        S,
        V,
    ),
    "determinants": (lambda a: (jnp.linalg.slogdet(a), jnp.linalg.det(a), jnp.linalg.inv(a)), A),
    "gradient of logdet": (jax.grad(lambda a: jnp.linalg.slogdet(a)[1]), S),
    "cholesky": (jax.value_and_grad(lambda a: jnp.linalg.cholesky(a).sum()), S),
    "eigh": (lambda a: (jnp.linalg.eigh(a)[0], jnp.abs(jnp.linalg.eigh(a)[1])), S),
    "svd": (lambda a: (jnp.linalg.svd(a)[1], jnp.linalg.svd(a, compute_uv=False)), X),
    "qr": (lambda a: jnp.abs(jnp.linalg.qr(a)[1]), A),
    "least squares": (lambda a, b: (jnp.linalg.lstsq(a, b)[0], jnp.linalg.pinv(a[:3])), S, V),
    "lu": (lambda a, x: (lax.linalg.lu(a), lax.linalg.lu(x), lax.linalg.lu(x.T)), A, X),
    "exchanges": (lambda p: lax.linalg.lu_pivots_to_permutation(p, 4), np.array([2, 2, 3, 3], "int32")),
    "convolution": (
        lambda x, w: (
            lax.conv(x, w, (1, 1), "SAME"),
            lax.conv_general_dilated(x, w, (2, 1), "VALID", rhs_dilation=(1, 2)),
            lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (-1, 2)), lhs_dilation=(2, 1)),
        ),
        IMAGES,
        WEIGHTS,
    ),
    "convolution, channels last": (
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        IMAGES.transpose(0, 2, 3, 1).copy(),
        WEIGHTS.transpose(2, 3, 1, 0).copy(),
    ),
    "gradient of convolution": (
        jax.grad(lambda x, w: (lax.conv(x, w, (2, 2), "SAME") ** 2).sum(), (0, 1)),
        IMAGES,
        WEIGHTS,
    ),
    "groups": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=2),
        IMAGES,
        rng.normal(size=(4, 1, 3, 3)),
    ),
    "pooling": (
        lambda x: (
            lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "SAME"),
            lax.reduce_window(x, jnp.inf, lax.min, (1, 1, 2, 2), (1, 1, 1, 1), "VALID"),
        ),
        IMAGES,
    ),
    "gradient of pooling": (
        jax.grad(
            lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "SAME") ** 2).sum()
        ),
        IMAGES,
    ),
    "mean of windows": (
        jax.grad(
            lambda x: (lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 1), "VALID") ** 2).sum()
        ),
        IMAGES,
    ),
    "approximate top": (lambda x: (lax.approx_max_k(x, 2), lax.approx_min_k(x, 2, 0)), X),
    "scaled Bessel functions": (
        jax.value_and_grad(lambda x: (jax.scipy.special.i0e(x) * jax.scipy.special.i1e(x)).sum()),
        np.array([0.0, 0.5, -3.0, 800.0]),
    ),
    "zeta": (
        jax.scipy.special.zeta,
        np.array([1.5, 2.0, 7.0, 1.0, 0.5, 2.0, 2.5, 3.0]),
        np.array([0.5, 3.0, 20.0, 2.0, 2.0, -3.0, -2.5, -1.5]),
    ),
    "counted bits": (
        lambda a, b: (lax.population_count(a), lax.clz(a), lax.clz(b), lax.population_count(b)),
        np.array([-8, 0, 5, 2**40]),
        np.array([1, 255, 0, 77], "uint8"),
    ),
    "folded": (
        lambda x, n: (
            lax.reduce(x, 1.0, lambda a, b: jnp.where(a > b, a, b) * 1.0, (1,)),
            lax.reduce((x, n), (-jnp.inf, 0), lambda a, b: (jnp.maximum(a[0], b[0]), a[1] + b[1]), (0,)),
            lax.reduce_xor(n, axes=(0,)),
            lax.reduce(x[:0], 2.0, lambda a, b: a * b, (0,)),
        ),
        X,
        np.arange(12).reshape(3, 4),
    ),
    "folded windows": (
        lambda x: (
            lax.reduce_window(x, 1.0, lax.mul, (2, 3), (1, 2), "SAME"),
            lax.reduce_window(x, 1.0, lax.mul, (2, 2), (1, 1), "VALID", window_dilation=(2, 1)),
        ),
        X,
    ),
    "tangents of pooling": (
        lambda x, t: jax.jvp(
            lambda x: (
                lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME"),
                lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 2), "VALID"),
            ),
            (x,),
            (t,),
        )[1],
        X,
        X**2,
    ),
    "running logsumexp": (
        lambda x: (lax.cumlogsumexp(x * 300, 1), lax.cumlogsumexp(x, 0, reverse=True)),
        X,
    ),
    "eig": (lambda a: (jnp.linalg.eig(a)[0], jnp.abs(jnp.linalg.eig(a)[1]), jnp.linalg.eigvals(a)), A),
    "tridiagonal": (
        lax.linalg.tridiagonal_solve,
        V,
        V + 3,
        V,
        rng.normal(size=(4, 2)),
    ),
    "updates of factors": (
        lambda r, w: (
            lax.linalg.cholesky_update(r, w),
            lax.linalg.symmetric_product(r, r, alpha=2, beta=0.5),
        ),
        np.linalg.cholesky(S).T.copy(),
        V,
    ),
    "reflections": (lax.linalg.householder_product, A[:, :3].copy(), V[:3]),
    "factors of reflections": (
        lambda a, c: (
            jnp.linalg.qr(a[:, :3], mode="raw"),
            lax.linalg.hessenberg(a),
            lax.linalg.hessenberg(c),
        ),
        A,
        A + 1j * A.T,
    ),
    "reflections of both sides": (
        lambda a: [lax.linalg.tridiagonal(a, lower=lower) for lower in (True, False)],
        np.stack([S, A]) + 1j * A,
    ),
    "products of reflections": (
        lambda v, t, c: [
            lax.linalg.ormqr(v, t, c if left else c.T, left=left, transpose=transpose)
            for left in (True, False)
            for transpose in (True, False)
        ],
        A[:, :3] + 1j * A[:, 1:],
        V[:3] * (1 - 0.5j),
        A[:, :2] * 1j,
    ),
    "unstacked": (lambda x: tuple(jnp.unstack(x, axis=1)), X),
    "linear call": (
        lambda x: jax.custom_derivatives.linear_call(lambda r, x: r * x, lambda r, x: r * x, 2.0, x),
        V,
    ),
    "on a device": (
        lambda x: lax.with_sharding_constraint(x, jax.sharding.SingleDeviceSharding(jax.devices()[0])),
        V,
    ),
    "names and places": (lambda x: checkpoint_name(jax.device_put(x) * 2, "twice"), V),
    "composite": (lax.composite(lambda x: jnp.sin(x) * 2, "own.doubled"), V),
    "custom_vmap": (twice_the_cosine, V),
    "barrier": (lambda x: (lax.optimization_barrier(x), lax.stop_gradient(x)), V),
    "gradients by one minus a square": (
        jax.grad(lambda x: jnp.sum(jnp.tanh(x) * jax.nn.gelu(x) + jnp.arcsin(x) * jnp.arctanh(x))),
        np.array([0.3, -0.9999999, 0.1]),
    ),
    "gradient of erf": (
        jax.grad(lambda x: jnp.sum(jax.scipy.special.erf(x) * x)),
        np.array([0.1, -3.0, 5.0]),
    ),
    "second derivative of erf": (
        jax.grad(lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(jax.scipy.special.erfc(y)))(x) * x)),
        V,
    ),
    "scan of trees": (
        lambda x, v: lax.scan(
            lambda h, one: ({"a": h["a"] * one[0], "b": h["b"] + v}, one[1]), {"a": v, "b": v}, (x, x * 2)
        ),
        X,
        V,
    ),
    "gradient of a choice": (jax.grad(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x).sum()), V),
    "batch of loops": (lambda: jax.vmap(doubled)(jnp.array([1, 3, 0])),),
    "logarithm of two": (jnp.log2, np.array([0.5, 8.0])),
    "floats as bits": (
        lambda x: (lax.bitcast_convert_type(x, "int64"), lax.bitcast_convert_type(-x, "uint64")),
        np.array([1.5, -0.0, 5e-324, np.inf, -1e308, 1e-310, 2.0, 0.1]),
    ),
    "bits of floats": (
        lambda x: lax.bitcast_convert_type(x, jnp.float32),
        np.array([0, 1, 0x3F800001, 0xBF800000, 0x7F800000, 0x7FC00000, 0x007FFFFF, 0x7F7FFFFF], "uint32"),
    ),
    "bits of doubles": (
        lambda x: lax.bitcast_convert_type(x, jnp.float64),
        np.array([1.5, -0.0, 5e-324, np.inf, -1e308, 1e-310]).view("uint64"),
    ),
}

WITH_JAX = {
    "expm": (jax.scipy.linalg.expm, A / 4),
    "normal": (lambda key: jax.random.normal(key, (3,)), jax.random.PRNGKey(0)),
    "uniform": (
        lambda key: jax.random.uniform(jax.random.split(key)[0], (3,), jnp.float32),
        jax.random.key(0),
    ),
    "integers": (
        lambda key: jax.random.randint(jax.random.fold_in(key, 3), (5,), 0, 100),
        jax.random.PRNGKey(2),
    ),
    "permutation": (lambda key: jax.random.permutation(key, 6), jax.random.PRNGKey(2)),
    "seed": (lambda seed: jax.random.bernoulli(jax.random.key(seed), 0.5, (6,)), 5),
    "clone": (lambda key: jax.random.bits(jax.random.clone(key), (2,)), jax.random.key(1)),
    "keys of a batch": (
        lambda key: jax.vmap(lambda key: jax.random.normal(key, (2,)))(jax.random.split(key, 3)),
        jax.random.key(1),
    ),
}
"""What is long, and draws, which need JAX for the graph, too: it says what a generator of its own does."""


def leaves(arguments):
    """The arrays of arguments, keys of random numbers as their words."""
    found = []
    for leaf in jax.tree_util.tree_leaves(arguments):
        is_key = str(getattr(leaf, "dtype", "")).startswith("key<")
        found.append(np.asarray(jax.random.key_data(leaf) if is_key else leaf))
    return found
