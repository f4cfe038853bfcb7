"""Re-indexing plans and the conversions that go with them."""
