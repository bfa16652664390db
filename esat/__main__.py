"""The command line: ``python -m esat``.

::

    python -m esat --version                  the version
    python -m esat doctor                     what esat finds on this machine, and whether it works
    python -m esat calibrate                  measure the machine, for better choices from then on
    python -m esat report SCRIPT [ARGUMENT ...]   run a script, and tell what was gained in what it compiled
    python -m esat rules check [FILE ...]     try rules on samples; without a file, all that come with esat
    python -m esat rules list [--tag TAG]     names, classes and places of rules
    python -m esat rules show NAME            one rule as text
    python -m esat cache info                 where kernels, e-graphs and compiled rules are, and their size
    python -m esat cache clear                remove them
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from esat import __version__
from esat.base.storage import KINDS, DiskStore, StoredFile, default_directory
from esat.errors import EsatError, RuleError

_ENTRIES = {
    "kernel": "kernels",
    "egraph": "e-graphs",
    "accuracy": "verdicts on accuracy",
    "rules": "sets of compiled rules",
    "program": "recorded programs",
    "choice": "choices",
    "native": "sets of the compiler's own loops",
    "cubin": "device kernels",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    The exit status: 0 for success, 1 for rules that are not sound or never fire and for a machine on which
    esat does not work, 2 for unreadable input.
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        status: int = chosen.command(chosen)
        sys.stdout.flush()
    except EsatError as error:
        print(f"esat: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has seen enough, as `head` does; nothing is flushed to it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="esat",
        description="Tools of the esat compiler.",
        epilog="for example: esat report script.py; esat rules show log1p; esat cache info",
    )
    parser.add_argument("--version", action="version", version=f"esat {__version__}")
    rooms = parser.add_subparsers(required=True, metavar="{doctor,calibrate,report,rules,cache}")
    rooms.add_parser("doctor", help="what esat finds here, and whether it works").set_defaults(
        command=_doctor
    )
    calibration = rooms.add_parser("calibrate", help="measure the machine, and keep what was measured")
    calibration.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what to measure")
    calibration.set_defaults(command=_calibrate)
    report = rooms.add_parser("report", help="run a script, and tell what was gained in what it compiled")
    report.add_argument("--pages", metavar="FOLDER", help="write a page about each function there")
    report.add_argument("script", help="a Python file, which runs as __main__")
    report.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments").required = False
    report.set_defaults(command=_report)

    rules = rooms.add_parser("rules", help="the rewrite rules").add_subparsers(required=True)
    check = rules.add_parser("check", help="try rules on samples and judge them by their soundness class")
    check.add_argument("files", nargs="*", metavar="FILE", help="rule files; none: all rules of esat")
    check.add_argument("--facts", action="store_true", help="only the rules that derive facts about matrices")
    check.add_argument("--seed", type=int, default=0, help="of the random samples")
    check.add_argument("--verbose", action="store_true", help="name the sound rules, too")
    check.set_defaults(command=_check_rules)
    listing = rules.add_parser("list", help="names, soundness classes and places of rules")
    listing.add_argument("--tag", action="append", default=[], help="only rules with this tag or rule set")
    listing.set_defaults(command=_list_rules)
    show = rules.add_parser("show", help="one rule as text")
    show.add_argument("name")
    show.set_defaults(command=_show_rule)

    cache = rooms.add_parser("cache", help="kernels, e-graphs and compiled rules on disk").add_subparsers(
        required=True
    )
    cache.add_parser("info", help="its place and size").set_defaults(command=_cache_info)
    cache.add_parser("clear", help="remove all of it").set_defaults(command=_cache_clear)
    return parser


def _doctor(chosen: argparse.Namespace) -> int:
    from esat.tools.command_line import doctor

    lines, good = doctor()
    print("\n".join(lines))
    return 0 if good else 1


def _calibrate(chosen: argparse.Namespace) -> int:
    from esat.tools.calibration import calibrate

    print(calibrate(device=chosen.device).to_json())
    return 0


def _report(chosen: argparse.Namespace) -> int:
    from esat.tools.command_line import report

    print("\n".join(report(chosen.script, chosen.arguments, chosen.pages)))
    return 0


def _check_rules(chosen: argparse.Namespace) -> int:
    from pathlib import Path

    from esat.egraph.language.constructors import op_signature
    from esat.rules import RULES, read_rules
    from esat.rules.language.rule import RuleFile
    from esat.tools.soundness import check
    from esat.tools.soundness.firing import never_fired, programs_with
    from esat.tools.soundness.statement import operators_for
    from esat.tools.soundness.superfluous import superfluous

    ours = RuleFile("", RULES.list(), (), ())
    good = bool(chosen.files) or _check_facts()
    if chosen.facts:
        return 0 if good else 1
    for file in [read_rules(Path(path)) for path in chosen.files] or [ours]:
        report = check(file, seed=chosen.seed)
        if chosen.verbose:
            print("\n".join(str(verdict) for verdict in report.verdicts if verdict.sound))
        print(report)
        untried = {verdict.rule for verdict in report.verdicts if not verdict.situations}
        rules = [rule for rule in file.rules if rule not in untried]
        operators = operators_for(op_signature(), file.declarations)
        idle = never_fired(rules, programs_with(file), operators, chosen.seed)
        for rule, _ in idle:
            print(f"{rule.position}: rule {rule.name!r} does not fire on its own left side")
        for rule in superfluous(rules, operators, chosen.seed) if chosen.files else ():
            print(f"{rule.position}: rule {rule.name!r} is superfluous: it is known without rules")
        good = good and report.sound and not idle
    return 0 if good else 1


def _check_facts() -> bool:
    """Try the rules that derive facts; whether all are right."""
    from esat.egraph.preparation.rule_program import program_for
    from esat.rules import RULES
    from esat.rules.language.query import Query
    from esat.tools.soundness.fact_programs import check_facts

    count, wrong = check_facts(program_for(RULES.query(Query(["fast_run"]), soundness="real")))
    print("\n".join([*wrong, f"facts of matrices: {count - len(wrong)} of {count} programs are right"]))
    return not wrong


def _list_rules(chosen: argparse.Namespace) -> int:
    from esat.rules import RULES
    from esat.rules.language.query import Query

    rules = {rule.report_name: rule for rule in RULES.list(Query(chosen.tag) if chosen.tag else None)}
    if not rules:
        known = sorted({tag for rule in RULES.list() for tag in (*rule.tags, rule.ruleset)})
        raise RuleError(
            f"no rule has the tag {', '.join(chosen.tag)}; tags and rule sets are {', '.join(known)}"
        )
    width = max(map(len, rules))
    for name, rule in rules.items():
        print(f"{name:{width}}  {rule.soundness:6}  {rule.ruleset:13}  {rule.position}")
    return 0


def _show_rule(chosen: argparse.Namespace) -> int:
    from esat.rules import RULES

    print(RULES.show(chosen.name))
    return 0


def _cache_info(chosen: argparse.Namespace) -> int:
    print(default_directory())
    sizes = {kind: [file.size / 2**20 for file in files] for kind, files in _cached().items()}
    for kind, each in sizes.items():
        print(f"{len(each)} {_ENTRIES[kind]}, {sum(each):.1f} MiB")
    print(f"{sum(map(len, sizes.values()))} in all, {sum(map(sum, sizes.values())):.1f} MiB")
    return 0


def _cache_clear(chosen: argparse.Namespace) -> int:
    found = _cached()
    DiskStore(default_directory(), "kernel").clear()
    removed = (f"{len(files)} {_ENTRIES[kind]}" for kind, files in found.items())
    print(f"{', '.join(removed)} removed")
    return 0


def _cached() -> dict[str, list[StoredFile]]:
    """The entries in the cache, by kind."""
    return {kind: DiskStore(default_directory(), kind).files() for kind in KINDS}


if __name__ == "__main__":
    sys.exit(main())
