"""Short programs of everyday: statistics, finance, learning, images, as people write them in NumPy."""

from math import sqrt

import numpy as np

PROGRAMS = {}


def program(make):
    def enter(function):
        PROGRAMS[function.__name__] = (function, make)
        return function

    return enter


@program(lambda r: (100 * r.random(50) + 1, 100 * r.random(50) + 1, r.random(50) + 0.1, 0.02, 0.3))
def option_prices(spot, strike, years, rate, volatility):
    def normal(x):
        return 0.5 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / (volatility * np.sqrt(years))
    d2 = d1 - volatility * np.sqrt(years)
    return spot * normal(d1) - strike * np.exp(-rate * years) * normal(d2)


@program(lambda r: ((r.random((16, 16)) < 0.3).astype(np.int32),))
def game_of_life(cells):
    neighbours = sum(
        np.roll(np.roll(cells, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
    )
    return ((neighbours == 3) | ((cells == 1) & (neighbours == 2))).astype(cells.dtype)


@program(lambda r: (r.random((40, 3)), r.random((4, 3))))
def nearest_centres(points, centres):
    distances = ((points[:, None, :] - centres[None]) ** 2).sum(axis=-1)
    nearest = distances.argmin(axis=1)
    return np.array([points[nearest == k].mean(axis=0) for k in range(len(centres))]), nearest


@program(lambda r: (r.random(30), 5))
def rolling_mean(x, n):
    c = np.cumsum(np.insert(x, 0, 0))
    return (c[n:] - c[:-n]) / n


@program(lambda r: (r.normal(size=(12, 5)), r.integers(0, 5, 12)))
def cross_entropy(logits, labels):
    z = logits - logits.max(axis=1, keepdims=True)
    log_sums = np.log(np.exp(z).sum(axis=1))
    return (log_sums - z[np.arange(len(labels)), labels]).mean()


@program(lambda r: (r.random((30, 4)),))
def principal_components(x):
    x = x - x.mean(0)
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    return np.abs(x @ vt.T[:, :2]), s


@program(lambda r: (1000,))
def monte_carlo_pi(n):
    g = np.random.default_rng(0)
    p = g.random((n, 2))
    return 4 * np.mean((p**2).sum(axis=1) < 1)


@program(lambda r: (r.random((12, 12)), r.random((3, 3))))
def blur(image, weights):
    out = np.zeros((image.shape[0] - 2, image.shape[1] - 2))
    for i in range(3):
        for j in range(3):
            out += weights[i, j] * image[i : i + 10, j : j + 10]
    return out


@program(lambda r: (r.random((9, 3)),))
def nearest_neighbour(x):
    d = x[:, np.newaxis, :] - x[np.newaxis, :, :]
    distances = np.sqrt(np.einsum("ijk,ijk->ij", d, d))
    np.fill_diagonal(distances, np.inf)
    return distances.min(axis=1)


@program(lambda r: (r.random(20), r.random(20)))
def straight_line(x, y):
    a = np.vstack([x, np.ones(len(x))]).T
    return np.linalg.lstsq(a, y, rcond=None)[0]


@program(lambda r: (r.random(50), 10))
def normalized_histogram(x, bins):
    counts, _ = np.histogram(x, bins=bins, range=(0, 1))
    return counts / counts.sum()


@program(lambda r: (r.random(60),))
def without_outliers(x):
    z = (x - x.mean()) / x.std()
    return x[np.abs(z) < 1.5].sum()


@program(lambda r: (r.normal(size=(8, 6)), r.normal(size=(6, 4)), r.normal(size=4), 1e-3))
def optimizer_step(x, w, b, rate):
    h = np.maximum(x @ w + b, 0)
    g = 2 * (h - 1) / h.size
    gradient = x.T @ (g * (h > 0))
    m, v = 0.1 * gradient, 0.001 * gradient**2
    w -= rate * m / (np.sqrt(v) + 1e-8)
    return w


@program(lambda r: (np.linspace(0, 1, 12),))
def runge_kutta(y):
    def f(t, y):
        return -y + np.sin(t)

    t, h = 0.0, 0.01
    for _ in range(6):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t += h
    return y


@program(lambda r: tuple(r.normal(size=(2, 5, 4)) for _ in range(3)))
def attention(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) / sqrt(q.shape[-1])
    scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v


@program(lambda r: (r.random(40), r.integers(0, 6, 40)))
def means_of_groups(x, group):
    sums = np.zeros(6)
    np.add.at(sums, group, x)
    return sums / np.maximum(np.bincount(group, minlength=6), 1)


@program(lambda r: (r.random((6, 6)), 10))
def page_ranks(links, steps):
    m = links / links.sum(axis=0)
    v = np.ones(m.shape[0]) / m.shape[0]
    for _ in range(steps):
        v = 0.85 * m @ v + 0.15 / len(v)
    return v


@program(lambda r: (r.random((5, 4)), [1, 2, 3], {"scale": 2.0, "names": ("a", "b")}))
def with_options(x, rows, options):
    total = x[rows].sum(axis=0) * options["scale"]
    return {"total": total, "first": (total[0], options["names"][0]), "count": len(rows)}


@program(lambda r: (r.random(30),))
def moving_average_crossing(x):
    fast = np.convolve(x, np.ones(3) / 3, mode="valid")[4:]
    slow = np.convolve(x, np.ones(7) / 7, mode="valid")
    signal = np.where(fast > slow, 1, -1)
    return np.flatnonzero(np.diff(signal) != 0), (signal * np.diff(x[5:], append=x[-1])[: len(signal)]).sum()


@program(lambda r: (r.random((7, 7)), r.random((7, 7))))
def root_mean_squares(a, b):
    difference = a - b
    return np.sqrt(np.mean(difference**2)), np.abs(difference).max(), float(a.shape[0])


@program(lambda r: (r.random(12) * 6 - 3,))
def pieces(x):
    y = np.zeros_like(x)
    y[x < -1] = -1.0
    y[x > 1] = 1.0
    middle = (x >= -1) & (x <= 1)
    y[middle] = np.sin(x[middle] * np.pi / 2)
    return y


@program(lambda r: (r.random((4, 3)), r.random((4, 3))))
def in_place_everywhere(a, b):
    np.multiply(a, b, out=a)
    row = a[1]
    row += 10
    a.T[0] *= 2
    flat = a.ravel()
    flat[::5] = -1
    b[...] = np.add(a, 1)
    return a, row


@program(lambda r: (r.random(20),))
def bootstrap(x):
    g = np.random.default_rng(3)
    return np.percentile(x[g.integers(0, len(x), (50, len(x)))].mean(axis=1), [5, 95])


@program(lambda r: (r.random(64),))
def low_pass(x):
    spectrum = np.fft.rfft(x)
    spectrum[10:] = 0
    return np.fft.irfft(spectrum)
