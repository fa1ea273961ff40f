// SPDX-License-Identifier: BSD-2-Clause
// By which tables does libfabric call the objects of this process, and those of its parent?
#pragma once

#include <new>
#include <type_traits>

#include "os/at_fork.h"
#include "unsupported.h"

namespace weft::fabric {

// Has static storage and is never destroyed: programs close their objects at any time.
class TableOfProcess {
 public:
  TableOfProcess(const TableOfProcess&) = delete;
  TableOfProcess& operator=(const TableOfProcess&) = delete;

 protected:
  TableOfProcess();
  ~TableOfProcess() = default;

 private:
  // In a forked child: what has the table is the parent's.
  virtual void begin_anew() = 0;

  // All of them come while the library is loaded.
  static TableOfProcess* first;
  static os::AtFork at_fork;

  TableOfProcess* const next_;
};

// The table of one kind of object. In a forked child every call of the parent's objects returns
// -FI_EPERM, but for fi_close(3): this overwrites their table, and objects that the child opens
// take another. So no call has to ask which process it is in.
template <class Table>
class OperationTable final : TableOfProcess {
 public:
  explicit OperationTable(const Table& offered) : offered_(offered), first_(offered) {}

  // For an object that is opened now.
  Table* get() const { return current_; }

 private:
  void begin_anew() override {
    *current_ = refusing();
    if (auto* const fresh = new (std::nothrow) Table(offered_)) current_ = fresh;
  }

  // Texts need no object.
  Table refusing() const {
    Table table = all_answering<Table>(kRefused);
    if constexpr (std::is_same_v<Table, fi_ops>) table.close = offered_.close;
    if constexpr (requires { table.strerror; }) table.strerror = offered_.strerror;
    if constexpr (requires { table.straddr; }) table.straddr = offered_.straddr;
    return table;
  }

  const Table offered_;
  Table first_;  // of the process that has loaded the library
  Table* current_ = &first_;
};

template <class Table, class Offer>
OperationTable<Table> table_with([] {
  Table made = unsupported_operations<Table>();
  Offer{}(made);
  return made;
}());

// The table in which `offer` has replaced the offered entries: one for each type of `offer`.
template <class Table, class Offer>
Table* operations_with(Offer) {
  return table_with<Table, Offer>.get();
}

}  // namespace weft::fabric
