"""Seventh stage: change, keep or undecided.

In come times and ratios with intervals, out comes a ``decision``. ``obstacles`` say why a region is not measured at all.
``single`` decides where all calls are alike, ``verdict_over_kinds`` where they differ, over the ``mixture`` of kinds; both
yield ``requests`` for further measurements. ``verdict`` is the rule itself, ``policy`` its limits. ``doubts`` speak against
a verdict that the ratios alone would give, ``untried`` against a ``keep`` while a layout was not tried. ``usage`` says
whether a permanent or a temporary layout pays, ``gain_words`` words gains.
"""
