"""The walls of the house: imports run one way, and no module is a god file."""

import ast
from pathlib import Path

import pytest

from tools import counts

PACKAGE = Path(__file__).resolve().parent.parent / "esat"

# Left may not import right. `frontend` is a side room of the pipeline's last stages: only
# entry points and the pipeline itself may use it.
ORDER = (
    "errors",
    "records",
    "storage",
    "native",
    "progress",
    "forks",
    "collection",
    "graph",
    "ops",
    "rules",
    "egraph",
    "extract",
    "accuracy",
    "phases",
    "classic",
    "optimize",
    "soundness",
    "codegen",
    "profile",
    "drawing",
    "runtime",
    "gpu",
    "mode",
    "frontend",
    "pipeline",
    "functions",
    "kernel_tuning",
    "calibration",
)
FRONTEND_MAY_USE = {"errors", "records", "graph", "ops", "frontend"}
ENTRY_POINTS = {"__init__", "__main__", "fft", "linalg", "numpy", "random", "scipy", "sparse"}
LONGEST_MODULE = 500

MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def room(module: Path) -> str:
    return module.parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "esat":
                names = [f"esat.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("esat.")}
    return rooms


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_run_one_way(module: Path) -> None:
    here = room(module)
    if here in ENTRY_POINTS:
        return
    used = imported_rooms(PACKAGE / module)
    allowed = FRONTEND_MAY_USE if here == "frontend" else set(ORDER[: ORDER.index(here) + 1])
    if here not in ("frontend", "pipeline", "functions", "kernel_tuning", "calibration"):
        allowed -= {"frontend"}
    assert used <= allowed, f"{module} imports {sorted(used - allowed)}"


def test_only_the_egraph_room_imports_egglog() -> None:
    users = {
        room(module)
        for module in MODULES
        if any(
            name.split(".")[0] == "egglog"
            for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8")))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        )
    }
    assert users <= {"egraph"}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_no_module_is_a_god_file(module: Path) -> None:
    lines = (PACKAGE / module).read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST_MODULE, f"{module} has {lines} lines: give its parts rooms of their own"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_frozen_dataclasses_are_records(module: Path) -> None:
    """A dataclass writes its methods when it is defined, which made up a fifth of a warm start."""
    frozen = [
        node.lineno
        for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "dataclass"
        and any(keyword.arg == "frozen" for keyword in node.keywords)
    ]
    assert not frozen, f"{module}, lines {frozen}: use esat.records.record"


def test_no_files_import_each_other() -> None:
    assert counts.circles(counts.trees()) == []


# The rooms of the code generator, and its single files, in the order in which they may import each other.
CODEGEN = (
    "ground",
    "vector_math",
    "llvm",
    "loop_compiler",
    "cache",
    "threads",
    "template",
    "sparse",
    "kernel",
    "printing",
    "matmul",
    "lowering",
    "compile",
    "rowwise",
    "routines",
    "parallel",
    "native_call",
    "helpers",
    "effort",
)


def test_rooms_of_the_code_generator_import_one_way() -> None:
    imported = counts.imports(counts.trees())
    rooms = {name: name.split(".")[2] for name in imported if name.startswith("esat.codegen.")}
    assert set(rooms.values()) == set(CODEGEN)
    wrong = [
        f"{user} imports {used}"
        for user, used in imported.edges
        if user in rooms and used in rooms and CODEGEN.index(rooms[user]) < CODEGEN.index(rooms[used])
    ]
    assert wrong == []
