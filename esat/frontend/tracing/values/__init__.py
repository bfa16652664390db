"""What stands for arrays and numbers while a function is traced, and what it can do."""
