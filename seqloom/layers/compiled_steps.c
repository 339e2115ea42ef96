/* What one step of a decoder is made of, when it writes: read by compiled.c, once for each kind of number.

   A step has few rows, so a library for large matrix products spends most of its time on preparing them. Here weights
   are laid out beforehand, in panels of PANEL outputs: for each panel its PANEL biases, then for each input the PANEL
   weights that belong to it. Rows stand `stride` numbers apart. Threads are those of PyTorch. */

#define LANES (32 / (long)sizeof(REAL))
#define PANEL (2 * LANES)
#define WORTH 40000 /* from how many multiplications a second thread pays */

typedef REAL NAMED(lanes) __attribute__((vector_size(32), aligned(sizeof(REAL)), may_alias));

/* `rows` (known to the compiler) rows times `panels` panels, at once in registers. */
static inline __attribute__((always_inline)) void NAMED(tile)(const long rows, const long panels, long inputs,
                                                              const REAL *x, long x_stride, const REAL *weights,
                                                              REAL *y, long y_stride, long width) {
    NAMED(lanes) sums[6][8];
    const long deep = (inputs + 1) * PANEL;
#pragma GCC unroll 8
    for (long p = 0; p < panels; p++)
#pragma GCC unroll 8
        for (long row = 0; row < rows; row++)
            for (long half = 0; half < 2; half++)
                sums[row][2 * p + half] = *(const NAMED(lanes) *)(weights + p * deep + half * LANES);
    weights += PANEL;
    for (long k = 0; k < inputs; k++) {
#pragma GCC unroll 8
        for (long p = 0; p < panels; p++) {
            NAMED(lanes) low = *(const NAMED(lanes) *)(weights + p * deep + k * PANEL);
            NAMED(lanes) high = *(const NAMED(lanes) *)(weights + p * deep + k * PANEL + LANES);
#pragma GCC unroll 8
            for (long row = 0; row < rows; row++) {
                REAL number = x[row * x_stride + k];
                sums[row][2 * p] += low * number;
                sums[row][2 * p + 1] += high * number;
            }
        }
    }
#pragma GCC unroll 8
    for (long row = 0; row < rows; row++)
#pragma GCC unroll 8
        for (long p = 0; p < panels; p++) {
            REAL *to = y + row * y_stride + p * PANEL;
            if ((p + 1) * PANEL <= width) {
                *(NAMED(lanes) *)to = sums[row][2 * p];
                *(NAMED(lanes) *)(to + LANES) = sums[row][2 * p + 1];
            } else
                memcpy(to, &sums[row][2 * p], (width - p * PANEL) * sizeof(REAL));
        }
}

/* Any number of rows with one panel, in tiles of four to six rows where there are as many. */
static inline void NAMED(column)(long rows, long inputs, const REAL *x, long x_stride, const REAL *weights, REAL *y,
                                 long y_stride, long width) {
    while (rows > 0) {
        const long now = rows > 9 || rows == 6 ? 6 : rows > 5 ? (rows + 1) / 2 : rows;
#define TILE(count) case count: NAMED(tile)(count, 1, inputs, x, x_stride, weights, y, y_stride, width); break
        switch (now) { TILE(1); TILE(2); TILE(3); TILE(4); TILE(5); TILE(6); }
#undef TILE
        rows -= now, x += now * x_stride, y += now * y_stride;
    }
}

/* y = W x + b for each of the rows. */
void NAMED(product)(long rows, long inputs, long outputs, const REAL *x, long x_stride, const REAL *weights, REAL *y,
                    long y_stride) {
    const long deep = (inputs + 1) * PANEL, panels = (outputs + PANEL - 1) / PANEL, groups = (panels + 3) / 4;
#pragma omp parallel for schedule(static) if (rows * inputs * outputs > WORTH)
    for (long group = 0; group < groups; group++) {
        const long first = 4 * group, last = first + 4 < panels ? first + 4 : panels;
        if (rows == 1 && last - first == 4) {
            NAMED(tile)(1, 4, inputs, x, x_stride, weights + first * deep, y + first * PANEL, y_stride,
                        outputs - first * PANEL);
            continue;
        }
        for (long panel = first; panel < last; panel++)
            NAMED(column)(rows, inputs, x, x_stride, weights + panel * deep, y + panel * PANEL, y_stride,
                          outputs - panel * PANEL);
    }
}

static inline REAL NAMED(dot)(const REAL *a, const REAL *b, long size) {
    NAMED(lanes) sums = {0};
    long j = 0;
    for (; j + LANES <= size; j += LANES) sums += *(const NAMED(lanes) *)(a + j) * *(const NAMED(lanes) *)(b + j);
    REAL sum = 0;
    for (; j < size; j++) sum += a[j] * b[j];
    for (long lane = 0; lane < LANES; lane++) sum += sums[lane];
    return sum;
}

