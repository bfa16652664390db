"""Functions of many numbers and arrays, alone and in lists, tuples and dicts, called some hundred times.

A native function is made for each meanwhile. Every call has other values and must give what NumPy gives.
``python tests/functions/many_calls.py 0 500`` runs the programs of these seeds.
"""

import random
import sys

import numpy as np

import esat

CALLS = 300


def written(m, v):
    made = m.copy()
    made[1] = v
    made[:, 2] += v[::-1]
    return made


FORMS = {
    "elementwise": lambda m, v: np.exp(-m) * v,
    "product": lambda m, v: m @ v,
    "products": lambda m, v: m.T @ m + m,
    "sum": lambda m, v: m.sum(axis=0) + v,
    "transpose": lambda m, v: m.T.copy(),
    "part": lambda m, v: m[::2, 1:] * 2.0,
    "joined": lambda m, v: np.concatenate([m[0], v, m[:, 1]]),
    "stacked": lambda m, v: np.stack([m[1], v], axis=1),
    "written": written,
    "solve": lambda m, v: np.linalg.solve(m @ m.T + 4 * np.eye(4), v),
    "inverse": lambda m, v: np.linalg.inv(m @ m.T + 4 * np.eye(4)),
    "determinant": lambda m, v: np.linalg.det(m + 4 * np.eye(4)),
    "cholesky": lambda m, v: np.linalg.cholesky(m @ m.T + 4 * np.eye(4)),
    "eigenvalues": lambda m, v: np.linalg.eigvalsh(m + m.T),
    "sorted": lambda m, v: np.sort(m, axis=0),
    "order": lambda m, v: np.argsort(v),
    "running sums": lambda m, v: np.cumsum(m, axis=1),
    "searched": lambda m, v: np.searchsorted(np.sort(v), m[0]),
    "diagonal": lambda m, v: np.diag(v) + np.diag(np.diag(m)),
    "chosen": lambda m, v: np.where(m > v, m, -v),
}


def leaf(rng, values):
    """One number or array of the kinds that calls have, as a function of a generator of values."""
    kind = rng.choice(["float", "float", "float", "int", "float64", "float32", "vector", "matrix", "0-d"])
    return {
        "float": lambda: float(values.normal()),
        "int": lambda: int(values.integers(-9, 9)),
        "float64": lambda: np.float64(values.normal()),
        "float32": lambda: np.float32(values.normal()),
        "0-d": lambda: np.array(values.normal()),
        "vector": lambda: values.normal(size=4),
        "matrix": lambda: values.normal(size=(4, 4)),
    }[kind]


def argument(rng, values, count):
    """``count`` leaves in one to three containers within each other, as a function that makes them anew."""
    if count == 1 and rng.random() < 0.8:
        return leaf(rng, values)
    kind = rng.choice(["list", "tuple", "dict"])
    parts = []
    while count > 0:
        size = rng.randint(1, count) if rng.random() < 0.3 and count > 1 and parts else 1
        parts.append(argument(rng, values, size) if size > 1 else leaf(rng, values))
        count -= size
    if kind == "dict":
        return lambda: {f"{place} 'key'": make() for place, make in enumerate(parts)}
    return lambda: {"list": list, "tuple": tuple}[kind](make() for make in parts)


def leaves_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [one for part in value for one in leaves_of(part)]
    return [value]


class Program:
    """A function with up to 40 leaves, and its calls."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.values = np.random.default_rng(seed)
        form = FORMS[sorted(FORMS)[seed % len(FORMS)]]
        counts = []
        left = rng.randint(0, 40)
        together = rng.random() < 0.5  # all leaves arguments of their own, or some in containers
        while left > 0:
            counts.append(1 if together else min(left, rng.choice([1, 1, 2, 5, 12])))
            left -= counts[-1]
        makers = [leaf(rng, self.values) if n == 1 else argument(rng, self.values, n) for n in counts]
        makers.insert(rng.randint(0, len(makers)), lambda: self.values.normal(size=(4, 4)))
        makers.insert(rng.randint(0, len(makers)), lambda: self.values.normal(size=4))
        self.makers = makers
        self.returned = rng.sample(range(8), 2)

        def function(*arguments):
            given = [one for argument in arguments for one in leaves_of(argument)]
            matrix = next(one for one in given if np.ndim(one) == 2)
            vector = next(one for one in given if np.ndim(one) == 1)
            total = 0.0
            for place, one in enumerate(given):
                total = total + one * np.float64(place + 1)
            return [total, form(matrix, vector), *(given[n] * 2 for n in self.returned if n < len(given))]

        self.function = function

    def run(self, calls=CALLS, **options):
        """Raise unless each call gives what NumPy gives; the jitted function."""
        jitted = esat.jit(self.function, **options)
        for call in range(calls):
            arguments = [make() for make in self.makers]
            with np.errstate(all="ignore"):
                wanted = self.function(*arguments)
            found = jitted(*arguments)
            assert len(found) == len(wanted)
            for one, other in zip(found, wanted, strict=True):
                assert np.shape(one) == np.shape(other)
                assert np.asarray(one).dtype == np.asarray(other).dtype
                scale = float(np.abs(other).max(initial=1.0))
                single = np.asarray(other).dtype == np.float32
                np.testing.assert_allclose(
                    one, other, rtol=1e-9, atol=scale * (1e-5 if single else 1e-10), err_msg=f"call {call}"
                )
        return jitted


if __name__ == "__main__":
    for seed in range(*map(int, sys.argv[1:3])):
        try:
            Program(seed).run(shapes="symbolic" if seed % 3 == 2 else "static")
        except Exception as error:
            print(seed, type(error).__name__, str(error)[:500], flush=True)
