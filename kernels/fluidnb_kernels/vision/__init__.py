"""Images resampled, shifted, shuffled and cut into windows."""
