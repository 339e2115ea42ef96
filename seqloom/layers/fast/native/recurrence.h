/* What happens to the numbers of one step of a recurrence between two matrix products, in one pass over them.

   Rows are `size` wide; a step has `rows` of them and stands `place` rows into each array over all steps. Entries over
   all steps stand behind the first one: a step finds the old one at `old` and leaves the new one at `new`, in rows. */

#define EACH _Pragma("GCC ivdep") for (long j = 0; j < size; j++) /* no two arrays overlap */
#define ROWS _Pragma("omp parallel for schedule(static) if (NAMED(threads) && rows * size > 4000)") for (long row = 0; row < rows; row++)
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

/* --- single steps, when a decoder writes --- */

/* gates holds W x + b of i, f, g, o, and more of it U h. */
void NAMED(lstm_step)(long rows, long size, NAMED(in) gates, NAMED(in) more, NAMED(in) before, NAMED(out) after,
                      NAMED(out) h) {
#pragma omp parallel for schedule(static) if (NAMED(threads) && rows * size > WORTH / 10)
    for (long row = 0; row < rows; row++) {
        NAMED(in) a = gates + row * 4 * size, b = more + row * 4 * size;
#pragma GCC ivdep
        for (long j = 0; j < size; j++) {
            REAL in = NAMED(sigmoid)(a[j] + b[j]);
            REAL forget = NAMED(sigmoid)(a[size + j] + b[size + j]);
            REAL candidate = NAMED(tangent)(a[2 * size + j] + b[2 * size + j]);
            REAL out = NAMED(sigmoid)(a[3 * size + j] + b[3 * size + j]);
            REAL cell = forget * before[row * size + j] + in * candidate;
            after[row * size + j] = cell, h[row * size + j] = out * NAMED(tangent)(cell);
        }
    }
}

/* gates holds W x + b of r, u, n; more holds U h + b of them. */
void NAMED(gru_step)(long rows, long size, NAMED(in) gates, NAMED(in) more, NAMED(in) before, NAMED(out) h) {
#pragma omp parallel for schedule(static) if (NAMED(threads) && rows * size > WORTH / 10)
    for (long row = 0; row < rows; row++) {
        NAMED(in) a = gates + row * 3 * size, b = more + row * 3 * size;
#pragma GCC ivdep
        for (long j = 0; j < size; j++) {
            REAL reset = NAMED(sigmoid)(a[j] + b[j]);
            REAL update = NAMED(sigmoid)(a[size + j] + b[size + j]);
            REAL candidate = NAMED(tangent)(a[2 * size + j] + reset * b[2 * size + j]);
            h[row * size + j] = candidate + update * (before[row * size + j] - candidate);
        }
    }
}

#undef EACH
#undef ROWS
