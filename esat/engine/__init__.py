"""esat's own engine for the part of egglog's language that its rules are written in.

Rules stay egglog text, and egglog stays their definition. ``vocabulary``, ``queries`` and ``rule_words`` make
data of it, of a rule its atoms, primitives and actions. The machine consists of functions of the subset of
:mod:`esat.base.native` on arrays of integers, so that one call runs a schedule:

``memory``
    the arrays, and what stands where in them
``classes``, ``containers``, ``tables``, ``rebuilding``
    the union-find; multisets and pairs, hash-consed; rows, hashed by their inputs; what unions change
``arithmetic``, ``primitives``
    what is computed with numbers, and with multisets
``planning``
    the order in which a rule looks at its atoms, made when a table has news
``plan_runs``
    runs plans, which find matches, and actions, which change tables
``iterations``
    iterations of rule sets, and saturation

A match is looked for where a table has rows that a rule has not seen: rows are only ever added, so these are
the ones from a number on. A row that a union changes is taken out and added again.
"""
