// A wrong first call on a new communicator, by one rank alone: it returns its error at once, while the others wait for
// a message that the rank sends afterwards, or make another call first. Prints "ok RANKS" from rank 0.
#include <mpi.h>
#include <stdio.h>

static int rank, ranks, wrong;

// Returns the error class of the wrong call with this number, or -1 if there is none.
static int wrong_call(int number, MPI_Comm comm) {
    float x[64] = {1}, y[64 * 16];
    MPI_Request request = MPI_REQUEST_NULL;
    int code, class;
    switch (number) {
    case 0: code = MPI_Allreduce(x, y, -1, MPI_FLOAT, MPI_SUM, comm); break;
    case 1: code = MPI_Bcast(x, 4, MPI_FLOAT, ranks + 3, comm); break;
    case 2: code = MPI_Allreduce(x, x, 4, MPI_FLOAT, MPI_SUM, comm); break;
    case 3: code = MPI_Reduce(x, y, 4, MPI_FLOAT, MPI_SUM, -4, comm); break;
    case 4: code = MPI_Allgather(x, 4, MPI_DATATYPE_NULL, y, 4, MPI_FLOAT, comm); break;
    case 5: code = MPI_Alltoall(x, -4, MPI_FLOAT, y, 4, MPI_FLOAT, comm); break;
    case 6: code = MPI_Allreduce_init(x, y, -1, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request); break;
    default: return -1;
    }
    MPI_Error_class(code, &class);
    return class;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // Open MPI calls the handler of one of these for some errors, whichever communicator they are on.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
#ifdef OPEN_MPI
    // (The other library at hand was built without these checks.)
    for (int number = 0, class = 0; class >= 0; number++) {
        for (int waits = 0; waits < 2 && class >= 0; waits++) {
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
            int token = 0, one = 1, sum = 0;
            if (rank && waits) MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 0) class = wrong_call(number, comm);
            if (class == MPI_SUCCESS && rank == 0) wrong = 1, printf("the wrong call %d has no error\n", number);
            for (int r = 1; r < ranks && rank == 0 && waits; r++) MPI_Send(&token, 1, MPI_INT, r, 1, MPI_COMM_WORLD);
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
            if (sum != ranks) wrong = 1, printf("rank %d: the sum after call %d is %d\n", rank, number, sum);
            MPI_Comm_free(&comm);
            MPI_Bcast(&class, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
#endif
    // A count of a datatype of more bytes than an int holds is right: ranks may name the same bytes in other ways.
    MPI_Comm comm;
    MPI_Datatype part, whole;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(1 << 30, MPI_BYTE, &part);
    MPI_Type_contiguous(3, part, &whole);
    MPI_Type_commit(&part), MPI_Type_commit(&whole);
    int one = 1, sum = 0;
    if (rank) MPI_Bcast(NULL, 0, part, 0, comm);
    else MPI_Bcast(NULL, 0, whole, 0, comm);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    wrong |= sum != ranks;
    MPI_Type_free(&part), MPI_Type_free(&whole), MPI_Comm_free(&comm);
    int any = 0;
    PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && !any) printf("ok %d\n", ranks);
    MPI_Finalize();
    return any;
}
