"""Several structures stored as one array of records."""
