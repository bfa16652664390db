"""Which rules made what equal, and what kept others from matching."""
