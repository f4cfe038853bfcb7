"""``doctor --lift``."""
