"""The subcommands, one file each: ``add_arguments`` declares its options, ``run`` carries it out, its docstring is its help.

``trace`` goes the whole road, ``demo`` does so on an example. ``farm`` does
so on many programs; ``apply`` writes a layout into source. ``report``, ``show`` and ``compare`` read run directories:
``show_rows`` names what a reference touched, ``show_files`` writes tables. ``layout`` rewrites and draws a term. ``doctor``
says what this machine can do, ``doctor_lift`` what of a binary can be lifted (``lift_survey`` does it, in processes of
their own). ``common`` holds the options and output that several of them share.
"""
