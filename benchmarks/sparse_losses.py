"""Losses over sparse data: esat on the plain formula, against NumPy on it and SciPy written by hand.

The formulas are those for which Wang et al., "SPORES: sum-product optimization via relational equality
saturation" (VLDB 2020), is known: with ``X`` sparse and ``U V'`` of low rank, the dense product need not be
formed. Contenders take turns in one run; figures are the medians of their turns, and the ratios of the least
turns, which load disturbs least, stand beside those of the medians. NumPy is given ``X`` and the weights as
dense arrays, made beforehand: it forms the dense product, and no conversion is counted.

    python -m benchmarks.sparse_losses [--rows 20000] [--columns 2000] [--rank 10] [--density 0.01]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse

import esat
from esat import sparse

ROUNDS = 9


def formulas() -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs by name, and the formulas as esat's user writes them."""
    x, w = sparse.csr_matrix("X"), sparse.csr_matrix("W")
    u, v = esat.matrix("U"), esat.matrix("V")
    weights, data = sparse.dense_from_sparse(w), sparse.dense_from_sparse(x)
    found = {
        "ALS loss": esat.sum((data - u @ v.T) ** 2),
        "ALS gradient": (u @ v.T - data) @ v + 0.1 * u,
        "weighted loss": esat.sum(weights * (data - u @ v.T) ** 2),
        "Poisson loss": esat.sum(u @ v.T) - esat.sum(data * esat.log(u @ v.T)),
    }
    return {"x": x, "w": w, "u": u, "v": v}, found


def numpy_forms(x: Any, w: Any, u: Any, v: Any) -> dict[str, Callable[[], Any]]:
    """The same formulas in NumPy, on dense matrices that are there beforehand."""
    data, weights = x.toarray(), w.toarray()
    return {
        "ALS loss": lambda: np.sum((data - u @ v.T) ** 2),
        "ALS gradient": lambda: (u @ v.T - data) @ v + 0.1 * u,
        "weighted loss": lambda: np.sum(weights * (data - u @ v.T) ** 2),
        "Poisson loss": lambda: (u @ v.T).sum() - (data * np.log(u @ v.T)).sum(),
    }


def hand_written(x: Any, w: Any, u: Any, v: Any) -> dict[str, Callable[[], Any]]:
    """What somebody who knows the algebra writes with SciPy."""

    def places(matrix: Any) -> tuple[Any, Any]:
        return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices

    def product_at(matrix: Any) -> Any:
        rows, columns = places(matrix)
        return np.einsum("ij,ij->i", u[rows], v[columns])

    def weighted() -> Any:
        rows, columns = places(w)
        return w.data @ (x[rows, columns] - product_at(w)) ** 2

    return {
        "ALS loss": lambda: x.data @ x.data - 2 * (u * (x @ v)).sum() + ((u.T @ u) * (v.T @ v)).sum(),
        "ALS gradient": lambda: u @ (v.T @ v) - x @ v + 0.1 * u,
        "weighted loss": weighted,
        "Poisson loss": lambda: u.sum(0) @ v.sum(0) - x.data @ np.log(product_at(x)),
    }


def compiled(inputs: Mapping[str, Any], output: Any, values: Mapping[str, Any]) -> Callable[[], Any]:
    """A call of esat's program for the formula."""
    used = set(esat.graph.inputs_of([output]))
    names = [name for name, variable in inputs.items() if variable in used]
    shapes = {inputs[name]: (*values[name].shape, *_stored(values[name])) for name in names}
    function = esat.compile(esat.Graph([inputs[name] for name in names], [output]), shapes=shapes)
    arguments = [values[name] for name in names]
    return lambda: function(*arguments)


def _stored(value: Any) -> tuple[int, ...]:
    return (value.nnz,) if scipy.sparse.issparse(value) else ()


def seconds(contenders: Mapping[str, Callable[[], Any]]) -> dict[str, tuple[float, float]]:
    """Median and least seconds of each, taking turns; the first call of each does not count."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(ROUNDS + 1):
        for name, call in contenders.items():
            begun = time.perf_counter()
            call()
            if turn:
                times[name].append(time.perf_counter() - begun)
    return {name: (median(found), min(found)) for name, found in times.items()}


def main() -> None:
    """Print a line for each formula."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=2_000)
    parser.add_argument("--rank", type=int, default=10)
    parser.add_argument("--density", type=float, default=0.01)
    options = parser.parse_args()
    generator = np.random.default_rng(0)
    shape = (options.rows, options.columns)
    values: dict[str, Any] = {
        name: scipy.sparse.random_array(shape, density=options.density, format="csr", rng=generator)
        for name in ("x", "w")
    }
    values["u"] = generator.uniform(0.1, 1.0, (options.rows, options.rank))
    values["v"] = generator.uniform(0.1, 1.0, (options.columns, options.rank))
    inputs, outputs = formulas()
    dense, by_hand = numpy_forms(**values), hand_written(**values)
    print(f"{'':<45}{'medians':>22}{'least':>24}")
    print(f"{'formula':<15}{'esat':>10}{'SciPy':>10}{'NumPy':>10}", end="")
    print(2 * "  NumPy/esat  SciPy/esat", "  error")
    for name, output in outputs.items():
        contenders = {"esat": compiled(inputs, output, values), "SciPy": by_hand[name], "NumPy": dense[name]}
        wanted = dense[name]()
        error = float(np.max(np.abs(contenders["esat"]() - wanted)) / np.max(np.abs(wanted)))
        found = seconds(contenders)
        milliseconds = "".join(f"{1e3 * found[key][0]:>7.2f} ms" for key in contenders)
        ratios = ""
        for ours, scipys, numpys in zip(*(found[key] for key in contenders), strict=True):
            ratios += f"{numpys / ours:>10.0f} x{scipys / ours:>10.2f} x"
        print(f"{name:<15}{milliseconds}{ratios}   {error:.0e}")


if __name__ == "__main__":
    main()
