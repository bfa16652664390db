"""``esat.jit``: signatures, trees, numbers, assignments, and errors that say what to write instead."""

import collections
import dataclasses
import pickle
import threading

import numpy as np
import pytest
from scipy import special

import esat
from esat.errors import CallError, DtypeError, EsatWarning, GraphError, InputError, ShapeError
from esat.functions.traced_programs import Taking
from esat.graph import Constant, Family

ROWS = np.arange(6.0).reshape(2, 3)

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


def jit(function, **options):
    return esat.jit(function, **{"mode": "fast_compile", **options})


def check(function, *arguments, **options):
    """The jitted function gives what the function gives, with the types of it, and changes what it
    changes."""
    ours, theirs = ([np.array(a) if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2))
    found, expected = jit(function, **options)(*ours), function(*theirs)
    for one, other in zip(
        found if isinstance(expected, tuple) else [found],
        expected if isinstance(expected, tuple) else [expected],
        strict=True,
    ):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    return found


# ---- programs


def test_one_program_for_each_dtype_and_shape():
    f = jit(lambda x: x * 2)
    assert f(np.float32([1, 2])).dtype == np.float32
    assert f(np.int64([1, 2])).dtype == np.int64
    f(np.float32([3, 4]))
    assert len(f.programs) == 2
    f(np.ones(3, np.float32))
    assert len(f.programs) == 3
    for n in (2, 3, 2, 3):
        np.testing.assert_array_equal(f(np.ones(n, np.float32)), np.full(n, 2))
    assert len(f.programs) == 3
    f.clear()
    assert f.programs == {}
    assert f(np.int64([1, 2])).dtype == np.int64


def test_what_is_known_of_the_last_program():
    f = esat.jit(lambda x: np.exp(x) * 2)
    with pytest.raises(esat.EsatError, match="no compiled program yet"):
        f.source()
    f(X)
    assert "def call" in f.source()
    assert f.report is not None
    assert "1 programs" in repr(f)


def test_calls_by_name_and_defaults():
    f = jit(lambda x, /, y=2.0, *, z=None, scale="one": x * y + (0 if z is None else z) + len(scale))
    np.testing.assert_array_equal(f(X), X * 2 + 3)
    np.testing.assert_array_equal(f(X, z=X), X * 3 + 3)
    np.testing.assert_array_equal(f(X, y=X, scale="a"), X * X + 1)
    with pytest.raises(TypeError, match="missing 1 required"):
        f()
    g = jit(lambda *xs, **named: sum(xs) + named["last"])
    np.testing.assert_array_equal(g(X, X, last=X), 3 * X)


def test_names_of_parameters_that_the_text_uses_itself():
    def f(slow, first, ndarray=1.0):
        return slow * first + ndarray

    np.testing.assert_array_equal(jit(f)(X, X), X * X + 1)


