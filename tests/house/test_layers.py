"""The walls of the house: imports run one way, and no module is a god file."""

import ast
import functools
from pathlib import Path

import networkx

from tools import counts

PACKAGE = Path(__file__).resolve().parent.parent.parent / "esat"

# Left may not import right. `frontend` is a side room of the pipeline's last stages: only
# entry points and the pipeline itself may use it.
ORDER = (
    "errors",
    "base.quoting",
    "base.spelling",
    "base.union_find",
    "base.records",
    "base.scipy_extensions",
    "base.interrupts",
    "base.storage",
    "base.native",
    "base.progress",
    "base.stages",
    "base.forks",
    "base.collection",
    "base.readable_methods",
    "graph",
    "ops",
    "rules.language",
    "engine",
    "egraph",
    "extract",
    "extract.accuracy",
    "phases",
    "optimize.equality",
    "classic",
    "optimize",
    "tools.soundness",
    "rules",
    "codegen",
    "runtime.function_profile",
    "tools.drawing",
    "runtime",
    "gpu",
    "mode",
    "frontend",
    "compilation.linking",
    "compilation.optimizing",
    "compilation.placing",
    "compilation.pipeline",
    "compilation.recorded",
    "functions",
    "tools.comparison",
    "tools.equality",
    "tools.kernel_tuning",
    "tools.device_calibration",
    "tools.calibration",
    "tools.command_line",
)
FRONTEND_MAY_USE = {"errors", "base.records", "base.spelling", "graph", "ops", "frontend"}
PUBLIC_NAMES = {"fft", "linalg", "numpy", "random", "scipy", "sparse"}
ENTRY_POINTS = {"__init__", "__main__", "tools.command_line", *PUBLIC_NAMES}
LONGEST_MODULE = 500

MODULES = sorted(
    path.relative_to(PACKAGE)
    for path in PACKAGE.rglob("*.py")
    if path.name != "__init__.py" or "import" in path.read_text(encoding="utf-8")
)


def room(module: Path) -> str:
    return room_of(".".join(module.with_suffix("").parts))


def room_of(name: str) -> str:
    """The room of a module, named within the package: the longest room that its name begins with."""
    around = [name.rsplit(".", count)[0] for count in range(name.count(".") + 1)]
    return next((room for room in around if room in ORDER), around[-1])


@functools.cache
def text_of(module: Path) -> str:
    return (PACKAGE / module).read_text(encoding="utf-8")


@functools.cache
def nodes_of(module: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text_of(module))))


@functools.cache
def imports() -> networkx.DiGraph:
    return counts.imports(counts.trees())


def imported_rooms(module: Path) -> set[str]:
    rooms = set()
    for node in nodes_of(module):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "esat":
                names = [f"esat.{alias.name}" for alias in node.names]
        rooms |= {room_of(name.removeprefix("esat.")) for name in names if name.startswith("esat.")}
    return rooms


def allowed_rooms(here: str) -> set[str]:
    allowed = FRONTEND_MAY_USE if here == "frontend" else set(ORDER[: ORDER.index(here) + 1])
    if here not in ("frontend", *ORDER[ORDER.index("compilation.pipeline") :]):
        allowed = allowed - {"frontend"}
    return allowed


def test_imports_run_one_way() -> None:
    wrong = [
        f"{module} imports {sorted(used)}"
        for module in MODULES
        if room(module) not in ENTRY_POINTS
        if (used := imported_rooms(module) - allowed_rooms(room(module)))
    ]
    assert wrong == []


def test_only_the_egraph_room_imports_egglog() -> None:
    users = {
        room(module)
        for module in MODULES
        if any(
            name.split(".")[0] == "egglog"
            for node in nodes_of(module)
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


def test_no_module_is_a_god_file() -> None:
    """Such a module gives its parts rooms of their own."""
    lines = {module: text_of(module).count("\n") for module in MODULES}
    assert [f"{module}: {count}" for module, count in lines.items() if count > LONGEST_MODULE] == []


def test_frozen_dataclasses_are_records() -> None:
    """A dataclass writes its methods when it is defined, which made up a fifth of a warm start."""
    frozen = [
        f"{module}, line {node.lineno}"
        for module in MODULES
        for node in nodes_of(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "dataclass"
        and any(keyword.arg == "frozen" for keyword in node.keywords)
    ]
    assert frozen == []


def test_no_files_import_each_other() -> None:
    assert counts.circles(imports()) == []


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
    "small_loops",
    "rowwise",
    "routines",
    "native_functions",
    "helpers",
    "effort",
)


def test_rooms_of_the_code_generator_import_one_way() -> None:
    imported = imports()
    rooms = {name: name.split(".")[2] for name in imported if name.startswith("esat.codegen.")}
    assert set(rooms.values()) == set(CODEGEN)
    wrong = [
        f"{user} imports {used}"
        for user, used in imported.edges
        if user in rooms and used in rooms and CODEGEN.index(rooms[user]) < CODEGEN.index(rooms[used])
    ]
    assert wrong == []
