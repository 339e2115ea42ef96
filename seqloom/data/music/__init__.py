"""Written music: ABC notation parsed, checked and played."""
