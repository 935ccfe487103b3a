"""Everything that depends on Jupyter: its debugger, private names of ipykernel, the front end, the order of cells."""
