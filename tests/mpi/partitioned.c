// Partitioned transfers that are prepared and never started, around the first collective. Prints "ok RANKS" from rank 0.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, ranks;
    double x[16] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) MPI_Psend_init(x, 4, 4, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (rank == 1) MPI_Precv_init(x, 4, 4, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (rank < 2) MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    int sum = 0;
    MPI_Allreduce(&ranks, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && sum == ranks * ranks) printf("ok %d\n", ranks);
    MPI_Finalize();
    return 0;
}
