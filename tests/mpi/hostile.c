// Wrong and unusual arguments: a call ends as the library's own does, with the same class of error.
//
// Prints "ok RANKS" from rank 0. Each line of TRY compares MPI_X, which a preloaded library may serve, with PMPI_X.
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, wrong;

static int class_of(int code) {
    int found = 0;
    if (code != MPI_SUCCESS) PMPI_Error_class(code, &found);
    return found;
}

static void compare(const char *what, int ours, int theirs) {
    if (class_of(ours) == class_of(theirs)) return;
    printf("rank %d: %s: class %d, the library's own %d\n", rank, what, class_of(ours), class_of(theirs));
    wrong = 1;
}

#define TRY(name, ...) compare(#name #__VA_ARGS__, MPI_##name(__VA_ARGS__), PMPI_##name(__VA_ARGS__))

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int n = 16;
    float *x = calloc((size_t)n * ranks, sizeof *x), *y = calloc((size_t)n * ranks, sizeof *y);
    // The first call shows that the plan serves this size at all.
    MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, world);

#ifdef OPEN_MPI
    // The other library at hand was built without these checks.
    TRY(Allreduce, x, MPI_IN_PLACE, n, MPI_FLOAT, MPI_SUM, world);
    TRY(Allreduce, x, y, -1, MPI_FLOAT, MPI_SUM, world);
    TRY(Allreduce, x, y, INT_MIN, MPI_FLOAT, MPI_SUM, world);
    TRY(Allreduce, x, y, n, MPI_DATATYPE_NULL, MPI_SUM, world);
    TRY(Allreduce, x, y, n, MPI_FLOAT, MPI_OP_NULL, world);
    TRY(Allreduce, x, y, n, MPI_FLOAT, MPI_MAXLOC, world);
    TRY(Allreduce, x, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_NULL);
    TRY(Reduce, x, y, n, MPI_FLOAT, MPI_SUM, ranks, world);
    TRY(Reduce, x, y, n, MPI_FLOAT, MPI_SUM, -7, world);
    TRY(Bcast, x, n, MPI_FLOAT, INT_MAX, world);
    TRY(Bcast, x, -n, MPI_FLOAT, 0, world);
    TRY(Allgather, x, n, MPI_FLOAT, y, -n, MPI_FLOAT, world);
    TRY(Alltoall, x, n, MPI_FLOAT, y, n, MPI_DATATYPE_NULL, world);
    TRY(Reduce_scatter_block, x, y, -n, MPI_FLOAT, MPI_SUM, world);
    TRY(Barrier, MPI_COMM_NULL);
    // Missing addresses.
    TRY(Bcast, NULL, n, MPI_FLOAT, 0, MPI_COMM_SELF);
    TRY(Allreduce, x, y, 0, MPI_DATATYPE_NULL, MPI_SUM, world);
#endif

    // Zero elements, with missing addresses, and in place.
    TRY(Allreduce, NULL, NULL, 0, MPI_FLOAT, MPI_SUM, world);
    TRY(Allreduce, MPI_IN_PLACE, NULL, 0, MPI_DOUBLE, MPI_MAX, world);
    TRY(Reduce, NULL, NULL, 0, MPI_INT, MPI_SUM, ranks - 1, world);
    TRY(Bcast, NULL, 0, MPI_BYTE, ranks - 1, world);
    TRY(Allgather, NULL, 0, MPI_BYTE, NULL, 0, MPI_BYTE, world);
    TRY(Alltoall, NULL, 0, MPI_BYTE, NULL, 0, MPI_INT, world);

    // Datatypes without bytes, with gaps, and of more bytes than an int counts.
    MPI_Datatype empty, gaps, huge, page;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_vector(4, 1, 3, MPI_FLOAT, &gaps);
    MPI_Type_contiguous(1 << 30, MPI_DOUBLE, &page);
    MPI_Type_contiguous(1 << 20, page, &huge);
    MPI_Type_commit(&empty), MPI_Type_commit(&gaps), MPI_Type_commit(&huge), MPI_Type_commit(&page);
    TRY(Bcast, x, INT_MAX, empty, 0, world);
    TRY(Allgather, x, 3, empty, y, 3, empty, world);
    TRY(Bcast, x, 0, huge, 0, world);
    TRY(Bcast, x, 1, gaps, 0, world);
    TRY(Allreduce, x, y, 1, gaps, MPI_SUM, world);
    TRY(Allreduce, x, y, 0, huge, MPI_SUM, world);

    // Elements in the gaps are not written.
    float sparse[10];
    for (int k = 0; k < 10; k++) sparse[k] = rank == 0 ? k : -1;
    MPI_Bcast(sparse, 1, gaps, 0, world);
    for (int k = 0; k < 10; k++) {
        float expected = rank == 0 || k % 3 == 0 ? k : -1;
        if (sparse[k] != expected) wrong = 1, printf("rank %d: element %d is %g\n", rank, k, sparse[k]);
    }

    // A datatype that contains its address.
    int here[4] = {rank, rank, rank, rank}, length = 4;
    MPI_Aint at;
    MPI_Get_address(here, &at);
    MPI_Datatype absolute;
    MPI_Type_create_hindexed(1, &length, &at, MPI_INT, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Bcast(MPI_BOTTOM, 1, absolute, ranks - 1, world);
    for (int k = 0; k < 4; k++) wrong |= here[k] != ranks - 1;

    // Two groups: not for plans.
    if (ranks > 1) {
        MPI_Comm half, inter;
        MPI_Comm_split(world, rank % 2, rank, &half);
        MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 5, &inter);
        int mine = 1, sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
        wrong |= sum != (rank % 2 ? (ranks + 1) / 2 : ranks / 2);
        MPI_Comm_free(&inter), MPI_Comm_free(&half);
    }
    // Communicators that come and go, with calls on each.
    for (int k = 0; k < 40; k++) {
        MPI_Comm copy;
        MPI_Comm_dup(world, &copy);
        MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, copy);
        MPI_Comm_free(&copy);
    }
    MPI_Type_free(&empty), MPI_Type_free(&gaps), MPI_Type_free(&huge), MPI_Type_free(&page), MPI_Type_free(&absolute);
    free(x), free(y);
    int any = 0;
    PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, world);
    MPI_Finalize();
    if (rank == 0 && !any) printf("ok %d\n", ranks);
    return any;
}
