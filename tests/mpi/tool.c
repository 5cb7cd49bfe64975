// A profiling tool, as a library that is loaded with a program: counts calls by their MPI_ functions, and makes them by the
// PMPI_ ones. Rank 0 writes "tool: initialised INIT, ALLREDUCES sums, BROADCASTS broadcasts" to standard error at the end.
#include <mpi.h>
#include <stdio.h>

static int initialised, sums, broadcasts;

int MPI_Init(int *argc, char ***argv) {
    initialised++;
    return PMPI_Init(argc, argv);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    sums++;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Bcast(void *x, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    broadcasts++;
    return PMPI_Bcast(x, count, type, root, comm);
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) fprintf(stderr, "tool: initialised %d, %d sums, %d broadcasts\n", initialised, sums, broadcasts);
    return PMPI_Finalize();
}
