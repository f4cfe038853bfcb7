"""The layout algebra: pure mathematics, no files, no processes, no x86."""
