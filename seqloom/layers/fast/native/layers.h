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

/* The logarithm of the sum of the exponentials of a row, and its largest number. */
static inline REAL NAMED(log_sum)(long size, const REAL *x) {
    REAL highest[PANEL], most = -(REAL)INFINITY, part[PANEL], sum = 0;
    for (long lane = 0; lane < PANEL; lane++) highest[lane] = -(REAL)INFINITY;
    long even = size / PANEL * PANEL;
    for (long start = 0; start < even; start += PANEL)
        for (long lane = 0; lane < PANEL; lane++)
            highest[lane] = x[start + lane] > highest[lane] ? x[start + lane] : highest[lane];
    for (long lane = 0; lane < PANEL; lane++) most = highest[lane] > most ? highest[lane] : most;
    for (long j = even; j < size; j++) most = x[j] > most ? x[j] : most;
    if (most == -(REAL)INFINITY) most = 0;
    NAMED(lanes) sums = {0}, others = {0};
    for (long start = 0; start < even; start += PANEL) {
        for (long lane = 0; lane < PANEL; lane++) part[lane] = NAMED(exponential)(x[start + lane] - most);
        sums += *(NAMED(lanes) *)part, others += *(NAMED(lanes) *)(part + LANES);
    }
    for (long j = even; j < size; j++) sum += NAMED(exponential)(x[j] - most);
    return most + (REAL)log((double)(sum + NAMED(total)(sums + others)));
}

/* Of each row of logits the `count` largest, as log-probabilities, the largest first; of equal ones the first. Those
   that are `banned` are none of them, and lose their logits. */
static void NAMED(leading_but)(long rows, long size, long count, REAL *logits, long banned_count, const int64_t *banned,
                               REAL *values, int64_t *tokens) {
#pragma omp parallel for schedule(static) if (NAMED(threads) && rows * size > WORTH)
    for (long row = 0; row < rows; row++) {
        REAL *x = logits + row * size, *best = values + row * count;
        int64_t *which = tokens + row * count;
        const REAL total = NAMED(log_sum)(size, x);
        for (long n = 0; n < banned_count; n++) x[banned[n]] = -(REAL)INFINITY;
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
        for (long place = 0; place < count; place++) best[place] -= total;
    }
}

void NAMED(leading)(long rows, long size, long count, REAL *logits, REAL *values, int64_t *tokens) {
    NAMED(leading_but)(rows, size, count, logits, 0, 0, values, tokens);
}

/* --- a stack of a Transformer's layers in one call: see native_stack.py, which fills these in --- */

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
    long source_stride, first, length, valid_stride, per, window;
    const unsigned char *valid;
    REAL *cells; /* beside the h of a cell, which stand in `steps`: its c, if it has any; both (rows, size) */
    const REAL *sines, *cosines; /* (rows, width / 2): by how much queries and keys are turned; none: they are not */
} NAMED(layer);

/* What a layer does; whole: look at all rows at once; norm: nothing but its norm; the rest are cells. */
enum { NAMED(OWN), NAMED(MEMORY), NAMED(EACH), NAMED(WHOLE), NAMED(NORM), NAMED(LSTM), NAMED(GRU) };
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

/* One step of a cell: x becomes its h, as wide as the cell is; the entries go on in place. */
static void NAMED(step_cell)(const NAMED(layer) *one, long rows, REAL *x, REAL *wide, REAL *other, REAL *normal,
                             REAL *room) {
    const long size = one->out.inputs;
    NAMED(apply)(&one->into, rows, x, room, wide);
    NAMED(apply)(&one->out, rows, one->steps, room, other);
    if (one->kind == NAMED(LSTM)) {
        NAMED(lstm_step)(rows, size, wide, other, one->cells, normal, x);
        memcpy(one->cells, normal, rows * size * sizeof(REAL));
    } else
        NAMED(gru_step)(rows, size, wide, other, one->steps, x);
    memcpy(one->steps, x, rows * size * sizeof(REAL));
}

/* x (rows, size) becomes what the layers make of it; `wide` and `other` have place for the widest
   thing in between, `room` for what a product of bytes needs. `per` of the lines counts where a layer has none. */
static void NAMED(run_lines)(long count, const NAMED(layer) *layers, const NAMED(lines) *all, long size, REAL *x,
                             REAL *wide, REAL *other, REAL *normal, REAL *room) {
    const long rows = all->rows;
    for (const NAMED(layer) *one = layers; one < layers + count; one++) {
        const REAL *in = x;
        REAL *change = wide;
        if (one->kind == NAMED(NORM)) {
            NAMED(add_norm)(rows, size, x, 0, one->norm_scale, one->norm_shift, one->centered, one->epsilon, x);
            continue;
        }
        if (one->kind == NAMED(LSTM) || one->kind == NAMED(GRU)) {
            NAMED(step_cell)(one, rows, x, wide, other, normal, room);
            size = one->out.inputs;
            continue;
        }
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
            NAMED(lines) lines = *all;
            if (one->per) lines.per = one->per;
            REAL *beside = wide + one->heads * one->width; /* keys and values stand beside the queries */
            const long whole = one->kind == NAMED(WHOLE), outputs = one->into.outputs;
            NAMED(attend_lines)(&lines, one->heads, one->width, one->value_width, wide, outputs,
                                whole ? beside : one->steps,
                                whole ? outputs : one->heads * (one->width + one->value_width),
                                whole ? lines.per * outputs : one->source_stride, one->first, one->length, one->valid,
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

void NAMED(run)(long count, const NAMED(layer) *layers, long rows, long size, REAL *x, REAL *wide, REAL *other,
                REAL *normal, REAL *room) {
    const NAMED(lines) lines = {rows, 1, 0, 0, 0};
    NAMED(run_lines)(count, layers, &lines, size, x, wide, other, normal, room);
}
