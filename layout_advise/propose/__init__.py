"""Third stage: which layouts are worth measuring.

In comes an observation, out come candidate layouts, best under the cost model first. ``proposals`` asks the layout
algebra for candidates and leaves out those that the lifted code cannot be re-indexed for; ``titles`` words what a
candidate advises.
"""
