/* What everything else is made of: vectors of numbers, sums of them, and the functions that squash.

   `lanes` is as many numbers as the processor works on at once. */

typedef REAL NAMED(lanes) __attribute__((vector_size(VECTOR), aligned(sizeof(REAL)), may_alias));

/* e^x = 2^n e^r with n whole and |r| at most half of log 2, where the series ends soon. */
static inline REAL NAMED(exponential)(REAL x) {
    const int over = x > LARGEST, under = x < -LARGEST; /* then infinity and 0: a gate can be shut for good */
    x = over || under ? 0 : x;
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
    return over ? (REAL)INFINITY : under ? 0 : sum * power;
}

static inline REAL NAMED(sigmoid)(REAL x) { return 1 / (1 + NAMED(exponential)(-x)); }
static inline REAL NAMED(tangent)(REAL x) { return 1 - 2 / (1 + NAMED(exponential)(2 * x)); }

/* The upper half is added to the lower one until one number is left. */
static inline REAL NAMED(total)(NAMED(lanes) sums) {
#if defined(__AVX512F__) && defined(REAL_IS_FLOAT)
    return _mm512_reduce_add_ps((__m512)sums);
#elif defined(__AVX2__) && defined(REAL_IS_FLOAT)
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128((__m256)sums), _mm256_extractf128_ps((__m256)sums, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
#else
    REAL part[LANES];
    memcpy(part, &sums, sizeof part);
    for (long half = LANES / 2; half; half /= 2)
        for (long lane = 0; lane < half; lane++) part[lane] += part[lane + half];
    return part[0];
#endif
}

static inline REAL NAMED(dot)(const REAL *a, const REAL *b, long size) {
    NAMED(lanes) sums = {0};
    long j = 0;
    for (; j + LANES <= size; j += LANES) sums += *(const NAMED(lanes) *)(a + j) * *(const NAMED(lanes) *)(b + j);
    REAL sum = NAMED(total)(sums);
    for (; j < size; j++) sum += a[j] * b[j];
    return sum;
}
