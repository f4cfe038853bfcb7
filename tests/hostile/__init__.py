"""Programs that do what breaks tools, each through the whole command."""
