// SPDX-License-Identifier: BSD-2-Clause
// Do the collectives with unequal contributions, empty ones among them, put every element where it
// belongs?
#include <algorithm>
#include <numeric>

#include "collective_call.h"

namespace weft::mpi_test {

namespace {

const auto kVectorKind = MPI_INT64_T;
constexpr std::int64_t kUntouched = -1;

// Elements per rank (some ranks give none) and where they start, with a gap of one element between
// them.
struct Layout {
  Layout(const Group& group, int unit) {
    for (int rank = 0; rank < group.size; ++rank) {
      counts.push_back(rank % 3 == 2 ? 0 : unit * (rank + 1));
      starts.push_back(rank == 0 ? 0
                                 : starts.back() + counts[static_cast<std::size_t>(rank) - 1] + 1);
    }
    total = static_cast<std::size_t>(starts.back() + counts.back());
  }
  int count(int rank) const { return counts[static_cast<std::size_t>(rank)]; }

  // All contributions at their places, the gaps untouched.
  Values laid_out() const {
    Values all(total, kUntouched);
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      const Values one =
          contribution(static_cast<int>(rank), static_cast<std::size_t>(counts[rank]));
      std::copy(one.begin(), one.end(), all.begin() + starts[rank]);
    }
    return all;
  }

  std::vector<int> counts;
  std::vector<int> starts;
  std::size_t total = 0;
};

void gatherv(const Group& group, const Layout& layout, const std::string& where) {
  const int root = group.size / 2;
  const int mine = layout.count(group.rank);
  const Values in = contribution(group.rank, static_cast<std::size_t>(mine));
  const int* counts = layout.counts.data();
  const int* starts = layout.starts.data();
  Values out;
  const auto prepare = [&] { out.assign(layout.total, kUntouched); };
  both_forms(
      "gatherv on " + where, prepare,
      [&](MPI_Request* later) {
        return later ? MPI_Igatherv(in.data(), mine, kVectorKind, out.data(), counts, starts,
                                    kVectorKind, root, group.comm, later)
                     : MPI_Gatherv(in.data(), mine, kVectorKind, out.data(), counts, starts,
                                   kVectorKind, root, group.comm);
      },
      [&](const std::string& what) {
        if (group.rank == root) require_equal(out, layout.laid_out(), what);
      });
  both_forms(
      "allgatherv on " + where, prepare,
      [&](MPI_Request* later) {
        return later ? MPI_Iallgatherv(in.data(), mine, kVectorKind, out.data(), counts, starts,
                                       kVectorKind, group.comm, later)
                     : MPI_Allgatherv(in.data(), mine, kVectorKind, out.data(), counts, starts,
                                      kVectorKind, group.comm);
      },
      [&](const std::string& what) { require_equal(out, layout.laid_out(), what); });
}

void scatterv(const Group& group, const Layout& layout, const std::string& where) {
  const int root = group.size - 1;
  const int mine = layout.count(group.rank);
  const Values in = layout.laid_out();
  const int* counts = layout.counts.data();
  const int* starts = layout.starts.data();
  Values out;
  both_forms(
      "scatterv on " + where, [&] { out.assign(static_cast<std::size_t>(mine), kUntouched); },
      [&](MPI_Request* later) {
        return later ? MPI_Iscatterv(in.data(), counts, starts, kVectorKind, out.data(), mine,
                                     kVectorKind, root, group.comm, later)
                     : MPI_Scatterv(in.data(), counts, starts, kVectorKind, out.data(), mine,
                                    kVectorKind, root, group.comm);
      },
      [&](const std::string& what) {
        require_equal(out, contribution(group.rank, static_cast<std::size_t>(mine)), what);
      });
}

void reduce_scatter(const Group& group, const Layout& layout, const std::string& where) {
  const auto all =
      static_cast<std::size_t>(std::accumulate(layout.counts.begin(), layout.counts.end(), 0));
  const int before = std::accumulate(layout.counts.begin(), layout.counts.begin() + group.rank, 0);
  const Values in = contribution(group.rank, all);
  const Values sum = sum_of(0, group.size, all);
  const Values wanted(sum.begin() + before, sum.begin() + before + layout.count(group.rank));
  const int* counts = layout.counts.data();
  Values out;
  both_forms(
      "reduce_scatter on " + where, [&] { out.assign(wanted.size(), kUntouched); },
      [&](MPI_Request* later) {
        return later ? MPI_Ireduce_scatter(in.data(), out.data(), counts, kVectorKind, MPI_SUM,
                                           group.comm, later)
                     : MPI_Reduce_scatter(in.data(), out.data(), counts, kVectorKind, MPI_SUM,
                                          group.comm);
      },
      [&](const std::string& what) { require_equal(out, wanted, what); });
}

// Rank r sends (r + p) % 4 * unit elements to rank p, so what it receives from p has the same
// length.
class Exchange {
 public:
  Exchange(const Group& group, int unit) {
    int start = 0;
    for (int peer = 0; peer < group.size; ++peer) {
      counts.push_back((group.rank + peer) % 4 * unit);
      starts.push_back(start);
      byte_starts.push_back(start * static_cast<int>(sizeof(std::int64_t)));
      start += counts.back();
      types.push_back(kVectorKind);
      for (int i = 0; i < counts.back(); ++i) {
        in.push_back(element(group.rank, static_cast<std::size_t>(i)) * 100 + peer);
        wanted.push_back(element(peer, static_cast<std::size_t>(i)) * 100 + group.rank);
      }
    }
  }

  std::vector<int> counts;
  std::vector<int> starts;
  std::vector<int> byte_starts;
  std::vector<MPI_Datatype> types;
  Values in;
  Values wanted;
};

void alltoallv(const Group& group, int unit, const std::string& where) {
  const Exchange plan(group, unit);
  const int* counts = plan.counts.data();
  const int* starts = plan.starts.data();
  const int* bytes = plan.byte_starts.data();
  const MPI_Datatype* types = plan.types.data();
  const Values& in = plan.in;
  Values out;
  const auto prepare = [&] { out.assign(in.size(), kUntouched); };
  const auto check = [&](const std::string& what) { require_equal(out, plan.wanted, what); };
  both_forms(
      "alltoallv on " + where, prepare,
      [&](MPI_Request* later) {
        return later ? MPI_Ialltoallv(in.data(), counts, starts, kVectorKind, out.data(), counts,
                                      starts, kVectorKind, group.comm, later)
                     : MPI_Alltoallv(in.data(), counts, starts, kVectorKind, out.data(), counts,
                                     starts, kVectorKind, group.comm);
      },
      check);
  both_forms(
      "alltoallw on " + where, prepare,
      [&](MPI_Request* later) {
        return later ? MPI_Ialltoallw(in.data(), counts, bytes, types, out.data(), counts, bytes,
                                      types, group.comm, later)
                     : MPI_Alltoallw(in.data(), counts, bytes, types, out.data(), counts, bytes,
                                     types, group.comm);
      },
      check);
}

}  // namespace

void test_vector_collectives(const Group& group, const std::string& where) {
  for (const int unit : {1, 50, 5000}) {
    const Layout layout(group, unit);
    gatherv(group, layout, where);
    scatterv(group, layout, where);
    reduce_scatter(group, layout, where);
    alltoallv(group, unit, where);
  }
}

}  // namespace weft::mpi_test
