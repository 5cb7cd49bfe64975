// Rounded sums and the program's own operators: all ranks end with the same bits, and an operator that does not commute
// combines in the order of the ranks. Usage: operators [users]. Prints "ok RANKS" from rank 0, or "unlike COUNT" if
// ranks have different bits after an allreduce.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 700 };
static int rank, ranks, unlike, wrong;

// Maps x -> a x + b of 64-bit integers, one after the other: associative, exact, not commutative.
typedef struct { uint64_t a, b; } Map;
static Map after(Map first, Map then) { return (Map){first.a * then.a, then.a * first.b + then.b}; }
static void compose(void *in, void *inout, int *n, MPI_Datatype *t) {
    (void)t;
    for (int k = 0; k < *n; k++) ((Map *)inout)[k] = after(((Map *)in)[k], ((Map *)inout)[k]);
}
static void add(void *in, void *inout, int *n, MPI_Datatype *t) {
    (void)t;
    for (int k = 0; k < *n; k++) ((float *)inout)[k] += ((float *)in)[k];
}

static uint64_t number(int owner, int k) {
    uint64_t state = ((uint64_t)owner * 1000003 + k) * 2 + 1;
    for (int turn = 0; turn < 4; turn++) state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 8;
}
// Of both signs, over 20 powers of two: sums depend on their order.
static double real(int owner, int k) {
    uint64_t x = number(owner, k);
    return ((double)(x % 100003) / 50000 - 1) * (1 << (x >> 40) % 20);
}

static void compare(const char *what, int n, const void *mine, size_t bytes, MPI_Comm comm) {
    static char root[MOST * 32];
    memcpy(root, mine, bytes);
    PMPI_Bcast(root, (int)bytes, MPI_BYTE, 0, comm);
    if (memcmp(root, mine, bytes)) {
        unlike++;
        fprintf(stderr, "rank %d: %s of %d: other bits than rank 0\n", rank, what, n);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    int users = argc > 1;
    MPI_Op composed, added;
    MPI_Op_create(compose, 0, &composed), MPI_Op_create(add, 1, &added);
    MPI_Datatype map;
    MPI_Type_contiguous(2, MPI_UINT64_T, &map);
    MPI_Type_commit(&map);
    static float f[MOST], fs[MOST];
    static double d[MOST], ds[MOST];
    static long double l[MOST], ls[MOST];
    static Map m[MOST], ms[MOST];
    for (int n = 1; n <= MOST; n = n < 12 ? n + 1 : n * 2 + 1) {
        memset(l, 0, sizeof l), memset(ls, 0, sizeof ls);
        for (int k = 0; k < n; k++) {
            f[k] = (float)real(rank, k), d[k] = real(rank, k), l[k] = real(rank, k);
            m[k] = (Map){number(rank, k) | 1, number(rank, k + MOST)};
        }
        MPI_Allreduce(f, fs, n, MPI_FLOAT, MPI_SUM, world), compare("float sum", n, fs, n * sizeof *fs, world);
        MPI_Allreduce(d, ds, n, MPI_DOUBLE, MPI_SUM, world), compare("double sum", n, ds, n * sizeof *ds, world);
        MPI_Allreduce(d, ds, n, MPI_DOUBLE, MPI_PROD, world), compare("double product", n, ds, n * sizeof *ds, world);
        MPI_Allreduce(d, ds, n / 2, MPI_C_DOUBLE_COMPLEX, MPI_SUM, world);
        compare("complex sum", n, ds, n / 2 * 2 * sizeof *ds, world);
        MPI_Allreduce(l, ls, n, MPI_LONG_DOUBLE, MPI_SUM, world);
        // The last six of 16 bytes are padding.
        for (int k = 0; k < n; k++) ds[k] = (double)(ls[k] - (double)ls[k]);
        compare("long double sum", n, ds, n * sizeof *ds, world);
        if (!users) continue;
        MPI_Allreduce(f, fs, n, MPI_FLOAT, added, world), compare("own float sum", n, fs, n * sizeof *fs, world);
        for (int turn = 0; turn <= ranks; turn++) {
            int root = turn % ranks, all = turn == ranks;
            if (all) MPI_Allreduce(m, ms, n, map, composed, world);
            else MPI_Reduce(m, ms, n, map, composed, root, world);
            for (int k = 0; k < n && (all || rank == root); k++) {
                Map expected = {1, 0};
                for (int r = 0; r < ranks; r++) expected = after(expected, (Map){number(r, k) | 1, number(r, k + MOST)});
                if (!memcmp(&expected, &ms[k], sizeof expected)) continue;
                wrong = 1;
                fprintf(stderr, "rank %d: element %d of %d is not composed in the order of the ranks\n", rank, k, n);
                break;
            }
        }
    }
    MPI_Op_free(&composed), MPI_Op_free(&added), MPI_Type_free(&map);
    int mine[2] = {unlike, wrong}, sum[2];
    PMPI_Allreduce(mine, sum, 2, MPI_INT, MPI_SUM, world);
    if (rank == 0 && !sum[0] && !sum[1]) printf("ok %d\n", ranks);
    if (rank == 0 && sum[0]) printf("unlike %d\n", sum[0]);
    MPI_Finalize();
    return sum[1] != 0;
}
