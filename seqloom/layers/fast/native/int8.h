/* Products of few rows with weights of eight bits, in whole numbers.

   The weights of an output are bytes from -127 to 127, times a scale of their own. So is each row of x, rounded here.
   Sums of products of bytes are exact in 32 bits; what they come to is scaled back at the end.

   Weights are laid out in panels of PANEL outputs, as in products.h, but four inputs stand side by side: for each panel
   and each four inputs, PANEL times four bytes. The inputs are padded to a multiple of four with weights of 0. */

#if defined(__AVX512VNNI__)

/* VNNI multiplies bytes without a sign by those with one, so x is moved by 128; `totals` takes that back. */
#define MOVED 128
#define WIDE 16 /* outputs in a vector */
#define TALL 6  /* rows whose sums stay in registers */
typedef __m512i NAMED(sums);
typedef __m512i NAMED(four); /* bytes of x, the same four again and again */

static inline NAMED(sums) NAMED(no_sums)(void) { return _mm512_setzero_si512(); }

static inline NAMED(four) NAMED(spread)(const unsigned char *x) {
    int32_t bytes;
    memcpy(&bytes, x, 4);
    return _mm512_set1_epi32(bytes);
}

static inline NAMED(sums) NAMED(add)(NAMED(sums) sums, const signed char *weights, NAMED(four) x) {
    return _mm512_dpbusd_epi32(sums, x, _mm512_loadu_si512(weights));
}

#elif defined(__AVX512BW__)

/* As with AVX2 below, twice as wide: a mask says which weights take over a sign. There are registers for the sums of
   two panels, which share what is made of x. */
#define MOVED 0
#define WIDE 16
#define TALL 6
#define BROAD 2
typedef __m512i NAMED(sums);
typedef struct {
    __m512i size;
    __mmask64 negative;
} NAMED(four);

static inline NAMED(sums) NAMED(no_sums)(void) { return _mm512_setzero_si512(); }

static inline NAMED(four) NAMED(spread)(const unsigned char *x) {
    int32_t bytes;
    memcpy(&bytes, x, 4);
    const __m512i four = _mm512_set1_epi32(bytes);
    return (NAMED(four)){_mm512_abs_epi8(four), _mm512_movepi8_mask(four)};
}

static inline NAMED(sums) NAMED(add)(NAMED(sums) sums, const signed char *weights, NAMED(four) x) {
    const __m512i whole = _mm512_loadu_si512(weights);
    const __m512i signs = _mm512_mask_sub_epi8(whole, x.negative, _mm512_setzero_si512(), whole);
    const __m512i pairs = _mm512_maddubs_epi16(x.size, signs);
    return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

#elif defined(__AVX2__)

/* maddubs adds pairs of products in 16 bits. That has room for 2 · 127 · 127, so x goes without its sign, which the
   weights take over. */
#define MOVED 0
#define WIDE 8
#define TALL 5
typedef __m256i NAMED(sums);
typedef __m256i NAMED(four);

static inline NAMED(sums) NAMED(no_sums)(void) { return _mm256_setzero_si256(); }

static inline NAMED(four) NAMED(spread)(const unsigned char *x) {
    int32_t bytes;
    memcpy(&bytes, x, 4);
    return _mm256_set1_epi32(bytes);
}

static inline NAMED(sums) NAMED(add)(NAMED(sums) sums, const signed char *weights, NAMED(four) x) {
    const __m256i signs = _mm256_sign_epi8(_mm256_loadu_si256((const __m256i *)weights), x);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(x), signs);
    const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    __asm__("vpaddd %1, %0, %0" : "+x"(sums) : "x"(fours)); /* the compiler would move sums out of their registers */
    return sums;
}

#else

#define MOVED 0
#define WIDE 4
#define TALL 6
typedef struct {
    int32_t each[4];
} NAMED(sums);
typedef struct {
    signed char each[4];
} NAMED(four);

static inline NAMED(sums) NAMED(no_sums)(void) { return (NAMED(sums)){{0}}; }

static inline NAMED(four) NAMED(spread)(const unsigned char *x) {
    NAMED(four) bytes;
    memcpy(&bytes, x, 4);
    return bytes;
}

static inline NAMED(sums) NAMED(add)(NAMED(sums) sums, const signed char *weights, NAMED(four) x) {
    for (long output = 0; output < 4; output++)
        for (long input = 0; input < 4; input++) sums.each[output] += weights[4 * output + input] * x.each[input];
    return sums;
}

#endif

#define VECTORS (PANEL / WIDE) /* of sums in a panel */
#ifndef BROAD
#define BROAD 1 /* panels whose sums stay in registers, of as many rows */
#endif

/* Each row as bytes, moved by MOVED, and what one of them is worth: the largest number of the row becomes 127. A row
   with anything that is no finite number is worth no number. */
