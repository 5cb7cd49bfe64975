// Arguments that MPI forbids: a call of each kind under a plan ends with the class of error that the library reports.
//
// Prints "ok RANKS" from rank 0. Usage: faults [planned | lengths KIND FILE]. With "planned", partly overlapping memory
// is tried too, which only a plan defines. With "lengths", the ranks make one call with different lengths: "same" is
// printed if it succeeds everywhere; each rank adds a truncation to FILE, and prints another class of error.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, wrong, handled;
static MPI_Comm last;

static int class_of(int code) {
    int found = 0;
    if (code != MPI_SUCCESS) PMPI_Error_class(code, &found);
    return found;
}

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)code;
    last = *comm;
    handled++;
}

static void compare(const char *what, int ours, int ours_handled, int theirs, int theirs_handled) {
    if (class_of(ours) == class_of(theirs) && ours_handled == theirs_handled) return;
    printf("rank %d: %s: class %d and %d calls of the handler, the library's own %d and %d\n", rank, what, class_of(ours),
           ours_handled, class_of(theirs), theirs_handled);
    wrong = 1;
}

// The handler is called as often as by the library, and for the same communicator.
#define TRY(name, ...)                                                                    \
    do {                                                                                  \
        handled = 0, last = MPI_COMM_NULL;                                                \
        int ours = MPI_##name(__VA_ARGS__), ours_handled = handled;                       \
        MPI_Comm ours_last = last;                                                        \
        handled = 0, last = MPI_COMM_NULL;                                                \
        int theirs = PMPI_##name(__VA_ARGS__);                                            \
        compare(#name "(" #__VA_ARGS__ ")", ours, ours_handled, theirs, handled);         \
        if (last != ours_last) wrong = 1, printf("rank %d: another communicator\n", rank); \
    } while (0)

static int make(const char *kind, void *x, void *y, int n, MPI_Comm comm) {
    if (!strcmp(kind, "allreduce")) return MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, comm);
    if (!strcmp(kind, "bcast")) return MPI_Bcast(x, n, MPI_FLOAT, 0, comm);
    if (!strcmp(kind, "reduce")) return MPI_Reduce(x, y, n, MPI_FLOAT, MPI_SUM, 0, comm);
    return MPI_Allgather(x, n, MPI_FLOAT, y, n, MPI_FLOAT, comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm world;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Errhandler errors;
    MPI_Comm_create_errhandler(handler, &errors);
    MPI_Comm_set_errhandler(world, errors);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errors);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, errors);
    int n = 64;
    char *x = calloc((size_t)n * ranks, 16), *y = calloc((size_t)n * ranks, 16);
    // The first calls show that the plan serves these sizes at all.
    MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, world);
    if (argc > 2) {
        // Lengths that differ: an error, or the end of the call, but no endless wait. Calls of the shorter length come
        // first.
        int shorter = n / 2, length = rank == ranks - 1 ? shorter : n, code;
        for (int k = 0; k < 3; k++) make(argv[2], x, y, shorter, world);
        code = make(argv[2], x, y, length, world);
        int found = class_of(code);
        if (found != MPI_SUCCESS && found != MPI_ERR_TRUNCATE) printf("rank %d: class %d\n", rank, found);
        // The launcher of MPICH drops pending output when the job is aborted, so this is written to a file.
        FILE *said = argc > 3 ? fopen(argv[3], "a") : NULL;
        if (found == MPI_ERR_TRUNCATE && said) fprintf(said, "truncated, %d calls of the handler\n", handled);
        if (said) fclose(said);
        // Other ranks may wait for messages of a rank that got an error.
        if (found != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 9);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
    }

    // Operators on datatypes for which they are not defined. The other library at hand was built without these checks.
