// SPDX-License-Identifier: BSD-2-Clause
// Which memory do tests register?
#pragma once

#include <memory>
#include <span>

#include "memory/region_table.h"
#include "os/test_directory_support.h"

namespace weft::rdm::testing {

inline constexpr DomainId kDomain{5};

// The regions of this process, in a directory that vanishes with its test.
class Regions {
 public:
  // Remote addresses of it are offsets.
  memory::Registration add(std::uint64_t key, std::span<std::byte> bytes, Access access) {
    return table_
        ->add({kDomain, access, reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size(), 0,
               false, RegionKey{key}})
        .value();
  }
  memory::RegionTable& table() { return *table_; }
  std::shared_ptr<memory::RegionTableView> open() const {
    return memory::RegionTableView::open(directory_.path(), table_->name()).value();
  }

 private:
  os::TestDirectory directory_;  // outlives the table
  std::unique_ptr<memory::RegionTable> table_ =
      std::move(memory::RegionTable::create(directory_.path())).value();
};

}  // namespace weft::rdm::testing
