"""Train a small multilayer perceptron on the UCI handwritten digits, compiled by esat.

Run ``python examples/digits.py`` with the ``examples`` extra installed. It shows
what the optimizer did, trains the network, and compares a step's time with plain NumPy and with
the classic greedy optimizer, in the same run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise, permutations
from statistics import median

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits

import esat

HIDDEN = (128,)
BATCH = 64
SHAPES = ((BATCH, 64), (BATCH, 10))
EPOCHS = 60
RATE = 0.1
MOMENTUM = 0.9
DECAY = 1e-4


@dataclass(frozen=True)
class Digits:
    """8x8 images as rows of 64 grey levels in [0, 1], with one-hot classes."""

    train_images: np.ndarray
    train_classes: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load(seed: int = 0) -> Digits:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    images, labels = images[order] / 16.0, labels[order]
    split = int(0.8 * len(images))
    return Digits(images[:split], np.eye(10)[labels[:split]], images[split:], labels[split:])


def initial_parameters(seed: int = 1) -> list[np.ndarray]:
    """Weights and biases, layer by layer."""
    rng = np.random.default_rng(seed)
    sizes = (64, *HIDDEN, 10)
    parameters = []
    for fan_in, fan_out in pairwise(sizes):
        parameters.append(rng.normal(scale=np.sqrt(1.0 / fan_in), size=(fan_in, fan_out)))
        parameters.append(np.zeros(fan_out))
    return parameters


# ---- the model in esat: the gradient is derived, not written


def training_graph(start: list[np.ndarray]) -> tuple[esat.Graph, esat.Graph, list[esat.SharedVariable]]:
    """One step of gradient descent with momentum, and the prediction, over shared parameters."""
    images = esat.matrix("images")
    classes = esat.matrix("classes")
    parameters = [esat.shared(value, name=f"p{index}") for index, value in enumerate(start)]
    layer = images
    for weights, bias in zip(parameters[0:-2:2], parameters[1:-2:2], strict=True):
        layer = esat.tanh(layer @ weights + bias)
    scores = layer @ parameters[-2] + parameters[-1]
    # Written as in a textbook: the optimizer finds the form that neither overflows nor divides by zero.
    loss = -(classes * esat.log(esat.softmax(scores, axis=1))).sum(axis=1).mean()
    penalty = sum(((weights**2).sum() for weights in parameters[0::2]), esat.constant(0.0))
    cost = loss + DECAY * penalty
    updates = {}
    for parameter, gradient in zip(parameters, esat.grad(cost, parameters), strict=True):
        velocity = esat.shared(np.zeros_like(parameter.get_value()), name=f"v_{parameter.name}")
        step = MOMENTUM * velocity - RATE * gradient
        updates[velocity] = step
        updates[parameter] = parameter + step
    train = esat.Graph([images, classes], [cost], updates=updates)
    predict = esat.Graph([images], [scores.argmax(axis=1)])
    return train, predict, parameters


# ---- the same step by hand, in NumPy


class NumpyNetwork:
    """The step of :func:`training_graph` as a careful NumPy user writes it."""

    def __init__(self, start: list[np.ndarray]) -> None:
        self.parameters = [value.copy() for value in start]
        self.velocities = [np.zeros_like(value) for value in start]

    def step(self, images: np.ndarray, classes: np.ndarray) -> float:
        weights, biases = self.parameters[0::2], self.parameters[1::2]
        layers = [images]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            layers.append(np.tanh(layers[-1] @ weight + bias))
        scores = layers[-1] @ weights[-1] + biases[-1]
        shifted = scores - scores.max(axis=1, keepdims=True)
        log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        cost = -(classes * log_probabilities).sum(axis=1).mean()
        cost += DECAY * sum((weight**2).sum() for weight in weights)
        delta = (np.exp(log_probabilities) - classes) / len(images)
        gradients: list[np.ndarray] = []
        for index in reversed(range(len(weights))):
            gradients[:0] = [layers[index].T @ delta + 2 * DECAY * weights[index], delta.sum(axis=0)]
            if index:
                delta = (delta @ weights[index].T) * (1.0 - layers[index] ** 2)
        for parameter, velocity, gradient in zip(self.parameters, self.velocities, gradients, strict=True):
            np.multiply(velocity, MOMENTUM, out=velocity)
            np.subtract(velocity, RATE * gradient, out=velocity)
            np.add(parameter, velocity, out=parameter)
        return float(cost)


# ---- running


def train(step: esat.Executable, data: Digits, console: Console) -> None:
    rng = np.random.default_rng(2)
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs, loss {task.fields[loss]:.4f}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=EPOCHS, loss=float("nan"))
        for _ in range(EPOCHS):
            order = rng.permutation(len(data.train_images))
            for start in range(0, len(order) - BATCH + 1, BATCH):
                chosen = order[start : start + BATCH]
                loss = step(data.train_images[chosen], data.train_classes[chosen])
            progress.update(task, advance=1, loss=float(loss))


def compare(contenders: dict[str, object], data: Digits, rounds: int = 600) -> dict[str, float]:
    """Median seconds a step, the contenders taking turns in every order: each follows each other."""
    images, classes = data.train_images[:BATCH].copy(), data.train_classes[:BATCH].copy()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    orders = list(permutations(contenders.items()))
    for round in range(rounds):
        for name, step in orders[round % len(orders)]:
            begin = time.perf_counter()
            step(images, classes)  # type: ignore[operator]
            times[name].append(time.perf_counter() - begin)
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    console = Console()
    data = load()
    start = initial_parameters()
    graph, prediction, _ = training_graph(start)
    begin = time.perf_counter()
    # The sizes to expect: programs are chosen for them, and stay right for any other.
    step = esat.compile(graph, mode="fast_run", shapes=dict(zip(graph.inputs, SHAPES, strict=True)))
    predict = esat.compile(prediction, mode="fast_run")
    console.print(f"compiled in {time.perf_counter() - begin:.2f} s\n")
    console.print(str(step.report), highlight=False, soft_wrap=True)
    console.print()
    console.print(str(step.profile), highlight=False, soft_wrap=True)
    console.print()

    # An e-graph kept on disk by an earlier run is neither loaded nor saturated again.
    names = ("load", "saturate", "read out", "e-graph cache", "extract")
    stages = [name for name in names if name in step.profile.stages]
    spent = sum(step.profile.stages[name] for name in stages)
    console.print(f"{' + '.join(stages)}: {spent * 1e3:.0f} ms for {step.report.nodes_before} nodes\n")

    train(step, data, console)
    accuracy = float(np.mean(predict(data.test_images) == data.test_labels))
    console.print(f"test accuracy: {accuracy:.1%} of {len(data.test_labels)} images\n")

    greedy_graph, _, _ = training_graph(start)
    greedy = esat.compile(
        greedy_graph, mode="greedy", shapes=dict(zip(greedy_graph.inputs, SHAPES, strict=True))
    )
    times = compare({"esat fast_run": step, "esat greedy": greedy, "NumPy": NumpyNetwork(start).step}, data)
    table = Table(title=f"median time of one training step (batch of {BATCH})")
    table.add_column("")
    table.add_column("microseconds", justify="right")
    table.add_column("against fast_run", justify="right")
    fastest = times["esat fast_run"]
    for name, seconds in times.items():
        table.add_row(name, f"{seconds * 1e6:.0f}", f"{seconds / fastest:.2f} x")
    console.print(table)


if __name__ == "__main__":
    main()
