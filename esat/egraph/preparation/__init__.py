"""Rules made ready to run: admitted, put together, compiled, kept on disk."""
