// Gather, scatter and scan, blocking and begun, beside the library's own: any root, in place, elements with gaps, zero
// counts, meaningless arguments on ranks other than the root. Usage: pieces ROUNDS. Prints "ok RANKS" from rank 0, or
// ends with exit code 3.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 6000 };

static int rank, size;

static void expect(int right, const char *what, int round) {
    if (right) return;
    fprintf(stderr, "rank %d, round %d: %s is wrong\n", rank, round, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void finish(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 12, one = 1, all;
    int *in = malloc(4 * ROOM), *out = malloc(4 * ROOM), *ref = malloc(4 * ROOM);
    double *x = malloc(8 * ROOM), *y = malloc(8 * ROOM), *z = malloc(8 * ROOM);
    MPI_Datatype gaps;
    MPI_Type_create_resized(MPI_INT, 0, 8, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++) {
        int n = round % 7 == 6 ? 0 : 1 + 41 * round % 290, root = round % 2 ? round % size : 0, is_root = rank == root;
        int in_place = round % 3 == 2 && is_root, begun = round % 4 == 3;
        MPI_Datatype type = round % 5 == 4 ? gaps : MPI_INT, none = is_root ? type : MPI_DATATYPE_NULL;
        MPI_Request request;
        for (int k = 0; k < ROOM; k++) in[k] = rank * 1000 + k + round, out[k] = ref[k] = k;
        const void *from = in_place ? MPI_IN_PLACE : in;
        int stated = is_root ? n : -1;
        if (begun) {
            MPI_Igather(from, n, MPI_INT, out, stated, none, root, MPI_COMM_WORLD, &request);
            finish(&request);
        } else {
            MPI_Gather(from, n, MPI_INT, out, stated, none, root, MPI_COMM_WORLD);
        }
        PMPI_Gather(from, n, MPI_INT, ref, stated, none, root, MPI_COMM_WORLD);
        expect(!memcmp(out, ref, 4 * ROOM), "gather", round);
        for (int k = 0; k < ROOM; k++) in[k] = rank * 7000 + 3 * k, out[k] = ref[k] = -k;
        void *to = in_place ? MPI_IN_PLACE : out, *own = in_place ? MPI_IN_PLACE : ref;
        if (begun) {
            MPI_Iscatter(is_root ? in : NULL, stated, none, to, n, MPI_INT, root, MPI_COMM_WORLD, &request);
            finish(&request);
        } else {
            MPI_Scatter(is_root ? in : NULL, stated, none, to, n, MPI_INT, root, MPI_COMM_WORLD);
        }
        PMPI_Scatter(is_root ? in : NULL, stated, none, own, n, MPI_INT, root, MPI_COMM_WORLD);
        expect(!memcmp(out, ref, 4 * ROOM), "scatter", round);
        for (int k = 0; k < ROOM; k++) x[k] = (rank + k) % 64, y[k] = z[k] = round % 3 ? -1 : x[k];
        const void *given = round % 3 ? (void *)x : MPI_IN_PLACE;
        if (begun) {
            MPI_Iscan(given, y, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
            finish(&request);
        } else {
            MPI_Scan(given, y, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        }
        PMPI_Scan(given, z, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        expect(!memcmp(y, z, 8 * ROOM), "scan", round);
    }
    MPI_Type_free(&gaps);
    if (rank == 0) printf("ok %d\n", size);
    MPI_Finalize();
    return 0;
}
