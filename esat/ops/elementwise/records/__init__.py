"""What is known of each elementwise op, and how users define theirs."""
