// SPDX-License-Identifier: BSD-2-Clause
// Which objects of one kind are open in a domain?
#pragma once

#include <cstddef>
#include <list>
#include <mutex>

#include "os/origin.h"

namespace weft::fabric {

// Any thread.
template <class Object>
class OpenObjects {
 public:
  // Lists an object as long as it lives; goes before anything that each() looks at.
  class Listing {
   public:
    Listing(OpenObjects& objects, Object& object) : objects_(objects) {
      const std::lock_guard guard(objects_.mutex_);
      entry_ = objects_.all_.insert(objects_.all_.end(), &object);
    }
    ~Listing() {
      if (objects_.origin_.inherited()) return;  // a thread of the parent may have held the lock
      const std::lock_guard guard(objects_.mutex_);
      objects_.all_.erase(entry_);
    }
    Listing(const Listing&) = delete;
    Listing& operator=(const Listing&) = delete;

   private:
    OpenObjects& objects_;
    typename std::list<Object*>::iterator entry_;
  };

  std::size_t count() const {
    const std::lock_guard guard(mutex_);
    return all_.size();
  }
  // Calls look(object) for each, in the order in which they were opened. None closes meanwhile.
  template <class Look>
  void each(Look look) const {
    const std::lock_guard guard(mutex_);
    for (Object* object : all_) look(*object);
  }

 private:
  const os::Origin origin_{};
  mutable std::mutex mutex_;
  std::list<Object*> all_;
};

}  // namespace weft::fabric
