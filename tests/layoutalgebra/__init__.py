"""Terms, sets, rules, derivation and exploration, against brute force and other libraries."""
