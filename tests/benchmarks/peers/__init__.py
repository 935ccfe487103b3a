"""The works as each peer does them; every file runs in that peer's own interpreter."""
