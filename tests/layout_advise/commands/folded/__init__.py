"""Tables of a folded trace."""
