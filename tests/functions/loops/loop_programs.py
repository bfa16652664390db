"""Random programs with loops of Python's, as text: state in numbers, arrays, lists and objects, and what may
not be seen from outside, such as counters that decide."""

import importlib.util
import sys

import numpy as np

STEPS = 12
HEADS = (
    "range(T)", "range(1, T)", "range(T - 1, -1, -1)", "range(0, T, 2)", "range(3, T)", "range(-1, T - 1)",
)  # fmt: skip
PLAIN = (
    ("y = np.tanh(0.5 * y + x[t])",),
    ("y, z = z, 0.3 * y + 0.2 * z + x[t]",),
    ("out[t] = y",),
    ("out[t] = 0.5 * out[t - 1] + 0.1 * x[t]",),
    ("out[t] = 0.4 * out[t - 1] - 0.3 * out[t - 2] + x[t] + y",),
    ("k += 2", "y = 0.5 * y + 0.01 * k * x[t]"),
    ("v *= 0.9", "v += X[t]"),
    ("V[t] += 0.5 * v",),
    ("V[t] += 0.5 * V[t - 1]",),
    ("items.append(z)",),
    ("s['y'] = 0.5 * s['y'] + x[t]",),
    ("y = 0.5 * y + x[T - 1 - t] * X[t, 1]",),
    ("z = 0.2 * z + X[(t + 1) % T, 0]",),
    ("for j in range(3):", "    y = np.sin(y + X[t, j])"),
    ("v = 0.5 * v + np.where(v > 0, x[t], -x[t])",),
    ("z = 0.1 * z + X[t] @ v",),
    ("a = X[t].copy()", "a[1] = y", "v = v * 0.5 + a"),
    ("o.z = np.cos(o.z) + 0.1 * t",),
    ("y = 0.5 * y + (t - last) * x[t]", "last = t"),
    ("v = M @ v * 0.2 + X[t]",),
    ("z = x[t] * 0.5 + y * 0.1",),
    ("W[:, t % 3] = v",),
    ("y = 0.3 * y + float(np.exp(-0.1 * t)) + len(items)",),
)
HOSTILE = (
    ("if t % 3 == 0:", "    y = y * 0.5"),
    ("if t == 5:", "    z = z + 1.0"),
    ("n[0] += 1", "if n[0] == 7:", "    y = y - 1.0"),
    ("y = y + x[t] if len(items) < 4 else y * x[t]",),
    ("v = v + x[t]" , "u = v", "u[0] = 0.25"),
    ("y = 0.5 * y + next(numbers)",),
    ("if t > 8:", "    break"),
    ("if t in (2, 3):", "    continue"),
    ("v = X[0] if t == 4 else v",),
    ("X[t] = 0.5 * X[t] + y",),
    ("x[t] = y",),
)  # fmt: skip
HEADER = """import numpy as np

class Holder:
    pass

def program(x, X, M):
    T = len(x)
    y, z, k, last, n = 0.0, 1.0, 0, 0, [0]
    v, out, V, W = np.ones(3), np.zeros(T), X * 1.0, np.zeros((3, 3))
    items, s, o = [], {"y": 0.5}, Holder()
    o.z = 0.1
"""
FOOTER = """
    kept = np.stack(items) if items else np.zeros(1)
    return y + 0 * x[0], z + 0 * x[0], v, out, V, W, kept, s["y"] + 0 * x[0], o.z + 0 * x[0], x, X
"""


def text(generator, hostile=0.3):
    """The text of a program."""
    lines = [HEADER]
    iterator = "    numbers = iter([0.1] * 9 + [0.7] * 90)"
    for _ in range(generator.integers(1, 3)):
        lines.append(f"    for t in {generator.choice(HEADS)}:")
        for _ in range(generator.integers(1, 5)):
            group = HOSTILE if generator.random() < hostile else PLAIN
            lines += [f"        {line}" for line in group[generator.integers(len(group))]]
    if any("numbers" in line for line in lines):  # it keeps state that nobody sees
        lines.insert(1, iterator)
    return "\n".join([*lines, FOOTER])


def arguments(generator, steps=STEPS):
    """Arguments of a program."""
    return (generator.standard_normal(steps), generator.standard_normal((steps, 3)),
            generator.standard_normal((3, 3)))  # fmt: skip


def loaded(text, folder, name):
    """The function of a text, from a file: code that is traced is compiled anew from its text."""
    path = folder / f"{name}.py"
    path.write_text(text)
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module.program


def difference(found, wanted):
    """The largest difference of results, relative to those of Python."""
    return max(
        float(np.max(np.abs(np.asarray(a) - np.asarray(b)) / (1 + np.abs(np.asarray(b))), initial=0.0))
        for a, b in zip(found, wanted, strict=True)
    )
