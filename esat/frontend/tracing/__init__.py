"""Functions of NumPy arrays as graphs: what they are given in place of arrays, and what becomes of it.

================== ================================================================================
trace              the trace that runs now, and the error of asking for what is not known yet
arrays             TracedArray: behaves as an array, views and assignments included
layouts            how NumPy would have arrays in memory, which decides what is a view
numbers            TracedNumber: a Python number of the caller's, known at run time only
builtin_type       Python's ``type``, which knows both as what they stand for
convert            between these, Variables, arrays and what holds them
ufuncs             NumPy's universal functions and their methods
functions          NumPy's other functions, those that make views or write among them
creation           functions that make arrays of sizes and numbers
namespace          modules of NumPy's and SciPy's names: ``esat.numpy``, ``esat.scipy.special``
rebinding          a user's code with NumPy's modules exchanged for these
user_objects       what objects of a user's do by operators, indices, properties and loops
sources            its text, compiled anew with a question in each call
builtin_functions  Python's sum, max, float and others of traced values
mathematics        Python's ``math`` of traced values
distributions      those of ``scipy.stats``
conditions         comparisons of a call's numbers, by which programs are found
outside            what a function reads that is another in every call: draws, the time
trees              arguments and results: arrays in tuples, lists, dicts and objects
================== ================================================================================
"""
