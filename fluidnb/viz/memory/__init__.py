"""Memory of programs: arenas over time, pools, buffer aliases, growth."""
