"""Loops over steps of few numbers, each number a register: what a step hands on is never written."""
