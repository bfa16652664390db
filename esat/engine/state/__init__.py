"""The arrays of an e-graph: tables, classes, containers, and what is read of them."""
