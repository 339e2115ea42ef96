"""Training: the loop, its optimizer, and files that survive being killed; knows no task and no run folder."""
