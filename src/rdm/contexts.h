// SPDX-License-Identifier: BSD-2-Clause
// By which numbers do packets name the flows of an endpoint?
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "os/clock.h"
#include "paired_flow.h"
#include "rdm_receiver.h"
#include "rdm_sender.h"
#include "shared.h"

namespace weft::rdm {

// An end-to-end context: one end of a flow, or of a pair of flows, one in each direction.
struct Context {
  std::uint32_t number = 0;
  std::unique_ptr<RdmSender> out;
  std::unique_ptr<RdmReceiver> in;
  std::unique_ptr<PairedFlow> pair;  // null when it is one flow
  bool active = false;               // Emission knows that it has something to do
  bool seen_idle = false;
  bool noted = false;  // Contexts knows that its memory is to be given back
  os::Time used{};     // when it became active last

  // When it has something to send.
  os::Time due() const;
  // When the peer was last heard from.
  os::Time last_received() const;
};

// The contexts of an endpoint, by number. One thread at a time.
class Contexts {
 public:
  explicit Contexts(Shared& shared) : shared_(shared) {}

  // One is kept back for what goes nowhere.
  bool has_room() const;
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
  // Something is in flight: memory for it is given back by trim(), after a rest.
  void note_use(Context& context);
  void trim();
  // When trim() has something to do.
  os::Time due() const { return noted_.empty() ? os::Time::max() : noted_.front().at; }

 private:
  struct Noted {
    os::Time at;
    std::uint32_t number;
  };

  Shared& shared_;
  std::vector<std::unique_ptr<Context>> contexts_;  // by index
  std::vector<std::uint32_t> free_;                 // free indices of contexts_
  std::deque<Noted> noted_;                         // in the order of their time
};

}  // namespace weft::rdm
