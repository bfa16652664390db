"""Which nodes run together in one kernel."""