def test_several_threads_make_one_program():
    traces = []

    def f(x):
        traces.append(1)
        return x + 1

    g, results = jit(f), []
    threads = [threading.Thread(target=lambda: results.append(g(X))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traces) == 1
    assert all((result == X + 1).all() for result in results)


@jit
def module_level(x):
    return x - 1


def undecorated(x):
    return x - 2


def test_pickled_by_name_or_as_what_it_is_made_of():
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    again = pickle.loads(pickle.dumps(jit(undecorated)))
    np.testing.assert_array_equal(again(X), X - 2)


def test_symbolic_shapes_share_one_program():
    def f(x):
        return x / x.shape[0] + np.zeros(x.shape).sum()

    g = jit(f, shapes="symbolic")
    for n in (2, 3, 5):
        x = np.arange(4.0 * n).reshape(n, 4)
        np.testing.assert_array_equal(g(x), x / n)
    assert len(g.programs) == 1
    np.testing.assert_array_equal(jit(lambda x: x * len(x), shapes="symbolic")(X), X * len(X))
    with pytest.raises(DtypeError, match="range"):
        jit(lambda x: [x for _ in range(len(x))], shapes="symbolic")(X)


def test_donated_arrays():
    f = jit(lambda x, y: x + y, donate="x")
    (program,) = (f(np.ones(3), np.ones(3)), *f.programs.values())[1:]
    assert len(program.donated) == 1


def test_arguments_that_are_not_used():
    def shared(x, y, z):
        return x * len(y)  # the size of `y` is part of the program, and its elements are not

    f, g = jit(shared), jit(lambda x, y: y + 1)
    for size in (3, 5, 3, 4):
        for _ in range(3):
            np.testing.assert_array_equal(f(X, np.ones(size), X), X * size)
            np.testing.assert_array_equal(g(np.ones(size), X), X + 1)
    assert f(X, np.ones(3), X.astype(np.float32)).dtype == X.dtype
    kept = [*f._kept.direct.values(), *g._kept.direct.values()]
    assert all(type(program.direct) is Taking for program in kept)


# ---- numbers


def test_numbers_are_weak_and_given_at_run_time():
    f = jit(lambda x, rate: x * rate)
    for rate in (0.5, 0.25):
        assert f(np.float32([1, 2]), rate).dtype == np.float32
    assert len(f.programs) == 1
    assert f(np.float32([1, 2]), 2).dtype == np.float32
    assert f(np.float32([1, 2]), np.float64(2)).dtype == np.float64
    assert f(np.int8([1, 2]), 0.5).dtype == np.float64
    assert f(np.int8([1, 2]), 3).dtype == np.int8
    with pytest.raises(DtypeError, match="does not fit int8"):
        f(np.int8([1, 2]), 300)


@pytest.mark.parametrize("value", [3, 2.5, -1.5, 2 + 1j])
def test_arithmetic_of_numbers_is_pythons(value):
    def f(a):
        whole = () if isinstance(a, complex) else (a // 2, a % 2)
        return (a + 1, 2 - a, a * 1.5, a / 2, -a, a**2, abs(a), a * a, *whole)

    check(f, value)


def test_powers_of_numbers():
    check(lambda a, n: (a**n, 2**n, 0.5**n, 2.5**a), 4.0, 3)
    check(lambda n: n**-1, 4)
    check(lambda a: (-a) ** 2.0, 4.0)
    with pytest.warns(EsatWarning, match="compiled anew"):
        assert jit(lambda a: a**0.5)(-4.0) == (-4.0) ** 0.5


def test_integers_whose_values_are_asked_for_are_known():
    f = jit(lambda x, n: np.stack([x * k for k in range(n)]))
    assert f(X, 2).shape == (2, 2, 3)
    assert f(X, 3).shape == (3, 2, 3)
    assert f(X, 2).shape == (2, 2, 3)
    assert len(f.programs) == 2
    check(lambda x, n: x.reshape(n, -1) if n > 2 else x, X, 3)
    check(lambda x, i: (x[i], x[:, i:], x[..., -i]), X, 1)
    check(lambda x, k: x.sum(axis=k), X, 1)


def test_floats_whose_values_are_asked_for_are_known_with_a_warning():
    f = jit(lambda x, a: x * float(f"{a}"))
    with pytest.warns(EsatWarning, match="static_argnames"):
        np.testing.assert_array_equal(f(X, 1.0), X)
    np.testing.assert_array_equal(f(X, -1.0), -X)


def test_static_arguments():
    f = jit(lambda x, how, order=1.0: getattr(np, how)(x) ** order, static_argnames=("how", "order"))
    np.testing.assert_allclose(f(X, "sum"), X.sum())
    np.testing.assert_allclose(f(X, "max", order=2.0), 16)
    assert len(f.programs) == 2
    with pytest.raises(CallError, match="no argument 'hw'"):
        jit(lambda x, how: x, static_argnames="hw")
    for value, remedy in [
        (["sum"], "how: a list is not hashable, .*; pass a tuple"),
        ({"sum"}, "frozenset"),
        (X, "how: a ndarray is not hashable, .*; leave it out of static_argnames"),
        ({"sum": 1}, "leave it out of static_argnames"),
        ((1, [2]), "how: a tuple is not hashable"),
    ]:
        with pytest.raises(InputError, match=remedy):
            f(X, value)


def test_static_slices():
    f = jit(lambda x, part: x[part] * 2, static_argnames="part")
    for part in (
        slice(0, 2),
        slice(0, 2),
        slice(None, None, -1),
        (slice(1, None), slice(0, 1)),
        slice(0, 2, 1),
    ):
        np.testing.assert_array_equal(f(X, part), X[part] * 2)
    assert len(f.programs) == 4
    f(X, slice(False, 2))  # of other types, though equal
    assert len(f.programs) == 5


def test_values_from_outside_are_those_of_tracing_until_programs_are_forgotten():
    outside = {"rate": 2.0}
    f = jit(lambda x: x * outside["rate"])
    np.testing.assert_array_equal(f(X), X * 2)
    outside["rate"] = 3.0
    np.testing.assert_array_equal(f(X), X * 2)
    f.clear()
    np.testing.assert_array_equal(f(X), X * 3)


def test_comparisons_of_numbers_with_narrow_integers():
    check(lambda x, n: (x < n, n <= x, x == n), np.uint8([1, 200]), 300)


# ---- trees


@dataclasses.dataclass
class Layer:
    weights: np.ndarray
    name: str = "dense"


Pair = collections.namedtuple("Pair", "left right")


def test_trees_of_arguments_and_results():
    def f(tree, layer):
        return {
            "sum": tree["a"] + tree["b"][0],
            "pair": Pair(tree["b"][1], layer),
            "none": None,
            "n": [1, "x"],
        }

    result = jit(f)({"a": X, "b": (X, 2.0)}, Layer(X))
    np.testing.assert_array_equal(result["sum"], 2 * X)
    assert isinstance(result["pair"], Pair)
    assert result["pair"].left == 2.0
    assert isinstance(result["pair"].left, float)
    assert isinstance(result["pair"].right, Layer)
    assert result["pair"].right.name == "dense"
    np.testing.assert_array_equal(result["pair"].right.weights, X)
    assert result["none"] is None
    assert result["n"] == [1, "x"]


def test_arrays_within_trees_are_written_to():
    parameters = {"w": np.ones(3), "more": [np.zeros(2)]}

    def step(p):
        p["w"] -= 0.5
        p["more"][0][1] = 7

    jit(step)(parameters)
    np.testing.assert_array_equal(parameters["w"], [0.5] * 3)
    np.testing.assert_array_equal(parameters["more"][0], [0, 7])


def test_changes_of_containers_are_refused():
    def step(p):
        p["w"] = p["w"] - 1

    with pytest.raises(GraphError, match=r"changes the (dict|list) \w+: .*change a copy, and return it"):
        jit(step)({"w": X})


def test_arguments_that_cannot_be_taken():
    f = jit(lambda x: x)
    with pytest.raises(InputError, match="x"):
        f(np.array(["a"]))
    with pytest.raises(InputError, match="Generator"):
        f(np.random.default_rng(0))
    with pytest.raises(InputError, match="recarray"):
        f(np.zeros(2).view(np.recarray))
    nested = []
    nested.append(nested)
    with pytest.raises(InputError, match="levels"):
        f(nested)


# ---- methods and other callables


class Model:
    def __init__(self, scale):
        self.scale = scale
        self.weights = np.array([1.0, 2.0, 3.0])

    @jit
    def __call__(self, x):
        return self.hidden(x) * self.scale

    def hidden(self, x):
        out = np.zeros(x.shape[0])
        out[:] = x @ self.weights
        return out

    @jit
    def counts(self, x):
        self.scale = self.scale + 1
        return x

    def plain(self, x):
        return x * self.scale


def test_methods_see_the_attributes_of_each_call():
    one, two = Model(1.0), Model(2.0)
    np.testing.assert_array_equal(one(X), X @ one.weights)
    np.testing.assert_array_equal(two(X), 2 * (X @ one.weights))
    two.weights = two.weights * 2
    np.testing.assert_array_equal(two(X), 4 * (X @ one.weights))
    assert len(Model.__call__.programs) == 1
    with pytest.raises(GraphError, match="changes"):
        one.counts(X)
    bound = jit(one.plain)
    one.scale = 5.0
    np.testing.assert_array_equal(bound(X), 5 * X)


def test_jitted_functions_within_others_are_inlined():
    inner = jit(lambda x: np.tanh(x) * 2)
    outer = jit(lambda x: inner(x) + inner(x + 1))
    np.testing.assert_allclose(outer(X), 2 * np.tanh(X) + 2 * np.tanh(X + 1))
    assert inner.programs == {}


def test_given_variables_it_builds_a_graph():
    x = esat.matrix("x", shape=(2, 3))
    y, n = jit(lambda a: (np.zeros(a.shape) + a, a.shape[0]))(x)
    assert isinstance(y, esat.Variable)
    assert n == 2
    np.testing.assert_array_equal(y.eval({x: X}), X)


def test_functions_of_esat_within():
    check_against = special.softmax(X, axis=1)
    np.testing.assert_allclose(jit(lambda x: esat.softmax(x, axis=1))(X), check_against)
    f = jit(lambda x: esat.ifelse(x.sum() > 0, x, -x).shape[0] + esat.relu(x))
    np.testing.assert_array_equal(f(X), 2 + np.maximum(X, 0))


# ---- assignments and views


def test_views_read_and_write_what_they_are_views_of():
    def f(a):
        row, column, flat, turned = a[0], a[:, 1], a.reshape(-1), a.T
        row += 1
        column[...] = 9
        turned[2, 0] = 5
        flat[-1] = -7
        np.negative(row, out=row)
        a[1, 0] = 100
        copied = a[[0, 1]]
        copied[0] = 55
        return row, column, flat, turned, copied, a[::-1][0]

    check(f, X)


def test_copies_where_numpy_copies():
    def f(a):
        like = a.T + 1
        like.reshape(-1)[1] = 70
        narrow = a.T.astype(np.float32)
        narrow.ravel()[1] = 70
        flat = a.T.ravel()
        flat[0] = 50
        kept = a.copy()
        a[0, 0] = 8
        b = a + 0
        b[0] = 3
        return flat, kept, b, a.flatten(), like, narrow

    check(f, X)


def test_numbers_of_numpy_are_not_changed_in_place():
    def f(a):
        s = a.sum()
        t = s
        s += 1
        first = a[0, 0]
        first *= 10
        return s, t, first, a

    found = check(f, X)
    assert type(found[0]) is np.float64
    zero = np.array(1.0)

    def g(z):
        z += 1
        return z

    assert jit(g)(zero) is zero
    assert zero == 2


def test_assignments_cast_as_numpys_do():
    def f(n):
        n[0] = 2.7
        n[1:] *= 2
        return n

    check(f, np.array([1, 2, 3]))

    def g(n):
        n += 0.5

    with pytest.raises(DtypeError, match="same_kind"):
        jit(g)(np.array([1, 2]))

    def h(x):
        x[:] = np.ones((4, 3))

    with pytest.raises(ShapeError):
        jit(h)(X)


def test_masks_and_index_arrays():
    def f(x):
        x[x < 0] = 0
        x[x > 2] *= 10
        y = np.zeros(3)
        y[[0, 0, 2]] += 1
        np.add.at(y, [1, 1], 2.0)
        np.subtract.at(y, [0], 4.0)
        x[np.arange(2), [1, 2]] = -1
        return x, y

    check(f, X)


def test_functions_that_write():
    def f(x):
        np.copyto(x, 1.0, where=x < 0)
        np.fill_diagonal(x, 7)
        np.put(x, [2], 8.0)
        np.putmask(x, x == 7, 6.0)
        np.put_along_axis(x, np.array([[0], [1]]), 3.0, axis=1)
        z = x.copy()
        z.fill(2)
        z.sort()
        return x, z, np.add(x, 1, out=z) is z

    check(f, X)


def test_methods_of_ufuncs():
    def f(x):
        return (
            np.add.reduce(x), np.multiply.reduce(x, axis=1, keepdims=True), np.maximum.accumulate(x, axis=1),
            np.subtract.reduce(x, axis=1), np.add.accumulate(x, axis=0), np.subtract.outer(x, [1.0, 2.0]),
            np.add.reduceat(x, [0, 2, 1], axis=1), np.maximum(x, 0, where=x > -2, out=np.zeros_like(x)),
            np.add(x, 1, dtype=np.float32), np.logical_and.reduce(x > 0, axis=None),
        )  # fmt: skip

    check(f, X)


TOTAL = 0


def test_elements_one_after_the_other_and_globals():
    def f(x):
        turned = x.T
        turned.flat[1] = 50
        turned.flat = turned.flat[::-1]
        return x

    check(f, X)

    def counts(x):
        global TOTAL  # noqa: PLW0603
        TOTAL = TOTAL + 1
        return x

    with pytest.raises(GraphError, match="global TOTAL"):
        jit(counts)(X)


def test_arguments_that_share_memory():
    def f(a, b):
        a += b

    x = np.arange(4.0)
    with pytest.raises(InputError, match="shares memory"):
        jit(f)(x[1:], x[:-1])
    y = np.ones(3)
    y.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        jit(f)(y, np.ones(3))


# ---- what is known while the function is traced


def test_arrays_made_from_known_numbers_are_known():
    def f(x):
        table = np.arange(4) ** 2
        table[1] = 5
        total = 0.0
        for k in table:
            if k > 3:
                total = total + int(k)
        edges = np.floor(np.linspace(1.0, 10.0, 3) * 1.7).astype(int)
        rising = np.linspace(0, 1, edges[1] - edges[0])
        return x * total + np.float64(table.max()), np.linspace(0, 1, len(table)), rising

    check(f, X)


def test_shapes_and_dtypes_are_known():
    def f(x):
        assert isinstance(x, np.ndarray)
        assert x.shape == (2, 3)
        assert (x.ndim, x.size, len(x), x.nbytes) == (2, 6, 2, 48)
        assert np.result_type(x, np.float32) == np.float64
        assert np.issubdtype(x.dtype, np.floating)
        assert np.shape(x) == np.shape(x.T)[::-1]
        assert not np.iscomplexobj(x)
        (first, *rest), count = x, len(x)
        return first * count + sum(rest)

    check(f, X)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: x if x[0, 0] > 0 else x[0], "esat.where or esat.ifelse"),
        (lambda x: x[range(x.astype(int)[0, 0])], "static_argnames"),
        (lambda x: max(x[0], x[1]), "esat.where"),
        (lambda x: range(len(x[x > 0])), "static_argnames"),
        (lambda x: np.random.rand(3) + x, "RandomStream"),
        (lambda x: CLOSURE.__setitem__(0, x[0, 0]), "esat.numpy"),
        (lambda x: np.trim_zeros(x[0]), "trim_zeros"),
        (lambda x: x.nothing, "nothing"),
    ],
)
def test_errors_name_the_line_and_the_remedy(function, told):
    with pytest.raises((DtypeError, AttributeError, TypeError), match=told) as caught:
        jit(function)(X)
    if isinstance(caught.value, DtypeError):
        assert __file__ in str(caught.value)


