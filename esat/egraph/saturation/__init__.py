"""Saturation: rule sets run in rounds under budgets, and the report of it."""