/* Scores become weights that sum to 1; what is not valid gets none, and where nothing is valid all get none. */
static inline void NAMED(weigh)(REAL *scores, const unsigned char *valid, long length) {
    REAL most = -(REAL)INFINITY, sum = 0;
    for (long t = 0; t < length; t++)
        if (!valid || valid[t]) most = scores[t] > most ? scores[t] : most;
    for (long t = 0; t < length; t++) scores[t] = NAMED(exponential)(scores[t] - most);
    if (valid)
        for (long t = 0; t < length; t++) scores[t] = valid[t] ? scores[t] : 0;
    for (long t = 0; t < length; t++) sum += scores[t];
    REAL share = sum > 0 ? 1 / sum : 0;
    for (long t = 0; t < length; t++) scores[t] *= share;
}

/* Each row looks with `heads` heads at the steps from `first` up to `length` of its source; `per` rows share one.
   A step holds the keys of all heads, then their values. If there is something `fresh`, it becomes the last step. */
void NAMED(attend)(long rows, long per, long heads, long width, long value_width, const REAL *query, long query_stride,
                   REAL *steps, long source_stride, long first, long length, const unsigned char *valid,
                   long valid_stride, const REAL *fresh, REAL *y) {
    const long size = heads * (width + value_width), seen = length - first;
    const REAL scale = 1 / (REAL)sqrt((double)width);
#pragma omp parallel for schedule(static) if (rows * seen * size > WORTH)
    for (long row = 0; row < rows; row++) {
        REAL *source = steps + row / per * source_stride;
        const unsigned char *shown = valid ? valid + row / per * valid_stride + first : 0;
        if (fresh) memcpy(source + (length - 1) * size, fresh + row * query_stride, size * sizeof(REAL));
        source += first * size;
        REAL weights[seen];
        for (long head = 0; head < heads; head++) {
            const REAL *asked = query + row * query_stride + head * width, *keys = source + head * width;
            const REAL *values = source + heads * width + head * value_width;
            REAL *out = y + (row * heads + head) * value_width;
            for (long t = 0; t < seen; t++) weights[t] = scale * NAMED(dot)(asked, keys + t * size, width);
            NAMED(weigh)(weights, shown, seen);
            for (long j = 0; j < value_width; j++) out[j] = 0;
            for (long t = 0; t < seen; t++)
                for (long j = 0; j < value_width; j++) out[j] += weights[t] * values[t * size + j];
        }
    }
}

/* Additive attention, w · tanh(k + q): each row looks at the `length` keys and values of its source. */
void NAMED(look)(long rows, long per, long length, long size, long value_size, const REAL *query, const REAL *keys,
                 const REAL *values, const unsigned char *valid, const REAL *judge, REAL *y) {
#pragma omp parallel for schedule(static) if (rows * length * size > WORTH)
    for (long row = 0; row < rows; row++) {
        const REAL *asked = query + row * size, *key = keys + row / per * length * size;
        const REAL *value = values + row / per * length * value_size;
        REAL *out = y + row * value_size;
        REAL weights[length], bent[size];
        for (long t = 0; t < length; t++) {
            for (long j = 0; j < size; j++) bent[j] = NAMED(tangent)(key[t * size + j] + asked[j]);
            weights[t] = NAMED(dot)(bent, judge, size);
        }
        NAMED(weigh)(weights, valid + row / per * length, length);
        for (long j = 0; j < value_size; j++) out[j] = 0;
        for (long t = 0; t < length; t++)
            for (long j = 0; j < value_size; j++) out[j] += weights[t] * value[t * value_size + j];
    }
}

/* x Φ(x) in place, Φ being the normal distribution's. In single precision by a fraction that is right to 1.5e-7
   (Abramowitz and Stegun, 7.1.26). */
void NAMED(gelu)(long count, REAL *x) {
    for (long j = 0; j < count; j++) {
        REAL z = x[j] * (REAL)0.70710678118654752440, positive = z < 0 ? -z : z, rest;
        if (sizeof(REAL) == 8)
            rest = (REAL)erfc((double)positive);
        else {
            REAL t = 1 / (1 + (REAL)0.3275911 * positive);
            rest = (REAL)1.061405429 * t - (REAL)1.453152027;
            rest = (rest * t + (REAL)1.421413741) * t - (REAL)0.284496736;
            rest = (rest * t + (REAL)0.254829592) * t * NAMED(exponential)(-positive * positive);
        }
        x[j] *= (z < 0 ? rest : 2 - rest) / 2;
    }
}

