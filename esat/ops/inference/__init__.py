"""What types, sizes and structure results have, by rules that many ops share."""
