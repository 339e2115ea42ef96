/* The kernels are compiled with OpenMP but linked without its library: they use the threads of the one that PyTorch has
   loaded, whose names come first when this library is loaded into the same process. Where there is none, these stand
   in for it, and everything runs in one thread. Exported weakly, and only seen by this library itself. */

__attribute__((weak)) void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
    (void)threads, (void)flags;
    body(data);
}

__attribute__((weak)) int omp_get_num_threads(void) { return 1; }

__attribute__((weak)) int omp_get_thread_num(void) { return 0; }

__attribute__((weak)) int omp_get_max_threads(void) { return 1; }
