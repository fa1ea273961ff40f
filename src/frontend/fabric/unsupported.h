// SPDX-License-Identifier: BSD-2-Clause
// What do the entries of libfabric's operation tables do that weft does not offer?
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <concepts>
#include <cstddef>
#include <utility>

namespace weft::fabric {

// Converts to a function of any signature, which ignores its arguments and returns that status, or
// the count 0 (fi_cntr_read). One that returns a text (fi_eq_strerror ...) is null: every object
// offers those. Use: `table.join = kUnsupported;`
template <int kStatus>
struct Answering {
  template <class Answer, class... Arguments>
  using Function = Answer (*)(Arguments...);

  template <class Answer, class... Arguments>
  constexpr operator Function<Answer, Arguments...>() const {
    if constexpr (std::signed_integral<Answer>) {
      return [](Arguments...) -> Answer { return kStatus; };
    } else if constexpr (std::unsigned_integral<Answer>) {
      return [](Arguments...) -> Answer { return 0; };
    } else {
      return nullptr;
    }
  }
};
inline constexpr Answering<-FI_ENOSYS> kUnsupported;
inline constexpr Answering<-FI_EPERM> kRefused;  // to a forked child

// A table of operations with its size filled in and every entry giving that answer.
template <class Table, class Answer>
constexpr Table all_answering(Answer answer) {
  constexpr std::size_t kEntries = (sizeof(Table) - sizeof(std::size_t)) / sizeof(void*);
  return [&]<std::size_t... kEntry>(std::index_sequence<kEntry...>) {
    return Table{sizeof(Table), (static_cast<void>(kEntry), answer)...};
  }
  (std::make_index_sequence<kEntries>());
}

// One that refuses all. A front-end object takes it and replaces what it offers.
template <class Table>
constexpr Table unsupported_operations() {
  return all_answering<Table>(kUnsupported);
}

// For objects that offer nothing of a table. It is the same in every process.
template <class Table>
Table* no_operations() {
  static constinit Table table = unsupported_operations<Table>();
  return &table;
}

}  // namespace weft::fabric
