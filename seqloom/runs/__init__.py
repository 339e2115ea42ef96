"""A run: its folder, the training that fills it, and asking what was trained."""
