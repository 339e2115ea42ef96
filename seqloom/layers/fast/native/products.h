/* Products of few rows with weights.

   A library for large matrix products spends most of such a product's time on preparing it. Here weights are laid out
   beforehand, in panels of PANEL outputs: for each panel its PANEL biases, then for each input the PANEL weights that
   belong to it. Rows stand `stride` numbers apart. */

/* Weights are numbers, or bytes that are to be multiplied with a scale for each output. */
typedef struct {
    const REAL *numbers;
    const signed char *bytes;
    const REAL *scale, *bias; /* of the bytes */
} NAMED(weights);

static inline __attribute__((always_inline)) NAMED(lanes) NAMED(load)(const long rounded, NAMED(weights) w, long at) {
    if (!rounded) return *(const NAMED(lanes) *)(w.numbers + at);
#if DIGITS == 23 && defined(__AVX512F__) /* which compilers do not find by themselves */
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(w.bytes + at))));
#elif DIGITS == 23 && defined(__AVX2__)
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(w.bytes + at))));
#else
    NAMED(whole) wide = __builtin_convertvector(*(const NAMED(bytes) *)(w.bytes + at), NAMED(whole));
    return __builtin_convertvector(wide, NAMED(lanes));
#endif
}

/* `rows` rows times `panels` panels, at once in registers. The compiler knows how many, and what weights are. */
static inline __attribute__((always_inline)) void NAMED(tile)(const long rows, const long panels, const long rounded,
                                                              long inputs, const REAL *x, long x_stride,
                                                              NAMED(weights) w, long panel, REAL *y, long y_stride,
                                                              long width) {
    NAMED(lanes) sums[6][8];
    const long deep = (inputs + !rounded) * PANEL;
    long at = panel * deep;
#pragma GCC unroll 8
    for (long p = 0; p < panels; p++)
#pragma GCC unroll 8
        for (long row = 0; row < rows; row++)
            for (long half = 0; half < 2; half++)
                sums[row][2 * p + half] =
                    rounded ? (NAMED(lanes)){0} : *(const NAMED(lanes) *)(w.numbers + at + p * deep + half * LANES);
    if (!rounded) at += PANEL;
    for (long k = 0; k < inputs; k++, at += PANEL) {
        if (rows > 3) /* the panel after this one comes nearer, a line at a time */
            __builtin_prefetch(rounded ? (const void *)(w.bytes + at + deep) : (const void *)(w.numbers + at + deep), 0, 2);
#pragma GCC unroll 8
        for (long p = 0; p < panels; p++) {
            const NAMED(lanes) low = NAMED(load)(rounded, w, at + p * deep);
            const NAMED(lanes) high = NAMED(load)(rounded, w, at + p * deep + LANES);
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
            for (long half = 0; rounded && half < 2; half++) {
                const long output = (panel + p) * PANEL + half * LANES;
                sums[row][2 * p + half] = sums[row][2 * p + half] * *(const NAMED(lanes) *)(w.scale + output) +
                                          *(const NAMED(lanes) *)(w.bias + output);
            }
            if ((p + 1) * PANEL <= width) {
                *(NAMED(lanes) *)to = sums[row][2 * p];
                *(NAMED(lanes) *)(to + LANES) = sums[row][2 * p + 1];
            } else
                memcpy(to, &sums[row][2 * p], (width - p * PANEL) * sizeof(REAL));
        }
}

/* Any number of rows with one panel, in tiles of four to six rows where there are as many. */
static inline __attribute__((always_inline)) void NAMED(column)(const long rounded, long rows, long inputs,
                                                                const REAL *x, long x_stride, NAMED(weights) w,
                                                                long panel, REAL *y, long y_stride, long width) {
    while (rows > 0) {
        const long now = rows > 9 || rows == 6 ? 6 : rows > 5 ? (rows + 1) / 2 : rows;
#define TILE(count) \
    case count: NAMED(tile)(count, 1, rounded, inputs, x, x_stride, w, panel, y, y_stride, width); break
        switch (now) { TILE(1); TILE(2); TILE(3); TILE(4); TILE(5); TILE(6); }
#undef TILE
        rows -= now, x += now * x_stride, y += now * y_stride;
    }
}

static inline __attribute__((always_inline)) void NAMED(any_product)(const long rounded, long rows, long inputs,
                                                                     long outputs, const REAL *x, long x_stride,
                                                                     NAMED(weights) w, REAL *y, long y_stride) {
    const long panels = (outputs + PANEL - 1) / PANEL, groups = (panels + 3) / 4;
#pragma omp parallel for schedule(static) if (NAMED(threads) && rows * inputs * outputs > WORTH)
    for (long group = 0; group < groups; group++) {
        const long first = 4 * group, last = first + 4 < panels ? first + 4 : panels, width = outputs - first * PANEL;
        if (rows == 1 && last - first == 4) {
            NAMED(tile)(1, 4, rounded, inputs, x, x_stride, w, first, y + first * PANEL, y_stride, width);
            continue;
        }
        for (long panel = first; panel < last; panel++)
            NAMED(column)(rounded, rows, inputs, x, x_stride, w, panel, y + panel * PANEL, y_stride,
                          outputs - panel * PANEL);
    }
}

/* y = W x + b for each of the rows. */
void NAMED(product)(long rows, long inputs, long outputs, const REAL *x, long x_stride, const REAL *weights, REAL *y,
                    long y_stride) {
    const NAMED(weights) w = {weights, 0, 0, 0};
    NAMED(any_product)(0, rows, inputs, outputs, x, x_stride, w, y, y_stride);
}

/* The same by weights that are bytes, without biases among them; scale and bias are as long as whole panels. */
void NAMED(rounded_product)(long rows, long inputs, long outputs, const REAL *x, long x_stride,
                            const signed char *weights, const REAL *scale, const REAL *bias, REAL *y, long y_stride) {
    const NAMED(weights) w = {0, weights, scale, bias};
    NAMED(any_product)(1, rows, inputs, outputs, x, x_stride, w, y, y_stride);
}
