"""The source of kernels, for each target, is that of the files in ``kernels``."""

import pytest
from codegen.kernel_files import FOLDER, FORMS, kernel_of, printed, programs, read, text_of
from codegen.targets import TARGETS

from esat.codegen.kernel import loop_ir


@pytest.mark.parametrize("name", programs())
def test_programs_become_the_loops_of_their_files(name: str) -> None:
    kernel = kernel_of(programs()[name])
    assert text_of(kernel) == text_of(read(FOLDER / f"{name}.kernel")[0])
    assert eval(text_of(kernel), vars(loop_ir)) == kernel


@pytest.mark.parametrize("name", programs())
def test_loops_are_printed_as_in_their_files(name: str) -> None:
    kernel, sources = read(FOLDER / f"{name}.kernel")
    found = {(form, target): source for form, target, source in printed(kernel)}
    assert found.keys() == sources.keys()
    for form in FORMS:
        for target in TARGETS:
            if (form, target) in sources:
                assert found[form, target].rstrip() == sources[form, target].rstrip(), (form, target)


def test_each_file_is_that_of_a_program() -> None:
    assert {path.stem for path in FOLDER.glob("*.kernel")} == programs().keys()


def test_targets_differ_where_they_are_tuned_differently() -> None:
    _, sources = read(FOLDER / "layer_norm.kernel")
    assert len({sources["in parts, past the caches", name] for name in TARGETS}) >= 3
