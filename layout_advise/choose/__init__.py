"""First stage: which region of the program to study, and which of its calls.

In come the settings and the program, out comes a hotspot with the call to stop at. In order: ``profile`` samples the
program and ranks functions, ``loop_regions`` takes a loop nest where the function is entered too seldom, ``calls``
chooses the call from the times of the first ones, ``batches`` plans many consecutive calls where one is too short to be
timed. ``find_kinds`` traces a few further calls; ``call_kinds`` says which of them do the same work.
"""
