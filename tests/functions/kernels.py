"""Kernels of scientific computing as people write them in NumPy: loops over time, stencils,
factorizations."""

import numpy as np

KERNELS = {}


def kernel(*make):
    def enter(function):
        KERNELS[function.__name__] = (function, make[0])
        return function

    return enter


def rng():
    return np.random.default_rng(7)


@kernel(lambda r: (4, r.random((12, 12)), r.random((12, 12))))
def jacobi(steps, a, b):
    for _ in range(1, steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


@kernel(lambda r: (3, r.random((6, 6, 6)), r.random((6, 6, 6))))
def heat(steps, a, b):
    for _ in range(steps):
        for old, new in ((a, b), (b, a)):
            middle = old[1:-1, 1:-1, 1:-1]
            new[1:-1, 1:-1, 1:-1] = (
                0.125 * (old[2:, 1:-1, 1:-1] - 2 * middle + old[:-2, 1:-1, 1:-1])
                + 0.125 * (old[1:-1, 2:, 1:-1] - 2 * middle + old[1:-1, :-2, 1:-1])
                + 0.125 * (old[1:-1, 1:-1, 2:] - 2 * middle + old[1:-1, 1:-1, :-2])
                + middle
            )


@kernel(lambda r: (r.random((8, 9)), r.random((8, 9)), r.random((8, 9)), r.random(3)))
def electric_and_magnetic(ex, ey, hz, pulse):
    for t in range(pulse.shape[0]):
        ey[0, :] = pulse[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@kernel(lambda r: (1.5, 1.2, r.random((6, 7)), r.random((6, 8)), r.random((8, 7))))
def general_product(alpha, beta, c, a, b):
    c[:] = alpha * a @ b + beta * c


@kernel(lambda r: (r.random((5, 6)), r.random((6, 7)), r.random((7, 8)), r.random((8, 4))))
def three_products(a, b, c, d):
    return a @ b @ (c @ d)


@kernel(lambda r: (r.random((9, 6)), r.random(9), r.random(6)))
def two_vectors(a, r, p):
    return r @ a, a @ p


@kernel(lambda r: (r.random((9, 6)), r.random(6)))
def there_and_back(a, x):
    return (a @ x) @ a


@kernel(lambda r: (r.random(8), r.random(8), r.random((8, 8)), r.random((8, 8)), r.random(8), r.random(8)))
def two_matvecs(x1, x2, a, b, y1, y2):
    x1 += a @ y1
    x2 += y2 @ b


@kernel(lambda r: (np.cov(r.random((6, 30))),))
def cholesky(a):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@kernel(lambda r: (r.random((6, 6)) + 6 * np.eye(6),))
def lower_and_upper(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]


@kernel(lambda r: (np.tril(r.random((7, 7))) + np.eye(7), np.zeros(7), r.random(7)))
def triangular_solve(lower, x, b):
    for i in range(x.shape[0]):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]


@kernel(lambda r: (r.random(7),))
def levinson(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@kernel(lambda r: (r.random((8, 5)),))
def gram_schmidt(a):
    q = np.zeros_like(a)
    r = np.zeros((a.shape[1], a.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


@kernel(lambda r: (20.0, r.random((20, 5))))
def correlations(count, data):
    mean = np.mean(data, axis=0)
    spread = np.std(data, axis=0)
    spread[spread <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(count) * spread
    corr = np.eye(data.shape[1], dtype=data.dtype)
    for i in range(data.shape[1] - 1):
        corr[i + 1 :, i] = corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return corr


@kernel(lambda r: (20.0, r.random((20, 4))))
def covariances(count, data):
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((data.shape[1], data.shape[1]), dtype=data.dtype)
    for i in range(data.shape[1]):
        cov[i:, i] = cov[i, i:] = data[:, i] @ data[:, i:] / (count - 1.0)
    return cov


@kernel(lambda r: (r.random((4, 5, 6)), r.random((6, 6))))
def products_of_blocks(a, c4):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j, :] = a[i, j, :] @ c4


@kernel(lambda r: ((r.random((7, 7)) * 10).astype(np.int64),))
def shortest_paths(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


@kernel(lambda r: (r.random((6, 6)), r.random((6, 6)), 3))
def alternating_directions(u, p, steps):
    n = u.shape[0]
    for _ in range(steps):
        for j in range(1, n - 1):
            p[1:-1, j] = 1.0 / (2.5 - 0.5 * p[1:-1, j - 1])
            u[1:-1, j] = (u[:-2, j] + u[2:, j] + 0.3 * u[1:-1, j - 1]) * p[1:-1, j]
        u[1:-1, -1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + 0.1


@kernel(lambda r: (r.random(11), r.random(11), r.random(11)))
def wind(x, y, z):
    gradient = np.empty(x.shape)
    gradient[1:-1] = (x[2:] - x[:-2]) / 2
    gradient[0] = x[1] - x[0]
    gradient[-1] = x[-1] - x[-2]
    z += gradient * y
    return z.max(), z.argmin()


@kernel(
    lambda r: (
        r.random((2, 9, 9, 3)).astype(np.float32),
        r.random((3, 3, 3, 4)).astype(np.float32),
        r.random(4).astype(np.float32),
    )
)
def convolution(images, weights, bias):
    k = weights.shape[0]
    n, h, w, _ = images.shape
    output = np.empty((n, h - k + 1, w - k + 1, weights.shape[3]), dtype=np.float32)
    for i in range(h - k + 1):
        for j in range(w - k + 1):
            output[:, i, j, :] = np.sum(
                images[:, i : i + k, j : j + k, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return np.maximum(output + bias, 0)


@kernel(lambda r: (r.random((2, 3, 5, 5)).astype(np.float32),))
def softmax_of_rows(x):
    tmp_max = np.max(x, axis=-1, keepdims=True)
    tmp_out = np.exp(x - tmp_max)
    return tmp_out / np.sum(tmp_out, axis=-1, keepdims=True)


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@kernel(lambda r: (r.random((4, 8)), r.random((8, 6)), r.random(6), r.random((6, 3)), r.random(3)))
def perceptron(x, w1, b1, w2, b2):
    return softmax(relu(x @ w1 + b1) @ w2 + b2)


def get_acceleration(pos, mass, softening):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    positive = inv_r3 > 0
    inv_r3[positive] = inv_r3[positive] ** (-1.5)
    return np.hstack(((dx * inv_r3) @ mass, (dy * inv_r3) @ mass, (dz * inv_r3) @ mass))


@kernel(lambda r: (r.random((6, 1)), r.random((6, 3)), r.random((6, 3)), 2, 0.01, 0.1))
def bodies(mass, pos, vel, steps, dt, softening):
    vel -= np.mean(mass * vel, axis=0) / np.mean(mass)
    energy = np.empty(steps + 1, dtype=np.float64)
    acc = get_acceleration(pos, mass, softening)
    energy[0] = 0.5 * np.sum(np.sum(mass * vel**2))
    for i in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = get_acceleration(pos, mass, softening)
        vel += acc * dt / 2.0
        energy[i + 1] = 0.5 * np.sum(np.sum(mass * vel**2))
    return energy


@kernel(lambda r: (-2.0, 0.5, -1.2, 1.2, 9, 7, 6))
def mandelbrot(x_min, x_max, y_min, y_max, nx, ny, steps):
    xs = np.linspace(x_min, x_max, nx, dtype=np.float64)
    ys = np.linspace(y_min, y_max, ny, dtype=np.float64)
    c = xs + ys[:, None] * 1j
    n = np.zeros(c.shape, dtype=np.int64)
    z = np.zeros(c.shape, dtype=np.complex128)
    for k in range(steps):
        inside = np.less(abs(z), 2.0)
        n[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    n[n == steps - 1] = 0
    return z, n


@kernel(lambda r: (5, 4, r.random((6, 6)), r.random((6, 6)), r.random((6, 6)), r.random((6, 6))))
def cavity(steps, inner, u, v, p, b):
    for _ in range(steps):
        b[1:-1, 1:-1] = (u[1:-1, 2:] - u[1:-1, :-2]) / 4 + (v[2:, 1:-1] - v[:-2, 1:-1]) / 4
        for _ in range(inner):
            pn = p.copy()
            p[1:-1, 1:-1] = (pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1]) / 4 - b[1:-1, 1:-1]
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        un = u.copy()
        u[1:-1, 1:-1] = un[1:-1, 1:-1] - 0.01 * (p[1:-1, 2:] - p[1:-1, :-2])
        u[0, :] = 0
        u[-1, :] = 1


@kernel(lambda r: (r.random(40) * 10 - 5, r.random(40)))
def energies_by_bins(radius, weight):
    edges = np.linspace(-5, 5, 6)
    total = np.zeros(5, dtype=np.float64)
    for i in range(5):
        total[i] = np.sum(weight[np.logical_and(edges[i] <= radius, radius < edges[i + 1])])
    return total


@kernel(lambda r: ((r.random((9, 2)) * 100).astype(np.int32),))
def fold(a):
    count = np.zeros(10, dtype=np.int64)
    np.add.at(count, a[:, 0] % 10, 1)
    return count, a.sum(axis=1, dtype=np.int64), (a // 7).max(0)


@kernel(lambda r: (r.random(9), r.random((9, 9))))
def conjugate_gradients(b, m):
    a = m @ m.T + 9 * np.eye(len(b))
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(4):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
    return x
