// SPDX-License-Identifier: BSD-2-Clause
// By which numbers do packets name the flows of an endpoint?
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "os/clock.h"
#include "rdm_receiver.h"
#include "rdm_sender.h"
#include "shared.h"
#include "watches.h"

namespace weft::rdm {

// An end-to-end context: one end of a flow.
struct Context {
  std::uint32_t number = 0;
  std::unique_ptr<RdmSender> out;
  std::unique_ptr<RdmReceiver> in;
  bool active = false;  // Emission knows that it has something to do
  bool seen_idle = false;
  os::Time watched_at{};   // when it is looked at whether its peer lives
  os::Time used{};         // when something was in flight last
  unsigned questions = 0;  // that its peer has not answered

  // When it has something to send.
  os::Time due() const;
};

// The contexts of an endpoint, by number. One thread at a time.
class Contexts {
 public:
  explicit Contexts(Shared& shared) : shared_(shared) {}

  // One is kept back for what goes nowhere.
  bool has_room() const;
  // A new one, which is watched from now on.
  Context& create();
  // Null where there is none of that number (any more).
  Context* find(std::uint32_t number) const;
  void destroy(Context& context);
  void clear() { contexts_.clear(); }
  // Calls visit(Context&), which may destroy it.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      if (contexts_[i] != nullptr) visit(*contexts_[i]);
    }
  }
  // Whether there has ever been one.
  bool any() const { return !contexts_.empty(); }
  Watches& watches() { return watches_; }
  const Watches& watches() const { return watches_; }

 private:
  Shared& shared_;
  std::vector<std::unique_ptr<Context>> contexts_;  // by index
  std::vector<std::uint32_t> free_;                 // indices of those that there are not
  Watches watches_;
};

}  // namespace weft::rdm
