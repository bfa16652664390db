"""Compiles rules over binary constructors to egglog rules over n-ary sums and products.

An author writes ``(rewrite (Add (Exp x) (Exp y)) (Foo x y))``; the compiled rules match any two elements of
any n-ary sum that are exponentials, in any order, positive or negative. In processing order:

``surface``           variables renamed, the body split into patterns and guards
``guarding``          type guards added: which dtypes agree (``known_dtypes``), which ``broadcast_words``
``bulk``              homomorphisms, compiled to one map over all elements instead of pairs
``ac_variants``       the list of generated rules of one rule; each is a ``Variant``
``matching``          patterns to joins with the element index
``rule_guards``       guards over the variables of those joins
``heads``             right sides as n-ary terms
``rule_compilation``  `compile_rules`; ``compiled``: its result, which maps egglog's errors back to the file
"""

from esat.egraph.preparation.rule_compiler.compiled import Chunk, CompiledRules
from esat.egraph.preparation.rule_compiler.rule_compilation import RULESET_PREFIX, WIDE_SUFFIX, compile_rules

__all__ = ["RULESET_PREFIX", "WIDE_SUFFIX", "Chunk", "CompiledRules", "compile_rules"]
