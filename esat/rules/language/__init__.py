"""Rule files read into records, checked against a signature."""