CLOSURE = np.zeros(2)


def test_large_arrays_from_outside_are_warned_of():
    large = np.ones(1 << 20)
    with pytest.warns(EsatWarning, match="pass it as an argument"):
        jit(lambda x: large * x)(np.float64(2))


# ---- other ways to write it


def test_code_written_to_the_array_api_standard():
    def f(x):
        xp = x.__array_namespace__()
        y = xp.asarray([1.0, 2.0, 3.0])
        return xp.permute_dims(xp.concat([x, xp.zeros((1, 3), dtype=x.dtype)]) + y, (1, 0))

    np.testing.assert_array_equal(jit(f)(X), np.add(np.vstack([X, np.zeros((1, 3))]), [1, 2, 3]).T)


def test_functions_of_scipy():
    np.testing.assert_allclose(
        jit(lambda x: special.erf(x) + special.expit(x))(X), special.erf(X) + special.expit(X)
    )
    np.testing.assert_allclose(jit(lambda x: special.logsumexp(x, axis=1))(X), special.logsumexp(X, axis=1))


def test_imports_within_the_function():
    def f(x):
        import numpy
        from numpy import zeros

        y = zeros(3)
        y += numpy.ones(3)
        return x * y

    check(f, X)


def test_namespaces_outside_of_traces_are_numpys():
    import esat.numpy as enp
    from esat.numpy import linalg
    from esat.scipy import special as own

    assert type(enp.zeros(3)) is np.ndarray
    np.testing.assert_array_equal(enp.exp(X), np.exp(X))
    np.testing.assert_array_equal(linalg.norm(X), np.linalg.norm(X))
    np.testing.assert_array_equal(own.gammaln(X), special.gammaln(X))
    variable = esat.matrix()
    np.testing.assert_allclose(enp.zeros_like(variable).eval({variable: X}), np.zeros_like(X))
    np.testing.assert_allclose(linalg.norm(variable).eval({variable: X}), np.linalg.norm(X))
    with pytest.raises(AttributeError, match=r"did you mean .*zeros"):
        _ = enp.zeroes
    assert "linspace" in dir(enp)


