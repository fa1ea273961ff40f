// SPDX-License-Identifier: BSD-2-Clause
// Do the collectives with equal contributions give every rank the value that arithmetic says?
#include "collective_call.h"

namespace weft::mpi_test {

namespace {

const auto kKind = MPI_INT64_T;

// One collective call's surroundings: its members, how much each gives, what to call it in a
// report.
struct Case {
  const Group& group;
  std::size_t count;
  std::string where;

  int n() const { return static_cast<int>(count); }
  std::size_t ranks() const { return static_cast<std::size_t>(group.size); }
  std::string name(const std::string& call) const {
    return call + " of " + std::to_string(count) + " on " + where;
  }
};

// Every rank's contribution, in rank order.
Values all_contributions(const Case& at) {
  Values all;
  for (int rank = 0; rank < at.group.size; ++rank) {
    const Values one = contribution(rank, at.count);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void barrier(const Case& at) {
  both_forms(
      at.name("barrier"), [] {},
      [&](MPI_Request* later) {
        return later ? MPI_Ibarrier(at.group.comm, later) : MPI_Barrier(at.group.comm);
      },
      [](const std::string&) {});
}

void broadcast(const Case& at, int root) {
  Values data;
  both_forms(
      at.name("broadcast"),
      [&] { data = at.group.rank == root ? contribution(root, at.count) : Values(at.count, -1); },
      [&](MPI_Request* later) {
        return later ? MPI_Ibcast(data.data(), at.n(), kKind, root, at.group.comm, later)
                     : MPI_Bcast(data.data(), at.n(), kKind, root, at.group.comm);
      },
      [&](const std::string& what) { require_equal(data, contribution(root, at.count), what); });
}

void reduce(const Case& at, int root) {
  const Values in = contribution(at.group.rank, at.count);
  Values out;
  both_forms(
      at.name("reduce"), [&] { out.assign(at.count, -1); },
      [&](MPI_Request* later) {
        return later
                   ? MPI_Ireduce(in.data(), out.data(), at.n(), kKind, MPI_SUM, root, at.group.comm,
                                 later)
                   : MPI_Reduce(in.data(), out.data(), at.n(), kKind, MPI_SUM, root, at.group.comm);
      },
      [&](const std::string& what) {
        require_equal(
            out, at.group.rank == root ? sum_of(0, at.group.size, at.count) : Values(at.count, -1),
            what);
      });
}

void allreduce(const Case& at) {
  const Values in = contribution(at.group.rank, at.count);
  Values out;
  for (const MPI_Op operation : {MPI_SUM, MPI_MAX, MPI_MIN}) {
    const int chosen = operation == MPI_MAX ? at.group.size - 1 : 0;
    both_forms(
        at.name("allreduce"), [&] { out.assign(at.count, -1); },
        [&](MPI_Request* later) {
          return later ? MPI_Iallreduce(in.data(), out.data(), at.n(), kKind, operation,
                                        at.group.comm, later)
                       : MPI_Allreduce(in.data(), out.data(), at.n(), kKind, operation,
                                       at.group.comm);
        },
        [&](const std::string& what) {
          require_equal(out,
                        operation == MPI_SUM ? sum_of(0, at.group.size, at.count)
                                             : contribution(chosen, at.count),
                        what);
        });
  }
}

void allreduce_in_place(const Case& at) {
  Values data = contribution(at.group.rank, at.count);
  succeeded(MPI_Allreduce(MPI_IN_PLACE, data.data(), at.n(), kKind, MPI_SUM, at.group.comm),
            at.name("allreduce in place"));
  require_equal(data, sum_of(0, at.group.size, at.count), at.name("allreduce in place"));
}

void scans(const Case& at) {
  const Values in = contribution(at.group.rank, at.count);
  Values out;
  const auto prepare = [&] { out.assign(at.count, -1); };
  both_forms(
      at.name("scan"), prepare,
      [&](MPI_Request* later) {
        return later
                   ? MPI_Iscan(in.data(), out.data(), at.n(), kKind, MPI_SUM, at.group.comm, later)
                   : MPI_Scan(in.data(), out.data(), at.n(), kKind, MPI_SUM, at.group.comm);
      },
      [&](const std::string& what) {
        require_equal(out, sum_of(0, at.group.rank + 1, at.count), what);
      });
  both_forms(
      at.name("exscan"), prepare,
      [&](MPI_Request* later) {
        return later ? MPI_Iexscan(in.data(), out.data(), at.n(), kKind, MPI_SUM, at.group.comm,
                                   later)
                     : MPI_Exscan(in.data(), out.data(), at.n(), kKind, MPI_SUM, at.group.comm);
      },
      [&](const std::string& what) {
        // The first rank's result is undefined.
        if (at.group.rank > 0) require_equal(out, sum_of(0, at.group.rank, at.count), what);
      });
}

void gather(const Case& at, int root) {
  const Values in = contribution(at.group.rank, at.count);
  Values out;
  both_forms(
      at.name("gather"), [&] { out.assign(at.count * at.ranks(), -1); },
      [&](MPI_Request* later) {
        return later ? MPI_Igather(in.data(), at.n(), kKind, out.data(), at.n(), kKind, root,
                                   at.group.comm, later)
                     : MPI_Gather(in.data(), at.n(), kKind, out.data(), at.n(), kKind, root,
                                  at.group.comm);
      },
      [&](const std::string& what) {
        if (at.group.rank == root) require_equal(out, all_contributions(at), what);
      });
}

void scatter(const Case& at, int root) {
  const Values in = at.group.rank == root ? all_contributions(at) : Values{};
  Values out;
  both_forms(
      at.name("scatter"), [&] { out.assign(at.count, -1); },
      [&](MPI_Request* later) {
        return later ? MPI_Iscatter(in.data(), at.n(), kKind, out.data(), at.n(), kKind, root,
                                    at.group.comm, later)
                     : MPI_Scatter(in.data(), at.n(), kKind, out.data(), at.n(), kKind, root,
                                   at.group.comm);
      },
      [&](const std::string& what) {
        require_equal(out, contribution(at.group.rank, at.count), what);
      });
}

void allgather(const Case& at) {
  const Values in = contribution(at.group.rank, at.count);
  Values out;
  both_forms(
      at.name("allgather"), [&] { out.assign(at.count * at.ranks(), -1); },
      [&](MPI_Request* later) {
        return later ? MPI_Iallgather(in.data(), at.n(), kKind, out.data(), at.n(), kKind,
                                      at.group.comm, later)
                     : MPI_Allgather(in.data(), at.n(), kKind, out.data(), at.n(), kKind,
                                     at.group.comm);
      },
      [&](const std::string& what) { require_equal(out, all_contributions(at), what); });
}

void alltoall(const Case& at) {
  Values in;
  Values wanted;
  for (int peer = 0; peer < at.group.size; ++peer) {
    for (std::size_t i = 0; i < at.count; ++i) {
      in.push_back(element(at.group.rank, i) * 100 + peer);
      wanted.push_back(element(peer, i) * 100 + at.group.rank);
    }
  }
  Values out;
  both_forms(
      at.name("alltoall"), [&] { out.assign(in.size(), -1); },
      [&](MPI_Request* later) {
        return later ? MPI_Ialltoall(in.data(), at.n(), kKind, out.data(), at.n(), kKind,
                                     at.group.comm, later)
                     : MPI_Alltoall(in.data(), at.n(), kKind, out.data(), at.n(), kKind,
                                    at.group.comm);
      },
      [&](const std::string& what) { require_equal(out, wanted, what); });
}

void reduce_scatter_block(const Case& at) {
  const std::size_t all = at.count * at.ranks();
  const Values in = contribution(at.group.rank, all);
  const Values sum = sum_of(0, at.group.size, all);
  const auto mine = sum.begin() + at.group.rank * at.n();
  Values out;
  both_forms(
      at.name("reduce_scatter_block"), [&] { out.assign(at.count, -1); },
      [&](MPI_Request* later) {
        return later ? MPI_Ireduce_scatter_block(in.data(), out.data(), at.n(), kKind, MPI_SUM,
                                                 at.group.comm, later)
                     : MPI_Reduce_scatter_block(in.data(), out.data(), at.n(), kKind, MPI_SUM,
                                                at.group.comm);
      },
      [&](const std::string& what) { require_equal(out, Values(mine, mine + at.n()), what); });
}

}  // namespace

void test_collectives(const Group& group, const std::string& where) {
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{7}, std::size_t{1000}, std::size_t{40000}}) {
    const Case at{group, count, where};
    barrier(at);
    for (const int root : {0, group.size - 1}) {
      broadcast(at, root);
      reduce(at, root);
      gather(at, root);
      scatter(at, root);
    }
    allreduce(at);
    allreduce_in_place(at);
    scans(at);
    allgather(at);
    alltoall(at);
    reduce_scatter_block(at);
  }
}

}  // namespace weft::mpi_test
