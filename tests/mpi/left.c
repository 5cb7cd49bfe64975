// Calls that a plan leaves to the library and calls that it serves, in turns: of other lengths, roots and
// communicators, with datatypes and communicators whose handles are used again. Rows serve 64 to 1023 bytes on all
// ranks, 1024 to 4095 on one rank less of three or more, and gathers to rank 0 only. Prints "ok RANKS CALLS" from rank
// 0, with the number of served calls.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024, TURNS = 6 };

unsigned long unisono_served(void) __attribute__((weak));

static int rank, ranks, wrong;
static unsigned long expected;
static int in[MOST], out[MOST * 16];

static void count(int bytes, int members) {
    if (members == ranks) expected += bytes >= 64 && bytes <= 1023;
    else if (members == ranks - 1 && ranks > 2) expected += bytes >= 1024 && bytes <= 4095;
}

static void check(const char *what, int n, const int *values, int value) {
    for (int k = 0; k < n; k++) {
        if (values[k] == value) continue;
        printf("rank %d: %s of %d: element %d is %d, not %d\n", rank, what, n, k, values[k], value);
        wrong = 1;
        return;
    }
}

static void fill(int *values, int n, int value) {
    for (int k = 0; k < n; k++) values[k] = value;
}

static void reduce_all(MPI_Comm comm, int n, int in_place) {
    int members;
    MPI_Comm_size(comm, &members);
    fill(in_place ? out : in, n, 3);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, n, MPI_INT, MPI_SUM, comm);
    check("allreduce", n, out, 3 * members);
    fill(in, n, 5);
    MPI_Allreduce(in, out, n, MPI_INT, MPI_MAX, comm);
    check("maximum", n, out, 5);
    count(4 * n, members);
    count(4 * n, members);
}

static void on(MPI_Comm comm, int turn, int bytes) {
    int n = bytes / 4, root = turn % 2;
    reduce_all(comm, n, turn % 3 == 1);
    fill(in, n, rank == root ? 11 : 0);
    MPI_Bcast(in, n, MPI_INT, root, comm);
    check("bcast", n, in, 11);
    // The same bytes by another datatype.
    fill(in, n, rank == root ? 12 : 0);
    MPI_Bcast(in, bytes, MPI_BYTE, root, comm);
    check("bcast of bytes", n, in, 12);
    count(bytes, ranks), count(bytes, ranks);
    fill(in, n, 2);
    MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, comm);
    if (rank == root) check("gather", n * ranks, out, 2);
    if (root == 0) count(bytes, ranks);
    // No row serves a scan.
    MPI_Scan(in, out, n, MPI_INT, MPI_SUM, comm);
    check("scan", n, out, 2 * (rank + 1));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int lengths[] = {4, 60, 64, 68, 1020, 1024, 1028, 4092};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    for (int turn = 0; turn < TURNS; turn++) {
        for (int k = 0; k < LENGTHS; k++) {
            on(MPI_COMM_WORLD, turn, lengths[k]);
            on(MPI_COMM_WORLD, turn, lengths[k]);
            on(MPI_COMM_WORLD, turn, lengths[LENGTHS - 1 - k]);
        }
        // The same handle, or another one, of another number of ranks.
        MPI_Comm sub;
        int away = turn % 2 && rank == ranks - 1;
        MPI_Comm_split(MPI_COMM_WORLD, away, rank, &sub);
        for (int k = 0; k < 2 * LENGTHS; k++) {
            if (!away) reduce_all(sub, lengths[k % LENGTHS] / 4, k % 2);
        }
        MPI_Comm_free(&sub);
        // The same handle, or another one, of another length.
        MPI_Datatype row;
        int length = turn % 2 ? 100 : 2;
        MPI_Type_contiguous(length, MPI_INT, &row);
        MPI_Type_commit(&row);
        for (int k = 0; k < 3; k++) {
            fill(in, length, rank ? 0 : 7 + k);
            MPI_Bcast(in, 1, row, 0, MPI_COMM_WORLD);
            check("bcast of a row", length, in, 7 + k);
            count(4 * length, ranks);
        }
        MPI_Type_free(&row);
    }
    unsigned long served = unisono_served ? unisono_served() : 0;
    if (served != expected && unisono_served) {
        printf("rank %d: %lu calls were served, not %lu\n", rank, served, expected);
        wrong = 1;
    }
    int any = 0;
    PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && !any) printf("ok %d %lu\n", ranks, served);
    MPI_Finalize();
    return any;
}
