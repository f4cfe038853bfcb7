"""The command line and the words of the tool as text: for ``help``, the man page, completion and the documentation.

In: the parser of :mod:`layout_advise.cli`. ``catalogue`` makes frozen data of it; ``manual`` writes that as a man page,
``reference`` as pages of the documentation; ``topics`` are the texts that ``help TOPIC`` prints;
``completion`` is for shells.
"""
