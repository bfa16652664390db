"""Accuracy in the choice: what each e-node loses in digits, judged at sampled points.

``points`` makes hostile inputs, ``units`` says what there is to evaluate, ``truths`` evaluates it in a wider
format with bounds of the errors, ``losses`` in the program's own format, and ``references`` compares both;
``judge`` puts them together. ``validation`` compares what was chosen, as a whole, with what was written.
"""
