"""Sixth stage: from verified mock-ups to times.

In comes what was verified, out come the times of all variants in many restored processes. In order: ``effort`` says how
many processes and calls, ``entrants`` names who takes part, ``timing_setup`` prepares and makes the measurement,
``measured`` holds what is known of a candidate afterwards, ``timing`` measures the leader again in new processes.
``thread_counts`` repeats it by number of threads; ``replays`` times loads and stores alone where the region was not
lifted. ``experiment`` goes from candidates to times.
"""
