/* What queries see of keys and values: by products (`attend`) and by additive scores (`look`).

   However long a source is, it is read in blocks: a block's weights fit into the stack, and what was seen before is
   scaled down when a later block has a larger score. */

#define BLOCK 512   /* steps */
#define FEW 8       /* steps that all heads look at before the next ones */
#define TOGETHER 16 /* heads whose weights of a block fit into the stack */

/* How well a vector agrees with each of `count` others; four at a time, as one waits for its sums. */
static inline void NAMED(dots)(const REAL *a, const REAL *const *vectors, long from, long count, long size, REAL scale,
                               REAL *y) {
    long t = 0;
    for (; t + 4 <= count; t += 4) {
        NAMED(lanes) sums[4] = {{0}};
        long j = 0;
        for (; j + LANES <= size; j += LANES) {
            const NAMED(lanes) some = *(const NAMED(lanes) *)(a + j);
            for (long n = 0; n < 4; n++) sums[n] += some * *(const NAMED(lanes) *)(vectors[t + n] + from + j);
        }
        for (long n = 0; n < 4; n++) {
            REAL sum = NAMED(total)(sums[n]);
            for (long rest = j; rest < size; rest++) sum += a[rest] * vectors[t + n][from + rest];
            y[t + n] = scale * sum;
        }
    }
    for (; t < count; t++) y[t] = scale * NAMED(dot)(a, vectors[t] + from, size);
}

/* y (size) = share · y + the sum of `count` vectors, each times its weight; a share of 0 does not read y. What stands
   side by side in memory is read together; two sums at a time, as one waits for itself. */
static inline void NAMED(mix)(const REAL *weights, const REAL *const *vectors, long from, long count, long size,
                              REAL share, REAL *y) {
    long j = 0;
    for (; j + 4 * LANES <= size; j += 4 * LANES) {
        NAMED(lanes) sums[4] = {{0}};
        for (long n = 0; share && n < 4; n++) sums[n] = *(const NAMED(lanes) *)(y + j + n * LANES) * share;
        for (long t = 0; t < count; t++)
            for (long n = 0; n < 4; n++)
                sums[n] += *(const NAMED(lanes) *)(vectors[t] + from + j + n * LANES) * weights[t];
        memcpy(y + j, sums, sizeof sums);
    }
    for (; j + LANES <= size; j += LANES) {
        NAMED(lanes) sum = {0}, other = {0};
        if (share) sum = *(const NAMED(lanes) *)(y + j) * share;
        long t = 0;
        for (; t + 2 <= count; t += 2) {
            sum += *(const NAMED(lanes) *)(vectors[t] + from + j) * weights[t];
            other += *(const NAMED(lanes) *)(vectors[t + 1] + from + j) * weights[t + 1];
        }
        if (t < count) sum += *(const NAMED(lanes) *)(vectors[t] + from + j) * weights[t];
        *(NAMED(lanes) *)(y + j) = sum + other;
    }
    for (; j < size; j++) {
        REAL sum = share ? y[j] * share : 0;
        for (long t = 0; t < count; t++) sum += weights[t] * vectors[t][from + j];
        y[j] = sum;
    }
}

typedef struct {
    REAL most, sum; /* the largest score so far, and the sum of all weights relative to it */
} NAMED(softmax);

/* A block's scores become weights relative to the largest score so far; what is not valid gets none. The result is by
   how much what was seen before has to be scaled. There is room for whole vectors of scores. */
static inline REAL NAMED(weigh)(NAMED(softmax) *so_far, REAL *scores, const unsigned char *valid, long count) {
    const long whole = (count + LANES - 1) / LANES * LANES;
    if (valid)
        for (long t = 0; t < count; t++) scores[t] = valid[t] ? scores[t] : -(REAL)INFINITY;
    for (long t = count; t < whole; t++) scores[t] = -(REAL)INFINITY;
    REAL highest[LANES], most = so_far->most;
    memcpy(highest, scores, sizeof highest);
    for (long t = LANES; t < whole; t += LANES)
        for (long lane = 0; lane < LANES; lane++)
            highest[lane] = scores[t + lane] > highest[lane] ? scores[t + lane] : highest[lane];
    for (long lane = 0; lane < LANES; lane++) most = highest[lane] > most ? highest[lane] : most;
    const REAL base = most == -(REAL)INFINITY ? 0 : most;
    NAMED(lanes) sums = {0};
    for (long t = 0; t < whole; t += LANES) {
        for (long lane = 0; lane < LANES; lane++) scores[t + lane] = NAMED(exponential)(scores[t + lane] - base);
        sums += *(const NAMED(lanes) *)(scores + t);
    }
    const REAL share = so_far->sum > 0 ? NAMED(exponential)(so_far->most - base) : 0;
    so_far->most = most, so_far->sum = so_far->sum * share + NAMED(total)(sums);
    return share;
}

/* Weights sum to 1; where nothing is valid, nothing is seen. */
static inline void NAMED(finish)(const NAMED(softmax) *all, long size, REAL *y) {
    const REAL share = all->sum == 0 ? 0 : 1 / all->sum;
    for (long j = 0; j < size; j++) y[j] *= share;
}

