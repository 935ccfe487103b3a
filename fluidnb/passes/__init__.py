"""Program passes: diff, lint, lifetimes of variables, memory reuse."""
