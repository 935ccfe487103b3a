"""Values over steps and time: progress, timelines of profiles, training runs, gradients."""
