// SPDX-License-Identifier: BSD-2-Clause
// How are a sender and a receiver ordered by a third process?
#include "trio.h"

#include <utility>

#include "failure.h"

namespace weft::faults {

Trio::Trio(const Role& send, const Role& receive) : Trio(send, receive, Ends(), Ends(), Ends()) {}

// Each process keeps its own ends only: it hears of the others' ends by that.
Trio::Trio(const Role& send, const Role& receive, Ends talk, Ends to_sender, Ends to_receiver)
    : sender_("the sender",
              [&] {
                name_this_process("sender");
                for (Channel* end : {&to_sender.one, &to_receiver.one, &to_receiver.other}) {
                  end->close();
                }
                talk.other.close();
                return send(Orders(std::move(to_sender.other)), talk.one);
              }),
      receiver_("the receiver",
                [&] {
                  name_this_process("receiver");
                  for (Channel* end : {&to_sender.one, &to_sender.other, &to_receiver.one}) {
                    end->close();
                  }
                  talk.one.close();
                  return receive(Orders(std::move(to_receiver.other)), talk.other);
                }),
      sender_orders_(std::move(to_sender.one)),
      receiver_orders_(std::move(to_receiver.one)) {}

void Trio::require_passed() const {
  receiver_.require_passed();
  sender_.require_passed();
}

}  // namespace weft::faults
