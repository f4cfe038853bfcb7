"""The subcommands, one file each: ``add_arguments`` declares its options, ``run`` carries it out, its docstring is its help.

``trace`` goes the whole road, ``demo`` does so on an example. ``farm`` does so on many programs; ``apply`` writes a layout
into source, ``views`` temporary ones, ``emit`` writes declarations, ``guard`` holds builds against a layout. ``kernels``
are those about OpenCL. ``report``, ``show`` and ``compare`` read run directories (``folded`` holds what ``show`` prints of
a trace). ``layout`` rewrites and draws a term. ``doctor`` says what this machine can do, and of a binary what can be lifted
(``lifting``); ``installing`` sets up what is missing. ``help`` explains commands and topics, and writes man page and
completions (``helping``).
``common`` holds the options and output that several share.
"""
