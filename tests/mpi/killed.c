// A rank is killed while the others wait for it in a collective. Before, rank 0 writes the number of calls that a plan
// served to a file, because the launcher of MPICH drops pending output at the end of a job. Prints "survived" if the call
// ends for the others. Usage: killed FILE
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
        FILE *said = fopen(argv[1], "w");
        if (said) fprintf(said, "%lu", unisono_served ? unisono_served() : 0), fclose(said);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) raise(SIGKILL);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("survived\n");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
