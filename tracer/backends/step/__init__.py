"""Single-stepping another run of the program: twenty thousand times slower, and exact."""
