"""Scripts of a few lines from an import to a first result, the same program once for esat and once for JAX.

Each is in four parts, the times of which are printed: imports, what writes the graph down, what compiles it,
and the first call, which leaves ``results``, a list of NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Script:
    """The parts of a script."""

    imports: str
    write: str
    compile: str
    call: str


_DATA = """
generator = np.random.default_rng(0)
"""

_ESAT = "import numpy as np\nimport esat"
_JAX = "import numpy as np\nimport jax\nimport jax.numpy as jnp"

SMALL = """
x, y, z = (np.linspace(-1.0, 1.0, 1000) + step for step in (0.0, 0.5, 1.0))
"""

LOGISTIC = """
features = generator.normal(size=(2000, 20))
labels = np.where(generator.random(2000) < 0.5, 1.0, -1.0)
weights = generator.normal(size=20)
"""

DIGITS = """
images = generator.random((64, 64))
classes = np.eye(10)[generator.integers(0, 10, 64)]
sizes = (64, 128, 10)
start = []
for fan_in, fan_out in zip(sizes, sizes[1:]):
    start += [generator.normal(scale=fan_in**-0.5, size=(fan_in, fan_out)), np.zeros(fan_out)]
"""

PROGRAMS: Mapping[str, Mapping[str, Script]] = {
    "small": {
        "esat": Script(
            _ESAT,
            _DATA + SMALL + "X, Y, Z = (esat.vector(name) for name in 'xyz')\n"
            "graph = esat.Graph([X, Y, Z], [esat.tanh(X) * Y + esat.exp(-Z * Z / 2)])",
            "function = esat.compile(graph)",
            "results = [function(x, y, z)]",
        ),
        "jax": Script(
            _JAX,
            _DATA + SMALL,
            "function = jax.jit(lambda x, y, z: jnp.tanh(x) * y + jnp.exp(-z * z / 2))",
            "results = [np.asarray(function(x, y, z))]",
        ),
    },
    "logistic": {
        "esat": Script(
            _ESAT,
            _DATA + LOGISTIC + """
X, y, w = esat.matrix("X"), esat.vector("y"), esat.vector("w")
loss = esat.log1p(esat.exp(-y * (X @ w))).mean() + 0.5 * (w * w).sum()
graph = esat.Graph([X, y, w], [loss, esat.grad(loss, w)])
""",
            "function = esat.compile(graph)",
            "results = list(function(features, labels, weights))",
        ),
        "jax": Script(
            _JAX,
            _DATA + LOGISTIC + """
def loss(w, X, y):
    return jnp.log1p(jnp.exp(-y * (X @ w))).mean() + 0.5 * (w * w).sum()
""",
            "function = jax.jit(jax.value_and_grad(loss))",
            "results = [np.asarray(one) for one in function(weights, features, labels)]",
        ),
    },
    "digits": {
        "esat": Script(
            _ESAT,
            _DATA + DIGITS + """
X, Y = esat.matrix("images"), esat.matrix("classes")
parameters = [esat.shared(value, name=f"p{number}") for number, value in enumerate(start)]
layer = esat.tanh(X @ parameters[0] + parameters[1])
scores = layer @ parameters[2] + parameters[3]
loss = -(Y * esat.log(esat.softmax(scores, axis=1))).sum(axis=1).mean()
cost = loss + 1e-4 * ((parameters[0] ** 2).sum() + (parameters[2] ** 2).sum())
updates = {}
for parameter, gradient in zip(parameters, esat.grad(cost, parameters)):
    velocity = esat.shared(np.zeros_like(parameter.get_value()), name=f"v_{parameter.name}")
    step = 0.9 * velocity - 0.1 * gradient
    updates[velocity] = step
    updates[parameter] = parameter + step
graph = esat.Graph([X, Y], [cost], updates=updates)
""",
            "function = esat.compile(graph, shapes={X: (64, 64), Y: (64, 10)})",
            "results = [function(images, classes), *(one.get_value() for one in parameters)]",
        ),
        "jax": Script(
            _JAX,
            _DATA + DIGITS + """
def cost(parameters, images, classes):
    layer = jnp.tanh(images @ parameters[0] + parameters[1])
    scores = layer @ parameters[2] + parameters[3]
    loss = -(classes * jax.nn.log_softmax(scores, axis=1)).sum(axis=1).mean()
    return loss + 1e-4 * ((parameters[0] ** 2).sum() + (parameters[2] ** 2).sum())

def step(parameters, velocities, images, classes):
    value, gradients = jax.value_and_grad(cost)(parameters, images, classes)
    velocities = [0.9 * old - 0.1 * gradient for old, gradient in zip(velocities, gradients)]
    return value, [old + new for old, new in zip(parameters, velocities)], velocities
""",
            "function = jax.jit(step)",
            "velocities = [np.zeros_like(one) for one in start]\n"
            "value, parameters, velocities = function(start, velocities, images, classes)\n"
            "results = [np.asarray(one) for one in (value, *parameters)]",
        ),
    },
}  # fmt: skip


def script(program: str, contender: str) -> str:
    """The text of a script, which prints the seconds of its parts and the first numbers of its results."""
    parts = PROGRAMS[program][contender]
    lines = ["import time", "processor, marks = time.process_time(), [time.perf_counter()]"]
    for part in (parts.imports, parts.write, parts.compile, parts.call):
        lines += [part, "marks.append(time.perf_counter())"]
    lines += [
        "processor = time.process_time() - processor",
        "import json",
        "seconds = [b - a for a, b in zip(marks, marks[1:])]",
        "numbers = [float(x) for one in results for x in np.ravel(one)[:8]]",
        "print(json.dumps([seconds, processor, numbers]))",
    ]
    return "\n".join(lines)
