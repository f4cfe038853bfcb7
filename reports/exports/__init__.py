"""A report for other tools.

In comes a report, out come rows or text: ``sarif`` (SARIF 2.1.0), ``markdown``, ``notes`` (lines for editors, annotations
for GitHub), ``rows`` (a table of all layouts, as CSV).
"""