/* y = norm(x + change); centred for a layer norm, not for a root mean square norm. */
void NAMED(add_norm)(long rows, long size, const REAL *x, const REAL *change, const REAL *scale, const REAL *shift,
                     long centred, double epsilon, REAL *y) {
    for (long row = 0; row < rows; row++, x += size, change += size, y += size) {
        NAMED(lanes) sums = {0}, squares = {0};
        REAL sum = 0, square = 0;
        for (long j = 0; j < size; j++) y[j] = x[j] + change[j];
        long even = size / LANES * LANES;
        for (long j = 0; j < even; j += LANES) sums += *(NAMED(lanes) *)(y + j);
        for (long lane = 0; lane < LANES; lane++) sum += sums[lane];
        for (long j = even; j < size; j++) sum += y[j];
        REAL mean = centred ? sum / size : 0;
        for (long j = 0; j < even; j += LANES) {
            NAMED(lanes) gap = *(NAMED(lanes) *)(y + j) - mean;
            squares += gap * gap;
        }
        for (long lane = 0; lane < LANES; lane++) square += squares[lane];
        for (long j = even; j < size; j++) square += (y[j] - mean) * (y[j] - mean);
        REAL share = 1 / (REAL)sqrt((double)(square / size) + epsilon);
        for (long j = 0; j < size; j++) y[j] = (y[j] - mean) * share * scale[j] + shift[j];
    }
}

/* gates holds W x + b of i, f, g, o, and more of it U h. */
void NAMED(lstm_step)(long rows, long size, NAMED(in) gates, NAMED(in) more, NAMED(in) before, NAMED(out) after,
                      NAMED(out) h) {
#pragma omp parallel for schedule(static) if (rows * size > WORTH / 10)
    for (long row = 0; row < rows; row++) {
        NAMED(in) a = gates + row * 4 * size, b = more + row * 4 * size;
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
#pragma omp parallel for schedule(static) if (rows * size > WORTH / 10)
    for (long row = 0; row < rows; row++) {
        NAMED(in) a = gates + row * 3 * size, b = more + row * 3 * size;
        for (long j = 0; j < size; j++) {
            REAL reset = NAMED(sigmoid)(a[j] + b[j]);
            REAL update = NAMED(sigmoid)(a[size + j] + b[size + j]);
            REAL candidate = NAMED(tangent)(a[2 * size + j] + reset * b[2 * size + j]);
            h[row * size + j] = candidate + update * (before[row * size + j] - candidate);
        }
    }
}

/* Of each row of logits the `count` largest, as log-probabilities, the largest first; of equal ones the first. */
void NAMED(leading)(long rows, long size, long count, const REAL *logits, REAL *values, int64_t *tokens) {
#pragma omp parallel for schedule(static) if (rows * size > WORTH)
    for (long row = 0; row < rows; row++) {
        const REAL *x = logits + row * size;
        REAL *best = values + row * count, part[16 * PANEL], sum = 0;
        int64_t *which = tokens + row * count;
        for (long place = 0; place < count; place++) best[place] = -(REAL)INFINITY, which[place] = 0;
        for (long start = 0; start < size; start += PANEL) {
            const long stop = start + PANEL < size ? start + PANEL : size;
            long any = stop - start < PANEL;
            if (!any)
                for (long j = start; j < stop; j++) any |= x[j] > best[count - 1];
            if (!any) continue;
            for (long j = start; j < stop; j++) {
                if (!(x[j] > best[count - 1])) continue;
                long place = count - 1;
                for (; place > 0 && x[j] > best[place - 1]; place--)
                    best[place] = best[place - 1], which[place] = which[place - 1];
                best[place] = x[j], which[place] = j;
            }
        }
        NAMED(lanes) sums = {0};
        for (long start = 0; start < size; start += 16 * PANEL) {
            const long length = start + 16 * PANEL < size ? 16 * PANEL : size - start, even = length / LANES * LANES;
            for (long j = 0; j < length; j++) part[j] = NAMED(exponential)(x[start + j] - best[0]);
            for (long j = 0; j < even; j += LANES) sums += *(NAMED(lanes) *)(part + j);
            for (long j = even; j < length; j++) sum += part[j];
        }
        for (long lane = 0; lane < LANES; lane++) sum += sums[lane];
        const REAL total = best[0] + (REAL)log((double)sum);
        for (long place = 0; place < count; place++) best[place] -= total;
    }
}

#undef LANES
#undef PANEL
#undef WORTH
