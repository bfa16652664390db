"""esat: a compiler for tensor expressions that optimizes by equality saturation.

``esat.jit`` compiles a function of NumPy arrays; ``esat.grad``, ``value_and_grad``, ``jacobian``
and ``vmap`` make functions of functions. ``esat.compile`` compiles a typed graph of Variables such as
``esat.vector("x")``. Functions have NumPy's names. ``print(f.report)``, ``print(f.explain())`` and
``f.save_html("f.html")`` show what a compiled function does, and why.
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from esat import errors as errors
from esat import fft as fft
from esat import linalg as linalg
from esat import random as random
from esat import sparse as sparse
from esat.base.collection import without_collecting as _without_collecting
from esat.base.spelling import suggestion as _suggestion
from esat.errors import (
    AssertionFailed,
    AxisError,
    CallError,
    CompileError,
    CycleError,
    DebugError,
    DeviceError,
    DeviceMemoryError,
    DtypeError,
    EsatError,
    EsatWarning,
    GradientError,
    GraphError,
    IndexingError,
    InputError,
    LinearAlgebraError,
    MatrixShapeError,
    ModeError,
    OptimizerError,
    ParameterError,
    RuleError,
    SaturationError,
    ShapeError,
    StatedShapeError,
    TracedAttributeError,
    TracingError,
)
from esat.frontend import loops as _loops
from esat.frontend import names as _names
from esat.frontend import tensor as _tensor
from esat.frontend.arrays import assembling as _assembling
from esat.frontend.arrays import creation as _creation
from esat.frontend.arrays import pieces as _pieces
from esat.frontend.arrays import places as _places
from esat.frontend.arrays import shaping as _shaping
from esat.frontend.arrays.assembling import *  # noqa: F403
from esat.frontend.arrays.creation import *  # noqa: F403
from esat.frontend.arrays.indexing import getitem, inc_subtensor, set_subtensor, take, take_along_axis
from esat.frontend.arrays.pieces import *  # noqa: F403
from esat.frontend.arrays.places import *  # noqa: F403
from esat.frontend.arrays.shaping import *  # noqa: F403
from esat.frontend.derivatives import transformations as _transformations
from esat.frontend.derivatives.transformations import *  # noqa: F403
from esat.frontend.derivatives.verify_grad import verify_grad
from esat.frontend.elements import activations as _activations
from esat.frontend.elements import bits as _bits
from esat.frontend.elements import elementwise as _elementwise
from esat.frontend.elements import histograms as _histograms
from esat.frontend.elements import nans as _nans
from esat.frontend.elements import numeric as _numeric
from esat.frontend.elements import polynomials as _polynomials
from esat.frontend.elements import reductions as _reductions
from esat.frontend.elements import running as _running
from esat.frontend.elements import searching as _searching
from esat.frontend.elements import sequences as _sequences
from esat.frontend.elements import sets as _sets
from esat.frontend.elements import statistics as _statistics
from esat.frontend.elements.activations import *  # noqa: F403
from esat.frontend.elements.bits import *  # noqa: F403
from esat.frontend.elements.elementwise import *  # noqa: F403
from esat.frontend.elements.histograms import *  # noqa: F403
from esat.frontend.elements.nans import *  # noqa: F403
from esat.frontend.elements.numeric import *  # noqa: F403
from esat.frontend.elements.polynomials import *  # noqa: F403
from esat.frontend.elements.reductions import *  # noqa: F403
from esat.frontend.elements.running import *  # noqa: F403
from esat.frontend.elements.searching import *  # noqa: F403
from esat.frontend.elements.sequences import *  # noqa: F403
from esat.frontend.elements.sets import *  # noqa: F403
from esat.frontend.elements.statistics import *  # noqa: F403
from esat.frontend.graph import Graph
from esat.frontend.library_calls import register_library_calls as _register_library_calls
from esat.frontend.linear_algebra import linear as _linear
from esat.frontend.linear_algebra.einsum import einsum
from esat.frontend.linear_algebra.linear import *  # noqa: F403
from esat.frontend.loops import *  # noqa: F403
from esat.frontend.methods import astype, shape, size, trace
from esat.frontend.methods import register_methods as _register_methods
from esat.frontend.names import *  # noqa: F403
from esat.frontend.shared import shared
from esat.frontend.tensor import *  # noqa: F403
from esat.graph import (
    Apply,
    Constant,
    Family,
    Feature,
    FunctionGraph,
    NodeFinder,
    Op,
    ReplaceValidate,
    SharedVariable,
    TensorType,
    Type,
    Variable,
    Work,
    debugprint,
)
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.calls.parameters import check_calls as _check_calls
from esat.graph.calls.parameters import check_methods as _check_methods
from esat.graph.methods import Methods as _Methods
from esat.graph.registry import register_functions as _register_functions
from esat.graph.registry import reserve_names as _reserve_names
from esat.ops.annotations.assume import assume
from esat.ops.arrays.cumulative import cumprod, cumsum
from esat.ops.arrays.diagonal import diagonal
from esat.ops.arrays.sorting import argsort, sort
from esat.ops.cast import cast
from esat.ops.control import assert_, ifelse, specify_shape
from esat.ops.elementwise.records.define import elementwise
from esat.ops.normalization import log_softmax, softmax
from esat.ops.table import register_all as _register_all

if _TYPE_CHECKING:
    from esat import classic as classic
    from esat import mode as mode
    from esat import rules as rules
    from esat.classic import optdb as optdb
    from esat.compilation.pipeline import compile as compile
    from esat.functions import jit as jit
    from esat.functions.saved import load as load
    from esat.functions.saved import save as save
    from esat.mode import Mode as Mode
    from esat.rules.language.query import Query as Query
    from esat.runtime import Executable as Executable
    from esat.tools.calibration import calibrate as calibrate
    from esat.tools.comparison import compare_times as compare_times
    from esat.tools.drawing import pydotprint as pydotprint
    from esat.tools.drawing import save_html as save_html
    from esat.tools.equality import why_not_equal as why_not_equal

dprint = debugprint
__version__ = "0.2.0"

__all__ = [
    "Apply", "AssertionFailed", "AxisError", "CallError", "CompileError", "Constant", "CycleError",
    "DebugError", "DeviceError", "DeviceMemoryError", "DtypeError",
    "EsatError", "EsatWarning", "Family", "Feature", "FunctionGraph", "GradientError", "Graph",
    "GraphError", "IndexingError", "InputError", "LinearAlgebraError", "MatrixShapeError", "ModeError",
    "NodeFinder", "Op",
    "OptimizerError", "ParameterError", "ReplaceValidate", "RuleError", "SaturationError", "ShapeError",
    "SharedVariable", "StatedShapeError", "TensorType", "TracedAttributeError", "TracingError", "Type",
    "Variable", "Work", "argsort",
    "assert_", "assume", "astype", "cast",
    "cumprod", "cumsum", "debugprint", "diagonal", "dprint", "einsum", "elementwise", "evaluate",
    "fft", "getitem", "ifelse", "inc_subtensor", "linalg", "log_softmax", "random",
    "set_subtensor", "shape", "shared", "size", "softmax", "sort", "sparse", "specify_shape", "take",
    "take_along_axis", "trace", "verify_grad",
]  # fmt: skip
for _part in (
    _activations, _assembling, _bits, _creation, _elementwise, _histograms, _linear, _loops, _names, _nans,
    _numeric, _pieces, _places, _polynomials, _reductions, _running, _searching, _sequences, _sets, _shaping,
    _statistics, _tensor, _transformations,
):  # fmt: skip
    _shadowed = {*__all__}.intersection(_part.__all__)
    if _shadowed:
        raise ImportError(f"{_part.__name__} has names that are taken: {', '.join(sorted(_shadowed))}")
    __all__ += _part.__all__

_LATER = {
    "Executable": "esat.runtime",
    "Mode": "esat.mode",
    "Query": "esat.rules.language.query",
    "calibrate": "esat.tools.calibration",
    "compare_times": "esat.tools.comparison",
    "compile": "esat.compilation.recorded.entry_point",
    "jit": "esat.functions",
    "load": "esat.functions.saved",
    "optdb": "esat.classic",
    "pydotprint": "esat.tools.drawing",
    "save": "esat.functions.saved",
    "save_html": "esat.tools.drawing",
    "why_not_equal": "esat.tools.equality",
}
_MODULES = ("classic", "functions", "mode", "numpy", "rules", "scipy")


def __getattr__(name: str) -> _Any:
    """Names of the compiler, and Theano's names of types such as ``dmatrix``."""
    if name in _tensor.TYPES:
        return _tensor.TYPES[name]
    if name in _MODULES:
        return _importlib.import_module(f"esat.{name}")
    if name in _LATER:
        with _without_collecting():
            module = _importlib.import_module(_LATER[name])
            _check_calls(vars(module), [name])
        globals()[name] = value = getattr(module, name)
        return value
    raise AttributeError(f"module 'esat' has no attribute {name!r}{_close_to(name)}")


def _close_to(name: str) -> str:
    """Which names there are in place of one that there is not."""
    return "" if name.startswith("_") else _suggestion(name, __all__)


def __dir__() -> list[str]:
    """What people use: without errors, which ``esat.errors`` has, and Theano's names of types."""
    hidden = {*_tensor.TYPES, *vars(errors)}
    return sorted({*__all__, *_LATER, *_MODULES, "errors", "__version__"} - hidden)


_register_all()
_reserve_names(__all__)
_check_calls(globals(), __all__)
for _module in (fft, linalg, random, sparse):
    _check_calls(vars(_module), _module.__all__)
for _class in (
    _Methods, Apply, Constant, FunctionGraph, Graph, Op, SharedVariable, random.RandomStream,
    sparse.SparseType,
):  # fmt: skip
    _check_methods(_class)
_register_methods(globals())
_register_library_calls(globals())
_register_functions(
    {
        "namespace": lambda: vars(_sys.modules["esat"]),
        "array_namespace": lambda: _importlib.import_module("esat.numpy"),
        "of_functions": lambda name: getattr(_importlib.import_module("esat.functions"), name),
    }
)
