"""The tracing backends, each against the others."""
