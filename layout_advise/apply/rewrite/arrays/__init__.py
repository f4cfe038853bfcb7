"""Arrays whose dimensions are written in another order, with everything that they are handed to.

``uses`` tells what one mention of an array is, ``carriers`` which parameters of functions are such arrays as well,
``members`` what could see the order of a member's numbers in its record, and ``dimensions`` writes the declarations and
subscripts anew, or names the places that stand in the way. ``starts`` lets an array begin with a cache line.
"""
