"""From compiled variants and a way to restore processes to ratios with intervals.

``variants`` are what is timed, as values; ``plan`` says how much. ``measure`` times them in rotated blocks, in many
processes, each ``restored`` (``process_times``); ``canary`` says which calls nothing disturbed. ``timings`` holds the times,
``statistics`` the bootstrap, ``places`` what code takes at other addresses, ``ratios`` each variant's speedup and the noise,
``branch_training`` the part that a repeated call learns. ``policy`` holds the limits.
"""
