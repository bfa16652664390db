"""Placing: programs on host and device, and the choice between them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from esat.compilation.linking import Compilation, Make
from esat.errors import ModeError
from esat.extract.prices.cost import CostModel
from esat.extract.prices.expected_shapes import Expected
from esat.extract.prices.machine import MachineProfile
from esat.graph import FunctionGraph
from esat.mode import Mode
from esat.optimize.equality.report import OptimizationReport
from esat.phases.fusing.fusion import fuse
from esat.phases.memory.inplace import work_in_place
from esat.runtime import Executable
from esat.runtime.entry.variants import Variants

if TYPE_CHECKING:
    from esat.gpu.device import Device


def device_of(mode: Mode) -> tuple[Device | None, str | None]:
    """The device that a mode asks for, and why there is none."""
    if mode.device == "cpu":
        return None, None
    if not mode.has("gpu_transfer"):
        return None, f"placement: all on the host: the mode {mode.name} leaves out gpu_transfer"
    from esat.gpu.kernel_text.kernels import usable_device

    try:
        return usable_device(or_emulated=mode.debug), None
    except ModeError as error:
        if mode.device == "cuda":
            raise
        return None, f"placement: all on the host: {error}"


def place(
    optimized: FunctionGraph,
    report: OptimizationReport,
    shapes: Expected,
    compilation: Compilation,
    device: Device,
    kind: Make,
    variants: Variants | None,
) -> Executable:
    """The programs of an optimized graph on host and device, and the choice between them."""
    from esat.gpu.placing import Candidate, costs_of
    from esat.gpu.profile import device_profile
    from esat.gpu.programs import Linking, Placeable, place_function
    from esat.gpu.rules import DeviceRules

    mode, permissions, profile = compilation.mode, compilation.permissions, compilation.profile
    found, rows = device_profile(), compilation.rows_in_place
    linking = Linking(
        device,
        compilation.kernel_rules(DeviceRules()),
        rows,
        compilation.kernels,
        compilation.routines(),
        permissions,
        mode.threads,
        not compilation.is_exact,
    )
    host_model, eager = CostModel(compilation.machine), mode.device == "cuda"
    costs = costs_of(host_model, found, linking.has_form, linking.on_host, eager=eager)
    graphs, host = [optimized], None
    if mode.device == "auto":
        with profile.stage("extract for the device"):
            graphs += _for_device(report, found.machine(), shapes)
        rules = compilation.kernel_rules()
        final = work_in_place(optimized, permissions, rows, rules)
        host = Candidate(final, fuse(final, rules, permissions=permissions))
    function = Placeable(tuple(graphs), host, partial(compilation.link, optimized, kind, variants), shapes)
    with profile.stage("placement"):
        executable, placement = place_function(function, linking, costs, profile, kind)
    executable.optimized = optimized
    executable.report = replace(report, placement=placement)
    return executable


def _for_device(report: OptimizationReport, machine: MachineProfile, shapes: Expected) -> list[FunctionGraph]:
    """The graph that the same e-graph has for the device, where it is another one."""
    if report.resizing is None:
        return []
    resizing = replace(report.resizing, machine=machine)
    found = resizing.extract(resizing.hints(shapes))
    same = np.array_equal(found.selection.chosen, report.resizing.first.selection.chosen)
    return [] if same else [resizing.program(found)]
