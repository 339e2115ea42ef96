"""The fast ways to run what the other files of `layers` spell out, each proven equal to it by a law."""
