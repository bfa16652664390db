"""JAX's own functions with arguments, and what differentiates them: the primitives that users can meet."""

import inspect
import warnings

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(4)
VECTOR = RNG.uniform(0.1, 0.9, 4)
MATRIX = RNG.uniform(0.1, 0.9, (3, 3)) + 3 * np.eye(3)
SYMMETRIC = MATRIX @ MATRIX.T
CUBE = RNG.uniform(0.1, 0.9, (2, 3, 4))
INTEGERS = np.array([3, 1, 2, 1])
COMPLEX = VECTOR + 1j * VECTOR[::-1]
EXAMPLES = (
    (VECTOR,), (MATRIX,), (SYMMETRIC,), (VECTOR, VECTOR[::-1].copy()), (MATRIX, MATRIX.T.copy()), (INTEGERS,),
    (INTEGERS, INTEGERS), (VECTOR, VECTOR, VECTOR), (CUBE,), (COMPLEX,), (MATRIX, VECTOR[:3]),
    (VECTOR, INTEGERS), (2.0, VECTOR), (3, VECTOR), (VECTOR > 0.4, VECTOR, -VECTOR), ([VECTOR, VECTOR],),
    (VECTOR, 2), (MATRIX, 0), (5,), (1, VECTOR + 1), (VECTOR, VECTOR, VECTOR, VECTOR), (CUBE, 0),
    (CUBE, 0, 1), (VECTOR, 1, 1), (VECTOR[:3], MATRIX),
)  # fmt: skip
MODULES = {
    "numpy": jnp,
    "numpy.linalg": jnp.linalg,
    "numpy.fft": jnp.fft,
    "scipy.special": jsp.special,
    "scipy.linalg": jsp.linalg,
    "scipy.signal": jsp.signal,
    "scipy.stats.norm": jsp.stats.norm,
    "scipy.stats.gamma": jsp.stats.gamma,
    "scipy.stats.beta": jsp.stats.beta,
    "scipy.stats.t": jsp.stats.t,
    "nn": jax.nn,
    "lax": lax,
    "lax.linalg": lax.linalg,
}
KEY = jax.random.key(0)
LOOPS = {
    "scan": lambda x: lax.scan(lambda h, one: (jnp.tanh(h + one), h * one), 0.5, x),
    "scan, reverse": lambda x: lax.scan(lambda h, one: (h * one, h), 1.0, x, reverse=True),
    "scan of a tree": lambda x: lax.scan(
        lambda h, one: ({"a": h["a"] * one[0], "b": h["b"] + x}, one[1]), {"a": 1.0, "b": x}, (x, x * 2)
    ),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda place, total: total * jnp.sin(x[place]), x),
    "map": lambda x: lax.map(jnp.exp, x),
    "associative_scan": lambda x: lax.associative_scan(jnp.multiply, x),
    "cond": lambda x: lax.cond(x.sum() > 1, jnp.sin, jnp.cos, x),
    "switch": lambda x: lax.switch(jnp.int32(x[0] > 0.5), [jnp.sin, jnp.cos], x),
    "while": lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x)),
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(jnp.tanh(x))),
    "custom_root": lambda x: lax.custom_root(
        lambda y: y**2 - x, x, lambda f, y: x**0.5, lambda g, y: y / g(jnp.ones_like(y))
    ),
    "reduce_window": lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (1,), "VALID"),
    "average pool": lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (2,), "VALID"),
    "segment_sum": lambda x: jax.ops.segment_sum(x, INTEGERS, 5),
    "normal": lambda x: x * jax.random.normal(KEY, x.shape),
    "uniform": lambda x: x * jax.random.uniform(KEY, x.shape),
    "bernoulli": lambda x: jnp.where(jax.random.bernoulli(KEY, 0.5, x.shape), x, 0),
    "categorical": lambda x: x * jax.random.categorical(KEY, x),
    "permutation": lambda x: jax.random.permutation(KEY, x),
    "gumbel": lambda x: x + jax.random.gumbel(KEY, x.shape),
    "exponential": lambda x: x + jax.random.exponential(KEY, x.shape),
    "randint": lambda x: x + jax.random.randint(KEY, x.shape, 0, 5),
    "truncated_normal": lambda x: x + jax.random.truncated_normal(KEY, -1, 1, x.shape),
    "one_hot": lambda x: jax.nn.one_hot(INTEGERS, 4) @ x,
    "at": lambda x: x.at[INTEGERS].add(x).at[0].set(1.0).at[1].mul(2.0).at[2].max(0.5),
    "convolution": lambda x: lax.conv_general_dilated(x[None, None], x[None, None, :2], (1,), "SAME"),
    "qr": lambda x: jnp.linalg.qr(MATRIX * x[0])[1],
    "eigh": lambda x: jnp.linalg.eigh(SYMMETRIC + x[0] * np.diag([1.0, 2, 3]))[0],
    "svd": lambda x: jnp.linalg.svd(MATRIX * x[:3])[1],
    "solve": lambda x: jnp.linalg.solve(MATRIX, x[:3]),
    "cho_solve": lambda x: jsp.linalg.cho_solve(jsp.linalg.cho_factor(SYMMETRIC * x[0]), x[:3]),
    "slogdet": lambda x: jnp.linalg.slogdet(MATRIX + jnp.diag(x[:3]))[1],
    "expm": lambda x: jsp.linalg.expm(MATRIX * x[0]),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (jnp.argmax(x),), (2,)),
    "dropout": lambda x: jnp.where(jax.random.uniform(KEY, x.shape) < 0.5, x / 0.5, 0),
    "logsumexp": lambda x: jsp.special.logsumexp(x, b=INTEGERS),
    "interp": lambda x: jnp.interp(x, np.array([0.0, 0.5, 1.0]), np.array([1.0, 3.0, 2.0])),
    "quantile": lambda x: jnp.quantile(x, 0.3),
    "attention": lambda x: jax.nn.dot_product_attention(*[x.reshape(1, 2, 1, 2)] * 3),
}


