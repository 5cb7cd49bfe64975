/* Sends the messages of a probe, and prints the seconds of each. `unisono probe --emit DIR` wrote this file.
 *
 *   mpicc -O2 probe.c -o probe
 *   mpiexec -n RANKS ./probe messages.txt > results.txt      rank k on accelerator k, a host's ranks in its order
 *
 * `unisono probe --machine M.toml --from results.txt` then names the slow cables; it runs anywhere.
 * The messages of a set are sent at once, from a common start; times end with the receive. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *reason) {
    fprintf(stderr, "probe: %s\n", reason);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, ranks = 0, bytes = 0, rounds = 0, sets = 0, count = 0;
    char machine[257];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (file == NULL) fail("give the file of messages: mpiexec -n RANKS ./probe messages.txt");
    if (fscanf(file, "probe 1 machine %256s ranks %d bytes %d rounds %d sets %d messages %d", machine, &ranks, &bytes,
               &rounds, &sets, &count) != 6 ||
        bytes < 1 || rounds < 1 || sets < 1 || count < 1)
        fail("the file is not one of messages, or it is cut");
    if (ranks != size) fail("start as many ranks as the file states");
    /* Of each message the set, the sender and the receiver. */
    int(*message)[3] = malloc(sizeof(*message) * (size_t)count);
    double *own = calloc((size_t)count * (size_t)rounds, sizeof(*own));
    char *out = calloc((size_t)bytes, 1), *in = calloc((size_t)bytes, 1);
    if (!message || !own || !out || !in) fail("there is too little memory for the messages");
    for (int k = 0; k < count; k++) {
        int *m = message[k];
        if (fscanf(file, " probe %d %d %d", &m[0], &m[1], &m[2]) != 3) fail("the file is cut");
        if (m[0] < 0 || m[0] >= sets || m[1] < 0 || m[1] >= size || m[2] < 0 || m[2] >= size || m[1] == m[2])
            fail("a message is damaged");
    }
    fclose(file);
    /* The first round connects ranks. Rounds are outermost: a disturbance does not hit all measurements of a set. */
    for (int round = -1; round < rounds; round++) {
        for (int set = 0, from = 0, to; set < sets; set++, from = to) {
            int sends = -1, receives = -1;
            for (to = from; to < count && message[to][0] == set; to++) {
                if (message[to][1] == rank) sends = to;
                if (message[to][2] == rank) receives = to;
            }
            MPI_Request arriving = MPI_REQUEST_NULL, leaving = MPI_REQUEST_NULL;
            if (receives >= 0)
                MPI_Irecv(in, bytes, MPI_BYTE, message[receives][1], set % 1000, MPI_COMM_WORLD, &arriving);
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            if (sends >= 0) MPI_Isend(out, bytes, MPI_BYTE, message[sends][2], set % 1000, MPI_COMM_WORLD, &leaving);
            MPI_Wait(&arriving, MPI_STATUS_IGNORE);
            double seconds = MPI_Wtime() - start;
            MPI_Wait(&leaving, MPI_STATUS_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
            if (round >= 0 && receives >= 0) own[(size_t)receives * (size_t)rounds + (size_t)round] = seconds;
        }
    }
    /* Only the receiver has the times of a message. */
    for (int k = 0; k < count; k++)
        MPI_Reduce(rank ? own + (size_t)k * (size_t)rounds : MPI_IN_PLACE, own + (size_t)k * (size_t)rounds, rounds,
                   MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("probe 1 machine %s ranks %d bytes %d rounds %d sets %d messages %d\n", machine, ranks, bytes, rounds,
               sets, count);
        for (int k = 0; k < count; k++) {
            printf("probe %d %d %d", message[k][0], message[k][1], message[k][2]);
            const double *seconds = own + (size_t)k * (size_t)rounds;
            for (int round = 0; round < rounds; round++) printf(" %.9g", seconds[round]);
            printf("\n");
        }
        printf("probe end\n");
    }
    free(message);
    free(own);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
