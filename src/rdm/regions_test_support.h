// SPDX-License-Identifier: BSD-2-Clause
// Which memory do tests register?
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "memory/region_table.h"

namespace weft::rdm::testing {

inline constexpr DomainId kDomain{5};

// The regions of this process, in a directory that vanishes with its test.
class Regions {
 public:
  Regions() {
    char name[] = "/dev/shm/weft-test-XXXXXX";
    if (::mkdtemp(name) != nullptr) path_ = name;
    table_ = std::move(memory::RegionTable::create(path_)).value();
  }
  ~Regions() {
    table_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

  // Remote addresses of it are offsets.
  memory::Registration add(std::uint64_t key, std::span<std::byte> bytes, Access access) {
    return table_
        ->add({kDomain, access, reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size(), 0,
               false, RegionKey{key}})
        .value();
  }
  memory::RegionTable& table() { return *table_; }
  std::shared_ptr<memory::RegionTableView> open() const {
    return memory::RegionTableView::open(path_, table_->name()).value();
  }

 private:
  std::string path_;
  std::unique_ptr<memory::RegionTable> table_;
};

}  // namespace weft::rdm::testing
