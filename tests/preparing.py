"""A task of a recipe, prepared or read back, as tests need it."""

from seqloom.tasks import declare


def prepare_task(recipe, note=print, examples=None, known=None):
    return declare(recipe).prepare(recipe, note, examples, known)


def restore_task(recipe, saved):
    return declare(recipe).restore(recipe, saved)
