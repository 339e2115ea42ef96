/* Dropout with bits from a hash of the seed and the place: nothing has to be kept for the way back, which draws the same
   again, and threads need not agree on an order. */

/* Every bit of the result depends on every bit of the number (Wellons, "lowbias32"). */
static inline uint32_t NAMED(scramble)(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* y = x · scale where the hash of the place is at least `least`, and 0 elsewhere; x and y may be the same. */
void NAMED(dropout)(long count, long seed, long least, double scale, const REAL *x, REAL *y) {
    const uint32_t low = (uint32_t)seed, high = (uint32_t)((uint64_t)seed >> 32), bound = (uint32_t)least;
    const REAL share = (REAL)scale;
#pragma omp parallel for schedule(static) if (NAMED(threads) && count > WORTH)
    for (long start = 0; start < count; start += 4096) {
        const long stop = start + 4096 < count ? start + 4096 : count;
        const uint32_t block = NAMED(scramble)((uint32_t)(start >> 12) + high);
        for (long j = start; j < stop; j++) {
            const uint32_t drawn = NAMED(scramble)(NAMED(scramble)((uint32_t)(j - start) + low) ^ block);
            y[j] = drawn >= bound ? x[j] * share : 0;
        }
    }
}
