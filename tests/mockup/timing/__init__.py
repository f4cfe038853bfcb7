"""Times, ratios and intervals from recorded and simulated samples."""
