"""File formats to rows, one file a format; a person's mistake is a sentence with file and line."""
