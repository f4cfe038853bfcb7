"""From data to text: terminal, HTML, JSON."""
