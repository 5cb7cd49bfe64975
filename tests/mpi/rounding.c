// Sums of floats with and without a mark that `shim.c` looks for. Usage: rounding CALLS. Prints "ok" from rank 0.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    enum { COUNT = 100 };
    float in[COUNT], out[COUNT];
    MPI_Init(&argc, &argv);
    int rank, calls = argc > 1 ? atoi(argv[1]) : 8;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int call = 0; call < calls; call++) {
        for (int k = 0; k < COUNT; k++) in[k] = 1.0f / (float)(1 + 7 * k + 31 * rank + call);
        if (call % 2) in[0] = 12345.0f;
        MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("ok\n");
    MPI_Finalize();
    return 0;
}
