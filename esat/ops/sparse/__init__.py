"""Sparse matrices.

A sparse matrix is a structure, which places are stored, and a vector of the values stored there, in the
order of storage. Its cotangent is a vector too: the derivatives by the stored values.
"""
