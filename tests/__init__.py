"""The tests; folders mirror the product's."""