def test_inputs_are_called_as_arguments_are() -> None:
    @esat.jit
    def weighted(weights, x, scale):
        return scale * (weights["a"] @ x + weights["b"])

    weighted({"a": np.ones((2, 3)), "b": np.ones(2)}, np.ones(3), 2.0)
    (program,) = weighted.programs.values()
    assert [str(variable) for variable in program.graph.inputs] == ["weights[0]", "weights[1]", "x", "scale"]
    assert program.profile.message.startswith("test_inputs_are_called_as_arguments_are.weighted at ")


def test_a_jitted_function_is_shown_as_its_last_program(tmp_path):
    @esat.jit
    def f(x):
        return np.exp(x).sum() + np.log(x)

    for show in (
        esat.dprint,
        esat.pydotprint,
        lambda f: f.profile,
        lambda f: f.save_html(tmp_path / "f.html"),
    ):
        with pytest.raises(esat.OptimizerError, match="f has no compiled program yet; call it first"):
            show(f)
    f(np.ones(3))
    assert esat.dprint(f, file="str") == esat.dprint(f.latest, file="str")
    assert esat.pydotprint(f) == esat.pydotprint(f.latest)
    f.measure()
    f(np.ones(3))
    assert f.profile.calls == 1
    assert "Function profiling" in str(f.profile)
    f.save_html(tmp_path / "f.html")
    esat.save_html(f, tmp_path / "again.html")
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("f.html", "again.html")]
    assert pages[0] == pages[1]
    assert "kernel_0" in pages[0]
    assert "a call, measured" in pages[0]


