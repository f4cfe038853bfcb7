"""Seventh stage: change, keep or undecided.

In come ratios with intervals, out comes a verdict with its reason and sentence. ``verdict`` is the rule itself,
``verdict_over_kinds`` the same where calls differ, over the ``mixture`` of kinds. ``doubts`` speak against a verdict
that the ratios alone would give, ``untried`` against a ``keep`` while a layout was not tried. ``usage`` says whether a
permanent or a temporary layout pays, ``gain_words`` words gains.
"""
