// A library that is loaded after the one for MPI programs: counts allocations, and messages by functions of MPI's interface.
#define _GNU_SOURCE
#include <mpi.h>
#include <dlfcn.h>
#include <stdlib.h>

static unsigned long allocations, messages;

unsigned long counting_allocations(void) { return allocations; }
unsigned long counting_messages(void) { return messages; }

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

void *malloc(size_t bytes) {
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_realloc(old, bytes);
}

typedef int Send(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int Receive(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static int send(const char *name, const void *x, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
    messages++;
    return ((Send *)dlsym(RTLD_NEXT, name))(x, n, t, to, tag, c, r);
}

static int receive(const char *name, void *x, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r) {
    messages++;
    return ((Receive *)dlsym(RTLD_NEXT, name))(x, n, t, from, tag, c, r);
}

int PMPI_Isend(const void *x, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
    return send("PMPI_Isend", x, n, t, to, tag, c, r);
}

int PMPI_Irecv(void *x, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r) {
    return receive("PMPI_Irecv", x, n, t, from, tag, c, r);
}

int MPI_Isend(const void *x, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
    return send("MPI_Isend", x, n, t, to, tag, c, r);
}

int MPI_Irecv(void *x, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r) {
    return receive("MPI_Irecv", x, n, t, from, tag, c, r);
}
