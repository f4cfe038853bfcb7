"""``doctor --lift``: rows as they come, time limits, what it prints."""
