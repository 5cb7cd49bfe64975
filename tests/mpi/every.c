// Every collective for which rules can choose an algorithm, of several counts, against plain arithmetic. Usage: every
// COUNT... Prints "ok RANKS" from rank 0; any wrong element ends it with exit code 3.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;
static long *mine, *got;

// Element k of a rank's input.
static long given(long of, long k) { return 7 * k + of * of + 1; }

// The sum of element k over the first ranks.
static long sum(long k, int first) {
    long found = 0;
    for (int r = 0; r < first; r++) found += given(r, k);
    return found;
}

static void fill(long count) {
    for (long k = 0; k < count; k++) mine[k] = given(rank, k), got[k] = -1;
}

static void expect(const char *what, long k, long expected) {
    if (got[k] == expected) return;
    fprintf(stderr, "rank %d: %s: element %ld is %ld, not %ld\n", rank, what, k, got[k], expected);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void check(int n, int root) {
    MPI_Comm world = MPI_COMM_WORLD;
    long all = (long)n * ranks;
    fill(all), MPI_Allreduce(mine, got, n, MPI_LONG, MPI_SUM, world);
    for (long k = 0; k < n; k++) expect("allreduce", k, sum(k, ranks));
    for (long k = 0; k < n; k++) got[k] = rank == root ? given(root, k) : -1;
    MPI_Bcast(got, n, MPI_LONG, root, world);
    for (long k = 0; k < n; k++) expect("broadcast", k, given(root, k));
    fill(all), MPI_Reduce(mine, got, n, MPI_LONG, MPI_SUM, root, world);
    for (long k = 0; k < n && rank == root; k++) expect("reduce", k, sum(k, ranks));
    fill(all), MPI_Allgather(mine, n, MPI_LONG, got, n, MPI_LONG, world);
    for (long k = 0; k < all; k++) expect("allgather", k, given(k / n, k % n));
    fill(all), MPI_Gather(mine, n, MPI_LONG, got, n, MPI_LONG, root, world);
    for (long k = 0; k < all && rank == root; k++) expect("gather", k, given(k / n, k % n));
    fill(all), MPI_Scatter(mine, n, MPI_LONG, got, n, MPI_LONG, root, world);
    for (long k = 0; k < n; k++) expect("scatter", k, given(root, (long)rank * n + k));
    fill(all), MPI_Reduce_scatter_block(mine, got, n, MPI_LONG, MPI_SUM, world);
    for (long k = 0; k < n; k++) expect("reduce-scatter", k, sum((long)rank * n + k, ranks));
    fill(all), MPI_Alltoall(mine, n, MPI_LONG, got, n, MPI_LONG, world);
    for (long k = 0; k < all; k++) expect("alltoall", k, given(k / n, (long)rank * n + k % n));
    fill(all), MPI_Scan(mine, got, n, MPI_LONG, MPI_SUM, world);
    for (long k = 0; k < n; k++) expect("scan", k, sum(k, rank + 1));
    MPI_Barrier(world);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int k = 1; k < argc; k++) {
        int n = atoi(argv[k]);
        mine = calloc((size_t)n * ranks + 1, sizeof *mine), got = calloc((size_t)n * ranks + 1, sizeof *got);
        check(n, 0);
        if (ranks > 1) check(n, ranks - 1);
        free(mine), free(got);
    }
    if (rank == 0) printf("ok %d\n", ranks);
    MPI_Finalize();
    return 0;
}
