// Persistent collectives, each started several times and completed in every way, beside the library's own blocking
// call. Usage: persistent ROUNDS [order]. With "order", each rank starts them in another order, and frees a datatype
// before. Prints "ok RANKS" from rank 0, or ends with exit code 3.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 700, KINDS = 10 };

static int rank, size, order;

static void expect(int right, const char *what, int which, int round) {
    if (right) return;
    fprintf(stderr, "rank %d, round %d: %s of call %d is wrong\n", rank, round, what, which);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void fill(int *x, int seed) {
    for (int k = 0; k < COUNT * size; k++) x[k] = (seed * 131 + rank * 17 + k) % 1009;
}

static void own(int which, const int *in, int *out, int n, int root, MPI_Comm comm) {
    switch (which) {
    case 0: PMPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm); break;
    case 1: PMPI_Bcast(out, n, MPI_INT, root, comm); break;
    case 2: PMPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm); break;
    case 3: PMPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm); break;
    case 4: PMPI_Reduce(in, out, n, MPI_INT, MPI_MAX, root, comm); break;
    case 5: PMPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, comm); break;
    case 6: PMPI_Barrier(comm); break;
    case 7: PMPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, comm); break;
    case 8: PMPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, root, comm); break;
    case 9: PMPI_Scan(in, out, n, MPI_INT, MPI_SUM, comm); break;
    }
}

static void complete(MPI_Request *requests, int round) {
    int left = KINDS, flag, index, indices[KINDS], found;
    MPI_Status statuses[KINDS];
    switch (round % 5) {
    case 0: MPI_Waitall(KINDS, requests, statuses); break;
    case 1: for (int k = 0; k < KINDS; k++) MPI_Wait(&requests[k], MPI_STATUS_IGNORE); break;
    // (MPI_Testall of MPICH 5.0.2 fails if some of its own are complete.)
    case 2:
        for (int k = 0; k < KINDS; k++)
            for (flag = 0; !flag;) MPI_Test(&requests[k], &flag, MPI_STATUS_IGNORE);
        break;
    case 3:
        while (left) {
            MPI_Waitsome(KINDS, requests, &found, indices, statuses);
            left -= found;
        }
        break;
    default:
        for (; left; left--) MPI_Waitany(KINDS, requests, &index, MPI_STATUS_IGNORE);
    }
}

static void many(MPI_Comm comm, int rounds, int n, int root) {
    int *in = malloc(4 * COUNT * size), *out[KINDS], *ref = malloc(4 * COUNT * size);
    for (int k = 0; k < KINDS; k++) out[k] = malloc(4 * COUNT * size);
    MPI_Request r[KINDS];
    MPI_Datatype pair;
    MPI_Type_vector(n, 1, 1, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Allreduce_init(in, out[0], n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[0]);
    MPI_Bcast_init(out[1], 1, pair, root, comm, MPI_INFO_NULL, &r[1]);
    MPI_Allgather_init(in, n, MPI_INT, out[2], n, MPI_INT, comm, MPI_INFO_NULL, &r[2]);
    MPI_Alltoall_init(in, n, MPI_INT, out[3], n, MPI_INT, comm, MPI_INFO_NULL, &r[3]);
    MPI_Reduce_init(in, out[4], n, MPI_INT, MPI_MAX, root, comm, MPI_INFO_NULL, &r[4]);
    MPI_Reduce_scatter_block_init(in, out[5], n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[5]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &r[6]);
    MPI_Gather_init(in, n, MPI_INT, out[7], n, MPI_INT, root, comm, MPI_INFO_NULL, &r[7]);
    MPI_Scatter_init(in, n, MPI_INT, out[8], n, MPI_INT, root, comm, MPI_INFO_NULL, &r[8]);
    MPI_Scan_init(in, out[9], n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[9]);
    // (Open MPI 5.0.11 uses the freed datatype for its own calls.)
    if (order) MPI_Type_free(&pair);
    MPI_Request kept[KINDS];
    memcpy(kept, r, sizeof r);
    for (int round = 0; round < rounds; round++) {
        fill(in, round);
        for (int k = 0; k < KINDS; k++) fill(out[k], round + 1);
        if (round % 3 == 2)
            MPI_Startall(KINDS, r);
        else
            for (int k = 0; k < KINDS; k++) MPI_Start(&r[(k + order * rank + round) % KINDS]);
        if (round % 2) MPI_Barrier(comm);
        complete(r, round);
        expect(!memcmp(kept, r, sizeof r), "the request", -1, round);
        for (int k = 0; k < KINDS; k++) {
            fill(ref, round + 1);
            own(k, in, ref, n, root, comm);
            expect(!memcmp(out[k], ref, 4 * COUNT * size), "the result", k, round);
        }
    }
    for (int k = 0; k < KINDS; k++) {
        MPI_Request_free(&r[k]);
        expect(r[k] == MPI_REQUEST_NULL, "the freed request", k, rounds);
        free(out[k]);
    }
    if (!order) MPI_Type_free(&pair);
    free(in);
    free(ref);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    order = argc > 2;
    many(MPI_COMM_WORLD, rounds, 1, 0);
    many(MPI_COMM_WORLD, rounds, COUNT, size - 1);
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    many(twin, rounds, 33, 0);
    // Made, and never started.
    for (int k = 0; k < 200; k++) {
        int one = 1, sum;
        MPI_Request request;
        MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, twin, MPI_INFO_NULL, &request);
        MPI_Request_free(&request);
    }
    MPI_Comm_free(&twin);
    if (rank == 0) printf("ok %d\n", size);
    MPI_Finalize();
    return 0;
}
