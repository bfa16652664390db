"""Examples of and remedies for each kind of error; the code runs while the page of errors is made."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, str]] = {
    "ShapeError": (
        """
@esat.jit
def f(x, y):
    return x + y
f(np.ones(3), np.ones(4))
""",
        "Make the sizes equal, or 1 where an axis is to broadcast. In graphs an axis of unknown size "
        "broadcasts only "
        "if it is declared so: `esat.tensor('x', shape=(1, None))`.",
    ),
    "AxisError": ("esat.vector('x').sum(axis=2)", "Axes count from 0 to the rank less 1, or from -1 down."),
    "IndexingError": (
        "esat.jit(lambda x, i: x[i])(np.ones(3), np.array([1, 5]))",
        "Check the indices before the call, or limit them with `np.clip`.",
    ),
    "DtypeError": (
        "esat.bitwise_and(esat.vector('x'), 1)",
        "Cast first: `x.astype('int64')`. Python's numbers take the dtype of the array beside them, as "
        "in NumPy 2.",
    ),
    "TracingError": (
        """
@esat.jit
def f(x):
    return "large" if x.sum() > 1 else "small"
f(np.ones(3))
""",
        "Return numbers and arrays, of one shape and dtype on all ways: `if`, `while` and `assert` on values "
        "work as they are. Where a list grows by values, write to an array of a known size, and count. "
        "Arguments that decide how a function is computed are named in `static_argnames`.",
    ),
    "TracedAttributeError": (
        "esat.jit(lambda x: x.ctypes)(np.ones(3))",
        "Traced arrays have no memory yet: do what needs it outside of the compiled function.",
    ),
    "LinearAlgebraError": (
        "esat.jit(np.linalg.cholesky)(np.array([[1.0, 2.0], [2.0, 1.0]]))",
        "Catch it, as NumPy's `LinAlgError`; or ask for NaN: `esat.linalg.cholesky(a, on_error='nan')`.",
    ),
    "MatrixShapeError": (
        "esat.jit(np.linalg.inv)(np.ones((2, 3)))",
        "The matrix has to be square; `pinv` and `lstsq` take others.",
    ),
    "StatedShapeError": (
        "x = esat.vector('x')\nesat.compile(esat.Graph([x], [esat.specify_shape(x, (3,))]))(np.ones(4))",
        "Give a value of the sizes that the graph states, or state them by `None`.",
    ),
    "CallError": (
        "esat.exp(esat.vector('x'), axis=0)",
        "`help` of the function names its parameters.",
    ),
    "InputError": (
        """
x = esat.vector("x")
f = esat.compile(esat.Graph([x], x + 1))
f(np.ones((2, 2)))
""",
        "Pass an array of the rank and dtype that the input has, or compile a graph of another: "
        "`esat.matrix('x')`.",
    ),
    "GraphError": (
        """
x = esat.vector("x")
esat.Graph([x], x + esat.vector("x"))
""",
        "List every Variable that the outputs depend on among the inputs; two Variables of one name are two.",
    ),
    "GradientError": (
        "esat.grad(lambda x: x * 2)(np.ones(3))",
        "Sum the result, or use `esat.jacobian` or `esat.vjp`.",
    ),
    "ParameterError": (
        "esat.evaluate(esat.random.RandomStream(0).normal(scale=esat.constant(-1.0)))",
        "Parameters of distributions have NumPy's domains: a scale is not negative.",
    ),
    "AssertionFailed": (
        """
x = esat.vector("x")
f = esat.compile(esat.Graph([x], esat.assert_(esat.log(x), (x > 0).all())))
f(np.array([-1.0]))
""",
        "The condition is yours. In functions under `jit`, `assert` and `raise` raise what they say.",
    ),
    "ModeError": ("esat.Mode('fast_rum')", "The message lists modes and settings."),
    "RuleError": (
        "esat.rules.add('(rewrite (Expp x) x :name \"mine\")')",
        "The message says line and column; `esat/rules/README.md` describes the language, and the table "
        "of ops the names.",
    ),
    "OptimizerError": (
        "esat.optdb['no_such_optimizer']",
        "`esat.optdb` lists names and tags when it is printed.",
    ),
}
"""Kind -> code that raises it, and what to do."""

WITHOUT_EXAMPLE: dict[str, str] = {
    "EsatError": "The base of all of these: catch it to catch any.",
    "EsatWarning": "The base of all warnings.",
    "CycleError": "An op of yours, or an optimizer, made a value depend on itself.",
    "DestroyError": "An op of yours says in `destroys` that it overwrites what another step reads.",
    "CompileError": "A fault of esat: please report it, with what `python -m esat doctor` prints.",
    "SaturationError": "Most often a rule of yours: `python -m esat rules check` tries it.",
    "DebugError": "Only in `Mode('debug')`: the message names the stage, the op, or the rule that is wrong.",
    "DeviceError": (
        "Start a new process: the driver gives a device up after an error, with all that is on it."
    ),
    "DeviceMemoryError": "Use smaller batches, or free arrays that you keep on the device.",
    "EmulationError": "Only where kernels for a device are tried without one.",
}
"""What no short program raises -> what to do."""
