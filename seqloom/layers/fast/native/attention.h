/* What queries see of keys and values: by products (`attend`) and by additive scores (`look`).

   However long a source is, it is read in blocks: a block's weights fit into the stack, and what was seen before is
   scaled down when a later block has a larger score. */

#define BLOCK 512

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

/* y (size) = share · y + the sum of `count` vectors that stand `stride` apart, each times its weight; a share of 0 does
   not read y. What stands side by side in memory is read together. */
static inline void NAMED(mix)(const REAL *weights, const REAL *vectors, long count, long stride, long size, REAL share,
                              REAL *y) {
    long j = 0;
    for (; j + 4 * LANES <= size; j += 4 * LANES) {
        NAMED(lanes) sums[4] = {{0}};
        for (long n = 0; share && n < 4; n++) sums[n] = *(const NAMED(lanes) *)(y + j + n * LANES) * share;
        for (long t = 0; t < count; t++)
            for (long n = 0; n < 4; n++)
                sums[n] += *(const NAMED(lanes) *)(vectors + t * stride + j + n * LANES) * weights[t];
        memcpy(y + j, sums, sizeof sums);
    }
    for (; j + LANES <= size; j += LANES) {
        NAMED(lanes) sum = {0};
        if (share) sum = *(const NAMED(lanes) *)(y + j) * share;
        for (long t = 0; t < count; t++) sum += *(const NAMED(lanes) *)(vectors + t * stride + j) * weights[t];
        *(NAMED(lanes) *)(y + j) = sum;
    }
    for (; j < size; j++) {
        REAL sum = share ? y[j] * share : 0;
        for (long t = 0; t < count; t++) sum += weights[t] * vectors[t * stride + j];
        y[j] = sum;
    }
}

typedef struct {
    REAL most, sum; /* the largest score so far, and the sum of all weights relative to it */
} NAMED(softmax);

/* A block's scores become weights relative to the largest score so far; what is not valid gets none. The result is by
   how much what was seen before has to be scaled. */
static inline REAL NAMED(weigh)(NAMED(softmax) *so_far, REAL *scores, const unsigned char *valid, long count) {
    REAL most = so_far->most, sum = 0;
    for (long t = 0; t < count; t++)
        if (!valid || valid[t]) most = scores[t] > most ? scores[t] : most;
    for (long t = 0; t < count; t++) scores[t] = NAMED(exponential)(scores[t] - most);
    if (valid)
        for (long t = 0; t < count; t++) scores[t] = valid[t] ? scores[t] : 0;
    for (long t = 0; t < count; t++) sum += scores[t];
    const REAL share = so_far->sum > 0 ? NAMED(exponential)(so_far->most - most) : 0;
    so_far->most = most, so_far->sum = so_far->sum * share + sum;
    return share;
}

/* Weights sum to 1; where nothing is valid, nothing is seen. */
static inline void NAMED(finish)(const NAMED(softmax) *all, long size, REAL *y) {
    const REAL share = all->sum == 0 ? 0 : 1 / all->sum;
    for (long j = 0; j < size; j++) y[j] *= share;
}

/* Each row looks with `heads` heads at the steps from `first` up to `length` of its source; `per` rows share one.
   A step holds the keys of all heads, then their values; the next one is `stride` further. If there is something
   `fresh`, it becomes the last step. */
void NAMED(attend)(long rows, long per, long heads, long width, long value_width, const REAL *query, long query_stride,
                   REAL *steps, long stride, long source_stride, long first, long length, const unsigned char *valid,
                   long valid_stride, const REAL *fresh, REAL *y) {
    const long size = heads * (width + value_width);
    const REAL scale = 1 / (REAL)sqrt((double)width);
    for (long row = 0; fresh && row < rows; row++)
        memcpy(steps + row / per * source_stride + (length - 1) * stride, fresh + row * query_stride,
               size * sizeof(REAL));
#pragma omp parallel for schedule(static) collapse(2) if (NAMED(threads) && rows * (length - first) * size > WORTH)
    for (long row = 0; row < rows; row++)
        for (long head = 0; head < heads; head++) {
            const unsigned char *marks = valid ? valid + row / per * valid_stride : 0;
            REAL weights[BLOCK], *out = y + (row * heads + head) * value_width;
            NAMED(softmax) all = {-(REAL)INFINITY, 0};
            for (long start = first; start < length; start += BLOCK) {
                const REAL *keys = steps + row / per * source_stride + start * stride;
                const long count = length - start < BLOCK ? length - start : BLOCK;
                NAMED(dots)(query + row * query_stride + head * width, keys + head * width, count, stride, width,
                            scale, weights);
                const REAL share = NAMED(weigh)(&all, weights, marks ? marks + start : 0, count);
                NAMED(mix)(weights, keys + heads * width + head * value_width, count, stride, value_width, share, out);
            }
            if (first >= length) memset(out, 0, value_width * sizeof(REAL));
            NAMED(finish)(&all, value_width, out);
        }
}

/* Additive attention, w · tanh(k + q): each row looks at the `length` keys and values of its source. */
void NAMED(look)(long rows, long per, long length, long size, long value_size, const REAL *query, const REAL *keys,
                 const REAL *values, const unsigned char *valid, const REAL *judge, REAL *y) {
#pragma omp parallel for schedule(static) if (NAMED(threads) && rows * length * size > WORTH)
    for (long row = 0; row < rows; row++) {
        const REAL *asked = query + row * size;
        REAL weights[BLOCK], bent[BLOCK], *out = y + row * value_size;
        NAMED(softmax) all = {-(REAL)INFINITY, 0};
        for (long start = 0; start < length; start += BLOCK) {
            const long place = row / per * length + start, count = length - start < BLOCK ? length - start : BLOCK;
            for (long t = 0; t < count; t++) {
                const REAL *key = keys + (place + t) * size;
                weights[t] = 0;
                for (long from = 0; from < size; from += BLOCK) {
                    const long width = size - from < BLOCK ? size - from : BLOCK;
                    for (long j = 0; j < width; j++) bent[j] = NAMED(tangent)(key[from + j] + asked[from + j]);
                    weights[t] += NAMED(dot)(bent, judge + from, width);
                }
            }
            const REAL share = NAMED(weigh)(&all, weights, valid + place, count);
            NAMED(mix)(weights, values + place * value_size, count, value_size, value_size, share, out);
        }
        if (!length) memset(out, 0, value_size * sizeof(REAL));
        NAMED(finish)(&all, value_size, out);
    }
}

#undef BLOCK
