"""Values of e-nodes in finite fields."""
