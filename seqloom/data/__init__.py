"""Files to examples to arrays of numbers; knows no network and imports no torch."""
