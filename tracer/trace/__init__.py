"""The trace of a call: its values (``trace``), its file (``trace_file``, in ``chunks``, streams by ``stream_codec``)."""
