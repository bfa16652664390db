"""Optimizers that rewrite a FunctionGraph, the ways they walk it, and their database."""
