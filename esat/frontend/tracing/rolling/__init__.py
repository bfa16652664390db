"""Loops of Python's in traced functions, rolled up into one op where all iterations are shown equal.

============= ====================================================================
iterated      what loops go through; the exchange at their end
iterations    iterations compared node by node
rolled_loop   the op that computes what they do
skipping      iterations that are not traced
left_loop     loops that are left in some step
ended_loop    ``while``, and loops within loops, that a value ends
branches      ``if`` in loops, of which both branches are traced
written_parts arrays to parts of which branches have written
loop_state    what code in a loop can see of the state of Python
raised        errors before a loop; names that are bound in some cases only
program_state the same, compared and put back
============= ====================================================================
"""
