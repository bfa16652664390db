"""What a call goes through before a program runs: checks, shapes, and which program it is."""
