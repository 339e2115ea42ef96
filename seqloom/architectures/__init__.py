"""The architectures, one file a family: the settings of each kind beside the functions that build a network of them."""
