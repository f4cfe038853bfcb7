"""Programs that tests of the tracer stop and trace, and what they compare of the traces."""
