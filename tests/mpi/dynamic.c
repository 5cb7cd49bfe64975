// Processes that come later, and programs without a world. Usage: dynamic spawn | port | session | both. With "spawn"
// two more processes of this program are started and joined, with "port" the two halves of the ranks connect, with
// "session" MPI is never initialized as a whole, with "both" it is, beside a session. Prints "ok PROCESSES" from rank
// 0, or ends with exit code 3.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 50 };

static void expect(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "%s is wrong\n", what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static int use(MPI_Comm comm) {
    int in[COUNT], out[COUNT], rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int turn = 0; turn < 4; turn++) {
        for (int k = 0; k < COUNT; k++) in[k] = rank + k;
        MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, comm);
        for (int k = 0; k < COUNT; k++) expect(out[k] == size * (size - 1) / 2 + size * k, "a sum");
        for (int k = 0; k < COUNT; k++) out[k] = rank == turn % size ? k : -1;
        MPI_Bcast(out, COUNT, MPI_INT, turn % size, comm);
        for (int k = 0; k < COUNT; k++) expect(out[k] == k, "a broadcast");
        MPI_Barrier(comm);
    }
    return rank == 0 ? size : 0;
}

// The processes of both sides of an inter-communicator, which is disconnected after that.
static int join(MPI_Comm between, int high) {
    MPI_Comm all;
    int mine = 1, others = 0, remote;
    MPI_Comm_remote_size(between, &remote);
    MPI_Allreduce(&mine, &others, 1, MPI_INT, MPI_SUM, between);
    expect(others == remote, "a sum of the other side");
    MPI_Intercomm_merge(between, high, &all);
    int found = use(all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&between);
    return found;
}

static int session(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "dynamic", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    int found = use(comm);
    MPI_Comm_free(&comm), MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return found;
}

int main(int argc, char **argv) {
    MPI_Comm parent = MPI_COMM_NULL, between, half;
    int rank, found = 0, world = argc < 2 || strcmp(argv[1], "session");
    if (!world) {
        found = session();
        if (found) printf("ok %d\n", found);
        return 0;
    }
    MPI_Init(&argc, &argv);
    use(MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        join(parent, 1);
    } else if (!strcmp(argv[1], "spawn")) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
        found = join(between, 0);
    } else if (!strcmp(argv[1], "port")) {
        char port[MPI_MAX_PORT_NAME] = {0};
        if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        if (rank % 2) MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &between);
        else MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &between);
        found = join(between, rank % 2);
        if (rank == 0) MPI_Close_port(port);
        MPI_Comm_free(&half);
    } else {
        found = session();
        use(MPI_COMM_WORLD);
    }
    if (found) printf("ok %d\n", found);
    MPI_Finalize();
    return 0;
}
