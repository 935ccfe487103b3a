"""Pictures of the roles of distributed training: trainers, parameter servers, and what flows between them."""