def functions(module):
    """Name, function and arguments: functions of a module with the first example that they take."""
    if module not in MODULES:
        yield from ((f"{module}: {name}", f, (VECTOR,)) for name, f in LOOPS.items())
        return
    for name, function in sorted(vars(MODULES[module]).items()):
        if name.startswith("_") or not callable(function) or inspect.isclass(function):
            continue
        arguments = taken(function)
        if arguments is not None:
            yield f"{module}.{name}", function, arguments


def taken(function):
    """The first example that a function takes; None where there is none."""
    for arguments in EXAMPLES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                closed = jax.make_jaxpr(function)(*arguments)
        except Exception:
            continue
        if closed.eqns:
            return arguments
    return None


def derivatives(function, arguments):
    """What differentiates a function by its first argument: name -> function of the same arguments."""
    first = arguments[0]
    if not (isinstance(first, np.ndarray) and first.dtype == np.float64):
        return {}

    def cost(x):
        leaves = jax.tree_util.tree_leaves(function(x, *arguments[1:]))
        parts = [jnp.sum(jnp.sin(one).real) for one in leaves if jnp.issubdtype(one.dtype, jnp.inexact)]
        return sum(parts, 0.0) + 0 * jnp.sum(x)

    gradient = jax.grad(cost)
    return {
        "gradient": gradient,
        "tangent": lambda x: jax.jvp(cost, (x,), (x,))[1],
        "second": jax.grad(lambda x: jnp.sum(gradient(x) ** 2)),
        "batch": jax.vmap(gradient),
    }


def jaxprs(module):
    """(name, kind, jaxpr, function, arguments) of a module's functions and of what differentiates them."""
    for name, function, arguments in functions(module):
        made = {"value": (function, arguments)}
        for kind, derivative in derivatives(function, arguments).items():
            first = arguments[0]
            made[kind] = derivative, (np.stack([first, first * 0.9]) if kind == "batch" else first,)
        for kind, (f, given) in made.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    closed = jax.make_jaxpr(f)(*given)
            except Exception:
                continue
            yield name, kind, closed, f, given
