/* One step of a whole decoder in one call: tokens in, the likeliest next ones out. See native_decoder.py, which fills
   this in.

   Rows that go on from one another do not copy what they have read: `lines.origin` says for each row and step which
   row has written it. A row writes its newest step where it stands now. */

typedef struct {
    long count, size, length;    /* layers, the width of what goes into them, steps read before this one */
    NAMED(layer) *layers;
    const REAL *table;           /* a vector for each token */
    double scale;                /* what it is multiplied by */
    const REAL *positions;       /* a vector for each position, which is added; none: nothing is */
    const REAL *rate;            /* how fast pairs of queries and keys turn with the position; none: they do not */
    long pairs;                  /* of a head */
    NAMED(linear) head;
    const int64_t *impossible, *banned; /* tokens without probability, and those that have one but are not wanted */
    long impossible_count, banned_count;
    NAMED(lines) lines;
    int64_t *places;             /* the position of each row, one more after each step */
    REAL *x, *wide, *other, *normal, *room, *sines, *cosines, *logits;
} NAMED(decoder);

static void NAMED(place_turns)(const NAMED(decoder) *decoder, long rows) {
    for (long row = 0; row < rows; row++)
        for (long j = 0; j < decoder->pairs; j++) {
            const long at = row * decoder->pairs + j;
            if (row && decoder->places[row] == decoder->places[row - 1]) { /* as almost always */
                decoder->sines[at] = decoder->sines[at - decoder->pairs];
                decoder->cosines[at] = decoder->cosines[at - decoder->pairs];
                continue;
            }
            const REAL angle = decoder->places[row] * decoder->rate[j];
            decoder->sines[at] = (REAL)sin((double)angle), decoder->cosines[at] = (REAL)cos((double)angle);
        }
}

/* Read the `last` token of each row; the log-probabilities of the `wanted` likeliest to come, and which they are. */
void NAMED(decode)(NAMED(decoder) *decoder, const int64_t *last, long wanted, REAL *values, int64_t *tokens) {
    const long rows = decoder->lines.rows, size = decoder->size, outputs = decoder->head.outputs;
    int32_t *origin = decoder->lines.origin;
    for (long row = 0; row < rows; row++) {
        const REAL *vector = decoder->table + last[row] * size;
        const REAL *more = decoder->positions ? decoder->positions + decoder->places[row] * size : 0;
        for (long j = 0; j < size; j++) {
            const REAL scaled = vector[j] * (REAL)decoder->scale;
            decoder->x[row * size + j] = more ? scaled + more[j] : scaled;
        }
        if (origin) origin[row * decoder->lines.origin_stride + decoder->length] = (int32_t)row;
    }
    if (decoder->rate) NAMED(place_turns)(decoder, rows);
    for (NAMED(layer) *one = decoder->layers; one < decoder->layers + decoder->count; one++)
        if (one->kind == NAMED(OWN)) {
            one->length = decoder->length + 1;
            one->first = one->window && one->length > one->window ? one->length - one->window : 0;
        }
    NAMED(run_lines)(decoder->count, decoder->layers, &decoder->lines, size, decoder->x, decoder->wide, decoder->other,
                     decoder->normal, decoder->room);
    NAMED(apply)(&decoder->head, rows, decoder->x, decoder->room, decoder->logits);
    for (long row = 0; row < rows; row++) {
        for (long n = 0; n < decoder->impossible_count; n++)
            decoder->logits[row * outputs + decoder->impossible[n]] = -(REAL)INFINITY;
        decoder->places[row]++;
    }
    NAMED(leading_but)(rows, outputs, wanted, decoder->logits, decoder->banned_count, decoder->banned, values, tokens);
    decoder->length++;
}

/* Of what a row has read, and where it stands, another one takes over. */
static void NAMED(move_row)(NAMED(decoder) *decoder, long from, long to) {
    const NAMED(lines) *lines = &decoder->lines;
    int32_t *origin = lines->origin, *sources = (int32_t *)lines->sources;
    memcpy(origin + to * lines->origin_stride, origin + from * lines->origin_stride,
           decoder->length * sizeof(int32_t));
    sources[to] = sources[from], decoder->places[to] = decoder->places[from];
    for (NAMED(layer) *one = decoder->layers; one < decoder->layers + decoder->count; one++) {
        const long size = one->out.inputs;
        if (one->kind == NAMED(LSTM) || one->kind == NAMED(GRU))
            memcpy(one->steps + to * size, one->steps + from * size, size * sizeof(REAL));
        if (one->kind == NAMED(LSTM)) memcpy(one->cells + to * size, one->cells + from * size, size * sizeof(REAL));
    }
}

/* Go on with the likeliest token for up to `steps` steps. A row leaves with the token `end`, or where nothing is
   likely. `names` says whose row each is; the tokens of that one stand in its line of `written`, `stride` wide, from
   `counts` on, and so do their log-probabilities. */
void NAMED(write)(NAMED(decoder) *decoder, int64_t *last, long steps, int64_t end, int32_t *names, int64_t *counts,
                  long stride, int64_t *written, REAL *logs, REAL *values, int64_t *tokens) {
    for (long step = 0; step < steps && decoder->lines.rows; step++) {
        NAMED(decode)(decoder, last, 1, values, tokens);
        long kept = 0;
        for (long row = 0; row < decoder->lines.rows; row++) {
            const long place = names[row] * stride + counts[names[row]]++;
            written[place] = tokens[row], logs[place] = values[row];
            if (tokens[row] == end || !(values[row] > -(REAL)INFINITY)) continue;
            if (kept < row) NAMED(move_row)(decoder, row, kept);
            names[kept] = names[row], last[kept++] = tokens[row];
        }
        decoder->lines.rows = kept;
    }
}
