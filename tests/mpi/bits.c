// Bits of sums over random lengths, offsets and splits. Usage: bits SEED CALLS [CONTRIBUTORS FILE]. Element k of a long
// vector has one value on each rank; each call sums a stretch of it, in parts, at a random place of memory. Rank 0 prints
// for each type and collective the sums that were compared with an earlier one of the same element, and those with other
// bits. With CONTRIBUTORS, the vector of a rank is the sum of its equal share of them, in the order of `ranks-count`, and
// rank 0 writes all sums to FILE.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 1 << 15, ROOM = LENGTH + 64, TYPES = 4 };
static const char *NAMES[TYPES] = {"f32", "f64", "f16", "bf16"};
static const size_t WIDTHS[TYPES] = {4, 8, 2, 2};
static int rank, ranks;

static uint64_t state;
static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u, x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}
static uint64_t drawn(uint64_t below) { return mixed(state += 0x9e3779b97f4a7c15u) % below; }

static float of_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
// Rounds to the nearest, ties to even.
static uint16_t to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static void add_f16(void *in, void *inout, int *n, MPI_Datatype *t) {
    (void)t;
    for (int k = 0; k < *n; k++) ((_Float16 *)inout)[k] = ((_Float16 *)in)[k] + ((_Float16 *)inout)[k];
}
static void add_bf16(void *in, void *inout, int *n, MPI_Datatype *t) {
    (void)t;
    uint16_t *a = in, *b = inout;
    for (int k = 0; k < *n; k++) b[k] = to_bf16(of_bf16(a[k]) + of_bf16(b[k]));
}

// Of both signs, over few powers of two: most other orders round otherwise.
static void store(int type, char *at, int owner, int k) {
    uint64_t x = mixed(((uint64_t)owner << 32 | (uint32_t)k) + 0x9e3779b97f4a7c15u);
    double value = ((double)(x % 2000003) / 1000001 - 1) * (double)(1 << (x >> 40) % 6);
    float single = (float)value;
    _Float16 half = (_Float16)value;
    uint16_t brain = to_bf16(single);
    const void *from[TYPES] = {&single, &value, &half, &brain};
    memcpy(at, from[type], WIDTHS[type]);
}

static void add(int type, const char *a, const char *b, char *to) {
    char sum[8];
    if (type == 0) *(float *)sum = *(const float *)a + *(const float *)b;
    else if (type == 1) *(double *)sum = *(const double *)a + *(const double *)b;
    else {
        int one = 1;
        memcpy(sum, b, 2);
        type == 2 ? add_f16((void *)a, sum, &one, NULL) : add_bf16((void *)a, sum, &one, NULL);
    }
    memcpy(to, sum, WIDTHS[type]);
}
static void add_in_pairs(int type, char *sums, int n) {
    size_t width = WIDTHS[type];
    for (; n > 1; n = (n + 1) / 2) {
        for (int k = 0; k < n / 2; k++) add(type, sums + 2 * k * width, sums + (2 * k + 1) * width, sums + k * width);
        if (n % 2) memmove(sums + n / 2 * width, sums + (n - 1) * width, width);
    }
}
// Adds contributors in groups of as many as the least prime factor of their number, then the sums of the groups.
static void add_contributors(int type, char *sums, int n) {
    size_t width = WIDTHS[type];
    for (int factor = 2; n > 1; n /= factor) {
        for (factor = 2; n % factor; factor++) continue;
        for (int group = 0; group < n / factor; group++) {
            add_in_pairs(type, sums + group * factor * width, factor);
            memmove(sums + group * width, sums + group * factor * width, width);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int calls = argc > 2 ? atoi(argv[2]) : 100;
    int share = argc > 4 ? atoi(argv[3]) / ranks : 1;
    FILE *file = argc > 4 && rank == 0 ? fopen(argv[4], "wb") : NULL;
    MPI_Datatype two, types[TYPES];
    MPI_Type_contiguous(2, MPI_BYTE, &two), MPI_Type_commit(&two);
    types[0] = MPI_FLOAT, types[1] = MPI_DOUBLE, types[2] = types[3] = two;
    MPI_Op operators[TYPES] = {MPI_SUM, MPI_SUM, MPI_OP_NULL, MPI_OP_NULL};
    MPI_Op_create(add_f16, 1, &operators[2]), MPI_Op_create(add_bf16, 1, &operators[3]);
    char *vector = malloc(8 * LENGTH), *in = malloc(8 * ROOM), *out = malloc(8 * ROOM);
    for (int type = 0; type < TYPES; type++) {
        size_t width = WIDTHS[type];
        for (int k = 0; k < LENGTH; k++) {
            char parts[8 * 64];
            for (int one = 0; one < share; one++) store(type, parts + one * width, rank * share + one, k);
            add_contributors(type, parts, share);
            memcpy(vector + k * width, parts, width);
        }
        for (int reduces = 0; reduces < 2; reduces++) {
            char *first = calloc(LENGTH, width), *known = calloc(LENGTH, 1);
            long sums = 0, unlike = 0;
            state = seed * 8 + (uint64_t)(2 * type + reduces);
            for (int made = 0, last = 0; !last;) {
                last = ++made >= calls;
                int length = (int)(1 + drawn((uint64_t)2 << drawn(15))), start;
                // The last call sums what no other one has.
                length = length > LENGTH || (argc > 4 && last) ? LENGTH : length;
                start = (int)drawn((uint64_t)(LENGTH - length + 1));
                for (int parts = last ? 1 : 1 + (int)drawn(3); length > 0 && parts > 0; parts--) {
                    int n = parts == 1 ? length : 1 + (int)drawn((uint64_t)length);
                    char *given = in + width * drawn(64), *got = out + width * drawn(64);
                    int in_place = drawn(2) == 0;
                    memcpy(in_place ? got : given, vector + start * width, (size_t)n * width);
                    const void *source = in_place ? MPI_IN_PLACE : given;
                    if (!reduces)
                        MPI_Allreduce(source, got, n, types[type], operators[type], MPI_COMM_WORLD);
                    else if (rank == 0)
                        MPI_Reduce(source, got, n, types[type], operators[type], 0, MPI_COMM_WORLD);
                    else
                        MPI_Reduce(in_place ? got : given, NULL, n, types[type], operators[type], 0, MPI_COMM_WORLD);
                    for (int k = 0; k < n && (!reduces || rank == 0); k++) {
                        char *mine = got + k * width, *other = first + (start + k) * width;
                        if (known[start + k]) sums++, unlike += memcmp(mine, other, width) != 0;
                        else memcpy(other, mine, width), known[start + k] = 1;
                    }
                    start += n, length -= n;
                }
            }
            long most;
            MPI_Reduce(&unlike, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
            if (rank == 0) printf("%s %s %ld %ld\n", NAMES[type], reduces ? "reduce" : "allreduce", sums, most);
            if (file) fwrite(first, width, LENGTH, file);
            free(first), free(known);
        }
    }
    if (file) fclose(file);
    MPI_Finalize();
    return 0;
}