@pytest.mark.parametrize(
    "numbers", [(ROWS[0], ROWS[1], ROWS[0]), (ROWS[0], 0.5, ROWS[1]), (ROWS[0], ROWS[1], np.float64(2))]
)
@pytest.mark.parametrize("read", range(3))
def test_arguments_that_are_not_read_are_taken_in_every_call(numbers, read):
    function = esat.jit(lambda x, y, z: (x, y, z)[read] * 2.0)
    for _ in range(4):
        np.testing.assert_array_equal(function(*numbers), np.multiply(numbers[read], 2.0))


@pytest.mark.parametrize("rate", [0.5, np.float64(0.5), np.array(0.5), 2])
def test_numbers_among_arrays_are_run_time_values_of_one_program(rate):
    function = esat.jit(lambda x, rate: x * rate)
    for factor in range(1, 6):
        given = type(rate)(rate * factor) if not isinstance(rate, np.ndarray) else rate * factor
        np.testing.assert_array_equal(function(ROWS[0], given), ROWS[0] * given)
    assert len(function.programs) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.array([x, 2 * x, 1]),
        lambda x: np.asarray(((x, 1), (2, x))) @ np.ones(2),
        lambda x: np.exp([x, 1.5]),
        lambda x: np.add([x, 1], (x, 2.5)),
        lambda x: {f"layer {x}": str(x), f"{x:}": x},
    ],
)
@pytest.mark.filterwarnings("ignore:.*is compiled anew for each value")
def test_numbers_in_lists_and_texts(function):
    jitted = esat.jit(function)
    for value in (1, 2, 1.5, 2.5):
        expected, result = function(value), jitted(value)
        if isinstance(expected, dict):
            assert result == expected
        else:
            np.testing.assert_allclose(result, expected, rtol=4e-16)
            assert result.dtype == expected.dtype


