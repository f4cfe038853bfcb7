"""From data to text; does not know how the data came about.

``model/`` is the report as data, ``words/`` turns its parts into sentences, ``pages/`` makes terminal text, HTML,
figures and files of them (``templates/`` holds the HTML), ``exports/`` what other tools read.
"""
