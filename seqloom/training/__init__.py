"""Training: the loop, its optimiser, and files that survive being killed; knows no task and no run folder."""
