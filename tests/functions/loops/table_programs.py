"""Random programs that read and write single elements of tables in loops, as text."""

import importlib.util
import sys

import numpy as np

import esat

STEPS = (
    ("T[i, j] = T[i - 1, j] + x[j]",),
    ("T[i][j] = max(T[i - 1][j], x[j] + T[i - 1][j - 1])",),
    ("T[i, j] = 0.5 * T[i, j - 1] + 0.25 * T[i - 1, j]",),
    ("V[(i * j) % m] = V[(i * j) % m] + 0.5",),
    ("if V[j] > s:", "    s = V[j]", "else:", "    T[i, j] = s"),
    ("if V[j] > V[j - 1]:", "    t = V[j]", "    V[j] = V[j - 1]", "    V[j - 1] = t"),
    ("s = 0.5 * s + T[j % n, i % m]",),
    ("T[i, J[j]] = T[i, J[j - 1]] * 0.5 + s",),
    ("k = k // 3 + J[j] * i",),
    ("k = (k * 7 + j) % 11 - 5",),
    ("I[j] = max(I[j - 1] + J[j], I[j])",),
    ("I[k % m] = I[k % m] + 1",),
    ("row = T[i]", "row[j] = row[j - 1] * 0.5 + x[j]"),
    ("if x[j] > 0:", "    T[i][j] = V[j] + 1.0", "else:", "    T[i][j - 1] = V[j]"),
    ("V[j] += T[i, j] - V[j - 1]",),
    ("if J[j] == i:", "    I[i % m] = I[j]", "elif J[j] > i:", "    k = k + 1", "else:", "    I[j] = k"),
    ("while k > 3:", "    k = k // 2"),
    ("w = abs(k)", "while w > 0:", "    I[w % m] = I[w % m] + w", "    w = w // 2"),
    ("S[j] = x[j] > s", "s = s + 1.0 if S[j - 1] else s * 0.5"),
    ("T[i, j] = min(T[i, j], T[i, k % m] + V[j])",),
    ("I[j] = I[j] // (J[j] - 1) + I[j] % (k + 3)",),
    ("s = s + float(I[j]) * 0.01",),
    ("B[j] = B[j - 1] + B[j]",),
    ("if B[j] < 100:", "    B[j] = B[j] * 3 + J[j]"),
    ("k = k ^ J[j]", "k = k & 255"),
    ("q = V[j] - V[j - 1]", "V[j] = q * q * 0.1"),
    ("s = s + np.where(x[j] > 0, V[j], T[i, j] * 0.5)",),
)
RAISING = (
    ("T[i, J[j] * 2] = s",),
    ("k = I[j + 1]",),
    ("if J[j] > 2:", "    V[J[j] + 2] = 1.0"),
    ("s = s + np.where(x[j] > 0, V[j], V[j + 1])",),
)
"""Places that are out of bounds now and then."""
OUTER = ("range(n)", "range(1, n)", "range(n - 1, -1, -1)", "range(0, n, 2)")
INNER = ("range(m)", "range(1, m)", "range(m - 1, 0, -1)", "range(2, m)", "range(0, m, 3)")


def random_program(rng):
    """The text of a function ``f``."""

    def some(count, indent):
        pools = [RAISING if rng.random() < 0.03 else STEPS for _ in range(count)]
        return [" " * indent + line for pool in pools for line in pool[rng.integers(len(pool))]]

    def inner():
        return f"for j in {INNER[rng.integers(len(INNER))]}:"

    lines = [
        "import numpy as np",
        "def f(T, V, I, J, x, B, S, s, k):",
        "    T = T.copy(); V = V.copy(); I = I.copy(); B = B.copy(); S = S.copy()",
        "    (n, m), t, q, w = T.shape, 0.0, 0.0, 0",
    ]
    if rng.random() < 0.25:
        lines += ["    i = 1", f"    {inner()}", *some(rng.integers(1, 5), 8)]
    else:
        lines += [f"    for i in {OUTER[rng.integers(len(OUTER))]}:"]
        lines += ["        j = i % m", *some(1, 8)] if rng.random() < 0.3 else []
        lines += [f"        {inner()}", *some(rng.integers(1, 4), 12)]
        lines += ["        j = (i + 1) % m", *some(1, 8)] if rng.random() < 0.3 else []
        lines += [f"        {inner()}", *some(1, 12)] if rng.random() < 0.2 else []
    return "\n".join([*lines, "    return T, V, I, B, S, s, k", ""])


def random_arguments(rng):
    """What ``f`` takes."""
    n, m = rng.integers(4, 12), rng.integers(7, 14)
    return [
        *(rng.normal(size=(n, m)), rng.normal(size=m), rng.integers(-9, 9, m), rng.integers(-4, 4, m)),
        *(rng.normal(size=m), rng.integers(-9, 9, m).astype(np.int32), rng.random(m) > 0.5),
        *(np.float64(rng.normal()), np.int64(rng.integers(-20, 20))),
    ]


def compared(seed, folder, mode="fast_compile"):
    """Whether a random program gives what NumPy gives: ``ok``, the same ``IndexError``, or ``refused``."""
    rng = np.random.default_rng(seed)
    text = random_program(rng)
    path = folder / f"program_{seed}.py"
    path.write_text(text)
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    given, compiled = random_arguments(rng), esat.jit(module.f, mode=mode)
    for _ in range(3):
        results = []
        for function in (module.f, compiled):
            try:
                with np.errstate(all="ignore"):
                    results.append(function(*given))
            except IndexError as error:
                results.append(error)
            except esat.errors.TracingError:
                return "refused"
        wanted, found = results
        assert isinstance(wanted, IndexError) == isinstance(found, IndexError), f"{text}\n{results}"
        if isinstance(wanted, IndexError):
            return "IndexError"
        for own, other in zip(found, wanted, strict=True):
            assert np.asarray(own).dtype == np.asarray(other).dtype, text
            np.testing.assert_allclose(own, other, rtol=1e-11, atol=1e-12, err_msg=text)
        given[4] = given[4] + 0.1
    return "ok"
