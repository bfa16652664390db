"""Read-out, cost model, choice of the DAG and decoding."""
