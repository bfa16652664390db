"""Random programs with loops of Python's, as text: state in numbers, arrays, lists and objects, and what may
not be seen from outside, such as counters that decide."""

import importlib.util
import sys

import numpy as np

import esat
from esat.errors import TracingError

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
CHOOSING = (
    ("if x[t] > 0.2:", "    y = 0.5 * y + x[t]"),
    ("if x[t] > y:", "    y, last = x[t], t", "else:", "    y = 0.9 * y"),
    ("if X[t, 0] < 0 or x[t] > 1:", "    k += 1", "y = 0.5 * y + 0.01 * k"),
    ("if not x[t] < z:", "    out[t] = x[t]", "else:", "    out[t] = -y", "    z = 0.5 * z"),
    ("if z > x[t]:", "    out[t] += x[t]", "    out[t - 1] = 0.5 * out[t] + y"),
    ("if X[t].sum() > 0:", "    v = v * 0.5 + X[t]", "v[1] = y"),
    ("u = v", "if x[t] > 0:", "    v = v.copy()", "    v[0] = x[t]", "v = 0.5 * v + u[0]"),
    ("if x[t] > 0:", "    u = v", "    u[2] = 0.5 * x[t]", "else:", "    v[1] *= 0.5"),
    ("if y < z:", "    y, z = z, y", "y = 0.5 * y + x[t]"),
    ("if x[t] > 0:", "    s['y'] = 0.5 * s['y'] + x[t]", "else:", "    o.z = np.cos(o.z)"),
    ("if x[t] < 0:", "    continue", "z = 0.5 * z + np.sqrt(x[t])"),
    (
        "if x[t] > 0:",
        "    if X[t, 1] > 0:",
        "        y = -y",
        "    elif X[t, 2] > 0.5:",
        "        z = y",
        "    v[2] = z",
    ),
    ("z = 0.3 * z + (x[t] if 0 < x[t] < 1 else -0.5 * y)",),
    ("if t % 3 == 0 and x[t] > 0:", "    y = 0.5 * y - x[t]"),
    ("if v @ X[t] > 0:", "    v = np.linalg.solve(M @ M.T + 3.0 * np.eye(3), v)", "v = 0.5 * v + X[t]"),
    ("if x[t] > 0:", "    V[t] = 0.5 * V[t - 1]", "    W[:, t % 3] = v", "else:", "    V[t] = v"),
    ("if x[t] > 0:", "    n[0] += 1", "z = 0.5 * z + n[0]"),
    ("if y > 0:", "    for j in range(3):", "        y = 0.3 * y - X[t, j]"),
    ("w = x[t] - y", "if w > 0:", "    w = 0.5 * w", "    q = w * w", "    y = y + 0.1 * q"),
    ("y = 0.5 * y + bent(x[t])",),
    ("W, V = (V[:3] * 0.5, V) if False else (W, V)", "if x[t] > 0:", "    W = W * 0.5 + x[t]"),
    ("r = V[t]", "if x[t] > 0:", "    r[0] = y", "else:", "    r = X[t] * 2.0", "v = 0.5 * v + r"),
    ("if x[t] > 1.2:", "    items.append(z)"),
    ("r, u = (v, v.copy())", "if z > 0:", "    r = u", "r[1] = 0.25", "y = 0.5 * y + u[1]"),
)
"""Values of arrays decide which branch is taken."""
ENDING = (
    ("while y > 1.0:", "    y = 0.5 * y"),
    ("q = abs(x[t]) + 1", "while q > 0.1 and k < 40:", "    q = 0.5 * q", "    k += 1", "y = 0.5 * y + q"),
    (
        "for j in range(8):",
        "    z = 0.5 * z + X[t, 0]",
        "    if z < 0.2:",
        "        break",
        "y = 0.5 * y + z",
    ),
    (
        "for j in range(7):",
        "    v = v * 0.5",
        "    if v[0] < 0.3:",
        "        v = v + 1.0",
        "        break",
        "    y = 0.9 * y + v[1]",
        "y = y + 0.1 * j",
    ),
    (
        "while True:",
        "    v[1] = 0.5 * v[1] + 0.1",
        "    u = v * 0.5",
        "    if abs(v[1]) < 0.4:",
        "        break",
        "v = v * 0.5 + u",
    ),
    ("while s['y'] > 1:", "    s['y'] = s['y'] / 3", "    o.z = 0.5 * o.z + 0.1"),
    ("u, r = v, v * 2.0", "while r[0] > 0.5:", "    u = r", "    r = r * 0.25", "v = 0.5 * v + u"),
    ("u = v", "while u[2] > 1:", "    v[2] *= 0.5", "    u = u * 0.5"),
    (
        "w = x[t]",
        "while w > 0.5:",
        "    w = w - 0.5",
        "    if w > y:",
        "        y = w",
        "    else:",
        "        continue",
        "    z = 0.9 * z",
    ),
    ("if x[t] > 0:", "    while z > 0.5:", "        z = 0.5 * z", "    else:", "        z = z + 1.0"),
    (
        "if x[t] < 0:",
        "    w = 1.0",
        "    while w > 0.3 * abs(x[t]):",
        "        w = 0.5 * w",
        "    out[t] = w",
    ),
    ("r = V[t]", "while r[0] > 0.5:", "    r[0] = 0.5 * r[0]", "    V[t - 1] = r * 0.5"),
    ("for j in range(6):", "    if X[t, j % 3] > 0.5:", "        last = j", "        break", "    n[0] += 1"),
)
"""Values of arrays end loops within the loop."""
MIXING = (
    ("if x[t] > 0:", "    a = 1", "else:", "    a = x[t]", "y = 0.5 * y + a * z"),
    ("a = 2 if x[t] > 0 else 0.5", "y = 0.5 * y + a * 2 * x[t] + (a - 1) // 2 + a / 3", "v = v * 0.5 + a"),
    ("a = J[t] if x[t] > 0 else J[t] / 2", "z = 0.5 * z + a * 0.1 + np.sqrt(a) - max(a, 1)"),
    ("a = 1 if x[t] > 0 else 0.5", "v = v * 0.5 + J[:3] * a"),
    ("a = J[t] if x[t] > 0 else 0.3", "y = 0.5 * y + F[t] * a"),
    ("a = 1 if x[t] > 0 else F[t] / 3", "y = 0.5 * y + np.sqrt(a)"),
    ("if not (x[t] > 0 and bent(X[t, 0]) > 0.1):", "    y = 0.5 * y + x[t]"),
    ("if not (x[t] > 0 or not X[t, 0] > 0.1) or y > z:", "    z = 0.5 * z - x[t]", "y = 0.9 * y"),
    ("if -1 < bent(x[t]) < (y := 0.5 * y + x[t]) < 2:", "    z = 0.5 * z + y"),
    ("q = x[t] > 0 and not X[t, 0] < 0", "y = 0.5 * y + q * x[t]", "n[0] += 1 if q else 0"),
    ("w = x[t] > 0 and y or z", "y = 0.5 * y + 0.1 * w"),
    ("w = y and z or x[t]", "y = 0.5 * y + 0.1 * w"),
    ("q = z < bent(x[t]) <= 1", "z = 0.5 * z + (x[t] if ~q else 0)"),
    (
        "while k < 40:",
        "    q = 0.5 * z + k",
        "    k += 1",
        "    if q > x[t]:",
        "        break",
        "z = 0.1 * z",
    ),
    (
        "w = 2.0 + abs(y)",
        "while True:",
        "    q = 0.5 * w",
        "    if q < 1:",
        "        break",
        "    w = q",
        "y = 0.5 * y + q",
    ),
    ("H[:, t] = 0.5 * H[:, t - 1] + X[t]",),
    ("H[:, t] = v", "v = 0.5 * v + X[t]"),
    ("H[:, t] += H[:, t - 2] * y", "y = 0.5 * y + x[t]"),
    ("if x[t] > 0:", "    H[:, t] = v", "else:", "    H[1, t] = y"),
)
"""Branches leave numbers of several types, conditions decide within expressions, columns are written."""
HEADER = """import numpy as np

class Holder:
    pass

def bent(value):
    if value > 0:
        value = 0.5 * value
    else:
        value = value * value
    return value

def program(x, X, M):
    T = len(x)
    y, z, k, last, n = 0.0, 1.0, 0, 0, [0]
    v, out, V, W = np.ones(3), np.zeros(T), X * 1.0, np.zeros((3, 3))
    items, s, o = [], {"y": 0.5}, Holder()
    o.z = 0.1
    J, F, H = np.arange(T), np.ones(T, "float32"), np.zeros((3, T))
"""
FOOTER = """
    kept = np.stack(items) if items else np.zeros(1)
    return y + 0 * x[0], z + 0 * x[0], v, out, V, W, kept, s["y"] + 0 * x[0], o.z + 0 * x[0], x, X, H
"""


