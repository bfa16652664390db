"""A log-density and its gradient over more rows than one machine likes: a Dask array, chunk by chunk.

Run ``python examples/dask_gradient.py`` with the ``distributed`` extra installed. The function of one chunk
is compiled once here, travels to the workers as what it was compiled from, and is found by them in the cache.
The sums of the chunks' results are added as they come. In the end a worker is killed in the middle of a sum.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, as_completed

import esat

ROWS, COLUMNS, CHUNK = 800_000, 50, 50_000


def chunk_function() -> esat.Executable:
    """(rows, labels, weights) -> log-likelihood of a logistic regression over them, and its gradient."""
    rows, labels, weights = esat.matrix("rows"), esat.vector("labels"), esat.vector("weights")
    chances = esat.sigmoid(rows @ weights)
    density = (labels * esat.log(chances) + (1 - labels) * esat.log(1 - chances)).sum()
    shapes = {rows: (CHUNK, COLUMNS), labels: (CHUNK,), weights: (COLUMNS,)}
    graph = esat.Graph([rows, labels, weights], [density, esat.grad(density, weights)])
    # One thread a process: workers share the processors among them.
    return esat.compile(graph, esat.Mode(threads=1), shapes=shapes)


def data() -> tuple[Any, Any]:
    """Rows and labels as Dask arrays, which are made on the workers when they are asked for."""
    state = da.random.default_rng(0)
    rows = state.normal(size=(ROWS, COLUMNS), chunks=(CHUNK, COLUMNS))
    labels = (state.uniform(size=ROWS, chunks=CHUNK) < 0.5).astype("float64")
    return rows, labels


def cluster_of(workers: int) -> LocalCluster:
    """So many processes of one thread."""
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)


def placed(client: Client) -> tuple[list[tuple[Any, Any]], Any]:
    """Chunks in the memory of the workers, and the function, sent to each once."""
    rows, labels = client.persist(data())
    pairs = list(zip(client.futures_of(rows), client.futures_of(labels), strict=True))
    client.gather(client.map(np.shape, [one for pair in pairs for one in pair]))
    return pairs, client.scatter(chunk_function(), broadcast=True)


def call(function: Any, *arguments: Any) -> Any:
    """Call a function that lives on the workers."""
    return function(*arguments)


def submitted(client: Client, function: Any, chunks: list[tuple[Any, Any]], weights: np.ndarray) -> list[Any]:
    """A call for each chunk."""
    return [client.submit(call, function, rows, labels, weights, pure=False) for rows, labels in chunks]


def summed(client: Client, function: Any, chunks: list[tuple[Any, Any]], weights: np.ndarray) -> Any:
    """The density and the gradient over all chunks, each computed where its rows are, added as they come."""
    parts = submitted(client, function, chunks, weights)
    density, gradient = 0.0, np.zeros_like(weights)
    for _, (value, slope) in as_completed(parts, with_results=True):
        density += float(value)
        gradient += slope
    return density, gradient


def measured(workers: int) -> tuple[float, float, np.ndarray]:
    """Seconds of one sum over all rows, and its results."""
    with cluster_of(workers) as cluster, Client(cluster) as client:
        chunks, function = placed(client)
        weights = np.linspace(-0.1, 0.1, COLUMNS)
        density, gradient = summed(client, function, chunks, weights)
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            density, gradient = summed(client, function, chunks, weights)
            times.append(time.perf_counter() - begin)
        return min(times), density, gradient


def with_a_death() -> tuple[float, float]:
    """The density while a worker is killed: its rows are made again by another, and computed with there."""
    with cluster_of(2) as cluster, Client(cluster) as client:
        chunks, function = placed(client)
        weights = np.linspace(-0.1, 0.1, COLUMNS)
        begin = time.perf_counter()
        parts = submitted(client, function, chunks, weights)
        victim = next(iter(cluster.workers.values()))
        os.kill(victim.pid, signal.SIGKILL)
        density = sum(float(part.result()[0]) for part in parts)
        return density, time.perf_counter() - begin


def main() -> None:
    """Print the times with one and two workers, and what a death costs."""
    results = {workers: measured(workers) for workers in (1, 2)}
    for workers, (seconds, density, gradient) in results.items():
        rate = ROWS / seconds / 1e6
        print(
            f"{workers} workers: {seconds * 1e3:.0f} ms a sum, {rate:.2f} million rows a second;"
            f" density {density:.6f}, norm of the gradient {np.linalg.norm(gradient):.6f}"
        )
    density, seconds = with_a_death()
    print(f"a worker killed meanwhile: density {density:.6f}, after {seconds:.2f} s")


if __name__ == "__main__":
    main()
