"""From compiled variants and a way to restore processes to ratios with intervals.

``measure`` times the variants (``names``) in rotated blocks, in many restored processes; ``canary`` says which calls
nothing disturbed. ``timings`` holds the times, ``statistics`` the bootstrap, ``ratios`` each variant's speedup and the
noise, ``branch_training`` the part that a repeated call learns.
"""
