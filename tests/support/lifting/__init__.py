"""Running lifted code and machine code side by side: states, memories, an interpreter and a native runner."""
