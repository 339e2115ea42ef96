"""What is inside a model, as arrays with labels. Draws nothing."""
