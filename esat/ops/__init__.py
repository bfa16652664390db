"""Op records by family, each op in one place."""
