/* The rest of a Transformer's layers, a stack of them in one call, and the likeliest tokens. */

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

/* Of each row of logits the `count` largest, as log-probabilities, the largest first; of equal ones the first. */
void NAMED(leading)(long rows, long size, long count, const REAL *logits, REAL *values, int64_t *tokens) {
#pragma omp parallel for schedule(static) if (NAMED(threads) && rows * size > WORTH)
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
    const int32_t *totals;    /* of bytes */
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

static void NAMED(apply)(const NAMED(linear) *linear, long rows, const REAL *x, REAL *room, REAL *y) {
    if (linear->scale)
        NAMED(int8_product)(rows, linear->inputs, linear->outputs, x, linear->inputs, linear->weights, linear->scale,
                            linear->bias, linear->totals, room, y, linear->outputs);
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

/* x (rows, size) becomes what the layers make of it; `wide` and `other` have place for the widest
   thing in between, `room` for what a product of bytes needs. */
void NAMED(run)(long count, const NAMED(layer) *layers, long rows, long size, REAL *x, REAL *wide, REAL *other,
                REAL *normal, REAL *room) {
    for (const NAMED(layer) *one = layers; one < layers + count; one++) {
        const REAL *in = x;
        REAL *change = wide;
        if (one->join == NAMED(PRE)) {
            NAMED(add_norm)(rows, size, x, 0, one->norm_scale, one->norm_shift, one->centered, one->epsilon, normal);
            in = normal;
        }
        NAMED(apply)(&one->into, rows, in, room, wide);
        if (one->kind == NAMED(EACH)) {
            NAMED(bend)(one->act, rows, one->into.outputs, wide, other);
            change = one->act == NAMED(SWIGLU) ? wide : other;
            NAMED(apply)(&one->out, rows, change == wide ? other : wide, room, change);
        } else {
            if (one->sines) NAMED(turn)(one, rows, wide);
            REAL *beside = wide + one->heads * one->width; /* keys and values stand beside the queries */
            const long whole = one->kind == NAMED(WHOLE), outputs = one->into.outputs;
            NAMED(attend)(rows, one->per, one->heads, one->width, one->value_width, wide, outputs,
                          whole ? beside : one->steps, whole ? outputs : one->heads * (one->width + one->value_width),
                          whole ? one->per * outputs : one->source_stride, one->first, one->length, one->valid,
                          one->valid_stride, one->kind == NAMED(OWN) ? beside : 0, other);
            NAMED(apply)(&one->out, rows, other, room, wide);
        }
        if (one->join == NAMED(POST))
            NAMED(add_norm)(rows, size, x, change, one->norm_scale, one->norm_shift, one->centered, one->epsilon, x);
        else {
            const REAL share = one->join == NAMED(REZERO) ? *one->share : 1;
            for (long j = 0; j < rows * size; j++) x[j] += share * change[j];
        }
    }
}
