"""Op templates: every name means something for every dtype, and gives NumPy's values."""

import numpy as np
import pytest
from codegen.kernel_cases import check, op, variable

from esat.codegen.template import is_resolvable
from esat.ops.elementwise.records.code import CODE_DTYPES, VECTOR_MATH, Code
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.table import ELEMENTWISE


@pytest.mark.parametrize("op", ELEMENTWISE, ids=str)
def test_every_name_of_every_template_resolves(op: Elementwise) -> None:
    dtypes = {op.admits(dtype) for dtype in CODE_DTYPES}
    for dtype in dtypes & set(CODE_DTYPES):
        template = op.source(dtype)
        assert template is None or is_resolvable(template, dtype), (dtype, template)


def test_functions_of_floats_do_not_resolve_for_integers() -> None:
    assert not is_resolvable("exp({0})", "int32")
    assert not is_resolvable("unheard_of({0})", "float64")


def uses_vector_math(code: Code, dtype: str) -> bool:
    template = code.template(dtype) or ""
    return any(f"{name}(" in template for name in VECTOR_MATH)


def grid(dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array([False, True])
    if dtype.startswith("float"):
        limits = np.finfo(dtype)
        numbers = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -2.5, 3.0, -7.25, 1e10, np.inf, -np.inf, np.nan]
        return np.array([*numbers, limits.tiny, limits.max, -limits.max], dtype)
    limits = np.iinfo(dtype)
    numbers = [0, 1, 2, 3, 7, 8, 31, 63, 64, 100, limits.max, limits.max - 1, limits.min, limits.min + 1]
    if limits.min < 0:
        numbers += [-1, -2, -3, -7, -64]
    return np.array(numbers, dtype)


@pytest.mark.parametrize("dtype", CODE_DTYPES)
def test_all_simple_ops_agree_with_numpy(dtype: str) -> None:
    """All ops of one dtype whose code is arithmetic or scalar helpers, as one kernel with many outputs."""
    numbers = grid(dtype)
    first, second = (part.ravel() for part in np.meshgrid(numbers, numbers, indexing="ij"))
    third = np.roll(second, 5)
    inputs = [variable(dtype, None) for _ in range(3)]
    condition = variable("bool", None)
    outputs = []
    for record in ELEMENTWISE:
        template = record.source(dtype)
        if record.admits(dtype) != dtype or template is None or uses_vector_math(record.code, dtype):
            continue
        operands = (
            (condition, *inputs[1:])
            if record.operand_typing[0] == "bool" != dtype
            else inputs[: record.arity]
        )
        if record.arity < 4 and record.operand_typing[0] in ("same", "bool"):
            outputs.append(record(*operands))
    assert len(outputs) > (12 if dtype == "bool" else 20)
    used = [v for v in (*inputs, condition) if any(v is one for out in outputs for one in out.owner.inputs)]
    data = {**dict(zip(inputs, (first, second, third), strict=True)), condition: first != second}
    check(outputs, used, [data[v] for v in used], rtol=4 * 2.0**-52 if dtype == "float64" else 4 * 2.0**-23)


def test_casts_agree_with_numpy() -> None:
    numbers = np.array([0.0, -0.0, 0.75, -0.75, 1.5, -1.5, 100.25, -100.25, 1000.0])
    integers = np.array([0, 1, -1, 127, 128, 255, 256, -129, 2**31 - 1, 2**31, -(2**31), 2**40, -(2**63)])
    wide = np.array([0, 1, 2**63, 2**64 - 1, 2**63 - 1], "uint64")
    from esat.ops.cast import cast

    for dtype, values in (("float64", numbers), ("int64", integers), ("uint64", wide)):
        source = variable(dtype, None)
        targets = [target for target in CODE_DTYPES if target != dtype]
        check([cast(source, target) for target in targets], [source], [values])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_signs_of_zeros_agree_with_numpy(dtype: str) -> None:
    numbers = np.array([0.0, -0.0, 0.25, -0.25, 2.0, -2.0, 6.0, -6.0, np.inf, -np.inf], dtype)
    first, second = (part.ravel() for part in np.meshgrid(numbers, numbers, indexing="ij"))
    x, y = variable(dtype, None), variable(dtype, None)
    results = [op(name, x, y) for name in ("floor_div", "mod", "fmod", "mul", "div", "copysign")]
    results += [op(name, x) for name in ("floor", "ceil", "trunc", "rint", "abs", "neg", "sign")]
    check([op("copysign", 1.0, result) for result in results], [x, y], [first, second])
