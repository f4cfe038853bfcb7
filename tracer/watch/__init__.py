"""The accesses to a structure between the calls of the hotspot, from a program that goes on under ptrace.

``user_watch`` runs the watch: ``guarded_memory`` protects the pages, ``faulting`` decodes the faulting instruction,
``call_buffers`` the buffers of system calls; ``watched`` holds its input and result.
"""
