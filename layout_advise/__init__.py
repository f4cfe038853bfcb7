"""layout-advise: measured, byte-checked data-layout advice for compiled programs."""

__version__ = "0.1.0"
