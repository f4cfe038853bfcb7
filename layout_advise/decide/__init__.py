"""Seventh stage: change, keep or undecided.

In come times and ratios with intervals, out comes a ``decision``. ``obstacles`` say why a region is not measured at all.
``single`` decides where all calls are alike, ``verdict_over_kinds`` where they differ, over the ``mixture`` of kinds; both
yield ``requests`` for further measurements. ``verdict`` is the rule itself, ``policy`` its limits. ``budget`` turns every
doubt into a term of the interval that is claimed, ``live`` has the running program settle some, ``machine_code`` the
original's code on the layouts; ``untried`` tells beside a ``keep`` what was not tried. ``loop`` is advice about the loop
with the layout unchanged, ``usage`` says whether a permanent or a temporary layout pays, ``gain_words`` words gains.
"""
