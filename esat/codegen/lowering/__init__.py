"""From a group of graph nodes to the loop IR.

``axes`` names the loop axes of every operand, ``loop_order`` chooses how loops nest, ``scalar_values`` turns
nodes into scalar values, ``complex_nodes`` those of complex numbers, ``loop_placement`` places values in
loops, ``lower`` puts them together.
"""
