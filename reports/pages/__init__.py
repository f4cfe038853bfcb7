"""The reports as text: terminal, HTML page, figures, and the exports of a trace.

Each module takes data and returns or prints text.
"""