/* Who looks at what. `per` rows share a source, which is the one of that number, or the one that `sources` names. Where
   rows have gone on from one another, `origin` says for each row and step which row holds it. */
typedef struct {
    long rows, per;
    const int32_t *sources;
    int32_t *origin;
    long origin_stride;
} NAMED(lines);

/* Each row looks with `heads` heads at the steps from `first` up to `length` of its source.
   A step holds the keys of all heads, then their values; the next one is `stride` further. If there is something
   `fresh`, it becomes the last step of the row's own. */
static void NAMED(attend_lines)(const NAMED(lines) *lines, long heads, long width, long value_width, const REAL *query,
                                long query_stride, REAL *steps, long stride, long source_stride, long first,
                                long length, const unsigned char *valid, long valid_stride, const REAL *fresh,
                                REAL *y) {
    const long rows = lines->rows, size = heads * (width + value_width);
    const REAL scale = 1 / (REAL)sqrt((double)width);
    const int32_t *origin = fresh ? lines->origin : 0;
    for (long row = 0; fresh && row < rows; row++)
        memcpy(steps + row / (origin ? 1 : lines->per) * source_stride + (length - 1) * stride,
               fresh + row * query_stride, size * sizeof(REAL));
    const long most = NAMED(threads) && rows <= 3 ? omp_get_max_threads() : 1; /* few rows are shared out by heads */
    const long least = (heads + TOGETHER - 1) / TOGETHER, shared = most < heads ? most : heads;
    const long parts = shared > least ? shared : least;
#pragma omp parallel for schedule(static) collapse(2) if (NAMED(threads) && rows * (length - first) * size > WORTH)
    for (long row = 0; row < rows; row++)
    for (long part = 0; part < parts; part++) {
        const long lowest = part * heads / parts, above = (part + 1) * heads / parts;
        const long place = row / lines->per, source = lines->sources ? lines->sources[place] : place;
        const unsigned char *marks = valid ? valid + source * valid_stride : 0;
        NAMED(softmax) all[heads];
        for (long head = lowest; head < above; head++) all[head] = (NAMED(softmax)){-(REAL)INFINITY, 0};
        if (first >= length)
            memset(y + (row * heads + lowest) * value_width, 0, (above - lowest) * value_width * sizeof(REAL));
        for (long start = first; start < length; start += BLOCK) {
            const long count = length - start < BLOCK ? length - start : BLOCK;
            const REAL *found[BLOCK];
            for (long t = 0; t < count; t++)
                found[t] = steps + (origin ? origin[row * lines->origin_stride + start + t] : source) * source_stride +
                           (start + t) * stride;
            REAL weights[TOGETHER][BLOCK], share[TOGETHER];
            for (long t = 0; t < count; t += FEW) /* all heads of a few steps: they stand side by side in memory */
                for (long head = lowest; head < above; head++)
                    NAMED(dots)(query + row * query_stride + head * width, found + t, head * width,
                                count - t < FEW ? count - t : FEW, width, scale, weights[head - lowest] + t);
            for (long head = lowest; head < above; head++)
                share[head - lowest] =
                    NAMED(weigh)(all + head, weights[head - lowest], marks ? marks + start : 0, count);
            for (long t = 0; t < count; t += FEW)
                for (long head = lowest; head < above; head++)
                    NAMED(mix)(weights[head - lowest] + t, found + t, heads * width + head * value_width,
                               count - t < FEW ? count - t : FEW, value_width, t ? 1 : share[head - lowest],
                               y + (row * heads + head) * value_width);
        }
        for (long head = lowest; head < above; head++)
            NAMED(finish)(all + head, value_width, y + (row * heads + head) * value_width);
    }
}

void NAMED(attend)(long rows, long per, long heads, long width, long value_width, const REAL *query, long query_stride,
                   REAL *steps, long stride, long source_stride, long first, long length, const unsigned char *valid,
                   long valid_stride, const REAL *fresh, REAL *y) {
    const NAMED(lines) lines = {rows, per, 0, 0, 0};
    NAMED(attend_lines)(&lines, heads, width, value_width, query, query_stride, steps, stride, source_stride, first,
                        length, valid, valid_stride, fresh, y);
}

/* Additive attention, w · tanh(k + q): each row looks at the `length` keys and values of its source. */
void NAMED(look)(long rows, long per, long length, long size, long value_size, const REAL *query, const REAL *keys,
                 const REAL *values, const unsigned char *valid, const REAL *judge, REAL *y) {
#pragma omp parallel for schedule(static) if (NAMED(threads) && rows * length * size > WORTH)
    for (long row = 0; row < rows; row++) {
        const REAL *asked = query + row * size;
        REAL weights[BLOCK], bent[BLOCK], *out = y + row * value_size;
        const REAL *seen[BLOCK];
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
            for (long t = 0; t < count; t++) seen[t] = values + (place + t) * value_size;
            NAMED(mix)(weights, seen, 0, count, value_size, share, out);
        }
        if (!length) memset(out, 0, value_size * sizeof(REAL));
        NAMED(finish)(&all, value_size, out);
    }
}

#undef BLOCK
#undef FEW
#undef TOGETHER
