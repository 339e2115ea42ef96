import platform
import resource

import pytest
import torch

from seqloom.training.memory import keep_memory


def count_new_pages() -> int:
    """Those that the system had to find while large tensors came and went."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(10_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no such settings")
def test_what_is_freed_is_used_again_while_memory_is_kept():
    usual = count_new_pages()
    with keep_memory():
        count_new_pages()  # small blocks may still come to lie in the way of large ones
        count_new_pages()
        kept = count_new_pages()
    assert 4 * kept < usual
