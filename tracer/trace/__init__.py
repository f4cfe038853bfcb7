"""The trace of one call as data, and its file.

``trace`` defines references with their folded streams, loops, objects and the order of execution. ``trace_file`` writes and
reads it as ``chunks``, which stay readable up to the last whole one; ``stream_codec`` packs the streams, ``trace_parts``
makes a trace of chunks again, and ``consistency`` checks that its parts fit together.
``set_aside`` keeps a complete run until the one that replaces it is there.
"""
