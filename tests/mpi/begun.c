// Collectives that are begun and completed later, in every way in which MPI completes requests, while other calls run.
// Each result is compared with the blocking call of the library itself. Usage: begun ROUNDS [lengths FILE | users].
// Prints "ok RANKS" from rank 0, or ends with exit code 3. With "lengths", the ranks begin one call with different
// lengths, and the class of the error is added to FILE. With "users", operators are freed before their call has ended,
// and rounded sums compared.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000, MOST = 6 };

static int rank, size;

static void expect(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static int *ints(int seed) {
    int *x = malloc(sizeof *x * COUNT * size);
    for (int k = 0; k < COUNT * size; k++) x[k] = (seed * 131 + rank * 17 + k) % 1009;
    return x;
}

// Several kinds under way at once, and blocking calls of the same communicator between begin and end.
static void all_kinds(MPI_Comm comm, int n, int round) {
    int root = round % size, *in = ints(round), *got[MOST], *own[MOST];
    for (int k = 0; k < MOST; k++) got[k] = ints(7), own[k] = ints(7);
    MPI_Request requests[MOST + 1];
    MPI_Iallreduce(in, got[0], n, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Ibcast(got[1], n, MPI_INT, root, comm, &requests[1]);
    MPI_Iallgather(in, n, MPI_INT, got[2], n, MPI_INT, comm, &requests[2]);
    int small = rank, sum = 0;
    MPI_Allreduce(&small, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == size * (size - 1) / 2, "a sum between");
    MPI_Ialltoall(in, n, MPI_INT, got[3], n, MPI_INT, comm, &requests[3]);
    MPI_Ireduce(in, got[4], n, MPI_INT, MPI_MAX, root, comm, &requests[4]);
    MPI_Ireduce_scatter_block(in, got[5], n, MPI_INT, MPI_SUM, comm, &requests[5]);
    MPI_Ibarrier(comm, &requests[6]);
    PMPI_Allreduce(in, own[0], n, MPI_INT, MPI_SUM, comm);
    PMPI_Bcast(own[1], n, MPI_INT, root, comm);
    PMPI_Allgather(in, n, MPI_INT, own[2], n, MPI_INT, comm);
    PMPI_Alltoall(in, n, MPI_INT, own[3], n, MPI_INT, comm);
    PMPI_Reduce(in, own[4], n, MPI_INT, MPI_MAX, root, comm);
    PMPI_Reduce_scatter_block(in, own[5], n, MPI_INT, MPI_SUM, comm);
    int left = MOST + 1, index, flag, found, indices[MOST + 1];
    MPI_Status statuses[MOST + 1];
    switch (round % 5) {
    case 0:
        MPI_Waitall(MOST + 1, requests, statuses);
        break;
    case 1:
        while (left) {
            MPI_Waitany(MOST + 1, requests, &index, MPI_STATUS_IGNORE);
            expect(index != MPI_UNDEFINED && requests[index] == MPI_REQUEST_NULL, "a request");
            left--;
        }
        break;
    case 2:
        while (left) {
            MPI_Testsome(MOST + 1, requests, &found, indices, statuses);
            left -= found;
        }
        break;
    case 3:
        for (flag = 0; !flag;) MPI_Testall(MOST + 1, requests, &flag, MPI_STATUSES_IGNORE);
        break;
    default:
        // As a tool before the library, or Fortran, calls it.
        for (flag = 0; !flag;) PMPI_Request_get_status(requests[0], &flag, &statuses[0]);
        for (int k = 0; k <= MOST; k++) PMPI_Wait(&requests[k], MPI_STATUS_IGNORE);
    }
    for (int k = 0; k <= MOST; k++) expect(requests[k] == MPI_REQUEST_NULL, "a request that is complete");
    const char *names[] = {"iallreduce", "ibcast", "iallgather", "ialltoall", "ireduce", "ireduce_scatter_block"};
    for (int k = 0; k < MOST; k++) {
        int length = k == 2 || k == 3 ? n * size : n;
        if (k != 4 || rank == root) expect(!memcmp(got[k], own[k], sizeof(int) * length), names[k]);
        free(got[k]), free(own[k]);
    }
    free(in);
}

// The program waits for a message of a rank that waits for the collective.
static void progress(MPI_Comm comm, int n) {
    int *in = ints(3), *got = ints(4), *own = ints(5), token = 0;
    MPI_Request request;
    MPI_Iallreduce(in, got, n, MPI_INT, MPI_SUM, comm, &request);
    if (rank) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(&token, 1, MPI_INT, 0, 5, comm);
    } else {
        for (int r = 1; r < size; r++) MPI_Recv(&token, 1, MPI_INT, r, 5, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    PMPI_Allreduce(in, own, n, MPI_INT, MPI_SUM, comm);
    expect(!memcmp(got, own, sizeof(int) * n), "iallreduce beside messages");
    free(in), free(got), free(own);
}

// Datatypes may be freed as soon as a call has begun. (Communicators too, but libnbc of Open MPI 5.0.11 then crashes.)
static void freed(int n) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    MPI_Bcast(&n, 1, MPI_INT, 0, comm);
    int *x = ints(0), *before = ints(0), gaps = rank % 2 ? 2 : 1;
    for (int k = 0; k < 2 * n && rank == 0; k++) x[k] = 5 * k;
    MPI_Datatype type;
    MPI_Type_vector(n, 1, gaps, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Request request;
    MPI_Ibcast(x, 1, type, 0, comm, &request);
    MPI_Type_free(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    for (int k = 0; k < n; k++) expect(x[k * gaps] == 5 * k, "ibcast of a datatype that is freed");
    if (gaps == 2) expect(x[1] == before[1], "memory between");
    free(x), free(before);
}

static void larger(void *in, void *inout, int *n, MPI_Datatype *type) {
    (void)type;
    for (int k = 0; k < *n; k++) ((int *)inout)[k] = ((int *)in)[k] > ((int *)inout)[k] ? ((int *)in)[k] : ((int *)inout)[k];
}

// An operator may be freed as soon as a call has begun, and another one may get its address. The other ranks begin
// later.
static void freed_operator(int n) {
    int *in = ints(6), *got = ints(7), *own = ints(8);
    MPI_Request request;
    MPI_Op op;
    for (int turn = 0; turn < 2; turn++) {
        if (rank) usleep(20000);
        MPI_Op_create(larger, 1, &op);
        MPI_Iallreduce(in, got, n, MPI_INT, op, MPI_COMM_WORLD, &request);
        MPI_Op_free(&op);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        PMPI_Allreduce(in, own, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        expect(!memcmp(got, own, sizeof(int) * n), "iallreduce by an operator that is freed");
    }
    free(in), free(got), free(own);
}

// All ranks have the same bits of a rounded sum, in any order of a schedule.
static void rounded(int n) {
    float *in = malloc(sizeof *in * n), *got = malloc(sizeof *got * n), *root = malloc(sizeof *root * n);
    for (int k = 0; k < n; k++) in[k] = (float)(1 + rank * 7 + k) / (3 + k % 11 + rank) * (rank % 2 ? -1 : 1);
    MPI_Request request;
    MPI_Iallreduce(in, got, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    memcpy(root, got, sizeof *got * n);
    PMPI_Bcast(root, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
    expect(!memcmp(got, root, sizeof *got * n), "the bits of an iallreduce");
    free(in), free(got), free(root);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 5, one = 1, all = 0;
    // A first collective prepares the communicator.
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 2 && !strcmp(argv[2], "users")) {
        freed_operator(COUNT / 2);
        rounded(COUNT / 2);
        if (rank == 0) printf("ok %d\n", size);
        MPI_Finalize();
        return 0;
    }
    if (argc > 2) {
        int *in = ints(1), *got = ints(2), class = 0;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        MPI_Request request;
        MPI_Iallreduce(in, got, rank ? 100 : 90, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Error_class(code, &class);
        // The launcher of MPICH drops pending output when the job is aborted, so this is written to a file.
        FILE *said = argc > 3 ? fopen(argv[3], "a") : NULL;
        if (said) fprintf(said, "%s\n", class == MPI_ERR_TRUNCATE ? "truncated" : "another class");
        if (said) fclose(said);
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
    for (int round = 0; round < rounds; round++) all_kinds(MPI_COMM_WORLD, round % 3 ? COUNT : round, round);
    progress(MPI_COMM_WORLD, COUNT);
    freed(COUNT / 2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("ok %d\n", size);
    MPI_Finalize();
    return 0;
}
