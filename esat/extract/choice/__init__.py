"""The choice of one e-node for each class: first selections, local search, integer programming."""