static void NAMED(round_rows)(long rows, long inputs, const REAL *x, long x_stride, REAL *worth, unsigned char *bytes) {
    const long deep = (inputs + 3) / 4 * 4;
    for (long row = 0; row < rows; row++, x += x_stride, bytes += deep) {
        BITS most = 0; /* without signs, bits are in the order of their numbers; infinity and what is none come last */
        for (long j = 0; j < inputs; j++) {
            BITS bits;
            memcpy(&bits, x + j, sizeof bits);
            bits = bits << 1 >> 1;
            most = bits > most ? bits : most;
        }
        REAL largest;
        memcpy(&largest, &most, sizeof largest);
        const REAL doubt = largest * 0;
        const REAL share = 127 / (largest > (REAL)1e-30 ? largest : (REAL)1e-30); /* next to nothing counts as that */
        worth[row] = largest / 127 + doubt;
        memset(bytes, 0, deep);
        if (doubt == 0)
#pragma GCC ivdep
            for (long j = 0; j < inputs; j++)
                bytes[j] = (unsigned char)((int)((x[j] * share + (REAL)ROUND) - (REAL)ROUND) + MOVED);
    }
}

/* `rows` rows times `panels` panels, at once in registers. The compiler knows how many. */
static inline __attribute__((always_inline)) void NAMED(int8_tile)(const long rows, const long panels, long inputs,
                                                                   const unsigned char *x, const REAL *worth,
                                                                   const signed char *weights, const REAL *scale,
                                                                   const REAL *bias, const int32_t *totals, long panel,
                                                                   REAL *y, long y_stride, long width) {
    NAMED(sums) sums[6][4 * VECTORS];
    const long groups = (inputs + 3) / 4, deep = groups * 4;
    const signed char *w = weights + panel * PANEL * deep;
#pragma GCC unroll 8
    for (long row = 0; row < rows; row++)
#pragma GCC unroll 16
        for (long v = 0; v < panels * VECTORS; v++) sums[row][v] = NAMED(no_sums)();
    for (long group = 0; group < groups; group++, w += 4 * PANEL) {
#pragma GCC unroll 8
        for (long row = 0; row < rows; row++) { /* one after another: what a row needs, the next one does not */
            const NAMED(four) four = NAMED(spread)(x + row * deep + 4 * group);
#pragma GCC unroll 16
            for (long v = 0; v < panels * VECTORS; v++)
                sums[row][v] =
                    NAMED(add)(sums[row][v], w + v / VECTORS * PANEL * deep + v % VECTORS * WIDE * 4, four);
        }
    }
#pragma GCC unroll 8
    for (long row = 0; row < rows; row++) { /* unrolled, or else the sums would have to stand in memory all the time */
        int32_t whole[4 * PANEL];
        REAL scaled[4 * PANEL];
#pragma GCC unroll 16
        for (long v = 0; v < panels * VECTORS; v++) memcpy(whole + v * WIDE, &sums[row][v], WIDE * sizeof(int32_t));
        for (long j = 0; j < panels * PANEL; j++) {
            const long output = panel * PANEL + j;
            scaled[j] = (REAL)(whole[j] - MOVED * totals[output]) * (worth[row] * scale[output]) + bias[output];
        }
        if (width >= panels * PANEL)
            memcpy(y + row * y_stride, scaled, panels * PANEL * sizeof(REAL));
        else
            memcpy(y + row * y_stride, scaled, width * sizeof(REAL));
    }
}

/* W x + b for each of the rows. `totals` are the sums of each output's bytes; these, scale and bias are as long as whole
   panels. `room` has place for inputs / 4 + 2 numbers a row. */
void NAMED(int8_product)(long rows, long inputs, long outputs, const REAL *x, long x_stride, const signed char *weights,
                         const REAL *scale, const REAL *bias, const int32_t *totals, REAL *room, REAL *y,
                         long y_stride) {
    const long panels = (outputs + PANEL - 1) / PANEL, groups = (panels + 3) / 4, deep = (inputs + 3) / 4 * 4;
    unsigned char *bytes = (unsigned char *)(room + rows);
    NAMED(round_rows)(rows, inputs, x, x_stride, room, bytes);
#pragma omp parallel for schedule(static) if (NAMED(threads) && rows * inputs * outputs > 4 * WORTH)
    for (long group = 0; group < groups; group++) {
        const long first = 4 * group, last = first + 4 < panels ? first + 4 : panels;
        if (rows == 1 && last - first == 4) {
            NAMED(int8_tile)(1, 4, inputs, bytes, room, weights, scale, bias, totals, first, y + first * PANEL,
                             y_stride, outputs - first * PANEL);
            continue;
        }
        for (long panel = first, side; panel < last; panel += side) {
            side = last - panel < BROAD ? 1 : BROAD;
            for (long row = 0; row < rows;) {
                const long left = rows - row, tiles = (left + TALL - 1) / TALL, now = (left + tiles - 1) / tiles;
#define TILE(count, panels)                                                                                         \
    case 10 * panels + count:                                                                                       \
        NAMED(int8_tile)(count, panels, inputs, bytes + row * deep, room + row, weights, scale, bias, totals, panel, \
                         y + row * y_stride + panel * PANEL, y_stride, outputs - panel * PANEL);                    \
        break
#define TILES(panels)  \
    TILE(1, panels);   \
    TILE(2, panels);   \
    TILE(3, panels);   \
    TILE(4, panels);   \
    TILE(5, panels);   \
    TILE(6, panels)
                switch (10 * side + now) {
                    TILES(1);
#if BROAD > 1
                    TILES(BROAD);
#endif
                }
#undef TILES
#undef TILE
                row += now;
            }
        }
    }
}

#undef MOVED
#undef WIDE
#undef TALL
#undef BROAD
#undef VECTORS
