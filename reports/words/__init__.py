"""Parts of a report as words, the same on the terminal and in HTML.

``quantities`` (sizes, times, ratios), ``stream_words`` (folded streams), ``structure_words``, ``layout_words``,
``hotspot_words``; ``glossary`` explains the terms.
"""
