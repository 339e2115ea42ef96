"""What ails a run: measurements, rules, and the findings they come to."""
