// An ordinary MPI program: a few calls of every collective that a plan may serve, each checked by plain arithmetic.
// Prints one line, "ok RANKS", from rank 0; any wrong element ends it with exit code 3.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

static void expect(int right, const char *what, int element) {
    if (!right) {
        fprintf(stderr, "rank %d: %s: element %d is wrong\n", rank, what, element);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = argc > 1 ? atoi(argv[1]) : 100;
    int *mine = malloc(sizeof(int) * n * size), *all = malloc(sizeof(int) * n * size);
    int ranks_sum = size * (size - 1) / 2;

    for (int repeat = 0; repeat < 3; repeat++) {
        for (int k = 0; k < n; k++) mine[k] = rank + k;
        MPI_Allreduce(mine, all, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int k = 0; k < n; k++) expect(all[k] == ranks_sum + size * k, "allreduce", k);
        MPI_Allreduce(MPI_IN_PLACE, mine, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        for (int k = 0; k < n; k++) expect(mine[k] == size - 1 + k, "allreduce in place", k);

        int root = repeat % size;
        for (int k = 0; k < n; k++) mine[k] = rank + k;
        MPI_Reduce(mine, all, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        for (int k = 0; k < n && rank == root; k++) expect(all[k] == ranks_sum + size * k, "reduce", k);

        for (int k = 0; k < n; k++) all[k] = rank == root ? 7 * k : -1;
        MPI_Bcast(all, n, MPI_INT, root, MPI_COMM_WORLD);
        for (int k = 0; k < n; k++) expect(all[k] == 7 * k, "bcast", k);

        for (int k = 0; k < n; k++) mine[k] = 1000 * rank + k;
        MPI_Allgather(mine, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
        for (int k = 0; k < n * size; k++) expect(all[k] == 1000 * (k / n) + k % n, "allgather", k);

        for (int k = 0; k < n * size; k++) mine[k] = 1000 * rank + k;
        MPI_Alltoall(mine, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
        for (int k = 0; k < n * size; k++) expect(all[k] == 1000 * (k / n) + rank * n + k % n, "alltoall", k);

        MPI_Reduce_scatter_block(mine, all, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int k = 0; k < n; k++) expect(all[k] == 1000 * ranks_sum + size * (rank * n + k), "reduce_scatter", k);
        MPI_Barrier(MPI_COMM_WORLD);
    }

    // A communicator of the odd and even ranks, made and freed often enough for its handle to come again.
    for (int repeat = 0; repeat < 3; repeat++) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        int one = 1, count, members;
        MPI_Comm_size(half, &members);
        MPI_Allreduce(&one, &count, 1, MPI_INT, MPI_SUM, half);
        expect(count == members, "allreduce on a half", 0);
        MPI_Comm_free(&half);
    }

    // Two groups that a communicator connects: sums are those of the other side, and no plan serves them.
    if (size > 1) {
        MPI_Comm side, both;
        int low = rank < size / 2, mine = rank, sum = 0, expected = 0;
        MPI_Comm_split(MPI_COMM_WORLD, low, rank, &side);
        MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 7, &both);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, both);
        for (int r = 0; r < size; r++) expected += (r < size / 2) != low ? r : 0;
        expect(sum == expected, "allreduce between groups", 0);
        MPI_Comm_free(&both);
        MPI_Comm_free(&side);
    }

    MPI_Request request;
    int one = 1, count = 0;
    MPI_Iallreduce(&one, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(count == size, "iallreduce", 0);
    if (rank == 0) printf("ok %d\n", size);
    MPI_Finalize();
    return 0;
}
