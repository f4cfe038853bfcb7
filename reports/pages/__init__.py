"""Whole outputs made of a report or a trace.

``tables`` gives the rows, ``terminal`` and ``html`` the report, ``figures`` and ``inline_charts`` its charts,
``live_chart`` the calls of a trial in the running program,
``drawings`` takes the drawings of layouts into a page, ``field_drawings`` draws which fields are used together,
``field_heat`` tells where they are used;
``trace_text`` shows a trace's file as text, ``chrome_trace`` as events for ui.perfetto.dev. ``farm_pages`` has the summary
of many runs, ``kernel_pages`` what was found of OpenCL kernels.
``console`` keeps control characters in foreign text from the terminal.
"""
