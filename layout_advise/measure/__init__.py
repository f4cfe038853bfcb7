"""Sixth stage: from verified mock-ups to times.

In comes what was verified, out come the times of all variants in many restored processes. ``stage`` times the calls of one
kind, and single candidates again. In order: ``snapshots`` takes the copies of the program, ``effort`` says how many
processes and calls, and how long trials may take, ``contest`` who takes part, ``all_written`` what is put back between runs,
``setup`` holds all, ``first_times`` measures, ``mode`` says which times stand for the program, ``measured`` holds what is
known of a candidate afterwards, ``behind`` cuts that by what is known of faster ones. ``thread_counts`` repeats it by number
of threads; ``replays`` times loads and stores alone where the region was not lifted. ``live`` tries candidates in the
running program. ``policy`` holds the limits.
"""
