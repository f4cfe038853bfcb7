"""Watching, under ptrace, who else uses given memory between calls of the hotspot.

In come ranges of memory and a seized program, out comes what was ``watched``. ``guarded_memory`` protects the pages,
``user_watch`` runs the watch and notes each fault, ``faulting`` says what the instruction was about to access,
``call_buffers`` which memory a system call uses.
"""
