"""What users do wrong, and what they are told."""