def test_lists_of_numbers_are_arguments_of_numpys_functions():
    function = esat.jit(lambda xs: np.asarray(xs) * 2)
    for values in ([1.0, 2.0], [3.0, 0.5], [[1, 2], [3, 4]]):
        np.testing.assert_array_equal(function(values), np.asarray(values) * 2)
    assert len(function.programs) == 2


def test_arrays_that_are_written_to_are_filled_not_kept():
    @esat.jit
    def framed(x):
        result = np.full((x.shape[0], 60), -0.0)
        result[2:-2, 3:-3] = x[2:-2, 3:-3]
        return result

    x = np.random.default_rng(0).normal(size=(200, 60))
    found = framed(x)
    assert np.signbit(found[0]).all()
    np.testing.assert_array_equal(found[2:-2, 3:-3], x[2:-2, 3:-3])
    kept = [
        one for node in framed.latest.graph.apply_nodes for one in node.inputs if isinstance(one, Constant)
    ]
    assert max(one.data.size for one in kept) < 60


def test_elements_that_a_mask_chooses_are_written_where_they_stand():
    @esat.jit
    def nearest(x, size):
        x[x > size / 2] -= size
        x[x < -size / 2] += size
        return x

    x = np.random.default_rng(0).normal(size=(50, 60)) * 3
    expected = np.where(x > 1, x - 2, x)
    expected = np.where(expected < -1, expected + 2, expected)
    np.testing.assert_array_equal(nearest(x, 2.0), expected)
    assert not any(node.op.family is Family.INDEX for node in nearest.latest.graph.apply_nodes)
