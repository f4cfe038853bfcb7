"""What the tests of the tracer share: programs, and how to stop, trace and unfold them."""
