/* All kernels, for one kind of number (REAL_IS_FLOAT or REAL_IS_DOUBLE) and one LEVEL of processor: see build.py.

   Nothing here allocates, keeps state or checks a size: the Python that calls it has checked all of them. Work is shared
   out among threads over rows or outputs, never over what is summed, so that results do not depend on their number. */

#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <math.h>
#include <stdint.h>
#include <string.h>

#define JOINED(level, name, real) level##_##name##_##real
#define JOIN(level, name, real) JOINED(level, name, real)

#ifdef REAL_IS_FLOAT
#define REAL float
#define BITS uint32_t
#define NAMED(name) JOIN(LEVEL, name, float)
#define DIGITS 23         /* of the binary fraction */
#define BIAS 0x3f800000   /* the bits of 1 */
#define ROUND 12582912.0f /* 1.5 · 2^23: what is added to it is rounded to whole numbers */
#define LARGEST 87.0f     /* its exponential is still a number */
#else
#define REAL double
#define BITS uint64_t
#define NAMED(name) JOIN(LEVEL, name, double)
#define DIGITS 52
#define BIAS 0x3ff0000000000000
#define ROUND 6755399441055744.0
#define LARGEST 708.0
#endif

#if defined(__AVX512F__)
#define VECTOR 64 /* bytes that the processor works on at once */
#elif defined(__AVX2__)
#define VECTOR 32
#else
#define VECTOR 16
#endif
#define LANES (VECTOR / (long)sizeof(REAL))
#define PANEL (2 * LANES)
#define WORTH 40000 /* from how many multiplications a second thread pays */

static int NAMED(threads) = 1; /* whether there may be more than one */

int omp_get_max_threads(void); /* of OpenMP, or of fallback.c */

void NAMED(use_one_thread)(void) { NAMED(threads) = 0; }

/* How many outputs stand side by side in a panel of weights. */
long NAMED(panel)(void) { return PANEL; }

#include "numbers.h"
#include "recurrence.h"
#include "products.h"
#include "int8.h"
#include "attention.h"
#include "layers.h"
#include "decoder.h"
#include "dropout.h"
