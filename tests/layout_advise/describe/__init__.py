"""From results to the report's data: what is modelled of the trace."""
