"""Programs with parallel regions, and their regions traced and compared."""
