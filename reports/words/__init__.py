"""Parts of a report as words, the same on the terminal and in HTML.

``quantities`` (sizes, times, ratios), ``stream_words`` (folded streams), ``source_words``, ``structure_words``,
``layout_words``, ``hotspot_words``; ``glossary`` explains the terms, ``reason_words`` what reasons and checks mean.
``live_words`` tells of trials in the running program, ``plan_words`` of the plan of the whole program and of a layout over
regions.
``headline`` is the first sentence, ``first_screen`` what stands around it; ``offsets`` prints an element as pahole does.
``brief_names`` shortens long names, ``visible`` spells out control characters.
"""
