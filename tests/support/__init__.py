"""What several test modules share: programs and kernels, and how they are compiled, stopped, traced, lifted and called."""
