"""Every setting of a run, one file a table of the recipe; and how settings are read, written and explained.

A setting's name, type, default, bounds and help are declared once, in `data`, `model` or `train`. `text` and `words`
work on any such declaration and know no setting by name. Nothing here knows torch, a data file or a network.
"""
