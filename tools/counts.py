"""Counts what a reader of the package has to know: files, circles of imports, names with two meanings.

    python tools/counts.py            # all of it, as text
    python tools/counts.py --strict   # exit status 1 where something is counted that should not be there

Counted are, for each package, files and lines; circles among files, by imports that run, within functions as
well, and by all imports, those for types too; folders with many entries; public classes of one name in two
places, and modules of one name; questions about the machine outside of what describes it; and attributes of
numba and llvmlite that are private to them, each with a reason.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import networkx

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "esat"
MACHINE = frozenset({"target", "host", "own_machine", "machine", "calibration"})
"""Modules that may ask what machine this is."""
QUESTIONS = frozenset(
    {"get_host_cpu_name", "get_host_cpu_features", "cpu_count", "sched_getaffinity", "cpuinfo", "processor"}
)
ASKED = ("os", "platform", "llvm", "binding", "llvmlite.binding")
LIBRARIES = ("numba", "llvmlite")
MOST_ENTRIES = 20
"""Files and folders that a folder may have before it is counted as crowded."""
BY_TOPIC = frozenset({"ops", "elementwise", "frontend", "numpy", "scipy", "vector_math", "rewriting", "gpu"})
"""Rooms whose modules have the names of topics that are treated elsewhere, too: an op and the function that
applies it, a step of the host and that of a device. Modules beside the rooms are such names for users."""
PRIVATE = {
    "_compile_pyfunc_with_fixup": "numba-cuda's compile_ptx has no way to tell NVVM not to contract",
    "_nvvm_options": "the same",
    "_defns": "numba never forgets what it compiled, and kernels come without end",
    "_dispose": "llvmlite hides the method that frees a manager of passes behind one that does nothing",
    "_final_module": "what is linked and optimized, which numba only gives as text",
    "_get_module_for_linking": "the same of a library that is finished",
    "_getvalue": "numba's own way to make a structure of its proxy: an @intrinsic has no other",
    "_is_initialized": "asking numba for its number of threads would start its threading layer",
    "_rebuild": "numba's form of a compiled function for pickling, without its registries",
}
"""Attribute -> why nothing public does."""

Tree = tuple[Path, ast.Module]


def trees() -> list[Tree]:
    """Each file of the package with its syntax tree."""
    files = sorted(PACKAGE.rglob("*.py"))
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in files]


def module_name(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sizes(found: list[Tree]) -> Iterator[str]:
    """Lines about each package: files, lines, the median and the longest file and function."""
    rooms: dict[str, list[Tree]] = defaultdict(list)
    for path, tree in found:
        relative = path.relative_to(PACKAGE)
        rooms[relative.parts[0] if len(relative.parts) > 1 else "(files)"].append((path, tree))
    yield f"{'package':12} {'files':>6} {'lines':>7} {'median':>7} {'longest':>8} {'function':>9}"
    for room, members in [*sorted(rooms.items()), ("all", found)]:
        lines = [path.read_text(encoding="utf-8").count("\n") for path, _ in members]
        functions = [
            (node.end_lineno or 0) - node.lineno + 1
            for _, tree in members
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        ]
        middle, longest = statistics.median(lines), max(functions, default=0)
        yield f"{room:12} {len(lines):6} {sum(lines):7} {middle:7.0f} {max(lines):8} {longest:9}"


def imports(found: list[Tree], for_types: bool = False) -> networkx.DiGraph:
    """Which file imports which when it runs, within functions as well; for types alone where asked."""
    known = {module_name(path) for path, _ in found}
    graph = networkx.DiGraph()
    for path, tree in found:
        here = module_name(path)
        graph.add_node(here)
        for node in ast.walk(tree) if for_types else _running(tree):
            for name in _imported(node, known):
                if name != here:
                    graph.add_edge(here, name)
    return graph


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    waiting = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            yield node
            waiting.append(node)


def _imported(node: ast.AST, known: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.Call) and _name_of(node.func) == "import_module":
        yield from (
            part.value for part in node.args if isinstance(part, ast.Constant) and part.value in known
        )
    elif isinstance(node, ast.ImportFrom) and node.module:
        whole = [f"{node.module}.{alias.name}" for alias in node.names]
        inner = [name for name in whole if name in known]
        yield from inner
        # `import a.b` runs a/__init__.py as well, but only names taken from it make a file depend on it.
        if node.module in known and len(inner) < len(whole):
            yield node.module


def _name_of(node: ast.expr) -> str | None:
    return getattr(node, "attr", None) or getattr(node, "id", None)


def circles(imported: networkx.DiGraph) -> list[str]:
    """Groups of files that import each other."""
    groups = networkx.strongly_connected_components(imported)
    return sorted(", ".join(sorted(group)) for group in groups if len(group) > 1)


def crowded_folders(root: Path = ROOT) -> list[str]:
    """Folders of the package, its tests and its pages with more entries than one takes in at a glance."""
    entries: dict[Path, set[str]] = defaultdict(set)
    for room in ("esat", "tests", "docs"):
        for path in (root / room).rglob("*.*"):
            if path.is_file() and not {"__pycache__", "_build", "generated"}.intersection(path.parts):
                for inner, outer in pairwise((path, *path.relative_to(root).parents)):
                    entries[outer].add(inner.name)
    counted = [(len(names), folder) for folder, names in entries.items() if len(names) > MOST_ENTRIES]
    return [f"{folder}: {count}" for count, folder in sorted(counted, reverse=True)]


def names_used_twice(found: list[Tree]) -> list[str]:
    """Public classes of one name in two places."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in found:
        where = str(path.relative_to(PACKAGE))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(where)
    return [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]


