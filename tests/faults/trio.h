// SPDX-License-Identifier: BSD-2-Clause
// How are a sender and a receiver ordered by a third process?
#pragma once

#include <functional>
#include <optional>

#include "large_message.h"
#include "process.h"
#include "tracee.h"

namespace weft::faults {

// What a sender or a receiver does: hears orders, and meets the other one by `other` (see Talk).
using Role = std::function<int(const Orders& orders, const Channel& other)>;

// A sender, a receiver, and this process, which orders both.
class Trio {
 public:
  Trio(const Role& send, const Role& receive);

  Process& sender() { return sender_; }
  Process& receiver() { return receiver_; }
  const Orders& order_sender() const { return sender_orders_; }
  const Orders& order_receiver() const { return receiver_orders_; }
  void require_passed() const;

 private:
  struct Ends {
    Ends() { Channel::make_pair(one, other); }
    Channel one;
    Channel other;
  };
  Trio(const Role& send, const Role& receive, Ends talk, Ends to_sender, Ends to_receiver);

  Process sender_;
  Process receiver_;
  Orders sender_orders_;
  Orders receiver_orders_;
};

}  // namespace weft::faults
