// SPDX-License-Identifier: BSD-2-Clause
// Which objects of libfabric has a fuzzer open, and how does it close all of them?
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "input.h"

namespace weft::fuzz {

// A call answers 0 or one of libfabric's codes, as a negative number.
inline int check_status(std::int64_t status) {
  constexpr int kLastCode = 1023;
  require(status <= 0 && status >= -kLastCode, "an answer that is no code of libfabric");
  return static_cast<int>(status);
}
// The same of a call that returns a number when it succeeds.
inline std::int64_t check_count(std::int64_t answer) {
  return answer >= 0 ? answer : check_status(answer);
}

class OpenedObjects {
 public:
  OpenedObjects() = default;
  OpenedObjects(const OpenedObjects&) = delete;
  OpenedObjects& operator=(const OpenedObjects&) = delete;
  ~OpenedObjects() { close_all(); }

  void add(fid* object) { open_.push_back(object); }
  // A raw key that fi_mr_map_raw(3) returned: the domain cannot be closed before it is unmapped.
  void add_key(fid_domain* domain, std::uint64_t key) { keys_.emplace_back(domain, key); }

  // One of any class; null: there is none.
  fid* any(Input& input) const {
    return open_.empty() ? nullptr : open_[input.below(static_cast<std::uint32_t>(open_.size()))];
  }
  // One of that class, or null.
  template <class Fid>
  Fid* one(Input& input, std::size_t kind) const {
    std::vector<fid*> fitting;
    std::ranges::copy_if(open_, std::back_inserter(fitting),
                         [&](const fid* each) { return each->fclass == kind; });
    if (fitting.empty()) return nullptr;
    return reinterpret_cast<Fid*>(fitting[input.below(static_cast<std::uint32_t>(fitting.size()))]);
  }
  // The same, or null at times although there is one.
  template <class Fid>
  Fid* one_or_null(Input& input, std::size_t kind) const {
    return input.byte() >= 0xe0 ? nullptr : one<Fid>(input, kind);
  }

  // True when it is closed. An object in use stays.
  bool close(fid* object) {
    if (check_status(fi_close(object)) != 0) return false;
    std::erase(open_, object);
    return true;
  }

  // Ends what keeps objects in use, then closes them, the last first, until none is left.
  void close_all() {
    for (const auto& [domain, key] : keys_) {
      require(fi_mr_unmap_key(domain, key) == 0, "a key that stays mapped");
    }
    keys_.clear();
    for (fid* object : open_) let_go(object);
    while (!open_.empty()) {
      const std::vector<fid*> before(open_.rbegin(), open_.rend());
      for (fid* object : before) close(object);
      require(open_.size() < before.size(), "objects that cannot be closed");
    }
  }

 private:
  void let_go(fid* object) {
    if (object->fclass == FI_CLASS_DOMAIN) fi_control(object, FI_FLUSH_WORK, nullptr);
    if (object->fclass != FI_CLASS_POLL) return;
    for (fid* each : open_) fi_poll_del(reinterpret_cast<fid_poll*>(object), each, 0);
  }

  std::vector<fid*> open_;
  std::vector<std::pair<fid_domain*, std::uint64_t>> keys_;
};

}  // namespace weft::fuzz
