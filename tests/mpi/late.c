/* Three ranks gather; rank 1 gives a shorter length and rank 2 comes late. Rank 0 gets an error, and has its memory back: it
   writes to a file how many words of it change afterwards. Usage: late FILE */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int rank, in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[24] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int count = rank == 1 ? 2 : 4;
  if (rank == 2) usleep(300000);
  const int error = MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, MPI_COMM_WORLD);
  if (rank == 0) {
    int changed = 0, flag;
    memset(out, 0x55, sizeof out);
    const double begin = MPI_Wtime();
    /* The library makes progress. */
    while (MPI_Wtime() - begin < 1) MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    for (int at = 0; at < 24; at++) changed += out[at] != 0x55555555;
    FILE *said = fopen(argv[1], "w");
    if (said) fprintf(said, "error %s, %d words changed\n", error == MPI_SUCCESS ? "no" : "yes", changed);
    if (said) fclose(said);
  } else {
    /* Until rank 0 ends the job. */
    int none;
    PMPI_Recv(&none, 1, MPI_INT, 0, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Abort(MPI_COMM_WORLD, 1);
}
