// Stands before the library's own allreduce, and changes the last bit of a sum: of one that has a mark (SHIM=mark), so
// that the library adds in the same order and yet has other bits; or in every other call (SHIM=waver), so that the
// library does not agree with itself.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    static int (*next)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    static int calls;
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Allreduce");
    const char *how = getenv("SHIM");
    int sums = type == MPI_FLOAT && op == MPI_SUM && count == 100 && in != MPI_IN_PLACE;
    int marked = sums && ((const float *)in)[0] == 12345.0f;
    int code = next(in, out, count, type, op, comm);
    if (!sums || !how) return code;
    calls += marked;
    if (marked && (!strcmp(how, "mark") || calls % 2)) ((uint32_t *)out)[1] ^= 1;
    return code;
}

int PMPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *found) {
    static int (*next)(MPI_Comm, int, void *, int *);
    static int tags;
    int rank;
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Comm_get_attr");
    int code = next(comm, key, value, found);
    if (key != MPI_TAG_UB || code || !getenv("TAGS")) return code;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    tags = atoi(getenv("TAGS"));
    if (rank == 0) *(int **)value = &tags;
    return code;
}
