/* Products of few rows with weights.

   A library for large matrix products spends most of such a product's time on preparing it. Here weights are laid out
   beforehand, in panels of PANEL outputs: for each panel its PANEL biases, then for each input the PANEL weights that
   belong to it. Rows stand `stride` numbers apart. */

/* `rows` rows times `panels` panels, at once in registers. The compiler knows how many. */
static inline __attribute__((always_inline)) void NAMED(tile)(const long rows, const long panels, long inputs,
                                                              const REAL *x, long x_stride, const REAL *weights,
                                                              long panel, REAL *y, long y_stride, long width) {
    NAMED(lanes) sums[6][8];
    const long deep = (inputs + 1) * PANEL;
    const REAL *w = weights + panel * deep;
#pragma GCC unroll 8
    for (long p = 0; p < panels; p++)
#pragma GCC unroll 8
        for (long row = 0; row < rows; row++)
            for (long half = 0; half < 2; half++)
                sums[row][2 * p + half] = *(const NAMED(lanes) *)(w + p * deep + half * LANES);
    w += PANEL;
    for (long k = 0; k < inputs; k++, w += PANEL) {
        if (rows > 3) __builtin_prefetch(w + deep, 0, 2); /* the panel after this one comes nearer, a line at a time */
#pragma GCC unroll 8
        for (long p = 0; p < panels; p++) {
            const NAMED(lanes) low = *(const NAMED(lanes) *)(w + p * deep);
            const NAMED(lanes) high = *(const NAMED(lanes) *)(w + p * deep + LANES);
#pragma GCC unroll 8
            for (long row = 0; row < rows; row++) {
                const REAL number = x[row * x_stride + k];
                sums[row][2 * p] += low * number;
                sums[row][2 * p + 1] += high * number;
            }
        }
    }
#pragma GCC unroll 8
    for (long p = 0; p < panels; p++)
#pragma GCC unroll 8
        for (long row = 0; row < rows; row++) {
            REAL *to = y + row * y_stride + p * PANEL;
            if ((p + 1) * PANEL <= width) {
                *(NAMED(lanes) *)to = sums[row][2 * p];
                *(NAMED(lanes) *)(to + LANES) = sums[row][2 * p + 1];
            } else
                memcpy(to, &sums[row][2 * p], (width - p * PANEL) * sizeof(REAL));
        }
}

/* Any number of rows with one panel, in tiles of four to six rows where there are as many. */
static inline void NAMED(column)(long rows, long inputs, const REAL *x, long x_stride, const REAL *weights, long panel,
                                 REAL *y, long y_stride, long width) {
    while (rows > 0) {
        const long now = rows > 9 || rows == 6 ? 6 : rows > 5 ? (rows + 1) / 2 : rows;
#define TILE(count) \
    case count: NAMED(tile)(count, 1, inputs, x, x_stride, weights, panel, y, y_stride, width); break
        switch (now) { TILE(1); TILE(2); TILE(3); TILE(4); TILE(5); TILE(6); }
#undef TILE
        rows -= now, x += now * x_stride, y += now * y_stride;
    }
}

/* y = W x + b for each of the rows. */
void NAMED(product)(long rows, long inputs, long outputs, const REAL *x, long x_stride, const REAL *weights, REAL *y,
                    long y_stride) {
    const long panels = (outputs + PANEL - 1) / PANEL, groups = (panels + 3) / 4;
#pragma omp parallel for schedule(static) if (NAMED(threads) && rows * inputs * outputs > WORTH)
    for (long group = 0; group < groups; group++) {
        const long first = 4 * group, last = first + 4 < panels ? first + 4 : panels;
        if (rows == 1 && last - first == 4) {
            NAMED(tile)(1, 4, inputs, x, x_stride, weights, first, y + first * PANEL, y_stride,
                        outputs - first * PANEL);
            continue;
        }
        for (long panel = first; panel < last; panel++)
            NAMED(column)(rows, inputs, x, x_stride, weights, panel, y + panel * PANEL, y_stride,
                          outputs - panel * PANEL);
    }
}
