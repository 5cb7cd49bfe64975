// Collectives as a C++ program makes them: on containers, through functions of its own, with operators that are objects, and
// with errors that become exceptions. Prints "ok RANKS" from rank 0, or ends with exit code 3.
#include <mpi.h>

#include <complex>
#include <cstdio>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

template <typename T> MPI_Datatype type_of();
template <> MPI_Datatype type_of<int>() { return MPI_INT; }
template <> MPI_Datatype type_of<double>() { return MPI_DOUBLE; }
template <> MPI_Datatype type_of<bool>() { return MPI_CXX_BOOL; }
template <> MPI_Datatype type_of<std::complex<double>>() { return MPI_CXX_DOUBLE_COMPLEX; }

class Comm {
  public:
    explicit Comm(MPI_Comm of) {
        check(MPI_Comm_dup(of, &handle_));
        check(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN));
        check(MPI_Comm_rank(handle_, &rank));
        check(MPI_Comm_size(handle_, &size));
    }
    Comm(const Comm &) = delete;
    Comm &operator=(const Comm &) = delete;
    ~Comm() { MPI_Comm_free(&handle_); }

    template <typename T> std::vector<T> sum(const std::vector<T> &x) const {
        std::vector<T> result(x.size());
        check(MPI_Allreduce(x.data(), result.data(), int(x.size()), type_of<T>(), MPI_SUM, handle_));
        return result;
    }

    template <typename T> std::vector<T> all(const std::vector<T> &x) const {
        std::vector<T> result(x.size() * size);
        check(MPI_Allgather(x.data(), int(x.size()), type_of<T>(), result.data(), int(x.size()), type_of<T>(), handle_));
        return result;
    }

    template <typename T> void spread(std::vector<T> &x, int root) const {
        check(MPI_Bcast(x.data(), int(x.size()), type_of<T>(), root, handle_));
    }

    bool any(bool own) const {
        bool result = false;
        check(MPI_Allreduce(&own, &result, 1, type_of<bool>(), MPI_LOR, handle_));
        return result;
    }

    int rank = 0, size = 0;

  private:
    static void check(int code) {
        if (code == MPI_SUCCESS) return;
        int kind = 0;
        MPI_Error_class(code, &kind);
        throw std::runtime_error("MPI error class " + std::to_string(kind - MPI_ERR_ROOT));
    }
    MPI_Comm handle_ = MPI_COMM_NULL;
};

void expect(bool right, const char *what) {
    if (right) return;
    std::fprintf(stderr, "%s is wrong\n", what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

void work(const Comm &comm, int count) {
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), comm.rank);
    auto total = comm.sum(numbers);
    int ranks = comm.size * (comm.size - 1) / 2;
    for (int k = 0; k < count; k++) expect(total[k] == ranks + comm.size * k, "a sum");
    auto gathered = comm.all(std::vector<double>(count, comm.rank));
    for (int k = 0; k < count * comm.size; k++) expect(gathered[k] == k / count, "a gathered vector");
    std::vector<std::complex<double>> waves(count, {1.0, double(comm.rank)});
    expect(comm.sum(waves)[count - 1] == std::complex<double>(comm.size, ranks), "a complex sum");
    std::vector<int> given(count, comm.rank == comm.size - 1 ? 7 : 0);
    comm.spread(given, comm.size - 1);
    expect(std::accumulate(given.begin(), given.end(), 0) == 7 * count, "a broadcast");
    expect(comm.any(comm.rank == 0) && !comm.any(false), "a logical or");
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size = 0;
    {
        Comm world(MPI_COMM_WORLD);
        size = world.size;
        for (int count : {1, 10, 1000, 100000}) work(world, count);
        for (int k = 0; k < 20; k++) work(Comm(MPI_COMM_WORLD), 10);
        bool thrown = false;
        try {
            std::vector<int> none(3);
            world.spread(none, size + 5);
        } catch (const std::runtime_error &error) {
            thrown = error.what() == std::string("MPI error class 0");
        }
        expect(thrown, "the exception of a wrong root");
        if (world.rank == 0) std::printf("ok %d\n", size);
    }
    MPI_Finalize();
    return 0;
}
