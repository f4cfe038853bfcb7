"""What a start of the program leaves running, found and ended however it detached itself.

In comes the process that was started, out comes nothing that runs. A process is told by the session or process group that
the program led, by a variable of the environment that processes inherit (``marks``), or by an ancestor that is told so
(``processes``). ``ending`` kills them; what is left of those that changed all three has become our own child by then. The
farm tells its processes by a variable in the same way.
"""
