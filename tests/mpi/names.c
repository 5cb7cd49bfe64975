// The Fortran names of the preloaded library, called from C like a Fortran compiler does: all arguments by address.
// Prints "ok RANKS" from rank 0, or ends with exit code 3; "none" if the names do not exist.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

typedef void (*Subroutine)();

static int rank, size;

static void expect(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static Subroutine named(const char *name) {
    Subroutine found = (Subroutine)dlsym(RTLD_DEFAULT, name);
    expect(found != NULL, name);
    return found;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!dlsym(RTLD_DEFAULT, "mpi_allreduce_")) {
        if (rank == 0) printf("none\n");
        MPI_Finalize();
        return 0;
    }
    MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), type = MPI_Type_c2f(MPI_INT), op = MPI_Op_c2f(MPI_SUM);
    MPI_Fint info = MPI_Info_c2f(MPI_INFO_NULL), request, requests[2], n = 5, error = -1, two = 2;
    int in[5], out[5], got[5], total = size * (size - 1) / 2;
    for (int k = 0; k < 5; k++) in[k] = rank + k;
    named("mpi_allreduce_")(in, out, &n, &type, &op, &world, &error);
    for (int k = 0; k < 5; k++) expect(error == 0 && out[k] == total + size * k, "allreduce");
    for (int k = 0; k < 5; k++) out[k] = rank + k;
    named("ompi_allreduce_f")(dlsym(RTLD_DEFAULT, "mpi_fortran_in_place_"), out, &n, &type, &op, &world, &error);
    for (int k = 0; k < 5; k++) expect(error == 0 && out[k] == total + size * k, "allreduce in place");
    named("mpi_iallreduce_")(in, got, &n, &type, &op, &world, &request, &error);
    MPI_Request handle = MPI_Request_f2c(request);
    MPI_Wait(&handle, MPI_STATUS_IGNORE);
    expect(error == 0 && got[4] == out[4], "iallreduce");
    named("mpi_allreduce_init_")(in, got, &n, &type, &op, &world, &info, &requests[0], &error);
    named("mpi_barrier_init_")(&world, &info, &requests[1], &error);
    for (int round = 0; round < 4; round++) {
        for (int k = 0; k < 5; k++) in[k] = rank + k + round, got[k] = -1;
        if (round % 2) {
            named("mpi_startall_")(&two, requests, &error);
        } else {
            named("mpi_start_")(&requests[0], &error);
            named("ompi_start_f")(&requests[1], &error);
        }
        for (int k = 0; k < 2; k++) {
            handle = MPI_Request_f2c(requests[k]);
            MPI_Wait(&handle, MPI_STATUS_IGNORE);
        }
        for (int k = 0; k < 5; k++) expect(error == 0 && got[k] == total + size * (k + round), "a started allreduce");
    }
    for (int k = 0; k < 2; k++) {
        named("mpi_request_free_")(&requests[k], &error);
        expect(error == 0 && MPI_Request_f2c(requests[k]) == MPI_REQUEST_NULL, "a freed request");
    }
    MPI_Fint far = size + 3, class;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    named("mpi_bcast_")(got, &n, &type, &far, &world, &error);
    MPI_Error_class(error, &class);
    expect(class == MPI_ERR_ROOT, "the error of a wrong root");
    // A null address stands for a missing error code.
    named("mpi_barrier_")(&world, NULL);
    if (rank == 0) printf("ok %d\n", size);
    MPI_Finalize();
    return 0;
}
