"""From a hotspot's machine code and a candidate layout to C, and from that to seconds."""
