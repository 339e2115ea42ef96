/* What happens to the numbers of one step between two matrix products, in one pass over them: see compiled.py.

   Rows are `size` wide; a step has `rows` of them and stands `place` rows into each array over all steps. Entries over
   all steps stand behind the first one: a step finds the old one at `old` and leaves the new one at `new`, in rows.
   Everything exists twice, for float and for double: this file reads itself once for each. */

#ifndef REAL

#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <math.h>
#include <stdint.h>
#include <string.h>

#define REAL float
#define BITS uint32_t
#define NAMED(name) name##_float
#define DIGITS 23           /* of the binary fraction */
#define BIAS 0x3f800000     /* the bits of 1 */
#define ROUND 12582912.0f   /* 1.5 · 2^23: what is added to it is rounded to whole numbers */
#define LARGEST 87.0f       /* its exponential is still a number */
#include "compiled.c"
#undef REAL
#undef BITS
#undef NAMED
#undef DIGITS
#undef BIAS
#undef ROUND
#undef LARGEST

#define REAL double
#define BITS uint64_t
#define NAMED(name) name##_double
#define DIGITS 52
#define BIAS 0x3ff0000000000000
#define ROUND 6755399441055744.0
#define LARGEST 708.0
#include "compiled.c"

#else

/* e^x = 2^n e^r with n whole and |r| at most half of log 2, where the series ends soon. */
static inline REAL NAMED(exponential)(REAL x) {
    x = x > LARGEST ? (REAL)LARGEST : x;
    x = x < -LARGEST ? (REAL)-LARGEST : x;
    REAL shifted = x * (REAL)1.44269504088896340736 + (REAL)ROUND;
    REAL n = shifted - (REAL)ROUND;
    REAL r = x - n * (REAL)0.693145751953125 - n * (REAL)1.42860682030941723212e-6;
    REAL sum = 0;
    if (sizeof(REAL) == 8) {
        sum = (REAL)(1.0 / 6227020800.0);
        sum = sum * r + (REAL)(1.0 / 479001600.0);
        sum = sum * r + (REAL)(1.0 / 39916800.0);
        sum = sum * r + (REAL)(1.0 / 3628800.0);
        sum = sum * r + (REAL)(1.0 / 362880.0);
        sum = sum * r + (REAL)(1.0 / 40320.0);
    }
    sum = sum * r + (REAL)(1.0 / 5040.0);
    sum = sum * r + (REAL)(1.0 / 720.0);
    sum = sum * r + (REAL)(1.0 / 120.0);
    sum = sum * r + (REAL)(1.0 / 24.0);
    sum = sum * r + (REAL)(1.0 / 6.0);
    sum = sum * r + (REAL)0.5;
    sum = sum * r + 1;
    sum = sum * r + 1;
    BITS bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << DIGITS) + BIAS;
    REAL power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

static inline REAL NAMED(sigmoid)(REAL x) { return 1 / (1 + NAMED(exponential)(-x)); }
static inline REAL NAMED(tangent)(REAL x) { return 1 - 2 / (1 + NAMED(exponential)(2 * x)); }

#define EACH _Pragma("GCC ivdep") for (long j = 0; j < size; j++) /* no two arrays overlap */
#define ROWS _Pragma("omp parallel for schedule(static) if (rows * size > 4000)") for (long row = 0; row < rows; row++)
typedef REAL *restrict NAMED(out);
typedef const REAL *restrict NAMED(in);

/* h = tanh(x), where x is all of W x + U h. */
void NAMED(rnn_forward)(long size, NAMED(in) x, NAMED(out) h, long place, long new, long rows) {
    x += place * size, h += new * size;
    for (long j = 0; j < rows * size; j++) h[j] = NAMED(tangent)(x[j]);
}

/* d_x from the gradient of h: what is asked of it, and in the first `later` rows what the step after says, `back`. */
void NAMED(rnn_backward)(long size, NAMED(in) h, NAMED(in) d_h, NAMED(in) back, NAMED(out) d_x, long place, long new,
                         long rows, long later) {
    h += new * size, d_h += place * size, d_x += place * size;
    for (long j = 0; j < later * size; j++) d_x[j] = (d_h[j] + back[j]) * (1 - h[j] * h[j]);
    for (long j = later * size; j < rows * size; j++) d_x[j] = d_h[j] * (1 - h[j] * h[j]);
}

/* gates holds W x + b of r, u, n and becomes r, u, n; product is U h, to which b is added; share keeps that of n. */
void NAMED(gru_forward)(long size, NAMED(out) gates, NAMED(in) product, NAMED(in) b, NAMED(out) share, REAL *h,
                        long place, long old, long new, long rows) {
    ROWS {
        NAMED(out) r = gates + (place + row) * 3 * size;
        NAMED(out) u = r + size;
        NAMED(out) n = u + size;
        NAMED(in) p = product + row * 3 * size;
        NAMED(out) s = share + (place + row) * size;
        NAMED(in) before = h + (old + row) * size;
        NAMED(out) after = h + (new + row) * size;
        EACH {
            REAL reset = NAMED(sigmoid)(r[j] + p[j] + b[j]);
            REAL update = NAMED(sigmoid)(u[j] + p[size + j] + b[size + j]);
            REAL shared = p[2 * size + j] + b[2 * size + j];
            REAL candidate = NAMED(tangent)(n[j] + reset * shared);
            r[j] = reset, u[j] = update, n[j] = candidate, s[j] = shared;
            after[j] = candidate + update * (before[j] - candidate);
        }
    }
}

