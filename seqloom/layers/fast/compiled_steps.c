/* What one step of a decoder is made of, when it writes: read by compiled.c, once for each kind of number.

   A step has few rows, so a library for large matrix products spends most of its time on preparing them. Here weights
   are laid out beforehand, in panels of PANEL outputs: for each panel its PANEL biases, then for each input the PANEL
   weights that belong to it. Rows stand `stride` numbers apart. Threads are those of PyTorch. */

#define LANES (32 / (long)sizeof(REAL))
#define PANEL (2 * LANES)
#define WORTH 40000 /* from how many multiplications a second thread pays */

typedef REAL NAMED(lanes) __attribute__((vector_size(32), aligned(sizeof(REAL)), may_alias));

typedef signed char NAMED(bytes) __attribute__((vector_size(32 / sizeof(REAL)), aligned(1), may_alias));
typedef int32_t NAMED(whole) __attribute__((vector_size(4 * 32 / sizeof(REAL))));

/* Weights are numbers, or bytes that are to be multiplied with a scale for each output. */
typedef struct {
    const REAL *numbers;
    const signed char *bytes;
    const REAL *scale, *bias; /* of the bytes */
} NAMED(weights);

static inline __attribute__((always_inline)) NAMED(lanes) NAMED(load)(const long rounded, NAMED(weights) w, long at) {
    if (!rounded) return *(const NAMED(lanes) *)(w.numbers + at);
#if DIGITS == 23 && defined(__AVX2__) /* which compilers do not find by themselves */
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
#pragma omp parallel for schedule(static) if (rows * inputs * outputs > WORTH)
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

static inline REAL NAMED(total)(NAMED(lanes) sums) {
    REAL part[LANES];
    memcpy(part, &sums, sizeof part);
    for (long half = LANES / 2; half; half /= 2)
        for (long lane = 0; lane < half; lane++) part[lane] += part[lane + half];
    return part[0];
}

static inline REAL NAMED(dot)(const REAL *a, const REAL *b, long size) {
    NAMED(lanes) sums = {0};
    long j = 0;
    for (; j + LANES <= size; j += LANES) sums += *(const NAMED(lanes) *)(a + j) * *(const NAMED(lanes) *)(b + j);
    REAL sum = NAMED(total)(sums);
    for (; j < size; j++) sum += a[j] * b[j];
    return sum;
}

/* How well a vector agrees with each of `count` that stand `stride` apart; four at a time, as one waits for its sums. */
static inline void NAMED(dots)(const REAL *a, const REAL *vectors, long count, long stride, long size, REAL scale,
                               REAL *y) {
    long t = 0;
    for (; t + 4 <= count; t += 4) {
        const REAL *b = vectors + t * stride;
        NAMED(lanes) sums[4] = {{0}};
        long j = 0;
        for (; j + LANES <= size; j += LANES) {
            const NAMED(lanes) some = *(const NAMED(lanes) *)(a + j);
            for (long n = 0; n < 4; n++) sums[n] += some * *(const NAMED(lanes) *)(b + n * stride + j);
        }
        for (long n = 0; n < 4; n++) {
            REAL sum = NAMED(total)(sums[n]);
            for (long rest = j; rest < size; rest++) sum += a[rest] * b[n * stride + rest];
            y[t + n] = scale * sum;
        }
    }
    for (; t < count; t++) y[t] = scale * NAMED(dot)(a, vectors + t * stride, size);
}

/* y (size) = the sum of `count` vectors that stand `stride` apart, each times its weight. What stands side by side in
   memory is read together. */
static inline void NAMED(mix)(const REAL *weights, const REAL *vectors, long count, long stride, long size, REAL *y) {
    long j = 0;
    for (; j + 8 * LANES <= size; j += 8 * LANES) {
        NAMED(lanes) sums[8] = {{0}};
        for (long t = 0; t < count; t++)
            for (long n = 0; n < 8; n++)
                sums[n] += *(const NAMED(lanes) *)(vectors + t * stride + j + n * LANES) * weights[t];
        memcpy(y + j, sums, sizeof sums);
    }
    for (; j + LANES <= size; j += LANES) {
        NAMED(lanes) sum = {0};
        for (long t = 0; t < count; t++) sum += *(const NAMED(lanes) *)(vectors + t * stride + j) * weights[t];
        *(NAMED(lanes) *)(y + j) = sum;
    }
    for (; j < size; j++) {
        REAL sum = 0;
        for (long t = 0; t < count; t++) sum += weights[t] * vectors[t * stride + j];
        y[j] = sum;
    }
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
   A step holds the keys of all heads, then their values; the next one is `stride` further. If there is something
   `fresh`, it becomes the last step. */
void NAMED(attend)(long rows, long per, long heads, long width, long value_width, const REAL *query, long query_stride,
                   REAL *steps, long stride, long source_stride, long first, long length, const unsigned char *valid,
                   long valid_stride, const REAL *fresh, REAL *y) {
    const long size = heads * (width + value_width), seen = length - first;
    const REAL scale = 1 / (REAL)sqrt((double)width);
    for (long row = 0; fresh && row < rows; row++)
        memcpy(steps + row / per * source_stride + (length - 1) * stride, fresh + row * query_stride,
               size * sizeof(REAL));
#pragma omp parallel for schedule(static) collapse(2) if (rows * seen * size > WORTH)
    for (long row = 0; row < rows; row++)
        for (long head = 0; head < heads; head++) {
            const REAL *source = steps + row / per * source_stride + first * stride;
            const REAL *values = source + heads * width + head * value_width;
            REAL weights[seen];
            NAMED(dots)(query + row * query_stride + head * width, source + head * width, seen, stride, width, scale,
                        weights);
            NAMED(weigh)(weights, valid ? valid + row / per * valid_stride + first : 0, seen);
            NAMED(mix)(weights, values, seen, stride, value_width, y + (row * heads + head) * value_width);
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
        NAMED(mix)(weights, value, length, value_size, value_size, out);
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

/* y = norm(x + change), or of x alone; centered for a layer norm, not for a root mean square norm. */
void NAMED(add_norm)(long rows, long size, const REAL *x, const REAL *change, const REAL *scale, const REAL *shift,
                     long centered, double epsilon, REAL *y) {
    for (long row = 0; row < rows; row++, x += size, y += size) {
        NAMED(lanes) sums = {0}, squares = {0};
        REAL sum = 0, square = 0;
        for (long j = 0; j < size; j++) y[j] = x[j] + (change ? change[row * size + j] : 0);
        long even = size / LANES * LANES;
        for (long j = 0; j < even; j += LANES) sums += *(NAMED(lanes) *)(y + j);
        sum = NAMED(total)(sums);
        for (long j = even; j < size; j++) sum += y[j];
        REAL mean = centered ? sum / size : 0;
        for (long j = 0; j < even; j += LANES) {
            NAMED(lanes) gap = *(NAMED(lanes) *)(y + j) - mean;
            squares += gap * gap;
        }
        square = NAMED(total)(squares);
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
#pragma omp parallel for schedule(static) if (rows * size > WORTH / 10)
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
        sum += NAMED(total)(sums);
        const REAL total = best[0] + (REAL)log((double)sum);
        for (long place = 0; place < count; place++) best[place] -= total;
    }
}

/* --- a stack of a Transformer's layers in one call: see compiled_stack.py, which fills these in --- */

typedef struct {
    const void *weights;
    const REAL *scale, *bias; /* of bytes; none: the weights are numbers */
    long inputs, outputs;
} NAMED(linear);

typedef struct {
    long kind, join, act;
    NAMED(linear) into, out;
    const REAL *norm_scale, *norm_shift, *share;
    long centered;
    double epsilon;
    long heads, width, value_width;
    REAL *steps; /* from here on, what changes from step to step */
    long source_stride, first, length, valid_stride, per;
    const unsigned char *valid;
    const REAL *sines, *cosines; /* (rows, width / 2): by how much queries and keys are turned; none: they are not */
} NAMED(layer);

enum { NAMED(OWN), NAMED(MEMORY), NAMED(EACH), NAMED(WHOLE) }; /* what a layer does; whole: look at all rows at once */
enum { NAMED(POST), NAMED(PRE), NAMED(REZERO) };          /* and how it joins what goes around it */
enum { NAMED(RELU), NAMED(GELU), NAMED(SWIGLU) };

static void NAMED(apply)(const NAMED(linear) *linear, long rows, const REAL *x, REAL *y) {
    if (linear->scale)
        NAMED(rounded_product)(rows, linear->inputs, linear->outputs, x, linear->inputs, linear->weights,
                               linear->scale, linear->bias, y, linear->outputs);
    else
        NAMED(product)(rows, linear->inputs, linear->outputs, x, linear->inputs, linear->weights, y, linear->outputs);
}

static void NAMED(bend)(long act, long rows, long size, REAL *x, REAL *y) {
    if (act == NAMED(GELU)) NAMED(gelu)(rows * size, x);
    if (act == NAMED(RELU))
        for (long j = 0; j < rows * size; j++) x[j] = x[j] > 0 ? x[j] : 0;
    if (act == NAMED(SWIGLU))
        for (long row = 0; row < rows; row++)
            for (long j = 0; j < size / 2; j++) {
                const REAL gate = x[row * size + j];
                y[row * size / 2 + j] = gate * NAMED(sigmoid)(gate) * x[row * size + size / 2 + j];
            }
}

/* Turn each pair of features of the queries and keys of all heads, which stand side by side. */
static void NAMED(turn)(const NAMED(layer) *one, long rows, REAL *x) {
    const long half = one->width / 2;
    for (long row = 0; row < rows; row++, x += one->into.outputs)
        for (long head = 0; head < 2 * one->heads; head++)
            for (long j = 0; j < half; j++) {
                REAL *pair = x + head * one->width + 2 * j;
                const REAL even = pair[0], odd = pair[1];
                const REAL sine = one->sines[row * half + j], cosine = one->cosines[row * half + j];
                pair[0] = even * cosine - odd * sine, pair[1] = even * sine + odd * cosine;
            }
}

/* x (rows, size) becomes what the layers make of it; `wide` and `other` have room for the widest thing in between. */
void NAMED(run)(long count, const NAMED(layer) *layers, long rows, long size, REAL *x, REAL *wide, REAL *other,
                REAL *normal) {
    for (const NAMED(layer) *one = layers; one < layers + count; one++) {
        const REAL *in = x;
        REAL *change = wide;
        if (one->join == NAMED(PRE)) {
            NAMED(add_norm)(rows, size, x, 0, one->norm_scale, one->norm_shift, one->centered, one->epsilon, normal);
            in = normal;
        }
        NAMED(apply)(&one->into, rows, in, wide);
        if (one->kind == NAMED(EACH)) {
            NAMED(bend)(one->act, rows, one->into.outputs, wide, other);
            change = one->act == NAMED(SWIGLU) ? wide : other;
            NAMED(apply)(&one->out, rows, change == wide ? other : wide, change);
        } else {
            if (one->sines) NAMED(turn)(one, rows, wide);
            REAL *beside = wide + one->heads * one->width; /* keys and values stand beside the queries */
            const long whole = one->kind == NAMED(WHOLE), outputs = one->into.outputs;
            NAMED(attend)(rows, one->per, one->heads, one->width, one->value_width, wide, outputs,
                          whole ? beside : one->steps, whole ? outputs : one->heads * (one->width + one->value_width),
                          whole ? one->per * outputs : one->source_stride, one->first, one->length, one->valid,
                          one->valid_stride, one->kind == NAMED(OWN) ? beside : 0, other);
            NAMED(apply)(&one->out, rows, other, wide);
        }
        if (one->join == NAMED(POST))
            NAMED(add_norm)(rows, size, x, change, one->norm_scale, one->norm_shift, one->centered, one->epsilon, x);
        else {
            const REAL share = one->join == NAMED(REZERO) ? *one->share : 1;
            for (long j = 0; j < rows * size; j++) x[j] += share * change[j];
        }
    }
}

#undef LANES
#undef PANEL
#undef WORTH
