"""The subcommands, their options, output and exit codes."""
