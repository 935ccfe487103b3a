"""What changes over steps and seconds: progress, profiled timelines, training runs, gradients."""
