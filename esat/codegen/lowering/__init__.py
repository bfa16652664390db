"""From a group of graph nodes to the loop IR.

``axes`` names the loop axes of every operand, ``order`` chooses how loops nest, ``values`` turns nodes
into scalar values, ``schedule`` places values in loops, ``lower`` puts them together.
"""