/* moves becomes the gradients of n behind its reset, of r, of u and of n before it; carry passes along h itself. */
void NAMED(gru_backward)(long size, NAMED(in) gates, NAMED(in) share, NAMED(in) h, NAMED(in) d_h, NAMED(in) back,
                         NAMED(out) carry, NAMED(out) moves, long place, long old, long rows, long later) {
    ROWS {
        NAMED(in) r = gates + (place + row) * 3 * size;
        NAMED(in) u = r + size;
        NAMED(in) n = u + size;
        NAMED(in) s = share + (place + row) * size;
        NAMED(in) before = h + (old + row) * size;
        NAMED(in) asked = d_h + (place + row) * size;
        NAMED(in) told = back + row * size;
        NAMED(out) passed = carry + row * size;
        NAMED(out) d_s = moves + (place + row) * 4 * size;
        NAMED(out) d_r = d_s + size;
        NAMED(out) d_u = d_r + size;
        NAMED(out) d_n = d_u + size;
        if (row >= later) EACH passed[j] = 0;
        REAL heard = row < later;
        EACH {
            REAL d = asked[j] + passed[j] + (heard ? told[j] : 0);
            REAL by_n = d * (1 - u[j]) * (1 - n[j] * n[j]);
            d_n[j] = by_n, d_s[j] = by_n * r[j];
            d_r[j] = by_n * s[j] * r[j] * (1 - r[j]);
            d_u[j] = d * (before[j] - n[j]) * u[j] * (1 - u[j]);
            passed[j] = d * u[j];
        }
    }
}

/* gates holds W x + b + U h of i, f, g, o and becomes i, f, g, o. The gates see c through V, (3, size): zeros if not. */
void NAMED(lstm_forward)(long size, NAMED(out) gates, NAMED(in) V, REAL *h, REAL *c, long place, long old, long new,
                         long rows) {
    ROWS {
        NAMED(out) i = gates + (place + row) * 4 * size;
        NAMED(out) f = i + size;
        NAMED(out) g = f + size;
        NAMED(out) o = g + size;
        NAMED(in) before = c + (old + row) * size;
        NAMED(out) after = c + (new + row) * size;
        NAMED(out) said = h + (new + row) * size;
        EACH {
            REAL in = NAMED(sigmoid)(i[j] + V[j] * before[j]);
            REAL forget = NAMED(sigmoid)(f[j] + V[size + j] * before[j]);
            REAL candidate = NAMED(tangent)(g[j]);
            REAL cell = forget * before[j] + in * candidate;
            REAL out = NAMED(sigmoid)(o[j] + V[2 * size + j] * cell);
            i[j] = in, f[j] = forget, g[j] = candidate, o[j] = out;
            after[j] = cell, said[j] = out * NAMED(tangent)(cell);
        }
    }
}

/* d_gates of i, f, g, o before they were squashed; carry is the gradient of c on its own way. */
void NAMED(lstm_backward)(long size, NAMED(in) gates, NAMED(in) V, NAMED(in) c, NAMED(in) d_h, NAMED(in) d_c,
                          NAMED(in) back, NAMED(out) carry, NAMED(out) d_gates, long place, long old, long new,
                          long rows, long later) {
    ROWS {
        NAMED(in) i = gates + (place + row) * 4 * size;
        NAMED(in) f = i + size;
        NAMED(in) g = f + size;
        NAMED(in) o = g + size;
        NAMED(in) before = c + (old + row) * size;
        NAMED(in) after = c + (new + row) * size;
        NAMED(in) asked = d_h + (place + row) * size;
        NAMED(in) asked_c = d_c + (place + row) * size;
        NAMED(in) told = back + row * size;
        NAMED(out) passed = carry + row * size;
        NAMED(out) d_i = d_gates + (place + row) * 4 * size;
        NAMED(out) d_f = d_i + size;
        NAMED(out) d_g = d_f + size;
        NAMED(out) d_o = d_g + size;
        if (row >= later) EACH passed[j] = 0;
        REAL heard = row < later;
        EACH {
            REAL known = NAMED(tangent)(after[j]);
            REAL d = asked[j] + (heard ? told[j] : 0);
            REAL by_o = d * known * o[j] * (1 - o[j]);
            REAL by_c = asked_c[j] + passed[j] + d * o[j] * (1 - known * known) + by_o * V[2 * size + j];
            REAL by_i = by_c * g[j] * i[j] * (1 - i[j]);
            REAL by_f = by_c * before[j] * f[j] * (1 - f[j]);
            d_i[j] = by_i, d_f[j] = by_f, d_o[j] = by_o;
            d_g[j] = by_c * i[j] * (1 - g[j] * g[j]);
            passed[j] = by_c * f[j] + by_i * V[j] + by_f * V[size + j];
        }
    }
}

#include "compiled_steps.c"

#undef EACH
#undef ROWS

#endif