def modules_named_alike(found: list[Tree]) -> list[str]:
    """Names of modules in two rooms that are not those of topics."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, _ in found:
        where = path.relative_to(PACKAGE)
        if path.stem not in ("__init__", "__main__") and len(where.parts) > 1:
            places[path.stem] += [] if BY_TOPIC.intersection(where.parts) else [str(where)]
    return [", ".join(where) for _, where in sorted(places.items()) if len(where) > 1]


def machine_questions(found: list[Tree]) -> list[str]:
    """Places that ask what machine this is, outside the modules that say it."""
    asked = []
    for path, tree in found:
        if path.stem in MACHINE:
            continue
        for node in ast.walk(tree):
            name = _name_of(node) if isinstance(node, ast.expr) else None
            if isinstance(node, ast.Attribute | ast.Name) and name in QUESTIONS and _is_read(node):
                asked.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")
    return asked


def _is_read(node: ast.Attribute | ast.Name) -> bool:
    module = node.value if isinstance(node, ast.Attribute) else None
    return module is not None and ast.unparse(module) in ASKED


def private_attributes(found: list[Tree]) -> dict[str, list[str]]:
    """Attributes that begin with an underscore and are not the package's, in files that import a library.

    Each is given with the places that use it.
    """
    own = {name for _, tree in found for name in _defined(tree)}
    used: dict[str, list[str]] = defaultdict(list)
    for path, tree in found:
        roots = {
            name.split(".")[0]
            for node in ast.walk(tree)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        if not roots.intersection(LIBRARIES):
            continue
        for node in ast.walk(tree):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            if name.startswith("_") and not name.endswith("__") and name not in own:
                used[name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    return dict(sorted(used.items()))


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("_"):
            yield node.value  # a slot


def required() -> list[str]:
    """The packages that pyproject.toml requires."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.split(r"[^\w-]", line)[0] for line in project["dependencies"]]


def named(found: list[Tree]) -> set[str]:
    """Roots of the modules that files import, or look for by name."""
    roots: set[str] = set()
    for _, tree in found:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                roots |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                roots.add((node.module or "").split(".")[0])
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("find_spec"):
                roots |= {one.value for one in node.args if isinstance(one, ast.Constant)}
    return roots


def unwanted(found: list[Tree]) -> dict[str, list[str]]:
    """What should not be there, by what it is."""
    private = private_attributes(found)
    return {
        "circles of imports": circles(imports(found)),
        "names used twice": names_used_twice(found),
        "modules named alike": modules_named_alike(found),
        "questions about the machine elsewhere": machine_questions(found),
        "private attributes without a reason": [
            f"{name}: {', '.join(where)}" for name, where in private.items() if name not in PRIVATE
        ],
        "reasons for private attributes that nobody uses": sorted(PRIVATE.keys() - private.keys()),
        "requirements that nothing imports": sorted(set(required()) - named(found)),
    }


def main() -> int:
    """Print all counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strict", action="store_true", help="fail where something should not be there")
    strict = parser.parse_args().strict
    found = trees()
    print("\n".join(sizes(found)))
    private = [
        f"{name} ({len(where)} places): {PRIVATE.get(name, 'no reason given')}"
        for name, where in private_attributes(found).items()
    ]
    wrong = unwanted(found)
    known = {
        "circles with imports for types": circles(imports(found, for_types=True)),
        f"folders of more than {MOST_ENTRIES} entries": crowded_folders(),
        "private attributes": private,
    }
    for title, entries in {**wrong, **known}.items():
        print(f"\n{title}: {len(entries)}")
        for entry in entries:
            print(f"  {entry}")
    return 1 if strict and any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
