// A rank is killed while the others wait for it in a collective. Before, rank 0 prints "served N", the number of calls
// that a plan served. Prints "survived" if the call ends for the others.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>

unsigned long unisono_served(void) __attribute__((weak));

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, mine = 1, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        fprintf(stderr, "served %lu\n", unisono_served ? unisono_served() : 0);
        fflush(stderr);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) raise(SIGKILL);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("survived\n");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
