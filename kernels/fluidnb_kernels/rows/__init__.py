"""SelectedRows: gradients that touch few rows of a tall parameter."""