def text(generator, hostile=0.3, choosing=0.0, ending=0.0, mixing=0.0):
    """The text of a program, with shares of statements of some kinds."""
    lines = [HEADER]
    iterator = "    numbers = iter([0.1] * 9 + [0.7] * 90)"
    for _ in range(generator.integers(1, 3)):
        lines.append(f"    for t in {generator.choice(HEADS)}:")
        for _ in range(generator.integers(1, 5)):
            group = HOSTILE if generator.random() < hostile else PLAIN
            if choosing and generator.random() < choosing:
                group = CHOOSING
            if ending and generator.random() < ending:
                group = ENDING
            if mixing and generator.random() < mixing:
                group = MIXING
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


def wrong_of_random_programs(seeds, folder, **shares):
    """Seeds of random programs whose results are others than in Python, and how many are refused."""
    wrong, refused = [], []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        program = loaded(text(generator, **shares), folder, f"program_{seed}")
        given = arguments(generator)
        theirs, mine = ([one.copy() for one in given] for _ in range(2))
        try:
            wanted = program(*theirs)
        except (IndexError, StopIteration):
            continue  # what Python refuses has no value to compare with
        try:
            found = esat.jit(program, mode="fast_run" if seed % 10 == 0 else "fast_compile")(*mine)
        except TracingError:
            refused.append(seed)
            continue
        if not (difference(found, wanted) < 1e-9 and difference(mine, theirs) < 1e-9):
            wrong.append(seed)
    return wrong, refused
