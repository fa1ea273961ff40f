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

// Converts to a function of any signature, which ignores its arguments and returns -FI_ENOSYS. One
// that does not return a status (fi_cntr_read, fi_eq_strerror ...) is null: every object offers
// those. Use: `table.join = kUnsupported;`
struct Unsupported {
  template <class Answer, class... Arguments>
  using Function = Answer (*)(Arguments...);

  template <class Answer, class... Arguments>
  constexpr operator Function<Answer, Arguments...>() const {
    if constexpr (std::signed_integral<Answer>) {
      return [](Arguments...) -> Answer { return -FI_ENOSYS; };
    } else {
      return nullptr;
    }
  }
};
inline constexpr Unsupported kUnsupported;

// A table of operations with its size filled in and every entry refusing. A front-end object takes
// one and replaces what it offers.
template <class Table>
Table unsupported_operations() {
  constexpr std::size_t kEntries = (sizeof(Table) - sizeof(std::size_t)) / sizeof(void*);
  return []<std::size_t... kEntry>(std::index_sequence<kEntry...>) {
    return Table{sizeof(Table), (static_cast<void>(kEntry), kUnsupported)...};
  }
  (std::make_index_sequence<kEntries>());
}

// The table of one kind of object, in which `offer` has replaced the offered entries. There is one
// table for each type of `offer`.
template <class Table, class Offer>
Table* operations_with(Offer offer) {
  static Table table = [&] {
    Table made = unsupported_operations<Table>();
    offer(made);
    return made;
  }();
  return &table;
}

// The same for objects that offer nothing of a table.
template <class Table>
Table* no_operations() {
  static Table table = unsupported_operations<Table>();
  return &table;
}

}  // namespace weft::fabric
