// SPDX-License-Identifier: BSD-2-Clause
// Which connections are bounded in number, and which of them is the oldest?
#pragma once

#include <array>
#include <cstddef>
#include <list>

#include "cm/event.h"

namespace weft::cm {

// Communication ids, the oldest first. Lives longer than the places in it.
class AgeList {
 public:
  // The place of one connection in a list, or in none. It is left at the end of the place.
  class AgePlace {
   public:
    AgePlace() = default;
    ~AgePlace() { leave(); }
    AgePlace(const AgePlace&) = delete;
    AgePlace& operator=(const AgePlace&) = delete;

    // Becomes the youngest of `list`, and leaves the list before.
    void enter(AgeList& list, ConnectionId id) {
      leave();
      list_ = &list;
      at_ = list.ids_.insert(list.ids_.end(), id);
    }
    void leave() {
      if (list_ != nullptr) list_->ids_.erase(at_);
      list_ = nullptr;
    }

   private:
    AgeList* list_ = nullptr;
    std::list<ConnectionId>::iterator at_;
  };

  std::size_t size() const { return ids_.size(); }
  ConnectionId oldest() const { return ids_.front(); }
  const std::list<ConnectionId>& ids() const { return ids_; }

 private:
  std::list<ConnectionId> ids_;
};

// One list for each carrier: connections of one do not displace those of the other.
struct AgeLists {
  AgeList& of(const Remote& remote) { return lists[static_cast<std::size_t>(remote.carrier)]; }

  std::array<AgeList, kCarriers> lists;
};

}  // namespace weft::cm
