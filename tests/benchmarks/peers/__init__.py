"""What each peer does for each work; every file runs in that peer's own interpreter."""