#ifdef OPEN_MPI
    MPI_Op ops[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR,
                    MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP, MPI_OP_NULL};
    MPI_Datatype types[] = {MPI_BYTE, MPI_CHAR, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_C_BOOL, MPI_C_FLOAT_COMPLEX,
                            MPI_C_DOUBLE_COMPLEX, MPI_INT, MPI_UNSIGNED_CHAR, MPI_INT16_T, MPI_WCHAR, MPI_AINT,
                            MPI_PACKED, MPI_DOUBLE_INT, MPI_DATATYPE_NULL};
    for (unsigned o = 0; o < sizeof ops / sizeof *ops; o++) {
        for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
            TRY(Allreduce, x, y, 3, types[t], ops[o], world);
            TRY(Reduce, x, y, 3, types[t], ops[o], 0, world);
            TRY(Reduce_scatter_block, x, y, 3, types[t], ops[o], world);
        }
    }
    // Counts, roots and addresses.
    TRY(Allreduce, x, y, -1, MPI_FLOAT, MPI_SUM, world);
    TRY(Allreduce, x, MPI_IN_PLACE, n, MPI_FLOAT, MPI_SUM, world);
    TRY(Reduce, x, y, n, MPI_FLOAT, MPI_SUM, ranks, world);
    TRY(Reduce, x, y, n, MPI_FLOAT, MPI_SUM, -1, world);
    TRY(Reduce, x, y, -n, MPI_FLOAT, MPI_SUM, 0, world);
    TRY(Bcast, x, n, MPI_FLOAT, -1, world);
    TRY(Bcast, x, n, MPI_FLOAT, ranks, world);
    TRY(Bcast, x, n, MPI_DATATYPE_NULL, 0, world);
    TRY(Bcast, x, -1, MPI_FLOAT, 0, world);
    TRY(Allgather, x, -1, MPI_FLOAT, y, n, MPI_FLOAT, world);
    TRY(Allgather, x, n, MPI_DATATYPE_NULL, y, n, MPI_FLOAT, world);
    TRY(Allgather, x, n, MPI_FLOAT, y, n, MPI_DATATYPE_NULL, world);
    TRY(Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, n, MPI_DATATYPE_NULL, world);
    TRY(Alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, n, MPI_DATATYPE_NULL, world);
    TRY(Alltoall, x, n, MPI_FLOAT, y, -1, MPI_FLOAT, world);
    // Receive buffers that are too small.
    TRY(Allgather, x, n, MPI_FLOAT, y, n / 2, MPI_FLOAT, world);
    TRY(Alltoall, x, n, MPI_FLOAT, y, n / 2, MPI_FLOAT, world);
    // Datatypes that were never committed.
    MPI_Datatype raw;
    MPI_Type_vector(3, 1, 2, MPI_FLOAT, &raw);
    TRY(Bcast, x, 1, raw, 0, world);
    TRY(Allgather, x, 1, raw, y, 1, raw, world);
    TRY(Alltoall, x, 1, raw, y, 1, raw, world);
    TRY(Allreduce, x, y, 1, raw, MPI_SUM, world);
    MPI_Type_free(&raw);
    // One address for input and output.
    TRY(Allreduce, x, x, n, MPI_FLOAT, MPI_SUM, world);
    TRY(Allgather, x, n, MPI_FLOAT, x, n, MPI_FLOAT, world);
    TRY(Alltoall, x, n, MPI_FLOAT, x, n, MPI_FLOAT, world);
    TRY(Reduce_scatter_block, x, x, n, MPI_FLOAT, MPI_SUM, world);
#endif

    // Nothing, from nowhere to nowhere, and in place.
    TRY(Allreduce, NULL, NULL, 0, MPI_FLOAT, MPI_SUM, world);
    TRY(Allreduce, x, x, 0, MPI_FLOAT, MPI_SUM, world);
    TRY(Reduce, NULL, NULL, 0, MPI_INT, MPI_SUM, ranks - 1, world);
    TRY(Bcast, NULL, 0, MPI_BYTE, ranks - 1, world);
    TRY(Allgather, NULL, 0, MPI_BYTE, NULL, 0, MPI_BYTE, world);
    TRY(Alltoall, NULL, 0, MPI_BYTE, NULL, 0, MPI_INT, world);
    TRY(Reduce_scatter_block, NULL, NULL, 0, MPI_INT, MPI_SUM, world);

    // Memory that overlaps in part, on one rank only: a plan reads the input before it writes.
    if (argc > 1) {
        float *f = (float *)x, *sums = rank ? (float *)y : f + 1;
        for (int k = 0; k < n; k++) f[k] = rank + k;
        int code = MPI_Allreduce(f, sums, n, MPI_FLOAT, MPI_SUM, world);
        for (int k = 0; k < n; k++) {
            if (!code && sums[k] == ranks * (ranks - 1) / 2 + ranks * k) continue;
            wrong = 1, printf("rank %d: element %d of %d is %g\n", rank, k, n, sums[k]);
        }
    }
    free(x), free(y);
    MPI_Errhandler_free(&errors);
    int any = 0;
    PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Comm_free(&world);
    MPI_Finalize();
    if (rank == 0 && !any) printf("ok %d\n", ranks);
    return any;
}
